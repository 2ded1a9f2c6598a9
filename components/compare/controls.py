"""The controls of the Compare page: the example, the columns, the class that is explained, and how maps are shown."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from components.browse.examples import neighbors
from components.compare.comparison import Methods, column_names
from components.compare.state import (
    HAS_OTHER,
    LAYOUTS,
    OTHER,
    PERCENTS,
    SCALES,
    SHOWN,
    UNITS,
    VIEW,
    CompareState,
    key,
    pin,
    put_columns,
    put_other,
    remembered_labels,
)
from components.controls import (
    PERSIST,
    changed_parameters,
    gamma_slider,
    has_parameters,
    options_popover,
    parameter_widgets,
    seed_input,
)
from components.errors import escape_label
from components.inputs import picture_choice, text_choice
from components.inputs.choices import CHOICES, Opened
from components.inputs.datasets import OpenTexts, label_models, sort_by_task
from components.inputs.imported_maps import methods_for_input
from components.inputs.next_token import draw_token_pickers
from components.prediction import PREDICTED, PROBE
from components.state import MODEL_HELP, renew_models
from components.widgets.patch_map import MOST_OPACITY
from engine.comparison.agreement import ORDERS
from engine.comparison.plan import MOST, ModelMethodPair, sorted_params
from engine.models.summary import chance_note, fitting_model
from engine.next_token import is_causal
from engine.params import from_mapping
from engine.registry import Explainer
from engine.request import Prompt

ADD = "Add a column"
FULL_HELP = f"At most {MOST} columns: remove one first."
PIN, UNPIN = "Pin as the reference", "Unpin"
UNIT_TITLES = {"word": "Words", "token": "Tokens", "sentence": "Sentences", "turn": "Turns"}
LAYOUT_TITLES = {"both": "Text and table", "table": "Table", "text": "Text"}
SHOWN_TITLES = {"scores": "Scores", "difference": "Difference", "moves": "Rank changes"}
ORDER_TITLES = {"size": "Absolute value", "sign": "With sign"}
PINS_FIRST = "Both need a reference: open a column above and pin it."
UNIT_HELP = (
    "Words: the scores of a word's tokens are summed. Tokens: where tokenizers split the text differently, "
    "overlapping tokens are merged. Sentences and turns: summed as words are."
)
SHOWN_HELP = (
    "Difference: how much larger (+) or smaller (−) each part's share of the map is than in the reference. Rank "
    f"changes: how many ranks higher (↑) or lower (↓) each part is. {PINS_FIRST}"
)
SCALE_HELP = (
    "Own: each map's largest score has the full color. Common: each score is divided by the sum of the absolute scores "
    "of its map, so that one scale fits methods with different units."
)
ORDER_HELP = (
    "How parts are ranked when maps are compared. With sign, as on Evaluate: a part with a strong negative score ranks "
    "last. Absolute value: it ranks high."
)


def example_controls(source: Opened, line: DeltaGenerator, columns: Sequence[ModelMethodPair]) -> None:
    """Draw the choice of the text or picture of all columns. `line`: container for the buttons Previous and Next."""
    models = dict.fromkeys(pair.model for pair in columns)
    if not isinstance(source, OpenTexts):
        picture_choice.draw_example_controls(source, models)
        return
    text_choice.draw_example_controls(source, models)
    if not source.error:
        focus = text_choice.read_controls(source)
        with line:
            _step_buttons(source, focus.index)
    text_choice.draw_text_fields()
    _other_text_controls()


def _other_text_controls() -> None:
    """Draw the switch for another text or prompt, and its field."""
    noun = "prompt" if is_causal(str(text_choice.value("model") or "")) else "text"
    has_other, other = key("text", HAS_OTHER), key("text", OTHER)
    st.toggle(
        f"Compare with another {noun}", key=has_other, persist_state=PERSIST, on_change=_start_other,
        help=f"Every column explains the same class in both {noun}s. The maps are aligned by what the {noun}s share.",
    )  # fmt: skip
    if st.session_state[has_other]:
        st.text_area(f"Other {noun}", key=other, height=68, persist_state=PERSIST)


def _start_other() -> None:
    """Start with a copy of the current text, which can then be changed."""
    if not st.session_state.get(key("text", OTHER)):
        put_other(str(text_choice.value("text") or ""))


def _step_buttons(source: OpenTexts, index: int | None) -> None:
    """Draw the buttons to the previous and the next example."""
    before, after = neighbors(range(len(source.data)), index)
    for label, icon, to in (
        ("Previous", ":material/arrow_back:", before), ("Next", ":material/arrow_forward:", after),
    ):  # fmt: skip
        st.button(
            label, key=key("text", f"step.{label}"), icon=icon, disabled=to is None,
            on_click=text_choice.show, args=(source, to),
        )  # fmt: skip


def column_controls(state: CompareState, methods: Methods, models: Sequence[str]) -> None:
    """Draw one button per column that opens its controls, then the buttons that add a column."""
    full = len(state.columns) >= MOST
    with st.container(
        horizontal=True, gap="small", vertical_alignment="bottom", key=key(state.kind, "column_controls")
    ):
        for place, (pair, name) in enumerate(zip(state.columns, column_names(state.columns, methods), strict=True)):
            pinned = state.pinned == place
            icon = ":material/push_pin:" if pinned else None
            with st.popover(escape_label(name), icon=icon, key=key(state.kind, f"column.{place}")):
                _edit_column(state, place, pair, methods, models)
        with st.popover(ADD, icon=":material/add:", type="primary", disabled=full, help=FULL_HELP if full else None):
            _add_column(state, methods, models)
        _random_button(state, full)
        _model_button(state, models, full)


def _model_button(state: CompareState, models: Sequence[str], full: bool) -> None:
    """If all columns have the same model, draw a button that adds a column with another model for the data set."""
    if not state.columns or len({pair.model for pair in state.columns}) > 1:
        return
    first = state.columns[0]
    misfits = label_models(models, state.kind, state.focus.data).misfits
    alike = [model for model in models if is_causal(model) == is_causal(first.model)]
    fitting = [model for model in alike if model != first.model and model not in misfits]
    others = [model for model in fitting if not chance_note(model, state.focus.data)]
    if other := fitting_model(others, state.focus.data):
        added = ModelMethodPair(other, first.method)
        st.button(
            f"Add {escape_label(other)}", key=key(state.kind, "add_model"), disabled=full, on_click=_put_pairs,
            args=(state, [*state.columns, added]), help="The method of the first column on another model.",
        )  # fmt: skip


def _random_button(state: CompareState, full: bool) -> None:
    """Draw a button that adds the baseline of random scores."""
    model = state.columns[0].model if state.columns else state.focus.model
    baseline = ModelMethodPair(model, PROBE)
    if model and baseline not in state.columns:
        st.button(
            "Add Random", key=key(state.kind, "add_random"), disabled=full, on_click=_put_pairs,
            args=(state, [*state.columns, baseline]),
            help="A baseline of random scores: two maps that agree no better than with it are unrelated.",
        )  # fmt: skip


def _edit_column(
    state: CompareState, place: int, pair: ModelMethodPair, methods: Methods, models: Sequence[str]
) -> None:
    kind, name = state.kind, f"column.{place}"
    with st.container(horizontal=True, gap="small"):
        if state.pinned == place:
            st.button(UNPIN, key=key(kind, f"{name}.pin"), icon=":material/push_pin:", on_click=pin, args=(kind, None))
        else:
            st.button(
                PIN, key=key(kind, f"{name}.pin"), icon=":material/push_pin:", on_click=pin, args=(kind, pair),
                help="Each other column then shows its agreement with this one.",
            )  # fmt: skip
        _move_button(state, place, "Move left", place - 1)
        _move_button(state, place, "Move right", place + 1)
        others = [other for other in state.columns if other != pair]
        st.button(
            "Remove", key=key(kind, f"{name}.remove"), icon=":material/close:", on_click=_put_pairs,
            args=(state, others),
        )  # fmt: skip

    def change(changed: ModelMethodPair) -> list[ModelMethodPair]:
        return [changed if other == pair else other for other in state.columns]

    _pair_editor(state, f"change.{place}.{pair.code}.", pair, methods, models, "Change the column", change)


def _move_button(state: CompareState, place: int, label: str, to: int) -> None:
    moved = list(state.columns)
    if 0 <= to < len(moved):
        moved[place], moved[to] = moved[to], moved[place]
        st.button(label, key=key(state.kind, f"column.{place}.{label}"), on_click=_put_pairs, args=(state, moved))


def _add_column(state: CompareState, methods: Methods, models: Sequence[str]) -> None:
    last = state.columns[-1].model if state.columns else state.focus.model
    free = [id for id in methods if ModelMethodPair(last, id) not in state.columns]
    start = ModelMethodPair(last, free[0] if free else next(iter(methods)))
    _pair_editor(
        state, f"add.{len(state.columns)}.", start, methods, models, "Add", lambda changed: [*state.columns, changed]
    )


def _pair_editor(
    state: CompareState,
    prefix: str,
    start: ModelMethodPair,
    methods: Methods,
    models: Sequence[str],
    label: str,
    change: Callable[[ModelMethodPair], list[ModelMethodPair]],
) -> None:
    """Draw the choice of a model, a method and its parameters, and a button that applies it.

    `change`: returns the new columns.
    """
    name = key(state.kind, prefix)
    for part, value in {"model": start.model or None, "method": start.method}.items():
        st.session_state.setdefault(f"{name}{part}", value)
    for parameter, value in start.params:
        _start_parameter(methods[start.method], f"{name}{start.method}.{parameter}", parameter, value)
    options = [one for one in dict.fromkeys([*models, *(pair.model for pair in state.columns), start.model]) if one]
    labels = label_models(options, state.kind, state.focus.data)
    renew_models(f"{name}model", labels)
    model = st.selectbox(
        "Model", sort_by_task(options, labels.misfits), key=f"{name}model", accept_new_options=True, help=MODEL_HELP,
        format_func=labels,
        placeholder="Pick one, or type a folder or hub ID", persist_state="page",
    )  # fmt: skip
    offered = methods_for_input(methods, {start.method, st.session_state[f"{name}method"]}, state.input)
    method = methods[
        st.selectbox(
            "Method", list(offered), key=f"{name}method", format_func=lambda id: methods[id].title, persist_state="page"
        )
    ]
    if has_parameters(method):
        parameter_widgets(method, name)
    changed = ModelMethodPair(str(model or "").strip(), method.id, sorted_params(changed_parameters(method, name)))
    is_there = changed in state.columns
    st.button(
        label, key=f"{name}done", type="primary", disabled=is_there or not changed.model, on_click=_put_pairs,
        args=(state, change(changed)), help="This column exists already." if is_there else None,
    )  # fmt: skip


def _start_parameter(method: Explainer, key: str, name: str, value: str) -> None:
    st.session_state.setdefault(key, getattr(from_mapping(method.params, {name: value}, method.id), name))


def _put_pairs(state: CompareState, columns: Sequence[ModelMethodPair]) -> None:
    """Set the columns. A reference that was changed stays the reference; one that was removed is dropped."""
    put_columns(state.kind, columns)
    if state.pinned is not None and state.reference not in columns:
        changed = len(columns) == len(state.columns)
        pin(state.kind, columns[state.pinned] if changed else None)


def view_controls(state: CompareState, source: Opened, line: DeltaGenerator) -> None:
    """Draw the rarely used controls: those of the data set, the explained class, and how maps are shown."""
    kind = state.kind
    if (options := options_popover(key(kind, ""), line)) is None:
        return
    with options:
        CHOICES[kind].draw_options(source)
        if isinstance(state.input, Prompt):
            draw_token_pickers(remembered_labels(kind))
        else:
            _class_control(state, remembered_labels(kind))
        _choice(kind, "Show", "shown", SHOWN, SHOWN_TITLES, SHOWN_HELP)
        if kind == "text":
            _choice(kind, "Unit", "unit", UNITS, UNIT_TITLES, UNIT_HELP)
        seed_input(partial(key, kind), 110)
        _more_view_controls(kind)


def _class_control(state: CompareState, labels: Collection[str]) -> None:
    """Draw the choice of the explained class: each model's own prediction, or one label for all models."""
    options = dict.fromkeys([PREDICTED, *labels, state.target or PREDICTED])
    st.selectbox(
        "Explained class",
        list(options),
        key=key(state.kind, "target"),
        persist_state=PERSIST,
        format_func=lambda label: label or "Each model's prediction",
        width=230,
        help="The class that all maps explain. A model without this class has no map.",
    )


