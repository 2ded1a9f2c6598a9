"""Methods that read attention: probabilities, pre-softmax logits, flow through the layers, learned mixes of heads.

All use one captured pass. Except for `attention_x_gradient`, they do not depend on the class. Special tokens receive
attention too: they keep their share of the total and are never ranked. If heads are scaled, means over heads are
weighted by the scales, as the model weights their outputs: a head that is switched off does not count.
"""

from __future__ import annotations

import dataclasses
import functools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float

from engine.errors import not_allowed
from engine.lazy import LazyModule, torch
from engine.models.classifier import as_float64
from engine.params import option
from engine.registry import Axes, register
from engine.result import Check
from engine.task import Attribution, Captured, Task, TaskItem

if TYPE_CHECKING:
    from engine.scaffold import learned_explainer
else:  # the module imports torch and the explainers
    learned_explainer = LazyModule("engine.scaffold.learned_explainer")

_THESIS = "Jain and Wallace (2019); Average Attention of the thesis, section 2.2.2.3"
_SMAT = "Fernandes et al. (2022), Learning to scaffold, section 4"
_CAUTION = "Attention shows where the model looked, not what the prediction depends on. It is the same for every class."
_ATTENTION = "attention, whatever the class"
_register = functools.partial(register, family="attention", signed=False)


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
        "Share of each position that passes each layer unchanged. 0: attention alone, as in the thesis; 0.5: half, as "
        "in Abnar and Zuidema, which keeps the map closer to the positions themselves",
        low=0,
        high=1,
    )
    start_layer: int = option(
        0,
        "First layer used, from 0. Early layers mix positions most and dominate rollout: skip them to see what late "
        "layers attend to",
        low=0,
        high=1000,
    )


@_register(
    "attention_mean",
    title="Average attention",
    axes=Axes("none", _ATTENTION, "mean attention, over layers, heads and queries"),
    citation=_THESIS,
    caution=_CAUTION,
)
def attention_mean(task: Task, params: object) -> list[Attribution]:
    """Mean attention probability that a position receives over layers, heads and queries; all positions sum to 1."""
    return [_attribution(task, mean_over_heads(task.attention(item)).mean((0, 1))) for item in task.items]


@_register(
    "attention_last_layer",
    title="Attention, last layer",
    params=QueryParams,
    axes=Axes("none", _ATTENTION, "mean attention, over the last layer's heads"),
    citation=_THESIS,
    caution=_CAUTION,
)
def attention_last_layer(task: Task, params: QueryParams) -> list[Attribution]:
    """Attention probability in the last layer, mean over heads; all positions sum to 1."""
    last = [mean_over_heads(task.attention(item))[-1] for item in task.items]
    return [_attribution(task, _select_query(task, attention, params.query)) for attention in last]


@_register(
    "attention_head",
    title="Attention, one head",
    params=HeadParams,
    axes=Axes("none", _ATTENTION, "attention of one head"),
    citation=_THESIS,
    caution=_CAUTION,
)
def attention_head(task: Task, params: HeadParams) -> list[Attribution]:
    """Attention probability of one head; all positions sum to 1."""
    attributions = []
    for item in task.items:
        probabilities = task.attention(item).probabilities
        layers, heads = probabilities.shape[:2]
        _check_index("attention_head.layer", params.layer, layers)
        _check_index("attention_head.head", params.head, heads)
        attention = probabilities[params.layer, params.head].double()
        attributions.append(_attribution(task, _select_query(task, attention, params.query)))
    return attributions


@_register(
    "attention_logits",
    title="Attention logits, all layers",
    axes=Axes("none", _ATTENTION, "softmax of mean logits, over all heads"),
    citation=_SMAT,
    caution=_CAUTION,
)
def attention_logits(task: Task, params: object) -> list[Attribution]:
    """`softmax(sum_h λ_h s^h)` with uniform λ over all heads: where SMaT's learned explainer starts. Sums to 1."""
    return [_mix_uniformly(task, item, slice(None)) for item in task.items]


