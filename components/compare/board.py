"""The maps of a text side by side: a table with a row a part and a column a map, or each map as the text itself.

A cell has its value in words as well as in colour: `data-v` is the score in full, `data-r` its rank.
"""

from __future__ import annotations

from collections.abc import Iterator
from html import escape

import numpy as np

from components.compare.compared import Column, Compared, answer_of
from components.compare.digits import Digits, digits_of
from components.numbers import MINUS, count, hundredths, percent, plain
from components.widgets.token_map import TokenMap, token_map_html
from components.widgets.token_map.html import class_of, direction, facts_of, tone
from engine.comparison.agreeing import top_of
from engine.comparison.parts import Part
from engine.word_units import Unit

LABEL = "Maps side by side, a row for each part of the text"
UP, DOWN, SAME = "↑", "↓", "="
ABSENT = "–"
TINY = 0.005
"""A share of the largest score under which a part is all but white."""
LONGEST = 60
"""Characters of a reason that stand in a head; the rest of it opens."""


def board_html(compared: Compared) -> str:
    """The table, or the texts, with a head for each column. Everything that is not ours is escaped."""
    if compared.look.layout == "text":
        return f'<div class="xg"><div class="xg-texts">{"".join(_texts(compared))}</div>{foot_html(compared)}</div>'
    heads = "".join(f"<th scope=col{class_of(_pinned(compared, c))}>{head_html(compared, c)}</th>"
                    for c in compared.columns)  # fmt: skip
    return (
        f'<div class="xg"><div class="xg-beside-box" tabindex="0" role="region" aria-label="{LABEL}">'
        f'<table class="xg-beside-maps"><thead><tr><th scope=col>{_corner(compared)}</th>{heads}</tr></thead>'
        f"<tbody>{''.join(_rows(compared))}</tbody></table></div>{foot_html(compared)}</div>"
    )


def head_html(compared: Compared, column: Column) -> str:
    """What stands above a map: its name and model, what that predicts, its agreement with the reference, its scale."""
    lines = [
        f'<p class="xg-title"><b class="xg-letter">{column.letter}</b> {escape(column.title)}</p>',
        small(column.model),
    ]
    if column.made is None:
        return "".join([*lines, _why(column)])
    prediction = column.made.prediction
    lines.append(f'<p class="xg-small"><bdi class="xg-answer">{escape(answer_of(prediction))}</bdi></p>')
    if not prediction.regression:
        lines.append(f'<p class="xg-small">explains <bdi>{escape(column.target)}</bdi></p>')
    return "".join([*lines, *_against(compared, column), legend_html(compared, column), *_notes(compared, column)])


def legend_html(compared: Compared, column: Column) -> str:
    """The scale in colours and numbers, or that there is nothing to colour."""
    view = view_of(compared, column)
    if compared.relative and compared.reference is column:
        return ""
    if not np.isfinite(compared.scores(column)).any():
        return small("no order to compare: all scores are equal")
    if view.largest == 0:
        return small("no part moved" if compared.relative else "all scores are zero")
    kind = "signed" if view.signed else "amount"
    share = " of all" if compared.look.scale == "common" and not compared.relative else ""
    digits = _digits(compared, column, view)
    high = digits.end(view.scale)
    ends = f"{MINUS if view.signed else ''}{high if view.signed else '0'} to {high}{digits.power}{share}"
    return f'<p class="xg-small"><i class="xg-scale xg-{kind}"></i><span>{ends}</span></p>'


def foot_html(compared: Compared) -> str:
    """Below the maps: what the colours say, and which maps have an order mostly of scores that nobody sees."""
    said = [] if compared.sheet is None else [_colours(compared), *_tiny(compared)]
    return f'<div class="xg-foot">{"".join(map(small, said))}</div>' if said else ""


def small(said: str) -> str:
    """A line of a head or foot."""
    return f'<p class="xg-small">{escape(said)}</p>'


def view_of(compared: Compared, column: Column) -> TokenMap:
    """The column's map of the parts that it has."""
    example = compared.state.input
    texts = tuple(text for text in example.as_plain().values() if text is not None) if example else ()
    scores = compared.scores(column)
    units = tuple(
        Unit(part.text, part.start, part.end, part.segment, False, float(score), (place,), part.blank)
        for place, (part, score) in enumerate(zip(_parts(compared), scores, strict=True))
        if np.isfinite(score)
    )
    cut = 0 if column.made is None else column.made.truncated
    sign = column.signed or compared.relative
    return TokenMap(units, texts, sign, column.target, cut, look=compared.map_look, end=compared.end)


def move_words(moved: int | float) -> str:
    """↑3: three ranks higher than in the reference."""
    return SAME if moved == 0 else f"{UP if moved > 0 else DOWN}{abs(moved):.0f}"


def _parts(compared: Compared) -> tuple[Part, ...]:
    return () if compared.sheet is None else compared.sheet.parts


def _read(compared: Compared) -> int:
    """How many parts are no white space."""
    return 0 if compared.sheet is None else len(compared.sheet.parts) - compared.sheet.blanks


def _corner(compared: Compared) -> str:
    parts = _read(compared)
    return f'<span class="xg-small">{count(parts, compared.unit)}</span>' if parts else ""


def _pinned(compared: Compared, column: Column) -> str:
    return "xg-reference" if compared.reference is column else ""


