"""Explanations as files to keep: a page that stands alone, a table, JSON, and how to cite and repeat them."""

from __future__ import annotations

import csv
import io
import shlex
import unicodedata
from dataclasses import dataclass
from functools import cached_property
from html import escape

from components.aligned_map import aligned_html, line_html
from components.citing import Shown, arguments_of, cite_html, json_of
from components.focus import LONGEST_IN_LINK
from components.look import PLAIN, Look
from components.method_row import MethodRow, method_row, method_row_html, token_map
from components.prediction import prediction_html
from components.scales import ends_of
from components.styles import STACK, stylesheet
from components.token_map import unit_selector
from components.token_pick import to_units
from engine.cells import defused
from engine.registry import Explainer
from engine.request import Example
from engine.result import Explanation, Token

LONGEST_IN_COMMAND = LONGEST_IN_LINK
TEXT_FILE = "text.txt"

_PAGE_CSS = (
    ":root{color-scheme:light dark}"
    "body{margin:0;background:var(--xg-ground);color:var(--xg-text);font:16px/1.5 system-ui,sans-serif}"
    "main{max-width:70rem;margin:0 auto;padding:1.5rem}h1{font-size:1.35rem;margin:0 0 1rem}"
    "h2{font-size:1.05rem;margin:0 0 .4rem}section{margin:0 0 1.5rem}"
    "pre{white-space:pre-wrap;overflow-wrap:anywhere;background:var(--xg-special);padding:.7rem;border-radius:4px}"
    "ul{margin:.4rem 0;padding-inline-start:1.2rem}"
)
# Nothing in the file may run or be fetched, whatever a text holds: the browser is told so as well.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'"


@dataclass(frozen=True)
class Kept:
    """What is kept: the example, its unit, each method shown with its explanation, rows above them.

    `pins`: positions of tokens whose units are ringed.
    """

    example: Example
    unit: str
    shown: Shown
    above: tuple[MethodRow, ...] = ()
    look: Look = PLAIN
    pins: tuple[int, ...] = ()

    @cached_property
    def rows(self) -> tuple[MethodRow, ...]:
        """Those above, then a row a method."""
        return self.above + tuple(
            method_row(method, made, self.example, self.unit, look=self.look, ends=self._ends)
            for method, made in self.shown
        )

    @property
    def pinned(self) -> frozenset[int]:
        """The positions of the units that are ringed."""
        return frozenset(to_units(self.rows[-1].view.units, self.pins))

    @property
    def _ends(self) -> dict[str, float]:
        """Where the scales end that maps share, if they are to share any."""
        return ends_of(self.shown, self._extent) if self.look.shared else {}

    def _extent(self, method: Explainer, made: Explanation) -> tuple[bool, float]:
        view = token_map(method, made, self.example, self.unit)
        return view.signed, view.largest

    @property
    def first(self) -> Explanation:
        return self.shown[0][1]

    @property
    def tokens(self) -> tuple[Token, ...]:
        """Every method reads the same tokens: they are the model's."""
        return self.first.tokens


def html(kept: Kept) -> str:
    """The prediction and the maps as one file: style inside, no script, nothing fetched, light and dark."""
    origin = kept.first.provenance
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f"<title>Explanations of {escape(origin.model)}</title>{stylesheet('auto')}"
        f"<style>{_PAGE_CSS}{_rings(kept)}</style></head>"
        f'<body class="xg"><main><h1>Explanations of one prediction of {escape(origin.model)}</h1>'
        f"<section>{prediction_html(kept.first.prediction, origin.target)}</section>"
        f'<section class="{STACK.removeprefix(".")}">{_maps(kept)}</section>'
        f"<section><h2>Cite this</h2>{cite_html(kept.shown)}<pre>{escape(command(kept))}</pre>"
        f"{_stdin_html(kept)}</section></main></body></html>\n"
    )


def csv_table(kept: Kept) -> str:
    """A row a token, a column a method, before them what stands above the maps, such as a rationale.

    Numbers are written in full; text that a spreadsheet would run is defused.
    """
    sheet = io.StringIO(newline="")
    writer = csv.writer(sheet, lineterminator="\r\n")
    names = [*(row.title.lower() for row in kept.above), *(made.provenance.method for _, made in kept.shown)]
    writer.writerow(["token", "start", "end", "segment", "special", *map(defused, names)])
    scores = [*(_of_tokens(row) for row in kept.above), *(made.scores.tolist() for _, made in kept.shown)]
    for position, token in enumerate(kept.tokens):
        segment = "" if token.special else token.segment
        place = [token.start, token.end, segment, "true" if token.special else "false"]
        writer.writerow([defused(token.text), *place, *(repr(one[position]) for one in scores)])
    return sheet.getvalue()


def _of_tokens(row: MethodRow) -> list[float]:
    """What a row says of each token: what it says of the token's unit."""
    found = {position: unit.score for unit in row.view.units for position in unit.tokens}
    return [found[position] for position in range(len(found))]


def json_list(kept: Kept) -> str:
    """What `exegesis explain --json` prints: a list, one object a method."""
    return json_of(kept.shown)


def command(kept: Kept) -> str:
    """The command that makes the same numbers, quoted for a POSIX shell."""
    return shlex.join(["exegesis", *arguments(kept)]) + (f" < {TEXT_FILE}" if from_stdin(kept) is not None else "")


def arguments(kept: Kept) -> list[str]:
    """The command's arguments."""
    example, read = kept.example, from_stdin(kept)
    given = ["--text", "-" if read == "text" else example.text]
    if example.text_pair is not None:
        given += ["--text-pair", "-" if read == "text_pair" else example.text_pair]
    return arguments_of(kept.shown, given)


def from_stdin(kept: Kept) -> str | None:
    """Which text the command reads from standard input: the first that a command line cannot hold well."""
    texts = kept.example.as_plain()
    return next((name for name, text in texts.items() if text is not None and _unfit(text)), None)


def stdin_file(kept: Kept) -> bytes:
    """What the command is to read, so that it sees the text exactly."""
    text = kept.example.as_plain()[from_stdin(kept) or "text"] or ""
    # The command drops one byte order mark and one line end: a text that has its own keeps it.
    return f"\ufeff{text}\r\n".encode()


def _maps(kept: Kept) -> str:
    """The maps in the layout of the page."""
    if not kept.look.aligned:
        return "".join(map(method_row_html, kept.rows))
    return aligned_html(kept.rows[0].view, [line_html(row) for row in kept.rows], kept.rows)


def _rings(kept: Kept) -> str:
    units = ",".join(f"{STACK} {unit_selector(position)}" for position in sorted(kept.pinned))
    return f"{units}{{outline:2px solid var(--xg-text)}}" if units else ""


def _stdin_html(kept: Kept) -> str:
    read = from_stdin(kept)
    if read is None:
        return ""
    which = "second text" if read == "text_pair" else "text"
    return f'<p class="xg-small">Save the {which} as {TEXT_FILE}: it is too long or too special for a command line.</p>'


def _unfit(text: str) -> bool:
    """Too long to paste, read as a request for stdin, or holding a character that acts on a terminal."""
    acting = any(unicodedata.category(c) == "Cc" and c != "\n" for c in text)
    return len(text) > LONGEST_IN_COMMAND or text == "-" or acting
