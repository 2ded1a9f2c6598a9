"""A metric along the sizes of one architecture: a line a method over the number of parameters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import altair as alt
import pandas as pd

from components.evaluate.charts.axes import Axis, by_factors, evenly
from components.evaluate.charts.blank import blank_chart
from components.evaluate.charts.frame import Frame
from components.evaluate.charts.lines import AT, line_chart
from components.evaluate.charts.words import axis_words, record, span_of, table_row
from engine.evaluation.result import Evaluation
from engine.evaluation.views.sizes import Sized, Sizes, scaling
from engine.models.sizes import ModelSize

SHORT = "format(datum.value, '.3~s')"
"""350k, 1.1M."""


def scaling_points(found: Evaluation, frame: Frame, id: str, sizes: Sizes, family: str | None = None) -> list[Sized]:
    """What the chart draws: the models of one architecture, the first with several sizes where none is named."""
    return scaling(found, id, sizes, family, frame.methods)


def scaling_chart(
    found: Evaluation, frame: Frame, id: str, sizes: Sizes, family: str | None = None, bands: bool = True
) -> alt.LayerChart:
    """The metric `id` over parameters, on a logarithmic axis with a tick for each model."""
    drawn = [one for one in scaling_points(found, frame, id, sizes, family) if one.score.value is not None]
    if not drawn:
        return blank_chart(frame)
    table = pd.DataFrame([{**record(one.score, frame), **_of_size(one.size)} for one in drawn])
    y = evenly(axis_words(id), frame.span or span_of(one.score for one in drawn))
    told = {"parameters": "Parameters", "blocks": "Blocks"}
    return line_chart(table, found.plan.company, frame, (_across(drawn), y), told, bands)


def scaling_table(found: Evaluation, frame: Frame, id: str, sizes: Sizes, family: str | None = None) -> pd.DataFrame:
    """A row a model and method, the smallest model first."""
    drawn = scaling_points(found, frame, id, sizes, family)
    return pd.DataFrame([table_row(one.score, frame, size_columns(one.size)) for one in drawn])


def size_columns(size: ModelSize) -> Mapping[str, object]:
    """What tables say of a model's size."""
    return {"Architecture": size.architecture, "Parameters": size.parameters, "Blocks": size.blocks}


def _of_size(size: ModelSize) -> Mapping[str, object]:
    return {AT: size.parameters, "parameters": f"{size.parameters:,}", "blocks": str(size.blocks)}


def _across(drawn: Sequence[Sized]) -> Axis:
    at = sorted({one.size.parameters for one in drawn})
    ticks = alt.Axis(values=at, labelExpr=SHORT, labelOverlap="greedy")
    words = (f"parameters of the {drawn[0].size.architecture} models,", "on a logarithmic axis")
    return Axis(words, by_factors(words, at).scale, ticks)
