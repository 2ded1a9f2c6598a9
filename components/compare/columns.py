"""The columns of a comparison: what each is called, and controls that add, change, pin, move and remove them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import streamlit as st

from components.compare.session import key, pin, put_columns
from components.compare.state import LETTERS, CompareState
from components.parameters import changed_parameters, has_parameters, parameters
from components.prediction_area import PROBE
from components.trouble import literal
from engine.comparison.pairs import MOST, Pair, plain_params
from engine.registry import Explainer

Methods = Mapping[str, Explainer]
ADD = "Add a column"
MODEL_HELP = "An embedded model, the folder of a saved checkpoint, or a hub id such as owner/name."
FULL = f"{MOST} columns stand there: remove one first."
PIN, UNPIN = "Pin as the reference", "Unpin"


def title_of(pair: Pair, methods: Methods) -> str:
    """The method with the parameters that were changed."""
    title = methods[pair.method].title
    return f"{title}, {', '.join(f'{name} {value}' for name, value in pair.params)}" if pair.params else title


def model_of(pair: Pair) -> str:
    """The model as people call it: of a folder its name."""
    path = pair.model.rstrip("/")
    return path.rpartition("/")[2] if path.startswith(("/", ".", "~")) else path


def names_of(columns: Sequence[Pair], methods: Methods) -> list[str]:
    """Letter, method and, where they differ, model: no two are equal."""
    several = len({pair.model for pair in columns}) > 1
    return [
        f"{letter} {title_of(pair, methods)}{f' · {model_of(pair)}' if several else ''}"
        for letter, pair in zip(LETTERS, columns, strict=False)
    ]


def column_controls(state: CompareState, methods: Methods, models: Sequence[str]) -> None:
    """A button a column, behind it what can be done with it; then what adds another."""
    full = len(state.columns) >= MOST
    with st.container(
        horizontal=True, gap="small", vertical_alignment="bottom", key=key(state.kind, "column_controls")
    ):
        for place, (pair, name) in enumerate(zip(state.columns, names_of(state.columns, methods), strict=True)):
            pinned = state.pinned == place
            icon = ":material/push_pin:" if pinned else None
            with st.popover(literal(name), icon=icon, key=key(state.kind, f"column.{place}")):
                _column(state, place, pair, methods, models)
        with st.popover(ADD, icon=":material/add:", type="primary", disabled=full, help=FULL if full else None):
            _adder(state, methods, models)
        _random(state, full)


def _random(state: CompareState, full: bool) -> None:
    """The baseline that knows nothing, one click away."""
    model = state.columns[0].model if state.columns else state.focus.model
    baseline = Pair(model, PROBE)
    if model and baseline not in state.columns:
        st.button(
            "Add Random", key=key(state.kind, "add_random"), disabled=full, on_click=_put,
            args=(state, [*state.columns, baseline]),
            help="The baseline that knows nothing: two maps that agree no better than with it say different things.",
        )  # fmt: skip


def _column(state: CompareState, place: int, pair: Pair, methods: Methods, models: Sequence[str]) -> None:
    kind, name = state.kind, f"column.{place}"
    with st.container(horizontal=True, gap="small"):
        if state.pinned == place:
            st.button(UNPIN, key=key(kind, f"{name}.pin"), icon=":material/push_pin:", on_click=pin, args=(kind, None))
        else:
            st.button(
                PIN, key=key(kind, f"{name}.pin"), icon=":material/push_pin:", on_click=pin, args=(kind, pair),
                help="Every other column then shows its agreement with this one.",
            )  # fmt: skip
        _mover(state, place, "Move left", place - 1)
        _mover(state, place, "Move right", place + 1)
        others = [other for other in state.columns if other != pair]
        st.button(
            "Remove", key=key(kind, f"{name}.remove"), icon=":material/close:", on_click=_put, args=(state, others)
        )

    def change(made: Pair) -> list[Pair]:
        return [made if other == pair else other for other in state.columns]

    _editor(state, f"change.{place}.{pair.code}.", pair, methods, models, "Change the column", change)


def _mover(state: CompareState, place: int, label: str, to: int) -> None:
    moved = list(state.columns)
    if 0 <= to < len(moved):
        moved[place], moved[to] = moved[to], moved[place]
        st.button(label, key=key(state.kind, f"column.{place}.{label}"), on_click=_put, args=(state, moved))


def _adder(state: CompareState, methods: Methods, models: Sequence[str]) -> None:
    last = state.columns[-1].model if state.columns else state.focus.model
    free = [id for id in methods if Pair(last, id) not in state.columns]
    start = Pair(last, free[0] if free else next(iter(methods)))
    _editor(state, f"add.{len(state.columns)}.", start, methods, models, "Add", lambda made: [*state.columns, made])


def _editor(
    state: CompareState,
    prefix: str,
    start: Pair,
    methods: Methods,
    models: Sequence[str],
    label: str,
    change: Callable[[Pair], list[Pair]],
) -> None:
    """Model, method and its parameters, and a button that takes them. `change`: what the columns then are."""
    name = key(state.kind, prefix)
    for part, value in {"model": start.model or None, "method": start.method}.items():
        st.session_state.setdefault(f"{name}{part}", value)
    for parameter, value in start.params:
        _start_parameter(methods[start.method], f"{name}{start.method}.{parameter}", parameter, value)
    options = list(dict.fromkeys([*models, *(pair.model for pair in state.columns), start.model]))
    model = st.selectbox(
        "Model", [one for one in options if one], key=f"{name}model", accept_new_options=True, help=MODEL_HELP,
        placeholder="Pick one, or type a folder or hub id", persist_state="page",
    )  # fmt: skip
    method = methods[
        st.selectbox(
            "Method", list(methods), key=f"{name}method", format_func=lambda id: methods[id].title, persist_state="page"
        )
    ]
    if has_parameters(method):
        parameters(method, name)
    made = Pair(str(model or "").strip(), method.id, plain_params(changed_parameters(method, name)))
    there = made in state.columns
    st.button(
        label, key=f"{name}done", type="primary", disabled=there or not made.model, on_click=_put,
        args=(state, change(made)), help="It stands there already." if there else None,
    )  # fmt: skip


def _start_parameter(method: Explainer, key: str, name: str, value: str) -> None:
    from engine.params import from_mapping

    st.session_state.setdefault(key, getattr(from_mapping(method.params, {name: value}, method.id), name))


def _put(state: CompareState, columns: Sequence[Pair]) -> None:
    """Takes the columns; a reference that was changed stays one, and one that is gone is none any more."""
    put_columns(state.kind, columns)
    if state.pinned is not None and state.reference not in columns:
        changed = len(columns) == len(state.columns)
        pin(state.kind, columns[state.pinned] if changed else None)
