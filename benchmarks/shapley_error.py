"""Error of Shapley estimates by budget: `python -m benchmarks.shapley_error [--sentences 30 --seeds 10 --json]`.

The game is the probability of the predicted class of a sentence of SST-2 with 12 tokens, a removed token being
[MASK]. All its 4,096 coalitions are evaluated once, so the exact values are known and every estimator reads the same
table. Sentences come from dev, then from test. `--games FILE.npz` keeps the tables: written at first, then read.

The error is ||φ - exact|| / ||exact||, its mean over sentences and seeds. The budget counts the empty and the full
coalition, except for shap, which evaluates these two besides.
"""

from __future__ import annotations

import logging
import time
import warnings
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.harness import benchmark_parser, show
from engine import runtime
from engine.explainers.shapley import all_coalitions, exact, kernel_shap

BUDGETS = (64, 128, 256, 512, 1024)
FEATURES = 12
OPERATOR = "mask"

Evaluate = Callable[[np.ndarray], np.ndarray]
Estimator = Callable[[Evaluate, int, int], np.ndarray]


def tabulate_games(model: str, count: int) -> np.ndarray:
    """Values of all coalitions of `count` sentences, `[sentence coalition]`."""
    from benchmarks.workloads import text_task
    from engine.models.loading import load_model

    loaded = load_model(model, "float32", runtime.device())
    tasks = (text_task(loaded, text) for text in sentences())
    fitting = islice((task for task in tasks if len(task.examples[0].features) == FEATURES), count)
    keep = all_coalitions(FEATURES)
    return np.stack([task.masked_values([keep], OPERATOR)[0] for task in fitting])


def sentences() -> Iterator[str]:
    from engine.data.datasets import load

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
    return lambda keep: values[np.asarray(keep).astype(np.int64) @ (1 << np.arange(FEATURES))]


def estimate_shapley(evaluate: Evaluate, budget: int, seed: int) -> np.ndarray:
    return kernel_shap(FEATURES, evaluate, budget, seed).phi


def estimate_first_order(evaluate: Evaluate, budget: int, seed: int) -> np.ndarray:
    return kernel_shap(FEATURES, evaluate, budget, seed, order="1").phi


def captum_kernel_shap(evaluate: Evaluate, budget: int, seed: int) -> np.ndarray:
    import torch
    from captum.attr import KernelShap

    torch.manual_seed(seed)
    method = KernelShap(lambda z: torch.from_numpy(evaluate(z.numpy())))
    ends = {"inputs": torch.ones(1, FEATURES), "baselines": torch.zeros(1, FEATURES)}
    return method.attribute(**ends, n_samples=budget, perturbations_per_eval=budget).numpy()[0]


def shap_kernel_explainer(evaluate: Evaluate, budget: int, seed: int) -> np.ndarray:
    """Without its default feature selection, which makes it worse here."""
    import shap

    np.random.seed(seed)  # shap draws from the global generator
    method = shap.KernelExplainer(evaluate, np.zeros((1, FEATURES)))
    return method.shap_values(np.ones((1, FEATURES)), nsamples=budget, l1_reg=False, silent=True)[0]


def shapiq_paired(evaluate: Evaluate, budget: int, seed: int) -> np.ndarray:
    import shapiq

    method = shapiq.KernelSHAP(FEATURES, pairing_trick=True, random_state=seed)
    return method.approximate(budget, evaluate).get_n_order_values(1)


def shapiq_third_order(evaluate: Evaluate, budget: int, seed: int) -> np.ndarray:
    from shapiq.approximator import kADDSHAP

    method = kADDSHAP(FEATURES, max_order=3, pairing_trick=True, random_state=seed)
    return method.approximate(budget, evaluate).get_n_order_values(1)


ESTIMATORS: dict[str, Estimator] = {
    "exegesis": estimate_shapley,
    "exegesis, order 1": estimate_first_order,
    "captum KernelShap": captum_kernel_shap,
    "shap KernelExplainer": shap_kernel_explainer,
    "shapiq KernelSHAP, paired": shapiq_paired,
    "shapiq kADD-SHAP, order 3, paired": shapiq_third_order,
}


def errors(estimator: Estimator, games: np.ndarray, budget: int, seeds: int) -> np.ndarray:
    """Relative L2 error, `[sentence seed]`."""
    found = []
    for evaluate in map(as_game, games):
        truth = exact(FEATURES, evaluate)
        estimates = np.stack([estimator(evaluate, budget, seed) for seed in range(seeds)])
        found.append(np.linalg.norm(estimates - truth, axis=1) / np.linalg.norm(truth))
    return np.stack(found)


def measure(games: np.ndarray, seeds: int) -> list[dict[str, Any]]:
    rows = []
    for name, estimator in ESTIMATORS.items():
        row: dict[str, Any] = {"mean error by": name}
        for budget in BUDGETS:
            row[str(budget)] = float(errors(estimator, games, budget, seeds).mean())
        rows.append({**row, "ms a solve at 512": 1000 * seconds(estimator, games, 512)})
    return [*rows, best_other(rows)]


def seconds(estimator: Estimator, games: np.ndarray, budget: int) -> float:
    """Median time of an estimate without the model."""
    times = []
    for evaluate in map(as_game, games):
        started = time.perf_counter()
        estimator(evaluate, budget, 0)
        times.append(time.perf_counter() - started)
    return float(np.median(times))


def best_other(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """How many times smaller our error is than that of the best of the others."""
    others = rows[2:]
    ratios = {str(b): min(row[str(b)] for row in others) / rows[0][str(b)] for b in BUDGETS}
    return {"mean error by": "best other / exegesis", **ratios, "ms a solve at 512": ""}


def main() -> None:
    parser = benchmark_parser(__doc__, model="reviews-minilm", sentences=30, seeds=10)
    parser.add_argument("--games", type=Path, help="tables of coalition values, .npz")
    options = parser.parse_args()
    warnings.simplefilter("ignore")  # the peers warn of singular matrices and of each other's versions
    logging.getLogger("shap").setLevel(logging.ERROR)
    games = load_games(options.games, options.model, options.sentences)
    title = f"Shapley values: relative L2 error by evaluations, {len(games)} sentences x {options.seeds} seeds"
    show(title, measure(games, options.seeds), options.json)


if __name__ == "__main__":
    main()
