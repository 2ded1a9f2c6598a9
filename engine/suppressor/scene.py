"""Pictures with a suppressor: a lamp behind haze, and a piece of sky that shows only the haze.

Three plates are placed on a random background. The lamp is dim or bright, which is the class, and the haze makes it
darker or lighter. The sky is as light as the haze, with some noise of its own, and is independent of the lamp. The wall
has independent lightness and carries no information at all.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

import numpy as np
import torch
from jaxtyping import Float, Int, UInt8

from engine.data.scenes import draw_background
from engine.progress import CancelToken, Report, silent
from engine.request import Picture
from engine.suppressor.trained import (
    DATA_SETS,
    ROWS,
    ProblemChecks,
    TrainedProblem,
    TrainedResult,
    accuracy,
    association,
    cached_result,
    compute_result,
    expectation_spreads,
    second_class,
    shuffled,
    train,
    trained_key,
)
from engine.training.config import ImageTrainConfig
from engine.training.image_data import Normalization, PixelSet
from engine.training.image_training import BILINEAR, new_vit
from engine.vision.adapters import image_adapter_for
from engine.vision.classifier import ImageClassifier
from engine.vision.picture import EncodedPicture, Preprocessing

VERSION = 1
"""Increase it whenever pictures, model or training change."""
LABELS = ("dim", "bright")
SIZE, PATCH = 32, 8
SIDE = SIZE // PATCH
PLATES = ((2, 1), (0, 2), (3, 3))
"""Row and column of lamp, sky and wall. Each covers one patch."""
MIDDLE, SIGNAL, NOISE = 128, 24, 24
"""Gray levels: the middle, the lamp's offset to either side, and the standard deviation of haze and wall."""
CORRELATION = 0.95
"""Correlation of the noise of lamp and sky."""
LEVELS = 4
"""Number of quantile groups of gray levels, for the test of association and FIRM."""
TRAINING, HELD_OUT, EXPLAINED = 3000, 600, 30
NORMALIZATION = Normalization((0.5, 0.5, 0.5), (0.25, 0.25, 0.25))
CONFIG = ImageTrainConfig(
    size=SIZE, patch=PATCH, layers=2, width=32, heads=2, epochs=10, batch_size=64, learning_rate=2e-3,
    weight_decay=0.0, label_smoothing=0.0, average=0.0, half=False,
)  # fmt: skip


@dataclass(frozen=True, eq=False)
class LampScenes:
    """The choices that make up scenes. `levels`: gray levels of lamp, sky and wall. `seed`: seed of the backgrounds."""

    labels: Int[np.ndarray, "example"]
    levels: Float[np.ndarray, "example 3"]
    seed: str

    def __len__(self) -> int:
        return len(self.labels)

    def pixels(self, levels: Float[np.ndarray, "example 3"] | None = None) -> UInt8[np.ndarray, "example 32 32 3"]:
        """Draw all pictures, with other gray levels of the plates if given."""
        levels = self.levels if levels is None else levels
        return np.stack([draw_scene(f"{self.seed}/{at}", own) for at, own in enumerate(levels)])


def draw_scenes(count: int, seed: str) -> LampScenes:
    """Draw the class and the gray levels of the plates of each scene."""
    generator = np.random.default_rng([*seed.encode()])
    labels = generator.integers(0, 2, count)
    haze, own, wall = generator.standard_normal((3, count))
    sky = CORRELATION * haze + np.sqrt(1 - CORRELATION**2) * own
    levels = MIDDLE + NOISE * np.column_stack([haze, sky, wall])
    levels[:, 0] += SIGNAL * (2 * labels - 1)
    return LampScenes(labels, levels, seed)


def draw_scene(seed: str, levels: Float[np.ndarray, "3"]) -> UInt8[np.ndarray, "32 32 3"]:
    """Draw a random background with the three plates."""
    pixels = np.array(draw_background(SIZE, Random(seed)))
    for (row, column), level in zip(PLATES, levels, strict=True):
        pixels[row * PATCH : (row + 1) * PATCH, column * PATCH : (column + 1) * PATCH] = np.clip(round(level), 0, 255)
    return pixels


