"""The chart of simulability: medians with quartiles by setting and train size, above the band of no explainer."""

from __future__ import annotations

import altair as alt
import pandas as pd

from components.charts.files import LEGEND_COLUMNS
from components.charts.frame import FOOT, LABEL, LEGEND_ROW, PLOT, line_legend, style_chart
from components.numbers import count, fixed
from components.palette import PALETTES, Theme
from components.scaffold.words import SETTING_TITLES
from engine.scaffold.plan import NONE, SETTINGS
from engine.scaffold.result import Cell, Scaffold

DECIMALS = 3
SHAPES = ("circle", "square", "triangle-up", "diamond", "triangle-down", "cross")
POINT, SEED = 90, 16
"""Areas in square pixels: of a median, of one seed."""
BAND, FAINT = 0.22, 0.45
NOTHING = "Nothing to draw: no student has a simulability."
BLANK_HEIGHT = 80
SIZE = "Examples that a student learns from"
AGAINST = {"better": "better: quartiles apart", "worse": "worse: quartiles apart", "": "quartiles overlap"}


def simulability_chart(found: Scaffold, theme: Theme) -> alt.LayerChart:
    """A point a setting and train size, with a bar from quartile to quartile, and a faint dot a seed."""
    cells, seeds, base = cells_data(found), seeds_data(found), base_data(found)
    if cells.empty and base.empty:
        return blank(theme)
    layers = _reference(base, theme) if not base.empty else []
    if not cells.empty:
        layers += _settings(cells, seeds)
    height = PLOT + FOOT + LEGEND_ROW * (len(set(cells["name"])) if not cells.empty else 0)
    return style_chart(alt.LayerChart(layer=layers), height, theme)


def blank(theme: Theme) -> alt.LayerChart:
    """The words alone: no frame that looks like zeros."""
    words = alt.Chart(pd.DataFrame({"words": [NOTHING]})).mark_text(fontSize=14, color=PALETTES[theme].muted)
    return style_chart(alt.LayerChart(layer=[words.encode(text="words:N")]), BLANK_HEIGHT, theme)


def cells_data(found: Scaffold) -> pd.DataFrame:
    """A row a cell of the table that has a value, but for no explainer."""
    return pd.DataFrame(
        [_row(found, cell) for cell in _cells(found) if cell.setting != NONE]
    )  # fmt: skip


def base_data(found: Scaffold) -> pd.DataFrame:
    """The same of no explainer."""
    return pd.DataFrame([_row(found, cell) for cell in _cells(found) if cell.setting == NONE])


def seeds_data(found: Scaffold) -> pd.DataFrame:
    """A row a student with a simulability, but for no explainer."""
    return pd.DataFrame(
        [
            {
                "size": f"{one.pupil.train_size:,}", "name": SETTING_TITLES[one.pupil.setting],
                "value": one.simulability, "seed": one.pupil.seed, "shown": fixed(one.simulability, DECIMALS, False),
            }
            for one in found.outcomes
            if one.simulability is not None and one.pupil.setting != NONE
        ]
    )  # fmt: skip


def numbers_table(found: Scaffold) -> pd.DataFrame:
    """A row a cell, no explainer too: what the chart draws, for files."""
    return pd.DataFrame(
        [
            {
                "Setting": SETTING_TITLES[cell.setting], "Train size": cell.train_size,
                "Median": round(cell.median, 4), "25 %": round(cell.low, 4), "75 %": round(cell.high, 4),
                "Seeds": len(cell.values), "Against no explainer": against_words(found, cell),
            }
            for cell in _cells(found)
        ]
    )  # fmt: skip


def against(found: Scaffold, cell: Cell) -> str | None:
    """ "better" or "worse" than no explainer where the quartiles do not overlap, else empty; None without one."""
    base = found.cell(NONE, cell.train_size)
    if base is None or cell.setting == NONE:
        return None
    if found.improves(cell.setting, cell.train_size):
        return "better"
    return "worse" if base.above(cell) else ""


def against_words(found: Scaffold, cell: Cell) -> str:
    """The same in words."""
    told = against(found, cell)
    return "none to compare with" if told is None else AGAINST[told]


