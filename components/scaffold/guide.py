"""The dialog that trains an explainer for a model: the data set, how thoroughly, the time it takes, and a button."""

from __future__ import annotations

from typing import TYPE_CHECKING

import streamlit as st

from components.errors import describe_error, show_error
from components.experiment.controls import data_control
from components.experiment.runs import spec_of
from components.navigation import SCAFFOLD
from components.numbers import count, rough_duration
from components.scaffold.runs import KIND, store_of
from components.scaffold.state import opening_state, state_of, write_state
from engine import jobs
from engine.data.sources import list_datasets
from engine.input_kinds import kind_of_model
from engine.lazy import LazyModule
from engine.models import catalog
from engine.models.summary import fitting_dataset, summarize_model
from engine.scaffold import presets
from engine.scaffold.plan import ScaffoldPlan, check

if TYPE_CHECKING:
    from engine.scaffold import training
else:  # it trains a step, and its import loads torch
    training = LazyModule("engine.scaffold.training")

DATA, CARE = "explainer_guide.data", "explainer_guide.care"
QUICK, THOROUGH = "Quick", "Thorough"
CARES = {
    QUICK: "One student with the explainer and one without. Shows roughly whether it helps.",
    THOROUGH: "Five students each, and five with attention alone. Shows whether it helps beyond chance.",
}
ABOUT = (
    "Your model gets an explainer of its own (SMaT). It learns which attention heads to show, so that a student that "
    "sees them predicts the model's answers better. You can then choose the method SMaT for this model on every page."
)


def open_guide(teacher: str) -> None:
    """Open the dialog for a model, with a data set of its task."""
    st.session_state[DATA] = default_dataset(teacher)
    _dialog(teacher)


def default_dataset(teacher: str) -> str:
    """The data set that the model was trained on where its card names one; else one of its task, if there is one."""
    kind = kind_of_model(teacher)
    trained_on = (catalog.card(teacher).get("settings") or {}).get("dataset")
    if trained_on in list_datasets(kind):
        return str(trained_on)
    return fitting_dataset(summarize_model(teacher)) or opening_state(kind).data


@st.dialog("Train an explainer", width="medium")
def _dialog(teacher: str) -> None:
    explainer_form(teacher)


def explainer_form(teacher: str) -> None:
    """Draw the content of the dialog."""
    kind = kind_of_model(teacher)
    st.text(f"Model: {teacher}")
    st.markdown(ABOUT)
    data_control(kind, DATA)
    care = st.radio("How thoroughly", list(CARES), captions=list(CARES.values()), key=CARE)
    try:
        plan = presets.explainer_plan(teacher, st.session_state[DATA], care == THOROUGH)
        check(plan)
        missing = store_of(plan).missing()
        seconds = _seconds_of(plan) if missing else 0.0
    except Exception as error:
        show_error(describe_error(error))
        return
    st.markdown(describe_work(plan, len(missing), seconds))
    if st.button("Train" if missing else "Show the result", type="primary"):
        if missing:
            jobs.submit(KIND, spec_of(plan))
        st.switch_page(SCAFFOLD.path, query_params=write_state(state_of(plan, kind)))


@st.cache_data(max_entries=32, show_spinner="Timing a training step …")
def _seconds_of(plan: ScaffoldPlan) -> float:
    return training.estimate_seconds(plan)


def describe_work(plan: ScaffoldPlan, missing: int, seconds: float) -> str:
    """The number of students, what each learns from and is measured on, and how long that takes."""
    students = (
        f"{count(len(plan.students), 'student')}, each trained on {count(plan.train_sizes[0], 'example')} and tested "
        f"on {plan.recipe.test:,}."
    )
    if not missing:
        return f"{students} They are already trained."
    return f"{students} **At most {rough_duration(seconds)} on this machine**; you can stop and continue at any time."
