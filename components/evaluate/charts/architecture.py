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
from engine.evaluation.views.sizes import Sized, Sizes, by_architecture, spread
from engine.models.sizes import format_parameters

ALIKE = 1.5
"""Models that differ by less than this factor count as of one size."""


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


def unlike_words(sizes: Sizes) -> str:
    """A sentence where the models are not of about one size, empty where they are."""
    factor = spread(sizes)
    if factor <= ALIKE:
        return ""
    return (
        f"The largest of these models has {factor:.1f} times as many parameters as the smallest, so that a difference "
        "may come from size. Compare models of about one size, or see Scaling for what size does."
    )


def _of_group(one: Sized) -> dict[str, object]:
    kind, number = one.size.architecture, f"{one.size.parameters:,}"
    words = f"{kind}, {format_parameters(one.size)}: {one.score.model}"
    return {GROUP: words, "architecture": kind, "parameters": number}
