"""Before and after side by side: prediction, map on one scale, how the top moved, the numbers.

Everything that is not ours is escaped.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape

import numpy as np
from jaxtyping import UInt8

from components.adversarial.moves import Move, moves, top_after, top_before
from components.adversarial.told import SIGN, TROUBLES, numbers_of, title_of, titled_lead_of
from components.adversarial.views import View, factor_of, magnified
from components.adversarial.words import GREY
from components.numbers import signed
from components.prediction import prediction_html
from components.widgets.patch_map import layers_html
from components.widgets.patch_map import legend_html as patch_legend
from components.widgets.patch_map.html import sentence
from components.widgets.patch_map.picture import picture_style
from components.widgets.token_map import TokenMap, token_map_html
from components.widgets.token_map import legend_html as token_legend
from engine.attacks.result import Attacked
from engine.result import Prediction

MOST_LISTED = 12
BEFORE = "Before"
MOST_BARS = 4


@dataclass(frozen=True, eq=False)
class Side:
    """A column. `found`: the attack after which it is, None before any. `seen`: the picture, of a picture."""

    title: str
    view: View
    prediction: Prediction
    listed: str
    found: Attacked | None = None
    seen: UInt8[np.ndarray, "h w 3"] | None = None


def sides_of(founds: Sequence[Attacked], views: Sequence[View], seen: UInt8[np.ndarray, "h w 3"] | None) -> list[Side]:
    """The column before, then one after each attack. `seen`: the picture as the model sees it, before."""
    first = founds[0]
    before = Side(BEFORE, views[0], first.prediction, _before_list(founds), seen=seen)
    after = [
        Side(title_of(found), view, found.prediction_after, _after_list(found), found,
             seen if found.picture is None else found.picture.after)
        for found, view in zip(founds, views[1:], strict=True)
    ]  # fmt: skip
    return [before, *after]


def board_html(sides: Sequence[Side]) -> str:
    """The columns; on a telephone they stand below each other."""
    target = next(side.found for side in sides if side.found is not None).provenance.target
    columns = "".join(_side(side, sides[0].prediction, target, at) for at, side in enumerate(sides))
    return f'<div class="xg"><div class="xg-sides">{columns}</div></div>'


def lead_html(founds: Sequence[Attacked]) -> str:
    """A line for each attack, above everything else; in red, with a sign, where it does not count as fooled."""
    return f'<div class="xg xg-lead">{"".join(map(_lead, founds))}</div>'


def troubles_html(lines: Iterable[str]) -> str:
    """Why attacks on many examples do not count as fooled: a line each, in red, with a sign."""
    told = (f'<p class="xg-error xg-broken" role="alert">{SIGN} {escape(line)}</p>' for line in lines)
    return f'<div class="xg xg-lead">{"".join(told)}</div>'


def _lead(found: Attacked) -> str:
    name, said = titled_lead_of(found)
    alert = ' class="xg-error" role="alert"' if found.outcome in TROUBLES else ""
    return f"<p{alert}><b>{escape(name)}:</b> {escape(said)}.</p>"


def pictures_html(founds: Sequence[Attacked]) -> str:
    """Of attacks on pixels: the picture before and after, and what was added, magnified."""
    shown = [found for found in founds if found.picture is not None]
    cells = [_picture("The picture", shown[0].picture.before, "", 20)] if shown and shown[0].picture else []
    for at, found in enumerate(shown):
        if found.picture is not None:
            factor = factor_of(found.picture.difference)
            cells.append(_picture(f"{title_of(found)}", found.picture.after, "", 21 + 2 * at))
            note = f"What was added, {factor} times as large. {GREY}"
            cells.append(
                _picture("Difference, magnified", magnified(found.picture.difference, factor), note, 22 + 2 * at)
            )
    return f'<div class="xg"><div class="xg-sides xg-small-sides">{"".join(cells)}</div></div>'


def sizes_html(founds: Sequence[Attacked], views: Sequence[View], seen: UInt8[np.ndarray, "h w 3"] | None) -> str:
    """How far each token or patch was moved, a map an attack."""
    cells = []
    for at, (found, view) in enumerate(zip(founds, views, strict=True)):
        style = "" if seen is None else picture_style(seen, scope=f".xg-shown-{40 + at}")
        cells.append(
            f'<div class="xg-shown-{40 + at}">{style}<p class="xg-title">Size of the change. {escape(title_of(found))}'
            f"</p>{map_html(view, title_of(found))}{_legend(view)}</div>"
        )
    return f'<div class="xg"><div class="xg-sides">{"".join(cells)}</div></div>'


def _side(side: Side, like: Prediction, target: int, at: int) -> str:
    style = "" if side.seen is None else picture_style(side.seen, scope=f".xg-shown-{at}")
    numbers = "" if side.found is None else _numbers(side.found)
    return (
        f'<section class="xg-shown-{at}" aria-label="{escape(side.title)}">{style}'
        f'<p class="xg-title">{escape(side.title)}</p>'
        f"{prediction_html(side.prediction, target, like, MOST_BARS)}"
        f'<div class="xg-of-side">{map_html(side.view, side.title)}</div>{_legend(side.view)}'
        f"{side.listed}{numbers}</section>"
    )


def map_html(view: View, title: str) -> str:
    """The map, of tokens or of patches, in colours alone."""
    if isinstance(view, TokenMap):
        return token_map_html(view)
    told = escape(f"{title}. {sentence(view)}")
    return f'<div class="xg-patches" role="img" aria-label="{told}">{layers_html(view)}</div>'


def _legend(view: View) -> str:
    return f'<div class="xg-small">{token_legend(view) if isinstance(view, TokenMap) else patch_legend(view)}</div>'


def _picture(title: str, pixels: UInt8[np.ndarray, "h w 3"], note: str, at: int) -> str:
    said = f'<p class="xg-small">{escape(note)}</p>' if note else ""
    return (
        f'<div class="xg-shown-{at}">{picture_style(pixels, scope=f".xg-shown-{at}")}'
        f'<p class="xg-title">{escape(title)}</p>'
        f'<div class="xg-patches xg-alone" role="img" aria-label="{escape(title)}"><i class="xg-seen"></i></div>{said}'
        "</div>"
    )


def _before_list(founds: Sequence[Attacked]) -> str:
    """The top before, with where each of it stands after each attack."""
    first = founds[0]
    every = [top_before(moves(f.features.tolist(), f.order_before, f.order_after), first.k) for f in founds]
    several = len(founds) > 1
    rows = []
    for same in zip(*every, strict=True):
        now = "; ".join(
            _arrow(move, "now", move.after) + (f" {found.attack['objective']}" if several else "")
            for move, found in zip(same, founds, strict=True)
        )
        rows.append(_line(first, same[0].before, same[0].position, float(first.before[same[0].position]), now))
    return _listed("The top before", rows)


def _after_list(found: Attacked) -> str:
    """The top after, with where each of it stood."""
    own = top_after(moves(found.features.tolist(), found.order_before, found.order_after), found.k)
    rows = [
        _line(found, move.after, move.position, float(found.after[move.position]), _arrow(move, "was", move.before))
        for move in own
    ]
    return _listed("The top after", rows)


def _listed(title: str, rows: Sequence[str]) -> str:
    left = len(rows) - MOST_LISTED
    more = f'<li class="xg-small">and {left:,} more</li>' if left > 0 else ""
    return f'<p class="xg-small">{title}</p><ol class="xg-moves">{"".join(rows[:MOST_LISTED])}{more}</ol>'


def _line(found: Attacked, place: int, position: int, score: float, words: str) -> str:
    name = escape(found.tokens[position].text)
    return f'<li><i>{place}</i> <bdi>{name}</bdi> <span class="xg-small">{signed(score)} · {words}</span></li>'


def _arrow(move: Move, word: str, place: int) -> str:
    """How it moved, and the other place."""
    return "stays" if move.before == move.after else f"<b>{move.arrow}</b> {word} {place}"


def _numbers(found: Attacked) -> str:
    broken = ' class="xg-broken"'
    rows = "".join(
        f"<dt>{escape(name)}</dt><dd{broken * said.startswith(SIGN)}>{escape(said)}</dd>"
        for name, said in numbers_of(found)
    )
    return f'<dl class="xg-facts xg-small">{rows}</dl>'
