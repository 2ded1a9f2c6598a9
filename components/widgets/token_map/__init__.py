"""Maps of texts: the text itself, each unit on the color of its score, with a scale and with pins that clicks set.

A page has thousands of units, so their markup is short, and the style sheet (assets/maps.css) composes their tooltips:

    <span class=xi1> ... <b class="f12 jv" data-v="word: +0.1" data-r=7>word</b> <bdi class="xg-special j6">[SEP]</bdi>

`f12` is the color: its side (`TONES`) and step. `data-v` is the unit with its score, `data-r` its rank. `data-x` is the
index if it differs from the unit's position. `data-b` is the value that is printed on demand. A unit of white space is
an empty `b` before the white space, and its `data-m` is the mark that is drawn, so that the text stays unchanged. The
position is DIGITS * xi + j: `xi` is on the unit or on the element around it, `j` on the unit, as one character
(`components.styles.place_classes`).

Pins are set by a strip above the maps, which receives clicks on any map and keys. Python owns them and stores them as
positions of tokens, so that they survive a change of unit.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache, cached_property, partial
from html import escape
from itertools import groupby
from pathlib import Path

from components.numbers import brief, count, plain, signed
from components.palette import Side, gamma_note, sharing_note, step_of
from components.styles import DIGITS, STACK, TONES, place_classes
from components.widgets import base
from components.widgets.base import Component, PinEvent, Pins
from components.widgets.view_options import DEFAULT_VIEW, ViewOptions
from engine.word_units import Unit

HANGING = 7
"""A final special token of at most this many characters hangs into the margin and never takes a line of its own."""


PICKER = "exegesis_token_pick"


@dataclass(frozen=True)
class TokenMap:
    """The content of a map. `texts`: the first text and, for a pair, the second. `target`: the explained class.

    `end`: end of a scale shared with the maps that `sharing` names; None for the map's own scale. `marks`: whether the
    scores are annotations, 1 where a person marked the text and 0 elsewhere. `bare`: colors only, without numbers and
    tooltips. `remarks`: the tooltip of each unit that is gray because it has no score, else an empty string; empty if
    every unit has a score.
    """

    units: tuple[Unit, ...]
    texts: tuple[str, ...]
    signed: bool
    target: str
    truncated: int = 0
    marks: bool = False
    bare: bool = False
    look: ViewOptions = DEFAULT_VIEW
    end: float | None = None
    sharing: str = ""
    remarks: tuple[str, ...] = ()

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
        """Ranks by absolute score, 1 for the largest; equal scores share the better rank; 0 for special tokens."""
        ordered = sorted((abs(u.score) for u in self.units if not u.special), reverse=True)
        first = {size: rank for rank, size in reversed(list(enumerate(ordered, start=1)))}
        return tuple(0 if u.special else first[abs(u.score)] for u in self.units)

    def remark(self, position: int) -> str:
        """Return why the unit has no score; empty if it has one."""
        return self.remarks[position] if self.remarks else ""

    @property
    def ranked(self) -> int:
        return sum(not u.special for u in self.units)


def token_map_html(view: TokenMap) -> str:
    """HTML of the text with its scores as colors, one paragraph for each text of a pair. Every token is escaped."""
    paragraphs = "".join(
        _paragraph(view, segment, positions) for segment, positions in enumerate(_lines(view)) if positions
    )
    count_of = "" if view.bare else f" style=\"--n:'{view.ranked}'\""
    return f'<div class="xg-map{modes(view)}"{count_of}>{paragraphs}</div>'


def legend_html(view: TokenMap) -> str:
    """HTML of the scale in words and colors, or a note that there is nothing to color."""
    if view.marks:
        return '<span class="xg-legend"><i class="xg-scale xg-mark"></i> marked in the data set</span>'
    if view.largest == 0:
        return '<span class="xg-legend">All scores are zero: nothing to color.</span>'
    return f'<span class="xg-legend">{_scale(view)}{gamma_note(view)}{sharing_note(view)}</span>'


def tip(view: TokenMap, position: int) -> str:
    """Return the tooltip of a unit: its text, value, rank and place."""
    unit = view.units[position]
    if remark := view.remark(position):
        return remark
    if view.marks:
        mark = "special token" if unit.special else "marked" if unit.score else "not marked"
        return f"{unit.text}: {mark} · index {_place(unit)}"
    rank = "special token, not ranked" if unit.special else f"rank {view.ranks[position]} of {view.ranked}"
    return f"{unit.text}: {_score(view, unit)} · {rank} · index {_place(unit)}"


def modes(view: TokenMap) -> str:
    """Return the CSS classes of a map that determine how its units are drawn."""
    names = {
        "xg-under": view.look.style == "underline",
        "xg-values": view.look.values,
        "xg-marks": view.marks,
        "xg-bare": view.bare,
    }
    return "".join(f" {name}" for name, on in names.items() if on)


def tone(view: TokenMap, position: int) -> str:
    """Return the CSS class of a unit's color; empty for the background color."""
    unit = view.units[position]
    step = 0 if unit.special else step_of(unit.score, view.scale, view.look.gamma)
    side: Side = "amount" if not view.signed else "for" if unit.score > 0 else "against"
    return f"{TONES[side]}{step}" if step else ""


