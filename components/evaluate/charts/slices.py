"""A metric in each slice of the examples: by label, by whether the model is right, by length."""

from __future__ import annotations

from dataclasses import replace

import altair as alt
import pandas as pd

from components.evaluate.charts.axes import evenly
from components.evaluate.charts.bars import GROUP, bar_chart
from components.evaluate.charts.blank import blank_chart
from components.evaluate.charts.frame import Frame
from components.evaluate.charts.words import axis_words, from_zero, record, table_row
from components.numbers import count
from engine.evaluation.result import Evaluation
from engine.evaluation.views.points import narrowed, points
from engine.evaluation.views.slices import SLICES, slices
from engine.metrics.results import MetricScore

Sliced = list[tuple[str, MetricScore]]
"""Slice by slice, its name and a method's score in it."""


def slices_points(found: Evaluation, frame: Frame, id: str, by: str = SLICES[0], model: str | None = None) -> Sliced:
    """What the chart draws, of one model, the plan's first where none is named."""
    wanted = frame.wanted([model or found.plan.models[0]])
    return [
        (one.name, score) for one in slices(narrowed(found, id, wanted), by) for score in points(one.found, id, wanted)
    ]


def slices_chart(
    found: Evaluation, frame: Frame, id: str, by: str = SLICES[0], model: str | None = None
) -> alt.LayerChart:
    """The metric `id` of each method in each slice."""
    drawn = [(name, score) for name, score in slices_points(found, frame, id, by, model) if score.value is not None]
    if not drawn:
        return blank_chart(frame)
    rows = [{**record(score, replace(frame, slice=name)), GROUP: _group(name, score)} for name, score in drawn]
    x = evenly(axis_words(id), from_zero([score for _, score in drawn], frame))
    return bar_chart(pd.DataFrame(rows), found.plan.company, frame, x, {"slice": "Slice"})


def slices_table(
    found: Evaluation, frame: Frame, id: str, by: str = SLICES[0], model: str | None = None
) -> pd.DataFrame:
    """A row a slice and method."""
    drawn = slices_points(found, frame, id, by, model)
    return pd.DataFrame([table_row(score, replace(frame, slice=name)) for name, score in drawn])


def _group(name: str, score: MetricScore) -> str:
    """A slice with its number of examples, those without a value too."""
    return f"{name}: {count(score.n + sum(score.skipped.values()), 'example')}"
