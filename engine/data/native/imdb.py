"""IMDB reviews as released (aclImdb): a text file each in `train` and `test`, below them `pos` and `neg`."""

from __future__ import annotations

import re
from itertools import zip_longest
from pathlib import Path

from engine.data.files import read_text
from engine.data.jsonl import Row
from engine.data.native.found import Found, Read, Reading
from engine.data.sst2 import LABELS

FOLDERS = ("neg", "pos")
RATED = re.compile(r"(\d+)_(\d+)")
"""The number of the review and its stars, 1 to 10."""


def find_imdb(path: Path) -> Found | None:
    """A folder with `neg` and `pos`, or with `train` or `test` that have them."""
    if not path.is_dir():
        return None
    if _holds_classes(path):
        return Found({"all": _reader(path)})
    splits = {name: _reader(path / name) for name in ("test", "train") if _holds_classes(path / name)}
    return Found(splits) if splits else None


def _holds_classes(folder: Path) -> bool:
    return all((folder / name).is_dir() and any((folder / name).glob("*.txt")) for name in FOLDERS)


def _reader(folder: Path) -> Read:
    def read(limit: int | None) -> Reading:
        files = _in_turns(folder)[:limit]
        return Reading([_row(file) for file in files], files, LABELS)

    return read


def _in_turns(folder: Path) -> list[Path]:
    """One of each class in turn, so that the first n are balanced."""
    by_class = [sorted((folder / name).glob("*.txt"), key=_number) for name in FOLDERS]
    return [file for pair in zip_longest(*by_class) for file in pair if file is not None]


def _number(file: Path) -> tuple[int, str]:
    match = RATED.fullmatch(file.stem)
    return (int(match[1]) if match else -1, file.name)


def _row(file: Path) -> Row:
    match = RATED.fullmatch(file.stem)
    place = f"{file.parent.parent.name}/{file.parent.name}/{file.name}"
    row = {"text": read_text(file), "label": FOLDERS.index(file.parent.name), "file": place}
    return place, row | ({"stars": int(match[2])} if match else {})
