"""SVG output: a sheet that is filled from the top, and Vega-Lite charts without a browser.

The sheet has text on a grid of equal cells, scales, and the background of a theme. Text is stretched to its cells in
any font, so that its position is known without a browser.

Vega runs in a separate process, because it ends its process on a chart that it cannot draw. The library `vl_convert`
contains Vega, its fonts and a script engine; it loads nothing from the network.
"""

from __future__ import annotations

import json
import math
import subprocess
import sys
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from html import escape
from typing import Any

from components.palette import PALETTES, SIDES, STEPS, Side, color
from engine.errors import ExegesisError

CELL, LINE, EDGE, CELLS = 9.0, 27.0, 24.0, 100
"""Cell width, line height and margin in pixels, and number of cells per line."""
WIDTH = 2 * EDGE + CELLS * CELL
BAR = 120.0
SMALL = 0.8
TINY = 0.7
SMALLER = f' font-size="{15 * SMALL:g}"'
VEGA_SECONDS = 60
_DRAW_CHART = "vl_convert.vegalite_to_svg(sys.stdin.read(), allowed_base_urls=[])"
_BUNDLE = "vl_convert.javascript_bundle('window.vegaEmbed = vegaEmbed;')"
_REFUSED = "This chart could not be made a picture. Its JSON and its CSV can still be saved."


@dataclass(frozen=True)
class TextPiece:
    """Text on one line: a unit, a part of a unit, or the text between units. `value`: printed below it."""

    text: str
    position: int | None = None
    value: str = ""

    @property
    def cells(self) -> int:
        return max(count_cells(self.text), math.ceil(TINY * len(self.value)))


@dataclass
class SvgSheet:
    """The drawn parts and their lower end `y` in pixels. `pinned`: positions of units with a ring."""

    y: float = EDGE
    parts: list[str] = field(default_factory=list)
    pinned: frozenset[int] = frozenset()


def svg_document(sheet: SvgSheet, dark: bool) -> str:
    """Return the sheet as an SVG file: light, and with `dark` also dark for readers who prefer it."""
    height, light = sheet.y + EDGE, PALETTES["light"]
    dark_style = f"<style>@media (prefers-color-scheme:dark){{{_dark_rules()}}}</style>" if dark else ""
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n'
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH:g}" height="{height:g}" '
        f'viewBox="0 0 {WIDTH:g} {height:g}" font-family="monospace" font-size="15">'
        f"{dark_style}"
        f'<defs><linearGradient id="signed">{_stops("against", None, "for")}</linearGradient>'
        f'<linearGradient id="amount">{_stops(None, "amount")}</linearGradient></defs>'
        f'<rect class="ground" width="100%" height="100%" fill="{light.ground}"/>{"".join(sheet.parts)}</svg>\n'
    )


def add_heading(sheet: SvgSheet, text: str) -> None:
    """Add text of full size, wrapped to as many lines as it needs."""
    _add_text(sheet, text, 1, "", "text")


def add_sentence(sheet: SvgSheet, text: str) -> None:
    """Add small text, wrapped to as many lines as it needs."""
    _add_text(sheet, text, SMALL, SMALLER, "muted")


def text_element(text: str, x: float, y: float, more: str = "", ink: str = "text") -> str:
    """Return a text element whose baseline starts at (x, y). `more`: attributes. `ink`: a color of the palette."""
    fill = getattr(PALETTES["light"], ink)
    place = f'class="{ink}" x="{x:g}" y="{y:g}" fill="{fill}" xml:space="preserve"'
    return f"<text {place}{more}>{escape(clean_xml(text))}</text>"


def add_scale_bar(sheet: SvgSheet, legend: str, kind: str | None) -> None:
    """Add the colors of a scale and its legend. `kind`: `signed`, `amount`, or None if nothing has a color."""
    x, y = EDGE, sheet.y + 8
    if kind:
        sheet.parts.append(f'<rect x="{x:g}" y="{y:g}" width="{BAR:g}" height="10" fill="url(#{kind})"/>')
        x += BAR + 12
    sheet.parts.append(text_element(legend, x, y + 10, SMALLER, "muted"))
    sheet.y += 1.6 * LINE


def count_cells(text: str) -> int:
    """Return the number of cells of a text: two for a wide character, none for a combining character."""
    return sum(_cell(character) for character in text)


