"""From head coefficients φ to head weights λ: the projections of SMaT's section 6, in plain tensor operations.

The `entmax` package's own functions have no second derivatives under `torch.func`, or NaN at zeros; these have.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import torch
from jaxtyping import Float

from engine.errors import unknown

Normalise = Callable[[torch.Tensor], torch.Tensor]


def sparsemax(phi: Float[torch.Tensor, "*batch head"]) -> Float[torch.Tensor, "*batch head"]:
    """The nearest point of the simplex, `argmin_p ||p - φ||²` (Martins and Astudillo, 2016): many weights are 0."""
    phi = _from_zero_down(phi)
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
    half = _from_zero_down(phi) / 2
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


def none(phi: Float[torch.Tensor, "*batch head"]) -> Float[torch.Tensor, "*batch head"]:
    """The coefficients themselves: any sign, any sum."""
    return phi


def _from_zero_down(phi: Float[torch.Tensor, "*batch head"]) -> Float[torch.Tensor, "*batch head"]:
    """Both projections stay the same when all coefficients move by as much; so they keep their precision."""
    return phi - phi.detach().amax(-1, keepdim=True)


NORMALISATIONS: Mapping[str, Normalise] = {
    "sparsemax": sparsemax,
    "softmax": softmax,
    "entmax15": entmax15,
    "none": none,
}


def normalisation(name: str) -> Normalise:
    """The projection of that name. Errors list the known ones."""
    if name not in NORMALISATIONS:
        raise unknown("normalisation", name, NORMALISATIONS)
    return NORMALISATIONS[name]
