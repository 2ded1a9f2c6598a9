"""MLQE-PE: machine translations with scores and word tags, as released (unpacked) or as JSONL of one pair and split.

The label is a score of the sentence; the rationales are the words with the tag BAD, of source and translation.
Source: Fomicheva et al. 2022, arXiv:2010.04480.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from engine.data.files import first_line, read_text
from engine.data.hub import ALIASES
from engine.data.jsonl import Row, read_jsonl
from engine.data.native.found import Found, Read, Reading, placed
from engine.data.tables import read_tsv
from engine.errors import ExegesisError, shown, unknown
from engine.params import option

TAGGED = ("src_tok", "mt_tok", "src_tags", "mt_tags")
SCORES = ("z_mean", "mean", "hter")
JSONL = re.compile(r"([a-z]{2}-[a-z]{2})\.(\w+)")
FOLDER = re.compile(r"([a-z]{2}-[a-z]{2})-(\w+)")
BAD = {"1": True, "BAD": True, "0": False, "OK": False}
Rows = Callable[[Path], list[Row]]


@dataclass(frozen=True)
class MlqeParams:
    """What one asks of MLQE-PE."""

    pair: str = option("en-de", "languages, such as en-de: from English to German; en-de+ro-en: both")
    score: str = option(
        "z_mean", "z_mean: direct assessment, standardized; mean: 0 to 100; hter: share of edits", choices=SCORES
    )


def find_mlqe(path: Path, pair: str | None = None, score: str = SCORES[0]) -> Found | None:
    """A file of one pair and split, or a folder that holds some; of several pairs splits are named pair/split.

    `pair`: one alone, or some joined by `+`, whose splits then hold one after the other.
    """
    files = dict(_files(path))
    pairs = sorted({of for of, _ in files})
    if pair is not None and files:
        pairs = _known(pair.split("+"), pairs)
        if len(pairs) > 1:
            return Found(_joined(files, pairs, score))
    several = len(pairs) > 1
    splits = {
        f"{of}/{split}" if several else split: _reader(file, read, score)
        for (of, split), (file, read) in files.items()
        if of in pairs
    }
    return Found(splits) if splits else None


def _known(wanted: Sequence[str], pairs: Sequence[str]) -> list[str]:
    for pair in wanted:
        if pair not in pairs:
            raise unknown("mlqe-pe.pair", pair, pairs)
    return list(dict.fromkeys(wanted))


def _joined(files: Mapping[tuple[str, str], tuple[Path, Rows]], pairs: Sequence[str], score: str) -> dict[str, Read]:
    """The splits that all of these pairs have."""
    splits = [split for pair, split in files if pair == pairs[0] and all((other, split) in files for other in pairs)]
    return {split: _one_by_one([_reader(*files[pair, split], score) for pair in pairs]) for split in splits}


def _one_by_one(readers: Sequence[Read]) -> Read:
    def read(limit: int | None) -> Reading:
        found = [reader(limit) for reader in readers]
        rows = [row for one in found for row in one.rows]
        return Reading(rows[:limit], [file for one in found for file in one.files])

    return read


def _files(path: Path) -> Iterable[tuple[tuple[str, str], tuple[Path, Rows]]]:
    """By pair and split: a file, and how its rows are read."""
    if path.is_file():
        return [(("", "all"), (path, read_jsonl))] if _is_tagged(path) else []
    if not path.is_dir():
        return []
    tables = [file for file in sorted(path.glob("*.jsonl")) if _is_tagged(file)]
    found: list[tuple[re.Match[str] | None, Path, Rows]] = [
        *((JSONL.fullmatch(file.stem), file, read_jsonl) for file in tables),
        *((FOLDER.fullmatch(file.parent.name), file, _released) for file in _tag_files(path)),
    ]
    return [((m[1], ALIASES.get(m[2], m[2])), (file, read)) for m, file, read in found if m]


def _tag_files(path: Path) -> list[Path]:
    """Of the whole release, of its folder `data`, or of the folder of one pair and split."""
    whole = [base / "post-editing" for base in (path, path / "data") if (base / "post-editing").is_dir()]
    return sorted(whole[0].glob("*/*/*.source_tags") if whole else path.glob("*.source_tags"))


def _is_tagged(file: Path) -> bool:
    head = first_line(file) if file.suffix == ".jsonl" else ""
    return all(f'"{name}"' in head for name in TAGGED)


def _reader(file: Path, read_rows: Rows, score: str) -> Read:
    def read(limit: int | None) -> Reading:
        return Reading([_row(*row, score) for row in read_rows(file)[:limit]], _parts(file))

    return read


def _parts(file: Path) -> list[Path]:
    """The file, of a release with the others of its split."""
    if file.suffix == ".jsonl":
        return [file]
    assessed = _assessed(file)
    return [*sorted(file.parent.glob(f"{file.stem}.*")), *([assessed] if assessed else [])]


def _released(tags: Path) -> list[Row]:
    """The files of one split beside each other, one line a sentence, and the scores of the direct assessments."""
    lines = {name: _lines(tags.with_suffix(f".{name}")) for name in ("src", "mt", "source_tags", "tags", "hter")}
    count = len(lines["src"])
    short = next((name for name, found in lines.items() if found and len(found) != count), None)
    if short or not lines["mt"] or not lines["tags"]:
        named = short or ("mt" if not lines["mt"] else "tags")
        raise ExegesisError(f"{tags.stem}.{named}: must have {count} lines as {tags.stem}.src. Unpack it again.")
    scores = _assessments(tags, count)
    rows = zip(*(lines[name] or [""] * count for name in ("src", "mt", "source_tags", "tags", "hter")), strict=True)
    return [(f"{tags.parent.name}/{tags.stem}, line {i + 1}", _values(row, scores[i])) for i, row in enumerate(rows)]


def _values(lines: Sequence[str], scores: Mapping[str, Any]) -> dict[str, Any]:
    src, mt, of_source, of_mt, hter = lines
    tags = {"src_tags": of_source.split(), "mt_tags": _without_gaps(of_mt.split(), mt)}
    return {"src_tok": src, "mt_tok": mt, **tags, "hter": hter or None, **scores}


def _lines(path: Path) -> list[str]:
    return read_text(path).removesuffix("\n").split("\n") if path.is_file() else []


def _without_gaps(tags: list[str], mt: str) -> list[str]:
    """Of tags for gaps and words in turn only those for words."""
    return tags[1::2] if len(tags) == 2 * len(mt.split()) + 1 else tags


def _assessments(tags: Path, count: int) -> list[dict[str, Any]]:
    """Raw texts and scores of the same sentences; nothing where they are not there."""
    file = _assessed(tags)
    if file is None:
        return [{} for _ in range(count)]
    rows = [row for _, row in read_tsv(file)]
    if len(rows) != count:
        raise ExegesisError(f"{file.name}: has {len(rows)} rows, but {tags.stem}.src has {count} lines.")
    return [{"source": r["original"], "mt": r["translation"], "mean": r["mean"], "z_mean": r["z_mean"]} for r in rows]


def _assessed(tags: Path) -> Path | None:
    """The table of direct assessments of the pair and split, such as train.ende.df.short.tsv."""
    pair, split = tags.parent.name[:5].replace("-", ""), tags.parent.parent
    folder = split.parent.parent / "direct-assessments" / split.name
    return next(iter(sorted(folder.glob(f"*/*.{pair}.df.short.tsv"))), None)


def _row(where: str, row: Mapping[str, Any], score: str) -> Row:
    text, rationale = _side(where, row, "source", "src")
    pair, rationale_pair = _side(where, row, "mt", "mt")
    known = {"text": text, "text_pair": pair, "rationale": rationale, "rationale_pair": rationale_pair}
    rest = {name: _number(where, name, row.get(name)) for name in SCORES}
    return where, {**known, "label": rest[score], **rest}


def _side(where: str, row: Mapping[str, Any], raw: str, short: str) -> tuple[str, list[list[int]]]:
    words, tags = str(row.get(f"{short}_tok", "")).split(), list(row.get(f"{short}_tags") or [])
    if len(words) != len(tags) or not set(tags) <= set(BAD):
        allowed = f"0 (OK) or 1 (BAD) for each of {len(words)} words"
        raise ExegesisError(f"{where}: {short}_tags: must be {allowed}, got {shown(tags)}.")
    text, places = placed(str(row.get(raw) or " ".join(words)), words)
    return text, _bad(places, [BAD[tag] for tag in tags])


def _bad(places: Sequence[tuple[int, int]], bad: Sequence[bool]) -> list[list[int]]:
    """A span for each word: tags are of words."""
    return [list(place) for place, is_bad in zip(places, bad, strict=True) if is_bad]


def _number(where: str, name: str, value: object) -> float | None:
    try:
        return None if value is None else float(str(value))
    except ValueError:
        raise ExegesisError(f"{where}: {name}: must be a number, got {shown(value)}.") from None
