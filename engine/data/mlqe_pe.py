"""MLQE-PE: machine translations with scores and word tags, as released (unpacked) or as one JSONL file per split.

The label is a score of the sentence; the rationales are the words tagged BAD in source and translation.
Source: Fomicheva et al. 2022, arXiv:2010.04480.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from engine.data.registry import SPLIT_ALIASES
from engine.data.released import ReleasedDataset, Spans, SplitContent, SplitReader, locate_words
from engine.data.tables import TableRow, read_first_line, read_jsonl, read_text, read_tsv
from engine.errors import ExegesisError, excerpt, unknown
from engine.params import option

TAG_COLUMNS = ("src_tok", "mt_tok", "src_tags", "mt_tags")
SCORES = ("z_mean", "mean", "hter")
RELEASE_PARTS = ("src", "mt", "source_tags", "tags", "hter")
"""Suffixes of the files of one split, with one sentence per line."""
JSONL_NAME = re.compile(r"([a-z]{2}-[a-z]{2})\.(\w+)")
FOLDER_NAME = re.compile(r"([a-z]{2}-[a-z]{2})-(\w+)")
BAD = {"1": True, "BAD": True, "0": False, "OK": False}
RowReader = Callable[[Path], list[TableRow]]


@dataclass(frozen=True)
class MlqeParams:
    """The options of MLQE-PE."""

    pair: str = option("en-de", "languages, such as en-de: from English to German; en-de+ro-en: both")
    score: str = option(
        "z_mean", "z_mean: direct assessment, standardized; mean: 0 to 100; hter: share of edits", choices=SCORES
    )


def find_mlqe(path: Path, pair: str | None = None, score: str = SCORES[0]) -> ReleasedDataset | None:
    """Recognize a file of one language pair and split, or a folder of such files.

    The splits of several language pairs are named `pair/split`. `pair`: one language pair, or several joined by `+`,
    whose common splits are concatenated.
    """
    readers = _find_readers(path, score)
    pairs = sorted({languages for languages, _ in readers})
    if pair is not None and readers:
        chosen = list(dict.fromkeys(pair.split("+")))
        for languages in chosen:
            if languages not in pairs:
                raise unknown("mlqe-pe.pair", languages, pairs)
        shared = [
            split
            for languages, split in readers
            if languages == chosen[0] and all((other, split) in readers for other in chosen)
        ]
        return ReleasedDataset(
            {split: partial(_concatenate, [readers[languages, split] for languages in chosen]) for split in shared}
        )
    splits = {
        f"{languages}/{split}" if len(pairs) > 1 else split: reader for (languages, split), reader in readers.items()
    }
    return ReleasedDataset(splits) if splits else None


def _concatenate(readers: Sequence[SplitReader], limit: int | None) -> SplitContent:
    contents = [reader(limit) for reader in readers]
    rows = [row for content in contents for row in content.rows]
    return SplitContent(rows[:limit], [file for content in contents for file in content.files])


def _find_readers(path: Path, score: str) -> dict[tuple[str, str], SplitReader]:
    """Find the readers by language pair and split."""
    if path.is_file():
        return {("", "all"): partial(_read_split, path, read_jsonl, score)} if _is_tagged(path) else {}
    if not path.is_dir():
        return {}
    # The whole release, its folder `data`, or the folder of one pair and split.
    edited = [base / "post-editing" for base in (path, path / "data") if (base / "post-editing").is_dir()]
    tags = sorted(edited[0].glob("*/*/*.source_tags") if edited else path.glob("*.source_tags"))
    tables = [file for file in sorted(path.glob("*.jsonl")) if _is_tagged(file)]
    named: list[tuple[re.Match[str] | None, Path, RowReader]] = [
        *((JSONL_NAME.fullmatch(file.stem), file, read_jsonl) for file in tables),
        *((FOLDER_NAME.fullmatch(file.parent.name), file, _read_release) for file in tags),
    ]
    return {
        (match[1], SPLIT_ALIASES.get(match[2], match[2])): partial(_read_split, file, read_rows, score)
        for match, file, read_rows in named
        if match
    }


def _is_tagged(file: Path) -> bool:
    head = read_first_line(file) if file.suffix == ".jsonl" else ""
    return all(f'"{name}"' in head for name in TAG_COLUMNS)


def _read_split(file: Path, read_rows: RowReader, score: str, limit: int | None) -> SplitContent:
    rows = [_make_row(*row, score) for row in read_rows(file)[:limit]]
    if file.suffix == ".jsonl":
        return SplitContent(rows, [file])
    table = _assessment_table(file)
    return SplitContent(rows, [*sorted(file.parent.glob(f"{file.stem}.*")), *([table] if table else [])])


def _read_release(tags: Path) -> list[TableRow]:
    """Read the files of one split and the scores of the direct assessments."""
    lines = {part: _read_lines(tags.with_suffix(f".{part}")) for part in RELEASE_PARTS}
    count = len(lines["src"])
    short = next((part for part, texts in lines.items() if texts and len(texts) != count), None)
    if short or not lines["mt"] or not lines["tags"]:
        named = short or ("mt" if not lines["mt"] else "tags")
        raise ExegesisError(f"{tags.stem}.{named}: must have {count} lines, like {tags.stem}.src. Unpack it again.")
    scores = _read_assessments(tags, count)
    sentences = zip(*(lines[part] or [""] * count for part in RELEASE_PARTS), strict=True)
    return [
        (f"{tags.parent.name}/{tags.stem}, line {i + 1}", _release_values(sentence, scores[i]))
        for i, sentence in enumerate(sentences)
    ]


def _release_values(lines: Sequence[str], scores: Mapping[str, Any]) -> dict[str, Any]:
    source, translation, source_tags, translation_tags, hter = lines
    tags = translation_tags.split()
    if len(tags) == 2 * len(translation.split()) + 1:
        tags = tags[1::2]  # tags of gaps and words alternate: keep those of words
    values = {"src_tok": source, "mt_tok": translation, "src_tags": source_tags.split(), "mt_tags": tags}
    return {**values, "hter": hter or None, **scores}


def _read_lines(path: Path) -> list[str]:
    return read_text(path).removesuffix("\n").split("\n") if path.is_file() else []


def _read_assessments(tags: Path, count: int) -> list[dict[str, Any]]:
    """Read raw texts and scores of the same sentences; empty if there is no table."""
    file = _assessment_table(tags)
    if file is None:
        return [{} for _ in range(count)]
    rows = [row for _, row in read_tsv(file)]
    if len(rows) != count:
        raise ExegesisError(f"{file.name}: has {len(rows)} rows, but {tags.stem}.src has {count} lines.")
    return [{"source": r["original"], "mt": r["translation"], "mean": r["mean"], "z_mean": r["z_mean"]} for r in rows]


def _assessment_table(tags: Path) -> Path | None:
    """Find the table of direct assessments, such as train.ende.df.short.tsv."""
    pair, split = tags.parent.name[:5].replace("-", ""), tags.parent.parent
    folder = split.parent.parent / "direct-assessments" / split.name
    return next(iter(sorted(folder.glob(f"*/*.{pair}.df.short.tsv"))), None)


def _make_row(where: str, row: Mapping[str, Any], score: str) -> TableRow:
    text, rationale = _parse_side(where, row, "source", "src")
    pair, rationale_pair = _parse_side(where, row, "mt", "mt")
    sides = {"text": text, "text_pair": pair, "rationale": rationale, "rationale_pair": rationale_pair}
    scores = {name: _parse_score(where, name, row.get(name)) for name in SCORES}
    return where, {**sides, "label": scores[score], **scores}


def _parse_side(where: str, row: Mapping[str, Any], raw: str, short: str) -> tuple[str, Spans]:
    """Return the text and the span of each bad word."""
    words, tags = str(row.get(f"{short}_tok", "")).split(), list(row.get(f"{short}_tags") or [])
    if len(words) != len(tags) or not set(tags) <= set(BAD):
        allowed = f"0 (OK) or 1 (BAD) for each of {len(words)} words"
        raise ExegesisError(f"{where}: {short}_tags: must be {allowed}, got {excerpt(tags)}.")
    text, places = locate_words(str(row.get(raw) or " ".join(words)), words)
    return text, [list(place) for place, tag in zip(places, tags, strict=True) if BAD[tag]]


def _parse_score(where: str, name: str, value: object) -> float | None:
    try:
        return None if value is None else float(str(value))
    except ValueError:
        raise ExegesisError(f"{where}: {name}: must be a number, got {excerpt(value)}.") from None
