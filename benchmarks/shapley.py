"""Errors of Shapley estimates by budget, beside other packages': 12 features exactly, 22 to 60 against long samples."""

from __future__ import annotations

import importlib.util
import logging
import math
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import torch
from captum.attr import KernelShap, ShapleyValueSampling

from benchmarks.harness import Measurement, Table, benchmark
from benchmarks.peers import shap
from benchmarks.workloads import text_task
from engine import runtime
from engine.data.datasets import load
from engine.explainers.shapley import all_coalitions, exact, kernel_shap
from engine.lazy import LazyModule
from engine.models.loading import load_model

shapiq: Any = LazyModule("shapiq")
"""Takes seconds to import, and the tables of games are used without it."""
sklearn_ensemble: Any = LazyModule("sklearn.ensemble")

BUDGETS = (64, 128, 256, 512, 1024)
FEATURES = 12
OPERATOR = "mask"
PERMUTATIONS = 500
"""Permutations in one block of a reference, each with its reverse."""

Evaluate = Callable[[np.ndarray], np.ndarray]
Estimator = Callable[[int, Evaluate, int, int], np.ndarray]
"""φ from the number of features, the game, the budget and the seed."""


@dataclass(frozen=True, eq=False)
class ReferenceGame:
    """A game with its Shapley values. `standard_error` is that of φ where a sample gave it, relative to φ's norm."""

    evaluate: Evaluate
    phi: np.ndarray
    standard_error: float = 0.0

    def error(self, phi: np.ndarray) -> float:
        """||φ - reference|| / ||reference||."""
        return float(np.linalg.norm(phi - self.phi) / np.linalg.norm(self.phi))


@benchmark(
    model="reviews-minilm",
    sentences=30,
    seeds=10,
    games={"type": Path, "help": "tables of coalition values, .npz"},
)
def shapley_error(model: str, sentences: int, seeds: int, games: Path | None) -> Measurement:
    """Error of Shapley estimates by budget.

    The game is the probability of the predicted class of a sentence of SST-2 with 12 tokens, a removed token being
    [MASK]. All its 4,096 coalitions are evaluated once, so the exact values are known and every estimator reads the
    same table. Sentences come from dev, then from test. `--games FILE.npz` keeps the tables: written at first, then
    read.

    The error is ||φ - exact|| / ||exact||, its mean over sentences and seeds. The budget counts the empty and the full
    coalition, except for shap's KernelExplainer, which evaluates these two besides. Boosted trees: a surrogate fitted
    to the coalitions with its exact Shapley values, and the regression of its residuals (Witter et al. 2025), as
    ProxySHAP does; here of scikit-learn. Estimators that cannot run here are listed with the reason.
    """
    tables = map(as_game, load_games(games, model, sentences))
    reference = [ReferenceGame(game, exact(FEATURES, game)) for game in tables]
    rows = error_rows(ESTIMATORS, FEATURES, reference, seeds)
    title = f"Shapley values: relative L2 error by evaluations, {len(reference)} sentences x {seeds} seeds"
    return Measurement({title: rows, **skipped_table(SKIPPED)})


@benchmark(features="22,30,60", games=6, seeds=3, samples=1_000_000)
def shapley_error_many(features: str, games: int, seeds: int, samples: int) -> Measurement:
    """Error of Shapley estimates of many features by budget.

    The game is constructed, for a million passes of a model take hours: the probability that a small network with
    random weights gives, in which a query attends to n words with four heads, a removed word having a vector of its
    own, followed by a hidden layer and a sigmoid. The reference are permutations and their reverses (antithetic), as
    many as `samples` evaluations allow; its own standard error is the last column. Errors are means as in
    `shapley_error`.
    """
    tables = {}
    for n in map(int, features.split(",")):
        reference = [sampled_reference(n, attention_game(n, seed), samples) for seed in range(games)]
        rows = error_rows(MANY_ESTIMATORS, n, reference, seeds)
        error = {"reference's standard error": float(np.mean([game.standard_error for game in reference]))}
        tables[f"{n} features: relative L2 error by evaluations, {games} games x {seeds} seeds"] = [
            {**row, **error} for row in rows
        ]
    return Measurement({**tables, **skipped_table(NEWER_ESTIMATORS)})


