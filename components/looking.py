"""What chooses what is looked at, between runs: widget keys of its own, and a link that all pages of a kind share."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

import streamlit as st

from components import stale_choices
from components.inputs.link import Query
from components.kept import KEPT

LAST = "looked_at_last"
"""In the session: the `link` of what was looked at last."""


def last_looked() -> str:
    """The `link` of what the session looked at last; empty before it has looked at anything."""
    return str(st.session_state.get(LAST, ""))


@dataclass(frozen=True)
class Looking:
    """`widgets`: how its widget keys start. `link`: where the session remembers it. `names`: its names in a link."""

    widgets: str
    link: str
    names: Collection[str]

    def key(self, name: str) -> str:
        """The widget key of a control."""
        return self.widgets + name

    def value(self, name: str) -> object:
        """What a control holds; None before it is drawn."""
        return st.session_state.get(self.key(name))

    def put(self, name: str, new: object) -> None:
        """Sets a control before it is drawn."""
        stale_choices.set_control(self.key(name), new)

    def carried(self) -> Query:
        """What the session looks at, as a part of a link; empty before it has looked at anything."""
        return st.session_state.get(self.link, {})

    def carry(self, link: Mapping[str, list[str]]) -> None:
        """Remembers what a page looks at, for every other page."""
        st.session_state[self.link] = self.focus_of(link)
        st.session_state[LAST] = self.link

    def turn_to(self, **names: str) -> None:
        """Looks at another model or data set from now on; the rest stays as far as it goes with it."""
        kept = self.carried()
        if "data" in names:
            kept = {name: given for name, given in kept.items() if name == "model"}
        st.session_state[self.link] = kept | {name: [given] for name, given in names.items()}

    def focus_of(self, link: Mapping[str, list[str]]) -> Query:
        """The part of a link that says what is looked at."""
        return {name: list(link[name]) for name in self.names if name in link}

    def model_control(self, known: Collection[str]) -> None:
        """The choice of the model."""
        st.selectbox(
            "Model",
            self.with_chosen(known, "model"),
            key=self.key("model"),
            accept_new_options=True,
            placeholder="Pick one, or type a folder or hub id",
            help="An embedded model, the folder of a saved checkpoint, or a hub id such as owner/name.",
            persist_state=KEPT,
        )

    def data_control(self, known: Collection[str], help: str, on_change: Callable[[], None]) -> None:
        """The choice of the data set."""
        st.selectbox(
            "Data set",
            self.with_chosen(known, "data"),
            key=self.key("data"),
            accept_new_options=True,
            help=help,
            on_change=on_change,
            persist_state=KEPT,
        )

    def with_chosen(self, known: Collection[str], name: str) -> list[str]:
        """The options of a control that takes other values too: the known ones, and the one that it holds."""
        chosen = self.value(name)
        return list(dict.fromkeys([*known, str(chosen)])) if chosen else list(known)
