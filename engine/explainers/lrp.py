"""Layer-wise relevance propagation: relevance is propagated from the logit back to the embeddings, layer by layer."""

from __future__ import annotations

from typing import Any

import numpy as np
from jaxtyping import Int

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
    passes = task.shared_passes()
    parts = task.in_shared_passes(lambda turns: _relevances(task, turns), passes, attention=True)
    attributions = {item: attribution for part in parts for item, attribution in part.items()}
    return [attributions[item] for item in range(len(task.items))]


def _relevances(task: Task, turns: Int[np.ndarray, "turn pass"]) -> dict[int, Attribution]:
    """Return the attributions of the items of some passes.

    The items of a column share a forward pass, and all share a backward pass, as propagating relevance is linear.
    """
    from engine.models.lrp import lrp_parts, lrp_rules  # imports torch, which listing the methods must not need

    model, batch = task.model, task.batch(turns[0])
    point = model.embed(batch).detach().requires_grad_()
    several, rows = len(turns) > 1, turns.shape[1]
    with lrp_rules(model.module, lrp_parts(model.adapter), rows, batched=several) as absorbed:
        read = task.read_targets(several, batch, point)
        logits = torch.stack([read(items, [task.items[item].target for item in items]) for items in turns])
        absorbed.added.extend(model.added_embeddings())

        def hand_back(weights: torch.Tensor) -> dict[str, torch.Tensor]:
            absorbed.clear()
            (slope,) = torch.autograd.grad(logits, point, weights, retain_graph=several)
            return {"tokens": (point.detach() * slope).sum(-1), **absorbed.parts(slope)}

        ones = torch.ones_like(logits)
        if several:
            own = torch.eye(len(turns), dtype=ones.dtype, device=ones.device)
            kept = torch.func.vmap(hand_back)(own[..., None] * ones)
        else:
            kept = {name: values[None] for name, values in hand_back(ones).items()}
        wide = {name: as_float64(values) for name, values in {"logit": logits, **kept}.items()}
    return {
        int(item): _attribution(
            {name: values[place] for name, values in wide.items()}, len(task.examples[item]), model.dtype
        )
        for place, item in np.ndenumerate(turns)
    }


def _attribution(relevance: dict[str, Any], length: int, dtype: torch.dtype) -> Attribution:
    """Return one attribution. `relevance`: the logit, the relevance of each position, and the sums without a token."""
    scores = relevance["tokens"][:length]
    parts = {name: float(values) for name, values in (relevance | {"tokens": scores.sum()}).items()}
    tokens, rest = parts["tokens"], [values for name, values in parts.items() if name not in ("logit", "tokens")]
    gap = abs(parts["logit"] - tokens - sum(rest))
    whole = max(abs(parts["logit"]), np.abs(scores).sum(), *map(abs, rest), 1e-3)
    check = Check(CHECK, float(gap / whole), conservation_limit(dtype))
    return Attribution(scores, 1, check, extras={"relevance": parts})


def conservation_limit(dtype: torch.dtype) -> float:
    """Return the tolerance of the conservation check in this precision."""
    # Each of a few dozen layers rounds once in the forward and once in the backward pass.
    return max(1e-3, 32 * torch.finfo(dtype).eps)
