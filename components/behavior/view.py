"""View options of the Ask the model page, the task control, and descriptions of plans and ways of answering."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import streamlit as st

from components.controls import PERSIST
from components.experiment.state import ExperimentSession
from components.links import MOST_PLACE
from components.numbers import count
from engine.behavior.plan import BEHAVIOR, DELETE, FEATURE, INCLUDED, LOCAL, PARTS, TASK_TITLES, TASKS, BehaviorPlan
from engine.behavior.result import ORDER, SIGN, WayAccuracy
from engine.format import plural
from engine.home import product_version
from engine.params import option

QUESTIONS = {
    "text": {SIGN: "Does it fall?", ORDER: "Which of two words?"},
    "image": {SIGN: "Does it fall?", ORDER: "Which of two patches?"},
}
"""The questions about local behavior."""
TASK_HELP = (
    "Local behavior: what happens when a word or patch is changed. Spurious feature: whether predictions rely on given "
    "words, or on the object that the data set marks. Recourse: which few to remove so that the class changes."
)


@dataclass(frozen=True)
class BehaviorView:
    """The view options of the page.

    `question`: the question about local behavior. `of`: the model of the example panel, empty for the first. `example`:
    the index of its example in the data set, empty for the first.
    """

    question: str = option(SIGN, choices=(SIGN, ORDER))
    of: str = ""
    example: str = option(
        "", high=MOST_PLACE, allowed="an index of the data set", fallback="The first one is shown."
    )  # fmt: skip


SESSION = ExperimentSession(BEHAVIOR, "behavior", BehaviorView)


def task_control(kind: str) -> None:
    """Draw the choice of the task."""
    st.segmented_control(
        "Task", TASKS, key=SESSION.key(kind, "task"), required=True, format_func=TASK_TITLES.__getitem__,
        label_visibility="collapsed", persist_state=PERSIST, help=TASK_HELP, on_change=_open_included, args=(kind,),
    )  # fmt: skip


def _open_included(kind: str) -> None:
    """Select the models, data set and size of the new task's included result, unless the user chose others."""
    models, dataset = (st.session_state[SESSION.key(kind, name)] for name in ("models", "dataset"))
    included = [one for one in INCLUDED if one.kind == kind]
    if any((list(one.models), one.dataset) == (list(models), dataset) for one in included):
        task = st.session_state[SESSION.key(kind, "task")]
        plan = next(one for one in included if one.task == task)
        SESSION.put(kind, "models", list(plan.models))
        SESSION.put(kind, "dataset", plan.dataset)
        SESSION.put(kind, "examples", plan.examples)


def describe_plan(plan: BehaviorPlan) -> str:
    """Return a plan in one line: models, data set, sizes and task settings."""
    sizes = f"{count(plan.examples, 'example')}, {count(len(plan.methods), 'method')}"
    return f"{', '.join(plan.models)} on {plan.dataset}: {sizes}, {setting(plan)}"


def setting(plan: BehaviorPlan) -> str:
    """Return the settings that are specific to the task in a few words."""
    if plan.task == LOCAL:
        part = PARTS[plan.kind]
        if plan.edit == DELETE:
            return f"{plural(part)} deleted"
        return f"up to {count(plan.draws, 'replacement')} per {part}"
    if plan.task == FEATURE:
        return f"feature {', '.join(plan.feature_words)}" if plan.kind == "text" else "the marked object"
    return f"at most {count(plan.size, PARTS[plan.kind])} removed"


def cite(plan: BehaviorPlan) -> str:
    """Return a citation: version, task, models, data set, settings, seed and precision."""
    return (
        f"Exegesis {product_version()}. {TASK_TITLES[plan.task]} of {', '.join(plan.models)} on {plan.dataset}, "
        f"{setting(plan)}, seed {plan.seed}, {plan.dtype}."
    )


def way_title(way: WayAccuracy, plan: BehaviorPlan, titles: Mapping[str, str]) -> str:
    """Return the title of a way of answering. `titles`: method titles by id."""
    return f"Ask: {budget_words(way.budget, plan)}" if way.is_query else titles.get(way.way, way.way)


def budget_words(budget: int, plan: BehaviorPlan) -> str:
    """Return the budget of a direct query in words."""
    if plan.task == LOCAL:
        return f"{count(budget, 'evaluation')} per {PARTS[plan.kind]}"
    return count(budget, "change") if plan.task == FEATURE else f"beam of {budget}"
