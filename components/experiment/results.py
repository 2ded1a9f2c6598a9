"""Parts of an experiment's results that several pages share."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from html import escape
from typing import TypeVar

import streamlit as st

from components.controls import PERSIST
from components.experiment.session import ExperimentSession
from components.experiment.state import ExperimentState

MOST_REASONS = 40
Value = TypeVar("Value", int, str)


def view_select(
    session: ExperimentSession, state: ExperimentState, label: str, name: str, known: Mapping[Value, str], width: int,
    help: str | None = None,
) -> Value:  # fmt: skip
    """A choice of one of these, held in the field of the view of this name; the first where that holds none of them."""
    held = getattr(state.view, name)
    now = held if held in known else next(iter(known))
    widget = session.key(state.kind, f"view.{name}")
    st.session_state[widget] = now
    st.selectbox(
        label, list(known), key=widget, width=width, help=help, format_func=known.__getitem__, persist_state=PERSIST,
        on_change=partial(_take, session, state.kind, name, widget),
    )  # fmt: skip
    return now


def view_pills(
    session: ExperimentSession, state: ExperimentState, label: str, name: str, known: Mapping[str, str],
    help: str | None = None, default: Sequence[str] = (),
) -> None:  # fmt: skip
    """A choice of some of these, behind a button that says how many are chosen.

    `known`: titles by id. `default`: the ones chosen where the view names none of them; all if left out.
    """
    usual = tuple(default) or tuple(known)
    now, widget = select_known(known, getattr(state.view, name), usual), session.key(state.kind, f"view.{name}")
    st.session_state[widget] = list(now)
    with st.popover(f"{label}: {len(now)} of {len(known)}", key=session.key(state.kind, f"{name}_shown")):
        st.pills(
            label, list(known), selection_mode="multi", key=widget, help=help, persist_state=PERSIST,
            format_func=known.__getitem__, on_change=partial(_take, session, state.kind, name, widget, usual),
        )  # fmt: skip


def select_known(known: Iterable[str], wanted: Sequence[str], default: Sequence[str] = ()) -> tuple[str, ...]:
    """The wanted ones that there are, in the order of the known; where there are none, the default ones, or all."""
    each = tuple(known)
    return tuple(one for one in each if one in wanted) or tuple(one for one in each if one in default) or each


def _take(session: ExperimentSession, kind: str, name: str, widget: str, usual: Sequence[str] = ()) -> None:
    """Copy a widget's value to a field of the view: a callback. The usual choice becomes none for short links."""
    value = st.session_state[widget]
    session.put_view(kind, name, [] if isinstance(value, list) and set(value) == set(usual) else value)


def skip_reasons_html(lines: Sequence[tuple[str, str, str]]) -> str:
    """Why something was left out, as a list; of very many reasons the first ones. Everything is escaped.

    `lines`: a reason, how many examples or maps it is of, and by which methods.
    """
    rows = "".join(
        f'<dt>{escape(number)}</dt><dd>{escape(why)} <span class="xg-small">{escape(of)}</span></dd>'
        for why, number, of in lines[:MOST_REASONS]
    )
    rest = len(lines) - MOST_REASONS
    more = f'<p class="xg-small">and {rest:,} more reasons</p>' if rest > 0 else ""
    return f'<div class="xg"><dl class="xg-facts xg-small">{rows}</dl>{more}</div>'
