"""Errors of estimates: Shapley values by budget, and integrated gradients by steps."""

from __future__ import annotations

import logging
import time
import warnings
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import torch
from captum.attr import KernelShap

from benchmarks.harness import Measurement, Table, benchmark
from benchmarks.peers import captum_ig, logit_of_embeddings, path_ends, shap
from benchmarks.workloads import run_method, text_task
from engine import runtime
from engine.data.datasets import load
from engine.explainers.shapley import all_coalitions, exact, kernel_shap
from engine.lazy import LazyModule
from engine.models.loading import load_model
from engine.task import Task

shapiq: Any = LazyModule("shapiq")
"""Takes seconds to import, and the tables of games are used without it."""

BUDGETS = (64, 128, 256, 512, 1024)
FEATURES = 12
OPERATOR = "mask"

Evaluate = Callable[[np.ndarray], np.ndarray]
Estimator = Callable[[Evaluate, int, int], np.ndarray]


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
    coalition, except for shap, which evaluates these two besides.
    """
    warnings.simplefilter("ignore")  # the peers warn of singular matrices and of each other's versions
    logging.getLogger("shap").setLevel(logging.ERROR)
    tables, rows = load_games(games, model, sentences), []
    for name, estimator in ESTIMATORS.items():
        row: dict[str, Any] = {"mean error by": name}
        for budget in BUDGETS:
            row[str(budget)] = float(shapley_errors(estimator, tables, budget, seeds).mean())
        rows.append({**row, "ms a solve at 512": 1000 * solve_seconds(estimator, tables, 512)})
    title = f"Shapley values: relative L2 error by evaluations, {len(tables)} sentences x {seeds} seeds"
    return Measurement({title: [*rows, best_other(rows)]})


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
    return lambda keep: values[np.asarray(keep).astype(np.int64) @ (1 << np.arange(FEATURES))]


def estimate_shapley(evaluate: Evaluate, budget: int, seed: int) -> np.ndarray:
    return kernel_shap(FEATURES, evaluate, budget, seed).phi


def estimate_first_order(evaluate: Evaluate, budget: int, seed: int) -> np.ndarray:
    return kernel_shap(FEATURES, evaluate, budget, seed, order="1").phi


def captum_kernel_shap(evaluate: Evaluate, budget: int, seed: int) -> np.ndarray:
    torch.manual_seed(seed)
    method = KernelShap(lambda z: torch.from_numpy(evaluate(z.numpy())))
    ends = {"inputs": torch.ones(1, FEATURES), "baselines": torch.zeros(1, FEATURES)}
    return method.attribute(**ends, n_samples=budget, perturbations_per_eval=budget).numpy()[0]


def shap_kernel_explainer(evaluate: Evaluate, budget: int, seed: int) -> np.ndarray:
    """Without its default feature selection, which makes it worse here."""
    np.random.seed(seed)  # shap draws from the global generator
    method = shap.KernelExplainer(evaluate, np.zeros((1, FEATURES)))
    return method.shap_values(np.ones((1, FEATURES)), nsamples=budget, l1_reg=False, silent=True)[0]


def shapiq_paired(evaluate: Evaluate, budget: int, seed: int) -> np.ndarray:
    method = shapiq.KernelSHAP(FEATURES, pairing_trick=True, random_state=seed)
    return method.approximate(budget, evaluate).get_n_order_values(1)


def shapiq_third_order(evaluate: Evaluate, budget: int, seed: int) -> np.ndarray:
    method = shapiq.approximator.kADDSHAP(FEATURES, max_order=3, pairing_trick=True, random_state=seed)
    return method.approximate(budget, evaluate).get_n_order_values(1)


ESTIMATORS: dict[str, Estimator] = {
    "exegesis": estimate_shapley,
    "exegesis, order 1": estimate_first_order,
    "captum KernelShap": captum_kernel_shap,
    "shap KernelExplainer": shap_kernel_explainer,
    "shapiq KernelSHAP, paired": shapiq_paired,
    "shapiq kADD-SHAP, order 3, paired": shapiq_third_order,
}


def shapley_errors(estimator: Estimator, games: np.ndarray, budget: int, seeds: int) -> np.ndarray:
    """Relative L2 error, `[sentence seed]`."""
    rows = []
    for evaluate in map(as_game, games):
        truth = exact(FEATURES, evaluate)
        estimates = np.stack([estimator(evaluate, budget, seed) for seed in range(seeds)])
        rows.append(np.linalg.norm(estimates - truth, axis=1) / np.linalg.norm(truth))
    return np.stack(rows)


def solve_seconds(estimator: Estimator, games: np.ndarray, budget: int) -> float:
    """Median time of an estimate without the model."""
    times = []
    for evaluate in map(as_game, games):
        started = time.perf_counter()
        estimator(evaluate, budget, 0)
        times.append(time.perf_counter() - started)
    return float(np.median(times))


def best_other(rows: Table) -> dict[str, Any]:
    """How many times smaller our error is than that of the best of the others."""
    others = rows[2:]
    ratios = {str(b): min(row[str(b)] for row in others) / rows[0][str(b)] for b in BUDGETS}
    return {"mean error by": "best other / exegesis", **ratios, "ms a solve at 512": ""}


RULES = ("gausslegendre", "riemann_trapezoid", "riemann_middle", "riemann_right")
MOST_STEPS = 4096
EXACT_NODES = 257
LIMIT = 0.01

PathErrors = tuple[float, float]
"""The completeness gap, as the design defines it, and the largest error of a score."""


@benchmark(model="reviews-minilm", texts=20)
def path_evaluations(model: str, texts: int) -> Measurement:
    """Model evaluations until integrated gradients are right to 1%.

    Right: the completeness gap is under 1%, and so is the largest error of a score, relative to the largest score of
    257 nodes of Gauss-Legendre. `auto` counts all its evaluations, from the first round on, both ends of the path
    included; it knows no error and stops when its scores settle. Captum's rules are tried at every power of two, and
    counted is the first number of steps alone that is good enough, as if one knew it beforehand: a kinder count than
    ours.
    """
    loaded = load_model(model, "float32", runtime.device())
    tasks = [text_task(loaded, example.text) for example in load("reviews", limit=texts).examples]
    pairs = [(task, path_scores(task, EXACT_NODES)) for task in tasks]
    auto = [run_method(task, "integrated_gradients", steps="auto")()[0] for task in tasks]
    reached = [path_errors(task, ours.scores, exact) for (task, exact), ours in zip(pairs, auto, strict=True)]
    rows = [_path_row("exegesis auto", [ours.evaluations for ours in auto], reached)]
    for rule in RULES:
        counts = [steps_needed(task, rule, exact) for task, exact in pairs]
        at_50 = [path_errors(task, path_scores(task, 50, rule), exact) for task, exact in pairs]
        rows.append(_path_row(f"captum {rule}", counts, at_50))
    return Measurement({"Integrated gradients: evaluations until right to 1%": rows})


def path_scores(task: Task, steps: int, rule: str = RULES[0]) -> np.ndarray:
    """Captum's scores, one a token."""
    return captum_ig(task, steps, rule)().sum(-1)[0].detach().double().numpy()


def path_errors(task: Task, scores: np.ndarray, exact: np.ndarray) -> PathErrors:
    forward, (x, baseline) = logit_of_embeddings(task), path_ends(task)
    change = float((forward(x) - forward(baseline)).detach())
    gap = abs(scores.sum() - change) / max(abs(change), 1e-3)
    return float(gap), float(np.abs(scores - exact).max() / np.abs(exact).max())


def steps_needed(task: Task, rule: str, exact: np.ndarray) -> float:
    """The first power of two of steps that is right."""
    steps = 4
    while steps <= MOST_STEPS:
        if max(path_errors(task, path_scores(task, steps, rule), exact)) < LIMIT:
            return steps
        steps *= 2
    return float("inf")


def _path_row(name: str, counts: list[float], reached: list[PathErrors]) -> dict[str, Any]:
    gaps, wrong = zip(*reached, strict=True)
    return {
        "by": name,
        "evaluations, median": float(np.median(counts)),
        "90%": float(np.percentile(counts, 90)),
        "worst": float(np.max(counts)),
        "gap, median (auto: reached, captum: at 50 steps)": float(np.median(gaps)),
        "gap, worst": float(np.max(gaps)),
        "error of a score, worst": float(np.max(wrong)),
    }
