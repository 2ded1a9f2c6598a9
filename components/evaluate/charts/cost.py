"""What a method's quality costs: a metric against model evaluations or seconds an example."""

from __future__ import annotations

import altair as alt
import pandas as pd

from components.evaluate.charts.frame import Frame
from components.evaluate.charts.scatter import scatter_chart, scatter_table
from engine.evaluation.result import Evaluation
from engine.evaluation.views.pairs import COSTS, Pair, pairs


def cost_pairs(found: Evaluation, frame: Frame, id: str, cost: str = COSTS[0], model: str | None = None) -> list[Pair]:
    """What the chart draws, of one model, the plan's first where none is named."""
    return pairs(found, cost, id, frame.wanted([model or found.plan.models[0]]))


def cost_chart(
    found: Evaluation, frame: Frame, id: str, cost: str = COSTS[0], model: str | None = None
) -> alt.LayerChart:
    """The metric `id` over `evaluations` or `seconds`, on a logarithmic axis: ten times the cost is one step."""
    return scatter_chart(cost_pairs(found, frame, id, cost, model), found.plan.company, frame, log=True)


def cost_table(
    found: Evaluation, frame: Frame, id: str, cost: str = COSTS[0], model: str | None = None
) -> pd.DataFrame:
    """A row a method."""
    return scatter_table(cost_pairs(found, frame, id, cost, model), frame)
