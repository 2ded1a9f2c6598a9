"""Maps as SVG: text on the equal cells of a sheet.

Each token is drawn separately, so that tokens of one Arabic word do not join. A line of a right-to-left text starts at
the right edge; phrases of the other direction are placed inside it.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from html import escape, unescape
from itertools import groupby

from components.numbers import brief
from components.palette import PALETTES, Side, color, step_of
from components.svg import (
    CELL,
    EDGE,
    LINE,
    TINY,
    WIDTH,
    SvgSheet,
    TextPiece,
    add_scale_bar,
    add_sentence,
    clean_xml,
    count_cells,
    svg_document,
    text_element,
    wrap_lines,
)
from components.widgets.token_map import TokenMap, between, direction, legend_html, tip

VALUE = 13.0
"""Height of a printed value."""
_TAG = re.compile(r"<[^>]*>")
_TINY = f' font-size="{15 * TINY:g}" text-anchor="middle"'


def maps_svg(
    rows: Iterable[tuple[str, TokenMap]], sentences: Iterable[str], dark: bool, pinned: frozenset[int] = frozenset()
) -> str:
    """Return maps with their titles, and sentences below them, as SVG. `pinned`: positions of units with a ring."""
    sheet = SvgSheet(pinned=pinned)
    for title, view in rows:
        _row(sheet, title, view)
    for line in sentences:
        add_sentence(sheet, line)
    return svg_document(sheet, dark)


def _row(sheet: SvgSheet, title: str, view: TokenMap) -> None:
    sheet.parts.append(text_element(title, EDGE, sheet.y + 18, ' font-weight="bold"'))
    sheet.y += LINE
    for segment, pieces in enumerate(_paragraphs(view)):
        rightwards = direction(view.texts[segment]) == "ltr"
        for line in wrap_lines(pieces):
            sheet.parts += _line(view, line, sheet, rightwards)
            sheet.y += LINE + (VALUE if any(piece.value for piece in line) else 0)
    _scale(sheet, view)


def _paragraphs(view: TokenMap) -> list[list[TextPiece]]:
    """Return for each text its units and the text between them; a special token is placed where it was read."""
    paragraphs: list[list[TextPiece]] = [[] for _ in view.texts]
    reached, current = [0] * len(view.texts), 0
    for position, unit in enumerate(view.units):
        if unit.special:
            paragraphs[current] += [TextPiece(" "), TextPiece(clean_xml(unit.text), position), TextPiece(" ")]
            continue
        current = unit.segment
        gap = between(view.texts[current], reached[current], unit)
        cut = view.truncated and not reached[current] and gap.strip()
        paragraphs[current] += [TextPiece("cut off … ")] if cut else _between(gap)
        paragraphs[current].append(TextPiece(clean_xml(unit.text), position, _value(view, position)))
        reached[current] = reached[current] + len(gap) if unit.blank else max(reached[current], unit.end)
    for segment, text in enumerate(view.texts):
        rest = text[reached[segment] :]
        paragraphs[segment] += [TextPiece(" … cut off")] if view.truncated and rest.strip() else _between(rest)
    return paragraphs


def _value(view: TokenMap, position: int) -> str:
    has_value = view.look.values and not view.marks
    return brief(view.units[position].score, view.largest, view.signed) if has_value else ""


def _between(text: str) -> Iterator[TextPiece]:
    for number, part in enumerate(text.replace("\r\n", "\n").split("\n")):
        if number:
            yield TextPiece("\n")
        if part:
            yield TextPiece(clean_xml(part))


def _line(view: TokenMap, line: Sequence[TextPiece], sheet: SvgSheet, rightwards: bool) -> Iterator[str]:
    x = EDGE if rightwards else WIDTH - EDGE
    for piece in in_sight(line, rightwards):
        width = piece.cells * CELL
        x -= 0 if rightwards else width
        if piece.text.strip() or piece.position is not None:
            yield _chip(view, piece, x, sheet.y, piece.position in sheet.pinned)
        x += width if rightwards else 0


def in_sight(line: Sequence[TextPiece], rightwards: bool) -> list[TextPiece]:
    """Return the pieces in visual order: runs of the other direction are reversed, as in UAX 9."""
    ways = _ways(line, rightwards)
    ordered: list[TextPiece] = []
    for way, run in groupby(zip(ways, line, strict=True), key=lambda pair: pair[0]):
        pieces = [piece for _, piece in run]
        ordered += pieces if way == rightwards else pieces[::-1]
    return ordered


def _ways(line: Sequence[TextPiece], rightwards: bool) -> list[bool]:
    """Whether each piece is read rightwards. One without letters follows its neighbors if they agree."""
    own = [_way(piece.text, rightwards) for piece in line]
    before, after = list(_last_way(own, rightwards)), list(_last_way(own[::-1], rightwards))[::-1]
    return [
        one if one is not None else left if left == right else rightwards
        for one, left, right in zip(own, before, after, strict=True)
    ]


def _way(text: str, rightwards: bool) -> bool | None:
    for character in text:
        kind = unicodedata.bidirectional(character)
        # Digits run rightwards inside a leftward line; elsewhere they follow their neighbors.
        if kind in ("L", "R", "AL") or (kind == "EN" and not rightwards):
            return kind in ("L", "EN")
    return None


def _last_way(ways: Sequence[bool | None], start: bool) -> Iterator[bool]:
    last = start
    for way in ways:
        last = last if way is None else way
        yield last


def _chip(view: TokenMap, piece: TextPiece, x: float, y: float, pinned: bool) -> str:
    width, own = piece.cells * CELL, count_cells(piece.text) * CELL
    length = f' textLength="{own:g}" lengthAdjust="spacingAndGlyphs"' if own else ""
    if piece.position is None:
        return text_element(piece.text, x, y + 18, length)
    unit, hover = view.units[piece.position], escape(clean_xml(tip(view, piece.position)))
    name, fill = _background(view, piece.position)
    top, height = (y + LINE - 6, 3) if view.look.style == "underline" and not unit.special else (y + 2, LINE - 5)
    ring = f' stroke="{PALETTES["light"].text}" stroke-width="2"' if pinned else ""
    box = f'<rect class="{name}" x="{x:g}" y="{top:g}" width="{width:g}" height="{height:g}" fill="{fill}"{ring}/>'
    text = text_element(
        piece.text, x + (width - own) / 2, y + 18, length, "muted" if unit.special or unit.blank else "text"
    )
    value = text_element(piece.value, x + width / 2, y + LINE + 7, _TINY, "muted") if piece.value else ""
    return f"<g><title>{hover}</title>{box}{text}{value}</g>"


def _background(view: TokenMap, position: int) -> tuple[str, str]:
    unit, light = view.units[position], PALETTES["light"]
    step = step_of(unit.score, view.scale, view.look.gamma)
    if unit.special:
        return "special", light.special
    if not step:
        return "ground", light.ground
    side: Side = "amount" if not view.signed else "for" if unit.score > 0 else "against"
    return f"{side}-{step}", color("light", side, step)


def _scale(sheet: SvgSheet, view: TokenMap) -> None:
    """Add the scale in colors and words, as below the map on the page."""
    legend, kind = unescape(_TAG.sub("", legend_html(view))).strip(), "signed" if view.signed else "amount"
    add_scale_bar(sheet, legend, kind if view.largest else None)
