"""One method's map: the text itself, each unit on the colour of its score, with the scale that it is read by."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from html import escape

from components.look import PLAIN, Look
from components.numbers import brief, count, plain, signed
from components.palette import Side, step_of
from engine.words import Unit

DIGITS = 32
"""Positions up to DIGITS x DIGITS have a class for each digit, by which hovering finds the same unit in every map."""


@dataclass(frozen=True)
class TokenMap:
    """What a map shows. `texts` are the first text and, for a pair, the second; `target` is the explained class.

    `end`: where a scale shared with other maps ends, and `sharing` names those maps; None for the map's own scale.
    `marks`: the scores are not a method's, they are 1 where a person marked the text and 0 elsewhere.
    """

    units: tuple[Unit, ...]
    texts: tuple[str, ...]
    signed: bool
    target: str
    truncated: int = 0
    marks: bool = False
    look: Look = PLAIN
    end: float | None = None
    sharing: str = ""

    @cached_property
    def largest(self) -> float:
        """The largest absolute score of a unit that is not special."""
        return max((abs(u.score) for u in self.units if not u.special), default=0.0)

    @property
    def scale(self) -> float:
        """The end of the scale."""
        return self.largest if self.end is None else self.end

    @cached_property
    def ranks(self) -> tuple[int, ...]:
        """1 for the largest absolute score; equal scores share the better rank; 0 for special tokens."""
        ordered = sorted((abs(u.score) for u in self.units if not u.special), reverse=True)
        first = {size: rank for rank, size in reversed(list(enumerate(ordered, start=1)))}
        return tuple(0 if u.special else first[abs(u.score)] for u in self.units)

    @property
    def ranked(self) -> int:
        return sum(not u.special for u in self.units)


def token_map_html(view: TokenMap) -> str:
    """The text with its scores as colours; one paragraph for each text of a pair. Every token is escaped."""
    paragraphs = "".join(
        _paragraph(view, segment, positions) for segment, positions in enumerate(_lines(view)) if positions
    )
    mode = " xg-under" if view.look.style == "underline" else ""
    numbered = " xg-values" if view.look.values else ""
    return f'<div class="xg-map{mode}{numbered}">{paragraphs}</div>'


def legend_html(view: TokenMap) -> str:
    """The scale in words and colours, or that there is nothing to colour."""
    if view.marks:
        return '<span class="xg-legend"><i class="xg-scale xg-mark"></i> marked in the data set</span>'
    if view.largest == 0:
        return '<span class="xg-legend">All scores are zero: nothing to colour.</span>'
    return f'<span class="xg-legend">{_scale(view)}{_bent(view)}{_shared(view)}</span>'


def tip(view: TokenMap, position: int) -> str:
    """What hovering a unit says: its value, its rank, where it stands."""
    unit = view.units[position]
    if view.marks:
        return f"{_marked(unit)} · {_place(unit)}"
    value = signed(unit.score) if view.signed else plain(unit.score)
    rank = "special token, not ranked" if unit.special else f"rank {view.ranks[position]} of {view.ranked}"
    return f"{value} · {rank} · {_place(unit)}"


def place_classes(position: int) -> str:
    """The two digits of a unit's position as classes; nothing beyond DIGITS x DIGITS units."""
    high, low = divmod(position, DIGITS)
    return f" xi{high} xj{low}" if high < DIGITS else ""


def direction(text: str) -> str:
    """rtl or ltr, by the first character that has a direction."""
    for character in text:
        kind = unicodedata.bidirectional(character)
        if kind in ("L", "R", "AL"):
            return "ltr" if kind == "L" else "rtl"
    return "ltr"


def _scale(view: TokenMap) -> str:
    if not view.signed:
        return f'<i class="xg-scale xg-amount"></i> 0 to {plain(view.scale)}, without sign'
    low, high, target = signed(-view.scale), signed(view.scale), escape(view.target)
    return f'<i class="xg-scale xg-signed"></i> {low} against, {high} for <bdi>{target}</bdi>'


def _bent(view: TokenMap) -> str:
    if view.look.gamma == 1:
        return ""
    half = view.scale * 0.5 ** (1 / view.look.gamma)
    return f" · gamma {plain(view.look.gamma)}: half the colour at {plain(half)}"


def _shared(view: TokenMap) -> str:
    if not view.look.shared:
        return ""
    return (
        f" · scale shared by the {escape(view.sharing)}" if view.sharing else " · own scale: no other map has its unit"
    )


def _place(unit: Unit) -> str:
    first, last = unit.tokens[0], unit.tokens[-1]
    return f"index {first}" if first == last else f"index {first} to {last}, {count(len(unit.tokens), 'token')}"


def _marked(unit: Unit) -> str:
    if unit.special:
        return "special token"
    return "marked" if unit.score else "not marked"


def _lines(view: TokenMap) -> list[list[int]]:
    """Positions by text. A special token stands where it was read: after the text before it, the first one before."""
    lines: list[list[int]] = [[] for _ in view.texts]
    current = 0
    for position, unit in enumerate(view.units):
        current = current if unit.special else unit.segment
        lines[current].append(position)
    return lines


def _paragraph(view: TokenMap, segment: int, positions: Sequence[int]) -> str:
    # Tokens are not isolated from each other, special ones are: isolation would reorder a right-to-left phrase
    # inside a left-to-right sentence. For the same reason the direction is found here and not by dir=auto.
    text, at, parts = view.texts[segment], 0, []
    for position in positions:
        unit = view.units[position]
        if unit.special:
            parts.append(f" {_chip(view, position)} ")
            continue
        parts += [escape(text[at : unit.start]), _chip(view, position)]
        at = max(at, unit.end)
    rest = text[at:].strip()
    if rest and view.truncated:
        parts.append(' <bdi class="xg-cut">… the rest was cut off</bdi>')
    elif rest:
        parts.append(escape(text[at:]))
    return f'<p class="xg-text" dir="{direction(text)}">{"".join(parts).strip()}</p>'


def _chip(view: TokenMap, position: int) -> str:
    unit, said, place = view.units[position], escape(tip(view, position)), place_classes(position)
    if unit.special:
        return f'<bdi class="xg-special{place}" data-tip="{said}">{escape(unit.text)}</bdi>'
    step = step_of(unit.score, view.scale, view.look.gamma)
    tone = f" xg-{_side(view, unit)}-{step}" if step else ""
    return f'<span class="xg-t{tone}{place}"{_value(view, unit)} data-tip="{said}">{escape(unit.text)}</span>'


def _value(view: TokenMap, unit: Unit) -> str:
    if view.marks or not view.look.values:
        return ""
    return f' data-value="{brief(unit.score, view.largest, view.signed)}"'


def _side(view: TokenMap, unit: Unit) -> Side:
    if not view.signed:
        return "amount"
    return "for" if unit.score > 0 else "against"
