"""e-SNLI: as released (CSV with the highlighted words between asterisks), or JSONL with the numbers of the words.

Of several annotators the first one's highlights count; the others' stay in the extra columns.
Source: Camburu et al. 2018, arXiv:1812.01193.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from engine.data.files import first_line
from engine.data.jsonl import Row
from engine.data.labels import NLI_LABELS
from engine.data.native.found import Found, Read, Reading, placed, runs
from engine.data.tables import read_table
from engine.errors import ExegesisError, shown

MARKED = ("Sentence1_marked_1", "Sentence2_marked_1")
NUMBERED = ("premise_highlight_token_indices", "hypothesis_highlight_token_indices")
STEMS = {"train": "train", "dev": "validation", "val": "validation", "test": "test"}


def find_esnli(path: Path) -> Found | None:
    """A file of either format, or a folder with a file or several for each split."""
    if path.is_file():
        return Found({"all": _reader([path])}) if _is_esnli(path) else None
    files = [file for file in sorted(path.glob("*.*")) if _is_esnli(file)] if path.is_dir() else []
    splits: dict[str, list[Path]] = {}
    for file in files:
        splits.setdefault(_split(file), []).append(file)
    return Found({name: _reader(some) for name, some in splits.items()}) if splits else None


def _is_esnli(file: Path) -> bool:
    head = first_line(file) if file.suffix.lower() in (".csv", ".jsonl") else ""
    return all(name in head for name in (MARKED if file.suffix.lower() == ".csv" else NUMBERED))


def _split(file: Path) -> str:
    """By a word of the file's name: esnli_train_1.csv, dev.jsonl."""
    words = file.stem.lower().split("_")
    return next((STEMS[word] for word in words if word in STEMS), "all")


def _reader(files: Sequence[Path]) -> Read:
    def read(limit: int | None) -> Reading:
        rows = [row for file in files for row in read_table(file)][:limit]
        pairs = [_marked(*row) if MARKED[0] in row[1] else _numbered(*row) for row in rows]
        return Reading(pairs, files, NLI_LABELS)

    return read


def _marked(where: str, row: Mapping[str, Any]) -> Row:
    sides = [_starred(str(row.get(f"Sentence{n}", "")), str(row.get(name, ""))) for n, name in enumerate(MARKED, 1)]
    rest = {name: value for name, value in row.items() if name not in ("Sentence1", "Sentence2", "gold_label", *MARKED)}
    return _pair(where, str(row.get("gold_label", "")), sides, rest)


def _starred(text: str, marked: str) -> tuple[str, list[list[int]]]:
    """The text, and the words that stand between asterisks in the other column, with the signs that cling to them."""
    words, chosen, inside = list[str](), list[int](), False
    for word in marked.split():
        opens = word.startswith("*") and len(word) > 1
        inside = inside or opens
        if inside:
            chosen.append(len(words))
        inside = inside and not (word.endswith("*") and len(word) > 1)
        words.append(word.strip("*") or word)
    found, places = placed(text, words)
    return found, runs(chosen, places)


def _numbered(where: str, row: Mapping[str, Any]) -> Row:
    named = zip(("premise", "hypothesis"), NUMBERED, strict=True)
    sides = [_chosen(where, row, side, column) for side, column in named]
    rest = {name: value for name, value in row.items() if name not in ("premise", "hypothesis", "label", *NUMBERED)}
    return _pair(where, str(row.get("label", "")), sides, rest)


def _chosen(where: str, row: Mapping[str, Any], side: str, column: str) -> tuple[str, list[list[int]]]:
    text, numbers = row.get(side), row.get(column)
    if not isinstance(text, str):
        raise ExegesisError(f"{where}: {side}: must be a text, got {shown(text)}.")
    count = len(text.split())
    if not isinstance(numbers, list) or not all(type(n) is int and 0 <= n < count for n in numbers):
        raise ExegesisError(f"{where}: {column}: must be numbers of words from 0 to {count - 1}, got {shown(numbers)}.")
    return text, runs(numbers, placed(text, text.split())[1])


def _pair(where: str, label: str, sides: Sequence[tuple[str, list[list[int]]]], rest: Mapping[str, Any]) -> Row:
    (text, rationale), (pair, rationale_pair) = sides
    known = {"text": text, "text_pair": pair, "rationale": rationale, "rationale_pair": rationale_pair}
    return where, {**known, "label": label, **rest}
