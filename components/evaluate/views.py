"""The views of an evaluation: the leaderboard, and charts whose points lead to the examples behind them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import streamlit as st

from components.errors import show_note
from components.evaluate.board import Board
from components.evaluate.chosen import Chosen
from components.evaluate.drawn import Drawing, draw, drawing
from components.evaluate.fill import fill_area
from components.evaluate.known import Held
from components.evaluate.leaderboard import leaderboard
from components.evaluate.look import COSTS, INSIDE, SLICES, WAYS
from components.evaluate.state import EvaluateState
from components.evaluate.strength import strength_area, strengths

if TYPE_CHECKING:
    from engine.evaluation.result import Evaluation
    from engine.evaluation.views.sizes import Sizes

COLUMNS = 2
"""Charts of slices beside each other."""


def view_area(state: EvaluateState, held: Held, tables: Sequence[Board], titles: Mapping[str, str]) -> None:
    """The chosen view, or why it makes no sense here."""
    from engine.evaluation.views.which import Beside, views_of

    if state.look.view == "leaderboard":
        leaderboard(state.kind, tables, titles, state.look)
        return
    found = held.found
    if found is None:
        return
    chosen = Chosen(state, found, titles, _sizes(found))
    beside = Beside(chosen.sizes, strengths(chosen) if state.look.view == "strength" else 1)
    view = next(one for one in views_of(found, beside) if one.id == state.look.view)
    with st.container(horizontal=True, gap="small", vertical_alignment="center"):
        st.caption(view.question)
        if not view.why_not:
            chosen.methods()
    if view.why_not:
        show_note(view.why_not)
        fill_area(state, view.id)
    if not view.why_not or view.id == "strength":
        _VIEWS[view.id](chosen)
        st.caption(view.about)


def _sizes(found: Evaluation) -> Sizes:
    """Of models whose files say them."""
    from engine.evaluation.views.sizes import sizes_of

    return sizes_of(found.plan.models)[0]


def _curves(chosen: Chosen) -> None:
    with st.container(horizontal=True, gap="small"):
        chosen.model()
        way = chosen.one_of("Shown", "way", WAYS)
    draw(chosen, _curves_of(chosen, way))


def _plausibility(chosen: Chosen) -> None:
    from components.evaluate.charts import PLAUSIBLE
    from engine.evaluation.views.which import faithful, plausible

    with st.container(horizontal=True, gap="small"):
        chosen.model()
        across = chosen.metric("Horizontal axis", "other", _first(PLAUSIBLE, plausible(chosen.found)))
        up = chosen.metric("Vertical axis", "metric", faithful(chosen.found))
    draw(chosen, _plausibility_of(chosen, across, up))


def _cost(chosen: Chosen) -> None:
    from engine.evaluation.views.which import qualities

    with st.container(horizontal=True, gap="small"):
        chosen.model()
        up = chosen.metric("Vertical axis", "metric", qualities(chosen.found))
        cost = chosen.one_of("Horizontal axis", "cost", COSTS)
    draw(chosen, _cost_of(chosen, up, cost))


def _scaling(chosen: Chosen) -> None:
    from components.evaluate.charts import scaling_chart, scaling_table
    from engine.evaluation.views.sizes import ladders
    from engine.evaluation.views.which import qualities

    with st.container(horizontal=True, gap="small"):
        up = chosen.metric("Vertical axis", "metric", qualities(chosen.found))
        family = chosen.one_of("Architecture", "family", {name: name for name in ladders(chosen.sizes)})
    draw(chosen, drawing("scaling", scaling_chart, scaling_table, up, chosen.sizes, family))


def _architecture(chosen: Chosen) -> None:
    from components.evaluate.charts import architecture_chart, architecture_table, unequal_sizes_text
    from engine.evaluation.views.which import qualities

    with st.container(horizontal=True, gap="small"):
        across = chosen.metric("Metric", "metric", qualities(chosen.found))
    if unlike := unequal_sizes_text(chosen.sizes):
        show_note(unlike)
    draw(chosen, drawing("architectures", architecture_chart, architecture_table, across, chosen.sizes))


def _slices(chosen: Chosen) -> None:
    from engine.evaluation.views.slices import slices
    from engine.evaluation.views.which import qualities

    with st.container(horizontal=True, gap="small"):
        by = chosen.one_of("By", "slice", SLICES)
        inside = chosen.one_of("Chart", "inside", INSIDE)
        chosen.model()
        metric = chosen.metric("Metric", "metric", qualities(chosen.found)) if inside == "bars" else ""
    if metric:
        draw(chosen, _bars_of(chosen, metric, by))
        return
    parts = slices(chosen.found.slice(lambda fact: fact.model == chosen.drawn), by)
    drawing = _inside(chosen, inside)
    for start in range(0, len(parts), COLUMNS):
        for place, part in zip(st.columns(COLUMNS), parts[start : start + COLUMNS], strict=False):
            with place:
                draw(chosen, drawing, part.name, part.found)


def _inside(chosen: Chosen, name: str) -> Drawing:
    """The chart of each slice, with the metrics that the other views chose."""
    from components.evaluate.charts import PLAUSIBLE
    from engine.evaluation.views.which import faithful, plausible, qualities

    look, found = chosen.state.look, chosen.found
    if name == "curves":
        return _curves_of(chosen, look.way)
    if name == "plausibility":
        return _plausibility_of(
            chosen, _held(look.other, _first(PLAUSIBLE, plausible(found))), _held(look.metric, faithful(found))
        )
    return _cost_of(chosen, _held(look.metric, qualities(found)), look.cost)


def _first(usual: str, known: Sequence[str]) -> list[str]:
    """The usual one before the others, where it is there."""
    return sorted(known, key=lambda id: id != usual)


def _held(wanted: str, known: Sequence[str]) -> str:
    return wanted if wanted in known else known[0]


def _bars_of(chosen: Chosen, metric: str, by: str) -> Drawing:
    from components.evaluate.charts import slice_chart, slice_table

    return drawing("slices", slice_chart, slice_table, metric, by, chosen.drawn)


def _curves_of(chosen: Chosen, way: str) -> Drawing:
    from components.evaluate.charts import removal_chart, removal_table

    return drawing("curves", removal_chart, removal_table, chosen.drawn, way)


def _plausibility_of(chosen: Chosen, across: str, up: str) -> Drawing:
    from components.evaluate.charts import plausibility_chart, plausibility_table

    return drawing("plausibility", plausibility_chart, plausibility_table, across, up, chosen.drawn)


def _cost_of(chosen: Chosen, up: str, cost: str) -> Drawing:
    from components.evaluate.charts import cost_chart, cost_table

    return drawing("cost", cost_chart, cost_table, up, cost, chosen.drawn)


_VIEWS: Mapping[str, Callable[[Chosen], None]] = {
    "curves": _curves,
    "plausibility": _plausibility,
    "cost": _cost,
    "scaling": _scaling,
    "architecture": _architecture,
    "slices": _slices,
    "strength": strength_area,
}
