"""Errors of Shapley estimates on inputs of real models with 30 and 60 features, against long samples that are stored.

A million passes of a small model take minutes to an hour, so the references lie in `REFERENCES`. `--samples` adds to
them block by block: it can be interrupted, and goes on where it stopped.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.harness import Measurement, Table, benchmark
from benchmarks.shapley import (
    MANY_ESTIMATORS,
    NEWER_ESTIMATORS,
    Evaluate,
    ReferenceGame,
    error_rows,
    permutation_mean,
    skipped_table,
)
from benchmarks.workloads import text_task
from engine import runtime
from engine.data.datasets import load
from engine.data.image_datasets import load_images
from engine.errors import ExegesisError
from engine.explain import predict_encoded
from engine.models.loading import load_image_model, load_model
from engine.removal import FeatureGroups, singletons
from engine.request import Picture
from engine.task import Task, TaskItem
from engine.vision.picture import segment_picture

REFERENCES = Path(__file__).parent / "data" / "shapley_references.json"
BLOCK = 125
"""Permutations in one block, each with its reverse."""


@dataclass(frozen=True)
class ModelGame:
    """An input of an embedded model; its features are tokens, or about `segments` superpixels."""

    model: str
    data: str
    index: int
    features: int
    segments: int | None = None

    @property
    def kind(self) -> str:
        return f"{self.features} {'tokens' if self.segments is None else 'superpixels'}"

    @property
    def name(self) -> str:
        return f"{self.kind}: {self.model}, {self.data} {self.index}"

    def evaluate(self) -> Evaluate:
        """The probability of the predicted class by coalition."""
        task, groups = self._text() if self.segments is None else self._picture(self.segments)
        operator = "mask" if self.segments is None else "mean"
        if groups.count != self.features:
            raise ExegesisError(f"{self.name}: the input has {groups.count} features; choose another index.")
        return lambda keep: task.masked_values([groups.features(np.atleast_2d(keep).astype(bool))], operator)[0]

    def _text(self) -> tuple[Task, FeatureGroups]:
        example = load(self.data, "test").examples[self.index]
        task = text_task(load_model(self.model, "float32", runtime.device()), example.text)
        return task, singletons(len(task.examples[0].features))

    def _picture(self, segments: int) -> tuple[Task, FeatureGroups]:
        model = load_image_model(self.model, "float32", runtime.device())
        encoded = model.encode(Picture(load_images(self.data)[self.index].pixels))
        prediction = predict_encoded(model, [encoded])[0]
        task = Task(model, [TaskItem(encoded, prediction, prediction.index, 0)])
        return task, segment_picture(encoded, "slic", segments)


GAMES = (
    ModelGame("bert-context", "sst2", 110, 30),
    ModelGame("t5-mini-context", "sst2", 225, 30),
    ModelGame("t5-mini-context", "sst2", 18, 60),
    ModelGame("t5-mini-context", "reviews-marked", 171, 60),
    ModelGame("scenes-vit", "scenes", 0, 60, segments=100),
    ModelGame("bert-context", "sst2", 126, 60),
)
"""Texts are among the first of a test split with as many tokens, pictures with as many superpixels."""


@benchmark(seeds=3, samples=0)
def shapley_error_models(seeds: int, samples: int) -> Measurement:
    """Error of Shapley estimates of an input of a real model by budget, 30 and 60 features.

    The game is the probability of the predicted class of a text, a removed token being [MASK], or of a picture, a
    removed superpixel having the mean color. The reference is stored: means of the marginal contributions over
    permutations and their reverses (antithetic), which are unbiased. Its standard error, relative to its norm, is the
    last column, and is part of every error. Errors are means as in `shapley_error`.

    `--samples` first adds to the references until each has as many evaluations (1000000 takes hours), those of further
    inputs too.
    """
    if samples:
        for game in GAMES:
            extend_reference(game, samples)
    stored = read_references()
    games = [game for game in GAMES if game.name in stored]
    tables = {title(game, stored[game.name], seeds): game_rows(game, stored, seeds) for game in games}
    return Measurement({**tables, **skipped_table(NEWER_ESTIMATORS)})


def title(game: ModelGame, entry: dict[str, Any], seeds: int) -> str:
    return f"{game.name}: relative L2 error by evaluations, {seeds} seeds, reference of {evaluations(game, entry):,}"


def game_rows(game: ModelGame, stored: dict[str, Any], seeds: int) -> Table:
    """The rows of one input, each with the standard error of its reference."""
    entry, evaluate = stored[game.name], game.evaluate()
    check_ends(game, entry["ends"], evaluate(np.array([np.zeros(game.features), np.ones(game.features)])))
    reference = ReferenceGame(evaluate, np.array(entry["mean"]), standard_error(entry))
    rows = error_rows(MANY_ESTIMATORS, game.features, [reference], seeds)
    return [{**row, "reference's standard error": reference.standard_error} for row in rows]


def extend_reference(game: ModelGame, samples: int) -> None:
    """Evaluate blocks of permutations, the seed of each its number, and store the moments of their means."""
    evaluate, n = game.evaluate(), game.features
    ends = evaluate(np.array([np.zeros(n), np.ones(n)]))
    entry = read_references().get(game.name) or {"blocks": 0, "mean": [0.0] * n, "squares": [0.0] * n}
    check_ends(game, entry.setdefault("ends", ends.tolist()), ends)
    while evaluations(game, entry) < samples:
        generator = np.random.default_rng([n, entry["blocks"]])
        add_block(entry, permutation_mean(n, evaluate, ends, generator, BLOCK))
        write_reference(game.name, entry)


def evaluations(game: ModelGame, entry: dict[str, Any]) -> int:
    """Those of each permutation and its reverse, and the two ends once."""
    return 2 + entry["blocks"] * 2 * BLOCK * (game.features - 1)


def add_block(entry: dict[str, Any], block: np.ndarray) -> None:
    """Welford's update of the mean and of the sum of squared deviations."""
    entry["blocks"] += 1
    mean = np.array(entry["mean"])
    moved = mean + (block - mean) / entry["blocks"]
    entry["squares"] = (np.array(entry["squares"]) + (block - mean) * (block - moved)).tolist()
    entry["mean"] = moved.tolist()


def standard_error(entry: dict[str, Any]) -> float:
    """Of the mean, relative to its norm."""
    blocks = entry["blocks"]
    variance = np.sum(entry["squares"]) / (blocks - 1) / blocks
    return float(math.sqrt(variance) / np.linalg.norm(entry["mean"]))


def check_ends(game: ModelGame, stored: list[float], ends: np.ndarray) -> None:
    """Refuse a reference of another model or input."""
    if not np.allclose(stored, ends, atol=1e-4):
        raise ExegesisError(
            f"{game.name}: the model gives {ends[0]:.4f} and {ends[1]:.4f} without and with all features, the stored "
            f"reference {stored[0]:.4f} and {stored[1]:.4f}. Delete its entry in {REFERENCES.name} and run "
            "python -m benchmarks shapley_error_models --samples 1000000."
        )


def read_references() -> dict[str, Any]:
    return json.loads(REFERENCES.read_text(encoding="utf-8")) if REFERENCES.exists() else {}


def write_reference(name: str, entry: dict[str, Any]) -> None:
    REFERENCES.parent.mkdir(exist_ok=True)
    REFERENCES.write_text(json.dumps({**read_references(), name: entry}), encoding="utf-8")
