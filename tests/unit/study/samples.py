"""Small studies of tiny checkpoints, for the tests of everything that happens to a study."""

from __future__ import annotations

import csv
import dataclasses
from pathlib import Path

import numpy as np
from PIL import Image

from engine.study.design import Design, ItemChoice, MethodChoice
from tests.explaining import checkpoint
from tests.tiny import CORPUS
from tests.unit.vision.tiny_vit import save_vit

TEXTS = [f"{text} {end}" for text in CORPUS for end in ("indeed", "or so they say")]
LABELS = ("bad", "good")


def text_design(folder: Path, **changes: object) -> Design:
    """Three items and one for practice, of texts in a file, explained by two methods and the placebo."""
    file = folder / "texts.csv"
    with file.open("w", newline="", encoding="utf-8") as handle:
        rows = csv.writer(handle)
        rows.writerow(["text", "label"])
        rows.writerows([text, LABELS[place % 2]] for place, text in enumerate(TEXTS))
    methods = (MethodChoice("gradient"), MethodChoice("lime", {"n_samples": 40}))
    return _design(str(checkpoint("bert")), file, "text", methods, changes)


def image_design(folder: Path, names: tuple[str, ...] = ("cat", "dog"), **changes: object) -> Design:
    """The same of pictures in class folders."""
    for place in range(6):
        file = folder / "pictures" / names[place % 2] / f"{place}.png"
        file.parent.mkdir(parents=True, exist_ok=True)
        pixels = np.random.default_rng(place).integers(0, 256, (24, 24, 3), dtype=np.uint8)
        Image.fromarray(pixels).save(file)
    methods = (MethodChoice("gradient"), MethodChoice("attention_mean"))
    return _design(str(save_vit(folder / "vit")), folder / "pictures", "image", methods, changes)


def _design(
    model: str, dataset: Path, kind: str, methods: tuple[MethodChoice, ...], changes: dict[str, object]
) -> Design:
    small = Design(
        title="Small",
        model=model,
        dataset=str(dataset),
        kind=kind,
        methods=methods,
        items=ItemChoice(count=3),
        items_per_annotator=3,
        practice=1,
        repeats=1,
    )
    return dataclasses.replace(small, **changes)
