"""Methods that read attention: probabilities, pre-softmax logits, and their flow through the layers.

All come from one captured pass. They know nothing of the class, and attend to special tokens too: those keep their
share of the mass and are never ranked. Where heads are scaled, a mean over heads takes each by its scale, as the model
does what they write: one that is switched off does not count.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from engine.errors import not_allowed
from engine.late import torch
from engine.params import option
from engine.registry import KINDS, Axes, register
from engine.result import Check
from engine.task import Attribution, Captured, Item, Task

_THESIS = "Jain and Wallace (2019); Average Attention of the thesis, section 2.2.2.3"
_SMAT = "Fernandes et al. (2022), Learning to scaffold, section 4"
_CAUTION = "Attention shows where the model looked, not what changed its mind; it is the same for every class."


def _axes(summary: str) -> Axes:
    return Axes("none", "attention, whatever the class", summary)


@dataclass(frozen=True)
class QueryParams:
    query: str = option("mean", "Mean over query positions, or the one that the head reads", choices=("mean", "cls"))


@dataclass(frozen=True)
class HeadParams:
    layer: int = option(0, "Layer, from 0", low=0, high=1000)
    head: int = option(0, "Head, from 0", low=0, high=1000)
    query: str = option("mean", "Mean over query positions, or the one that the head reads", choices=("mean", "cls"))


@dataclass(frozen=True)
class RolloutParams:
    residual: float = option(
        0.0,
        "How much of a position passes each layer unchanged: 0 is attention alone, as in the thesis; 0.5 keeps half, "
        "as Abnar and Zuidema do, so that the map stays nearer to what each position was",
        low=0,
        high=1,
    )
    start_layer: int = option(
        0,
        "First layer that counts, from 0. Early layers mix positions most and overpower rollout: leave them out to see "
        "what late ones read",
        low=0,
        high=1000,
    )


@register(
    "attention_mean",
    title="Average attention",
    family="attention",
    axes=_axes("mean attention, over layers, heads and queries"),
    inputs=KINDS,
    signed=False,
    citation=_THESIS,
    caution=_CAUTION,
)
def attention_mean(task: Task, params: object) -> list[Attribution]:
    """Mean attention probability that a position receives over layers, heads and queries; all positions sum to 1."""
    return [_mass(task, over_heads(task.attention(item)).mean((0, 1))) for item in task.items]


@register(
    "attention_last_layer",
    title="Attention, last layer",
    family="attention",
    params=QueryParams,
    axes=_axes("mean attention, over the last layer's heads"),
    inputs=KINDS,
    signed=False,
    citation=_THESIS,
    caution=_CAUTION,
)
def attention_last_layer(task: Task, params: QueryParams) -> list[Attribution]:
    """Attention probability in the last layer, mean over heads; all positions sum to 1."""
    return [_mass(task, _from_query(task, over_heads(task.attention(item))[-1], params.query)) for item in task.items]


@register(
    "attention_head",
    title="Attention, one head",
    family="attention",
    params=HeadParams,
    axes=_axes("attention of one head"),
    inputs=KINDS,
    signed=False,
    citation=_THESIS,
    caution=_CAUTION,
)
def attention_head(task: Task, params: HeadParams) -> list[Attribution]:
    """Attention probability of one head; all positions sum to 1."""
    made = []
    for item in task.items:
        probabilities = task.attention(item).probabilities
        layers, heads = probabilities.shape[:2]
        _in_range("attention_head.layer", params.layer, layers)
        _in_range("attention_head.head", params.head, heads)
        made.append(_mass(task, _from_query(task, probabilities[params.layer, params.head].double(), params.query)))
    return made


@register(
    "attention_logits",
    title="Attention logits, all layers",
    family="attention",
    axes=_axes("softmax of mean logits, over all heads"),
    inputs=KINDS,
    signed=False,
    citation=_SMAT,
    caution=_CAUTION,
)
def attention_logits(task: Task, params: object) -> list[Attribution]:
    """`softmax(sum_h λ_h s^h)` with uniform λ over all heads: where SMaT's learned explainer starts. Sums to 1."""
    return [_from_logits(task, item, slice(None)) for item in task.items]


@register(
    "attention_logits_last",
    title="Attention logits, last layer",
    family="attention",
    axes=_axes("softmax of mean logits, over the last layer's heads"),
    inputs=KINDS,
    signed=False,
    citation=_SMAT,
    caution=_CAUTION,
)
def attention_logits_last(task: Task, params: object) -> list[Attribution]:
    """The same over the last layer's heads alone."""
    return [_from_logits(task, item, slice(-1, None)) for item in task.items]