@_register(
    "attention_logits_last",
    title="Attention logits, last layer",
    axes=Axes("none", _ATTENTION, "softmax of mean logits, over the last layer's heads"),
    citation=_SMAT,
    caution=_CAUTION,
)
def attention_logits_last(task: Task, params: object) -> list[Attribution]:
    """`softmax(sum_h λ_h s^h)` with uniform λ over the last layer's heads alone. Sums to 1."""
    return [_mix_uniformly(task, item, slice(-1, None)) for item in task.items]


@_register(
    "attention_rollout",
    title="Attention rollout",
    params=RolloutParams,
    axes=Axes("none", _ATTENTION, "product of layers, mean over queries"),
    citation="Abnar and Zuidema (2020), Quantifying attention flow, eq. 1",
    caution="In deep models the first layers dominate the product; late layers hardly change the map.",
)
def attention_rollout(task: Task, params: RolloutParams) -> list[Attribution]:
    """Mean over rows of `A_L ... A_2 A_1`, heads averaged, rows queries at the top and columns inputs; sums to 1."""
    attributions = []
    for item in task.items:
        layers = mean_over_heads(task.attention(item))
        _check_index("attention_rollout.start_layer", params.start_layer, len(layers))
        attributions.append(_attribution(task, rollout(layers[params.start_layer :], params.residual).mean(0)))
    return attributions


def mean_over_heads(attention: Captured) -> Float[torch.Tensor, "layer query key"]:
    """Return the mean over heads, `sum_h s_h A_h / sum_h s_h` with their scales; the identity if all are off."""
    if attention.scales is None:
        return attention.probabilities.mean(1, dtype=torch.float64)
    identity = torch.eye(attention.probabilities.shape[-1], dtype=torch.float64, device=attention.probabilities.device)
    layers = zip(attention.probabilities, attention.scales.double(), strict=True)
    return torch.stack([_scaled_mean(layer, scales) if scales.any() else identity for layer, scales in layers])


def _scaled_mean(
    values: Float[torch.Tensor, "head *rest"], scales: Float[torch.Tensor, "head"]
) -> Float[torch.Tensor, "*rest"]:
    """Return the mean weighted by the scales; 0 if all are off."""
    return torch.tensordot(scales.double() / scales.sum().clamp(min=1e-9), values.double(), dims=1)


def rollout(layers: Float[torch.Tensor, "layer query key"], residual: float) -> Float[torch.Tensor, "query key"]:
    """Return `A_L ... A_1` with `A = (1 - residual) A + residual I`: each later layer multiplies from the left."""
    identity = torch.eye(layers.shape[-1], dtype=layers.dtype, device=layers.device)
    product = identity
    for layer in layers:
        product = ((1 - residual) * layer + residual * identity) @ product
    return product


def mean_logits(
    logits: Float[torch.Tensor, "layer head query key"], causal: bool
) -> Float[torch.Tensor, "layer head key"]:
    """Return `s^h_i`: the mean logit of key i over the queries that may attend to it (causal: not before it)."""
    if not causal:
        return logits.mean(2)
    may_attend = torch.ones(logits.shape[-2:], dtype=logits.dtype, device=logits.device).tril()
    return (logits * may_attend).sum(2) / may_attend.sum(0)


def mix_heads(
    task: Task, item: TaskItem, weights: Float[torch.Tensor, "layer head"], layers: slice = slice(None)
) -> Attribution:
    """Return `softmax(sum_h λ_h s^h)` over the features, in double precision; sums to 1.

    `layers`: the layers that the weights belong to. If heads are scaled, each weight is multiplied by its head's scale;
    the sum of absolute weights is unchanged.
    """
    logits, _, scales = task.attention(item)
    mix = weights.to(logits.device, torch.float64)
    if scales is not None:
        scaled = mix * scales[layers].double()
        mix = scaled * (mix.abs().sum() / scaled.abs().sum().clamp(min=1e-9))
    means = mean_logits(logits[layers].double(), task.model.adapter.causal)
    scores = torch.tensordot(mix.flatten(), means.flatten(0, 1), dims=1)
    special = torch.from_numpy(item.encoded.special).to(scores.device)
    return _attribution(task, torch.softmax(scores.masked_fill(special, -torch.inf), dim=0))


