"""Layer-wise relevance propagation: relevance handed back from the logit to the embeddings, layer by layer."""

from __future__ import annotations

import numpy as np

from engine.lazy import torch
from engine.models.classifier import as_float64
from engine.registry import Axes, register
from engine.result import Check
from engine.task import Attribution, Task

CHECK = "share of the logit that neither tokens nor biases, positions and softmax account for"


@register(
    "attn_lrp",
    title="AttnLRP",
    family="lrp",
    axes=Axes("none", "logit of the class", "relevance, propagated back layer by layer"),
    differentiable=True,
    citation="Achtibat et al. (2024), AttnLRP, eq. 8 and 9, propositions 3.1, 3.3 and 3.4",
    caution="Biases, positions and the attention softmax absorb relevance, so the scores sum to a part of the logit.",
)
def attn_lrp(task: Task, params: object) -> list[Attribution]:
    """Signed, in logits: what each position's embedding holds of the logit when relevance is handed back by rules.

    Linear layers and residuals: in proportion to what each term adds (eq. 8; epsilon 0, since as a gradient nothing is
    divided). Activations and norms: all of it (eq. 9, proposition 3.4). Products: half to each factor (proposition
    3.3). Softmax: its Taylor expansion (proposition 3.1).

    Conserved exactly, to rounding: the tokens' relevance, special ones included, with what biases, embeddings of
    positions and segments, and the softmax keep, makes the logit. That is the check; `extras` has the parts. Not
    conserved is the tokens' sum alone: it makes the logit only where nothing else keeps any.
    """
    return task.by_parts(_relevances, attention=True)


def _relevances(task: Task) -> list[Attribution]:
    from engine.models.lrp import lrp_parts, lrp_rules  # its classes need torch, which the list of methods does without

    model, batch = task.model, task.batch()
    targets = torch.tensor(task.targets, device=model.device)
    point = model.embed(batch).detach().requires_grad_()
    with lrp_rules(model.module, lrp_parts(model.adapter), len(task.items)) as absorbed:
        logits = model.logits(batch, point).gather(1, targets[:, None])[:, 0]
        (slope,) = torch.autograd.grad(logits.sum(), point)
        absorbed.added.extend(model.added_embeddings())
        scores = as_float64((point.detach() * slope).sum(-1))
        rest = {name: as_float64(values) for name, values in absorbed.parts(slope).items()}
    rows = zip(as_float64(logits).tolist(), scores, batch.lengths.tolist(), strict=True)
    return [
        _attribution(logit, row[:length], {name: float(values[i]) for name, values in rest.items()}, model.dtype)
        for i, (logit, row, length) in enumerate(rows)
    ]


def _attribution(logit: float, scores: np.ndarray, rest: dict[str, float], dtype: torch.dtype) -> Attribution:
    gap = abs(logit - scores.sum() - sum(rest.values()))
    whole = max(abs(logit), np.abs(scores).sum(), *map(abs, rest.values()), 1e-3)
    parts = {"logit": logit, "tokens": float(scores.sum()), **rest}
    return Attribution(
        scores, 1, Check(CHECK, float(gap / whole), conservation_limit(dtype)), extras={"relevance": parts}
    )


def conservation_limit(dtype: torch.dtype) -> float:
    """Tolerance of the sum of the parts against the logit in that precision."""
    # Each of a few dozen layers rounds once on the way there and once on the way back.
    return max(1e-3, 32 * torch.finfo(dtype).eps)
