"""The charts of an evaluation, one a view: pure builders, each with the table of what it draws.

Each view has three functions: `..._scores` (or `..._pairs`) is what the chart draws, `..._chart` draws it, `..._table`
has its numbers. Where `model` is None, they are of the plan's first model.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

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
from engine.evaluation.groups import (
    SLICES,
    SizedScore,
    Sizes,
    scores_by_architecture,
    scores_by_size,
    size_ratio,
    split,
)
from engine.evaluation.result import Evaluation
from engine.evaluation.scores import COSTS, ScorePair, compute_scores, narrow, pair_scores, predicts_scores
from engine.evaluation.strength import GradedScore
from engine.metrics.catalog import metric
from engine.metrics.results import MetricScore
from engine.models.sizes import ModelSize, format_parameters

REMOVED = {"without_top": MOVED["deletion"], "with_top": MOVED["insertion"]}
"""What becomes of the units with the highest scores, by metric."""
PROBABILITY = (0, 1)
"""The whole axis, so that no small fall looks large."""
PLAUSIBLE, FAITHFUL = "plausibility_auc", "comprehensiveness"
SHORT = "format(datum.value, '.3~s')"
"""350k, 1.1M."""
ALIKE = 1.5
"""Models that differ by less than this factor count as of one size."""
Sliced = list[tuple[str, MetricScore]]
"""Slice by slice, its name and a method's score in it."""
OVER_DATA = ("share of the examples that carry the mark", "share of all scores that is on the mark")
OVER_TRAINING = (
    "share of the training examples that carried the mark",
    "share of an example's scores that is on its mark",
)
"""The titles of both axes, over data and over training."""
IDEAL = {OVER_DATA: "everything on the mark", OVER_TRAINING: "what the mark decides"}
LOOSE = [6, 4]
"""The dashes of the line that no method drew."""


def removal_scores(
    evaluation: Evaluation, frame: ChartFrame, model: str | None = None, id: str = "without_top"
) -> list[MetricScore]:
    """What the chart draws: the curves of one model, the plan's first where none is named."""
    return compute_scores(evaluation, id, frame.filter([model or evaluation.plan.models[0]]))


def removal_chart(
    evaluation: Evaluation, frame: ChartFrame, model: str | None = None, id: str = "without_top", bands: bool = True
) -> alt.LayerChart:
    """A line a method, random's dotted, over the share of units removed (`without_top`) or kept (`with_top`)."""
    drawn = [one for one in removal_scores(evaluation, frame, model, id) if one.value is not None]
    if not drawn:
        return blank_chart(frame)
    across = [f"share of {plural(evaluation.plan.units)} {REMOVED[id]},", "highest score first"]
    x = ChartAxis(across, alt.Scale(domain=[0, 1]), alt.Axis(format="%", tickCount=10))
    y = linear_axis(
        _removal_axis_title(evaluation, id),
        frame.value_range or (range_of(drawn) if predicts_scores(evaluation) else PROBABILITY),
    )
    return line_chart(
        _removal_data(drawn, frame, evaluation),
        evaluation.plan.methods_with_baselines,
        frame,
        (x, y),
        {"moved": REMOVED[id]},
        bands,
    )


def removal_table(
    evaluation: Evaluation, frame: ChartFrame, model: str | None = None, id: str = "without_top"
) -> pd.DataFrame:
    """A row a method and share of units, those without a value too."""
    share = f"{REMOVED[id].capitalize()}, %"
    return pd.DataFrame(
        [table_row(one, frame, {share: one.percent}) for one in removal_scores(evaluation, frame, model, id)]
    )


def _removal_data(drawn: Sequence[MetricScore], frame: ChartFrame, evaluation: Evaluation) -> pd.DataFrame:
    units = plural(evaluation.plan.units)
    shares = [{AT: (one.percent or 0) / 100, "moved": f"{one.percent} % of the {units}"} for one in drawn]
    return pd.DataFrame([{**chart_row(one, frame), **share} for one, share in zip(drawn, shares, strict=True)])


