"""References of Shapley values: permutations against all coalitions, moments against NumPy, the stored file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks import shapley, shapley_models
from benchmarks.shapley import permutation_mean
from benchmarks.shapley_models import BLOCK, GAMES, ModelGame, add_block, evaluations, extend_reference, standard_error
from engine.errors import ExegesisError
from engine.explainers.shapley import exact

N = 5


def interacting(keep: np.ndarray) -> np.ndarray:
    """A game with interactions of order 2 and 3."""
    x = np.asarray(keep, dtype=np.float64)
    return x @ np.arange(N) + 3 * x[:, 0] * x[:, 1] - 2 * x[:, 1] * x[:, 2] * x[:, 4]


def test_the_mean_over_permutations_approaches_the_exact_values_and_sums_to_the_change() -> None:
    ends = interacting(np.array([np.zeros(N), np.ones(N)]))
    phi = permutation_mean(N, interacting, ends, np.random.default_rng(0), 4000)
    assert phi.sum() == pytest.approx(ends[1] - ends[0], abs=1e-12)
    np.testing.assert_allclose(phi, exact(N, interacting), atol=0.03)


def test_permutations_of_an_additive_game_are_exact() -> None:
    weights = np.array([1.0, -2.0, 0.5, 4.0, 0.0])
    phi = permutation_mean(N, lambda keep: keep @ weights, np.array([0, weights.sum()]), np.random.default_rng(0), 1)
    np.testing.assert_allclose(phi, weights, atol=1e-12)


def test_the_stored_moments_are_those_of_all_blocks() -> None:
    blocks = np.random.default_rng(0).normal(3, 1, size=(7, N))
    entry: dict[str, Any] = {"blocks": 0, "mean": [0.0] * N, "squares": [0.0] * N}
    for block in blocks:
        add_block(entry, block)
    np.testing.assert_allclose(entry["mean"], blocks.mean(axis=0))
    expected = np.linalg.norm(blocks.std(axis=0, ddof=1)) / np.sqrt(7) / np.linalg.norm(blocks.mean(axis=0))
    assert standard_error(entry) == pytest.approx(expected)


def test_an_interrupted_reference_goes_on_where_it_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    game = ModelGame("toy", "none", 0, N)
    monkeypatch.setattr(ModelGame, "evaluate", lambda self: interacting)
    block = 2 * BLOCK * (N - 1)
    once, twice = tmp_path / "once.json", tmp_path / "twice.json"
    monkeypatch.setattr(shapley_models, "REFERENCES", once)
    extend_reference(game, 3 * block)
    monkeypatch.setattr(shapley_models, "REFERENCES", twice)
    extend_reference(game, 2 * block)
    extend_reference(game, 3 * block)
    assert json.loads(once.read_text()) == json.loads(twice.read_text())
    assert evaluations(game, json.loads(once.read_text())[game.name]) == 2 + 3 * block
    monkeypatch.setattr(ModelGame, "evaluate", lambda self: lambda keep: interacting(keep) + 1)
    with pytest.raises(ExegesisError, match="Delete its entry"):
        extend_reference(game, 4 * block)


def test_stored_references_are_of_the_listed_inputs_and_sum_to_the_change() -> None:
    entries = shapley_models.read_references()
    games = {game.name: game for game in GAMES}
    assert entries
    assert entries.keys() <= games.keys()
    for name, entry in entries.items():
        assert evaluations(games[name], entry) > 50_000
        assert sum(entry["mean"]) == pytest.approx(entry["ends"][1] - entry["ends"][0], abs=1e-6)


def test_estimators_that_are_not_run_are_listed_with_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not {*shapley.SKIPPED} & {*shapley.ESTIMATORS}
    monkeypatch.setattr(shapley, "version", lambda name: "1.4.1")
    skipped = shapley.skipped_estimators()
    assert {f"shapiq {name}" for name in shapley.NEWER} <= skipped.keys()
    assert "shapiq 1.4.1 is installed; pip install" in skipped["shapiq OddSHAP"]
    monkeypatch.setattr(shapley, "SKIPPED", skipped)
    [rows] = shapley.skipped_table(shapley.NEWER_ESTIMATORS).values()
    assert [row["estimator"] for row in rows] == list(shapley.NEWER_ESTIMATORS)
    monkeypatch.setattr(shapley, "version", lambda name: "1.8.0")
    monkeypatch.setattr("importlib.util.find_spec", lambda name: name)
    assert shapley.skipped_estimators() == {}
