"""Explanations as files to keep: a page that stands alone, a table, JSON, and how to cite and repeat them."""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass
from functools import cached_property

from components.citing import Shown, arguments_of, cite, cite_html, json_of, references
from components.export_page import command_html, standing_page
from components.looked_at import command_line, text_arguments
from components.method_row import MethodRow, method_row, method_row_html, token_map
from components.prediction import prediction_html
from components.scales import ends_of
from components.text.aligned_map import aligned_html, line_html
from components.widgets.token_map.html import STACK, unit_selector
from components.widgets.token_map.picker import to_units
from components.widgets.token_map.svg import maps_svg
from components.widgets.view_options import DEFAULT_VIEW, ViewOptions
from engine.registry import Explainer
from engine.request import Example
from engine.result import Explanation, Token
from engine.table_io import escape_cell


@dataclass(frozen=True)
class Kept:
    """What is kept: the example, its unit, each method shown with its explanation, rows above them.

    `pins`: positions of tokens whose units are ringed.
    """

    example: Example
    unit: str
    shown: Shown
    above: tuple[MethodRow, ...] = ()
    look: ViewOptions = DEFAULT_VIEW
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

    def _extent(self, method: Explainer, made: Explanation) -> float:
        return token_map(method, made, self.example, self.unit).largest

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
    sections = (
        prediction_html(kept.first.prediction, origin.target),
        f'<div class="{STACK.removeprefix(".")}">{_maps(kept)}</div>',
        f"<h2>Cite this</h2>{cite_html(kept.shown)}{command_html(kept.example, command(kept))}",
    )
    return standing_page(f"Explanations of one prediction of {origin.model}", sections, _rings(kept))


def svg(kept: Kept, dark: bool = True) -> str:
    """One picture of all maps, with scales and references; light, and `dark` where the reader prefers it."""
    rows = [(row.title, row.view) for row in kept.rows]
    return maps_svg(rows, [cite(kept.shown), *references(kept.shown)], dark, kept.pinned)


def csv_table(kept: Kept) -> str:
    """A row a token, a column a method, before them what stands above the maps, such as a rationale.

    Numbers are written in full; text that a spreadsheet would run is defused.
    """
    sheet = io.StringIO(newline="")
    writer = csv.writer(sheet, lineterminator="\r\n")
    names = [*(row.title.lower() for row in kept.above), *(made.provenance.method for _, made in kept.shown)]
    writer.writerow(["token", "start", "end", "segment", "special", *map(escape_cell, names)])
    scores = [*(_of_tokens(row) for row in kept.above), *(made.scores.tolist() for _, made in kept.shown)]
    for position, token in enumerate(kept.tokens):
        segment = "" if token.special else token.segment
        place = [token.start, token.end, segment, "true" if token.special else "false"]
        writer.writerow([escape_cell(token.text), *place, *(repr(one[position]) for one in scores)])
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
    return command_line(arguments(kept), kept.example)


def arguments(kept: Kept) -> list[str]:
    """The command's arguments."""
    return arguments_of(kept.shown, text_arguments(kept.example))


def _maps(kept: Kept) -> str:
    """The maps in the layout of the page."""
    if not kept.look.aligned:
        return "".join(map(method_row_html, kept.rows))
    return aligned_html(kept.rows[0].view, [line_html(row) for row in kept.rows], kept.rows)


def _rings(kept: Kept) -> str:
    units = ",".join(f"{STACK} {unit_selector(position)}" for position in sorted(kept.pinned))
    return f"{units}{{outline:2px solid var(--xg-text)}}" if units else ""
