"""How good a model is on a set: accuracy, or Pearson's correlation for a regression head."""

from __future__ import annotations

from dataclasses import asdict, dataclass

import numpy as np
import torch

from engine.training.batches import Examples


@dataclass(frozen=True)
class Score:
    """`value` in [0, 1] for accuracy, in [-1, 1] for pearson, of which more is better; a loss of a
    pre-training in nats. `count`: examples."""

    metric: str
    value: float
    count: int

    def as_plain(self) -> dict[str, str | float | int]:
        return asdict(self)


def evaluate(module: torch.nn.Module, data: Examples, regression: bool, batch_size: int = 64) -> Score:
    """The model's score on `data`, computed in eval mode; the module's own mode is restored."""
    outputs = logits(module, data, batch_size)
    truth = np.array(data.labels)
    if regression:
        return Score("pearson", pearson(outputs[:, 0], truth), len(data))
    return Score("accuracy", float((outputs.argmax(1) == truth).mean()), len(data))


def logits(module: torch.nn.Module, data: Examples, batch_size: int = 64) -> np.ndarray:
    """Logits (examples, labels) in the order of `data`; batches hold examples of similar length."""
    lengths = data.lengths
    order = sorted(range(len(data)), key=lambda i: lengths[i])
    device, training = next(module.parameters()).device, module.training
    module.eval()
    rows: list[np.ndarray] = []
    with torch.inference_mode():
        for start in range(0, len(order), batch_size):
            batch = data.batch(order[start : start + batch_size], device)
            rows.append(module(**batch).logits.float().cpu().numpy())
    module.train(training)
    stacked = np.concatenate(rows)
    result = np.empty_like(stacked)
    result[order] = stacked
    return result


def pearson(a: np.ndarray, b: np.ndarray) -> float:
    """Pearson's correlation; 0 where one side is constant, for which it is not defined."""
    x, y = a.astype(np.float64) - a.mean(), b.astype(np.float64) - b.mean()
    scale = float(np.sqrt((x @ x) * (y @ y)))
    return float(x @ y) / scale if scale > 0 else 0.0
