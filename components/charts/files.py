"""Standalone files of a chart: SVG, HTML and PNG with title, notes and commands; Vega-Lite; its numbers as CSV.

A file is built when its button is pressed. Importing this module loads no chart library.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import streamlit as st

from components.export import file_button, png_button, standalone_page
from components.palette import PALETTES
from components.svg import (
    EDGE,
    LINE,
    WIDTH,
    SvgSheet,
    add_heading,
    add_sentence,
    clean_spec,
    clean_xml,
    svg_document,
    vega_library,
    vega_svg,
)
from components.tables import table_html, table_styles

if TYPE_CHECKING:
    import altair as alt
    import pandas as pd

    from components.palette import Theme

FONT = "system-ui, 'Noto Sans', 'DejaVu Sans', sans-serif"
SMALL, LARGE = 12, 13
"""Sizes of labels and titles in pixels."""
LEGEND_COLUMNS = "width < 460 ? 1 : width < 700 ? 2 : width < 900 ? 3 : 4"
"""Number of columns of a legend, by the width of the plot: a Vega expression."""
FILE_COLUMNS = 3
"""Number of columns of a legend in a file. With `LEGEND_COLUMNS`, the width is unknown at layout and the last names are
lost."""
BOX = "chart"
"""Id of the element that contains the chart."""
PNG_HELP = "The SVG as a PNG image, rendered by your browser."
SVG_HELP = (
    "The chart with its title, notes and command for papers, in the light theme. Its numbers are embedded as CSV."
)
HTML_HELP = "The interactive chart and its numbers as one page that works offline."
SPEC_HELP = "The chart and its numbers as Vega-Lite, for Altair or the Vega Editor."
CSV_HELP = "The numbers in the chart."


@dataclass(frozen=True)
class ChartCaption:
    """Plain text around a chart in its file. `notes`: what was evaluated. `commands`: how to reproduce it."""

    title: str
    notes: Sequence[str]
    commands: Sequence[str]


@runtime_checkable
class ChartFiles(Protocol):
    """A chart that can be exported. `file`: name of its files, without a suffix."""

    @property
    def file(self) -> str: ...

    @property
    def table(self) -> pd.DataFrame: ...

    def key(self, kind: str) -> str: ...

    def spec(self) -> str: ...

    def svg(self) -> str: ...

    def html(self) -> str: ...


class CaptionedChart(ABC):
    """A chart that is exported with a caption. Its files are built from its chart, caption and table."""

    @property
    @abstractmethod
    def file(self) -> str:
        """The name of its files, without a suffix."""

    @property
    @abstractmethod
    def table(self) -> pd.DataFrame:
        """The numbers that it draws."""

    @abstractmethod
    def key(self, kind: str) -> str:
        """Return the key of a widget of this chart."""

    @abstractmethod
    def chart(self, theme: Theme | None = None) -> alt.LayerChart:
        """Return the chart in a theme, by default that of the page."""

    @abstractmethod
    def caption(self) -> ChartCaption:
        """Return the text around the chart in its files."""

    def spec(self) -> str:
        """Return the chart of the page as Vega-Lite."""
        return self.chart().to_json()

    def svg(self) -> str:
        """Return the chart as SVG, always in the light theme."""
        return chart_svg(self.chart("light"), self.caption(), self.table, light_colors())

    def html(self) -> str:
        """Return the chart as an HTML page, always in the light theme."""
        return chart_html(self.chart("light"), self.caption(), self.table, light_colors())


def chart_file_buttons(chart: ChartFiles) -> None:
    """Draw a button for each file."""
    files: dict[str, tuple[str, str, Callable[[], str], str]] = {
        "SVG": ("svg", "image/svg+xml", chart.svg, SVG_HELP),
        "HTML": ("html", "text/html", chart.html, HTML_HELP),
        "Vega-Lite, JSON": ("vl.json", "application/json", chart.spec, SPEC_HELP),
        "Numbers, CSV": ("csv", "text/csv", lambda: chart.table.to_csv(index=False), CSV_HELP),
    }
    with st.container(horizontal=True, gap="small"):
        for label, (ending, kind, build, help) in files.items():
            file_button(label, f"{chart.file}.{ending}", kind, build, help, chart.key(label))
        png_button("PNG", f"{chart.file}.png", chart.svg, PNG_HELP, chart.key("png"))


def light_colors() -> Sequence[str]:
    """Return the colors of the methods in the light theme."""
    return st.get_option("theme.light.chartCategoricalColors") or ()


def chart_svg(chart: alt.LayerChart, caption: ChartCaption, table: pd.DataFrame, colors: Sequence[str]) -> str:
    """Return the chart as SVG, between its title and its notes; the table is embedded as CSV but not displayed."""
    drawn = vega_svg(_spec(chart, colors))
    sheet = SvgSheet()
    sheet.parts.append(f"<desc>{_numbers(table)}</desc>")
    add_heading(sheet, caption.title)
    sheet.parts.append(drawn.replace("<svg ", f'<svg x="{EDGE:g}" y="{sheet.y:g}" ', 1))
    sheet.y += float(drawn.partition(' height="')[2].partition('"')[0]) + LINE
    for line in (*caption.notes, *caption.commands):
        add_sentence(sheet, line)
    return svg_document(sheet, dark=False)


def chart_html(chart: alt.LayerChart, caption: ChartCaption, table: pd.DataFrame, colors: Sequence[str]) -> str:
    """Return an HTML page with the interactive chart; without scripts, it shows the chart as a picture."""
    spec = _spec(chart, colors)
    notes = "".join(f"<p>{escape(note)}</p>" for note in caption.notes)
    commands = "".join(f"<pre>{escape(command)}</pre>" for command in caption.commands)
    drawn = f'<div class="xg-scroll" id="{BOX}">{vega_svg(spec)}</div>'
    sections = [drawn, notes + commands, table_html(table)]
    return standalone_page(caption.title, sections, table_styles(), "light", _script(spec))


def _spec(chart: alt.LayerChart, colors: Sequence[str]) -> dict[str, Any]:
    """Return the specification as on the page: the height includes the legend, and methods have the theme's colors."""
    by_width = json.dumps({"expr": LEGEND_COLUMNS})
    spec = json.loads(json.dumps(clean_spec(chart.to_dict())).replace(by_width, str(FILE_COLUMNS)))
    config = _merge(_config(colors), spec.get("config", {}))
    size = {"width": WIDTH - 2 * EDGE, "autosize": {"type": "fit", "contains": "padding"}, "padding": 5}
    return spec | size | {"config": config}


