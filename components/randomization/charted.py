"""A chart of a randomization on the page: drawn, its click taken, the answers below it, its numbers and files."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import streamlit as st

from components.evaluate.keep_chart import keep_chart, light_colours
from components.keeping import REPEATS
from components.randomization.keep import cite, command
from components.randomization.look import MEASURES
from components.randomization.session import key
from components.randomization.stage import stage_at
from components.randomization.words import MODE_TITLES
from components.tables import draw_table

if TYPE_CHECKING:
    import altair as alt
    import pandas as pd

    from components.evaluate.chart_files import Told
    from components.evaluate.charts.frame import Frame, Span
    from components.palette import Theme
    from components.randomization.state import RandomizationState
    from engine.randomization.curves import Curve
    from engine.randomization.plan import RandomizationPlan


@dataclass(frozen=True)
class Charted(ABC):
    """Lines in one mode. `curves`: all there are. `span`: where the axis of likeness ends."""

    state: RandomizationState
    mode: str
    curves: Sequence[Curve]
    frame: Frame
    span: Span

    @property
    @abstractmethod
    def name(self) -> str:
        """Of what it is."""

    @property
    @abstractmethod
    def plans(self) -> Sequence[RandomizationPlan]:
        """What was asked for."""

    @property
    @abstractmethod
    def likeness(self) -> list[Curve]:
        """What is drawn."""

    @property
    @abstractmethod
    def prediction(self) -> list[Curve]:
        """What is drawn below."""

    @property
    @abstractmethod
    def table(self) -> pd.DataFrame:
        """The numbers of both."""

    @abstractmethod
    def chart(self, theme: Theme | None = None) -> alt.LayerChart:
        """In a theme, that of the page where none is named."""

    @abstractmethod
    def answers(self) -> alt.LayerChart | None:
        """Of the predictions; None where the models' answers cannot be compared."""

    @property
    def measured(self) -> list[Curve]:
        """Those of the chosen measure in this mode."""
        return [one for one in self.curves if one.metric == self.state.look.measure and one.mode == self.mode]

    @property
    def file(self) -> str:
        return f"exegesis-randomization-{self.mode}"

    def key(self, kind: str) -> str:
        """Of a widget of this chart."""
        return key(self.state.kind, f"{kind}.{self.name}.{self.mode}")

    def spec(self) -> str:
        """As it stands on the page."""
        return self.chart().to_json()

    def svg(self) -> str:
        """In the light theme, whichever the page is seen in."""
        from components.evaluate.chart_files import chart_svg

        return chart_svg(self.chart("light"), self.told(), self.table, light_colours())

    def html(self) -> str:
        """The same as a page."""
        from components.evaluate.chart_files import chart_html

        return chart_html(self.chart("light"), self.told(), self.table, light_colours())

    def told(self) -> Told:
        """What the file says of it."""
        from components.evaluate.chart_files import Told

        what = MEASURES[self.state.look.measure].lower()
        title = f"{MODE_TITLES[self.mode]} randomization, {what}, {self.name}"
        return Told(title, [*map(cite, self.plans), f"{REPEATS}:"], [command(plan) for plan in self.plans])


def draw(one: Charted) -> None:
    """The chart, what the model says at the same stages, and behind a fold the numbers and files."""
    from components.evaluate.charts.frame import PICKED

    name, title, answers = one.key("chart"), MODE_TITLES[one.mode], one.answers()
    st.altair_chart(
        one.chart(), key=name, on_select=partial(_pick, one.state.kind, name), selection_mode=PICKED,
        alt=f"{title} randomization of {one.name}: {MEASURES[one.state.look.measure].lower()} by stage; "
        "its numbers stand below",
    )  # fmt: skip
    if answers is not None:
        told = f"Predictions of {one.name} by stage of the {title.lower()} randomization"
        st.altair_chart(answers, key=one.key("prediction"), alt=told)
    with st.expander("Numbers and files", key=one.key("numbers"), on_change="rerun") as box:
        if box.open:
            draw_table(one.table, one.key("table"))
            keep_chart(one)


def _pick(kind: str, name: str) -> None:
    """Opens the stage that was clicked below; a click beside all points shows all stages."""
    from components.evaluate.charts.frame import PICKED

    picked = st.session_state[name].selection.get(PICKED) or [{}]
    stage_at(kind, picked[-1])