def _mix_uniformly(task: Task, item: TaskItem, layers: slice) -> Attribution:
    shape = task.attention(item).logits[layers].shape[:2]
    return mix_heads(task, item, torch.full(shape, 1 / shape.numel(), dtype=torch.float64), layers)


def _select_query(task: Task, attention: Float[torch.Tensor, "query key"], query: str) -> Float[torch.Tensor, "key"]:
    """Return one row, or the mean over rows.

    `cls` is the position that the head reads: the first, GPT-2's last, or (T5) all. BART's head reads a decoder, which
    reads every position of the encoder.
    """
    reading = task.model.adapter.reading
    if query == "mean" or reading in ("mean", "decoder"):
        return attention.mean(0)
    if reading == "patches":
        return attention[~torch.from_numpy(task.examples[0].special).to(attention.device)].mean(0)
    return attention[-1 if reading == "last" else 0]


def _attribution(task: Task, scores: Float[torch.Tensor, "seq"]) -> Attribution:
    """Return scores with a check that they sum to 1."""
    values = scores.double().cpu().numpy()
    distance = float(np.abs(values.sum() - 1))
    return Attribution(values, 1, Check("distance of the total from 1", distance, mass_limit(task.model.dtype)))


def mass_limit(dtype: torch.dtype) -> float:
    """Return the tolerance of the distance of the total from 1 in this precision."""
    # Rounding alone moves a row of probabilities by up to half an eps, and rollout multiplies the rows of all layers.
    return max(1e-4, 2 * torch.finfo(dtype).eps)


def _check_index(argument: str, value: int, count: int) -> None:
    if value >= count:
        raise not_allowed(argument, f"from 0 to {count - 1} for this model", value)


@dataclass(frozen=True)
class SmatParams:
    explainer: str = option(
        "", "Name or file of a learned explainer. Empty: the one that comes with the model or was trained for it here"
    )


def resolve_explainer(params: SmatParams, model: str) -> SmatParams:
    """Resolve `explainer` to the name and content of a learned explainer. Errors: none exists, or its shape differs."""
    found = learned_explainer.find_explainer(params.explainer, model)
    return dataclasses.replace(params, explainer=learned_explainer.explainer_reference(found, params.explainer))


@_register(
    "smat",
    title="Learned attention (SMaT)",
    params=SmatParams,
    axes=Axes("none", _ATTENTION, "softmax of mean logits, each head by its learned weight"),
    citation=_SMAT,
    caution="Its heads were selected to teach a student model this model's predictions. Attention shows where the "
    "model looked, not what the prediction depends on. It is the same for every class.",
    resolver=resolve_explainer,
)
def smat(task: Task, params: SmatParams) -> list[Attribution]:
    """`softmax(sum_h λ_h s^h)`, `λ = normalize(φ)` learned (SMaT, eq. 11), over the features; sums to 1.

    How much each head counts was learned by how well its maps teach. The explainer stays what it is when the model is
    changed: on random weights it is the one learned on the real ones.
    """
    if params.explainer:
        learned = learned_explainer.explainer_named(params.explainer)
    else:
        learned = learned_explainer.find_explainer("", task.model.id)
    weights, notes = torch.from_numpy(learned.weights), notes_on(learned, task.model.id, task.model.revision)
    attributions = []
    for item in task.items:
        layers, heads = task.attention(item).logits.shape[:2]
        learned_explainer.check_shape(learned, (layers, heads), task.model.id)
        attributions.append(dataclasses.replace(mix_heads(task, item, weights), notes=notes))
    return attributions


