"""The query bar next to the title of each page: a button that opens a popover, which reruns without the page."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import streamlit as st

from components.errors import describe_error, error_html, escape_label
from components.inputs import picture_choice, text_choice
from components.links import Query, last_values, read_text
from components.navigation import PageEntry
from components.state import last_selection
from components.styles import use_sheet
from engine.lazy import LazyModule

if TYPE_CHECKING:
    from components.ask import links
    from engine import query
    from engine.query import QueryContext
else:  # only an open bar needs the states of all pages and the names of all models
    links, query = LazyModule("components.ask.links"), LazyModule("engine.query")

KEY, OPEN, QUESTION = "ask_bar", "ask_open", "ask_question"
PLACEHOLDER = "most important words for positive in example 3"
HELP = "Ask in plain English. Nothing leaves this machine, and no language model is involved."


def ask_bar(entry: PageEntry) -> None:
    """Draw the bar of a page, unless the page stands alone."""
    if not entry.alone:
        use_sheet("ask")
        with st.container(key="ask_place"), st.container(key=KEY):
            _draw_bar(entry)


@st.fragment
def _draw_bar(here: PageEntry) -> None:
    popover = st.popover("Ask", icon=":material/search:", key=OPEN, on_change="rerun")
    if popover.open:
        with popover:
            _draw_question(here)


def _draw_question(here: PageEntry) -> None:
    typed = st.session_state.get(QUESTION)
    options = dict.fromkeys((*query.sample_sentences(), *([typed] if typed else ())))
    question = st.selectbox(
        "Question", list(options), index=None, key=QUESTION, accept_new_options=True, placeholder=PLACEHOLDER,
        help=HELP,
    )  # fmt: skip
    if not question:
        st.caption("Type a question, or pick one of the list, and press Enter.")
        return
    try:
        shown = context()
        asked = query.complete(query.parse(question), shown)
        commands, (entry, link) = query.commands_of(asked), links.page_of(asked)
    except query.NotUnderstood as error:
        _draw_nearest(error.reason, error.nearest)
    except Exception as error:
        st.html(error_html(describe_error(error)))
    else:
        title, sentence = query.OPERATIONS[asked.operation].title, query.sentence_of(asked)
        st.markdown(f"**{title}:** {escape_label(sentence)}")
        for note in query.notes_of(asked, shown):
            st.caption(escape_label(note))
        if st.button(f"Open {entry.title}", key=f"{KEY}_go", icon=":material/arrow_forward:"):
            _open(entry, link, here)
        for command in commands:
            st.code(command.line, language="bash", wrap_lines=True)


def _open(entry: PageEntry, link: Query, here: PageEntry) -> None:
    """Open the link. The current page is rerun instead: a switch to it would not write the link to the address."""
    if entry is here:
        st.query_params.from_dict(link)
        st.rerun()
    st.switch_page(entry.path, query_params=link)


def _draw_nearest(reason: str, nearest: tuple[str, ...]) -> None:
    """Draw the reason why a question was not understood, and buttons for the nearest questions."""
    st.html(error_html(f"Not understood. {reason}"))
    with st.container(gap=None):
        st.caption("Nearest questions")
        for place, sentence in enumerate(nearest):
            label, key = escape_label(sentence), f"{KEY}_near_{place}"
            st.button(label, key=key, type="tertiary", on_click=_take, args=(sentence,))


def _take(sentence: str) -> None:
    st.session_state[QUESTION] = sentence


def context() -> QueryContext:
    """Return the context of a question: the model, data set and example that the session showed last."""
    selections = (text_choice.SELECTION, picture_choice.SELECTION)
    link = next((one.carried() for one in selections if one.link == last_selection()), {})
    return context_of(last_values(link))


def context_of(last: Mapping[str, str]) -> QueryContext:
    """Return the context of a selection. `last`: the last value of each field of its link."""
    start = query.QueryContext()
    index = last.get("index", "0" if last.get("data") else "")
    return query.QueryContext(
        model=last.get("model") or start.model,
        dataset=last.get("data", ""),
        example=int(index) if index.isdecimal() else None,
        text=read_text(last, "text", []),
        text_pair=read_text(last, "pair", []),
        token=last.get("target_token") or None,
        contrast=last.get("contrast") or None,
        chat=last.get("chat") == "on",
    )
