"""The parameterized attention explainer (SMaT, section 4) over a padded batch, with gradients."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from jaxtyping import Bool, Float


def mean_logits(
    logits: Sequence[Float[torch.Tensor, "batch head query key"]],
    visible: Bool[torch.Tensor, "batch key"],
    causal: bool,
) -> Float[torch.Tensor, "batch head_of_all key"]:
    """`s^h` of all layers' heads, the first layer's first: the mean logit of a key over the queries that may attend
    to it, which are those that are no padding and, where the model is causal, not before it (eq. 11)."""
    if causal:
        may = visible[:, :, None] & visible[:, None, :]
        shares = (may & may.new_ones(may.shape[-2:]).tril()).to(logits[0].dtype)
        shares = shares / shares.sum(1, keepdim=True).clamp(min=1)
        return torch.cat([(layer * shares[:, None]).sum(2) for layer in logits], dim=1)
    # Every key is seen by the same queries: a product with one row is several times as quick.
    seen = visible.to(logits[0].dtype)
    each = (seen / seen.sum(1, keepdim=True).clamp(min=1))[:, None, None]
    return torch.cat([(each @ layer)[:, :, 0] for layer in logits], dim=1) * seen[:, None]


def log_explanation(
    weights: Float[torch.Tensor, "head"],
    heads: Float[torch.Tensor, "batch head key"],
    features: Bool[torch.Tensor, "batch key"],
) -> Float[torch.Tensor, "batch key"]:
    """`log softmax(sum_h λ_h s^h)` over the features, in nats; 0 where a key is none (special tokens, padding)."""
    scores = (weights[None, :, None] * heads).sum(1)
    logs = torch.log_softmax(scores.masked_fill(~features, -torch.inf), dim=-1)
    return logs.masked_fill(~features, 0.0)


def explanation(
    weights: Float[torch.Tensor, "head"],
    heads: Float[torch.Tensor, "batch head key"],
    features: Bool[torch.Tensor, "batch key"],
) -> Float[torch.Tensor, "batch key"]:
    """`E(T, x)` of eq. 11: a distribution over the features."""
    return log_explanation(weights, heads, features).exp() * features


def divergence(
    teacher: Float[torch.Tensor, "batch key"], student: Float[torch.Tensor, "batch key"]
) -> Float[torch.Tensor, ""]:
    """Mean over the batch of `KL(E_T || E_S)` in nats; `student` as logarithms, 0 where `teacher` must be 0."""
    return (torch.xlogy(teacher, teacher) - teacher * student).sum(-1).mean()
