"""Files of maps from other tools: JSON, or `.npz` without pickles. Files are untrusted, so everything is checked.

JSON: `{"tool", "method", "model"?, "signed"?, "maps": [...]}`. A map names its input by `dataset`, `example` and
optionally `split`, or by `text` and `text_pair`. It has `scores`, and what they belong to: `offsets` ([start, end) in
characters, with the `segments` of a pair), `tokens`, or the `grid` of a picture. `target`: the explained class or
token. `contrast`: the token that it is compared with.

NumPy: arrays of the same names. `scores` of all maps are concatenated, with `lengths`, or have one row or grid per map.
"""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from engine.errors import ExegesisError, UsageError, excerpt
from engine.format import count_text

MOST_BYTES = 32_000_000
"""Maximum size of a file, and of the arrays in it."""
MOST_MAPS = 20_000
LARGEST = 1e30
"""Largest absolute score: sums and squares of larger ones overflow."""
MOST_CHARACTERS = 80
"""Maximum length of the names of tools and methods."""
FIELDS = {
    "dataset", "example", "split", "text", "text_pair", "tokens", "offsets", "segments", "grid", "scores", "target",
    "contrast",
}  # fmt: skip
HEAD = {"tool", "method", "model", "signed", "maps", "format"}
Span = tuple[int, int]


@dataclass(frozen=True)
class MapEntry:
    """A map of a file. `place`: its number in the file, from 1, for errors.

    The input is an example of a data set, or a text. `offsets`, `tokens`: what the scores belong to; if both are None,
    there is one score for each token of the model.
    """

    place: int
    scores: tuple[float, ...]
    dataset: str | None = None
    example: int | None = None
    split: str | None = None
    text: str | None = None
    text_pair: str | None = None
    offsets: tuple[Span, ...] | None = None
    segments: tuple[int, ...] | None = None
    tokens: tuple[str, ...] | None = None
    grid: Span | None = None
    target: str | int | None = None
    contrast: str | None = None

    @property
    def name(self) -> str:
        """Name of the map in errors."""
        where = f"example {self.example} of {self.dataset}" if self.dataset else f"text {excerpt(self.text, 40)}"
        return f"map {self.place} ({where})"


@dataclass(frozen=True)
class MapFile:
    """A file of maps. `model`: the model that was explained, or "" if the file names none."""

    tool: str
    method: str
    model: str
    signed: bool
    maps: tuple[MapEntry, ...]


def read_maps(content: bytes, name: str) -> MapFile:
    """Read a file of maps. `name`: its name, whose suffix is the format. Nothing in the file is executed or unpickled.

    Errors: name the first map and field that is wrong.
    """
    if len(content) > MOST_BYTES:
        raise UsageError(f"{excerpt(name)}: must have at most {MOST_BYTES // 10**6} MB. Split it into several files.")
    suffix = name.lower().rpartition(".")[2]
    if suffix == "npz":
        return parse_maps(_read_arrays(content, name))
    if suffix == "json":
        try:
            return parse_maps(json.loads(content.decode("utf-8-sig")))
        except (ValueError, RecursionError) as error:
            raise UsageError(f"{excerpt(name)}: cannot be read as JSON ({excerpt(str(error))}).") from None
    raise UsageError(f"file: must end in .json or .npz, got {excerpt(name)}. Save the maps as one of these.")


def parse_maps(plain: object) -> MapFile:
    """Parse maps from plain values. Errors: as in `read_maps`."""
    if not isinstance(plain, Mapping):
        raise UsageError(f"maps: must be a JSON object with tool, method and maps, got {type(plain).__name__}.")
    if unknown := sorted(map(str, plain.keys() - HEAD)):
        raise UsageError(f"maps: unknown fields {excerpt(', '.join(unknown))}. Known: {', '.join(sorted(HEAD))}.")
    signed, maps = plain.get("signed", True), plain.get("maps")
    if not isinstance(signed, bool):
        raise UsageError(f"signed: must be true or false, got {excerpt(signed)}.")
    if not isinstance(maps, list) or not 1 <= len(maps) <= MOST_MAPS:
        got = f"{len(maps):,}" if isinstance(maps, list) else type(maps).__name__
        raise UsageError(f"maps: must be a list of 1 to {MOST_MAPS:,} maps, got {got}.")
    entries = tuple(_parse_entry(place, entry) for place, entry in enumerate(maps, 1))
    model = plain.get("model", "")
    return MapFile(
        _name("tool", plain.get("tool")), _name("method", plain.get("method")), model if isinstance(model, str) else "",
        signed, entries,
    )  # fmt: skip


