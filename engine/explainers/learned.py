"""The learned attention explainer of SMaT: how much each head counts was learned by how well its maps teach."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING

from engine.explainers.attention import from_heads
from engine.late import torch
from engine.params import option
from engine.registry import KINDS, Axes, register
from engine.task import Attribution, Item, Task

if TYPE_CHECKING:
    from engine.scaffold.artefact import Learned


@dataclass(frozen=True)
class SmatParams:
    explainer: str = option(
        "", "Name or file of a learned explainer. Empty: the one that comes with the model or was trained for it here"
    )


def settled(params: SmatParams, model: str) -> SmatParams:
    """The explainer that is meant on that model, by its name and its content. Errors: there is none, or of another
    shape."""
    from engine.scaffold.fitting import find, reference

    return dataclasses.replace(params, explainer=reference(find(params.explainer, model), params.explainer))


@register(
    "smat",
    title="Learned attention (SMaT)",
    family="attention",
    params=SmatParams,
    axes=Axes("none", "attention, whatever the class", "softmax of mean logits, each head by its learned weight"),
    inputs=KINDS,
    signed=False,
    citation="Fernandes et al. (2022), Learning to scaffold, section 4",
    caution="Its heads were chosen to teach a student of the same kind what this model says. Attention shows where the "
    "model looked, not what changed its mind; it is the same for every class.",
    settle=settled,
)
def smat(task: Task, params: SmatParams) -> list[Attribution]:
    """`softmax(sum_h λ_h s^h)`, `λ = normalize(φ)` learned (SMaT, eq. 11), over the features; sums to 1.

    The explainer stays what it is when the model is changed: on random weights it is the one learned on the real ones.
    """
    from engine.scaffold.fitting import find, named

    learned = named(params.explainer) if params.explainer else find("", task.model.id)
    weights, notes = torch.from_numpy(learned.weights), notes_on(learned, task.model.id, task.model.revision)
    return [dataclasses.replace(_one(task, item, learned, weights), notes=notes) for item in task.items]


def notes_on(learned: Learned, model: str, revision: str) -> tuple[str, ...]:
    """What the map was made with, what that is worth, and whether it was learned for another model."""
    card = learned.card
    said = (
        f"The learned explainer {learned.name}, from {card.train_size:,} examples of {card.dataset}: it {card.worth}."
    )
    if card.revision == revision:
        return (said,)
    state = "an earlier state of this model" if card.teacher == model else f"{card.teacher}, another model"
    return (said, f"It was learned for {state}: what it is worth on this one is not known.")


def _one(task: Task, item: Item, learned: Learned, weights: torch.Tensor) -> Attribution:
    from engine.scaffold.fitting import check_shape

    layers, heads = task.attention(item).logits.shape[:2]
    check_shape(learned, (layers, heads), task.model.id)
    return from_heads(task, item, weights)
