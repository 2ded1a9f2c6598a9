"""HTML of an attack: predictions and maps before and after side by side, ranks, measures, and the change itself.

Names, labels and tokens are escaped.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from html import escape

import numpy as np
import streamlit as st
from jaxtyping import Float, Int, UInt8

from components.adversarial.descriptions import (
    PROBLEM_TITLES,
    SIGN,
    describe_reach,
    describe_top,
    headline,
    measure_lines,
    result_title,
    summarize_attacks,
)
from components.method_row import rather_than
from components.numbers import plain, signed
from components.prediction import prediction_html
from components.styles import asset_sheet
from components.widgets.patch_map import PatchMap, layers_html, picture_style, sentence, use_picture_styles
from components.widgets.patch_map import legend_html as patch_legend
from components.widgets.token_map import TokenMap, token_map_html
from components.widgets.token_map import legend_html as token_legend
from engine.attacks.result import AttackResult
from engine.format import visible_token
from engine.registry import Explainer
from engine.request import Example, Input
from engine.result import Prediction
from engine.word_units import units

MapView = TokenMap | PatchMap
SHARING = "before and after"
PALE = 0.25
"""A map whose largest score is below this share of its scale is hard to see."""
Scores = Float[np.ndarray, "seq"]
UP, DOWN, STAYS = "↑", "↓", "="
Order = Int[np.ndarray, "feature"]
MOST_LISTED = 12
BEFORE = "Before"
MOST_BARS = 2


def build_map(result: AttackResult, scores: Scores, example: Input, signed: bool) -> MapView:
    """Build a map of the scores of all positions on its own scale.

    `signed`: whether scores are for or against the class.
    """
    target = f"{visible_token(result.provenance.target_label)}{rather_than(example)}"
    if isinstance(example, Example):
        texts = (example.text,) if example.text_pair is None else (example.text, example.text_pair)
        return TokenMap(units(result.tokens, scores, example), texts, signed, target)
    assert result.grid is not None
    return PatchMap(scores[result.features].reshape(result.grid), signed, target)


def share_scale(views: list[MapView]) -> list[MapView]:
    """Put the maps on one color scale, which ends at their largest score."""
    end = max((view.largest for view in views), default=0.0)
    return [replace(view, end=end, sharing=SHARING) for view in views]


def build_maps(results: list[AttackResult], method: Explainer, example: Input, shared: bool = True) -> list[MapView]:
    """Build the map before and the map after each attack. `shared`: whether they share one color scale."""
    signed = method.is_signed(results[0].provenance.params)
    scores = [results[0].before, *(result.after for result in results)]
    views = [build_map(results[0], own, example, signed) for own in scores]
    return share_scale(views) if shared else views


def describe_pale_map(views: list[MapView]) -> str:
    """Return a note if the map before the attack is hard to see on a shared scale, else an empty string."""
    first, end = views[0].largest, views[0].scale
    if not 0 < first < PALE * end:
        return ""
    return (
        f"The map before the attack is pale: its largest score is {plain(first)}, the scale ends at {plain(end)}. "
        "Under Options, set Scale to Own to see its order."
    )


def size_maps(results: list[AttackResult], example: Input) -> list[MapView]:
    """Build maps of the size of each token's or patch's change (Euclidean norm), on one scale."""
    views = [build_map(result, result.length.astype(np.float64), example, False) for result in results]
    end = max(view.largest for view in views)
    return [replace(view, end=end, sharing="both attacks" if len(views) > 1 else "") for view in views]


def magnify(difference: Float[np.ndarray, "height width 3"], factor: int) -> UInt8[np.ndarray, "height width 3"]:
    """Return the change of each color, magnified by `factor` around gray."""
    return np.clip(np.rint(127.5 + 255 * factor * difference), 0, 255).astype(np.uint8)


def magnification(difference: Float[np.ndarray, "height width 3"]) -> int:
    """Return the largest whole factor that keeps the magnified change within the color range; at least 1."""
    largest = float(np.abs(difference).max())
    return max(1, int(0.5 / largest + 1e-6)) if largest > 0 else 1


@dataclass(frozen=True)
class RankMove:
    """A position of the input with its ranks before and after an attack. Ranks count from 1."""

    position: int
    before: int
    after: int

    @property
    def arrow(self) -> str:
        """An arrow, up for a move toward rank 1 or down, with the number of ranks; an equals sign for no move."""
        by = self.before - self.after
        return STAYS if by == 0 else f"{UP if by > 0 else DOWN} {abs(by)}"


def rank_moves(features: Sequence[int], before: Order, after: Order) -> list[RankMove]:
    """Return the move of each feature, in the order before the attack.

    `before`, `after`: indices into `features`, highest score first.
    """
    now = {at: place for place, at in enumerate(after.tolist(), start=1)}
    return [RankMove(int(features[at]), place, now[at]) for place, at in enumerate(before.tolist(), start=1)]


def top_before(moves: Sequence[RankMove], k: int) -> list[RankMove]:
    """Return the moves of the k features with the highest scores before the attack."""
    return [move for move in moves if move.before <= k]


def top_after(moves: Sequence[RankMove], k: int) -> list[RankMove]:
    """Return the moves of the k features with the highest scores after the attack, highest first."""
    return sorted((move for move in moves if move.after <= k), key=lambda move: move.after)


@dataclass(frozen=True, eq=False)
class AttackColumn:
    """A column of the comparison. `result`: the attack, None for the column before it. `picture`: None for texts."""

    title: str
    view: MapView
    prediction: Prediction
    result: AttackResult | None = None
    picture: UInt8[np.ndarray, "h w 3"] | None = None


def build_columns(
    results: Sequence[AttackResult], views: Sequence[MapView], picture: UInt8[np.ndarray, "h w 3"] | None
) -> list[AttackColumn]:
    """Build the column before the attacks, then one column per attack.

    `picture`: the picture before the attack as the model sees it, None for texts.
    """
    first = results[0]
    before = AttackColumn(BEFORE, views[0], first.prediction, picture=picture)
    after = [
        AttackColumn(result_title(result), view, result.prediction_after, result,
             picture if result.picture is None else result.picture.after)
        for result, view in zip(results, views[1:], strict=True)
    ]  # fmt: skip
    return [before, *after]


def before_after_html(columns: Sequence[AttackColumn], title: str) -> str:
    """HTML of each column's prediction and map; columns are stacked on narrow screens.

    `title`: title of the attacked method.
    """
    target = next(column.result for column in columns if column.result is not None).provenance.target
    html = "".join(_column(column, title, columns[0].prediction, target, at) for at, column in enumerate(columns))
    return f'<div class="xg"><div class="xg-sides">{html}</div></div>'


def ranks_html(results: Sequence[AttackResult]) -> str:
    """HTML of the top features before, then of the top features and measures after each attack."""
    before = f'<div><p class="xg-title">{BEFORE}</p>{_list_before(results)}</div>'
    after = (
        f'<div><p class="xg-title">{escape(result_title(result))}</p>{_list_after(result)}{_numbers(result)}</div>'
        for result in results
    )
    return f'<div class="xg"><div class="xg-sides">{before}{"".join(after)}</div></div>'


def answer_html(results: Sequence[AttackResult], title: str) -> str:
    """HTML that says whether the method was fooled and how far the attack could go. `title`: title of the method."""
    answer, colon, evidence = summarize_attacks(results, title).partition(":")
    reach = f'<p class="xg-small">{escape(reach)}</p>' if (reach := describe_reach(results)) else ""
    return f'<div class="xg xg-lead"><p><b>{escape(answer + colon)}</b>{escape(evidence)}</p>{reach}</div>'


def sentences_html(sentences: Iterable[str], problems: Iterable[str] = ()) -> str:
    """HTML of the sentences as paragraphs, followed by `problems` in red and with a sign."""
    lines_html = [f"<p>{escape(sentence)}</p>" for sentence in sentences]
    lines_html += [f'<p class="xg-error xg-broken" role="alert">{SIGN} {escape(line)}</p>' for line in problems]
    return f'<div class="xg xg-lead">{"".join(lines_html)}</div>'


def _headline_html(result: AttackResult) -> str:
    """HTML of an attack's effect on the top features or, in red, why the attack does not count as fooled."""
    if problem := PROBLEM_TITLES.get(result.outcome):
        return f'<p class="xg-small xg-error" role="alert"><b>{escape(problem)}:</b> {escape(headline(result)[1])}.</p>'
    return f'<p class="xg-small">{escape(describe_top(result).capitalize())}.</p>'