def _name(field: str, value: object) -> str:
    if not isinstance(value, str) or not value.strip() or len(value) > MOST_CHARACTERS or not value.isprintable():
        raise UsageError(f"{field}: must be a name of at most {MOST_CHARACTERS} characters, got {excerpt(value)}.")
    return value.strip()


def _parse_entry(place: int, entry: object) -> MapEntry:
    if not isinstance(entry, Mapping):
        raise _wrong(place, "it", "an object with an input and scores", entry)
    if strange := sorted(map(str, entry.keys() - FIELDS)):
        raise _wrong(place, "its fields", f"some of {', '.join(sorted(FIELDS))}", ", ".join(strange))
    given = {field: value for field, value in entry.items() if value is not None}
    for field in ("dataset", "split", "text", "text_pair", "contrast"):
        if field in given and not isinstance(given[field], str):
            raise _wrong(place, field, "a text", given[field])
    if ("dataset" in given) == ("text" in given) or ("dataset" in given) != ("example" in given):
        raise _wrong(place, "its input", "dataset with example, or text", sorted(given.keys() - {"scores", "tokens"}))
    if "example" in given and not _is_whole(given["example"]):
        raise _wrong(place, "example", "a whole number from 0", given["example"])
    if not isinstance(target := given.get("target", ""), str | int) or isinstance(target, bool):
        raise _wrong(place, "target", "a class or its number", target)
    tokens = given.get("tokens")
    if tokens is not None and not (isinstance(tokens, list) and all(isinstance(token, str) for token in tokens)):
        raise _wrong(place, "tokens", "a list of texts", tokens)
    parsed = {
        "scores": _parse_scores(place, given.get("scores")),
        "tokens": None if tokens is None else tuple(tokens),
        "offsets": _parse_offsets(place, given.get("offsets")),
        "segments": _parse_wholes(place, "segments", given.get("segments"), most=1),
        "grid": _parse_wholes(place, "grid", given.get("grid"), length=2),
    }
    for field in ("tokens", "offsets", "segments"):
        own: Any = parsed[field]
        if own is not None and len(own) != len(parsed["scores"] or ()):
            raise _wrong(place, field, f"as many as the {count_text(len(parsed['scores'] or ()), 'score')}", len(own))
    return MapEntry(place=place, **{**given, **parsed})


def _parse_scores(place: int, scores: object) -> tuple[float, ...]:
    """Parse scores; those of a grid are joined row by row."""
    if isinstance(scores, list) and scores and all(isinstance(row, list) for row in scores):
        scores = [score for row in scores for score in row]
    if not isinstance(scores, list) or not scores:
        raise _wrong(place, "scores", "a list of numbers", scores)
    for at, score in enumerate(scores):
        if isinstance(score, bool) or not isinstance(score, int | float) or not -LARGEST <= score <= LARGEST:
            raise _wrong(place, f"scores[{at}]", "a number between -1e30 and 1e30", score)
    return tuple(map(float, scores))


def _parse_offsets(place: int, offsets: object) -> tuple[Span, ...] | None:
    if offsets is None:
        return None
    if not isinstance(offsets, list):
        raise _wrong(place, "offsets", "a list of [start, end]", offsets)
    spans = []
    for at, span in enumerate(offsets):
        if not isinstance(span, list | tuple) or len(span) != 2 or not all(map(_is_whole, span)) or span[0] > span[1]:
            raise _wrong(place, f"offsets[{at}]", "[start, end] in characters", span)
        spans.append((span[0], span[1]))
    return tuple(spans)


