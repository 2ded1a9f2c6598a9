"""MultiNLI and SNLI as released: JSONL or tab-separated text with sentence1, sentence2 and gold_label.

The tables of GLUE's MNLI have the same columns. Pairs whose annotators found no majority ("-") carry no label.
Source: Williams et al. 2018, doi:10.18653/v1/N18-1101; Bowman et al. 2015, doi:10.18653/v1/D15-1075.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from engine.data.files import first_line
from engine.data.jsonl import Row, read_jsonl
from engine.data.labels import NLI_LABELS
from engine.data.native.found import Found, Read, Reading
from engine.data.tables import read_tsv

COLUMNS = ("sentence1", "sentence2", "gold_label")
KINDS = {".jsonl": read_jsonl, ".txt": read_tsv, ".tsv": read_tsv}
NAME = re.compile(r"(?:(?:multinli|snli)_[\d.]+_)?(train|dev|test)(_matched|_mismatched)?")
OTHER = "_mismatched"
"""Of sources that the training pairs are not of: splits of their own."""
ALIASES = {
    f"{split}{kind}": f"{'validation' if split == 'dev' else split}{OTHER if kind == OTHER else ''}"
    for split in ("dev", "validation", "test")
    for kind in ("_matched", OTHER)
}
NO_MAJORITY = ("-", "hidden", "")


def find_multinli(path: Path) -> Found | None:
    """A file, or a folder with files named as released; of one split JSONL is preferred."""
    if path.is_file():
        return Found({"all": _reader(path)}) if _is_nli(path) else None
    files = [file for kind in KINDS for file in sorted(path.glob(f"*{kind}")) if NAME.fullmatch(file.stem)]
    splits = {_split(file): _reader(file) for file in reversed(files) if _is_nli(file)}
    return Found(splits, ALIASES) if splits else None


def _is_nli(file: Path) -> bool:
    head = first_line(file) if file.suffix.lower() in KINDS else ""
    return all(name in head for name in COLUMNS)


def _split(file: Path) -> str:
    match = NAME.fullmatch(file.stem)
    split, kind = (match[1], match[2] or "") if match else ("all", "")
    return ALIASES.get(f"{split}{kind}", "validation" if split == "dev" else split)


def _reader(file: Path) -> Read:
    def read(limit: int | None) -> Reading:
        return Reading([_row(*row) for row in KINDS[file.suffix.lower()](file)[:limit]], [file], NLI_LABELS)

    return read


def _row(where: str, row: Mapping[str, Any]) -> Row:
    label = row.get("gold_label")
    rest = {name: value for name, value in row.items() if name not in COLUMNS and not name.endswith("parse")}
    known = {"text": row.get("sentence1"), "text_pair": row.get("sentence2")}
    return where, {**known, "label": None if label in NO_MAJORITY else label, **rest}
