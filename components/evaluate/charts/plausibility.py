"""Plausibility against faithfulness: whether the maps that look right to people are those that hold of the model."""

from __future__ import annotations

import altair as alt
import pandas as pd

from components.evaluate.charts.frame import Frame
from components.evaluate.charts.scatter import scatter_chart, scatter_table
from engine.evaluation.result import Evaluation
from engine.evaluation.views.pairs import Pair, pairs

PLAUSIBLE, FAITHFUL = "plausibility_auc", "comprehensiveness"


def plausibility_pairs(
    found: Evaluation, frame: Frame, plausible: str = PLAUSIBLE, faithful: str = FAITHFUL, model: str | None = None
) -> list[Pair]:
    """What the chart draws, of one model, the plan's first where none is named."""
    return pairs(found, plausible, faithful, frame.wanted([model or found.plan.models[0]]))


def plausibility_chart(
    found: Evaluation, frame: Frame, plausible: str = PLAUSIBLE, faithful: str = FAITHFUL, model: str | None = None
) -> alt.LayerChart:
    """A point a method: `plausible` across, `faithful` upwards, over the examples that have both."""
    return scatter_chart(plausibility_pairs(found, frame, plausible, faithful, model), found.plan.company, frame)


def plausibility_table(
    found: Evaluation, frame: Frame, plausible: str = PLAUSIBLE, faithful: str = FAITHFUL, model: str | None = None
) -> pd.DataFrame:
    """A row a method."""
    return scatter_table(plausibility_pairs(found, frame, plausible, faithful, model), frame)
