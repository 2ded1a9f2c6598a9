"""Learning curves: validation simulability and losses pass by pass, a line a seed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import altair as alt
import pandas as pd

from components.charts.frame import DASHED, FOOT, LEGEND_ROW, SOLID, line_legend, style_chart
from components.numbers import plain
from components.palette import PALETTES, Theme
from components.scaffold.words import MEASURES
from engine.scaffold.plan import Pupil
from engine.scaffold.result import Pass, Scaffold

PLOT, BLANK_HEIGHT = 240, 80
POINT, BEST = 26, 130
"""Areas in square pixels: of a pass, of the one whose student was kept."""
COLUMNS = "width < 460 ? 2 : 5"
NOTHING = "No pass has a value of this measure."
STATES = ("finished", "being taught")
LOSSES = {"accuracy": "nats", "pearson": "squared error"}


@dataclass(frozen=True)
class Line:
    """One student's passes. `best`: the pass that was kept, from 0; -1 for none or not known yet."""

    seed: int
    passes: Sequence[Pass]
    best: int
    live: bool


def lines_of(
    found: Scaffold, setting: str, train_size: int, measure: str, begun: Mapping[Pupil, Sequence[Pass]]
) -> list[Line]:
    """The students of a cell, finished or begun, that have a value of the measure."""
    over = [Line(one.pupil.seed, one.history, one.best_epoch, False) for one in found.of(setting, train_size)]
    own = {one.seed: passes for one, passes in begun.items() if (one.setting, one.train_size) == (setting, train_size)}
    there = {line.seed for line in over}
    lines = [*over, *(Line(seed, passes, -1, True) for seed, passes in own.items() if seed not in there)]
    return [line for line in lines if any(getattr(one, measure) is not None for one in line.passes)]


def curves_chart(lines: Sequence[Line], measure: str, metric: str, theme: Theme) -> alt.LayerChart:
    """A line a seed over the passes, dashed while it is being taught; the pass that was kept is larger."""
    if not lines:
        return _blank(theme)
    seeds = [str(line.seed) for line in lines]
    legend = line_legend(alt.ExprRef(COLUMNS), 120)
    legend.title, legend.titleColor, legend.titleFontWeight = "Seed", PALETTES[theme].muted, "normal"
    base = alt.Chart(curves_data(lines, measure)).encode(
        x=alt.X("pass:Q", title="Pass", axis=alt.Axis(tickMinStep=1, format="d"), scale=alt.Scale(nice=False)),
        y=alt.Y("value:Q", title=titled(measure, metric), scale=alt.Scale(zero=False, nice=False, padding=12)),
        color=alt.Color("seed:N", sort=seeds, scale=alt.Scale(domain=seeds), legend=legend),
    )
    dash = alt.StrokeDash("state:N", scale=alt.Scale(domain=list(STATES), range=[SOLID, DASHED]), legend=None)
    size = alt.Size("kept:N", scale=alt.Scale(domain=["no", "yes"], range=[POINT, BEST]), legend=None)
    told = {"seed": "seed", "pass": "pass", "shown": MEASURES[measure].lower(), "state": "student", "kept": "kept"}
    tips = [alt.Tooltip(f"{column}:N", title=title) for column, title in told.items()]
    points = base.mark_point(filled=True, opacity=1).encode(size=size, tooltip=tips)
    layers = [base.mark_line(strokeWidth=1.8).encode(strokeDash=dash), points]
    return style_chart(alt.LayerChart(layer=layers), PLOT + FOOT + 2 * LEGEND_ROW, theme)


def curves_data(lines: Sequence[Line], measure: str) -> pd.DataFrame:
    """A row a pass that has a value; passes count from 1."""
    return pd.DataFrame(
        [
            {
                "seed": str(line.seed), "pass": one.epoch + 1, "value": value, "shown": plain(value),
                "state": STATES[line.live], "kept": "yes" if one.epoch == line.best else "no",
            }
            for line in lines
            for one in line.passes
            if (value := getattr(one, measure)) is not None
        ]
    )  # fmt: skip


def numbers_table(lines: Sequence[Line]) -> pd.DataFrame:
    """A row a pass with all that was measured, for reading and for files."""
    return pd.DataFrame(
        [
            {
                "Seed": line.seed, "Pass": one.epoch + 1, MEASURES["validation"]: one.validation,
                MEASURES["loss"]: one.loss, MEASURES["outer"]: one.outer,
                "Kept": "yes" if one.epoch == line.best else "no",
            }
            for line in lines
            for one in line.passes
        ]
    )  # fmt: skip


def titled(measure: str, metric: str) -> str:
    """A measure with its unit."""
    return MEASURES[measure] if measure == "validation" else f"{MEASURES[measure]} ({LOSSES[metric]})"


def _blank(theme: Theme) -> alt.LayerChart:
    words = alt.Chart(pd.DataFrame({"words": [NOTHING]})).mark_text(fontSize=14, color=PALETTES[theme].muted)
    return style_chart(alt.LayerChart(layer=[words.encode(text="words:N")]), BLANK_HEIGHT, theme)
