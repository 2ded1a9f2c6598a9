"""Controls that several pages share, and protection against control values that the browser sends too late.

With each choice the browser sends its address and the values of all its controls. If a choice follows another within a
moment, both are stale: the address is not a link that somebody opened, and values that Python has set since must not be
undone. The address shows when the browser has caught up.
"""

from __future__ import annotations

import dataclasses
import time
import typing
from collections.abc import Callable, Mapping
from typing import Literal

import streamlit as st
from streamlit.delta_generator import DeltaGenerator
from streamlit.runtime.scriptrunner import get_script_run_ctx

from components.links import MOST_SEED, Query, non_default_params
from components.widgets.view_options import LEAST_GAMMA, MOST_GAMMA, SCALES
from engine.registry import Explainer

PERSIST: Literal["session"] = "session"
"""The `persist_state` of a control whose value is part of the link.

Streamlit sends a value that Python has set to the browser only in the run that set it. A control that the browser draws
later, such as one in a popover, starts from its own default and reports it as if it were a choice; a control in a
closed section falls back to the value of its first run. A persistent value is sent in each run until the browser
reports it, so no choice is overwritten, and the value survives while it is hidden.
"""
Key = Callable[[str], str]
"""Function from the name of a control to its widget key on a page."""
SET = "stale_choices_set"
"""Session key: the controls that Python has set, each with its value before and after."""
SENT = "stale_choices_sent"
"""Session key: the link sent to the browser with these values, and the time; absent until it is sent."""
ENDED, ENDED_BEFORE = "stale_choices_ended", "stale_choices_ended_before"
"""Session keys: end time of the page's last run, absent during a run or after an interrupted one; and its value when
the current run began."""
Persists = Literal["page", "session"]
PARAMETER_WIDTH = 190
"""Width in pixels of a widget in a row of several."""
DRAWN_SECONDS = 1.0
"""Time that a browser may take to draw the controls after the end of the run that changed its address."""


def address_query() -> Query:
    """Return the query parameters of the address."""
    return {name: st.query_params.get_all(name) for name in st.query_params}


def is_history_navigation() -> bool:
    """Whether the address was opened by the browser's back or forward button."""
    context = get_script_run_ctx()
    return context is not None and context.is_history_navigation


def set_control(key: str, new: object) -> None:
    """Set a control, in a callback or before it is drawn."""
    before = st.session_state.get(key)
    st.session_state[key] = new
    changes = st.session_state.setdefault(SET, {})
    if before != new:
        changes[key] = (before, new)
        st.session_state.pop(SENT, None)
    elif key in changes and changes[key][1] != new:
        del changes[key]  # the person has chosen another value since


def record_link(link: Mapping[str, list[str]]) -> None:
    """Record that the browser is sent this link, together with all values set before."""
    if st.session_state.get(SENT, (None,))[0] != link:
        st.session_state[SENT] = (dict(link), time.monotonic())


def begin_run() -> None:
    """Record the start of a run of the page."""
    st.session_state[ENDED_BEFORE] = st.session_state.pop(ENDED, 0.0)


def end_run() -> None:
    """Record that a run has drawn the whole page."""
    st.session_state[ENDED] = time.monotonic()


def restore_controls() -> None:
    """Restore the controls that a stale choice has reset. In a callback, call this before reading their values."""
    link, since = st.session_state.get(SENT, (None, 0.0))
    ended = st.session_state.get(ENDED, st.session_state.get(ENDED_BEFORE, since))
    if link == address_query() and ended >= since and time.monotonic() - ended > DRAWN_SECONDS:
        forget_changes()
    for key, (before, new) in st.session_state.get(SET, {}).items():
        if st.session_state.get(key) == before:
            st.session_state[key] = new


def forget_changes() -> None:
    """Forget the recorded values: the browser has caught up, or shows another link."""
    for name in (SET, SENT):
        st.session_state.pop(name, None)


def options_popover(prefix: str, line: DeltaGenerator) -> DeltaGenerator | None:
    """Draw the button that opens the rare controls. Return their container, or None while they must not be drawn.

    For controls in a closed popover the browser keeps sending the values from when it was last open. These would undo
    values that Python has set since, for example from a link or another run. `prefix`: prefix of the widget keys. The
    button of the list of all methods closes the popover and needs the controls for one more run, to open the list.
    """
    popover = line.popover("Options", key=f"{prefix}options", icon=":material/tune:", on_change="rerun")
    return popover if popover.open or st.session_state.get(f"{prefix}all") else None


def seed_input(key: Key, width: int) -> None:
    """Draw the seed control; `width` in pixels."""
    st.number_input(
        "Seed", 0, MOST_SEED, key=key("seed"), step=1, width=width, persist_state=PERSIST,
        help="For the methods that draw at random.",
    )  # fmt: skip


def gamma_slider(key: Key, parts: str) -> None:
    """Draw the slider of gamma, the exponent of a score's share of the scale. `parts`: plural noun for the units."""
    st.slider(
        "Gamma", LEAST_GAMMA, MOST_GAMMA, key=key("gamma"), step=0.1, persist_state=PERSIST,
        help=f"The color is this power of the score's share of the scale: 1 is linear, less reveals weak {parts}.",
    )  # fmt: skip