def _removal_axis_title(evaluation: Evaluation, id: str) -> list[str]:
    what = "score of the model" if predicts_scores(evaluation) else "probability of the predicted class"
    return [what, BETTER[metric(id).better]]


def plausibility_pairs(
    evaluation: Evaluation,
    frame: ChartFrame,
    plausible: str = PLAUSIBLE,
    faithful: str = FAITHFUL,
    model: str | None = None,
) -> list[ScorePair]:
    """What the chart draws, of one model, the plan's first where none is named."""
    return pair_scores(evaluation, plausible, faithful, frame.filter([model or evaluation.plan.models[0]]))


def plausibility_chart(
    evaluation: Evaluation,
    frame: ChartFrame,
    plausible: str = PLAUSIBLE,
    faithful: str = FAITHFUL,
    model: str | None = None,
) -> alt.LayerChart:
    """A point a method: `plausible` across, `faithful` upwards, over the examples that have both."""
    return scatter_chart(
        plausibility_pairs(evaluation, frame, plausible, faithful, model), evaluation.plan.methods_with_baselines, frame
    )


def plausibility_table(
    evaluation: Evaluation,
    frame: ChartFrame,
    plausible: str = PLAUSIBLE,
    faithful: str = FAITHFUL,
    model: str | None = None,
) -> pd.DataFrame:
    """A row a method."""
    return scatter_table(plausibility_pairs(evaluation, frame, plausible, faithful, model), frame)


def cost_pairs(
    evaluation: Evaluation, frame: ChartFrame, id: str, cost: str = COSTS[0], model: str | None = None
) -> list[ScorePair]:
    """What the chart draws, of one model, the plan's first where none is named."""
    return pair_scores(evaluation, cost, id, frame.filter([model or evaluation.plan.models[0]]))


def cost_chart(
    evaluation: Evaluation, frame: ChartFrame, id: str, cost: str = COSTS[0], model: str | None = None
) -> alt.LayerChart:
    """The metric `id` over `evaluations` or `seconds`, on a logarithmic axis: ten times the cost is one step."""
    return scatter_chart(
        cost_pairs(evaluation, frame, id, cost, model), evaluation.plan.methods_with_baselines, frame, log=True
    )


def cost_table(
    evaluation: Evaluation, frame: ChartFrame, id: str, cost: str = COSTS[0], model: str | None = None
) -> pd.DataFrame:
    """A row a method."""
    return scatter_table(cost_pairs(evaluation, frame, id, cost, model), frame)


def scaling_scores(
    evaluation: Evaluation, frame: ChartFrame, id: str, sizes: Sizes, family: str | None = None
) -> list[SizedScore]:
    """What the chart draws: the models of one architecture, the first with several sizes where none is named."""
    return scores_by_size(evaluation, id, sizes, family, frame.methods)


def scaling_chart(
    evaluation: Evaluation, frame: ChartFrame, id: str, sizes: Sizes, family: str | None = None, bands: bool = True
) -> alt.LayerChart:
    """The metric `id` over parameters, on a logarithmic axis with a tick for each model."""
    drawn = [one for one in scaling_scores(evaluation, frame, id, sizes, family) if one.score.value is not None]
    if not drawn:
        return blank_chart(frame)
    table = pd.DataFrame([{**chart_row(one.score, frame), **_size_row(one.size)} for one in drawn])
    y = linear_axis(axis_title(id), frame.value_range or range_of(one.score for one in drawn))
    more = {"parameters": "Parameters", "blocks": "Blocks"}
    return line_chart(table, evaluation.plan.methods_with_baselines, frame, (_size_axis(drawn), y), more, bands)


def scaling_table(
    evaluation: Evaluation, frame: ChartFrame, id: str, sizes: Sizes, family: str | None = None
) -> pd.DataFrame:
    """A row a model and method, the smallest model first."""
    drawn = scaling_scores(evaluation, frame, id, sizes, family)
    return pd.DataFrame([table_row(one.score, frame, size_columns(one.size)) for one in drawn])


