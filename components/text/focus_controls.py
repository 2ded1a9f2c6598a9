"""The one place where model, data set and example are chosen: the same on every page, and carried over between them."""

from __future__ import annotations

import random
from collections.abc import Mapping

import streamlit as st

from components import stale_choices
from components.kept import KEPT
from components.looking import Looking
from components.text.focus import NAMES, Focus
from components.text.open_data import DATA, OpenData, open_data
from components.trouble import say_error
from engine.data.sources import list_datasets

WIDGETS = "focus."
"""Every widget that chooses what is looked at has a key that starts so."""
CARRIED = "focus_link"
LOOKING = Looking(WIDGETS, CARRIED, NAMES)
key, value, carried, carry, turn_to, focus_of = (
    LOOKING.key, LOOKING.value, LOOKING.carried, LOOKING.carry, LOOKING.turn_to, LOOKING.focus_of
)  # fmt: skip

DATA_HELP = "A name, a file (JSONL, CSV, TSV, parquet), or hub:owner/name."


def data_name(link: Mapping[str, list[str]]) -> str:
    """The data set that the control names, else the link."""
    chosen = value("data")
    return str(chosen).strip() if chosen else (link.get("data") or [DATA])[-1]


def fill(focus: Focus, opened: OpenData) -> None:
    """Gives the controls that have no value yet theirs."""
    values: dict[str, object] = {
        "model": focus.model or None,
        "data": focus.data,
        "index": focus.index,
        "text": focus.text,
        "has_pair": focus.pair is not None,
        "pair": focus.pair or "",
    }
    for name, initial in values.items():
        st.session_state.setdefault(key(name), initial)
    if _of_data(opened) is None:
        st.session_state[key("index")] = None


def from_widgets(opened: OpenData) -> Focus:
    """What the controls now show."""
    pair = str(value("pair") or "") if value("has_pair") else None
    return Focus(
        str(value("model") or "").strip(), str(value("text") or ""), pair, _of_data(opened, pair=pair), opened.asked
    )


def show(opened: OpenData, index: int) -> None:
    """Looks at an example of the data set, which is thereby chosen: in a callback, or before the controls are drawn."""
    example = opened.data[index].example
    values = {"data": opened.name, "index": index, "text": example.text, "has_pair": example.text_pair is not None}
    for name, new in (values | {"pair": example.text_pair or ""}).items():
        LOOKING.put(name, new)


def focus_controls(models: list[str], opened: OpenData) -> None:
    """Which model looks at which example: a place in a data set, whose text can be edited at will, or own texts."""
    model, data, example = st.columns([5, 5, 6], gap="small", vertical_alignment="bottom")
    with model:
        LOOKING.model_control(models)
    with data:
        _data_control()
    with example.container(horizontal=True, gap="small", vertical_alignment="bottom"):
        _example_controls(opened)
    _say_trouble(opened)


def example_focus(opened: OpenData) -> None:
    """The same for a page on which several models look at one example."""
    data, example = st.columns([5, 6], gap="small", vertical_alignment="bottom")
    with data:
        _data_control()
    with example.container(horizontal=True, gap="small", vertical_alignment="bottom"):
        _example_controls(opened)
    _say_trouble(opened)


def _data_control() -> None:
    LOOKING.data_control(list_datasets("text"), DATA_HELP, _first_of_data)


def _say_trouble(opened: OpenData) -> None:
    if opened.trouble:
        say_error(opened.trouble)


def text_controls() -> None:
    """The text that is read, and a second one for models of pairs."""
    st.text_area(
        "Text", key=key("text"), height=90, placeholder="Type a text, or pick an example above.", persist_state=KEPT
    )
    if st.toggle("Second text, for models that read pairs", key=key("has_pair"), persist_state=KEPT):
        st.text_area("Second text", key=key("pair"), height=68, persist_state=KEPT)


def _example_controls(opened: OpenData) -> None:
    last = len(opened.data) - 1
    st.number_input(
        f"Example, 0 to {last:,}", 0, last, key=key("index"), step=1, placeholder="own text", width="stretch",
        help="The place in the data set. Empty: your own text.", on_change=_take_example, args=(opened,),
        persist_state=KEPT,
    )  # fmt: skip
    st.button("Random", key=key("random"), help="An example by chance", on_click=_take_any, args=(opened,))


def _of_data(opened: OpenData, pair: str | None = None) -> int | None:
    """The place of the example while the texts are still its own."""
    index = value("index")
    if not isinstance(index, int) or not 0 <= index < len(opened.data):
        return None
    example = opened.data[index]
    pair = (str(value("pair") or "") if value("has_pair") else None) if pair is None else pair
    return index if (example.text, example.text_pair) == (value("text"), pair) else None


def _take_example(opened: OpenData) -> None:
    stale_choices.restore_controls()
    index = value("index")
    if isinstance(index, int):
        show(opened, index)


def _take_any(opened: OpenData) -> None:
    show(opened, random.randrange(len(opened.data)))


def _first_of_data() -> None:
    stale_choices.restore_controls()
    opened = open_data(data_name({}))
    if not opened.trouble:
        show(opened, 0)
