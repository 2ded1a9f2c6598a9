"""The view of graded marks: what methods put on a mark against what it is worth, and the evaluations that it takes."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

import streamlit as st

from components.errors import describe_error, show_error, show_note
from components.evaluate.chosen import Chosen
from components.evaluate.cost import cost_words
from components.evaluate.drawn import Drawing, draw
from components.evaluate.known import evaluations, held, spec_of
from components.evaluate.pace import pace_of
from components.evaluate.session import key
from components.evaluate.state import plan_of
from engine import jobs
from engine.errors import ExegesisError
from engine.registry import all_explainers

if TYPE_CHECKING:
    from engine.evaluation.plan import Plan
    from engine.evaluation.result import Evaluation

SAID = "evaluate_strength_said"
OVER = {"data": "Marks in the data", "training": "Marks in the training"}
STARTED = "The evaluations at other strengths are in the list of jobs. They are drawn here as they finish."


def strengths(chosen: Chosen) -> int:
    """Over how many strengths something can be drawn, in the data or in the training."""
    return max(len(_over_data(chosen)), len(set(_trained(chosen).values())), 1)


def strength_area(chosen: Chosen) -> None:
    """The chart of what there is, and a button for what is missing."""
    from components.evaluate.charts import equal_strengths_text
    from engine.evaluation.views.strength import strength_of, together

    founds, trained = _over_data(chosen), _trained(chosen)
    known = {"data": len(founds) > 1, "training": len(set(trained.values())) > 1}
    if any(known.values()):
        with st.container(horizontal=True, gap="small"):
            over = chosen.one_of("Strength of", "over", {id: name for id, name in OVER.items() if known[id]})
            if over == "data":
                chosen.model()
        if over == "data" and (words := equal_strengths_text(together(founds, chosen.drawn))):
            show_note(words)
        draw(chosen, _of_data(chosen, founds) if over == "data" else _of_training(chosen))
    if strength_of(chosen.found.plan.dataset) is not None:
        _missing(chosen)


def _missing(chosen: Chosen) -> None:
    missing = [plan for plan in _plans(chosen) if _found(plan) is None]
    if st.session_state.get(SAID):
        show_error(st.session_state[SAID])
    if not missing:
        return
    methods = all_explainers(chosen.state.kind)
    st.caption(cost_words(missing[0], methods, missing[0].examples, pace_of(missing[0], evaluations(), methods)))
    label = f"Evaluate at {len(missing)} more strengths"
    st.button(label, key=key(chosen.state.kind, "strengths"), on_click=partial(_submit, missing))


def _submit(plans: Sequence[Plan]) -> None:
    st.session_state.pop(SAID, None)
    try:
        for plan in plans:
            jobs.submit("evaluate", spec_of(plan))
        st.toast(STARTED)
    except ExegesisError as error:
        st.session_state[SAID] = describe_error(error)


def _of_data(chosen: Chosen, founds: Sequence[Evaluation]) -> Drawing:
    from components.evaluate.charts import strength_chart, strength_table
    from engine.evaluation.views.strength import over_data

    graded, company = over_data(founds, chosen.drawn), chosen.found.plan.company
    return Drawing(
        "strength",
        lambda _, frame: strength_chart(graded, company, frame),
        lambda _, frame: strength_table(graded, frame),
        leads=False,  # its points are of other sets
        plans=tuple(found.plan for found in founds),
    )


def _of_training(chosen: Chosen) -> Drawing:
    from components.evaluate.charts import OVER_TRAINING, strength_chart, strength_table
    from engine.evaluation.views.strength import over_training

    graded, company = over_training(chosen.found, _trained(chosen)), chosen.found.plan.company
    return Drawing(
        "strength",
        lambda _, frame: strength_chart(graded, company, frame, OVER_TRAINING),
        lambda _, frame: strength_table(graded, frame, OVER_TRAINING),
    )


def _trained(chosen: Chosen) -> dict[str, float]:
    from engine.evaluation.views.strength import trained_at

    return trained_at(chosen.found.plan.models)


def _over_data(chosen: Chosen) -> list[Evaluation]:
    """The evaluations at several strengths that are finished."""
    return [found for plan in _plans(chosen) if (found := _found(plan)) is not None]


def _plans(chosen: Chosen) -> list[Plan]:
    """What is asked on this page, at several strengths; none where the set has no mark."""
    from engine.evaluation.views.strength import at_strengths, strength_of

    plan = plan_of(chosen.state, all_explainers(chosen.state.kind))
    return [] if strength_of(plan.dataset) is None else at_strengths(plan)


def _found(plan: Plan) -> Evaluation | None:
    try:
        return held(plan).found
    except ExegesisError:
        return None
