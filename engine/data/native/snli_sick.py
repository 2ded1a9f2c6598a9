"""SNLI and SICK as tab-separated tables with premise, hypothesis and label, put together for training.

SNLI's own training pairs are not among them: its test split and SICK train a model, SNLI's dev split measures it.
Source: Bowman et al. 2015, doi:10.18653/v1/D15-1075; Marelli et al. 2014, aclanthology.org/L14-1314.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from engine.data.jsonl import Row
from engine.data.labels import NLI_LABELS
from engine.data.native.found import Found, Read, Reading
from engine.data.tables import read_tsv
from engine.errors import ExegesisError

FILES = {"validation": ("snli_dev.tsv",), "test": ("sick_trial.tsv",), "train": ("snli_test.tsv", "sick_train.tsv")}
COLUMNS = {"premise": "text", "hypothesis": "text_pair", "label": "label"}


def find_snli_sick(path: Path) -> Found | None:
    """A folder with all files of at least the training split."""
    there = {split: [path / name for name in names] for split, names in FILES.items()}
    whole = {split: _reader(files) for split, files in there.items() if all(file.is_file() for file in files)}
    return Found(whole) if "train" in whole else None


def _reader(files: Sequence[Path]) -> Read:
    def read(limit: int | None) -> Reading:
        return Reading([_row(*row) for file in files for row in read_tsv(file)][:limit], files, NLI_LABELS)

    return read


def _row(where: str, row: dict[str, object]) -> Row:
    absent = next((name for name in COLUMNS if name not in row), None)
    if absent:
        raise ExegesisError(f"{where}: has no column {absent!r}. Its columns: {', '.join(row)}.")
    return where, {COLUMNS.get(name, name): value for name, value in row.items()}
