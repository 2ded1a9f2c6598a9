"""A metric by architecture: a group of bars for each model, a bar a method."""

from __future__ import annotations

import altair as alt
import pandas as pd

from components.evaluate.charts.axes import evenly
from components.evaluate.charts.bars import GROUP, bar_chart
from components.evaluate.charts.blank import blank_chart
from components.evaluate.charts.frame import Frame
from components.evaluate.charts.scaling import size_columns
from components.evaluate.charts.words import axis_words, from_zero, record, table_row
from engine.evaluation.result import Evaluation
from engine.evaluation.views.sizes import Sized, Sizes, by_architecture


def architecture_points(found: Evaluation, frame: Frame, id: str, sizes: Sizes) -> list[Sized]:
    """What the chart draws, by architecture, the smallest model first."""
    return by_architecture(found, id, sizes, frame.methods)


def architecture_chart(found: Evaluation, frame: Frame, id: str, sizes: Sizes) -> alt.LayerChart:
    """The metric `id` of each method on each model."""
    drawn = [one for one in architecture_points(found, frame, id, sizes) if one.score.value is not None]
    if not drawn:
        return blank_chart(frame)
    table = pd.DataFrame([{**record(one.score, frame), **_of_group(one)} for one in drawn])
    x = evenly(axis_words(id), from_zero([one.score for one in drawn], frame))
    return bar_chart(table, found.plan.company, frame, x, {"architecture": "Architecture", "parameters": "Parameters"})


def architecture_table(found: Evaluation, frame: Frame, id: str, sizes: Sizes) -> pd.DataFrame:
    """A row a model and method."""
    drawn = architecture_points(found, frame, id, sizes)
    return pd.DataFrame([table_row(one.score, frame, size_columns(one.size)) for one in drawn])


def _of_group(one: Sized) -> dict[str, object]:
    kind, number = one.size.architecture, f"{one.size.parameters:,}"
    return {GROUP: f"{kind}: {one.score.model}", "architecture": kind, "parameters": number}
