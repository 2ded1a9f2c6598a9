"""The charts of an evaluation: pure builders, each with the table of the numbers that it draws."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import altair as alt
import pandas as pd

from components.charts.comparisons import MOVED
from components.charts.frame import ChartAxis, ChartFrame, blank_chart, linear_axis, log_axis
from components.charts.scores import (
    AT,
    BETTER,
    GROUP,
    axis_title,
    bar_chart,
    chart_row,
    line_chart,
    range_from_zero,
    range_of,
    round_number,
    scatter_chart,
    scatter_table,
    table_row,
)
from components.numbers import count, percent, plural
from components.palette import PALETTES
from engine.evaluation.groups import Sizes, scores_by_architecture, scores_by_size, size_ratio, split
from engine.evaluation.result import Evaluation
from engine.evaluation.scores import ScorePair, compute_scores, narrow, pair_scores, predicts_scores
from engine.evaluation.strength import GradedScore
from engine.metrics.catalog import metric
from engine.metrics.results import MetricScore
from engine.models.sizes import ModelSize, format_parameters

REMOVED = {"without_top": MOVED["deletion"], "with_top": MOVED["insertion"]}
"""What becomes of the units with the highest scores, by metric."""
PROBABILITY = (0, 1)
"""The whole axis, so that no small fall looks large."""
SHORT = "format(datum.value, '.3~s')"
"""350k, 1.1M."""
ALIKE = 1.5
"""Models that differ by less than this factor count as of one size."""
OVER_DATA = ("share of the examples that carry the mark", "share of all scores that is on the mark")
OVER_TRAINING = (
    "share of the training examples that carried the mark",
    "share of an example's scores that is on its mark",
)
"""The titles of both axes, over data and over training."""
IDEAL = {OVER_DATA: "everything on the mark", OVER_TRAINING: "the mark's share of the decision"}
LOOSE = [6, 4]
"""The dashes of the line that no method drew."""


@dataclass(frozen=True)
class PlacedScore:
    """A score and its place in a chart.

    `place`: columns of the chart besides those that every score has. `columns`: such columns of the table of numbers.
    `slice`: the name of its slice of the examples, empty for all of them.
    """

    score: MetricScore
    place: Mapping[str, object]
    columns: Mapping[str, object]
    slice: str = ""


class ScoreChart(ABC):
    """A chart of an evaluation, or of a part of one, and the table of its numbers.

    `name`: in the names of its files and the keys of its widgets. `others`: the evaluations that it is drawn from where
    they are not the one given; then its points have no examples of the one given behind them.
    """

    name: ClassVar[str]
    others: tuple[Evaluation, ...] = ()

    @abstractmethod
    def chart(self, evaluation: Evaluation, frame: ChartFrame) -> alt.LayerChart:
        """The chart; a sentence in its place where there is nothing to draw."""

    @abstractmethod
    def table(self, evaluation: Evaluation, frame: ChartFrame) -> pd.DataFrame:
        """One row per score, including the scores without a value."""


class PlacedScoresChart(ScoreChart):
    """A chart that draws each score at a place of its own."""

    @abstractmethod
    def scores(self, evaluation: Evaluation, frame: ChartFrame) -> Iterator[PlacedScore]:
        """The scores in the order of the table."""

    @abstractmethod
    def draw(
        self, table: pd.DataFrame, scores: Sequence[MetricScore], evaluation: Evaluation, frame: ChartFrame
    ) -> alt.LayerChart:
        """The chart of the scores that have a value; `table` has one row for each."""

    def chart(self, evaluation: Evaluation, frame: ChartFrame) -> alt.LayerChart:
        methods = frame.drawn_methods(evaluation.plan.methods_with_baselines)
        drawn = [
            one for one in self.scores(evaluation, frame) if one.score.value is not None and one.score.method in methods
        ]
        if not drawn:
            return blank_chart(frame)
        rows = [{**chart_row(one.score, _frame_of(one, frame)), **one.place} for one in drawn]
        return self.draw(pd.DataFrame(rows), [one.score for one in drawn], evaluation, frame)

    def table(self, evaluation: Evaluation, frame: ChartFrame) -> pd.DataFrame:
        scores = self.scores(evaluation, frame)
        return pd.DataFrame([table_row(one.score, _frame_of(one, frame), one.columns) for one in scores])


def _frame_of(one: PlacedScore, frame: ChartFrame) -> ChartFrame:
    return replace(frame, slice=one.slice) if one.slice else frame


@dataclass(frozen=True)
class RemovalChart(PlacedScoresChart):
    """Removal curves of one model: a line per method over the share of units removed or kept, random's dotted.

    `metric`: `without_top` (removed) or `with_top` (kept).
    """

    model: str
    metric: str = "without_top"
    name = "curves"

    def scores(self, evaluation: Evaluation, frame: ChartFrame) -> Iterator[PlacedScore]:
        units, column = plural(evaluation.plan.units), f"{REMOVED[self.metric].capitalize()}, %"
        for one in compute_scores(evaluation, self.metric, frame.filter([self.model])):
            place = {AT: (one.percent or 0) / 100, "moved": f"{one.percent}% of the {units}"}
            yield PlacedScore(one, place, {column: one.percent})

    def draw(
        self, table: pd.DataFrame, scores: Sequence[MetricScore], evaluation: Evaluation, frame: ChartFrame
    ) -> alt.LayerChart:
        moved, regression = REMOVED[self.metric], predicts_scores(evaluation)
        across = [f"share of {plural(evaluation.plan.units)} {moved},", "highest score first"]
        x = ChartAxis(across, alt.Scale(domain=[0, 1]), alt.Axis(format="%", tickCount=10))
        quantity = "score of the model" if regression else "probability of the predicted class"
        ends = frame.value_range or (range_of(scores) if regression else PROBABILITY)
        y = linear_axis([quantity, BETTER[metric(self.metric).better]], ends)
        return line_chart(table, evaluation.plan.methods_with_baselines, frame, (x, y), {"moved": moved})


@dataclass(frozen=True)
class PlausibilityChart(ScoreChart):
    """Two metrics of one model against each other: a point per method, over the examples that have both values."""

    x: str
    y: str
    model: str
    name = "plausibility"
    is_logarithmic = False

    def pairs(self, evaluation: Evaluation, frame: ChartFrame) -> list[ScorePair]:
        """The values of each method by both metrics."""
        return pair_scores(evaluation, self.x, self.y, frame.filter([self.model]))

    def chart(self, evaluation: Evaluation, frame: ChartFrame) -> alt.LayerChart:
        company = evaluation.plan.methods_with_baselines
        return scatter_chart(self.pairs(evaluation, frame), company, frame, self.is_logarithmic)

    def table(self, evaluation: Evaluation, frame: ChartFrame) -> pd.DataFrame:
        return scatter_table(self.pairs(evaluation, frame), frame)


class CostChart(PlausibilityChart):
    """A metric over a cost, whose axis is logarithmic: ten times the cost is one step."""

    name = "cost"
    is_logarithmic = True


@dataclass(frozen=True)
class ScalingChart(PlacedScoresChart):
    """A metric over the numbers of parameters of one architecture's models, on a logarithmic axis.

    `architecture`: the first that has several sizes where it is empty.
    """

    metric: str
    sizes: Sizes
    architecture: str = ""
    name = "scaling"

    def scores(self, evaluation: Evaluation, frame: ChartFrame) -> Iterator[PlacedScore]:
        sized = scores_by_size(evaluation, self.metric, self.sizes, self.architecture, frame.methods)
        for one in sized:
            parameters, blocks = one.size.parameters, one.size.blocks
            place = {AT: parameters, "parameters": f"{parameters:,}", "blocks": str(blocks)}
            yield PlacedScore(one.score, place, size_columns(one.size))

    def draw(
        self, table: pd.DataFrame, scores: Sequence[MetricScore], evaluation: Evaluation, frame: ChartFrame
    ) -> alt.LayerChart:
        at = sorted(set(table[AT].tolist()))
        architecture = self.sizes[scores[0].model].architecture
        title = (f"parameters of the {architecture} models,", "on a logarithmic axis")
        x = replace(
            log_axis(title, at), ticks=alt.Axis(values=at, labelExpr=SHORT, labelOverlap="greedy")
        )  # fmt: skip
        y = linear_axis(axis_title(self.metric), frame.value_range or range_of(scores))
        more = {"parameters": "Parameters", "blocks": "Blocks"}
        return line_chart(table, evaluation.plan.methods_with_baselines, frame, (x, y), more)


def size_columns(size: ModelSize) -> Mapping[str, object]:
    """A model's size in a table."""
    return {"Architecture": size.architecture, "Parameters": size.parameters, "Blocks": size.blocks}


