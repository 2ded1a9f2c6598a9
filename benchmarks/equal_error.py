"""How soon we are as exact as ferret-xai: the second half of `python -m benchmarks.whole_evaluation`.

On texts of 12 tokens, all of them whole words, so that ferret's SHAP plays the very game that ours does (which is
checked). Its error: ||φ - exact|| / ||exact||, from all 4,096 coalitions, in the mean over texts. That of integrated
gradients: the completeness gap, in the mean. Ours takes the least budget that is no worse.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from benchmarks.contest import STEPS, Contest, empty_home, params_of, spent
from benchmarks.ferret_peer import Peer
from benchmarks.model_work import task_on
from benchmarks.shapley_error import FEATURES, as_game, ours
from engine.data.datasets import load
from engine.explain import explain_many
from engine.explainers.shapley import all_coalitions, exact, least_budget
from engine.models.text_classifier import TextClassifier
from engine.request import Example, Request

AGAINST_FERRET = 3.0
SEEDS = 3
BUDGETS = (32, 40, 48, 64, 80, 96, 128, 192, 256, 384, 512)
FEWER_STEPS = (2, 3, 4, 6, 8, 10, 12, 16, 20, 24, 32, 40, 50)
SAME_GAME = 1e-4


def texts(model: TextClassifier, count: int) -> list[str]:
    """Beginnings of reviews."""
    found = (_beginning(model, example.text) for example in load("reviews").examples)
    return list(dict.fromkeys(text for text in found if text))[:count]


def _beginning(model: TextClassifier, text: str) -> str:
    text = " ".join(text.split()[:FEATURES])
    encoded = model.encode(Example(text))
    whole = len(encoded.features) == FEATURES == len(text.split())
    return text if whole and text.replace(" ", "").isalpha() else ""


def measure(contest: Contest, other: Peer, rounds: int) -> list[dict[str, Any]]:
    """Methods apart, then both with the plain gradient, explained and scored."""
    budget, shapley = shapley_budget(contest, other)
    steps, gaps = path_steps(contest, other)
    both = {"gradient": 1, "integrated_gradients": steps, "kernel_shap": budget}
    theirs = {"gradient": 1, "integrated_gradients": STEPS, "kernel_shap": 0}
    rows = [
        _row(contest, other, rounds, "kernel_shap", budget, 0, shapley),
        _row(contest, other, rounds, "integrated_gradients", steps, STEPS, gaps),
    ]
    seconds = _in_turn(
        rounds, lambda: spent(lambda: contest.ours(both)), lambda: contest.ferrets(other, theirs)["seconds"]
    )
    return [*rows, _told("gradient and both, scored too", ("", "", f"{steps} and {budget}"), seconds)]


def shapley_budget(contest: Contest, other: Peer) -> tuple[int, tuple[float, float]]:
    """Evaluations at which our error is no larger than ferret's, and both errors."""
    games = [
        task_on(contest.model, text).masked_values([all_coalitions(FEATURES)], "mask")[0] for text in contest.texts
    ]
    _check_same(contest, other, games)
    truth = [exact(FEATURES, as_game(values)) for values in games]
    found = contest.ferrets(other, {"kernel_shap": 0})["scores"]["shap"]
    theirs = float(np.mean([_error(np.array(phi[1:-1]), true) for phi, true in zip(found, truth, strict=True)]))
    error = float("nan")
    for budget in (max(BUDGETS[0], least_budget(FEATURES)), *BUDGETS[1:]):
        estimates = [
            _error(ours(as_game(v), budget, s), t) for v, t in zip(games, truth, strict=True) for s in range(SEEDS)
        ]
        if (error := float(np.mean(estimates))) <= theirs:
            break
    return budget, (theirs, error)


def _error(found: np.ndarray, true: np.ndarray) -> float:
    return float(np.linalg.norm(found - true) / np.linalg.norm(true))


def _check_same(contest: Contest, other: Peer, games: Sequence[np.ndarray]) -> None:
    """Errors: ferret removes tokens in another way than we do, so that no error could be compared."""
    kept = np.random.default_rng(0).random((8, FEATURES)) < 0.5
    places = kept.astype(np.int64) @ (1 << np.arange(FEATURES))
    whole = np.pad(kept, ((0, 0), (1, 1)), constant_values=True).tolist()
    for text, target, values in zip(contest.texts, contest.targets, games, strict=True):
        found = other.ask("game", text=text, target=target, kept=whole)["values"]
        if not np.allclose(found, values[places], atol=SAME_GAME):
            raise SystemExit(f"error: ferret's SHAP plays another game than ours on {text!r}.")


def path_steps(contest: Contest, other: Peer) -> tuple[int, tuple[float, float]]:
    """Steps at which our completeness gap is no larger than ferret's, and both gaps."""
    theirs = float(np.mean(other.ask("gaps", texts=contest.texts, targets=contest.targets, steps=STEPS)["gaps"]))
    gap = float("nan")
    for steps in FEWER_STEPS:
        gap = float(np.mean([made.check.value for made in _explained(contest, "integrated_gradients", steps)]))
        if gap <= theirs:
            break
    return steps, (theirs, gap)


def _explained(contest: Contest, method: str, amount: int) -> list[Any]:
    params = params_of(method, amount)
    contest.model.memo.clear()
    with empty_home():
        return explain_many([Request(str(contest.folder), method, Example(text), params) for text in contest.texts])


def _row(
    contest: Contest, other: Peer, rounds: int, method: str, amount: int, theirs: int, errors: tuple[float, float]
) -> dict[str, Any]:
    def ferret() -> float:
        return float(sum(contest.ferrets(other, {method: theirs})["spent"].values()))

    seconds = _in_turn(rounds, lambda: spent(lambda: _explained(contest, method, amount)), ferret)
    return _told(method, (f"{errors[0]:.3g}", f"{errors[1]:.3g}", str(amount)), seconds)


def _in_turn(rounds: int, one: Callable[[], float], other: Callable[[], float]) -> np.ndarray:
    """`[round side]`, the side that begins changing each round."""
    both = np.zeros((rounds, 2))
    for turn in range(rounds):
        for side in ((0, 1), (1, 0))[turn % 2]:
            both[turn, side] = (one, other)[side]()
    return both


def _told(what: str, told: tuple[str, str, str], seconds: np.ndarray) -> dict[str, Any]:
    times = float(np.median(seconds[:, 1] / seconds[:, 0]))
    return {
        "method": what,
        "ferret's error": told[0],
        "ours": told[1],
        "steps or evaluations": told[2],
        "seconds": float(np.median(seconds[:, 0])),
        "ferret's": float(np.median(seconds[:, 1])),
        "times its speed": times,
        "at least": AGAINST_FERRET,
    }
