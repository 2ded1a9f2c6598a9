"""SST-2: local TSV files (`sentence<TAB>label`) where there are any, else the hub's `stanfordnlp/sst2`."""

from __future__ import annotations

import os
from pathlib import Path

from engine.data.hub import ALIASES, Shards, hub_shards
from engine.errors import ExegesisError, unknown
from engine.home import project_root

HUB_ID = "stanfordnlp/sst2"
COLUMNS = {"text": "sentence", "label": "label"}
LABELS = ("negative", "positive")
FILES = {"train": "train.tsv", "validation": "dev.tsv", "test": "test.tsv"}


def data_root() -> Path:
    """The folder of local data sets: `EXEGESIS_DATA`, or `../shared/data` beside the checkout."""
    return Path(os.environ.get("EXEGESIS_DATA") or project_root().parent / "shared" / "data")


def sst2_split(split: str | None) -> str:
    """`train`, `validation` (also `dev`; the default) or `test`."""
    chosen = "validation" if split is None else ALIASES.get(split, split)
    if chosen not in FILES:
        raise unknown("split", split, ("train", "dev", "test"))
    return chosen


def local_sst2(split: str) -> Path | None:
    """The local TSV file of a split, or None."""
    path = data_root() / "sst2" / FILES[split]
    return path if path.is_file() else None


def hub_sst2(split: str) -> Shards:
    """The hub's files of a split; the hub's test split carries no labels."""
    try:
        return hub_shards(HUB_ID, split)
    except ExegesisError as error:
        raise ExegesisError(
            f"sst2: found neither in {data_root() / 'sst2'} nor on the hub ({error}) "
            f"Put train.tsv and dev.tsv there, or set EXEGESIS_DATA to the folder that holds sst2/."
        ) from None
