"""The parameterized attention explainer (SMaT, section 4) over a padded batch, with gradients.

Its head weights λ come from coefficients φ by the projections of SMaT's section 6, in plain tensor operations. The
`entmax` package's own functions have no second derivatives under `torch.func`, or NaN at zeros; these have.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import torch
from jaxtyping import Bool, Float

from engine.errors import unknown


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
    keys = visible.to(logits[0].dtype)
    shares = (keys / keys.sum(1, keepdim=True).clamp(min=1))[:, None, None]
    return torch.cat([(shares @ layer)[:, :, 0] for layer in logits], dim=1) * keys[:, None]


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


Projection = Callable[[torch.Tensor], torch.Tensor]


def sparsemax(phi: Float[torch.Tensor, "*batch head"]) -> Float[torch.Tensor, "*batch head"]:
    """The nearest point of the simplex, `argmin_p ||p - φ||²` (Martins and Astudillo, 2016): many weights are 0."""
    phi = _shift_to_zero(phi)
    with torch.no_grad():
        ordered = phi.sort(dim=-1, descending=True).values
        places = torch.arange(1, phi.shape[-1] + 1, device=phi.device, dtype=phi.dtype)
        count = (1 + places * ordered > ordered.cumsum(-1)).sum(-1, keepdim=True)
        active = phi >= ordered.gather(-1, count - 1)
    # On the active heads the threshold is smooth, so that it is written once more where gradients flow.
    threshold = ((phi * active).sum(-1, keepdim=True) - 1) / active.sum(-1, keepdim=True)
    return torch.relu(phi - threshold)


def entmax15(phi: Float[torch.Tensor, "*batch head"]) -> Float[torch.Tensor, "*batch head"]:
    """1.5-entmax (Peters et al., 2019, algorithm 2): sparse, but less so than sparsemax."""
    half = _shift_to_zero(phi) / 2
    with torch.no_grad():
        ordered = half.sort(dim=-1, descending=True).values
        places = torch.arange(1, phi.shape[-1] + 1, device=phi.device, dtype=phi.dtype)
        mean = ordered.cumsum(-1) / places
        spread = (ordered**2).cumsum(-1) - places * mean**2
        thresholds = mean - ((1 - spread) / places).clamp(min=0).sqrt()
        count = (thresholds <= ordered).sum(-1, keepdim=True)
        active = half >= ordered.gather(-1, count - 1)
    size = active.sum(-1, keepdim=True)
    mean = (half * active).sum(-1, keepdim=True) / size
    spread = (((half - mean) * active) ** 2).sum(-1, keepdim=True)
    return torch.relu(half - (mean - ((1 - spread) / size).sqrt())) ** 2


def softmax(phi: Float[torch.Tensor, "*batch head"]) -> Float[torch.Tensor, "*batch head"]:
    """`exp(φ) / sum exp(φ)`: no weight is 0."""
    return torch.softmax(phi, dim=-1)


def identity(phi: Float[torch.Tensor, "*batch head"]) -> Float[torch.Tensor, "*batch head"]:
    """The coefficients themselves: any sign, any sum."""
    return phi


def _shift_to_zero(phi: Float[torch.Tensor, "*batch head"]) -> Float[torch.Tensor, "*batch head"]:
    """Shift the maximum to zero: it changes neither projection and keeps their precision."""
    return phi - phi.detach().amax(-1, keepdim=True)


PROJECTIONS: Mapping[str, Projection] = {
    "sparsemax": sparsemax,
    "softmax": softmax,
    "entmax15": entmax15,
    "none": identity,
}


def projection(name: str) -> Projection:
    """The projection of that name. Errors list the known ones."""
    if name not in PROJECTIONS:
        raise unknown("normalisation", name, PROJECTIONS)
    return PROJECTIONS[name]
