"""What a chart of an evaluation is drawn of: its controls, which keep to what there is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import streamlit as st

from components.evaluate.look import LOOK
from components.evaluate.session import key, put
from components.evaluate.state import EvaluateState
from components.kept import KEPT
from engine.metrics.catalog import METRICS

if TYPE_CHECKING:
    from engine.evaluation.result import Evaluation
    from engine.evaluation.views.sizes import Sizes

WIDTH = 280
DRAWN_HELP = "In the charts; the numbers of the others stay as they are. None chosen: all are drawn."


@dataclass(frozen=True)
class Chosen:
    """An evaluation on its page. `titles`: of the methods."""

    state: EvaluateState
    found: Evaluation
    titles: Mapping[str, str]
    sizes: Sizes

    @property
    def drawn(self) -> str:
        """The model that is drawn: the chosen one while there is one of that name, else the first."""
        models = self.found.plan.models
        return self.state.look.model if self.state.look.model in models else models[0]

    @property
    def shown(self) -> tuple[str, ...] | None:
        """The methods that are drawn: the chosen ones that there are; None for all."""
        wanted = tuple(method for method in self.found.plan.company if method in self.state.look.only)
        return wanted or None

    def methods(self) -> None:
        """The control of which methods are drawn, behind a button that says how many are."""
        company, widget = list(self.found.plan.company), key(self.state.kind, "view.only")
        st.session_state[widget] = list(self.shown or company)
        label = f"Methods drawn: {len(self.shown or company)} of {len(company)}"
        with st.popover(label, key=key(self.state.kind, "methods_drawn")):
            st.pills(
                "Methods drawn", company, selection_mode="multi", key=widget, help=DRAWN_HELP, persist_state=KEPT,
                format_func=lambda id: self.titles.get(id, id), on_change=self._take_methods, args=(widget,),
            )  # fmt: skip

    def model(self) -> str:
        """The control where there are several models."""
        models = self.found.plan.models
        return self.one_of("Model", "model", {one: one for one in models}) if len(models) > 1 else models[0]

    def metric(self, label: str, name: str, known: Sequence[str]) -> str:
        """One of these metrics, the first where another was chosen before."""
        return self.one_of(label, name, {id: METRICS[id].title for id in known})

    def one_of(self, label: str, name: str, known: Mapping[str, str]) -> str:
        """One of these, by its name among the fields of `Look`; the first where what is held is none of them."""
        held = getattr(self.state.look, name)
        now = held if held in known else next(iter(known))
        widget = key(self.state.kind, f"view.{name}")
        st.session_state[widget] = now
        st.selectbox(
            label, list(known), key=widget, width=WIDTH, format_func=known.__getitem__, on_change=self._take,
            args=(name, widget), persist_state=KEPT,
        )  # fmt: skip
        return now

    def _take(self, name: str, widget: str) -> None:
        put(self.state.kind, f"{LOOK}{name}", st.session_state[widget])

    def _take_methods(self, widget: str) -> None:
        """All of them is nothing chosen, so that the link stays short."""
        wanted = list(st.session_state[widget])
        put(self.state.kind, f"{LOOK}only", [] if len(wanted) == len(self.found.plan.company) else wanted)