@dataclass(frozen=True)
class ArchitectureChart(PlacedScoresChart):
    """A metric by method in a group for each model, by architecture, the smallest model first."""

    metric: str
    sizes: Sizes
    name = "architectures"

    def scores(self, evaluation: Evaluation, frame: ChartFrame) -> Iterator[PlacedScore]:
        for one in scores_by_architecture(evaluation, self.metric, self.sizes, frame.methods):
            architecture, parameters = one.size.architecture, f"{one.size.parameters:,}"
            group = f"{architecture}, {format_parameters(one.size)}: {one.score.model}"
            place = {GROUP: group, "architecture": architecture, "parameters": parameters}
            yield PlacedScore(one.score, place, size_columns(one.size))

    def draw(
        self, table: pd.DataFrame, scores: Sequence[MetricScore], evaluation: Evaluation, frame: ChartFrame
    ) -> alt.LayerChart:
        x = linear_axis(axis_title(self.metric), range_from_zero(scores, frame))
        more = {"architecture": "Architecture", "parameters": "Parameters"}
        return bar_chart(table, evaluation.plan.methods_with_baselines, frame, x, more)


def unequal_sizes_text(sizes: Sizes) -> str:
    """A sentence where the models are not of about one size, empty where they are."""
    factor = size_ratio(sizes)
    if factor <= ALIKE:
        return ""
    return (
        f"The largest of these models has {factor:.1f} times as many parameters as the smallest, so differences may "
        "come from size. Compare models of similar size, or see Scaling."
    )


