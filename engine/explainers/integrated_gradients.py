"""Integrated gradients: the path integral of the gradient from a baseline to the input, and its rules of quadrature."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float

from engine.errors import unknown
from engine.lazy import torch
from engine.models.classifier import as_float64
from engine.params import LOGIT, QuantityParams, option
from engine.registry import Axes, register
from engine.removal import removed
from engine.removal_operators import BASELINES, PATCH_BASELINES
from engine.result import Check
from engine.task import Attribution, Task

QUADRATURES = ("clenshaw_curtis", "gauss_legendre", "trapezoid", "riemann")
GAP_LIMIT = 0.01
CHANGE_LIMIT = 0.01
"""The largest change of a score at a doubling, relative to the largest score, at which the scores have settled."""
FIRST_STEPS = 9
MAX_STEPS = 1025


def quadrature_nodes(rule: str, n: int) -> tuple[Float[np.ndarray, "n"], Float[np.ndarray, "n"]]:
    """Positions in [0, 1] and weights (sum 1) of `n` evaluations.

    `riemann` is the right sum. The nodes of `clenshaw_curtis` at 2n - 1 hold those of n, bit for bit. Source: Trefethen
    (2008), section 2; Waldvogel (2006).
    """
    if rule not in QUADRATURES:
        raise unknown("quadrature", rule, QUADRATURES)
    if rule == "gauss_legendre":
        x, weights = np.polynomial.legendre.leggauss(n)
        return (x + 1) / 2, weights / 2
    if n == 1:
        return np.ones(1), np.ones(1)
    if rule == "riemann":
        return np.arange(1, n + 1) / n, np.full(n, 1 / n)
    last = n - 1
    if rule == "trapezoid":
        positions, weights = np.linspace(0, 1, n), np.full(n, 1 / last)
    else:
        angle = np.pi * np.arange(n) / last
        j = np.arange(1, last // 2 + 1)
        share = np.where(2 * j == last, 1.0, 2.0) / (4 * j**2 - 1)
        positions, weights = (1 - np.cos(angle)) / 2, (1 - np.cos(2 * np.outer(angle, j)) @ share) / last
    weights[[0, -1]] /= 2
    return positions, weights


@dataclass(frozen=True)
class BaselineParams:
    baseline: str = option("mask", "Start of the path: what replaces a removed word", choices=BASELINES)


@dataclass(frozen=True)
class PatchBaselineParams(BaselineParams):
    baseline: str = option("mean", "Start of the path: what replaces a removed patch", choices=PATCH_BASELINES)


@dataclass(frozen=True)
class IntegratedGradientsParams(BaselineParams, QuantityParams):
    quadrature: str = option(
        "clenshaw_curtis", "Integration rule; the first reuses evaluations when steps are added", choices=QUADRATURES
    )
    steps: str = option(
        "auto",
        "auto: until the completeness gap is under 1% and the scores settle; or fixed",
        choices=("auto", "fixed"),
    )
    n_steps: int = option(50, "Gradient evaluations when steps are fixed", low=1, high=1024)


@dataclass(frozen=True)
class PatchIntegratedGradientsParams(PatchBaselineParams, IntegratedGradientsParams):
    """Parameters of a path on patches."""


@register(
    "integrated_gradients",
    title="Integrated gradients",
    family="gradients",
    params=IntegratedGradientsParams,
    version=3,
    axes=Axes("baseline embedding, reached along a straight path", "logit of the class", "path integral"),
    differentiable=True,
    cheap=False,
    citation="Sundararajan, Taly and Yan (2017), Axiomatic attribution for deep networks, eq. 1",
    caution="The scores depend on the baseline: they explain the difference between it and your text.",
    variants={
        "image": {
            "params": PatchIntegratedGradientsParams,
            "version": 2,
            "axes": Axes("baseline picture, reached along a straight path", "logit of the class", "path integral"),
            "caution": "The scores depend on the baseline: parts of the picture in its color get low scores.",
        }
    },
)
def integrated_gradients(task: Task, params: IntegratedGradientsParams) -> list[Attribution]:
    """`(x_i - x'_i) . ∫ df(x' + α(x - x'))/dx_i dα`, in logits, signed; sums to f(x) - f(x') but for the gap.

    Gap = |sum a - (f(x) - f(x'))| / max(|f(x) - f(x')|, 1e-3). With `quantity` "probability" f is the probability m,
    in the gap too. The thesis prints a plus inside m, which would leave the path; the published definition is meant.
    `auto` doubles the intervals until the gap is under 1% and the scores have settled: the gap bounds their sum alone,
    for errors of two features may cancel. The check says both. Clenshaw-Curtis is the default, not Gauss-Legendre:
    nearly as exact for as many nodes, and a doubling computes only the new half of them.

    A patch embedding is linear in its pixels, so with the baselines `mean` and `blur` this is the path integral at
    the pixels, summed in the patch. `zero`, the zero embedding, is no picture.
    """
    paths = _Paths(task, params.baseline, params.quantity)
    automatic = params.steps == "auto"
    steps = FIRST_STEPS if automatic else params.n_steps
    unsettled = np.arange(len(task.items))
    while True:
        paths.integrate(unsettled, params.quadrature, steps)
        unsettled = np.flatnonzero((paths.gaps >= GAP_LIMIT) | (paths.changes >= CHANGE_LIMIT))
        if not automatic or steps >= MAX_STEPS or not len(unsettled):
            break
        steps = 2 * steps - 1
    return [paths.attribution(i, automatic) for i in range(len(task.items))]


class _Paths:
    """The straight path of each item with all evaluations along it: nothing is evaluated twice."""

    def __init__(self, task: Task, baseline: str, quantity: str) -> None:
        self.task, self.quantity = task, quantity
        self.start, self.end = path_endpoints(task, baseline)
        self._shares: list[dict[float, np.ndarray]] = [{} for _ in task.items]
        self._values: list[dict[float, float]] = [{} for _ in task.items]
        self._scores: list[np.ndarray | None] = [None] * len(task.items)
        self.gaps = np.full(len(task.items), np.inf)
        self.changes = np.full(len(task.items), np.inf)
        """The largest change of a score since the nodes before, relative to the largest score; infinite at first."""

    def integrate(self, items: np.ndarray, rule: str, steps: int) -> None:
        """Update scores, gaps and changes of `items` with that number of nodes."""
        alphas, weights = quadrature_nodes(rule, steps)
        self._evaluate(items, np.union1d(alphas, [0.0]))
        for i in items:
            share = np.stack([self._shares[i][alpha] for alpha in alphas.tolist()])
            before, now = self._scores[i], weights @ share
            self._scores[i] = now
            item = self.task.items[i]
            ends = item.prediction.logits if self.quantity == LOGIT else item.prediction.probabilities
            whole = ends[item.target] - self._values[i][0.0]
            self.gaps[i] = abs(now.sum() - whole) / max(abs(whole), 1e-3)
            if before is not None:
                self.changes[i] = np.abs(now - before).max() / max(np.abs(now).max(), np.finfo(now.dtype).tiny)

    def _evaluate(self, items: np.ndarray, alphas: np.ndarray) -> None:
        new = [(int(i), alpha) for i in items for alpha in alphas.tolist() if alpha not in self._shares[i]]
        index = np.array([i for i, _ in new])
        # Half precision holds three digits: the place on the path keeps more.
        precise = torch.promote_types(self.task.model.dtype, torch.float32)
        place = torch.tensor([alpha for _, alpha in new], dtype=precise, device=self.start.device)

        def interpolate(rows: slice, batch: Any) -> torch.Tensor:
            start, end = (side[index[rows], : batch.visible.shape[1]] for side in (self.start, self.end))
            return torch.lerp(start.to(precise), end.to(precise), place[rows, None, None]).to(start.dtype)

        def store(rows: slice, gradient: torch.Tensor) -> None:
            step = (self.end - self.start)[index[rows], : gradient.shape[1]]
            shares = as_float64((step.to(precise) * gradient).sum(-1))
            for (i, alpha), share in zip(new[rows], shares, strict=True):
                self._shares[i][alpha] = share[: len(self.task.examples[i])]

        values = self.task.gradients(index, interpolate, store, self.quantity)
        for (i, alpha), value in zip(new, values.tolist(), strict=True):
            self._values[i][alpha] = value

    def attribution(self, i: int, doubled: bool) -> Attribution:
        """Scores, check and cost of item i. `doubled`: the nodes were, so the check says how far the scores settled."""
        scores, gap, change = self._scores[i], float(self.gaps[i]), float(self.changes[i])
        assert scores is not None
        also = Check("score change at the last doubling", change, CHANGE_LIMIT) if doubled else None
        check = Check("completeness gap", gap, GAP_LIMIT, also)
        return Attribution(scores, len(self._shares[i]), check, tuple(self._notes(check)))

    def _notes(self, check: Check) -> Iterator[str]:
        whole = "score" if self.task.model.regression else self.quantity
        if check.value >= GAP_LIMIT:
            yield (
                f"The completeness gap is {check.value:.1%}: the scores do not add up to the change of the {whole}. "
                "Use more steps."
            )
        if check.also is not None and check.also.value >= CHANGE_LIMIT:
            yield (
                f"The scores have not settled at {MAX_STEPS:,} nodes: the last doubling still changed one by "
                f"{check.also.value:.1%} of the largest score."
            )


def path_endpoints(
    task: Task, baseline: str
) -> tuple[Float[torch.Tensor, "item seq d_model"], Float[torch.Tensor, "item seq d_model"]]:
    """Embeddings of each item's baseline and input; they agree at special tokens and padding."""
    batch = task.batch()
    keep = torch.ones(batch.visible.shape, dtype=torch.bool)
    for row, example in enumerate(task.examples):
        keep[row, example.features] = False
    with torch.no_grad():
        _, start = removed(task.model, batch, keep.to(batch.visible.device), baseline)
        return start, task.model.embed(batch)