def scene_result(report: Report = silent, cancel: CancelToken | None = None) -> TrainedResult:
    """Return the verdicts on pictures, computed if not cached."""
    return compute_result("image", scene_key(), build_scene_problem, report, cancel)


def scene_key() -> str:
    """Cache key of the verdicts."""
    return trained_key("image", VERSION, CONFIG)


def cached_scene_result() -> TrainedResult | None:
    """Return the verdicts if they are cached, else None."""
    return cached_result(scene_key())


def build_scene_problem(report: Report = silent, cancel: CancelToken | None = None) -> TrainedProblem:
    """Train the model and encode the pictures to explain."""
    model = train_scene_model(report, cancel or CancelToken())
    held_out, many = draw_scenes(HELD_OUT, "held out"), draw_scenes(DATA_SETS * ROWS, "data sets")
    first = len(model.adapter.specials)
    lamp, sky, wall = (first + row * SIDE + column for row, column in PLATES)
    values = np.column_stack([level_groups(levels) for levels in many.levels.T])
    return TrainedProblem(
        model,
        _encode(model, held_out.pixels()[:EXPLAINED]),
        (lamp, sky, wall),
        check_scenes(model, held_out),
        expectation_spreads(values, second_class(model, _encode(model, many.pixels()))),
    )


def train_scene_model(report: Report, cancel: CancelToken) -> ImageClassifier:
    """Train a vision transformer of two small blocks from scratch."""
    with torch.random.fork_rng():
        torch.manual_seed(CONFIG.seed)
        module = new_vit(CONFIG, LABELS)
        sets = [_pixel_set(draw_scenes(count, seed)) for count, seed in ((TRAINING, "training"), (HELD_OUT, "choice"))]
        train(module, sets, CONFIG, report, cancel)
    preprocessing = Preprocessing((SIZE, SIZE), None, BILINEAR, 1 / 255, NORMALIZATION.mean, NORMALIZATION.std)
    adapter = image_adapter_for("vit", [type(module).__name__], "lamp")
    return ImageClassifier(
        "lamp", str(VERSION), module, preprocessing, adapter, LABELS, torch.float32, torch.device("cpu")
    )


def _pixel_set(scenes: LampScenes) -> PixelSet:
    pixels = torch.from_numpy(scenes.pixels()).permute(0, 3, 1, 2).contiguous()
    return PixelSet(pixels, [float(label) for label in scenes.labels], NORMALIZATION)


def check_scenes(model: ImageClassifier, scenes: LampScenes) -> ProblemChecks:
    """Check on held-out scenes that the sky is a suppressor."""
    order = shuffled(len(scenes), 0)

    def accuracy_without(plate: int | None = None) -> float:
        """Accuracy with `plate` of each scene as light as in another scene; None leaves the scenes unchanged."""
        levels = scenes.levels.copy()
        if plate is not None:
            levels[:, plate] = levels[order, plate]
        return accuracy(model, _encode(model, scenes.pixels(levels)), scenes.labels)

    return ProblemChecks(
        association(level_groups(scenes.levels[:, 1]), scenes.labels),
        association(level_groups(scenes.levels[:, 2]), scenes.labels),
        accuracy_without(),
        accuracy_without(1),
        accuracy_without(2),
        len(scenes),
    )


def level_groups(levels: Float[np.ndarray, "example"]) -> Int[np.ndarray, "example"]:
    """The quartile of each level, from 0 for the darkest."""
    return np.searchsorted(np.quantile(levels, np.arange(1, LEVELS) / LEVELS), levels)


def _encode(model: ImageClassifier, pixels: UInt8[np.ndarray, "example 32 32 3"]) -> list[EncodedPicture]:
    return [model.encode(Picture(own)) for own in pixels]
