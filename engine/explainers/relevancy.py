"""Relevancy: attention weighted by its gradient for the class, followed through the layers."""

from __future__ import annotations

from typing import Any

import numpy as np
from jaxtyping import Float

from engine.late import torch
from engine.models.text import as_float64
from engine.registry import KINDS, Axes, register
from engine.runtime import in_chunks, rows_at_once
from engine.task import Attribution, Task


@register(
    "attention_x_gradient",
    title="Attention x gradient",
    family="attention",
    axes=Axes("none", "attention for the class", "product of layers, weighted by gradients of the logit"),
    inputs=KINDS,
    differentiable=True,
    signed=False,
    citation="Chefer, Gur and Wolf (2021), Generic attention-model explainability, eq. 5 and 6",
    caution="Only what attention moves towards the class is counted: evidence against it is cut off, and so is what "
    "the feed-forward layers do.",
)
def attention_x_gradient(task: Task, params: object) -> list[Attribution]:
    """`R <- R + mean_h((dA * A)+) R` from the first layer on (eq. 5, 6), dA the gradient of the logit at A.

    At least 0, for the class; without a unit and without an upper end: compare it within a map. Read is the row where
    the model pools: its first token (DeiT with two heads: the mean over both their tokens), GPT-2's last, and for T5
    the mean over all. We leave out the identity that R starts from: it says nothing of the class, and would put
    GPT-2's last token first by construction.
    """
    longest = max(len(e) for e in task.examples)
    size = rows_at_once(task.model, longest, gradients=True, attention=True)
    parts = in_chunks(lambda rows: _relevancies(task, np.arange(len(task.items))[rows]), len(task.items), size)
    return [Attribution(scores, 1) for part in parts for scores in part]


def _relevancies(task: Task, index: np.ndarray) -> list[np.ndarray]:
    """One pass forward and one back for these items, all layers' gradients in it."""
    model, batch = task.model, task.batch(index)
    logits, recorder = model.captured(batch, model.embed(batch).detach().requires_grad_())
    targets = torch.tensor([task.targets[i] for i in index], device=model.device)
    found = torch.autograd.grad(logits.gather(1, targets[:, None]).sum(), recorder.probabilities)
    layers = [weighted(a.detach(), slope) for a, slope in zip(recorder.probabilities, found, strict=True)]
    scores = as_float64(flow(layers, pooled_rows(model.adapter, batch)))
    return [scores[row, :length] for row, length in enumerate(batch.lengths.tolist())]


def weighted(
    attention: Float[torch.Tensor, "batch head query key"], slope: Float[torch.Tensor, "batch head query key"]
) -> Float[torch.Tensor, "batch query key"]:
    """Eq. 5: the mean over heads of what, in attention times its gradient, speaks for the class."""
    return (attention * slope).clamp(min=0).mean(1, dtype=torch.promote_types(attention.dtype, torch.float32))


def flow(
    layers: list[Float[torch.Tensor, "batch query key"]], rows: Float[torch.Tensor, "batch query"]
) -> Float[torch.Tensor, "batch key"]:
    """Those rows of `(I + A_L) ... (I + A_1) - I`, taken from the top: a row at a time, no product of matrices."""
    reached = start = rows.to(layers[0].dtype)[:, None]
    for layer in reversed(layers):
        reached = reached + reached @ layer
    return (reached - start)[:, 0]


def pooled_rows(adapter: Any, batch: Any) -> Float[torch.Tensor, "batch seq"]:
    """Where the model pools, as shares of 1 a row: its first tokens, the last position, or all that are visible."""
    place = torch.arange(batch.visible.shape[1], device=batch.visible.device)
    last = batch.lengths[:, None] - 1
    read = {"module": place < adapter.tokens_read, "last": place == last, "mean": batch.visible}[adapter.reading]
    shares = read.expand(batch.visible.shape).float()
    return shares / shares.sum(1, keepdim=True)
