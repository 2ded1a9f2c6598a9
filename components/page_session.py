"""A page of maps between runs: a link fills its widgets, they write the link, a page change keeps both."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import streamlit as st

from components import stale_choices
from components.browse.listing import Listing
from components.frame import visit
from components.inputs.link import Query
from components.looking import Looking
from components.page_state import Offered, PageState
from components.request_link import Params, differing
from components.stale_choices import query
from engine.params import as_plain, from_mapping
from engine.registry import Explainer


@dataclass(frozen=True)
class PageSession:
    """One page's widgets and link.

    `belonging`: what a link says of one example and of no other, so that it goes when another page has moved on.
    """

    page: str
    looking: Looking
    belonging: Collection[str]

    @property
    def widgets(self) -> str:
        """Every widget of the page that does not choose what is looked at has a key that starts so."""
        return f"{self.page}_page."

    def key(self, name: str) -> str:
        """The widget key of a control."""
        return self.widgets + name

    def value(self, name: str) -> Any:
        """What a control holds; None before it is drawn."""
        return st.session_state.get(self.key(name))

    def put(self, name: str, new: object) -> None:
        """Sets a control before it is drawn."""
        stale_choices.set_control(self.key(name), new)

    def follow(self) -> tuple[Query, bool]:
        """The link that the page now shows, and whether it was just opened; then no widget has a value yet."""
        asked = query()
        is_stale = self._is_stale(asked)
        changed = bool(asked and asked != st.session_state.get(self._seen)) and not is_stale
        fresh = self._kept not in st.session_state or changed
        if fresh:
            stale_choices.clear()
            self.clear()
            st.session_state[self._kept] = asked or self.looking.carried()
            # At once: a run that a click cuts short never comes to `save`.
            self.looking.carry(st.session_state[self._kept])
        elif self.looking.carried() != self.looking.focus_of(st.session_state[self._kept]):
            self.clear()
            st.session_state[self._kept] = self._moved(st.session_state[self._kept], self.looking.carried())
        stale_choices.restore_controls()
        if not is_stale:
            st.session_state[self._seen], st.session_state[self._before] = asked, (visit(), [])
        return st.session_state[self._kept], fresh

    def tell(self, said: Sequence[str], fresh: bool) -> list[str]:
        """What was wrong in the link: said from when it was opened until the page shows something else."""
        if fresh:
            st.session_state[self._said] = list(said)
        return list(st.session_state[self._said])

    def correct(self, link: Query, said: Sequence[str]) -> None:
        """Remembers this link instead of one that asked for what is not there, and what is said of that."""
        st.session_state[self._said] = [*st.session_state[self._said], *said]
        st.session_state[self._kept] = link

    def save(self, link: Query, changed: bool) -> None:
        """Remembers what the page shows and puts it into the address, unless the address says it already."""
        if changed:
            st.session_state[self._kept], st.session_state[self._said] = link, []
        kept: Query = st.session_state[self._kept]
        self.looking.carry(kept)
        if kept != (asked := query()):
            st.session_state[self._before][1].append(asked)
            st.query_params.from_dict(kept)
            st.session_state[self._seen] = query()
        stale_choices.link_sent(kept)

    def fill(self, values: Mapping[str, object]) -> None:
        """Gives the controls that have no value yet theirs."""
        for name, initial in values.items():
            st.session_state.setdefault(self.key(name), initial)

    def fill_shared(self, state: PageState, methods: Mapping[str, Explainer], offered: Offered) -> None:
        """The same for the controls of what the states of all pages hold alike."""
        self.fill(
            {
                "methods": list(state.methods),
                "target": state.target or "",
                "seed": state.seed,
                "pins": list(state.pins),
                "question": state.question,
                "removal": state.removal,
                "measure": state.measure,
                **fields_of("browse.", state.browse),
                **{f"open.{name}": name in state.opened for name in offered.sections},
            }
        )
        self.fill_params(state.params, methods)

    def fill_params(self, params: Params, methods: Mapping[str, Explainer]) -> None:
        """The same for parameters of methods."""
        for id, given in params.items():
            chosen = as_plain(from_mapping(methods[id].params, given, id))
            self.fill({f"{id}.{name}": chosen[name] for name in given})

    def shared(self, methods: Mapping[str, Explainer], offered: Offered) -> dict[str, Any]:
        """The fields of `PageState` as the controls now show them."""
        return {
            "methods": tuple(self.value("methods")),
            "target": self.value("target") or None,
            "seed": int(self.value("seed")),
            "pins": tuple(self.value("pins") or ()),
            "browse": self.held("browse.", Listing),
            "opened": tuple(name for name in offered.sections if self.value(f"open.{name}")),
            "question": self.value("question"),
            "removal": self.value("removal"),
            "measure": self.value("measure"),
            "params": self.params(methods),
        }

    def params(self, methods: Mapping[str, Explainer]) -> Params:
        """The parameters of the chosen methods that differ from their defaults."""
        chosen: Params = {}
        for id in self.value("methods"):
            names = as_plain(methods[id].params())
            held = {name: self.value(f"{id}.{name}") for name in names if self.key(f"{id}.{name}") in st.session_state}
            if changed := differing(methods[id], held):
                chosen[id] = changed
        return chosen

    def held(self, prefix: str, kind: type) -> Any:
        """A dataclass of what its controls hold; floats as they are written in a link."""
        held = {field.name: self.value(f"{prefix}{field.name}") for field in dataclasses.fields(kind)}
        return kind(**{name: round(one, 2) if isinstance(one, float) else one for name, one in held.items()})

    def clear(self) -> None:
        """Takes every control's value back."""
        for name in [name for name in st.session_state if str(name).startswith((self.widgets, self.looking.widgets))]:
            del st.session_state[name]

    def _moved(self, kept: Query, focus: Query) -> Query:
        """The link of this page, turned to what another page has looked at since."""
        stays = {name: given for name, given in kept.items() if name not in self.looking.focus_of(kept)}
        return {name: given for name, given in stays.items() if name not in self.belonging} | focus

    def _is_stale(self, asked: Query) -> bool:
        """Whether the browser has not heard of the page's last link: it says one of those before, and nobody went back.

        Who came from another page has opened that link.
        """
        there, links = st.session_state.get(self._before, (0, []))
        return asked in links and there == visit() and not stale_choices.is_history()

    @property
    def _kept(self) -> str:
        return f"{self.page}_kept_link"

    @property
    def _seen(self) -> str:
        return f"{self.page}_seen_link"

    @property
    def _before(self) -> str:
        """The visit to the page, and the links that its address had since the browser was last heard."""
        return f"{self.page}_links_before"

    @property
    def _said(self) -> str:
        return f"{self.page}_said"


def fields_of(prefix: str, held: Any) -> dict[str, object]:
    """A dataclass as values of controls: `PageSession.held` reads them back."""
    return {f"{prefix}{field.name}": getattr(held, field.name) for field in dataclasses.fields(held)}