def scale_choice(key: Key, apart: str) -> None:
    """Draw the choice between one scale per map and one scale for all maps of the same unit.

    `apart`: sentence on the maps that always have their own scale.
    """
    st.segmented_control(
        "Scale", SCALES, key=key("scale"), required=True, format_func=str.capitalize, persist_state=PERSIST,
        help="Shared: one scale for the maps that have the same unit. Logits, probabilities, sensitivities and "
        f"attention are different units, so they never share one; {apart}.",
    )  # fmt: skip


def has_parameters(method: Explainer) -> bool:
    """Whether the method has parameters."""
    return bool(dataclasses.fields(method.params))


def parameter_widgets(method: Explainer, prefix: str) -> None:
    """Draw a widget for each parameter; its key is `prefix` plus its name in a link. Hidden ones keep their values."""
    field_widgets(method.params, f"{prefix}{method.id}.")


def field_widgets(params: type, prefix: str, persists: Persists = "page") -> None:
    """Draw a widget for each field of a params dataclass; its key is `prefix` plus the name of the field."""
    hints = typing.get_type_hints(params)
    with st.container(horizontal=True, gap="small", vertical_alignment="bottom"):
        for field in dataclasses.fields(params):
            option_widget(field, hints[field.name], f"{prefix}{field.name}", persists)


def current_parameters(method: Explainer, prefix: str) -> dict[str, object]:
    """Return the values of the parameter widgets, visible or hidden."""
    keys = {field.name: _parameter_key(method, field, prefix) for field in dataclasses.fields(method.params)}
    return {name: st.session_state[key] for name, key in keys.items() if key in st.session_state}


def changed_parameters(method: Explainer, prefix: str) -> dict[str, str]:
    """Return the parameters that differ from their defaults, as strings."""
    return non_default_params(method, current_parameters(method, prefix))


def reset_parameters(method: Explainer, prefix: str) -> None:
    """Reset the parameters to their defaults, in a callback or before the widgets are drawn."""
    for field in dataclasses.fields(method.params):
        st.session_state[_parameter_key(method, field, prefix)] = field.default


def _parameter_key(method: Explainer, field: dataclasses.Field, prefix: str) -> str:
    return f"{prefix}{method.id}.{field.name}"


def option_widget(
    field: dataclasses.Field,
    hint: object,
    key: str,
    persists: Persists,
    width: int | Literal["stretch"] = PARAMETER_WIDTH,
) -> None:
    """Draw the widget of an option. Its title, help, bounds and choices come from the field's metadata.

    The metadata of a plan's option may also have a `label`, a help text `about` it on the page, the `most` that the
    page accepts, `titles` of its choices and a `placeholder`.
    """
    meta, kind = field.metadata, _number_or_text(hint)
    label, help = meta.get("label") or _option_label(field.name), meta.get("about", meta["help"]) or None
    st.session_state.setdefault(key, field.default)
    if meta["choices"] and typing.get_origin(hint) is tuple:
        titles = meta.get("titles", {})
        st.multiselect(
            label, meta["choices"], key=key, help=help, format_func=lambda one: titles.get(one, one), wrap=True,
            placeholder=meta.get("placeholder", "Choose some"), persist_state=persists,
        )  # fmt: skip
    elif meta["choices"]:
        st.selectbox(label, meta["choices"], key=key, help=help, width=width, persist_state=persists)
    elif kind is bool:
        st.checkbox(label, key=key, help=help, persist_state=persists)
    elif type(None) in typing.get_args(hint):
        help = help if "about" in meta else f"{help} (empty: none)"
        st.text_input(
            label, key=key, help=help, width=width, placeholder=meta.get("placeholder"), persist_state=persists
        )  # fmt: skip
    elif kind in (int, float):
        high = meta.get("most", meta["high"])
        low, high = (None if bound is None else kind(bound) for bound in (meta["low"], high))
        shape = "%d" if kind is int else "%g"
        step = _number_step(kind, low, high, field.default)
        st.number_input(
            label, low, high, key=key, help=help, format=shape, step=step, width=width, persist_state=persists
        )  # fmt: skip
    else:
        st.text_input(label, key=key, help=help, width=width, persist_state=persists)


def _number_step(kind: type, low: int | float | None, high: int | float | None, default: object) -> int | float:
    if kind is int:
        return 1
    if low is not None and high is not None and high - low <= 2:
        return 0.05
    # A rate has no upper bound, so its step is a fifth of the default.
    return default / 5 if high is None and isinstance(default, float) and 0 < default < 1 else 1.0


def _option_label(name: str) -> str:
    words = "number of " + name.removeprefix("n_") if name.startswith("n_") else name
    return words.replace("_", " ").capitalize()


def _number_or_text(hint: object) -> type:
    """Return the type of a parameter, without None if it is optional."""
    members = typing.get_args(hint) or (hint,)
    return next(kind for kind in members if isinstance(kind, type) and kind is not type(None))