def _more_view_controls(kind: str) -> None:
    if kind == "text":
        _choice(
            kind,
            "Layout",
            "layout",
            LAYOUTS,
            LAYOUT_TITLES,
            "Text: each map is the text itself. Table: one row per word or token.",
        )
    _choice(kind, "Scale", "scale", SCALES, {name: name.capitalize() for name in SCALES}, SCALE_HELP)
    gamma_slider(lambda name: key(kind, f"{VIEW}{name}"), "words" if kind == "text" else "patches")
    if kind == "image":
        st.slider(
            "Opacity", 0, MOST_OPACITY, key=key(kind, f"{VIEW}opacity"), step=5, format="%d%%", persist_state=PERSIST,
            help="How strongly a map covers the picture where its score is largest.",
        )  # fmt: skip
    _choice(kind, "Ranking", "order", ORDERS, ORDER_TITLES, ORDER_HELP)
    st.selectbox(
        "Top", PERCENTS, key=key(kind, f"{VIEW}percent"), format_func=lambda percent: f"{percent}%",
        persist_state=PERSIST, help="The share of parts that counts as the top of a map; at least one part.",
    )  # fmt: skip


def _choice(kind: str, label: str, name: str, options: Sequence[str], titles: Mapping[str, str], help: str) -> None:
    st.segmented_control(
        label, options, key=key(kind, f"{VIEW}{name}"), required=True, format_func=titles.__getitem__, help=help,
        persist_state=PERSIST,
    )  # fmt: skip