def interval_words(cell: Cell) -> str:
    """As the paper's tables have it: median [low:high]."""
    low, high = (fixed(value, DECIMALS, False) for value in (cell.low, cell.high))
    return f"{fixed(cell.median, DECIMALS, False)} [{low}:{high}]"


def _cells(found: Scaffold) -> list[Cell]:
    plan = found.plan
    made = (found.cell(setting, size) for size in plan.train_sizes for setting in SETTINGS if setting in plan.settings)
    return [cell for cell in made if cell is not None]


def _row(found: Scaffold, cell: Cell) -> dict[str, object]:
    return {
        "size": f"{cell.train_size:,}", "name": SETTING_TITLES[cell.setting], "value": cell.median, "low": cell.low,
        "high": cell.high, "shown": interval_words(cell), "seeds": count(len(cell.values), "seed"),
        "against": against_words(found, cell),
    }  # fmt: skip


def _settings(cells: pd.DataFrame, seeds: pd.DataFrame) -> list[alt.Chart]:
    seen = set(cells["name"])
    names = [SETTING_TITLES[one] for one in SETTINGS if one != NONE]
    legend = line_legend(alt.ExprRef(LEGEND_COLUMNS), LABEL)
    legend.symbolType, legend.symbolSize, legend.symbolStrokeWidth = alt.Undefined, POINT, 1.5
    legend.values, legend.symbolOpacity = [name for name in names if name in seen], 1
    x = alt.X("size:O", sort=_sizes(cells), title=SIZE, axis=alt.Axis(labelAngle=0))
    beside = alt.XOffset("name:N", sort=names, scale=alt.Scale(domain=legend.values, padding=0.35))
    colour = alt.Color("name:N", scale=alt.Scale(domain=names), title=None, legend=legend)
    shape = alt.Shape("name:N", scale=alt.Scale(domain=names, range=list(SHAPES)), title=None, legend=legend)
    at = alt.Chart(cells).encode(x=x, xOffset=beside, color=colour)
    bars = at.mark_rule(strokeWidth=2.2).encode(y=_y("low"), y2="high:Q", tooltip=_tips())
    medians = at.mark_point(filled=True, opacity=1, size=POINT).encode(y=_y("value"), shape=shape, tooltip=_tips())
    dots = at.properties(data=seeds).mark_circle(size=SEED, opacity=FAINT).encode(y=_y("value"), tooltip=_seed_tips())
    return [dots, bars, medians]


def _reference(base: pd.DataFrame, theme: Theme) -> list[alt.Chart]:
    """The band from quartile to quartile, which is a line where they are the same, and a line at the median."""
    tone = PALETTES[theme].muted
    at = alt.Chart(base).encode(x=alt.X("size:O", sort=_sizes(base), title=SIZE, axis=alt.Axis(labelAngle=0)))
    band = at.mark_bar(color=tone, fillOpacity=BAND, stroke=tone, strokeOpacity=0.5, width=alt.RelativeBandSize(0.98))
    line = at.mark_bar(fillOpacity=0, stroke=tone, strokeWidth=2, width=alt.RelativeBandSize(0.98))
    return [
        band.encode(y=_y("low"), y2="high:Q", tooltip=_tips()),
        line.encode(y=_y("value"), y2="value:Q", tooltip=_tips()),
    ]


def _sizes(table: pd.DataFrame) -> list[str]:
    return sorted(set(table["size"]), key=lambda size: int(size.replace(",", "")))


def _y(column: str) -> alt.Y:
    return alt.Y(f"{column}:Q", title="Simulability", scale=alt.Scale(zero=False, nice=False, padding=12))


def _tips() -> list[alt.Tooltip]:
    told = {
        "name": "setting", "size": "examples", "shown": "median [quartiles]", "seeds": "students",
        "against": "against no explainer",
    }  # fmt: skip
    return [alt.Tooltip(f"{column}:N", title=title) for column, title in told.items()]


def _seed_tips() -> list[alt.Tooltip]:
    told = {"name": "setting", "size": "examples", "seed": "seed", "shown": "simulability"}
    return [alt.Tooltip(f"{column}:N", title=title) for column, title in told.items()]
