"""A chart of an evaluation as files that stand alone: with its title, what was evaluated, and the command. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any

from components import vega
from components.evaluate.charts.frame import COLUMNS as BY_WIDTH
from components.export_page import standing_page
from components.palette import PALETTES
from components.svg_sheet import EDGE, LINE, WIDTH, Sheet, clean, heading, sentence, whole
from components.tables import table_html
from components.tables import table_styles as numbers_sheet

if TYPE_CHECKING:
    import altair as alt
    import pandas as pd

FONT = "system-ui, 'Noto Sans', 'DejaVu Sans', sans-serif"
SMALL, LARGE = 12, 13
"""Sizes of labels and titles in pixels."""
COLUMNS = 3
"""Of a legend. Where the width decides, it is not known when the picture is laid out, and the last names are lost."""
_BY_WIDTH = json.dumps({"expr": BY_WIDTH})
BOX = "chart"
"""The id of the element that holds the chart."""


@dataclass(frozen=True)
class Told:
    """What stands around a chart in its file, as plain text. `notes`: what was evaluated; `commands`: to repeat it."""

    title: str
    notes: Sequence[str]
    commands: Sequence[str]


def chart_svg(chart: alt.LayerChart, told: Told, table: pd.DataFrame, colours: Sequence[str]) -> str:
    """The chart between its title and what was evaluated; the table's numbers stand in it unseen, as CSV."""
    drawn = vega.svg(_spec(chart, colours))
    sheet = Sheet()
    sheet.parts.append(f"<desc>{_numbers(table)}</desc>")
    heading(sheet, told.title)
    sheet.parts.append(drawn.replace("<svg ", f'<svg x="{EDGE:g}" y="{sheet.y:g}" ', 1))
    sheet.y += _height(drawn) + LINE
    for said in (*told.notes, *told.commands):
        sentence(sheet, said)
    return whole(sheet, dark=False)


def chart_html(chart: alt.LayerChart, told: Told, table: pd.DataFrame, colours: Sequence[str]) -> str:
    """A page where the chart answers the mouse as on the dashboard; without scripts, it is the picture."""
    spec = _spec(chart, colours)
    notes = "".join(f"<p>{escape(note)}</p>" for note in told.notes)
    commands = "".join(f"<pre>{escape(command)}</pre>" for command in told.commands)
    drawn = f'<div class="xg-scroll" id="{BOX}">{vega.svg(spec)}</div>'
    sections = [drawn, notes + commands, table_html(table)]
    return standing_page(told.title, sections, numbers_sheet(), "light", _script(spec))


def _spec(chart: alt.LayerChart, colours: Sequence[str]) -> dict[str, Any]:
    """As the page draws it: the height holds the legend, and the theme's colours are those of the methods."""
    made = json.loads(json.dumps(vega.cleaned(chart.to_dict())).replace(_BY_WIDTH, str(COLUMNS)))
    config = _merged(_config(colours), made.get("config", {}))
    return made | {"width": WIDTH - 2 * EDGE, "autosize": {"type": "fit", "contains": "padding"}, "config": config}


def _config(colours: Sequence[str]) -> dict[str, Any]:
    palette = PALETTES["light"]
    sizes = {"labelFontSize": SMALL, "titleFontSize": LARGE, "titleFontWeight": "normal"}
    return {
        "font": FONT,
        "background": palette.ground,
        "range": {"category": list(colours)} if colours else {},
        "view": {"stroke": None},
        "axis": {"gridColor": palette.line, "domainColor": palette.line, "tickColor": palette.line, **sizes},
        "legend": sizes,
    }


def _merged(under: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """Two configurations whose parts are mappings or values; `over` wins."""
    both = {name: {**under[name], **over[name]} for name in under if isinstance(over.get(name), Mapping)}
    return {**under, **over, **both}


def _height(svg: str) -> float:
    return float(svg.partition(' height="')[2].partition('"')[0])


def _numbers(table: pd.DataFrame) -> str:
    lines = table.to_csv(index=False).splitlines()
    return "\n".join(escape(clean(line)) for line in lines)


def _script(spec: Mapping[str, Any]) -> str:
    """Vega and the call that draws. No text of the chart can end the script; Vega interprets, so nothing is eval'd."""
    safe = json.dumps(spec).replace("<", r"\u003c")
    options = json.dumps({"actions": False, "ast": True, "renderer": "svg"})
    return f'{vega.library()}\nvegaEmbed("#{BOX}", {safe}, {options});'
