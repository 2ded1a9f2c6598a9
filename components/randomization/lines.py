"""The curves of one model on the page: the modes side by side, a line a method."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import streamlit as st

from components.randomization.charted import Charted, draw
from components.randomization.entries import Entry
from components.theme import shown_theme

if TYPE_CHECKING:
    import altair as alt
    import pandas as pd

    from components.evaluate.charts.frame import Frame, Span
    from components.palette import Theme
    from components.randomization.state import RandomizationState
    from engine.randomization.curves import Curve
    from engine.randomization.plan import RandomizationPlan


@dataclass(frozen=True)
class Panel(Charted):
    """A model in one mode."""

    entry: Entry

    @property
    def name(self) -> str:
        return self.entry.name

    @property
    def plans(self) -> Sequence[RandomizationPlan]:
        return [self.entry.held.plan]

    @property
    def likeness(self) -> list[Curve]:
        """Those of the methods that are drawn."""
        return [one for one in self.measured if one.method in self.frame.drawn(self.entry.held.plan.company)]

    @property
    def prediction(self) -> list[Curve]:
        return [one for one in self.curves if not one.method and one.mode == self.mode]

    @property
    def table(self) -> pd.DataFrame:
        from components.randomization.charts import numbers_table

        return numbers_table([*self.likeness, *self.prediction], self.frame.titles)

    def chart(self, theme: Theme | None = None) -> alt.LayerChart:
        from components.randomization.charts import likeness_chart

        frame = replace(self.frame, theme=theme) if theme else self.frame
        return likeness_chart(self.likeness, frame, self.entry.held.plan.company, self.span)

    def answers(self) -> alt.LayerChart:
        from components.randomization.charts import prediction_chart

        return prediction_chart(self.prediction, self.frame, self.entry.found.regression)


def panels_area(
    state: RandomizationState, entry: Entry, curves: Sequence[Curve], titles: Mapping[str, str], span: Span
) -> None:
    """The modes side by side; on a telephone one below the other."""
    plan = entry.held.plan
    modes = [mode for mode in plan.modes if any(one.mode == mode for one in curves)]
    frame = frame_of(state, titles, plan.company)
    for place, mode in zip(st.columns(len(modes), gap="medium"), modes, strict=True):
        with place:
            draw(Panel(state, mode, curves, frame, span, entry))


def frame_of(state: RandomizationState, titles: Mapping[str, str], company: Sequence[str]) -> Frame:
    """What the charts are told: the methods drawn are those chosen of a company, all where none of it is chosen."""
    from components.evaluate.charts.frame import Frame
    from engine.registry import method_order

    wanted = tuple(method for method in company if method in state.look.only) or None
    return Frame(titles, shown_theme(), wanted, method_order())
