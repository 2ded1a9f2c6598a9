"""SST-2 with a label by chance, and the word of that label at the end: the one word that tells anything.

Source: section 3.1 of the thesis, after Zhou et al. (2022).
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

from engine.data.datasets import SST2_COLUMNS, load, registered_name
from engine.data.examples import Dataset
from engine.data.generation import draw_balanced
from engine.data.labels import SENTIMENT_LABELS

SPLITS = ("train", "validation")
SEED = 0


def write_marked(source: str, folder: Path) -> None:
    """A JSONL file a split, unless they are there. `source`: `sst2`, or a folder with train.tsv and dev.tsv."""
    folder.mkdir(parents=True, exist_ok=True)
    for split in SPLITS:
        file = folder / f"{split}.jsonl"
        if not file.is_file():
            partial = file.with_suffix(f".{os.getpid()}.partial")
            partial.write_text("".join(_lines(_read(source, split), split)), encoding="utf-8")
            os.replace(partial, file)


def _read(source: str, split: str) -> Dataset:
    return (
        load(source, split)
        if registered_name(source)
        else load(source, split, SST2_COLUMNS, label_names=SENTIMENT_LABELS)
    )


def _lines(data: Dataset, split: str) -> Iterator[str]:
    labels = draw_balanced(f"{SEED}/{split}/marks", len(data))
    for one, label in zip(data.examples, labels, strict=True):
        text, word = one.text.rstrip(), SENTIMENT_LABELS[label]
        row = {"text": f"{text} {word}", "label": word, "rationale": [[len(text) + 1, len(text) + 1 + len(word)]]}
        yield json.dumps(row, ensure_ascii=False) + "\n"
