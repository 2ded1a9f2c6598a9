"""The examples of a fine-tuning by split, with plain labels."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from engine.errors import ExegesisError
from engine.home import project_root


@dataclass(frozen=True)
class Row:
    text: str
    text_pair: str | None
    label: float
    """A class index, or the score of a regression."""


@dataclass(frozen=True)
class Corpus:
    """Splits `train` and, where they exist, `dev` and `test`; no labels means regression."""

    name: str
    labels: tuple[str, ...]
    splits: dict[str, list[Row]]

    @property
    def regression(self) -> bool:
        return not self.labels


def read_corpus(dataset: str) -> Corpus:
    """SST-2 from its TSV files under `EXEGESIS_DATA`."""
    root = Path(os.environ.get("EXEGESIS_DATA") or project_root().parent / "shared" / "data") / dataset
    if not (root / "train.tsv").is_file():
        raise ExegesisError(f"dataset: {root} has no train.tsv. Set EXEGESIS_DATA to the folder of the data sets.")
    splits = {name: _rows(root / f"{name}.tsv") for name in ("train", "dev", "test")}
    return Corpus(dataset, ("negative", "positive"), splits)


def _rows(path: Path) -> list[Row]:
    lines = path.read_text(encoding="utf-8").split("\n")[1:]
    pairs = [line.rstrip("\r").split("\t") for line in lines if line.strip()]
    return [Row(text.strip(), None, float(label)) for text, label in pairs]
