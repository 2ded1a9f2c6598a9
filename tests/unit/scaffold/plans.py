"""What the tests of whole plans share: small data sets as people have them, and teachers and bases that differ."""

from __future__ import annotations

import functools
import json
import random
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from engine.home import home
from engine.scaffold.plan import NONE, SMAT, Recipe, ScaffoldPlan
from tests.tiny import CORPUS, save_checkpoint

FEW: dict[str, Any] = {"batch_size": 4, "epochs": 2, "held_out": 5, "validation": 6, "test": 10}
"""Of a recipe, so that 40 examples are enough."""
ROWS = 40


@functools.cache
def saved(family: str, labels: int = 2, seed: int = 10) -> str:
    """A tiny random checkpoint; of seed 10 BERT and ELECTRA predict both classes on `texts` alike often."""
    place = home() / "tiny"
    place.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix=f"{family}-{labels}-{seed}-", dir=place))
    return str(save_checkpoint(family, folder, labels, seed))


def sentences(count: int = ROWS, seed: int = 0) -> list[str]:
    """Of a few words each."""
    words = [word.strip(",:") for word in " ".join(CORPUS).split()]
    draw = random.Random(seed)
    return [" ".join(draw.sample(words, draw.randint(2, 9))) for _ in range(count)]


def texts(folder: Path, rows: list[str] | None = None) -> str:
    """A CSV file of texts with classes."""
    file = folder / "texts.csv"
    lines = [f"{text},{('bad', 'good')[i % 2]}" for i, text in enumerate(rows or sentences())]
    file.write_text("\n".join(["text,label", *lines]) + "\n", encoding="utf-8")
    return str(file)


def pairs(folder: Path) -> str:
    """Translations with scores as JSONL."""
    file = folder / "pairs.jsonl"
    both = zip(sentences(seed=1), sentences(seed=2), strict=True)
    rows = [{"text": a, "text_pair": b, "label": i / ROWS - 0.5} for i, (a, b) in enumerate(both)]
    file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return str(file)


def pictures(folder: Path) -> str:
    """A folder a class of small pictures."""
    draw = np.random.default_rng(0)
    for i in range(ROWS):
        place = folder / "pictures" / ("cat", "dog", "eel")[i % 3]
        place.mkdir(parents=True, exist_ok=True)
        pixels = np.clip(draw.normal(draw.uniform(0, 255, (1, 1, 3)), 40, (24, 24, 3)), 0, 255)
        Image.fromarray(pixels.astype(np.uint8)).save(place / f"{i}.png")
    return str(folder / "pictures")


def plan(folder: Path, **given: Any) -> ScaffoldPlan:
    """Two students of a tiny BERT, without an explainer and with the learned one."""
    recipe = Recipe(**{**FEW, **given.pop("recipe", {})})
    usual: dict[str, Any] = {
        "teacher": saved("bert"), "base": saved("bert", seed=1), "settings": (NONE, SMAT), "train_sizes": (8,),
        "seeds": (0,), "recipe": recipe,
    }  # fmt: skip
    if "dataset" not in given:
        given["dataset"] = texts(folder)
    return ScaffoldPlan(**{**usual, **given})
