"""Integrals of the gradient along the straight path from a baseline to the input.

Two methods: a quadrature rule with a fixed number of nodes, or adaptive quadrature, which divides the path as needed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from jaxtyping import Float

from engine.errors import unknown
from engine.lazy import torch
from engine.models.classifier import as_float64
from engine.params import LOGIT
from engine.removal import removed
from engine.result import Check
from engine.task import Attribution, Task

QUADRATURES = ("clenshaw_curtis", "gauss_legendre", "trapezoid", "riemann")
GAP_LIMIT = 0.01
ERROR_LIMIT = 0.01
"""Limit of the estimated error of a score, relative to the largest score."""
FIRST_PARTS = 8
MAX_PARTS = 256
"""Maximum number of parts of an adaptively divided path; each part has four evaluations and shares its ends."""
BOOLE = np.array([7, 32, 12, 32, 7]) / 90
SIMPSON = np.array([1, 0, 4, 0, 1]) / 6
"""Weights of two rules on the same five nodes, the ends of a part and its quarters."""
HALVED = 0.7
"""Minimum share of the total error in the parts that are halved next."""


def quadrature_nodes(rule: str, n: int) -> tuple[Float[np.ndarray, "n"], Float[np.ndarray, "n"]]:
    """Return positions in [0, 1] and weights (sum 1) of `n` evaluations.

    `riemann` is the right sum. Source of `clenshaw_curtis`: Trefethen (2008), section 2; Waldvogel (2006).
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


