"""Models that come with the project for a view that needs several: a button that fills them in above."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import streamlit as st

from components.errors import escape_label
from components.evaluate.session import key, put
from engine.models.catalog import embedded_models

if TYPE_CHECKING:
    from components.evaluate.state import EvaluateState

DATA = "reviews-marked"
NEXT = "This only sets the controls at the top; then press Evaluate."


@dataclass(frozen=True)
class Fill:
    """`name`: of the models together. `least`: so many of them the view needs."""

    name: str
    models: Sequence[str]
    least: int = 2


FILLS: Mapping[str, Fill] = {
    "scaling": Fill("T5 in four sizes", ("t5-mini-marked", "t5-small-marked", "t5-marked", "t5-deep-marked")),
    "architecture": Fill("four architectures", ("bert-marked", "roberta-marked", "gpt2-marked", "t5-marked")),
    "strength": Fill("a model that reads marks", ("t5-marked",), 1),
}
"""By view, all trained on `DATA`."""


def fill_area(state: EvaluateState, view: str) -> None:
    """The button, where the view has one and the controls do not say so already."""
    fill = FILLS.get(view)
    models = fillable(fill, embedded_models()) if fill and state.kind == "text" else []
    if fill is None or not models or (state.data == DATA and not state.metrics and set(models) <= set(state.models)):
        return
    st.button(
        f"Fill in {fill.name}", key=key(state.kind, f"fill.{view}"), on_click=partial(_fill, state.kind, models),
        help=escape_label(f"{', '.join(models)} on {DATA}"),
    )  # fmt: skip
    st.caption(NEXT)


def fillable(fill: Fill, known: Sequence[str]) -> list[str]:
    """Those of its models that are there; none where there are too few."""
    models = [model for model in fill.models if model in known]
    return models if len(models) >= fill.least else []


def _fill(kind: str, models: Sequence[str]) -> None:
    """All metrics and the usual split: those chosen for another set may not suit this one."""
    for name, value in {"models": list(models), "data": DATA, "split": "", "metrics": []}.items():
        put(kind, name, value)
