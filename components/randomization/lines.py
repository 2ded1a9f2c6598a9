"""The curves of one model on the page: the modes side by side, each with what the model then says below it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
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
from components.results.numbers import numbers
from components.theme import shown_theme

if TYPE_CHECKING:
    import altair as alt
    import pandas as pd

    from components.evaluate.chart_files import Told
    from components.evaluate.charts.frame import Frame, Span
    from components.palette import Theme
    from components.randomization.state import RandomizationState
    from engine.randomization.curves import Curve
    from engine.randomization.plan import Plan
    from engine.randomization.result import OfModel

Curves = Sequence["Curve"]


@dataclass(frozen=True)
class Panel:
    """A model in one mode. `curves`: all of them. `span`: where the axis of likeness ends."""

    state: RandomizationState
    plan: Plan
    found: OfModel
    mode: str
    curves: Curves
    frame: Frame
    span: Span

    @property
    def likeness(self) -> list[Curve]:
        """Those of the chosen measure, of the methods that are drawn."""
        own = (one for one in self.curves if one.metric == self.state.look.measure and one.mode == self.mode)
        return [one for one in own if one.method in self.frame.drawn(self.plan.company)]

    @property
    def prediction(self) -> list[Curve]:
        return [one for one in self.curves if not one.method and one.mode == self.mode]

    @property
    def file(self) -> str:
        return f"exegesis-randomization-{self.mode}"

    @property
    def table(self) -> pd.DataFrame:
        from components.randomization.charts import numbers_table

        return numbers_table([*self.likeness, *self.prediction], self.frame.titles)

    def key(self, kind: str) -> str:
        """Of a widget of this panel."""
        return key(self.state.kind, f"{kind}.{self.found.model}.{self.mode}")

    def chart(self, theme: Theme | None = None) -> alt.LayerChart:
        from components.randomization.charts import likeness_chart

        frame = replace(self.frame, theme=theme) if theme else self.frame
        return likeness_chart(self.likeness, frame, self.plan.company, self.span)

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
        title = f"{MODE_TITLES[self.mode]} randomization, {what}, {self.found.model}, {self.found.dataset}"
        return Told(title, [cite(self.plan), f"{REPEATS}:"], [command(self.plan)])


def panels_area(
    state: RandomizationState, plan: Plan, found: OfModel, curves: Curves, titles: Mapping[str, str], span: Span
) -> None:
    """The modes side by side; on a telephone one below the other."""
    from components.evaluate.charts.frame import Frame
    from engine.registry import method_order

    wanted = tuple(method for method in plan.company if method in state.look.only) or None
    frame = Frame(titles, shown_theme(), wanted, method_order())
    modes = [mode for mode in plan.modes if any(one.mode == mode for one in curves)]
    for place, mode in zip(st.columns(len(modes), gap="medium"), modes, strict=True):
        with place:
            _draw(Panel(state, plan, found, mode, curves, frame, span))


def _draw(panel: Panel) -> None:
    from components.evaluate.charts.frame import PICKED
    from components.randomization.charts import prediction_chart

    name, title = panel.key("chart"), MODE_TITLES[panel.mode]
    st.altair_chart(
        panel.chart(), key=name, on_select=partial(_pick, panel.state.kind, name), selection_mode=PICKED,
        alt=f"{title} randomization of {panel.found.model}: {MEASURES[panel.state.look.measure].lower()} by stage; "
        "its numbers stand below",
    )  # fmt: skip
    st.altair_chart(
        prediction_chart(panel.prediction, panel.frame, panel.found.regression), key=panel.key("prediction"),
        alt=f"Predictions of {panel.found.model} by stage of the {title.lower()} randomization",
    )  # fmt: skip
    with st.expander("Numbers and files", key=panel.key("numbers"), on_change="rerun") as box:
        if box.open:
            numbers(panel.table, panel.key("table"))
            keep_chart(panel)


def _pick(kind: str, name: str) -> None:
    """Opens the stage that was clicked below; a click beside all points shows all stages."""
    from components.evaluate.charts.frame import PICKED

    picked = st.session_state[name].selection.get(PICKED) or [{}]
    stage_at(kind, picked[-1])