def _against(compared: Compared, column: Column) -> Iterator[str]:
    """Both measures, whatever the matrix shows."""
    reference = compared.reference
    if reference is None:
        return
    if reference is column:
        yield '<p class="xg-small"><b>reference</b></p>'
        return
    rho, shared = (compared.with_reference(column, measure) for measure in ("spearman", "top_k"))
    if rho is None or shared is None or compared.sheet is None:
        yield small(f"no order to compare with {reference.letter}")
        return
    rows = compared.sheet.scores[[row for row in (column.row, reference.row) if row is not None]]
    top = top_of(int(np.isfinite(rows).all(axis=0).sum()), compared.how)
    yield small(
        f"with {reference.letter}: ρ {hundredths(rho, sign=True)}, {plain(round(shared * top, 1))} of the top {top}"
    )
    if (elsewhere := compared.elsewhere(column)) is not None:
        yield small(f"{percent(elsewhere)} lies elsewhere than in {reference.letter}")


def _notes(compared: Compared, column: Column) -> Iterator[str]:
    parts = _read(compared)
    if compared.sheet is not None and column.row is not None and (unread := compared.sheet.unread(column.row)):
        yield small(f"does not read {unread:,} of {count(parts, compared.unit)}")


def _why(column: Column) -> str:
    """Why there is no map: its first sentence, the whole of a long one behind a click."""
    kind = " xg-error" if column.failed else ""
    first, _, rest = column.said.partition(". ")
    if len(first) > LONGEST:
        first, rest = f"{first[: LONGEST - 1]}…", column.said
    if not rest:
        return f'<p class="xg-small xg-why{kind}">{escape(column.said)}</p>'
    return f'<details class="xg-small xg-why{kind}"><summary>{escape(first)}</summary>{escape(rest)}</details>'


def _colours(compared: Compared) -> str:
    if compared.relative and compared.reference is not None:
        there = compared.reference.letter
        more, less = ("stands higher", "lower") if compared.moving else ("has a larger share of the map", "a smaller")
        return f"Blue: the {compared.unit} {more} than in {there}; orange: {less}."
    signs = {column.signed for column in compared.there}
    said = {
        True: "Blue speaks for the explained class, orange against it.",
        False: "Teal says how much, without for or against.",
    }
    return " ".join(words for sign, words in said.items() if sign in signs)


def _tiny(compared: Compared) -> Iterator[str]:
    """Ranks take no notice of how small a score is."""
    letters = [column.letter for column in compared.there if _mostly_tiny(compared, column)]
    if letters:
        named, share = ", ".join(letters), f"{100 * TINY:g}\u00a0%"
        yield f"{named}: most scores are under {share} of the map's largest. Their order counts all the same."


def _mostly_tiny(compared: Compared, column: Column) -> bool:
    if compared.sheet is None or column.row is None:
        return False
    sizes = np.abs(compared.sheet.scores[column.row])
    return int(((sizes > 0) & (sizes < TINY * np.nanmax(sizes, initial=0))).sum()) > len(sizes) / 2


def _digits(compared: Compared, column: Column, view: TokenMap) -> Digits:
    share = compared.differing or (compared.look.scale == "common" and not compared.moving)
    return digits_of(compared.scores(column), view.scale, view.signed, share)


def _rows(compared: Compared) -> Iterator[str]:
    views = {column.letter: _Cells(compared, column) for column in compared.there}
    example = compared.state.input
    pair = example is not None and len([t for t in example.as_plain().values() if t is not None]) > 1
    before = None
    for place, part in enumerate(_parts(compared)):
        if pair and part.segment != before:
            before = part.segment
            title = "Second text" if part.segment else "First text"
            yield f'<tr class="xg-part"><th scope=rowgroup>{title}</th><td colspan={len(compared.columns)}></td></tr>'
        way = direction(part.text)
        cells = "".join(
            views[column.letter].cell(place) if column.letter in views else "<td></td>" for column in compared.columns
        )
        yield f"<tr><th scope=row><bdi dir={way}>{escape(part.text)}</bdi></th>{cells}</tr>"


class _Cells:
    """The cells of one column, by the place of their part."""

    def __init__(self, compared: Compared, column: Column) -> None:
        self._moving, self._relative = compared.moving, compared.relative
        self._still = compared.relative and compared.reference is column
        self._view = view_of(compared, column)
        self._places = {unit.tokens[0]: position for position, unit in enumerate(self._view.units)}
        self._digits = _digits(compared, column, self._view)

    def cell(self, place: int) -> str:
        """The value on its colour; a dash where there is none."""
        if place not in self._places:
            return f"<td>{ABSENT}</td>"
        position = self._places[place]
        score = self._view.units[position].score
        if self._still:
            return "<td></td>"
        facts = "" if self._relative else _facts(self._view, position)
        return f"<td{class_of(tone(self._view, position))}{facts}>{escape(self._value(score))}</td>"

    def _value(self, score: float) -> str:
        return move_words(score) if self._moving else self._digits.cell(score)


def _facts(view: TokenMap, position: int) -> str:
    return facts_of(view, position).partition(" data-x")[0]


def _texts(compared: Compared) -> Iterator[str]:
    """Each map as the text itself, with its head above."""
    for column in compared.columns:
        drawn = "" if column.made is None else token_map_html(view_of(compared, column))
        pinned = class_of("xg-text-card", _pinned(compared, column))
        yield f"<section{pinned}>{head_html(compared, column)}{drawn}</section>"