def size_columns(size: ModelSize) -> Mapping[str, object]:
    """What tables say of a model's size."""
    return {"Architecture": size.architecture, "Parameters": size.parameters, "Blocks": size.blocks}


def _size_row(size: ModelSize) -> Mapping[str, object]:
    return {AT: size.parameters, "parameters": f"{size.parameters:,}", "blocks": str(size.blocks)}


def _size_axis(drawn: Sequence[SizedScore]) -> ChartAxis:
    at = sorted({one.size.parameters for one in drawn})
    ticks = alt.Axis(values=at, labelExpr=SHORT, labelOverlap="greedy")
    words = (f"parameters of the {drawn[0].size.architecture} models,", "on a logarithmic axis")
    return ChartAxis(words, log_axis(words, at).scale, ticks)


def architecture_scores(evaluation: Evaluation, frame: ChartFrame, id: str, sizes: Sizes) -> list[SizedScore]:
    """What the chart draws, by architecture, the smallest model first."""
    return scores_by_architecture(evaluation, id, sizes, frame.methods)


def architecture_chart(evaluation: Evaluation, frame: ChartFrame, id: str, sizes: Sizes) -> alt.LayerChart:
    """The metric `id` of each method on each model."""
    drawn = [one for one in architecture_scores(evaluation, frame, id, sizes) if one.score.value is not None]
    if not drawn:
        return blank_chart(frame)
    table = pd.DataFrame([{**chart_row(one.score, frame), **_architecture_row(one)} for one in drawn])
    x = linear_axis(axis_title(id), range_from_zero([one.score for one in drawn], frame))
    return bar_chart(
        table,
        evaluation.plan.methods_with_baselines,
        frame,
        x,
        {"architecture": "Architecture", "parameters": "Parameters"},
    )


def architecture_table(evaluation: Evaluation, frame: ChartFrame, id: str, sizes: Sizes) -> pd.DataFrame:
    """A row a model and method."""
    drawn = architecture_scores(evaluation, frame, id, sizes)
    return pd.DataFrame([table_row(one.score, frame, size_columns(one.size)) for one in drawn])


def unequal_sizes_text(sizes: Sizes) -> str:
    """A sentence where the models are not of about one size, empty where they are."""
    factor = size_ratio(sizes)
    if factor <= ALIKE:
        return ""
    return (
        f"The largest of these models has {factor:.1f} times as many parameters as the smallest, so that a difference "
        "may come from size. Compare models of about one size, or see Scaling for what size does."
    )


def _architecture_row(one: SizedScore) -> dict[str, object]:
    kind, number = one.size.architecture, f"{one.size.parameters:,}"
    words = f"{kind}, {format_parameters(one.size)}: {one.score.model}"
    return {GROUP: words, "architecture": kind, "parameters": number}


def slice_scores(
    evaluation: Evaluation, frame: ChartFrame, id: str, by: str = SLICES[0], model: str | None = None
) -> Sliced:
    """What the chart draws, of one model, the plan's first where none is named."""
    wanted = frame.filter([model or evaluation.plan.models[0]])
    return [
        (one.name, score)
        for one in split(narrow(evaluation, id, wanted), by)
        for score in compute_scores(one.evaluation, id, wanted)
    ]


def slice_chart(
    evaluation: Evaluation, frame: ChartFrame, id: str, by: str = SLICES[0], model: str | None = None
) -> alt.LayerChart:
    """The metric `id` of each method in each slice."""
    drawn = [(name, score) for name, score in slice_scores(evaluation, frame, id, by, model) if score.value is not None]
    if not drawn:
        return blank_chart(frame)
    rows = [{**chart_row(score, replace(frame, slice=name)), GROUP: _slice_group(name, score)} for name, score in drawn]
    x = linear_axis(axis_title(id), range_from_zero([score for _, score in drawn], frame))
    return bar_chart(pd.DataFrame(rows), evaluation.plan.methods_with_baselines, frame, x, {"slice": "Slice"})


