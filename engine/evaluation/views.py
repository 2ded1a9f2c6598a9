"""The charts of an evaluation, and whether each applies."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from engine.evaluation.groups import MASS, Sizes, architectures, mark_strength, size_ladders
from engine.evaluation.result import Evaluation
from engine.evaluation.scores import COSTS, curve_metrics, scalar_metrics
from engine.metrics.catalog import METRICS
from engine.models.summary import format_parameters

PLAUSIBLE = ("marks", "pair")
FEW_BANDS = "with many methods they are hidden, but each point shows its own on hover."


@dataclass(frozen=True)
class ViewContext:
    """Facts that are not in the evaluation itself.

    `sizes`: sizes of its models. `strengths`: number of strengths of the mark at which the data set was evaluated or
    the models were trained.
    """

    sizes: Sizes = field(default_factory=dict)
    strengths: int = 1


@dataclass(frozen=True)
class ViewInfo:
    """A kind of chart. `question`: the question that it answers. `about`: how to read it, with its caveats.

    `obstacle`: returns why the chart does not apply to an evaluation and what to do about it; None if it applies.
    """

    question: str
    about: str
    obstacle: Callable[[Evaluation, ViewContext], str | None]


def faithfulness_metrics(evaluation: Evaluation) -> list[str]:
    """The faithfulness metrics that were measured."""
    return [id for id in scalar_metrics(evaluation) if METRICS[id].needs == "removal"]


def plausibility_metrics(evaluation: Evaluation) -> list[str]:
    """The metrics that were measured of agreement with marks, by people or from ground truth."""
    return [id for id in scalar_metrics(evaluation) if METRICS[id].needs in PLAUSIBLE]


def cost_metrics(evaluation: Evaluation) -> list[str]:
    """The costs that were measured."""
    return [id for id in scalar_metrics(evaluation) if id in COSTS]


def quality_metrics(evaluation: Evaluation) -> list[str]:
    """The metrics that were measured, without the costs."""
    return [id for id in scalar_metrics(evaluation) if id not in COSTS]


def _curves(evaluation: Evaluation, context: ViewContext) -> str | None:
    return None if curve_metrics(evaluation) else "No removal curve was measured: evaluate without_top or with_top too."


def _cost(evaluation: Evaluation, context: ViewContext) -> str | None:
    if not cost_metrics(evaluation):
        return "No cost was measured: evaluate evaluations or seconds too."
    return None if quality_metrics(evaluation) else "Only costs were measured: evaluate another metric too."


def _plausibility(evaluation: Evaluation, context: ViewContext) -> str | None:
    if not plausibility_metrics(evaluation):
        return "No plausibility was measured: use a data set with rationales and a plausibility metric."
    if not faithfulness_metrics(evaluation):
        return "No faithfulness was measured: evaluate comprehensiveness or sufficiency too."
    return None


def _needs_scalar(evaluation: Evaluation) -> str | None:
    if not scalar_metrics(evaluation):
        return "No metric with one value per example was measured: evaluate one more."
    return None


def _scaling(evaluation: Evaluation, context: ViewContext) -> str | None:
    if size_ladders(context.sizes):
        return _needs_scalar(evaluation)
    return (
        f"It needs one architecture in two sizes, and has {_sizes_text(context)}: add a larger or smaller model of it."
    )


def _architecture(evaluation: Evaluation, context: ViewContext) -> str | None:
    if len(architectures(context.sizes)) > 1:
        return _needs_scalar(evaluation)
    return f"It needs models of two architectures, and has {_sizes_text(context)}: add a model of another one."


def _sizes_text(context: ViewContext) -> str:
    """Describe the known sizes."""
    ordered = sorted(context.sizes.values(), key=lambda size: (size.architecture, size.parameters))
    each = (f"{size.architecture} with {format_parameters(size)}" for size in ordered)
    return ", ".join(each) or "no model of known size"


def _slices(evaluation: Evaluation, context: ViewContext) -> str | None:
    if not evaluation.facts:
        return "No example could be explained, so there is nothing to slice."
    return _needs_scalar(evaluation)


def _strength(evaluation: Evaluation, context: ViewContext) -> str | None:
    if mark_strength(evaluation.plan.dataset) is None:
        return "It needs a data set with marks: evaluate on reviews-marked or scenes-marked."
    if MASS not in evaluation.plan.metrics:
        return f"It needs the metric {MASS}: evaluate it too."
    return None if context.strengths > 1 else "It needs several strengths of the mark: evaluate on some of them."


VIEWS: Mapping[str, ViewInfo] = {
    "curves": ViewInfo(
        "How does the prediction change when the most important units are removed, or only they are kept?",
        f"Lines are means over the examples, bands their 95% intervals; {FEW_BANDS} For a good map the "
        "line falls early when units are removed and rises early when only they are kept. Inputs with removed units "
        "differ from the training data (Hooker et al., 2019), so compare each line with the line of Random.",
        _curves,
    ),
    "plausibility": ViewInfo(
        "Are the methods that agree with people also faithful to the model?",
        "Each point is a method, its cross the 95% intervals, both over the examples that have both "
        "values. A plausible map is not necessarily faithful (Jacovi and Goldberg, 2020), so read both axes "
        "together.",
        _plausibility,
    ),
    "cost": ViewInfo(
        "What does a better explanation cost?",
        "Each point is a method, its cross the 95% intervals. Model evaluations are the same on every machine; "
        "seconds are not and have no interval. Prefer the cheapest of equally good methods.",
        _cost,
    ),
    "scaling": ViewInfo(
        "Do explanations get worse as models grow?",
        f"One line per method, one tick per model; bands are 95% intervals over the examples; {FEW_BANDS} The "
        "intervals do not cover retraining: each size is a single trained model.",
        _scaling,
    ),
    "architecture": ViewInfo(
        "Does a method work on every architecture?",
        "One group per model, one bar per method; the thin line across a bar is its 95% interval over the "
        "examples. The models also differ in training data and tokenizer, so differences are not due to the "
        "architecture alone.",
        _architecture,
    ),
    "slices": ViewInfo(
        "On which examples does a method do well or badly?",
        "One group per slice, one bar per method; the thin line across a bar is its 95% interval. Among many "
        "slices, some differ by chance: confirm a difference on new examples.",
        _slices,
    ),
    "strength": ViewInfo(
        "Do attributions grow with the importance of a feature?",
        "The share of the absolute score that is on the mark. In the data: a method that puts its whole score on every "
        "mark is on the dashed line; straight lines are expected, because the same marked examples are reused. "
        "In the training: the dashed line is the accuracy above chance that the mark gives; at 100% the whole score "
        "should be on the mark, below it less, by an unknown amount.",
        _strength,
    ),
}
"""Charts by id, in the order of the page."""
