"""The maps as a picture: text on a grid of equal cells, so that its place is known without asking a browser.

A token is stretched to its cells, whatever font draws it. Each token is drawn by itself, so that tokens of one Arabic
word do not join. A line of a right-to-left text runs from the right edge, a phrase of the other direction inside it.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from html import escape, unescape
from itertools import groupby

from components.citing import cite, references
from components.export import Kept
from components.method_row import MethodRow
from components.numbers import brief
from components.palette import PALETTES, SIDES, STEPS, Side, colour, step_of
from components.token_map import TokenMap, between, direction, legend_html, tip

CELL, LINE, EDGE, CELLS = 9.0, 27.0, 24.0, 100
"""Width of a cell, height of a line, margin, and cells in a line; in pixels but for the last."""
WIDTH = 2 * EDGE + CELLS * CELL
BAR = 120.0
SMALL = 0.8
TINY = 0.7
VALUE = 13.0
"""Height of a printed value."""
_TAG = re.compile(r"<[^>]*>")
_SMALLER = f' font-size="{15 * SMALL:g}"'
_TINY = f' font-size="{15 * TINY:g}" text-anchor="middle"'


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
class _Sheet:
    """What has been drawn, and how far down."""

    y: float = EDGE
    parts: list[str] = field(default_factory=list)
    pinned: frozenset[int] = frozenset()


def svg(kept: Kept, dark: bool = True) -> str:
    """One picture of all maps, with scales and references; light, and `dark` where the reader prefers it."""
    sheet = _Sheet(pinned=kept.pinned)
    for row in kept.rows:
        _row(sheet, row)
    for sentence in (cite(kept.shown), *references(kept.shown)):
        _sentence(sheet, sentence)
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


def _row(sheet: _Sheet, row: MethodRow) -> None:
    sheet.parts.append(_words(row.title, EDGE, sheet.y + 18, ' font-weight="bold"'))
    sheet.y += LINE
    for segment, pieces in enumerate(_paragraphs(row.view)):
        rightwards = direction(row.view.texts[segment]) == "ltr"
        for line in lines(pieces):
            sheet.parts += _line(row.view, line, sheet, rightwards)
            sheet.y += LINE + (VALUE if any(piece.value for piece in line) else 0)
    _scale(sheet, row.view)


def _paragraphs(view: TokenMap) -> list[list[Piece]]:
    """For each text its units and what stands between them; a special token stands where it was read."""
    found: list[list[Piece]] = [[] for _ in view.texts]
    reached, current = [0] * len(view.texts), 0
    for position, unit in enumerate(view.units):
        if unit.special:
            found[current] += [Piece(" "), Piece(_clean(unit.text), position), Piece(" ")]
            continue
        current = unit.segment
        gap = between(view.texts[current], reached[current], unit)
        found[current] += _between(gap)
        found[current].append(Piece(_clean(unit.text), position, _value(view, position)))
        reached[current] = reached[current] + len(gap) if unit.blank else max(reached[current], unit.end)
    for segment, text in enumerate(view.texts):
        rest = text[reached[segment] :]
        found[segment] += [Piece(" … cut off")] if view.truncated and rest.strip() else _between(rest)
    return found


def _value(view: TokenMap, position: int) -> str:
    shown = view.look.values and not view.marks
    return brief(view.units[position].score, view.largest, view.signed) if shown else ""


def _between(text: str) -> Iterator[Piece]:
    for number, part in enumerate(text.replace("\r\n", "\n").split("\n")):
        if number:
            yield Piece("\n")
        if part:
            yield Piece(_clean(part))


def _clean(text: str) -> str:
    """White space as spaces; what XML may not hold as a replacement mark."""
    spaced = "".join(" " if c.isspace() else c for c in text)
    return "".join("\ufffd" if _forbidden(c) else c for c in spaced)


def _forbidden(character: str) -> bool:
    code = ord(character)
    return code < 0x20 or 0x7F <= code < 0xA0 or 0xD800 <= code <= 0xDFFF or code & 0xFFFE == 0xFFFE


def _line(view: TokenMap, line: Sequence[Piece], sheet: _Sheet, rightwards: bool) -> Iterator[str]:
    x = EDGE if rightwards else WIDTH - EDGE
    for piece in in_sight(line, rightwards):
        width = piece.cells * CELL
        x -= 0 if rightwards else width
        if piece.text.strip() or piece.position is not None:
            yield _chip(view, piece, x, sheet.y, piece.position in sheet.pinned)
        x += width if rightwards else 0


def in_sight(line: Sequence[Piece], rightwards: bool) -> list[Piece]:
    """The pieces as met along the line: runs that are read the other way are turned around, as UAX 9 does."""
    ways = _ways(line, rightwards)
    found: list[Piece] = []
    for way, run in groupby(zip(ways, line, strict=True), key=lambda pair: pair[0]):
        pieces = [piece for _, piece in run]
        found += pieces if way == rightwards else pieces[::-1]
    return found


def _ways(line: Sequence[Piece], rightwards: bool) -> list[bool]:
    """Whether each piece is read rightwards. One without letters goes with its neighbours if they agree."""
    own = [_way(piece.text, rightwards) for piece in line]
    before, after = list(_last_known(own, rightwards)), list(_last_known(own[::-1], rightwards))[::-1]
    return [
        one if one is not None else left if left == right else rightwards
        for one, left, right in zip(own, before, after, strict=True)
    ]


def _way(text: str, rightwards: bool) -> bool | None:
    for character in text:
        kind = unicodedata.bidirectional(character)
        # Digits run rightwards inside a leftward line; elsewhere they stand where their neighbours put them.
        if kind in ("L", "R", "AL") or (kind == "EN" and not rightwards):
            return kind in ("L", "EN")
    return None


def _last_known(ways: Sequence[bool | None], start: bool) -> Iterator[bool]:
    last = start
    for way in ways:
        last = last if way is None else way
        yield last


def _chip(view: TokenMap, piece: Piece, x: float, y: float, pinned: bool) -> str:
    width, own = piece.cells * CELL, cells(piece.text) * CELL
    length = f' textLength="{own:g}" lengthAdjust="spacingAndGlyphs"' if own else ""
    if piece.position is None:
        return _words(piece.text, x, y + 18, length)
    unit, said = view.units[piece.position], escape(tip(view, piece.position))
    name, fill = _background(view, piece.position)
    top, height = (y + LINE - 6, 3) if view.look.style == "underline" and not unit.special else (y + 2, LINE - 5)
    ring = f' stroke="{PALETTES["light"].text}" stroke-width="2"' if pinned else ""
    box = f'<rect class="{name}" x="{x:g}" y="{top:g}" width="{width:g}" height="{height:g}" fill="{fill}"{ring}/>'
    text = _words(piece.text, x + (width - own) / 2, y + 18, length, "muted" if unit.special or unit.blank else "text")
    value = _words(piece.value, x + width / 2, y + LINE + 7, _TINY, "muted") if piece.value else ""
    return f"<g><title>{said}</title>{box}{text}{value}</g>"


def _background(view: TokenMap, position: int) -> tuple[str, str]:
    unit, light = view.units[position], PALETTES["light"]
    step = step_of(unit.score, view.scale, view.look.gamma)
    if unit.special:
        return "special", light.special
    if not step:
        return "ground", light.ground
    side: Side = "amount" if not view.signed else "for" if unit.score > 0 else "against"
    return f"{side}-{step}", colour("light", side, step)


def _scale(sheet: _Sheet, view: TokenMap) -> None:
    """The scale in colours and words, as under the map on the page."""
    x, y = EDGE, sheet.y + 8
    if view.largest:
        kind = "signed" if view.signed else "amount"
        sheet.parts.append(f'<rect x="{x:g}" y="{y:g}" width="{BAR:g}" height="10" fill="url(#{kind})"/>')
        x += BAR + 12
    sheet.parts.append(_words(_legend(view), x, y + 10, _SMALLER, "muted"))
    sheet.y += 1.6 * LINE


def _legend(view: TokenMap) -> str:
    """The words under the map on the page, without their markup."""
    return unescape(_TAG.sub("", legend_html(view))).strip()


def _sentence(sheet: _Sheet, sentence: str) -> None:
    pieces = [Piece(_clean(part)) for word in sentence.split() for part in (word, " ")]
    for line in lines(pieces, int(CELLS / SMALL)):
        told = "".join(piece.text for piece in line).strip()
        sheet.parts.append(_words(told, EDGE, sheet.y + 14, _SMALLER, "muted"))
        sheet.y += LINE * SMALL


def _words(text: str, x: float, y: float, more: str = "", ink: str = "text") -> str:
    fill = getattr(PALETTES["light"], ink)
    place = f'class="{ink}" x="{x:g}" y="{y:g}" fill="{fill}" xml:space="preserve"'
    return f"<text {place}{more}>{escape(_clean(text))}</text>"


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