def error_rows(estimators: dict[str, Estimator], n: int, games: Sequence[ReferenceGame], seeds: int) -> Table:
    """The mean error of each estimator by budget, and how many times smaller ours is than the best other's."""
    warnings.simplefilter("ignore")  # the peers warn of singular matrices and of each other's versions
    logging.getLogger("shap").setLevel(logging.ERROR)
    rows: Table = []
    for name, estimator in estimators.items():
        row: dict[str, Any] = {"mean error by": name}
        for budget in BUDGETS:
            errors = [game.error(estimator(n, game.evaluate, budget, seed)) for game in games for seed in range(seeds)]
            row[str(budget)] = float(np.mean(errors))
        rows.append({**row, "ms a solve at 512": 1000 * solve_seconds(estimator, n, games, 512)})
    others = [row for row in rows if not row["mean error by"].startswith("exegesis")]
    best = {str(b): np.nanmin([row[str(b)] for row in others]) / rows[0][str(b)] for b in BUDGETS}
    return [*rows, {"mean error by": "best other / exegesis", **best, "ms a solve at 512": ""}]


def solve_seconds(estimator: Estimator, n: int, games: Sequence[ReferenceGame], budget: int) -> float:
    """Median time of an estimate without the model."""
    times = []
    for game in games[:5]:
        started = time.perf_counter()
        estimator(n, game.evaluate, budget, 0)
        times.append(time.perf_counter() - started)
    return float(np.median(times))


def tabulate_games(model: str, count: int) -> np.ndarray:
    """Values of all coalitions of `count` sentences, `[sentence coalition]`."""
    loaded = load_model(model, "float32", runtime.device())
    tasks = (text_task(loaded, text) for text in read_sentences())
    fitting = islice((task for task in tasks if len(task.examples[0].features) == FEATURES), count)
    keep = all_coalitions(FEATURES)
    return np.stack([task.masked_values([keep], OPERATOR)[0] for task in fitting])


def read_sentences() -> Iterator[str]:
    for split in ("validation", "test"):
        yield from (example.text for example in load("sst2", split).examples)


def load_games(path: Path | None, model: str, count: int) -> np.ndarray:
    if path and path.exists():
        with np.load(path, allow_pickle=False) as stored:
            return stored["values"][:count]
    values = tabulate_games(model, count)
    if path:
        np.savez(path, values=values)
    return values


def as_game(values: np.ndarray) -> Evaluate:
    return lambda keep: values[np.atleast_2d(keep).astype(np.int64) @ (1 << np.arange(FEATURES))]


HEADS, WIDTH, HIDDEN = 4, 8, 16
SHARPNESS, STRENGTH = 1.5, 6.0
"""Standard deviation of an attention score, and of the logit before its nonlinearities dampen it."""


def attention_game(n: int, seed: int) -> Evaluate:
    """The network of `shapley_error_many`. Sums over words are linear in `keep`, so a coalition costs microseconds."""
    generator = np.random.default_rng([n, seed])
    weight = np.exp(SHARPNESS * generator.normal(size=(2, n, HEADS, 1)))
    value = np.concatenate([generator.normal(size=(2, n, HEADS, WIDTH)), np.ones((2, n, HEADS, 1))], axis=-1)
    removed, kept = (weight * value).reshape(2, n, -1)
    inner = generator.normal(size=(HEADS * WIDTH, HIDDEN)) / math.sqrt(HEADS)
    outer = STRENGTH * generator.normal(size=HIDDEN) / math.sqrt(HIDDEN)

    def logit(keep: np.ndarray) -> np.ndarray:
        sums = (removed.sum(axis=0) + np.asarray(keep, dtype=np.float64) @ (kept - removed)).reshape(
            -1, HEADS, WIDTH + 1
        )
        attended = (sums[..., :-1] / sums[..., -1:]).reshape(len(sums), -1)
        return np.tanh(attended @ inner) @ outer

    ends = logit(np.array([np.zeros(n), np.ones(n)]))
    sign = np.sign(ends[1] - ends[0])
    return lambda keep: 1 / (1 + np.exp(-sign * (logit(keep) - ends.mean())))