def _parse_wholes(place: int, field: str, values: object, length: int | None = None, most: int = 10**6) -> Any:
    if values is None:
        return None
    good = isinstance(values, list | tuple) and all(_is_whole(value) and value <= most for value in values)
    if not isinstance(values, list | tuple) or not good or (length is not None and len(values) != length):
        raise _wrong(place, field, "rows and columns" if field == "grid" else "0 or 1 for each score", values)
    return tuple(values)


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _wrong(place: int, field: str, allowed: str, got: object) -> UsageError:
    return UsageError(f"map {place}: {field} must be {allowed}, got {excerpt(got)}.")


def _read_arrays(content: bytes, name: str) -> dict[str, Any]:
    """Read the arrays of a `.npz` file as the fields of the JSON format."""
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            if sum(part.file_size for part in archive.infolist()) > MOST_BYTES:
                raise UsageError(f"{excerpt(name)}: its arrays must have at most {MOST_BYTES // 10**6} MB. Split it.")
        with np.load(io.BytesIO(content), allow_pickle=False) as arrays:
            given = {field: arrays[field] for field in arrays.files}
    except ExegesisError:
        raise
    except Exception as error:  # damaged archives and refused pickles raise errors of many kinds
        raise UsageError(
            f"{excerpt(name)}: cannot be read as arrays without pickles ({excerpt(str(error))}). Save texts as arrays "
            "of fixed width, numpy.array([...], dtype=str)."
        ) from None
    head = {field: given.pop(field).tolist() for field in HEAD - {"maps"} if field in given}
    if "scores" not in given or given["scores"].ndim == 0:
        raise UsageError(f"{excerpt(name)}: has no array named scores. Save one.")
    return {**head, "maps": _split_arrays(given, name)}


def _split_arrays(given: dict[str, np.ndarray], name: str) -> list[dict[str, Any]]:
    """Return one object per map. Single values apply to all maps; scores with three axes determine the grid."""
    scores, lengths = given.pop("scores"), given.pop("lengths", None)
    if lengths is None:
        rows = list(scores) if scores.ndim > 1 else [scores]
        ends = None
    else:
        if lengths.ndim != 1 or lengths.dtype.kind not in "iu" or (lengths < 0).any() or scores.ndim != 1:
            raise UsageError(f"{excerpt(name)}: lengths must be whole numbers, one a map, and scores have one axis.")
        if lengths.sum() != len(scores):
            raise UsageError(
                f"{excerpt(name)}: lengths add up to {lengths.sum():,}, but there are {len(scores):,} scores."
            )
        ends = np.cumsum(lengths)[:-1]
        rows = np.split(scores, ends)
    if len(rows) > MOST_MAPS:
        raise UsageError(f"{excerpt(name)}: must have at most {MOST_MAPS:,} maps, got {len(rows):,}.")
    maps: list[dict[str, Any]] = [{"scores": row.tolist()} for row in rows]
    if scores.ndim == 3:
        for one in maps:
            one["grid"] = list(scores.shape[1:])
    for field, values in given.items():
        for one, value in zip(maps, _per_map(field, values, len(maps), ends, name), strict=True):
            one[field] = value
    return maps


def _per_map(field: str, values: np.ndarray, count: int, ends: np.ndarray | None, name: str) -> Sequence[Any]:
    if values.ndim == 0:
        return [values.item()] * count
    if field in ("offsets", "tokens", "segments"):
        if ends is not None:
            return [part.tolist() for part in np.split(values, ends)]
        parts = values.tolist() if values.ndim > (2 if field == "offsets" else 1) else [values.tolist()]
    else:
        parts = [values.tolist()] * count if field == "grid" and values.ndim == 1 else values.tolist()
    if len(parts) != count:
        raise UsageError(f"{excerpt(name)}: {excerpt(field)} must have one value or part for each of {count:,} maps.")
    return parts