def pictures_html(results: Sequence[AttackResult]) -> str:
    """HTML of the picture before and after attacks on pixels, and of the magnified changes."""
    changed = [result for result in results if result.picture is not None]
    cells = [_picture_html("The picture", changed[0].picture.before, "", 20)] if changed and changed[0].picture else []
    for at, result in enumerate(changed):
        if result.picture is not None:
            factor = magnification(result.picture.difference)
            cells.append(_picture_html(f"{result_title(result)}", result.picture.after, "", 21 + 2 * at))
            note = f"Magnified {factor} times. Gray: unchanged."
            cells.append(
                _picture_html("Difference, magnified", magnify(result.picture.difference, factor), note, 22 + 2 * at)
            )
    return f'<div class="xg"><div class="xg-sides xg-small-sides">{"".join(cells)}</div></div>'


def sizes_html(
    results: Sequence[AttackResult], views: Sequence[MapView], picture: UInt8[np.ndarray, "h w 3"] | None
) -> str:
    """HTML of maps of the size of each token's or patch's change, one per attack."""
    cells = []
    for at, (result, view) in enumerate(zip(results, views, strict=True)):
        title = result_title(result)
        style = "" if picture is None else picture_style(picture, scope=f".xg-shown-{40 + at}")
        cells.append(
            f'<div class="xg-shown-{40 + at}">{style}'
            f'<p class="xg-title">Size of the change: {escape(title.lower())}</p>'
            f"{map_html(view, title)}{_legend(view)}</div>"
        )
    return f'<div class="xg"><div class="xg-sides">{"".join(cells)}</div></div>'