def sampled_reference(n: int, evaluate: Evaluate, samples: int) -> ReferenceGame:
    """Mean of the marginal contributions over permutations and their reverses, which is unbiased."""
    generator = np.random.default_rng(0)
    ends = evaluate(np.array([np.zeros(n, dtype=bool), np.ones(n, dtype=bool)]))
    count = max(2, samples // (2 * (n + 1) * PERMUTATIONS))
    means = np.stack([permutation_mean(n, evaluate, ends, generator, PERMUTATIONS) for _ in range(count)])
    phi = means.mean(axis=0)
    deviation = means.std(axis=0, ddof=1) / math.sqrt(count)
    return ReferenceGame(evaluate, phi, float(np.linalg.norm(deviation) / np.linalg.norm(phi)))


def permutation_mean(
    n: int, evaluate: Evaluate, ends: np.ndarray, generator: np.random.Generator, count: int
) -> np.ndarray:
    """Mean marginal contributions over `count` permutations and their reverses. `ends`: v(∅) and v(N)."""
    orders = generator.random((count, n)).argsort(axis=1)
    ranks = np.concatenate([orders.argsort(axis=1), orders[:, ::-1].argsort(axis=1)])
    keep = ranks[:, None, :] < np.arange(1, n)[None, :, None]
    inner = evaluate(keep.reshape(-1, n)).reshape(2 * count, n - 1)
    values = np.column_stack([np.full(2 * count, ends[0]), inner, np.full(2 * count, ends[1])])
    return np.take_along_axis(np.diff(values, axis=1), ranks, axis=1).mean(axis=0)


def estimate_shapley(n: int, evaluate: Evaluate, budget: int, seed: int) -> np.ndarray:
    return kernel_shap(n, evaluate, budget, seed, probabilities=True).phi


def estimate_without_log_odds(n: int, evaluate: Evaluate, budget: int, seed: int) -> np.ndarray:
    return kernel_shap(n, evaluate, budget, seed).phi


def estimate_first_order(n: int, evaluate: Evaluate, budget: int, seed: int) -> np.ndarray:
    return kernel_shap(n, evaluate, budget, seed, order="1").phi


def captum_kernel_shap(n: int, evaluate: Evaluate, budget: int, seed: int) -> np.ndarray:
    return _captum(KernelShap, n, evaluate, seed, n_samples=budget, perturbations_per_eval=budget)


def captum_sampling(n: int, evaluate: Evaluate, budget: int, seed: int) -> np.ndarray:
    return _captum(ShapleyValueSampling, n, evaluate, seed, n_samples=max(1, budget // n), perturbations_per_eval=n)


def _captum(method: type, n: int, evaluate: Evaluate, seed: int, **options: int) -> np.ndarray:
    torch.manual_seed(seed)
    explainer = method(lambda z: torch.from_numpy(evaluate(z.numpy())))
    ends = {"inputs": torch.ones(1, n), "baselines": torch.zeros(1, n)}
    return explainer.attribute(**ends, **options).numpy()[0]


def shap_kernel_explainer(n: int, evaluate: Evaluate, budget: int, seed: int) -> np.ndarray:
    """Without its default feature selection, which makes it worse here."""
    np.random.seed(seed)  # shap draws from the global generator
    method = shap.KernelExplainer(evaluate, np.zeros((1, n)))
    return method.shap_values(np.ones((1, n)), nsamples=budget, l1_reg=False, silent=True)[0]


def shap_permutation_explainer(n: int, evaluate: Evaluate, budget: int, seed: int) -> np.ndarray:
    """Pairs of permutations, at least one, which is more than the smallest budgets at many features."""
    method = shap.PermutationExplainer(evaluate, np.zeros((1, n)), seed=seed)
    return method(np.ones((1, n)), max_evals=max(budget, 2 * n + 1), silent=True).values[0]


def boosted_trees(n: int, evaluate: Evaluate, budget: int, seed: int) -> np.ndarray:
    """Boosted trees with exact Shapley values, and paired KernelSHAP of the residuals on the same coalitions."""
    sampler = shapiq.KernelSHAP(n, pairing_trick=True, random_state=seed)
    keep: list[np.ndarray] = []

    def record(rows: np.ndarray) -> np.ndarray:
        keep.append(np.asarray(rows, dtype=bool))
        return evaluate(rows)

    sampler.approximate(budget, record)
    coalitions = np.unique(np.concatenate(keep), axis=0).astype(np.float64)
    trees = sklearn_ensemble.GradientBoostingRegressor(random_state=seed, n_estimators=200, max_depth=4)
    trees.fit(coalitions, evaluate(coalitions))
    explainer = shap.TreeExplainer(trees, np.zeros((1, n)), feature_perturbation="interventional")
    ends = shapiq.KernelSHAP(n, pairing_trick=True, random_state=seed)
    residual = ends.approximate(budget, lambda rows: evaluate(rows) - trees.predict(np.asarray(rows, dtype=np.float64)))
    return explainer.shap_values(np.ones((1, n)))[0] + residual.get_n_order_values(1)


def shapiq_estimator(name: str, **options: Any) -> Estimator:
    """An approximator of shapiq by its name; NaN where it refuses so small a budget, as SPEX does."""

    def estimate(n: int, evaluate: Evaluate, budget: int, seed: int) -> np.ndarray:
        method = getattr(shapiq.approximator, name)(n=n, random_state=seed, **options)
        try:
            return method.approximate(budget, evaluate).get_n_order_values(1)
        except ValueError:
            return np.full(n, np.nan)

    return estimate


MANY_ESTIMATORS: dict[str, Estimator] = {
    "exegesis": estimate_shapley,
    "exegesis, without log odds": estimate_without_log_odds,
    "exegesis, order 1": estimate_first_order,
    "captum KernelShap": captum_kernel_shap,
    "captum ShapleyValueSampling": captum_sampling,
    "shap KernelExplainer": shap_kernel_explainer,
    "shap PermutationExplainer": shap_permutation_explainer,
    "shapiq KernelSHAP, paired": shapiq_estimator("KernelSHAP", pairing_trick=True),
    "shapiq UnbiasedKernelSHAP, paired": shapiq_estimator("UnbiasedKernelSHAP", pairing_trick=True),
    "shapiq SVARM, paired": shapiq_estimator("SVARM", pairing_trick=True),
    "shapiq PermutationSamplingSV": shapiq_estimator("PermutationSamplingSV"),
    "boosted trees, residuals by regression": boosted_trees,
}
NEWER: dict[str, dict[str, Any]] = {
    "LeverageSHAP": {},
    "OddSHAP": {},
    "ProxySHAP": {"index": "SV", "max_order": 1, "adjustment": True},
    "RegressionMSR": {"index": "SV"},
}
"""Estimators of shapiq 1.8, which needs Python 3.12 and, for the last three, its extra `proxy`."""
INSTALL = "pip install 'shapiq[proxy]>=1.8' in an environment of Python 3.12"


def skipped_estimators() -> dict[str, str]:
    """The estimators that cannot run here, and why."""
    installed = version("shapiq")
    if tuple(map(int, installed.split(".")[:2])) < (1, 8):
        skipped = dict.fromkeys(NEWER, f"shapiq {installed} is installed; {INSTALL}")
    elif missing := [name for name in ("xgboost", "lightgbm") if importlib.util.find_spec(name) is None]:
        skipped = dict.fromkeys(list(NEWER)[1:], f"{' and '.join(missing)} missing; {INSTALL}")
    else:
        skipped = {}
    if importlib.util.find_spec("lightgbm") is None:
        skipped["ProxySPEX"] = "lightgbm missing; pip install lightgbm"
    return {f"shapiq {name}": reason for name, reason in skipped.items()}


def skipped_table(names: Iterable[str]) -> dict[str, Table]:
    """The table of those that were skipped, whose absence makes the best other look worse; nothing where none was."""
    rows: Table = [{"estimator": name, "why": SKIPPED[name]} for name in names if name in SKIPPED]
    return {"Skipped: the best other may be among them": rows} if rows else {}


SKIPPED = skipped_estimators()
NEWER_ESTIMATORS = {f"shapiq {name}": shapiq_estimator(name, **options) for name, options in NEWER.items()}
MANY_ESTIMATORS |= {name: one for name, one in NEWER_ESTIMATORS.items() if name not in SKIPPED}
ESTIMATORS: dict[str, Estimator] = {
    **MANY_ESTIMATORS,
    "shapiq kADD-SHAP, order 3, paired": shapiq_estimator("kADDSHAP", max_order=3, pairing_trick=True),
    "shapiq SPEX": shapiq_estimator("SPEX", index="SV", max_order=1),
}
if "shapiq ProxySPEX" not in SKIPPED:
    ESTIMATORS["shapiq ProxySPEX"] = shapiq_estimator("ProxySPEX", index="SV", max_order=1)
