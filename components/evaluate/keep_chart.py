"""The files of a chart of an evaluation: PNG, SVG, HTML, and its numbers. Each is made when its button is pressed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol, runtime_checkable

import streamlit as st

from components.evaluate.keep import cite, command
from components.evaluate.look import VIEWS
from components.evaluate.session import key
from components.evaluate.words import how
from components.keeping import REPEATS, file_button
from components.png_button import png_button

if TYPE_CHECKING:
    import altair as alt
    import pandas as pd

    from components.evaluate.chart_files import Told
    from components.evaluate.charts.frame import Frame
    from components.evaluate.chosen import Chosen
    from components.evaluate.drawn import Drawing
    from engine.evaluation.result import Evaluation

PNG_HELP = (
    "The chart with its title, what was evaluated and the command, in the light theme. Your browser draws it from SVG."
)
SVG_HELP = "The same as lines and letters, for papers. The numbers stand in it as CSV, unseen."
HTML_HELP = "A page with the chart, which answers the mouse, and its numbers. It loads nothing from the internet."
SPEC_HELP = "The chart with its numbers as Vega-Lite, which Altair and Vega's editor read."
CSV_HELP = "What the chart draws."


@runtime_checkable
class ChartFiles(Protocol):
    """A chart that can be kept. `file`: how its files are called, without an ending."""

    @property
    def file(self) -> str: ...

    @property
    def table(self) -> pd.DataFrame: ...

    def key(self, kind: str) -> str: ...

    def spec(self) -> str: ...

    def svg(self) -> str: ...

    def html(self) -> str: ...


@dataclass(frozen=True)
class Kept:
    """A chart as it stands on the page: of `found`, the whole or a slice; `table` has its numbers."""

    chosen: Chosen
    drawing: Drawing
    found: Evaluation
    frame: Frame
    table: pd.DataFrame

    @property
    def file(self) -> str:
        return f"exegesis-{self.drawing.name}{'-slice' if self.frame.slice else ''}"

    def key(self, kind: str) -> str:
        """Of the button."""
        return key(self.chosen.state.kind, f"keep.{kind}.{self.drawing.name}.{self.frame.slice}")

    def spec(self) -> str:
        """As it stands on the page."""
        return self.drawing.chart(self.found, self.frame).to_json()

    def svg(self) -> str:
        """In the light theme, whichever the page is seen in."""
        from components.evaluate.chart_files import chart_svg

        return chart_svg(self._light(), self.told(), self.table, light_colours())

    def html(self) -> str:
        """The same as a page."""
        from components.evaluate.chart_files import chart_html

        return chart_html(self._light(), self.told(), self.table, light_colours())

    def told(self) -> Told:
        """What the file says of it. A chart of several evaluations has a command for each."""
        from components.evaluate.chart_files import Told

        plans = self.drawing.plans or (self.chosen.found.plan,)
        size = len({row.example for row in self.found.rows} | {skip.example for skip in self.found.skips})
        notes = [*(cite(plan) for plan in plans), how(plans[0], size), f"{REPEATS}:"]
        commands = [command(plan, self.chosen.state.metrics) for plan in plans]
        return Told(self._title(), notes, commands)

    def _title(self) -> str:
        models = list(dict.fromkeys(self.table["Model"])) if "Model" in self.table else []
        view, data = VIEWS[self.chosen.state.look.view], self.found.plan.dataset
        return ", ".join([view, *models, data, *([self.frame.slice] if self.frame.slice else [])])

    def _light(self) -> alt.LayerChart:
        return self.drawing.chart(self.found, replace(self.frame, theme="light"))


def keep_chart(kept: ChartFiles) -> None:
    """A button a file."""
    with st.container(horizontal=True, gap="small"):
        for label, (ending, kind, write, help) in _files(kept).items():
            file_button(label, f"{kept.file}.{ending}", kind, write, help, kept.key(label))
        png_button("PNG", f"{kept.file}.png", kept.svg, PNG_HELP, kept.key("png"))


def _files(kept: ChartFiles) -> dict[str, tuple[str, str, Callable[[], str], str]]:
    """By label: how the file ends, its type, who writes it, and what is said of it."""
    return {
        "SVG": ("svg", "image/svg+xml", kept.svg, SVG_HELP),
        "HTML": ("html", "text/html", kept.html, HTML_HELP),
        "Vega-Lite, JSON": ("vl.json", "application/json", kept.spec, SPEC_HELP),
        "Numbers, CSV": ("csv", "text/csv", lambda: kept.table.to_csv(index=False), CSV_HELP),
    }


def light_colours() -> Sequence[str]:
    """Of the methods, as the light theme has them."""
    return st.get_option("theme.light.chartCategoricalColors") or ()
