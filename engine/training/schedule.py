"""The learning rate over the steps, and which weights decay."""

from __future__ import annotations

import math
from collections.abc import Iterable

import torch


def warmup_linear(step: int, total: int, warmup: float) -> float:
    """Factor of the learning rate in [0, 1] at `step` (0-based): up over the first `warmup * total`, then to 0.

    Thesis, section 3.1: linear warm-up over 6 % of the steps, then linear decay. Step 0 already moves.
    """
    rising = max(1, round(warmup * total)) if warmup > 0 else 0
    if step < rising:
        return (step + 1) / rising
    return max(0.0, (total - step) / max(1, total - rising))


def warmup_cosine(step: int, total: int, warmup: float) -> float:
    """Factor of the learning rate in [0, 1] at `step` (0-based): up as `warmup_linear`, then half a cosine to 0."""
    rising = max(1, round(warmup * total)) if warmup > 0 else 0
    if step < rising:
        return (step + 1) / rising
    return 0.5 * (1 + math.cos(math.pi * min(1.0, (step - rising) / max(1, total - rising))))


def adamw(
    parameters: Iterable[tuple[str, torch.nn.Parameter]], learning_rate: float, decay: float
) -> torch.optim.AdamW:
    """AdamW where vectors (biases, layer norms) do not decay; parameters stay in the order given."""
    named = [(name, p) for name, p in parameters if p.requires_grad]
    groups = [
        {"params": [p for _, p in named if p.ndim > 1], "weight_decay": decay},
        {"params": [p for _, p in named if p.ndim <= 1], "weight_decay": 0.0},
    ]
    return torch.optim.AdamW([g for g in groups if g["params"]], lr=learning_rate, foreach=True)
