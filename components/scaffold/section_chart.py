"""A chart of a section with its numbers and files behind a fold."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import streamlit as st

from components.charts.files import chart_file_buttons, light_colors
from components.keeping import REPEATS
from components.scaffold.keep import cite, command
from components.scaffold.session import key
from components.tables import draw_table
from components.theme import shown_theme

if TYPE_CHECKING:
    import altair as alt
    import pandas as pd

    from components.charts.files import ChartCaption
    from components.palette import Theme
    from engine.scaffold.plan import Plan


@dataclass(frozen=True)
class SectionChart:
    """`name`: in its keys and files. `note`: what the files say of it besides plan and command."""

    plan: Plan
    name: str
    title: str
    note: str
    table: pd.DataFrame
    build: Callable[[Theme], alt.LayerChart]

    @property
    def file(self) -> str:
        return f"exegesis-scaffold-{self.name}"

    def key(self, kind: str) -> str:
        """Of a widget of this chart."""
        return key(self.plan.kind, f"{kind}.{self.file}")

    def spec(self) -> str:
        """As it stands on the page."""
        return self.build(shown_theme()).to_json()

    def svg(self) -> str:
        """In the light theme, whichever the page is seen in."""
        from components.charts.files import chart_svg

        return chart_svg(self.build("light"), self._told(), self.table, light_colors())

    def html(self) -> str:
        """The same as a page."""
        from components.charts.files import chart_html

        return chart_html(self.build("light"), self._told(), self.table, light_colors())

    def _told(self) -> ChartCaption:
        from components.charts.files import ChartCaption

        return ChartCaption(self.title, [self.note, cite(self.plan), f"{REPEATS} of students:"], [command(self.plan)])


def draw(one: SectionChart, open: bool = False) -> None:
    """The chart, and behind a fold its files; its table too, or `open` below the chart."""
    st.altair_chart(one.build(shown_theme()), key=one.key("chart"), alt=f"{one.title}; its numbers stand below")
    if open:
        draw_table(one.table, one.key("table"))
    with st.expander("Files" if open else "Numbers and files", key=one.key("files"), on_change="rerun") as box:
        if box.open:
            if not open:
                draw_table(one.table, one.key("table"))
            chart_file_buttons(one)
