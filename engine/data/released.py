"""Published data sets in their released formats, which are recognized by their files."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from engine.data.examples import Span, interleave
from engine.data.generation import split_of
from engine.data.labels import NLI_LABELS, SENTIMENT_LABELS
from engine.data.registry import SPLIT_ALIASES
from engine.data.tables import TableRow, read_first_line, read_jsonl, read_table, read_text, read_tsv
from engine.errors import ExegesisError, excerpt
from engine.params import option

Spans = list[list[int]]
"""[start, end) in characters, as in JSON."""

IMDB_FOLDERS = ("neg", "pos")
IMDB_FILE_NAME = re.compile(r"(\d+)_(\d+)")
"""The number of the review and its stars, 1 to 10."""

ERASER_SPLITS = ("train", "val", "test")
ERASER_CLASSES = {"NEG": "negative", "POS": "positive"}
ORDERED_CLASSES = (SENTIMENT_LABELS, NLI_LABELS)
ERASER_SIDES = ("_premise", "_hypothesis")
"""Suffixes of the ids of a pair's documents, after the id of the annotation."""

ESNLI_STARRED = ("Sentence1_marked_1", "Sentence2_marked_1")
ESNLI_NUMBERED = ("premise_highlight_token_indices", "hypothesis_highlight_token_indices")
ESNLI_SPLITS = {"train": "train", "dev": "validation", "val": "validation", "test": "test"}

MULTINLI_COLUMNS = ("sentence1", "sentence2", "gold_label")
MULTINLI_READERS = {".jsonl": read_jsonl, ".txt": read_tsv, ".tsv": read_tsv}
MULTINLI_FILE_NAME = re.compile(r"(?:(?:multinli|snli)_[\d.]+_)?(train|dev|test)(_matched|_mismatched)?")
MISMATCHED = "_mismatched"
"""Suffix of the splits from sources other than those of the training pairs."""
MULTINLI_ALIASES = {
    f"{split}{kind}": f"{'validation' if split == 'dev' else split}{MISMATCHED if kind == MISMATCHED else ''}"
    for split in ("dev", "validation", "test")
    for kind in ("_matched", MISMATCHED)
}
NO_MAJORITY = ("-", "hidden", "")

SNLI_SICK_FILES = {
    "validation": ("snli_dev.tsv",),
    "test": ("sick_trial.tsv",),
    "train": ("snli_test.tsv", "sick_train.tsv"),
}
SNLI_SICK_COLUMNS = {"premise": "text", "hypothesis": "text_pair", "label": "label"}

SENTENCE_FILES = {"amazon": "amazon_cells", "imdb": "imdb", "yelp": "yelp"}
"""File stems of Sentiment Labelled Sentences, by domain."""
SENTENCE_SUFFIXES = (".tsv", "_labelled.txt")
"""Suffixes of these files; the second is that of UCI's release."""
SENTENCE_COLUMNS = ("text", "label")


@dataclass(frozen=True)
class SplitContent:
    """The rows of a split, with the columns of the JSONL contract, and the files that they were read from.

    `labels`: the names of all classes in order; None if the label is a score.
    """

    rows: Sequence[TableRow]
    files: Sequence[Path]
    labels: tuple[str, ...] | None = None


SplitReader = Callable[[int | None], SplitContent]
"""Function that reads at most the given number of rows, or all."""


@dataclass(frozen=True)
class ReleasedDataset:
    """The splits of a folder or file in a released format. `aliases`: other names of its splits."""

    splits: Mapping[str, SplitReader]
    aliases: Mapping[str, str] = field(default_factory=dict)


def find_words(text: str, words: Sequence[str]) -> list[Span] | None:
    """Find the spans of consecutive words, separated by white space only; None if they do not cover the text."""
    places, at = list[Span](), 0
    for word in words:
        start = text.find(word, at)
        if start < 0 or text[at:start].strip():
            return None
        at = start + len(word)
        places.append((start, at))
    return None if text[at:].strip() else places


def locate_words(text: str, words: Sequence[str]) -> tuple[str, list[Span]]:
    """Return the text and the spans of its words. If the words do not match the text, they are joined by spaces."""
    places = find_words(text, words)
    if places is not None:
        return text, places
    joined = " ".join(words)
    return joined, find_words(joined, words) or []


