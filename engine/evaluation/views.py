"""The charts of an evaluation, and whether each applies."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from engine.evaluation.groups import Sizes, architectures, size_ladders
from engine.evaluation.result import Evaluation
from engine.evaluation.scores import COSTS, curve_metrics, scalar_metrics
from engine.evaluation.strength import MASS, mark_strength
from engine.metrics.catalog import METRICS
from engine.models.sizes import format_parameters

PLAUSIBLE = ("marks", "pair")
FEW_BANDS = "of many methods they are left out, but each point tells its own."


@dataclass(frozen=True)
class ViewContext:
    """Facts besides the evaluation: the sizes of its models, and the number of strengths of the mark at which its set
    was evaluated or its models were trained.
    """

    sizes: Sizes = field(default_factory=dict)
    strengths: int = 1


@dataclass(frozen=True)
class ViewInfo:
    """A kind of chart. `question`: the question that it answers. `about`: how to read it, and what to beware of.

    `obstacle`: returns why it cannot be drawn of an evaluation, and what to do; None where it can.
    """

    question: str
    about: str
    obstacle: Callable[[Evaluation, ViewContext], str | None]


def faithfulness_metrics(evaluation: Evaluation) -> list[str]:
    """The metrics of faithfulness that were measured."""
    return [id for id in scalar_metrics(evaluation) if METRICS[id].needs == "removal"]


def plausibility_metrics(evaluation: Evaluation) -> list[str]:
    """The metrics of agreement with what is marked, by people or by the truth."""
    return [id for id in scalar_metrics(evaluation) if METRICS[id].needs in PLAUSIBLE]


def cost_metrics(evaluation: Evaluation) -> list[str]:
    """The costs that were measured."""
    return [id for id in scalar_metrics(evaluation) if id in COSTS]


def quality_metrics(evaluation: Evaluation) -> list[str]:
    """The metrics that are no costs."""
    return [id for id in scalar_metrics(evaluation) if id not in COSTS]


def _curves(evaluation: Evaluation, context: ViewContext) -> str | None:
    return None if curve_metrics(evaluation) else "No removal curve was measured: evaluate without_top or with_top too."


def _cost(evaluation: Evaluation, context: ViewContext) -> str | None:
    if not cost_metrics(evaluation):
        return "No cost was measured: evaluate evaluations or seconds too."
    return None if quality_metrics(evaluation) else "Only costs were measured: evaluate another metric too."


def _plausibility(evaluation: Evaluation, context: ViewContext) -> str | None:
    if not plausibility_metrics(evaluation):
        return "Nothing that people marked was compared: take a data set with rationales, and a metric of plausibility."
    if not faithfulness_metrics(evaluation):
        return "No faithfulness was measured: evaluate comprehensiveness or sufficiency too."
    return None


def _needs_scalar(evaluation: Evaluation) -> str | None:
    if not scalar_metrics(evaluation):
        return "No metric with one number an example was measured: evaluate one more."
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
    """The sizes that are known, in words."""
    ordered = sorted(context.sizes.values(), key=lambda size: (size.architecture, size.parameters))
    each = (f"{size.architecture} with {format_parameters(size)}" for size in ordered)
    return ", ".join(each) or "none whose size is known"


def _slices(evaluation: Evaluation, context: ViewContext) -> str | None:
    if not evaluation.facts:
        return "No example could be explained, so that there is nothing to slice."
    return _needs_scalar(evaluation)


def _strength(evaluation: Evaluation, context: ViewContext) -> str | None:
    if mark_strength(evaluation.plan.dataset) is None:
        return "It needs a set with a mark: evaluate on reviews-marked or scenes-marked."
    if MASS not in evaluation.plan.metrics:
        return f"It needs the metric {MASS}: evaluate it too."
    return None if context.strengths > 1 else "It needs several strengths of the mark: evaluate on some of them."


VIEWS: Mapping[str, ViewInfo] = {
    "curves": ViewInfo(
        "What does the model say as the most important parts go, or are all there is?",
        f"Lines are means over the examples, bands their 95% intervals; {FEW_BANDS} Without what a good map "
        "calls important the line falls at once; with that alone it rises at once. Inputs with holes are unlike what "
        "the model was trained on (Hooker et al., 2019): compare lines with random's and not with nothing.",
        _curves,
    ),
    "plausibility": ViewInfo(
        "Does what convinces people also tell the truth?",
        "Each point is a method, its cross the 95% intervals, both over the examples that have both "
        "values. What looks right to people need not be what the model does (Jacovi and Goldberg, 2020): trust no "
        "method for its place on one axis alone.",
        _plausibility,
    ),
    "cost": ViewInfo(
        "What does a better explanation cost?",
        "Each point is a method, its cross the 95% intervals. Model evaluations are the same on every machine, "
        "seconds are not, and have no interval. A method is worth its price only where no cheaper one is as good.",
        _cost,
    ),
    "scaling": ViewInfo(
        "Do explanations get worse as models grow?",
        f"A line a method, a tick a model; bands are 95% intervals over the examples; {FEW_BANDS} They say "
        "nothing of other trainings of the same size, of which each is one.",
        _scaling,
    ),
    "architecture": ViewInfo(
        "Does a method serve every kind of model?",
        "A group a model, a bar a method; the thin line across a bar is its 95% interval over the "
        "examples. Architectures also differ in what they were trained on and in their tokens, so that one bar is not "
        "the architecture's alone.",
        _architecture,
    ),
    "slices": ViewInfo(
        "Where does a method do well, and where badly?",
        "A group a slice, a bar a method; the thin line across a bar is its 95% interval. Of many slices some "
        "differ by chance: take a difference as a question for other examples.",
        _slices,
    ),
    "strength": ViewInfo(
        "Does attribution grow with what a feature is worth?",
        "How much of a map lies on the mark, signs aside. In the data: a method that puts everything on every "
        "mark is on the dashed line; that lines are straight is no finding, for the same marked examples come again. "
        "In the training: the dashed line is how far the mark decides the answers, by accuracy above chance; at 100% "
        "all should be on the mark, below it less, but how much less cannot be told.",
        _strength,
    ),
}
"""By id, in the order of the page."""