def wrap_lines(pieces: Iterable[TextPiece], limit: int = CELLS) -> Iterator[list[TextPiece]]:
    """Yield pieces in lines of at most `limit` cells, broken between pieces or inside a piece longer than a line."""
    line: list[TextPiece] = []
    room = limit
    for piece in (part for whole in pieces for part in _cut(whole, limit)):
        if piece.text == "\n" or piece.cells > room:
            yield line
            line, room = [], limit
        if piece.text == "\n" or (not line and piece.position is None and not piece.text.strip()):
            continue
        line.append(piece)
        room -= piece.cells
    if line:
        yield line


def clean_xml(text: str) -> str:
    """Return the text with white space as spaces and a replacement character for each that XML forbids."""
    spaced = "".join(" " if c.isspace() else c for c in text)
    return "".join("\ufffd" if _forbidden(c) else c for c in spaced)


def clean_spec(part: Any) -> Any:
    """Return a Vega-Lite specification without characters that XML forbids, on which Vega's fonts fail."""
    if isinstance(part, Mapping):
        return {name: clean_spec(value) for name, value in part.items()}
    if isinstance(part, list):
        return [clean_spec(value) for value in part]
    return clean_xml(part) if isinstance(part, str) else part


def vega_svg(spec: Mapping[str, Any]) -> str:
    """Render a Vega-Lite chart as SVG, without an XML declaration. `spec`: from `clean_spec`."""
    return _run_vega(_DRAW_CHART, json.dumps(spec))


@cache
def vega_library() -> str:
    """Return Vega, Vega-Lite and `vegaEmbed` as a script of about 0.9 MB."""
    return _run_vega(_BUNDLE, "")


def _add_text(sheet: SvgSheet, text: str, size: int | float, more: str, ink: str) -> None:
    pieces = [TextPiece(clean_xml(part)) for word in text.split() for part in (word, " ")]
    for line in wrap_lines(pieces, int(CELLS / size)):
        row = "".join(piece.text for piece in line).strip()
        sheet.parts.append(text_element(row, EDGE, sheet.y + 14, more, ink))
        sheet.y += LINE * size


def _cell(character: str) -> int:
    if unicodedata.category(character) in ("Mn", "Me", "Cf") or 0x1F3FB <= ord(character) <= 0x1F3FF:
        return 0
    return 2 if unicodedata.east_asian_width(character) in ("W", "F") else 1


def _cut(piece: TextPiece, limit: int) -> Iterator[TextPiece]:
    start = taken = 0
    for at, character in enumerate(piece.text):
        if taken + _cell(character) > limit:
            yield replace(piece, text=piece.text[start:at])
            start, taken = at, 0
        taken += _cell(character)
    yield replace(piece, text=piece.text[start:])


def _forbidden(character: str) -> bool:
    code = ord(character)
    return code < 0x20 or 0x7F <= code < 0xA0 or 0xD800 <= code <= 0xDFFF or code & 0xFFFE == 0xFFFE


def _stops(*sides: Side | None) -> str:
    """Return the stops of a gradient between the ends of sides; None stands for the ground in between."""
    share = 100 / (len(sides) - 1)
    ground = ("ground", PALETTES["light"].ground)
    ends = [ground if side is None else (f"{side}-{STEPS}", color("light", side, STEPS)) for side in sides]
    return "".join(
        f'<stop class="{name}" offset="{share * place:g}%" stop-color="{fill}"/>'
        for place, (name, fill) in enumerate(ends)
    )


def _dark_rules() -> str:
    palette = PALETTES["dark"]
    fills = {name: getattr(palette, name) for name in ("ground", "text", "muted", "special")}
    fills |= {f"{side}-{step}": color("dark", side, step) for side in SIDES for step in range(1, STEPS + 1)}
    rings = f"rect[stroke]{{stroke:{palette.text}}}"
    return "".join(f".{name}{{fill:{fill};stop-color:{fill}}}" for name, fill in fills.items()) + rings


def _run_vega(call: str, given: str) -> str:
    code = f"import sys, vl_convert; sys.stdout.write({call})"
    done = subprocess.run(
        [sys.executable, "-I", "-X", "utf8", "-c", code],
        input=given, capture_output=True, encoding="utf-8", errors="replace", timeout=VEGA_SECONDS, check=False,
    )  # fmt: skip
    if done.returncode:
        raise ExegesisError(_REFUSED)
    return done.stdout