def facts_of(view: TokenMap, position: int) -> str:
    """Return the attributes of a unit from which its tooltip and its printed value are composed."""
    if view.bare:
        return ""
    if remark := view.remark(position):
        return f' data-s="{escape(remark)}"'
    unit = view.units[position]
    place = ""
    if unit.tokens != (position,):
        index = _place(unit)
        place = f" data-x={index}" if index.isdigit() else f' data-x="{index}"'
    if view.marks:
        return f' data-v="{escape(unit.text)}"{place}'
    rank = "" if unit.special else f" data-r={view.ranks[position]}"
    has_value = view.look.values and not unit.special
    value = f" data-b={brief(unit.score, view.largest, view.signed)}" if has_value else ""
    return f' data-v="{escape(unit.text)}: {_score(view, unit)}"{rank}{value}{place}'


def class_of(*names: str) -> str:
    """Return a class attribute, without quotes if possible, or an empty string without names."""
    joined = " ".join(filter(None, names))
    return f' class="{joined}"' if " " in joined else f" class={joined}" if joined else ""


def between(text: str, at: int, unit: Unit) -> str:
    """Return the text between `at` and a unit. The mark of white space comes before all of it, not on the next line."""
    gap = text[at : unit.start]
    return gap.rstrip() if unit.blank else gap


def direction(text: str, without: str = "ltr") -> str:
    """Return rtl or ltr, by the first character that has a direction, or `without` if none has."""
    for character in text:
        kind = unicodedata.bidirectional(character)
        if kind in ("L", "R", "AL"):
            return "ltr" if kind == "L" else "rtl"
    return without


def unit_direction(view: TokenMap, position: int) -> str:
    """Return the direction of an isolated unit: that of its text for signs; never mirrored for special tokens."""
    unit = view.units[position]
    return "ltr" if unit.special else direction(unit.text, direction(view.texts[unit.segment]))


def _scale(view: TokenMap) -> str:
    if not view.signed:
        return f'<i class="xg-scale xg-amount"></i> 0 to {plain(view.scale)}, without sign'
    low, high, target = signed(-view.scale), signed(view.scale), escape(view.target)
    return f'<i class="xg-scale xg-signed"></i> {low} against, {high} for <bdi>{target}</bdi>'


def _place(unit: Unit) -> str:
    first, last = unit.tokens[0], unit.tokens[-1]
    return f"{first}" if first == last else f"{first} to {last}, {count(len(unit.tokens), 'token')}"


def _score(view: TokenMap, unit: Unit) -> str:
    return signed(unit.score) if view.signed else plain(unit.score)


def _lines(view: TokenMap) -> list[list[int]]:
    """Return positions by text. A special token belongs to the text before it, the first one to the first text."""
    lines: list[list[int]] = [[] for _ in view.texts]
    current = 0
    for position, unit in enumerate(view.units):
        current = current if unit.special else unit.segment
        lines[current].append(position)
    return lines


def _paragraph(view: TokenMap, segment: int, positions: Sequence[int]) -> str:
    groups = groupby(_text_pieces(view, segment, positions), key=lambda pair: pair[0])
    spans = "".join(f"<span{class_of(high)}>{''.join(html for _, html in group)}</span>" for high, group in groups)
    return f'<p class="xg-text" dir="{direction(view.texts[segment])}">{spans}</p>'


