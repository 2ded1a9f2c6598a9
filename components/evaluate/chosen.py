"""What a chart of an evaluation is drawn of: its controls, which keep to what there is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import streamlit as st

from components.controls import PERSIST
from components.evaluate.look import LOOK
from components.evaluate.session import key, put
from components.evaluate.some import chosen_of, some_of
from components.evaluate.state import EvaluateState
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
        company = self.found.plan.company
        wanted = chosen_of(company, self.state.look.only)
        return None if wanted == company else wanted

    def methods(self) -> None:
        """The control of which methods are drawn."""
        company = {id: self.titles.get(id, id) for id in self.found.plan.company}
        some_of(self.state.kind, "only", "Methods drawn", company, self.state.look.only, DRAWN_HELP)

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
            args=(name, widget), persist_state=PERSIST,
        )  # fmt: skip
        return now

    def _take(self, name: str, widget: str) -> None:
        put(self.state.kind, f"{LOOK}{name}", st.session_state[widget])