def _config(colors: Sequence[str]) -> dict[str, Any]:
    palette = PALETTES["light"]
    sizes = {"labelFontSize": SMALL, "titleFontSize": LARGE, "titleFontWeight": "normal"}
    return {
        "font": FONT,
        "background": palette.ground,
        "range": {"category": list(colors)} if colors else {},
        "view": {"stroke": None},
        "axis": {"gridColor": palette.line, "domainColor": palette.line, "tickColor": palette.line, **sizes},
        "legend": sizes,
    }


def _merge(under: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """Merge two configurations whose parts are mappings or values; `over` wins."""
    both = {name: {**under[name], **over[name]} for name in under if isinstance(over.get(name), Mapping)}
    return {**under, **over, **both}


def _numbers(table: pd.DataFrame) -> str:
    lines = table.to_csv(index=False).splitlines()
    return "\n".join(escape(clean_xml(line)) for line in lines)


def _script(spec: Mapping[str, Any]) -> str:
    """Return Vega and the call that draws the chart.

    No text of the chart can end the script. Vega interprets expressions, so nothing is passed to eval.
    """
    safe = json.dumps(spec).replace("<", r"\u003c")
    options = json.dumps({"actions": False, "ast": True, "renderer": "svg"})
    return f'{vega_library()}\nvegaEmbed("#{BOX}", {safe}, {options});'
