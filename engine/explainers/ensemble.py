"""Methods that do not read the model themselves: ensembles of other methods, and the random baseline."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from engine.errors import ExegesisError
from engine.registry import SEVEN, TOP_THREE, Axes, explainer, register
from engine.task import Attribution, Task, TaskItem

_CAUTION = "A mean hides disagreement: check the members before trusting it."
_MEMBER = "that of each member"


@register(
    "ensemble_all",
    title="Ensemble of seven",
    family="ensemble",
    axes=Axes(_MEMBER, _MEMBER, "mean of scaled maps, of seven methods"),
    cheap=False,
    citation="The thesis, section 3.4: Ensemble (All Methods)",
    caution=_CAUTION,
)
def ensemble_all(task: Task, params: object) -> list[Attribution]:
    """Mean of the thesis's seven methods at their defaults, each divided by its sum of absolute values."""
    return _ensemble(task, SEVEN)


@register(
    "ensemble_top3",
    title="Ensemble of three",
    family="ensemble",
    axes=Axes(_MEMBER, _MEMBER, "mean of scaled maps, of three methods"),
    cheap=False,
    citation="The thesis, section 3.4: Ensemble (Top 3)",
    caution=_CAUTION,
)
def ensemble_top3(task: Task, params: object) -> list[Attribution]:
    """Mean of LIME, SHAP and integrated gradients, each divided by its sum of absolute values."""
    return _ensemble(task, TOP_THREE)


def _ensemble(task: Task, methods: tuple[str, ...]) -> list[Attribution]:
    if task.explain_with is None:
        raise ExegesisError("ensemble: needs the maps of its members. Compute it through engine.explain.")
    members = [task.explain_with(method) for method in methods]
    return [
        _mean(item, dict(zip(methods, maps, strict=True)))
        for item, maps in zip(task.items, zip(*members, strict=True), strict=True)
    ]


def _mean(item: TaskItem, members: dict[str, Attribution]) -> Attribution:
    scaled = {m: normalize(a.scores, item) for m, a in members.items()}
    flat = [m for m, scores in scaled.items() if scores is None]
    maps = [scores for scores in scaled.values() if scores is not None]
    mean = np.mean(maps, axis=0) if maps else np.zeros(len(item.encoded))
    left_out = (f"Left out, because all their scores are zero: {', '.join(flat)}.",) if flat else ()
    notes = (f"{explainer(m).title}: {note}" for m, a in members.items() for note in a.notes)
    return Attribution(mean, sum(a.evaluations for a in members.values()), None, (*left_out, *notes))


def normalize(scores: Float[np.ndarray, "seq"], item: TaskItem) -> Float[np.ndarray, "seq"] | None:
    """Scores of the features divided by their sum of absolute values (a signed sum, the thesis's, can be zero)."""
    features = item.encoded.features
    total = np.abs(scores[features]).sum()
    if total == 0:
        return None
    scaled = np.zeros(len(scores))
    scaled[features] = scores[features] / total
    return scaled


@register(
    "random",
    title="Random",
    family="baseline",
    axes=Axes("none", "none", "a random order"),
    signed=False,
    citation="The baseline of the randomization and faithfulness literature, e.g. Adebayo et al. (2018)",
    caution="It ignores the model. A method that does no better is uninformative.",
)
def random(task: Task, params: object) -> list[Attribution]:
    """A random permutation of 1..n; unsigned, without unit. Special tokens get 0. It is always shown for comparison."""
    attributions = []
    for item in task.items:
        scores = np.zeros(len(item.encoded))
        n = len(item.encoded.features)
        scores[item.encoded.features] = item.generator().permutation(n) + 1
        attributions.append(Attribution(scores, 0))
    return attributions