def _column(column: AttackColumn, method: str, like: Prediction, target: int, at: int) -> str:
    style = "" if column.picture is None else picture_style(column.picture, scope=f".xg-shown-{at}")
    changed = "" if column.result is None else _headline_html(column.result)
    return (
        f'<section class="xg-shown-{at}" aria-label="{escape(column.title)}">{style}'
        f'<p class="xg-title">{escape(column.title)} <span class="xg-small">{escape(method)}</span></p>'
        f'<div class="xg-of-side">{map_html(column.view, column.title)}</div>{_legend(column.view)}'
        f"{prediction_html(column.prediction, target, like, MOST_BARS)}{changed}</section>"
    )


def map_html(view: MapView, title: str) -> str:
    """HTML of the map of tokens or patches, in colors only."""
    if isinstance(view, TokenMap):
        return token_map_html(view)
    label = escape(f"{title}. {sentence(view)}")
    return f'<div class="xg-patches" role="img" aria-label="{label}">{layers_html(view)}</div>'


def _legend(view: MapView) -> str:
    return f'<div class="xg-small">{token_legend(view) if isinstance(view, TokenMap) else patch_legend(view)}</div>'


def _picture_html(title: str, pixels: UInt8[np.ndarray, "h w 3"], note: str, at: int) -> str:
    caption = f'<p class="xg-small">{escape(note)}</p>' if note else ""
    return (
        f'<div class="xg-shown-{at}">{picture_style(pixels, scope=f".xg-shown-{at}")}'
        f'<p class="xg-title">{escape(title)}</p>'
        f'<div class="xg-patches xg-alone" role="img" aria-label="{escape(title)}"><i class="xg-seen"></i></div>'
        f"{caption}</div>"
    )


def _list_before(results: Sequence[AttackResult]) -> str:
    """HTML list of the top features before, with their ranks after each attack."""
    first = results[0]
    moves = [top_before(rank_moves(f.features.tolist(), f.order_before, f.order_after), first.k) for f in results]
    several = len(results) > 1
    rows = []
    for same in zip(*moves, strict=True):
        now = "; ".join(
            _arrow(move, "to", move.after) + (f" {result.attack['objective']}" if several else "")
            for move, result in zip(same, results, strict=True)
        )
        rows.append(_line(first, same[0].before, same[0].position, float(first.before[same[0].position]), now))
    return _ranked_list("Top features before", rows)


def _list_after(result: AttackResult) -> str:
    """HTML list of the top features after an attack, with their ranks before."""
    own = top_after(rank_moves(result.features.tolist(), result.order_before, result.order_after), result.k)
    rows = [
        _line(result, move.after, move.position, float(result.after[move.position]), _arrow(move, "from", move.before))
        for move in own
    ]
    return _ranked_list("Top features after", rows)


def _ranked_list(title: str, rows: Sequence[str]) -> str:
    left = len(rows) - MOST_LISTED
    more = f'<li class="xg-small">and {left:,} more</li>' if left > 0 else ""
    return f'<p class="xg-small">{title}</p><ol class="xg-moves">{"".join(rows[:MOST_LISTED])}{more}</ol>'


def _line(result: AttackResult, place: int, position: int, score: float, words: str) -> str:
    name = escape(result.tokens[position].text)
    return f'<li><i>{place}</i> <bdi>{name}</bdi> <span class="xg-small">{signed(score)} · {words}</span></li>'


def _arrow(move: RankMove, word: str, place: int) -> str:
    """HTML of a move and the other rank, such as “↑ 3 from rank 5”."""
    return "same rank" if move.before == move.after else f"<b>{move.arrow}</b> {word} rank {place}"


def _numbers(result: AttackResult) -> str:
    broken = ' class="xg-broken"'
    rows = "".join(
        f"<dt>{escape(name)}</dt><dd{broken * text.startswith(SIGN)}>{escape(text)}</dd>"
        for name, text in measure_lines(result)
    )
    return f'<dl class="xg-facts xg-small">{rows}</dl>'


def use_adversarial_styles() -> None:
    """Add the style sheets to the page."""
    use_picture_styles()
    st.html(adversarial_sheet())


def adversarial_sheet() -> str:
    return f"<style>{asset_sheet('adversarial')}</style>"
