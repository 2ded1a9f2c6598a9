"""The controls of the Scaffold page, filled from its link and written back to it, and the dialog to train an explainer.

Texts and pictures have separate sessions, so switching between them loses nothing.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, TypeVar

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from components.controls import PERSIST, field_widgets, options_popover
from components.errors import describe_error, show_error
from components.experiment.runs import spec_of
from components.experiment.state import VIEW, data_control, view_select
from components.inputs.datasets import label_models, model_label, model_name, sort_by_task
from components.navigation import SCAFFOLD
from components.numbers import count, rough_duration
from components.scaffold.runs import KIND, store_of
from components.scaffold.state import (
    DEFAULT_RECIPE,
    DEFAULT_VIEW,
    LINK_FIELDS,
    NUMBER_LISTS,
    PREFIX,
    SETTING_TITLES,
    ScaffoldState,
    changed_recipe,
    opening_state,
    read_numbers,
    read_state,
    state_of,
    write_state,
)
from components.state import KindSessions, control_values, renew_models
from engine import jobs
from engine.data.sources import list_datasets
from engine.input_kinds import kind_of_model, list_models
from engine.lazy import LazyModule
from engine.models import catalog
from engine.models.catalog import embedded_bases
from engine.models.summary import fitting_dataset, summarize_model
from engine.params import from_mapping
from engine.scaffold import presets
from engine.scaffold.plan import SETTINGS, Recipe, ScaffoldPlan, check
from engine.scaffold.presets import OPENING_PLANS

if TYPE_CHECKING:
    from engine.scaffold import training
else:  # importing it loads torch
    training = LazyModule("engine.scaffold.training")

SETTING_HELP = (
    "The explanation that a student sees with each example. SMaT weights the teacher's attention heads by learned "
    "coefficients. It starts from equal weights, which is “Attention logits, all layers”, and is optimized so that its "
    "students agree with the teacher."
)
BASE_OWN = "The teacher's own"
BASE_HELP = (
    "The pre-trained model that students start from. It must have the teacher's architecture and is never the teacher "
    "itself."
)
TEACHER_HELP = (
    "The model that students learn to predict: an embedded model, the folder of a saved checkpoint, or a hub id such "
    "as owner/name. Type to add one."
)
SIZES_HELP = (
    "Numbers of examples that students learn from, separated by commas. The largest one determines the data splits, so "
    "changing it means new students at every size."
)
SEEDS_HELP = (
    "One student per seed, separated by commas. The seed draws the student's examples, their order and its new head."
)
SPLIT_HELP = "The split of the data set that examples are drawn from."
RECIPE = "How students are trained. The defaults are the authors' published configuration."

SESSIONS = KindSessions("scaffold")
key, put = SESSIONS.key, SESSIONS.put
FIELDS = ("teacher", "data", "settings", "sizes", "seeds", "base", "split")


def load(kind: str) -> tuple[ScaffoldState, list[str]]:
    """Fill widgets that have no value. Returns the state of the last link and its errors."""
    session = SESSIONS[kind]
    link, fresh = session.follow()
    state, wrong = read_state(kind, link)
    session.fill(_values(state))
    return state, session.tell(wrong, fresh, lambda: write_state(state), state, LINK_FIELDS)


def from_widgets(loaded: ScaffoldState) -> tuple[ScaffoldState, list[str]]:
    """Return the state of the controls and errors in typed lists. An invalid list is replaced by the last valid one."""
    session, errors = SESSIONS[loaded.kind], list[str]()
    values = session.values("", FIELDS)
    fields = {name: str(value).strip() for name, value in values.items() if name != "settings"}
    for name in NUMBER_LISTS:
        fields[name] = read_numbers(name, fields[name], getattr(loaded, name), errors)
    settings = tuple(one for one in SETTINGS if one in values.get("settings", loaded.settings))
    recipe = changed_recipe(session.values(PREFIX, DEFAULT_RECIPE) or loaded.recipe)
    state = dataclasses.replace(
        loaded, **fields, settings=settings, recipe=recipe, view=session.read_record(VIEW, loaded.view)
    )
    return state, errors


def save(state: ScaffoldState, loaded: ScaffoldState) -> None:
    """Remember the state and write it to the address if it changed."""
    SESSIONS.remember(state, loaded, write_state)


def turn_to(state: ScaffoldState) -> None:
    """Show another plan; for use as a callback."""
    SESSIONS.show(state.kind, _values(state))


def _values(state: ScaffoldState) -> dict[str, object]:
    recipe = dataclasses.asdict(from_mapping(Recipe, state.recipe, "recipe"))
    return {
        **control_values("", state, FIELDS),
        **{f"{PREFIX}{name}": value for name, value in recipe.items()},
        **control_values(VIEW, state.view),
    }


WIDTH, WIDE, LONG = 210, 270, 22
"""Width of a select box, and of one with long names, in pixels; number of characters above which a name is long."""
Value = TypeVar("Value", int, str)


def view_choice(
    state: ScaffoldState, label: str, name: str, options: Mapping[Value, str], default: Value, help: str | None = None
) -> Value:
    """Draw a select box for a field of the view, wider for long names."""
    width = WIDE if max(map(len, options.values())) > LONG else WIDTH
    return view_select(SESSIONS, state, label, name, options, width, help, default)


def bound_select(kind: str, label: str, name: str, options: Mapping[Value, str], width: int = 240) -> Value:
    """Draw a select box bound to a field of the view. A value that is not an option is replaced by the first option."""
    _bind(kind, name, options)
    chosen: Value = st.selectbox(
        label, list(options), key=key(kind, f"{VIEW}{name}"), format_func=options.__getitem__, width=width,
        persist_state=PERSIST,
    )  # fmt: skip
    return chosen


def view_switch(kind: str, label: str, name: str, options: Mapping[str, str]) -> str:
    """Draw a segmented control bound to a field of the view; otherwise like `bound_select`."""
    _bind(kind, name, options)
    chosen = st.segmented_control(
        label, list(options), key=key(kind, f"{VIEW}{name}"), format_func=options.__getitem__, required=True,
        persist_state=PERSIST,
    )  # fmt: skip
    return str(chosen)


def view_number(kind: str, label: str, name: str, most: int) -> int:
    """Draw a number input from 1 to `most`, bound to a field of the view and clipped to that range."""
    widget = key(kind, f"{VIEW}{name}")
    now = int(st.session_state.get(widget) or getattr(DEFAULT_VIEW, name))
    st.session_state[widget] = min(max(now, 1), most)
    return int(st.number_input(label, 1, most, key=widget, width=160, persist_state=PERSIST))


def _bind(kind: str, name: str, options: Mapping[Value, str]) -> None:
    widget = key(kind, f"{VIEW}{name}")
    now = st.session_state.get(widget, getattr(DEFAULT_VIEW, name))
    put(kind, f"{VIEW}{name}", now if now in options else next(iter(options)))


TASKS = {"text": "Texts with classes", "image": "Pictures", "regression": "Pairs with a score"}
"""Titles of the precomputed plans."""
BASES = ("minilm",)


def plan_controls(kind: str, line: DeltaGenerator) -> None:
    """Draw the controls of the plan. `line`: the container of the buttons."""
    with st.container(horizontal=True, gap="small"):
        _name_box("Teacher", kind, "teacher", list_models(kind), TEACHER_HELP)
        data_control(kind, key(kind, "data"))
    st.pills(
        "Settings", SETTINGS, selection_mode="multi", key=key(kind, "settings"), persist_state=PERSIST,
        format_func=SETTING_TITLES.__getitem__, help=SETTING_HELP, label_visibility="collapsed",
    )  # fmt: skip
    if (options := options_popover(key(kind, ""), line)) is not None:
        with options:
            _options(kind)
    if line.button("Train an explainer for this model", key=key(kind, "guide")):
        open_guide(str(st.session_state[key(kind, "teacher")]))


def _options(kind: str) -> None:
    """Draw the rarely changed controls: precomputed plans, train sizes, seeds, base and recipe."""
    _precomputed_buttons(kind)
    st.button(
        "Select all settings", key=key(kind, "set.all"), type="tertiary",
        on_click=partial(put, kind, "settings", list(SETTINGS)),
    )  # fmt: skip
    sizes, seeds = st.columns(2, gap="small")
    sizes.text_input("Train sizes", key=key(kind, "sizes"), help=SIZES_HELP, persist_state=PERSIST)
    seeds.text_input("Seeds", key=key(kind, "seeds"), help=SEEDS_HELP, persist_state=PERSIST)
    base, split = st.columns(2, gap="small")
    with base:
        bases = ["", *BASES, *(embedded_bases() if kind == "text" else [])]
        _name_box("Base", kind, "base", bases, BASE_HELP, BASE_OWN)
    split.text_input("Split", key=key(kind, "split"), placeholder="train", persist_state=PERSIST, help=SPLIT_HELP)
    st.caption(RECIPE)
    field_widgets(Recipe, key(kind, PREFIX), PERSIST)


def _precomputed_buttons(kind: str) -> None:
    """Draw a button for each precomputed plan except the one shown."""
    shown = tuple(st.session_state[key(kind, name)] for name in ("teacher", "data"))
    with st.container(horizontal=True, gap="small", vertical_alignment="center"):
        st.caption("Precomputed:", width="content")
        for task, title in TASKS.items():
            one = state_of(OPENING_PLANS[task], "image" if task == "image" else "text")
            if (one.teacher, one.data) != shown:
                st.button(
                    f"{title}, {one.teacher}", key=key(kind, f"task.{one.teacher}"), type="tertiary",
                    on_click=turn_to, args=(one,),
                    help=f"Open the precomputed students of {one.teacher} on {one.data}.",
                )  # fmt: skip


def _name_box(label: str, kind: str, name: str, names: Sequence[str], help: str, empty: str = "") -> None:
    """Draw a select box of names that also accepts a typed name. `empty`: label of the empty name."""
    widget = key(kind, name)
    chosen = model_name(str(st.session_state[widget] or ""))
    options = list(dict.fromkeys([*names, *([chosen] if chosen else [])]))
    label_of: Callable[[str], str] = model_label
    if name == "teacher":
        label_of = labels = label_models(options, kind, str(st.session_state[key(kind, "data")] or ""))
        options = sort_by_task(options, labels.misfits)
        renew_models(widget, labels)
    st.selectbox(
        label, options, key=widget, accept_new_options=True, help=help,
        persist_state=PERSIST, format_func=lambda one: label_of(one) if one else empty,
    )  # fmt: skip


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
    """Return the data set that the model's card names as its training data, or else one of its task.

    If no data set fits, return the one that the page opens with.
    """
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
    """Describe the number of students, their train and test sizes, and the maximum training time."""
    students = (
        f"{count(len(plan.students), 'student')}, each trained on {count(plan.train_sizes[0], 'example')} and tested "
        f"on {plan.recipe.test:,}."
    )
    if not missing:
        return f"{students} They are already trained."
    return f"{students} **At most {rough_duration(seconds)} on this machine**; you can stop and continue at any time."