def join_runs(indices: Iterable[int], places: Sequence[Span]) -> Spans:
    """Return the spans of the words with these indices; adjacent words are joined into one span."""
    spans: Spans = []
    last = -2
    for index in sorted(set(indices)):
        start, end = places[index]
        if index == last + 1:
            spans[-1][1] = end
        else:
            spans.append([start, end])
        last = index
    return spans


def find_imdb(path: Path) -> ReleasedDataset | None:
    """Recognize IMDB reviews (aclImdb): a folder with `neg` and `pos`, or whose `train` or `test` has them.

    Each review is a text file.
    """
    if not path.is_dir():
        return None
    folders = {"all": path} if _has_imdb_classes(path) else {name: path / name for name in ("test", "train")}
    splits = {name: partial(_read_imdb, folder) for name, folder in folders.items() if _has_imdb_classes(folder)}
    return ReleasedDataset(splits) if splits else None


def _has_imdb_classes(folder: Path) -> bool:
    return all((folder / name).is_dir() and any((folder / name).glob("*.txt")) for name in IMDB_FOLDERS)


def _read_imdb(folder: Path, limit: int | None) -> SplitContent:
    files = interleave(sorted((folder / name).glob("*.txt"), key=_imdb_order) for name in IMDB_FOLDERS)[:limit]
    return SplitContent([_imdb_row(file) for file in files], files, SENTIMENT_LABELS)


def _imdb_order(file: Path) -> tuple[int, str]:
    match = IMDB_FILE_NAME.fullmatch(file.stem)
    return (int(match[1]) if match else -1, file.name)


def _imdb_row(file: Path) -> TableRow:
    match = IMDB_FILE_NAME.fullmatch(file.stem)
    place = f"{file.parent.parent.name}/{file.parent.name}/{file.name}"
    row = {"text": read_text(file), "label": IMDB_FOLDERS.index(file.parent.name), "file": place}
    return place, row | ({"stars": int(match[2])} if match else {})


@dataclass(frozen=True)
class EraserParams:
    """The options of long documents."""

    words: int = option(0, "words of a passage around the first highlighted ones; 0: whole documents", low=0)


def find_eraser(path: Path, words: int = 0) -> ReleasedDataset | None:
    """Recognize the layout of ERASER: a folder with documents and the JSONL annotations of at least one split.

    The documents are files in `docs`, or one JSONL file. An annotation marks tokens of its documents as evidence;
    tokens are separated by white space. `words`: see `EraserParams`.
    Source: DeYoung et al. 2020, doi:10.18653/v1/2020.acl-main.408.
    """
    if not (path / "docs").is_dir() and not (path / "docs.jsonl").is_file():
        return None
    files = {SPLIT_ALIASES.get(name, name): path / f"{name}.jsonl" for name in ERASER_SPLITS}
    splits = {split: partial(_read_eraser, file, words) for split, file in files.items() if file.is_file()}
    return ReleasedDataset(splits) if splits else None


def cut_passage(text: str, spans: Spans, count: int) -> tuple[str, Spans]:
    """Cut a passage of `count` words around the first span, and return it with the spans inside it.

    The span is centered as far as the text allows. A span of more than `count` words is cut to its first `count`.
    """
    words = [match.span() for match in re.finditer(r"\S+", text)]
    first = min(spans, default=[0, 0])
    marked = [place for place, (start, end) in enumerate(words) if start < first[1] and end > first[0]] or [0]
    start = marked[0] - max(0, count - len(marked)) // 2
    chosen = words[max(0, min(start, len(words) - count)) :][:count]
    low, high = (chosen[0][0], chosen[-1][1]) if chosen else (0, 0)
    inside = [[max(start, low) - low, min(end, high) - low] for start, end in spans if start < high and end > low]
    return text[low:high], inside


def _read_eraser(file: Path, words: int, limit: int | None) -> SplitContent:
    annotations = read_jsonl(file)
    documents = _EraserDocuments(file.parent)
    # A query shared by all rows describes the task and is not part of the input.
    has_queries = len({str(row.get("query") or "") for _, row in annotations}) > 1
    rows = [_eraser_row(where, row, documents, has_queries) for where, row in annotations[:limit]]
    for _, values in rows if words else ():
        values["text"], values["rationale"] = cut_passage(values["text"], values["rationale"], words)
    names = {_eraser_class(where, row) for where, row in annotations}
    classes = next((ordered for ordered in ORDERED_CLASSES if names <= set(ordered)), tuple(sorted(names)))
    return SplitContent(rows, [file, *documents.files], classes)


