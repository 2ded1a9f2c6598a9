"""Empirical explainers: a small trained model predicts the maps of a costly method."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from engine.errors import ExegesisError
from engine.lazy import LazyModule
from engine.params import option
from engine.registry import Axes, register
from engine.task import Attribution, Task

if TYPE_CHECKING:
    from engine.empirical import explainer as trained_explainers
    from engine.empirical import features
else:  # these modules import the explainers
    trained_explainers = LazyModule("engine.empirical.explainer")
    features = LazyModule("engine.empirical.features")


@dataclass(frozen=True)
class EmpiricalParams:
    of: str = option(
        "", "Name of a trained empirical explainer, or the method that it predicts. Empty: the costliest of the model"
    )


def resolve_trained(params: EmpiricalParams, model: str) -> EmpiricalParams:
    """Resolve `of` to the name and content of a trained explainer of the model. Errors: there is none."""
    return replace(params, of=trained_explainers.find_explainer(params.of, model).reference)


@register(
    "empirical",
    title="Empirical explainer",
    family="learned",
    params=EmpiricalParams,
    axes=Axes("as the predicted method", "as the predicted method", "trained ridge regression"),
    differentiable=False,
    resolver=resolve_trained,
    citation="Schwarzenberg et al. (2021), Efficient explanations from empirical explainers, section 3",
    caution="It estimates the map of another method: its expected error is in the notes. Compute the exact map before "
    "you rely on a score.",
)
def empirical(task: Task, params: EmpiricalParams) -> list[Attribution]:
    """The predicted map of another method, in its unit, signed; special tokens get 0.

    A linear model, trained on exact maps of other texts or pictures, of the features in `engine.empirical.features`:
    one pass forward and back. It does not sum to what the exact map sums to.

    Departure: the paper trains a copy of the explained transformer to predict the map. Hidden states and gradients of
    the explained model itself need no second transformer, and a linear model of them no more than some hundred maps.
    """
    if params.of:
        trained = trained_explainers.explainer_named(params.of)
    else:
        trained = trained_explainers.find_explainer("", task.model.id)
    if why_not := trained.why_not(task.model.id, task.model.revision):
        raise ExegesisError(f"empirical: {why_not} Train it again for this model.")
    scores = [trained_explainers.predict(trained, rows) for rows in features.token_features(task)]
    attributions = []
    for row, item in zip(scores, task.items, strict=True):
        row[item.encoded.special] = 0
        note = trained_explainers.describe(trained, item.target == item.prediction.index)
        attributions.append(Attribution(row, trained_explainers.OWN_PASSES, None, (note,)))
    return attributions
