"""A chart of a scaffold on the page, with its numbers and files behind a fold."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import streamlit as st

from components.charts.files import chart_file_buttons, light_colors
from components.keeping import REPEATS
from components.numbers import count
from components.scaffold.keep import cite, command
from components.scaffold.session import key
from components.scaffold.words import MEASURES, SETTING_TITLES
from components.tables import draw_table
from components.theme import shown_theme

if TYPE_CHECKING:
    import altair as alt
    import pandas as pd

    from components.palette import Theme
    from components.scaffold.curves import Line
    from components.scaffold.state import ScaffoldState
    from engine.scaffold.plan import Pupil
    from engine.scaffold.result import Pass, Scaffold


@dataclass(frozen=True)
class Chart:
    """Simulability by setting and train size."""

    state: ScaffoldState
    found: Scaffold

    @property
    def file(self) -> str:
        return "exegesis-scaffold-simulability"

    @property
    def title(self) -> str:
        return f"Simulability of {self.found.plan.teacher} on {self.found.plan.dataset}"

    @property
    def table(self) -> pd.DataFrame:
        from components.scaffold.charts import numbers_table

        return numbers_table(self.found)

    def chart(self, theme: Theme) -> alt.LayerChart:
        from components.scaffold.charts import simulability_chart

        return simulability_chart(self.found, theme)

    def key(self, kind: str) -> str:
        """Of a widget of this chart."""
        return key(self.state.kind, f"{kind}.{self.file}")

    def spec(self) -> str:
        """As it stands on the page."""
        return self.chart(shown_theme()).to_json()

    def svg(self) -> str:
        """In the light theme, whichever the page is seen in."""
        from components.charts.files import ChartCaption, chart_svg

        return chart_svg(self.chart("light"), ChartCaption(self.title, *self._notes()), self.table, light_colors())

    def html(self) -> str:
        """The same as a page."""
        from components.charts.files import ChartCaption, chart_html

        return chart_html(self.chart("light"), ChartCaption(self.title, *self._notes()), self.table, light_colors())

    def _notes(self) -> tuple[list[str], list[str]]:
        plan = self.found.plan
        return [cite(plan), f"{REPEATS}:"], [command(plan)]


@dataclass(frozen=True)
class Curves(Chart):
    """Learning curves of a setting at a train size, in a measure. `begun`: students that are not finished."""

    setting: str
    size: int
    measure: str
    begun: Mapping[Pupil, Sequence[Pass]] = field(default_factory=dict)

    @cached_property
    def lines(self) -> list[Line]:
        from components.scaffold.curves import lines_of

        return lines_of(self.found, self.setting, self.size, self.measure, self.begun)

    @property
    def file(self) -> str:
        return f"exegesis-scaffold-{self.setting}-{self.size}-{self.measure}"

    @property
    def title(self) -> str:
        shown = f"{SETTING_TITLES[self.setting]}, {count(self.size, 'example')}"
        return f"{MEASURES[self.measure]} by pass: {shown}, {self.found.plan.teacher} on {self.found.plan.dataset}"

    @property
    def table(self) -> pd.DataFrame:
        from components.scaffold.curves import numbers_table

        return numbers_table(self.lines)

    def chart(self, theme: Theme) -> alt.LayerChart:
        from components.scaffold.curves import curves_chart

        return curves_chart(self.lines, self.measure, self.found.metric, theme)


def draw(one: Chart) -> None:
    """The chart, and behind a fold its numbers and files."""
    st.altair_chart(one.chart(shown_theme()), key=one.key("chart"), alt=f"{one.title}; its numbers stand below")
    with st.expander("Numbers and files", key=one.key("numbers"), on_change="rerun") as box:
        if box.open:
            draw_table(one.table, one.key("table"))
            chart_file_buttons(one)
