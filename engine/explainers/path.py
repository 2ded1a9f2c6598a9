"""Integrated gradients: the path integral of the gradient from a baseline to the input."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float

from engine.explainers.quadrature import RULES, nodes
from engine.late import torch
from engine.models.text import as_float64
from engine.operators import BASELINES
from engine.params import LOGIT, QuantityParams, option
from engine.registry import Axes, register
from engine.removal import removed
from engine.result import Check
from engine.task import Attribution, Item, Task

GAP_LIMIT = 0.01
CHANGE_LIMIT = 0.01
"""The largest change of a score at a doubling, relative to the largest score, at which the scores have settled."""
FIRST_STEPS = 9
MOST_STEPS = 1025


@dataclass(frozen=True)
class IGParams(QuantityParams):
    baseline: str = option("mask", "Where the path starts: what stands for a removed word", choices=BASELINES)
    quadrature: str = option("clenshaw_curtis", "Rule of integration; the first keeps what it has", choices=RULES)
    steps: str = option(
        "auto", "auto: until the gap is under 1 % and the scores settle; or fixed", choices=("auto", "fixed")
    )
    n_steps: int = option(50, "Gradient evaluations when steps are fixed", low=1, high=1024)


@register(
    "integrated_gradients",
    title="Integrated gradients",
    family="gradients",
    params=IGParams,
    version=3,
    axes=Axes("baseline embedding, reached along a straight path", "logit of the class", "path integral"),
    differentiable=True,
    cheap=False,
    citation="Sundararajan, Taly and Yan (2017), Axiomatic attribution for deep networks, eq. 1",
    caution="The scores depend on the baseline: they explain the step from it to your text, not the text alone.",
)
def integrated_gradients(task: Task, params: IGParams) -> list[Attribution]:
    """`(x_i - x'_i) . ∫ df(x' + α(x - x'))/dx_i dα`, in logits, signed; sums to f(x) - f(x') but for the gap.

    Gap = |sum a - (f(x) - f(x'))| / max(|f(x) - f(x')|, 1e-3). With `quantity` "probability" f is the probability m,
    in the gap too. The thesis prints a plus inside m, which would leave the path; the published definition is meant.
    `auto` doubles the intervals until the gap is under 1 % and the scores have settled: the gap bounds their sum alone,
    for errors of two features may cancel. The check says both. Clenshaw-Curtis is the default, not Gauss-Legendre:
    nearly as exact for as many nodes, and a doubling computes only the new half of them.
    """
    paths = _Paths(task, params.baseline, params.quantity)
    steps = FIRST_STEPS if params.steps == "auto" else params.n_steps
    wanting = np.arange(len(task.items))
    while True:
        paths.integrate(wanting, params.quadrature, steps)
        wanting = np.flatnonzero((paths.gaps >= GAP_LIMIT) | (paths.changes >= CHANGE_LIMIT))
        if params.steps == "fixed" or steps >= MOST_STEPS or not len(wanting):
            break
        steps = 2 * steps - 1
    return [paths.attribution(i, params.steps == "auto") for i in range(len(task.items))]


class _Paths:
    """The straight path of each item, and what is known along it: nothing is evaluated twice."""

    def __init__(self, task: Task, baseline: str, quantity: str) -> None:
        self.task, self.quantity = task, quantity
        self.start, self.end = _ends(task, baseline)
        self._shares: list[dict[float, np.ndarray]] = [{} for _ in task.items]
        self._values: list[dict[float, float]] = [{} for _ in task.items]
        self._scores: list[np.ndarray | None] = [None] * len(task.items)
        self.gaps = np.full(len(task.items), np.inf)
        self.changes = np.full(len(task.items), np.inf)
        """The largest change of a score since the nodes before, relative to the largest score; at first not known."""

    def attribution(self, i: int, doubled: bool) -> Attribution:
        """Scores, check and cost of item i. `doubled`: the nodes were, so the check says how far the scores settled."""
        scores, gap, change = self._scores[i], float(self.gaps[i]), float(self.changes[i])
        assert scores is not None
        also = Check("score change at the last doubling", change, CHANGE_LIMIT) if doubled else None
        check = Check("completeness gap", gap, GAP_LIMIT, also)
        return Attribution(scores, len(self._shares[i]), check, tuple(self._words(check)))

    def _words(self, check: Check) -> Iterator[str]:
        whole = "score" if self.task.model.regression else self.quantity
        if check.value >= GAP_LIMIT:
            yield (
                f"The completeness gap is {check.value:.1%}: the scores do not add up to the change of the {whole}. "
                "Use more steps."
            )
        if check.also is not None and check.also.value >= CHANGE_LIMIT:
            yield (
                f"The scores have not settled at {MOST_STEPS:,} nodes: the last doubling still changed one by "
                f"{check.also.value:.1%} of the largest score."
            )

    def integrate(self, items: np.ndarray, rule: str, steps: int) -> None:
        """Scores, gaps and changes of `items` with so many nodes."""
        alphas, weights = nodes(rule, steps)
        self._evaluate(items, np.union1d(alphas, [0.0]))
        for i in items:
            share = np.stack([self._shares[i][alpha] for alpha in alphas.tolist()])
            before, now = self._scores[i], weights @ share
            self._scores[i] = now
            whole = self._at_end(self.task.items[i]) - self._values[i][0.0]
            self.gaps[i] = abs(now.sum() - whole) / max(abs(whole), 1e-3)
            if before is not None:
                self.changes[i] = np.abs(now - before).max() / max(np.abs(now).max(), np.finfo(now.dtype).tiny)

    def _at_end(self, item: Item) -> float:
        """f of the input, or m."""
        made = item.prediction
        return (made.logits if self.quantity == LOGIT else made.probabilities)[item.target]

    def _evaluate(self, items: np.ndarray, alphas: np.ndarray) -> None:
        fresh = [(int(i), alpha) for i in items for alpha in alphas.tolist() if alpha not in self._shares[i]]
        index = np.array([i for i, _ in fresh])
        # Half precision holds three digits: the place on the path keeps more.
        precise = torch.promote_types(self.task.model.dtype, torch.float32)
        place = torch.tensor([alpha for _, alpha in fresh], dtype=precise, device=self.start.device)

        def on_path(rows: slice, batch: Any) -> torch.Tensor:
            start, end = (side[index[rows], : batch.visible.shape[1]] for side in (self.start, self.end))
            return torch.lerp(start.to(precise), end.to(precise), place[rows, None, None]).to(start.dtype)

        def keep(rows: slice, gradient: torch.Tensor) -> None:
            step = (self.end - self.start)[index[rows], : gradient.shape[1]]
            shares = as_float64((step.to(precise) * gradient).sum(-1))
            for (i, alpha), share in zip(fresh[rows], shares, strict=True):
                self._shares[i][alpha] = share[: len(self.task.examples[i])]

        self._remember(fresh, self.task.gradients(index, on_path, keep, self.quantity))

    def _remember(self, fresh: Sequence[tuple[int, float]], values: np.ndarray) -> None:
        for (i, alpha), value in zip(fresh, values.tolist(), strict=True):
            self._values[i][alpha] = value


def _ends(
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