def notes_on(learned: learned_explainer.LearnedExplainer, model: str, revision: str) -> tuple[str, ...]:
    """Return notes on the learned explainer: origin, measured quality, and whether it was learned for another model."""
    card = learned.card
    origin = (
        f"The learned explainer {learned.name}, from {card.train_size:,} examples of {card.dataset}: it {card.worth}."
    )
    if card.revision == revision:
        return (origin,)
    state = "an earlier state of this model" if card.teacher == model else f"{card.teacher}, another model"
    return (origin, f"It was trained for {state}; its quality on this one is unknown.")


@_register(
    "attention_x_gradient",
    title="Attention x gradient",
    axes=Axes("none", "attention for the class", "product of layers, weighted by gradients of the logit"),
    differentiable=True,
    citation="Chefer, Gur and Wolf (2021), Generic attention-model explainability, eq. 5 and 6",
    caution="Only attention in favor of the class counts: evidence against it and the feed-forward layers are ignored.",
)
def attention_x_gradient(task: Task, params: object) -> list[Attribution]:
    """`R <- R + mean_h((dA * A)+) R` from the first layer on (eq. 5, 6), dA the gradient of the logit at A.

    At least 0, for the class; without a unit and without an upper end: compare it within a map. Read is the row where
    the model pools: its first token (DeiT with two heads: the mean over both their tokens), GPT-2's last, and for T5
    the mean over all. We leave out the identity that R starts from: it says nothing of the class, and would put
    GPT-2's last token first by construction.
    """
    return task.by_parts(_relevances, attention=True)


def _relevances(task: Task) -> list[Attribution]:
    """Compute the maps of these items in one forward and one backward pass."""
    model, batch = task.model, task.batch()
    logits, recorder = model.logits_with_attention(batch, model.embed(batch).detach().requires_grad_())
    targets = torch.tensor(task.targets, device=model.device)
    slopes = torch.autograd.grad(logits.gather(1, targets[:, None]).sum(), recorder.probabilities)
    layers = [gradient_weighted(a.detach(), slope) for a, slope in zip(recorder.probabilities, slopes, strict=True)]
    scores = as_float64(propagate(layers, pooled_rows(model.adapter, batch)))
    return [Attribution(scores[row, :length], 1) for row, length in enumerate(batch.lengths.tolist())]


def gradient_weighted(
    attention: Float[torch.Tensor, "batch head query key"], slope: Float[torch.Tensor, "batch head query key"]
) -> Float[torch.Tensor, "batch query key"]:
    """Return the mean over heads of the positive part of attention times its gradient (eq. 5)."""
    return (attention * slope).clamp(min=0).mean(1, dtype=torch.promote_types(attention.dtype, torch.float32))


def propagate(
    layers: list[Float[torch.Tensor, "batch query key"]], rows: Float[torch.Tensor, "batch query"]
) -> Float[torch.Tensor, "batch key"]:
    """Return `rows` times `(I + A_L) ... (I + A_1) - I`, from the left, so that no matrices are multiplied."""
    reached = start = rows.to(layers[0].dtype)[:, None]
    for layer in reversed(layers):
        reached = reached + reached @ layer
    return (reached - start)[:, 0]


def pooled_rows(adapter: Any, batch: Any) -> Float[torch.Tensor, "batch seq"]:
    """Return each row's pooling weights, which sum to 1: on the first tokens, the last position, or all visible ones.

    If a head reads both the first token and the mean of the patches, each of the two has half.
    """
    place = torch.arange(batch.visible.shape[1], device=batch.visible.device)
    last = batch.lengths[:, None] - 1
    if adapter.reading in ("patches", "first_and_patches"):
        patches = batch.visible & (place >= batch.specials)
        shares = patches / patches.sum(1, keepdim=True).clamp(min=1)
        return shares if adapter.reading == "patches" else (shares + (place == 0).float()) / 2
    read = {
        "module": place < adapter.tokens_read, "last": place == last, "mean": batch.visible, "decoder": batch.visible,
    }[adapter.reading]  # fmt: skip
    shares = read.expand(batch.visible.shape).float()
    return shares / shares.sum(1, keepdim=True)
