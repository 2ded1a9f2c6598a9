"""Shapley values of a text's tokens: estimated within a budget, or exact."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from engine.explainers import shapley
from engine.operators import OPERATORS
from engine.params import option
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
    citation="Lundberg and Lee (2017), A unified approach, theorem 2; odd surrogate as in Fumagalli et al. (2026)",
    caution=_CAUTION,
)
def kernel_shap(task: Task, params: KernelShapParams) -> list[Attribution]:
    """Estimated Shapley values of m, in probability, signed; they sum to m(x) - m(all removed) exactly."""
    plans = [_plan(item, params.n_samples) for item in task.items]
    values = task.masked_values([plan.keep for plan in plans], params.removal)
    made = []
    for item, plan, value in zip(task.items, plans, values, strict=True):
        estimate = shapley.solve(plan, value)
        notes = (*estimate.notes, *_raised(item, params.n_samples))
        made.append(_attribution(item, estimate.phi, value[0] - value[len(plan.pairs)], estimate.evaluations, notes))
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
    made = []
    for i, item in enumerate(task.items):
        n = len(item.encoded.features)
        seen: list[np.ndarray] = []

        def evaluate(keep: np.ndarray, i: int = i, seen: list[np.ndarray] = seen) -> np.ndarray:
            seen.append(Task(task.model, [task.items[i]]).masked_values([keep], params.removal)[0])
            return seen[-1]

        phi = shapley.exact(n, evaluate)
        made.append(_attribution(item, phi, seen[0][-1] - seen[0][0], 1 << n, ()))
    return made


def _plan(item: Item, budget: int) -> shapley.Plan:
    n = len(item.encoded.features)
    return shapley.plan(n, max(budget, shapley.least_budget(n)), int(item.generator().integers(2**31)))


def _raised(item: Item, budget: int) -> tuple[str, ...]:
    least = shapley.least_budget(len(item.encoded.features))
    if budget >= least:
        return ()
    return (f"{least} evaluations were used: fewer than that cannot tell this text's tokens apart.",)


def _attribution(
    item: Item, phi: Float[np.ndarray, "feature"], change: float, evaluations: int, notes: tuple[str, ...]
) -> Attribution:
    scores = np.zeros(len(item.encoded))
    scores[item.encoded.features] = phi
    gap = abs(float(scores.sum()) - float(change))
    return Attribution(scores, evaluations, Check("additivity gap", gap, GAP_LIMIT), notes)
