"""Data sets in the layout of ERASER: annotations by split as JSONL beside their documents, in a folder or in one JSONL.

An annotation names tokens of its documents as evidence; tokens are what white space separates.
Source: DeYoung et al. 2020, doi:10.18653/v1/2020.acl-main.408.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from engine.data.files import read_text
from engine.data.hub import ALIASES
from engine.data.jsonl import Row, read_jsonl
from engine.data.labels import NLI_LABELS
from engine.data.native.found import Found, Read, Reading, runs, word_places
from engine.data.sst2 import LABELS
from engine.errors import ExegesisError, shown

SPLITS = ("train", "val", "test")
NAMED = {"NEG": "negative", "POS": "positive"}
KNOWN = (LABELS, NLI_LABELS)
"""Classes whose order is settled."""
SIDES = ("_premise", "_hypothesis")
"""How the documents of a pair are called after their annotation."""


def find_eraser(path: Path) -> Found | None:
    """A folder with documents and annotations of at least one split."""
    if not (path / "docs").is_dir() and not (path / "docs.jsonl").is_file():
        return None
    files = {ALIASES.get(name, name): path / f"{name}.jsonl" for name in SPLITS if (path / f"{name}.jsonl").is_file()}
    return Found({split: _reader(file) for split, file in files.items()}) if files else None


def _classes(annotations: Sequence[Row]) -> tuple[str, ...]:
    """The classes in their settled order, else sorted."""
    names = {_class(where, row) for where, row in annotations}
    return next((known for known in KNOWN if names <= set(known)), tuple(sorted(names)))


def _class(where: str, row: Mapping[str, Any]) -> str:
    label = row.get("classification")
    if not isinstance(label, str):
        raise ExegesisError(f"{where}: classification: must be the name of a class, got {shown(label)}.")
    return NAMED.get(label, label)


def _reader(file: Path) -> Read:
    def read(limit: int | None) -> Reading:
        annotations = read_jsonl(file)
        asked = Counter(str(row.get("query") or "") for _, row in annotations)
        documents = _Documents(file.parent)
        # A query that all rows share is the task, not a text.
        rows = [_row(where, row, documents, len(asked) > 1) for where, row in annotations[:limit]]
        return Reading(rows, [file, *documents.files], _classes(annotations))

    return read


class _Documents:
    """The texts by their ids, each read when it is first asked for."""

    def __init__(self, folder: Path) -> None:
        self._folder, one = folder / "docs", folder / "docs.jsonl"
        self.files: list[Path] = [one] if one.is_file() else []
        self._texts: dict[str, str] = {}
        for where, row in read_jsonl(one) if self.files else []:
            if not isinstance(row.get("docid"), str) or not isinstance(row.get("document"), str):
                raise ExegesisError(f"{where}: must have the texts docid and document, got {shown(sorted(row))}.")
            self._texts[row["docid"]] = row["document"]

    def __contains__(self, name: str) -> bool:
        return name in self._texts or self._file(name).is_file()

    def text(self, where: str, name: str) -> str:
        if name not in self._texts:
            file = self._file(name)
            if not file.resolve().is_relative_to(self._folder.resolve()) or not file.is_file():
                raise ExegesisError(f"{where}: there is no document {shown(name)} in docs. Put it there.")
            self._texts[name] = read_text(file)
            self.files.append(file)
        return self._texts[name]

    def _file(self, name: str) -> Path:
        return self._folder / name


def _row(where: str, row: Mapping[str, Any], documents: _Documents, asks: bool) -> Row:
    names = _names(where, row, documents)
    texts = [documents.text(where, name) for name in names]
    marked = _evidence(where, row)
    spans = [_spans(where, text, marked.pop(name, [])) for name, text in zip(names, texts, strict=True)]
    if marked:
        raise ExegesisError(f"{where}: evidences: name the document {shown(min(marked))}, which is not its own.")
    query = row.get("query")
    values: dict[str, Any] = {"text": texts[0], "rationale": spans[0], "label": _class(where, row)}
    if len(names) == 2:
        values |= {"text_pair": texts[1], "rationale_pair": spans[1]}
    elif asks and isinstance(query, str) and query.strip():
        values["text_pair"] = query
    return where, values | {"annotation_id": row.get("annotation_id")}


def _names(where: str, row: Mapping[str, Any], documents: _Documents) -> list[str]:
    """One document, or premise and hypothesis."""
    own = row.get("annotation_id")
    if not isinstance(own, str):
        raise ExegesisError(f"{where}: annotation_id: must be a text, got {shown(own)}.")
    pair = [own + side for side in SIDES]
    if all(name in documents for name in pair):
        return pair
    listed = row.get("docids") or sorted({str(mark.get("docid")) for mark in _marks(where, row)}) or [own]
    if len(listed) > 2:
        raise ExegesisError(f"{where}: has {len(listed)} documents; Exegesis reads one text or a pair.")
    return sorted(map(str, listed), key=lambda name: name.endswith(SIDES[1]))


def _marks(where: str, row: Mapping[str, Any]) -> list[dict[str, Any]]:
    """All pieces of evidence, whichever group they stand in."""
    groups = row.get("evidences") or []
    try:
        marks = [mark for group in groups for mark in group]
    except TypeError:
        marks = [None]
    if not all(isinstance(mark, dict) for mark in marks):
        raise ExegesisError(f"{where}: evidences: must be a list of lists of objects, got {shown(groups)}.")
    return marks


def _evidence(where: str, row: Mapping[str, Any]) -> dict[str, list[tuple[int, int]]]:
    """Tokens from start to end (end not included) by document."""
    found: dict[str, list[tuple[int, int]]] = {}
    for mark in _marks(where, row):
        start, end = mark.get("start_token"), mark.get("end_token")
        if type(start) is not int or type(end) is not int or not 0 <= start < end:
            raise ExegesisError(f"{where}: evidences: start_token must lie before end_token, got {start} and {end}.")
        found.setdefault(str(mark.get("docid")), []).append((start, end))
    return found


def _spans(where: str, text: str, marked: Sequence[tuple[int, int]]) -> list[list[int]]:
    places = word_places(text, text.split()) or []
    last = max((end for _, end in marked), default=0)
    if last > len(places):
        raise ExegesisError(f"{where}: evidences: token {last} lies outside its document of {len(places):,} tokens.")
    return runs({i for start, end in marked for i in range(start, end)}, places)