@dataclass(frozen=True)
class SliceChart(PlacedScoresChart):
    """A metric of one model by method in a group for each slice of the examples."""

    metric: str
    by: str
    model: str
    name = "slices"

    def scores(self, evaluation: Evaluation, frame: ChartFrame) -> Iterator[PlacedScore]:
        wanted = frame.filter([self.model])
        for part in split(narrow(evaluation, self.metric, wanted), self.by):
            for score in compute_scores(part.evaluation, self.metric, wanted):
                size = count(score.n + sum(score.skipped.values()), "example")
                yield PlacedScore(score, {GROUP: f"{part.name}: {size}"}, {}, part.name)

    def draw(
        self, table: pd.DataFrame, scores: Sequence[MetricScore], evaluation: Evaluation, frame: ChartFrame
    ) -> alt.LayerChart:
        x = linear_axis(axis_title(self.metric), range_from_zero(scores, frame))
        return bar_chart(table, evaluation.plan.methods_with_baselines, frame, x, {"slice": "Slice"})


@dataclass(frozen=True)
class StrengthChart(PlacedScoresChart):
    """A line per method over the strength of the mark, and a gray one of the value that there is to be reached.

    `graded`: of `grade_by_data` with the titles `OVER_DATA`, or of `grade_by_training` with `OVER_TRAINING`.
    """

    graded: tuple[GradedScore, ...]
    titles: tuple[str, str] = OVER_DATA
    others: tuple[Evaluation, ...] = ()
    name = "strength"

    def scores(self, evaluation: Evaluation, frame: ChartFrame) -> Iterator[PlacedScore]:
        for one in self.graded:
            ideal = "not known" if one.ideal is None else percent(one.ideal)
            place = {AT: one.strength, "carried": f"in {percent(one.strength)} of the examples", "ideal": ideal}
            numbers = {"Strength": one.strength, IDEAL[self.titles].capitalize(): one.ideal}
            columns = {title: round_number(number) for title, number in numbers.items()}
            yield PlacedScore(one.score, place, columns)

    def draw(
        self, table: pd.DataFrame, scores: Sequence[MetricScore], evaluation: Evaluation, frame: ChartFrame
    ) -> alt.LayerChart:
        low, high = range_from_zero(scores, frame)
        x = ChartAxis([self.titles[0]], alt.Scale(domain=[0, 1]), alt.Axis(format="%", tickCount=5))
        y = linear_axis([self.titles[1], BETTER["high"]], (low, max(1.0, high)))
        more = {"carried": "The mark", "ideal": IDEAL[self.titles]}
        chart = line_chart(table, evaluation.plan.methods_with_baselines, frame, (x, y), more)
        methods = {one.method for one in scores}
        drawn = [one for one in self.graded if one.score.method in methods and one.score.value is not None]
        chart.layer = [*self._ideal_layers(drawn, frame, x, y), *chart.layer]
        return chart

    def _ideal_layers(
        self, drawn: Sequence[GradedScore], frame: ChartFrame, x: ChartAxis, y: ChartAxis
    ) -> list[alt.Chart]:  # fmt: skip
        """The line of ideal values as far as they are known, with its name at the last point."""
        known = sorted({(one.strength, one.ideal) for one in drawn if one.ideal is not None})
        if not known:
            return []
        gray = PALETTES[frame.theme].muted
        base = alt.Chart(pd.DataFrame(known, columns=[AT, "value"])).encode(x=x.x(AT), y=y.y("value"))
        end = alt.Chart(pd.DataFrame([{AT: known[-1][0], "value": known[-1][1], "words": IDEAL[self.titles]}]))
        words = end.mark_text(align="right", baseline="bottom", dx=-8, dy=-4, fontSize=13, color=gray)
        return [
            base.mark_line(strokeDash=LOOSE, strokeWidth=2, color=gray, point={"color": gray, "size": 30}),
            words.encode(x=x.x(AT), y=y.y("value"), text="words:N"),
        ]


def equal_strengths_text(places: Sequence[Sequence[float]]) -> str:
    """A sentence about strengths at one place, empty where there are none such."""
    named = "; ".join(" and ".join(f"{one:g}" for one in strengths) for strengths in places)
    if not named:
        return ""
    return (
        f"Strengths {named}: equally many of the sampled examples carry the mark, so the points coincide. More "
        "examples separate them."
    )
