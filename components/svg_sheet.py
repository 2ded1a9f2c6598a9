"""A picture as SVG on a sheet that fills from the top: words on a grid of equal cells, scales, the ground of a theme.

A text is stretched to its cells, whatever font draws it, so that its place is known without asking a browser.
"""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from html import escape

from components.palette import PALETTES, SIDES, STEPS, Side, colour

CELL, LINE, EDGE, CELLS = 9.0, 27.0, 24.0, 100
"""Width of a cell, height of a line, margin, and cells in a line; in pixels but for the last."""
WIDTH = 2 * EDGE + CELLS * CELL
BAR = 120.0
SMALL = 0.8
TINY = 0.7
SMALLER = f' font-size="{15 * SMALL:g}"'


@dataclass(frozen=True)
class Piece:
    """Text on one line: a unit's text, a part of it, or what stands between units; `value` is printed below."""

    text: str
    position: int | None = None
    value: str = ""

    @property
    def cells(self) -> int:
        return max(cells(self.text), math.ceil(TINY * len(self.value)))


@dataclass
class Sheet:
    """What has been drawn, and how far down. `pinned`: positions of units that are ringed."""

    y: float = EDGE
    parts: list[str] = field(default_factory=list)
    pinned: frozenset[int] = frozenset()


def whole(sheet: Sheet, dark: bool) -> str:
    """The sheet as a file; light, and `dark` where the reader prefers it."""
    height, light = sheet.y + EDGE, PALETTES["light"]
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n'
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH:g}" height="{height:g}" '
        f'viewBox="0 0 {WIDTH:g} {height:g}" font-family="monospace" font-size="15">'
        f"{_style(dark)}"
        f'<defs><linearGradient id="signed">{_stops("against", None, "for")}</linearGradient>'
        f'<linearGradient id="amount">{_stops(None, "amount")}</linearGradient></defs>'
        f'<rect class="ground" width="100%" height="100%" fill="{light.ground}"/>{"".join(sheet.parts)}</svg>\n'
    )


def heading(sheet: Sheet, said: str) -> None:
    """Words of full size over as many lines as they need."""
    _written(sheet, said, 1, "", "text")


def sentence(sheet: Sheet, said: str) -> None:
    """Small words over as many lines as they need."""
    _written(sheet, said, SMALL, SMALLER, "muted")


def words(text: str, x: float, y: float, more: str = "", ink: str = "text") -> str:
    """A text whose baseline starts at a place. `more`: attributes; `ink`: a colour of the palette."""
    fill = getattr(PALETTES["light"], ink)
    place = f'class="{ink}" x="{x:g}" y="{y:g}" fill="{fill}" xml:space="preserve"'
    return f"<text {place}{more}>{escape(clean(text))}</text>"


def scale_bar(sheet: Sheet, legend: str, kind: str | None) -> None:
    """The colours of a scale, `signed` or `amount`, and what they mean; None: there is nothing to colour."""
    x, y = EDGE, sheet.y + 8
    if kind:
        sheet.parts.append(f'<rect x="{x:g}" y="{y:g}" width="{BAR:g}" height="10" fill="url(#{kind})"/>')
        x += BAR + 12
    sheet.parts.append(words(legend, x, y + 10, SMALLER, "muted"))
    sheet.y += 1.6 * LINE


def cells(text: str) -> int:
    """How many cells a text takes: two for a wide character, none for one that joins the character before it."""
    return sum(_cell(character) for character in text)


def lines(pieces: Iterable[Piece], limit: int = CELLS) -> Iterator[list[Piece]]:
    """Pieces in lines of at most `limit` cells: broken between pieces, and inside one that is longer than a line."""
    line: list[Piece] = []
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


def _written(sheet: Sheet, said: str, size: int | float, more: str, ink: str) -> None:
    pieces = [Piece(clean(part)) for word in said.split() for part in (word, " ")]
    for line in lines(pieces, int(CELLS / size)):
        told = "".join(piece.text for piece in line).strip()
        sheet.parts.append(words(told, EDGE, sheet.y + 14, more, ink))
        sheet.y += LINE * size


def _cell(character: str) -> int:
    if unicodedata.category(character) in ("Mn", "Me", "Cf") or 0x1F3FB <= ord(character) <= 0x1F3FF:
        return 0
    return 2 if unicodedata.east_asian_width(character) in ("W", "F") else 1


def _cut(piece: Piece, limit: int) -> Iterator[Piece]:
    start = taken = 0
    for at, character in enumerate(piece.text):
        if taken + _cell(character) > limit:
            yield replace(piece, text=piece.text[start:at])
            start, taken = at, 0
        taken += _cell(character)
    yield replace(piece, text=piece.text[start:])


def clean(text: str) -> str:
    """White space as spaces; what XML may not hold as a replacement mark."""
    spaced = "".join(" " if c.isspace() else c for c in text)
    return "".join("\ufffd" if _forbidden(c) else c for c in spaced)


def _forbidden(character: str) -> bool:
    code = ord(character)
    return code < 0x20 or 0x7F <= code < 0xA0 or 0xD800 <= code <= 0xDFFF or code & 0xFFFE == 0xFFFE


def _stops(*sides: Side | None) -> str:
    """A gradient between the far ends of sides; None stands for the ground in between."""
    share = 100 / (len(sides) - 1)
    return "".join(
        f'<stop class="{name}" offset="{share * place:g}%" stop-color="{fill}"/>'
        for place, (name, fill) in enumerate(map(_stop, sides))
    )


def _stop(side: Side | None) -> tuple[str, str]:
    return ("ground", PALETTES["light"].ground) if side is None else (f"{side}-{STEPS}", colour("light", side, STEPS))


def _style(dark: bool) -> str:
    return f"<style>@media (prefers-color-scheme:dark){{{_dark()}}}</style>" if dark else ""


def _dark() -> str:
    palette = PALETTES["dark"]
    fills = {name: getattr(palette, name) for name in ("ground", "text", "muted", "special")}
    fills |= {f"{side}-{step}": colour("dark", side, step) for side in SIDES for step in range(1, STEPS + 1)}
    rings = f"rect[stroke]{{stroke:{palette.text}}}"
    return "".join(f".{name}{{fill:{fill};stop-color:{fill}}}" for name, fill in fills.items()) + rings
