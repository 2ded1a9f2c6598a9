"""Integrated gradients: the path integral of the gradient from a baseline to the input."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from engine.explainers.gradients import mean_gradients
from engine.models.encoding import Batch
from engine.models.text import as_float64
from engine.params import option
from engine.registry import Axes, register
from engine.removal import BASELINES, removed
from engine.result import Check
from engine.runtime import in_chunks, rows_at_once
from engine.task import Attribution, Task

GAP_LIMIT = 0.01
FIRST_STEPS = 8
MOST_STEPS = 1024


@dataclass(frozen=True)
class IGParams:
    baseline: str = option("mask", "Where the path starts: what stands for a removed word", choices=BASELINES)
    quadrature: str = option(
        "gauss_legendre", "Rule of integration", choices=("gauss_legendre", "trapezoid", "riemann")
    )
    steps: str = option("auto", "auto: until the gap is under 1 %; or fixed", choices=("auto", "fixed"))
    n_steps: int = option(50, "Gradient evaluations when steps are fixed", low=1, high=MOST_STEPS)


@register(
    "integrated_gradients",
    title="Integrated gradients",
    family="gradients",
    params=IGParams,
    axes=Axes("baseline embedding, reached along a straight path", "logit of the class", "path integral"),
    differentiable=True,
    cheap=False,
    citation="Sundararajan, Taly and Yan (2017), Axiomatic attribution for deep networks, eq. 1",
    caution="The scores depend on the baseline: they explain the step from it to your text, not the text alone.",
)
def integrated_gradients(task: Task, params: IGParams) -> list[Attribution]:
    """`(x_i - x'_i) . ∫ df(x' + α(x - x'))/dx_i dα`, in logits, signed; sums to f(x) - f(x') but for the gap.

    Gap = |sum a - (f(x) - f(x'))| / max(|f(x) - f(x')|, 1e-3). The thesis prints a plus inside m, which would
    leave the path; the published definition is meant.
    """
    ends = _Ends(task, params.baseline)
    steps = FIRST_STEPS if params.steps == "auto" else params.n_steps
    scores, gaps, spent = _integrate(task, ends, params, np.full(len(task.items), steps))
    while params.steps == "auto" and steps < MOST_STEPS and (gaps >= GAP_LIMIT).any():
        steps *= 2
        wanting = np.where(gaps >= GAP_LIMIT, steps, 0)
        better, new_gaps, more = _integrate(task, ends, params, wanting)
        spent += more
        for i in np.flatnonzero(wanting):
            scores[i], gaps[i] = better[i], new_gaps[i]
    return [
        Attribution(
            scores[i],
            int(spent[i]) + 2,
            Check("completeness gap", float(gaps[i]), GAP_LIMIT),
            _words(gaps[i]),
        )
        for i in range(len(task.items))
    ]


class _Ends:
    """Both ends of every item's path, their embeddings looked up batch by batch, and f at each."""

    def __init__(self, task: Task, baseline: str) -> None:
        self.task, self.baseline = task, baseline
        self.difference = self._difference()

    def embeds(self, batch: Batch, rows: np.ndarray) -> tuple[Tensor, Tensor]:
        keep = ~torch.from_numpy(self._features(rows, batch.ids.shape[1])).to(batch.ids.device)
        _, start = removed(self.task.model, batch, keep, self.baseline)
        return start, self.task.model.embed(batch.ids)

    def _features(self, rows: np.ndarray, width: int) -> np.ndarray:
        marked = np.zeros((len(rows), width), dtype=bool)
        for row, i in enumerate(rows):
            marked[row, self.task.items[i].encoded.features] = True
        return marked

    def _difference(self) -> Float[np.ndarray, "item"]:
        """f(x) - f(x') of each item."""
        task, model = self.task, self.task.model
        targets = torch.tensor(task.targets, device=model.device)[:, None]

        def compute(rows: slice) -> np.ndarray:
            index = np.arange(rows.start, rows.stop)
            batch = task.batch(index)
            with torch.inference_mode():
                start, end = self.embeds(batch, index)
                low, high = (model.logits(batch, e).gather(1, targets[rows])[:, 0] for e in (start, end))
            return as_float64(high) - as_float64(low)

        longest = max(len(e) for e in task.examples)
        return np.concatenate(in_chunks(compute, len(task.items), rows_at_once(model, longest)))


def _integrate(
    task: Task, ends: _Ends, params: IGParams, steps: np.ndarray
) -> tuple[list[np.ndarray], np.ndarray, np.ndarray]:
    """Scores and gaps with `steps[i]` evaluations for item i (0: left out)."""
    rules = [nodes(params.quadrature, int(n)) for n in steps]
    index = np.repeat(np.arange(len(steps)), steps)
    alphas = np.concatenate([alpha for alpha, _ in rules])
    # Half precision holds three digits: the place on the path keeps more.
    precise = torch.promote_types(task.model.dtype, torch.float32)
    alpha = torch.as_tensor(alphas, dtype=precise, device=task.model.device)

    def on_path(rows: slice, batch: Batch) -> Tensor:
        start, end = ends.embeds(batch, index[rows])
        return torch.lerp(start.to(precise), end.to(precise), alpha[rows, None, None]).to(start.dtype)

    mean = mean_gradients(task, index, on_path, np.concatenate([weight for _, weight in rules]))
    scores = [_along(ends, i, mean[i]) for i in range(len(steps))]
    sums = np.array([s.sum() for s in scores])
    gaps = np.abs(sums - ends.difference) / np.maximum(np.abs(ends.difference), 1e-3)
    return scores, gaps, steps.copy()


def _along(ends: _Ends, i: int, gradient: Float[Tensor, "seq d_model"]) -> np.ndarray:
    start, end = ends.embeds(ends.task.batch([i]), np.array([i]))
    return ((end[0] - start[0]).to(gradient.dtype) * gradient).sum(-1).cpu().numpy()


def nodes(quadrature: str, n: int) -> tuple[Float[np.ndarray, "n"], Float[np.ndarray, "n"]]:
    """Positions in [0, 1] and weights (sum 1) of `n` evaluations: Gauss-Legendre, trapezoid, or right Riemann sum."""
    if n == 0:
        return np.empty(0), np.empty(0)
    if quadrature == "gauss_legendre":
        x, weights = np.polynomial.legendre.leggauss(n)
        return (x + 1) / 2, weights / 2
    if quadrature == "riemann" or n == 1:
        return np.arange(1, n + 1) / n, np.full(n, 1 / n)
    weights = np.full(n, 1 / (n - 1))
    weights[[0, -1]] /= 2
    return np.linspace(0, 1, n), weights


def _words(gap: float) -> tuple[str, ...]:
    if gap < GAP_LIMIT:
        return ()
    return (f"The completeness gap is {gap:.1%}: the scores do not add up to the change of the logit. Use more steps.",)