def _eraser_class(where: str, row: Mapping[str, Any]) -> str:
    label = row.get("classification")
    if not isinstance(label, str):
        raise ExegesisError(f"{where}: classification: must be the name of a class, got {excerpt(label)}.")
    return ERASER_CLASSES.get(label, label)


class _EraserDocuments:
    """Texts by id, each read when first needed. `files`: the files read so far."""

    def __init__(self, folder: Path) -> None:
        self._folder, table = folder / "docs", folder / "docs.jsonl"
        self.files: list[Path] = [table] if table.is_file() else []
        self._texts: dict[str, str] = {}
        for where, row in read_jsonl(table) if self.files else []:
            if not isinstance(row.get("docid"), str) or not isinstance(row.get("document"), str):
                raise ExegesisError(f"{where}: must have the texts docid and document, got {excerpt(sorted(row))}.")
            self._texts[row["docid"]] = row["document"]

    def __contains__(self, name: str) -> bool:
        return name in self._texts or (self._folder / name).is_file()

    def text(self, where: str, name: str) -> str:
        if name not in self._texts:
            file = self._folder / name
            if not file.resolve().is_relative_to(self._folder.resolve()) or not file.is_file():
                raise ExegesisError(f"{where}: there is no document {excerpt(name)} in docs. Put it there.")
            self._texts[name] = read_text(file)
            self.files.append(file)
        return self._texts[name]


def _eraser_row(where: str, row: Mapping[str, Any], documents: _EraserDocuments, has_queries: bool) -> TableRow:
    names = _eraser_documents(where, row, documents)
    texts = [documents.text(where, name) for name in names]
    evidence = _eraser_evidence(where, row)
    spans = [_eraser_spans(where, text, evidence.pop(name, [])) for name, text in zip(names, texts, strict=True)]
    if evidence:
        raise ExegesisError(f"{where}: evidences: name the document {excerpt(min(evidence))}, which is not its own.")
    query = row.get("query")
    values: dict[str, Any] = {"text": texts[0], "rationale": spans[0], "label": _eraser_class(where, row)}
    if len(names) == 2:
        values |= {"text_pair": texts[1], "rationale_pair": spans[1]}
    elif has_queries and isinstance(query, str) and query.strip():
        values["text_pair"] = query
    return where, values | {"annotation_id": row.get("annotation_id")}


def _eraser_documents(where: str, row: Mapping[str, Any], documents: _EraserDocuments) -> list[str]:
    """Return the id of the document, or the ids of premise and hypothesis."""
    own = row.get("annotation_id")
    if not isinstance(own, str):
        raise ExegesisError(f"{where}: annotation_id: must be a text, got {excerpt(own)}.")
    pair = [own + side for side in ERASER_SIDES]
    if all(name in documents for name in pair):
        return pair
    listed = row.get("docids") or sorted({str(mark.get("docid")) for mark in _eraser_marks(where, row)}) or [own]
    if len(listed) > 2:
        raise ExegesisError(f"{where}: has {len(listed)} documents; Exegesis reads one text or a pair.")
    return sorted(map(str, listed), key=lambda name: name.endswith(ERASER_SIDES[1]))


