"""Which views of an evaluation make sense, and of the others why not and what would make them so."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from engine.evaluation.result import Evaluation
from engine.evaluation.views.pairs import COSTS
from engine.evaluation.views.points import curves_of, metrics_of
from engine.evaluation.views.sizes import Sizes, architectures, ladders
from engine.evaluation.views.strength import MASS, strength_of
from engine.metrics.catalog import METRICS
from engine.models.sizes import format_parameters

PLAUSIBLE = ("marks", "pair")
FEW_BANDS = "of many methods they are left out, but each point tells its own."
ABOUT: Mapping[str, str] = {
    "curves": f"Lines are means over the examples, bands their 95 % intervals; {FEW_BANDS} Without what a good map "
    "calls important the line falls at once; with that alone it rises at once. Inputs with holes are unlike what the "
    "model was trained on (Hooker et al., 2019): compare lines with random's and not with nothing.",
    "plausibility": "Each point is a method, its cross the 95 % intervals, both over the examples that have both "
    "values. What looks right to people need not be what the model does (Jacovi and Goldberg, 2020): trust no method "
    "for its place on one axis alone.",
    "cost": "Each point is a method, its cross the 95 % intervals. Model evaluations are the same on every machine, "
    "seconds are not, and have no interval. A method is worth its price only where no cheaper one is as good.",
    "scaling": f"A line a method, a tick a model; bands are 95 % intervals over the examples; {FEW_BANDS} They say "
    "nothing of other trainings of the same size, of which each is one.",
    "architecture": "A group a model, a bar a method; the thin line across a bar is its 95 % interval over the "
    "examples. Architectures also differ in what they were trained on and in their tokens, so that one bar is not the "
    "architecture's alone.",
    "slices": "A group a slice, a bar a method; the thin line across a bar is its 95 % interval. Of many slices some "
    "differ by chance: take a difference as a question for other examples.",
    "strength": "How much of a map lies on the mark, signs aside. In the data: a method that puts everything on every "
    "mark is on the dashed line; that lines are straight is no finding, for the same marked examples come again. In "
    "the training: the dashed line is how far the mark decides the answers, by accuracy above chance; at 100 % all "
    "should be on the mark, below it less, but how much less cannot be told.",
}


@dataclass(frozen=True)
class View:
    """`question`: what it answers. `about`: how to read it, and what to beware of.

    `why_not`: why it cannot be drawn, and what to do; None where it can.
    """

    id: str
    title: str
    question: str
    about: str
    why_not: str | None = None


@dataclass(frozen=True)
class Beside:
    """What is known besides the evaluation: its models' sizes, in how many strengths its set was evaluated or its
    models were trained."""

    sizes: Sizes = field(default_factory=dict)
    strengths: int = 1


def faithful(found: Evaluation) -> list[str]:
    """The metrics of faithfulness that were measured."""
    return [id for id in metrics_of(found) if METRICS[id].needs == "removal"]


def plausible(found: Evaluation) -> list[str]:
    """The metrics of agreement with what is marked, by people or by the truth."""
    return [id for id in metrics_of(found) if METRICS[id].needs in PLAUSIBLE]


def costs(found: Evaluation) -> list[str]:
    """The costs that were measured."""
    return [id for id in metrics_of(found) if id in COSTS]


def qualities(found: Evaluation) -> list[str]:
    """The metrics that are no costs."""
    return [id for id in metrics_of(found) if id not in COSTS]


def views_of(found: Evaluation, beside: Beside | None = None) -> list[View]:
    """All views in the order of the page."""
    known = beside or Beside()
    return [View(id, title, question, ABOUT[id], why(found, known)) for id, (title, question, why) in _VIEWS.items()]


def _curves(found: Evaluation, beside: Beside) -> str | None:
    return None if curves_of(found) else "No removal curve was measured: evaluate without_top or with_top too."


def _cost(found: Evaluation, beside: Beside) -> str | None:
    if not costs(found):
        return "No cost was measured: evaluate evaluations or seconds too."
    return None if qualities(found) else "Only costs were measured: evaluate another metric too."


def _plausibility(found: Evaluation, beside: Beside) -> str | None:
    if not plausible(found):
        return "Nothing that people marked was compared: take a data set with rationales, and a metric of plausibility."
    return None if faithful(found) else "No faithfulness was measured: evaluate comprehensiveness or sufficiency too."


def _any(found: Evaluation) -> str | None:
    return None if metrics_of(found) else "No metric with one number an example was measured: evaluate one more."


def _scaling(found: Evaluation, beside: Beside) -> str | None:
    if ladders(beside.sizes):
        return _any(found)
    return f"It needs one architecture in two sizes, and has {_there(beside)}: add a larger or smaller model of it."


def _architecture(found: Evaluation, beside: Beside) -> str | None:
    if len(architectures(beside.sizes)) > 1:
        return _any(found)
    return f"It needs models of two architectures, and has {_there(beside)}: add a model of another one."


def _there(beside: Beside) -> str:
    """The sizes that are known, in words."""
    ordered = sorted(beside.sizes.values(), key=lambda size: (size.architecture, size.parameters))
    told = (f"{size.architecture} with {format_parameters(size)}" for size in ordered)
    return ", ".join(told) or "none whose size is known"


def _slices(found: Evaluation, beside: Beside) -> str | None:
    return _any(found) if found.facts else "No example could be explained, so that there is nothing to slice."


def _strength(found: Evaluation, beside: Beside) -> str | None:
    if strength_of(found.plan.dataset) is None:
        return "It needs a set with a mark: evaluate on reviews-marked or scenes-marked."
    if MASS not in found.plan.metrics:
        return f"It needs the metric {MASS}: evaluate it too."
    return None if beside.strengths > 1 else "It needs several strengths of the mark: evaluate on some of them."


_VIEWS: Mapping[str, tuple[str, str, Callable[[Evaluation, Beside], str | None]]] = {
    "curves": (
        "Removal curves", "What does the model say as the most important parts go, or are all there is?", _curves
    ),
    "plausibility": ("Plausibility and faithfulness", "Does what convinces people also tell the truth?", _plausibility),
    "cost": ("Quality and cost", "What does a better explanation cost?", _cost),
    "scaling": ("Scaling", "Do explanations get worse as models grow?", _scaling),
    "architecture": ("Architectures", "Does a method serve every kind of model?", _architecture),
    "slices": ("Slices", "Where does a method do well, and where badly?", _slices),
    "strength": ("Strength of a mark", "Does attribution grow with what a feature is worth?", _strength),
}  # fmt: skip
