"""Plausibility of explainers as a chart of points with intervals, and as a table. Pure."""

from __future__ import annotations

from collections.abc import Mapping

import altair as alt
import pandas as pd

from components.charts.comparisons import interval_chart
from components.numbers import hundredths
from components.palette import PALETTES, Theme
from components.scaffold.section_words import TITLES
from engine.scaffold.plausibility import HEAD, LAYER, Row, Side

TITLES_OF_SIDES: Mapping[str, str] = {"": "", "first": ", first text (source)", "second": ", second text (target)"}
CHANCE = 0.5
DECIMALS = 3


def row_title(row: Row) -> str:
    """The explainer, with the layer or head that was chosen and a star where labels chose it."""
    title = TITLES.get(row.explainer, row.explainer)
    if row.explainer == LAYER:
        return f"{title} * ({row.at[0]})"
    return f"{title} * ({row.at[0]}.{row.at[1]})" if row.explainer == HEAD else title


def table_of(side: Side) -> pd.DataFrame:
    """A row an explainer, in the order of the paper's tables; a star: chosen by these labels."""
    return pd.DataFrame(
        [
            {
                "Explainer": row_title(row),
                "AUC": round(row.mean, DECIMALS),
                "Low": None if row.interval is None else round(row.interval[0], DECIMALS),
                "High": None if row.interval is None else round(row.interval[1], DECIMALS),
            }
            for row in side.rows
        ]
    )


def side_chart(side: Side, theme: Theme) -> alt.LayerChart:
    """A point an explainer and its 95 % interval, and a line at chance."""
    rows = side.rows
    table = pd.DataFrame([_drawn(row) for row in rows])
    ends = table[["Low", "AUC", "High"]].to_numpy()
    span = [min(CHANCE, float(ends.min())) - 0.02, min(1.0, float(ends.max()) + 0.02)]
    axis = alt.X("Low:Q", title="AUC, 0.5 by chance", scale=alt.Scale(domain=span, nice=False))
    line = alt.Chart(pd.DataFrame({"chance": [CHANCE]}))
    rule = line.mark_rule(color=PALETTES[theme].muted, strokeDash=[4, 4]).encode(x="chance:Q")
    names = [row_title(row) for row in rows]
    chart = interval_chart(table, names, ("AUC", "auc"), axis, None, theme)
    chart.layer = [rule, *chart.layer]
    return chart


def _drawn(row: Row) -> dict[str, object]:
    low, high = row.interval or (row.mean, row.mean)
    told = "none of one example" if row.interval is None else f"{hundredths(low)} to {hundredths(high)}"
    chosen = "by these labels" if row.supervised else "without labels"
    return {
        "Method": row_title(row), "AUC": row.mean, "Low": low, "High": high, "auc": hundredths(row.mean),
        "interval": told, "chosen": chosen,
    }  # fmt: skip