def slice_table(
    evaluation: Evaluation, frame: ChartFrame, id: str, by: str = SLICES[0], model: str | None = None
) -> pd.DataFrame:
    """A row a slice and method."""
    drawn = slice_scores(evaluation, frame, id, by, model)
    return pd.DataFrame([table_row(score, replace(frame, slice=name)) for name, score in drawn])


def _slice_group(name: str, score: MetricScore) -> str:
    """A slice with its number of examples, those without a value too."""
    return f"{name}: {count(score.n + sum(score.skipped.values()), 'example')}"


def strength_chart(
    graded: Sequence[GradedScore],
    company: Sequence[str],
    frame: ChartFrame,
    words: tuple[str, str] = OVER_DATA,
    bands: bool = True,
) -> alt.LayerChart:
    """A line a method over the strength of the mark, and a grey one of what there is to be reached.

    `graded`: of `over_data` with the words `OVER_DATA`, or of `over_training` with `OVER_TRAINING`.
    """
    shown = frame.drawn_methods(company)
    drawn = [one for one in graded if one.score.value is not None and one.score.method in shown]
    if not drawn:
        return blank_chart(frame)
    table = pd.DataFrame([{**chart_row(one.score, frame), **_strength_row(one)} for one in drawn])
    low, high = range_from_zero([one.score for one in drawn], frame)
    x = ChartAxis([words[0]], alt.Scale(domain=[0, 1]), alt.Axis(format="%", tickCount=5))
    y = linear_axis([words[1], BETTER["high"]], (low, max(1.0, high)))
    chart = line_chart(table, company, frame, (x, y), {"carried": "The mark", "ideal": IDEAL[words]}, bands)
    chart.layer = [*_ideal_layers(drawn, frame, (x, y), IDEAL[words]), *chart.layer]
    return chart


def strength_table(
    graded: Sequence[GradedScore], frame: ChartFrame, words: tuple[str, str] = OVER_DATA
) -> pd.DataFrame:
    """A row a strength and method."""
    return pd.DataFrame(
        [
            table_row(
                one.score,
                frame,
                {"Strength": round_number(one.strength), IDEAL[words].capitalize(): round_number(one.ideal)},
            )
            for one in graded
        ]
    )


def equal_strengths_text(places: Sequence[Sequence[float]]) -> str:
    """A sentence about strengths at one place, empty where there are none such."""
    named = "; ".join(" and ".join(f"{one:g}" for one in strengths) for strengths in places)
    if not named:
        return ""
    return (
        f"Strengths {named}: of the examples drawn equally many carry the mark, so that their points lie on each "
        "other. More examples set them apart."
    )


def _strength_row(one: GradedScore) -> dict[str, object]:
    ideal = "not known" if one.ideal is None else percent(one.ideal)
    return {AT: one.strength, "carried": f"in {percent(one.strength)} of the examples", "ideal": ideal}


def _ideal_layers(
    drawn: Sequence[GradedScore], frame: ChartFrame, axes: tuple[ChartAxis, ChartAxis], name: str
) -> list[alt.Chart]:
    """As far as it is known; its name is at its last point."""
    known = sorted({(one.strength, one.ideal) for one in drawn if one.ideal is not None})
    if not known:
        return []
    x, y = axes
    grey = PALETTES[frame.theme].muted
    base = alt.Chart(pd.DataFrame(known, columns=[AT, "value"])).encode(x=x.x(AT), y=y.y("value"))
    end = alt.Chart(pd.DataFrame([{AT: known[-1][0], "value": known[-1][1], "words": name}]))
    words = end.mark_text(align="right", baseline="bottom", dx=-8, dy=-4, fontSize=13, color=grey)
    return [
        base.mark_line(strokeDash=LOOSE, strokeWidth=2, color=grey, point={"color": grey, "size": 30}),
        words.encode(x=x.x(AT), y=y.y("value"), text="words:N"),
    ]