class Paths:
    """The straight path of each item, with all evaluations along it; no point is evaluated twice."""

    def __init__(
        self,
        task: Task,
        start: Float[torch.Tensor, "item seq d_model"],
        end: Float[torch.Tensor, "item seq d_model"],
        quantity: str,
    ) -> None:
        self.task, self.quantity = task, quantity
        self.start, self.end = start, end
        self._shares: list[dict[float, np.ndarray]] = [{} for _ in task.items]
        self._values: list[dict[float, float]] = [{} for _ in task.items]
        self._scores: list[np.ndarray | None] = [None] * len(task.items)
        self._paths = self._shared_paths()
        """Number of each item's path; items with the same number share passes."""
        self._checks: list[Check | None] = [None] * len(task.items)

    def _shared_paths(self) -> dict[int, int]:
        """Number the paths: items share one if their inputs are equal or a prefix, with equal baselines there."""
        numbers: dict[int, int] = {}
        for group in self.task.shared_passes():
            first = self.start[group[0]]
            for item in group:
                count = len(self.task.examples[item])
                same = item == group[0] or torch.equal(self.start[item, :count], first[:count])
                numbers[item] = group[0] if same else item
        return numbers

    def integrate(self, items: np.ndarray, rule: str, steps: int) -> None:
        """Compute the scores and completeness gaps of `items` by a rule with `steps` nodes."""
        alphas, weights = quadrature_nodes(rule, steps)
        self._evaluate({i: [0.0, *alphas.tolist()] for i in items.tolist()})
        for i in items.tolist():
            self._scores[i] = weights @ self._shares_at(i, alphas)
            self._checks[i] = self._gap(i)

    def divide(self, items: np.ndarray) -> None:
        """Compute the scores of `items` by Boole's rule on parts of the path, halving the worst until all checks pass.

        The error of a part is the larger of two: the largest difference of a score from Simpson's rule on the same
        nodes, and the difference of the sum of scores from the known change of f along the part. Halves reuse the
        evaluations of the whole part. Items stop at `MAX_PARTS`. Source: adaptive quadrature, Gander and Gautschi
        (2000).
        """
        edges = {i: np.linspace(0, 1, FIRST_PARTS + 1) for i in items.tolist()}
        while edges:
            self._evaluate({i: part_nodes(own).ravel().tolist() for i, own in edges.items()})
            edges = {i: more for i, own in edges.items() if (more := self._halve(i, own)) is not None}

    def _halve(self, i: int, edges: Float[np.ndarray, "edge"]) -> np.ndarray | None:
        """Update item i; return its edges with the worst parts halved, or None if it is accurate or at its limit."""
        widths, parts = np.diff(edges), len(edges) - 1
        shares = self._shares_at(i, part_nodes(edges).ravel()).reshape(parts, len(BOOLE), -1)
        scores, rough = (np.einsum("n,pns,p->ps", rule, shares, widths) for rule in (BOOLE, SIMPSON))
        self._scores[i] = scores.sum(0)
        largest = max(np.abs(self.scores(i)).max(), np.finfo(scores.dtype).tiny)
        error = float(np.abs((scores - rough).sum(0)).max() / largest)
        check = self._checks[i] = replace(self._gap(i), also=Check("estimated error of a score", error, ERROR_LIMIT))
        if parts >= MAX_PARTS or not any(part.value >= part.limit for part in check.parts):
            return None
        changes = np.diff([self._values[i][alpha] for alpha in edges.tolist()])
        gaps = np.abs(scores.sum(1) - changes) / _at_least(self._change(i))
        errors = np.maximum(gaps, np.abs(scores - rough).max(1) / largest)
        worst = np.argsort(-errors)
        held = np.cumsum(errors[worst])
        worst = worst[: min(1 + int(np.sum(held < HALVED * held[-1])), MAX_PARTS - parts)]
        return np.sort(np.append(edges, edges[worst] + widths[worst] / 2))

    def _gap(self, i: int) -> Check:
        change = self._change(i)
        return Check("completeness gap", float(abs(self.scores(i).sum() - change) / _at_least(change)), GAP_LIMIT)

    def _change(self, i: int) -> float:
        """Return the change of f along the path."""
        item = self.task.items[i]
        ends = item.prediction.logits if self.quantity == LOGIT else item.prediction.probabilities
        return float(ends[item.target]) - self._values[i][0.0]

    def _shares_at(self, i: int, alphas: np.ndarray) -> Float[np.ndarray, "alpha seq"]:
        return np.stack([self._shares[i][alpha] for alpha in alphas.tolist()])

    def scores(self, i: int) -> Float[np.ndarray, "seq"]:
        """Return the scores of item i from its latest nodes."""
        scores = self._scores[i]
        assert scores is not None, "integrate first"
        return scores

    def evaluations(self, i: int) -> int:
        """Return the number of model evaluations along the path of item i."""
        return len(self._shares[i])

    def _evaluate(self, places: Mapping[int, Sequence[float]]) -> None:
        """Compute gradients and values at places on the items' paths that have not been evaluated yet."""
        new = [(i, at) for i, own in places.items() for at in sorted(set(own) - self._shares[i].keys())]
        index = np.array([i for i, _ in new])
        # Half precision holds three digits, so the place on the path has at least single precision.
        precise = torch.promote_types(self.task.model.dtype, torch.float32)
        place = torch.tensor([alpha for _, alpha in new], dtype=precise, device=self.start.device)
        shared: dict[tuple[int, float], list[int]] = {}
        for row, (i, alpha) in enumerate(new):
            shared.setdefault((self._paths[i], alpha), []).append(row)
        passes = [sorted(rows, key=lambda row: -len(self.task.examples[new[row][0]])) for rows in shared.values()]

        def interpolate(rows: np.ndarray, batch: Any) -> torch.Tensor:
            start, end = (side[index[rows], : batch.visible.shape[1]] for side in (self.start, self.end))
            return torch.lerp(start.to(precise), end.to(precise), place[rows, None, None]).to(start.dtype)

        def store(rows: np.ndarray, gradient: torch.Tensor) -> None:
            step = (self.end - self.start)[index[rows], : gradient.shape[1]]
            shares = as_float64((step.to(precise) * gradient).sum(-1))
            for (i, alpha), share in zip((new[row] for row in rows), shares, strict=True):
                self._shares[i][alpha] = share[: len(self.task.examples[i])]

        values = self.task.gradients(index, interpolate, store, self.quantity, passes=passes)
        for (i, alpha), value in zip(new, values.tolist(), strict=True):
            self._values[i][alpha] = value

    def attribution(self, i: int) -> Attribution:
        """Return the scores, check and cost of item i."""
        check = self._checks[i]
        assert check is not None, "integrate first"
        return Attribution(self.scores(i), self.evaluations(i), check, tuple(self._notes(check)))

    def _notes(self, check: Check) -> Iterator[str]:
        whole = "score" if self.task.model.regression else self.quantity
        few = f"{4 * MAX_PARTS + 1:,} evaluations were too few."
        if check.value >= GAP_LIMIT:
            yield (
                f"The completeness gap is {check.value:.1%}: the scores do not add up to the change of the {whole}. "
                f"{'Use more steps.' if check.also is None else few}"
            )
        if check.also is not None and check.also.value >= ERROR_LIMIT:
            yield f"A score may be off by {check.also.value:.1%} of the largest score: {few}"


def _at_least(change: float) -> float:
    """Return the change that a gap is relative to, at least 0.001."""
    return max(abs(change), 1e-3)


def part_nodes(edges: Float[np.ndarray, "edge"]) -> Float[np.ndarray, "part node"]:
    """Return the ends and quarters of each part. Edges come from repeated halving, so neighbors agree bit for bit."""
    return edges[:-1, None] + np.diff(edges)[:, None] * np.arange(len(BOOLE)) / (len(BOOLE) - 1)


def path_endpoints(
    task: Task, baseline: str
) -> tuple[Float[torch.Tensor, "item seq d_model"], Float[torch.Tensor, "item seq d_model"]]:
    """Return the embeddings of each item's baseline and input; they agree at special tokens and padding."""
    batch = task.batch()
    keep = torch.ones(batch.visible.shape, dtype=torch.bool)
    for row, example in enumerate(task.examples):
        keep[row, example.features] = False
    with torch.no_grad():
        _, start = removed(task.model, batch, keep.to(batch.visible.device), baseline)
        return start, task.model.embed(batch)
