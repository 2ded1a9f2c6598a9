"""Shapley values of a text's tokens: estimated within a budget, or exact."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from engine.explainers import shapley
from engine.operators import OPERATORS
from engine.params import option
from engine.parts import Parts, single
from engine.registry import Axes, register
from engine.result import Check
from engine.task import Attribution, Item, Task

GAP_LIMIT = 1e-6
_SUMMARY = "Shapley value"
_CAUTION = "Most coalitions are broken sentences that the model never saw: the scores depend on how words are removed."


@dataclass(frozen=True)
class KernelShapParams:
    removal: str = option("mask", "How features are removed", choices=OPERATORS)
    n_samples: int = option(512, "Model evaluations; all coalitions when they are fewer", low=4, high=100_000)


@dataclass(frozen=True)
class ExactShapleyParams:
    removal: str = option("mask", "How features are removed", choices=OPERATORS)


@register(
    "kernel_shap",
    title="Kernel SHAP",
    family="perturbation",
    params=KernelShapParams,
    axes=Axes("chosen operator, coalitions of words", "probability of the class", _SUMMARY),
    cheap=False,
    version=2,
    citation="Lundberg and Lee (2017), A unified approach, theorem 2; odd surrogate as in Fumagalli et al. (2026)",
    caution=_CAUTION,
)
def kernel_shap(task: Task, params: KernelShapParams) -> list[Attribution]:
    """Estimated Shapley values of m, in probability, signed; they sum to m(x) - m(all removed) exactly."""
    return estimates(task, _tokens(task), params, "text's tokens")


def estimates(task: Task, parts: Sequence[Parts], params: KernelShapParams, what: str) -> list[Attribution]:
    """The same for what is removed together in each item, which is called `what`."""
    plans = [_plan(item, part.count, params.n_samples) for item, part in zip(task.items, parts, strict=True)]
    kept = [part.features(plan.keep) for part, plan in zip(parts, plans, strict=True)]
    values = task.masked_values(kept, params.removal)
    made = []
    for item, part, plan, value in zip(task.items, parts, plans, values, strict=True):
        estimate = shapley.solve(plan, value)
        notes = (*estimate.notes, *_raised(part.count, params.n_samples, what))
        change = value[0] - value[len(plan.pairs)]
        made.append(_attribution(item, part.shared_out(estimate.phi), change, estimate.evaluations, notes))
    return made


@register(
    "exact_shapley",
    title="Exact Shapley values",
    family="perturbation",
    params=ExactShapleyParams,
    axes=Axes("chosen operator, all coalitions of words", "probability of the class", _SUMMARY),
    cheap=False,
    citation="Shapley (1953), A value for n-person games, eq. 13",
    caution=_CAUTION,
)
def exact_shapley(task: Task, params: ExactShapleyParams) -> list[Attribution]:
    """Shapley values of m from all 2^n coalitions, n <= 14, in probability, signed."""
    return exact_values(task, _tokens(task), params.removal)


def exact_values(task: Task, parts: Sequence[Parts], removal: str) -> list[Attribution]:
    """The same for what is removed together in each item."""
    made = []
    for item, part in zip(task.items, parts, strict=True):
        seen: list[np.ndarray] = []

        def evaluate(
            keep: np.ndarray, item: Item = item, part: Parts = part, seen: list[np.ndarray] = seen
        ) -> np.ndarray:
            seen.append(Task(task.model, [item]).masked_values([part.features(keep)], removal)[0])
            return seen[-1]

        phi = shapley.exact(part.count, evaluate)
        made.append(_attribution(item, part.shared_out(phi), seen[0][-1] - seen[0][0], 1 << part.count, ()))
    return made


def _tokens(task: Task) -> list[Parts]:
    return [single(len(example.features)) for example in task.examples]


def _plan(item: Item, n: int, budget: int) -> shapley.Plan:
    return shapley.plan(n, max(budget, shapley.least_budget(n)), int(item.generator().integers(2**31)))


def _raised(n: int, budget: int, what: str) -> tuple[str, ...]:
    least = shapley.least_budget(n)
    if budget >= least:
        return ()
    return (f"{least} evaluations were used: fewer than that cannot tell this {what} apart.",)


def _attribution(
    item: Item, phi: Float[np.ndarray, "feature"], change: float, evaluations: int, notes: tuple[str, ...]
) -> Attribution:
    scores = np.zeros(len(item.encoded))
    scores[item.encoded.features] = phi
    gap = abs(float(scores.sum()) - float(change))
    return Attribution(scores, evaluations, Check("additivity gap", gap, GAP_LIMIT), notes)