def _eraser_marks(where: str, row: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the evidence of all groups."""
    groups = row.get("evidences") or []
    try:
        marks = [mark for group in groups for mark in group]
    except TypeError:
        marks = [None]
    if not all(isinstance(mark, dict) for mark in marks):
        raise ExegesisError(f"{where}: evidences: must be a list of lists of objects, got {excerpt(groups)}.")
    return marks


def _eraser_evidence(where: str, row: Mapping[str, Any]) -> dict[str, list[tuple[int, int]]]:
    """Collect the token ranges (end exclusive) by document."""
    evidence: dict[str, list[tuple[int, int]]] = {}
    for mark in _eraser_marks(where, row):
        start, end = mark.get("start_token"), mark.get("end_token")
        if type(start) is not int or type(end) is not int or not 0 <= start < end:
            raise ExegesisError(f"{where}: evidences: start_token must lie before end_token, got {start} and {end}.")
        evidence.setdefault(str(mark.get("docid")), []).append((start, end))
    return evidence


def _eraser_spans(where: str, text: str, evidence: Sequence[tuple[int, int]]) -> Spans:
    places = find_words(text, text.split()) or []
    last = max((end for _, end in evidence), default=0)
    if last > len(places):
        raise ExegesisError(f"{where}: evidences: token {last} lies outside its document of {len(places):,} tokens.")
    return join_runs({i for start, end in evidence for i in range(start, end)}, places)


def find_esnli(path: Path) -> ReleasedDataset | None:
    """Recognize e-SNLI: CSV with highlighted words between asterisks, as released, or JSONL with word indices.

    A file, or a folder with one or more files per split. The first annotator's highlights are the rationale; those of
    the others are extra columns. Source: Camburu et al. 2018, arXiv:1812.01193.
    """
    if path.is_file():
        return ReleasedDataset({"all": partial(_read_esnli, [path])}) if _is_esnli(path) else None
    splits: dict[str, list[Path]] = {}
    for file in sorted(path.glob("*.*")) if path.is_dir() else []:
        if _is_esnli(file):
            # The split is a word of the file's name: esnli_train_1.csv, dev.jsonl.
            words = file.stem.lower().split("_")
            split = next((ESNLI_SPLITS[word] for word in words if word in ESNLI_SPLITS), "all")
            splits.setdefault(split, []).append(file)
    return ReleasedDataset({split: partial(_read_esnli, files) for split, files in splits.items()}) if splits else None


def _is_esnli(file: Path) -> bool:
    columns = {".csv": ESNLI_STARRED, ".jsonl": ESNLI_NUMBERED}.get(file.suffix.lower())
    return columns is not None and _has_columns(file, columns)


def _has_columns(file: Path, columns: Iterable[str]) -> bool:
    head = read_first_line(file)
    return all(column in head for column in columns)


def _read_esnli(files: Sequence[Path], limit: int | None) -> SplitContent:
    rows = [row for file in files for row in read_table(file)][:limit]
    return SplitContent([_esnli_row(*row) for row in rows], files, NLI_LABELS)


def _esnli_row(where: str, row: Mapping[str, Any]) -> TableRow:
    starred = ESNLI_STARRED[0] in row
    texts, label = (("Sentence1", "Sentence2"), "gold_label") if starred else (("premise", "hypothesis"), "label")
    marks, parse = (ESNLI_STARRED, _parse_starred) if starred else (ESNLI_NUMBERED, _parse_numbers)
    sides = [parse(where, row, text, mark) for text, mark in zip(texts, marks, strict=True)]
    (text, rationale), (pair, rationale_pair) = sides
    values = {"text": text, "text_pair": pair, "rationale": rationale, "rationale_pair": rationale_pair}
    extra = {name: value for name, value in row.items() if name not in (*texts, label, *marks)}
    return where, {**values, "label": str(row.get(label, "")), **extra}


def _parse_starred(where: str, row: Mapping[str, Any], side: str, column: str) -> tuple[str, Spans]:
    return parse_stars(str(row.get(side, "")), str(row.get(column, "")))


def parse_stars(text: str, starred: str) -> tuple[str, Spans]:
    """Return the text and the spans of the words between asterisks in `starred`, with adjacent punctuation."""
    words, chosen, inside = list[str](), list[int](), False
    for word in starred.split():
        opens = word.startswith("*") and len(word) > 1
        inside = inside or opens
        if inside:
            chosen.append(len(words))
        inside = inside and not (word.endswith("*") and len(word) > 1)
        words.append(word.strip("*") or word)
    located, places = locate_words(text, words)
    return located, join_runs(chosen, places)


def _parse_numbers(where: str, row: Mapping[str, Any], side: str, column: str) -> tuple[str, Spans]:
    text, numbers = row.get(side), row.get(column)
    if not isinstance(text, str):
        raise ExegesisError(f"{where}: {side}: must be a text, got {excerpt(text)}.")
    count = len(text.split())
    if not isinstance(numbers, list) or not all(type(n) is int and 0 <= n < count for n in numbers):
        raise ExegesisError(
            f"{where}: {column}: must be numbers of words from 0 to {count - 1}, got {excerpt(numbers)}."
        )
    return text, join_runs(numbers, locate_words(text, text.split())[1])


def find_multinli(path: Path) -> ReleasedDataset | None:
    """Recognize MultiNLI and SNLI: JSONL or tab-separated text with sentence1, sentence2 and gold_label.

    A file, or a folder with files named as released; JSONL is preferred. GLUE's tables of MNLI have the same columns.
    Pairs without a majority label ("-") are unlabeled.
    Source: Williams et al. 2018, doi:10.18653/v1/N18-1101; Bowman et al. 2015, doi:10.18653/v1/D15-1075.
    """
    if path.is_file():
        return ReleasedDataset({"all": partial(_read_multinli, path)}) if _is_multinli(path) else None
    files = [file for kind in MULTINLI_READERS for file in sorted(path.glob(f"*{kind}"))]
    splits = {}
    for file in reversed(files):
        match = MULTINLI_FILE_NAME.fullmatch(file.stem)
        if match and _is_multinli(file):
            split = "validation" if match[1] == "dev" else match[1]
            split = MULTINLI_ALIASES.get(f"{match[1]}{match[2] or ''}", split)
            splits[split] = partial(_read_multinli, file)
    return ReleasedDataset(splits, MULTINLI_ALIASES) if splits else None


def _is_multinli(file: Path) -> bool:
    return file.suffix.lower() in MULTINLI_READERS and _has_columns(file, MULTINLI_COLUMNS)


def _read_multinli(file: Path, limit: int | None) -> SplitContent:
    read_rows = MULTINLI_READERS[file.suffix.lower()]
    return SplitContent([_multinli_row(*row) for row in read_rows(file)[:limit]], [file], NLI_LABELS)


def _multinli_row(where: str, row: Mapping[str, Any]) -> TableRow:
    label = row.get("gold_label")
    extra = {name: value for name, value in row.items() if name not in MULTINLI_COLUMNS and not name.endswith("parse")}
    texts = {"text": row.get("sentence1"), "text_pair": row.get("sentence2")}
    return where, {**texts, "label": None if label in NO_MAJORITY else label, **extra}


def find_snli_sick(path: Path) -> ReleasedDataset | None:
    """Recognize SNLI and SICK as tab-separated tables with premise, hypothesis and label, joined for training.

    A folder with all files of at least the training split. Training uses SNLI's test split and SICK, evaluation uses
    SNLI's dev split; SNLI's own training pairs are not needed.
    Source: Bowman et al. 2015, doi:10.18653/v1/D15-1075; Marelli et al. 2014, aclanthology.org/L14-1314.
    """
    by_split = {split: [path / name for name in names] for split, names in SNLI_SICK_FILES.items()}
    splits = {
        split: partial(_read_snli_sick, files)
        for split, files in by_split.items()
        if all(file.is_file() for file in files)
    }
    return ReleasedDataset(splits) if "train" in splits else None


def _read_snli_sick(files: Sequence[Path], limit: int | None) -> SplitContent:
    rows = [_snli_sick_row(*row) for file in files for row in read_tsv(file)][:limit]
    return SplitContent(rows, files, NLI_LABELS)


def _snli_sick_row(where: str, row: dict[str, object]) -> TableRow:
    absent = next((name for name in SNLI_SICK_COLUMNS if name not in row), None)
    if absent:
        raise ExegesisError(f"{where}: has no column {absent!r}. Its columns: {', '.join(row)}.")
    return where, {SNLI_SICK_COLUMNS.get(name, name): value for name, value in row.items()}


def find_sentences(path: Path) -> ReleasedDataset | None:
    """Recognize Sentiment Labelled Sentences: a folder with a file of sentences and labels for each domain.

    It has no splits of its own. A fifth of the sentences, chosen by a checksum of the lowercased text, is for tests.
    Source: Kotzias et al. 2015, doi:10.1145/2783258.2783380.
    """
    for suffix in SENTENCE_SUFFIXES:
        files = {domain: path / f"{stem}{suffix}" for domain, stem in SENTENCE_FILES.items()}
        if all(file.is_file() for file in files.values()):
            return ReleasedDataset({split: partial(_read_sentences, files, split) for split in ("test", "train")})
    return None


def _read_sentences(files: Mapping[str, Path], split: str, limit: int | None) -> SplitContent:
    """Read the sentences of a split, taking one of each domain in turn."""
    groups = []
    for domain, file in files.items():
        rows = [_sentence_row(domain, *row) for row in read_tsv(file, columns=SENTENCE_COLUMNS)]
        groups.append([row for row in rows if (split_of(row[1]["text"].lower()) == "train") == (split == "train")])
    return SplitContent(interleave(groups)[:limit], list(files.values()), SENTIMENT_LABELS)


def _sentence_row(domain: str, where: str, row: Mapping[str, Any]) -> TableRow:
    return where, {"text": row["text"].strip(), "label": row["label"], "domain": domain}