@register(
    "attention_rollout",
    title="Attention rollout",
    family="attention",
    params=RolloutParams,
    axes=_axes("product of layers, mean over queries"),
    inputs=KINDS,
    signed=False,
    citation="Abnar and Zuidema (2020), Quantifying attention flow, eq. 1",
    caution="In deep models the product settles on the first layers: late layers can no longer change the map.",
)
def attention_rollout(task: Task, params: RolloutParams) -> list[Attribution]:
    """Mean over rows of `A_L ... A_2 A_1`, heads averaged, rows queries at the top and columns inputs; sums to 1."""
    made = []
    for item in task.items:
        layers = over_heads(task.attention(item))
        _in_range("attention_rollout.start_layer", params.start_layer, len(layers))
        made.append(_mass(task, rollout(layers[params.start_layer :], params.residual).mean(0)))
    return made


def over_heads(attention: Captured) -> Float[torch.Tensor, "layer query key"]:
    """Mean over heads: `sum_h s_h A_h / sum_h s_h` with their scales; a layer whose heads are all off moves nothing."""
    if attention.scales is None:
        return attention.probabilities.mean(1, dtype=torch.float64)
    itself = torch.eye(attention.probabilities.shape[-1], dtype=torch.float64, device=attention.probabilities.device)
    layers = zip(attention.probabilities, attention.scales.double(), strict=True)
    return torch.stack([_by_scale(layer, scales) if scales.any() else itself for layer, scales in layers])


def rollout(layers: Float[torch.Tensor, "layer query key"], residual: float) -> Float[torch.Tensor, "query key"]:
    """`A_L ... A_1` with `A = (1 - residual) A + residual I`: each later layer multiplies from the left."""
    identity = torch.eye(layers.shape[-1], dtype=layers.dtype, device=layers.device)
    product = identity
    for layer in layers:
        product = ((1 - residual) * layer + residual * identity) @ product
    return product


def head_logits(
    logits: Float[torch.Tensor, "layer head query key"], causal: bool
) -> Float[torch.Tensor, "layer head key"]:
    """`s^h_i`: the mean logit of key i over the queries that may attend to it (causal: not before it)."""
    if not causal:
        return logits.mean(2)
    may = torch.ones(logits.shape[-2:], dtype=logits.dtype, device=logits.device).tril()
    return (logits * may).sum(2) / may.sum(0)


def from_heads(
    task: Task, item: Item, weights: Float[torch.Tensor, "layer head"], layers: slice = slice(None)
) -> Attribution:
    """`softmax(sum_h λ_h s^h)` over the features, in double precision; sums to 1. `layers`: those of the weights.

    Where heads are scaled, each weight is taken by its head's scale, and all together keep their total size.
    """
    logits, _, scales = task.attention(item)
    given = weights.to(logits.device, torch.float64)
    if scales is not None:
        scaled = given * scales[layers].double()
        given = scaled * (given.abs().sum() / scaled.abs().sum().clamp(min=1e-9))
    of_heads = head_logits(logits[layers].double(), task.model.adapter.causal)
    return _softmax(task, item, torch.tensordot(given.flatten(), of_heads.flatten(0, 1), dims=1))


def _from_logits(task: Task, item: Item, layers: slice) -> Attribution:
    shape = task.attention(item).logits[layers].shape[:2]
    return from_heads(task, item, torch.full(shape, 1 / shape.numel(), dtype=torch.float64), layers)


def _softmax(task: Task, item: Item, scores: Float[torch.Tensor, "seq"]) -> Attribution:
    special = torch.from_numpy(item.encoded.special).to(scores.device)
    return _mass(task, torch.softmax(scores.masked_fill(special, -torch.inf), dim=0))


def _by_scale(
    values: Float[torch.Tensor, "head *rest"], scales: Float[torch.Tensor, "head"]
) -> Float[torch.Tensor, "*rest"]:
    """The mean weighted by the scales; 0 where all are off."""
    return torch.tensordot(scales.double() / scales.sum().clamp(min=1e-9), values.double(), dims=1)


def _from_query(task: Task, attention: Float[torch.Tensor, "query key"], query: str) -> Float[torch.Tensor, "key"]:
    """A row, or the mean of them. `cls` is the position that the head reads: the first, GPT-2's last, or (T5) all."""
    reading = task.model.adapter.reading
    if query == "mean" or reading == "mean":
        return attention.mean(0)
    return attention[-1 if reading == "last" else 0]


def _mass(task: Task, scores: Float[torch.Tensor, "seq"]) -> Attribution:
    values = scores.double().cpu().numpy()
    distance = float(np.abs(values.sum() - 1))
    return Attribution(values, 1, Check("distance of the total from 1", distance, mass_limit(task.model.dtype)))


def mass_limit(dtype: torch.dtype) -> float:
    """How far the total may be from 1 when the model runs in that precision."""
    # Rounding alone moves a row of probabilities by up to half an eps, and rollout multiplies the rows of all layers.
    return max(1e-4, 2 * torch.finfo(dtype).eps)


def _in_range(argument: str, value: int, count: int) -> None:
    if value >= count:
        raise not_allowed(argument, f"from 0 to {count - 1} for this model", value)