def _text_pieces(view: TokenMap, segment: int, positions: Sequence[int]) -> list[tuple[str, str]]:
    """Return the text in pieces, each with the high digit of its position."""
    # Only special tokens are isolated from their neighbors: isolation would reorder a right-to-left phrase
    # inside a left-to-right sentence. For the same reason the direction is set here and not by dir=auto.
    text, at, parts, high = view.texts[segment], 0, [], ""
    rest = text[max((view.units[position].end for position in positions), default=0) :].strip()
    for position in positions:
        unit, high = view.units[position], place_classes(position)[0]
        if unit.special:
            ends = position == positions[0], position == positions[-1] and not rest
            parts.append((high, _special(view, position, *ends)))
            continue
        gap = between(text, at, unit)
        parts.append((high, _between(view, gap, start=at == 0) + _chip(view, position)))
        at = at + len(gap) if unit.blank else max(at, unit.end)
    cut = rest and view.truncated
    parts.append((high, ' <bdi class="xg-cut">… the rest was cut off</bdi>' if cut else escape(text[at:])))
    return parts


def _between(view: TokenMap, gap: str, start: bool) -> str:
    """HTML of the text before a unit. The `start` of a long prompt was truncated and is replaced by a note."""
    if start and view.truncated and gap.strip():
        return f'<bdi class="xg-cut">{count(view.truncated, "token")} not read …</bdi> '
    return escape(gap)


def _chip(view: TokenMap, position: int) -> str:
    gray = "xg-quiet" if view.remark(position) else ""
    unit, names = view.units[position], class_of(gray, tone(view, position), place_classes(position)[1])
    mark, own = (f" data-m={unit.text}", "") if unit.blank else ("", escape(unit.text))
    return f"<b{names}{facts_of(view, position)}{mark}>{own}</b>"


def _special(view: TokenMap, position: int, first: bool, last: bool) -> str:
    # The space is inside the hanging element; before it, it would have to fit into the line.
    text = view.units[position].text
    hangs = last and len(text) <= HANGING
    inside, before, after = " " * hangs, " " * (not first and not hangs), " " * (not last)
    names = class_of("xg-special", "xg-hang" if hangs else "", place_classes(position)[1])
    return f"{before}<bdi{names}{facts_of(view, position)}>{inside}{escape(text)}</bdi>{after}"


def draw_token_picker(units: Sequence[Unit], pins: Pins, key: str, on_pick: Callable[[Pins], None]) -> None:
    """Draw the strip of pins, which people can change. `pins`: positions of tokens; any of a unit's tokens pins it.

    `on_pick` receives new pins before the script runs again, like a widget's callback.
    """
    drawn = tuple(units)
    read, take = partial(read_pins, units=drawn), partial(hand_over, drawn, on_pick)
    base.draw_strip(_picker(), key, picker_data(drawn, pins), read, take)


def to_tokens(units: Sequence[Unit], positions: Iterable[int]) -> Pins:
    """Return the tokens of the units at these positions, in ascending order."""
    return tuple(sorted({token for position in positions for token in units[position].tokens}))


def to_units(units: Sequence[Unit], tokens: Iterable[int]) -> Pins:
    """Return the positions of the units with any of these tokens, ascending. Special units are left out."""
    wanted = set(tokens)
    return tuple(at for at, unit in enumerate(units) if not unit.special and wanted.intersection(unit.tokens))


def picker_data(units: Sequence[Unit], pins: Pins) -> dict[str, object]:
    """Return the component's data: plain lists by position of the unit.

    `places`: the indices that maps show; empty if each is the unit's position.
    """
    texts, places = [unit.text for unit in units], [unit.tokens[0] for unit in units]
    return {
        "texts": texts,
        "places": [] if places == list(range(len(places))) else places,
        "special": [at for at, unit in enumerate(units) if unit.special],
        "pinned": list(to_units(units, pins)),
        "direction": direction("".join(unit.text for unit in units if not unit.special)),
        "scope": STACK,
        "digits": DIGITS,
    }


def read_pins(sent: object, units: Sequence[Unit]) -> PinEvent:
    """Parse and check the pins that the browser sent: they must fit these units."""
    allowed = f"positions from 0 to {len(units) - 1} that are not special tokens"
    return base.parse_pins(sent, lambda at: 0 <= at < len(units) and not units[at].special, allowed)


def hand_over(units: Sequence[Unit], on_pick: Callable[[Pins], None], positions: Pins) -> None:
    """Pass the tokens of the units at these positions to `on_pick`."""
    on_pick(to_tokens(units, positions))


@cache
def _picker() -> Component:
    return base.build_component(PICKER, "picker", folder=Path(__file__).parent)
