"""Imported sets of maps as methods, stored as one file each in the home and available as `maps:NAME`.

A set is for one model and one kind of input. Its maps are looked up by input and class; none is computed. Methods that
need maps of changed inputs or models therefore refuse it. The facts of all sets are held in memory, and the maps of
those that were used last.
"""

from __future__ import annotations

import contextlib
import datetime
import functools
import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float

from engine.errors import ExegesisError, UsageError, excerpt, not_allowed, unknown
from engine.format import count_text
from engine.home import home
from engine.lazy import LazyModule
from engine.maps.files import LARGEST
from engine.models import catalog
from engine.params import NoParams
from engine.progress import Report, check_cancelled, silent
from engine.registry import IMPORTED_PREFIX, Axes, Explainer
from engine.request import Example, Input, Picture, Prompt
from engine.task import Attribution, Task, TaskItem

if TYPE_CHECKING:
    from engine import explain, input_kinds, predictions, runtime
    from engine.data import image_datasets, sources
    from engine.maps import alignment
    from engine.maps.files import MapEntry, MapFile
    from engine.models.classifier import AnyClassifier, EncodedInput
else:  # methods are listed before any model is loaded, and by modules that these import
    explain, input_kinds = LazyModule("engine.explain"), LazyModule("engine.input_kinds")
    runtime, sources = LazyModule("engine.runtime"), LazyModule("engine.data.sources")
    image_datasets, predictions = LazyModule("engine.data.image_datasets"), LazyModule("engine.predictions")
    alignment = LazyModule("engine.maps.alignment")

FORMAT = 1
SUFFIX = ".json"
NAME = re.compile(r"[A-Za-z0-9][\w.-]{0,49}")
CLOSE = 0.02
"""Largest change of the explained class's probability since the import, as it may occur in half precision."""
FAMILY = "imported"
DIGITS = 32
"""Number of hexadecimal digits of the digest of an input."""
IN_MEMORY = 4
"""Number of sets whose maps are held in memory."""
MOST_COMPARED = 5_000
"""Largest number of texts of a data set that are compared with a set."""


@dataclass(frozen=True, eq=False)
class StoredMap:
    """A map: the scores of the features in order. `probability`: probability of the explained class at the import.

    `input`: digest of what the model reads (`input_digest`). `source`: digest of the example (`source_digest`); "" in
    sets that were imported before it was stored.
    """

    input: str
    label: str
    probability: float
    scores: Float[np.ndarray, "feature"]
    source: str = ""


@dataclass(frozen=True, eq=False)
class ImportedMaps:
    """The facts of a set of maps. `maps`, `inputs`: number of maps and of distinct inputs. `digest`: hash of its file.

    `has_sources`: whether all maps have the digest of their example.
    """

    name: str
    kind: str
    model: str
    revision: str
    tool: str
    method: str
    signed: bool
    date: str
    maps: int = 0
    inputs: int = 0
    has_sources: bool = False
    digest: str = ""

    @property
    def by_input(self) -> Mapping[str, Mapping[str, StoredMap]]:
        """The maps of each input by class. Errors: the file has changed or is missing."""
        return _stored_maps(str(maps_folder() / f"{self.name}{SUFFIX}"), self.digest)

    @property
    def id(self) -> str:
        """Id of its method."""
        return f"{IMPORTED_PREFIX}{self.name}"

    def why_not(self, model: str) -> str:
        """Return the reason why the set cannot be used on a model, or ""."""
        if model != self.model:
            return f"{self.id} holds maps of {self.model}, not of {model}. Import maps of {model} to see them here."
        if catalog.revision(model) != self.revision:
            return f"{self.id} holds maps of another revision of {model}: its weights changed. Import them again."
        return ""


def count_covered(stored: ImportedMaps, dataset: str, split: str | None = None) -> tuple[int, int] | None:
    """Return (number of examples of a data set that a set has maps of, number of examples). Reads no model.

    None if unknown: the set was imported by an older version, the data set has more than `MOST_COMPARED` texts, or its
    pictures have not been read yet. Errors: those of reading the data set.
    """
    if not stored.has_sources:
        return None
    known = _sources(stored)
    if stored.kind == Picture.kind:
        cached = predictions.cached_digests(image_datasets.load_images(dataset, split))
        digests = [None if digest is None else digest[:DIGITS] for digest in cached]
        return None if None in digests else (sum(digest in known for digest in digests), len(digests))
    source = sources.load_source(stored.kind, dataset, split, tolerant=True)
    if source.count > MOST_COMPARED:
        return None
    return sum(source_digest(one) in known for one in _readable(source)), source.count


def has_map(stored: ImportedMaps, example: Input) -> bool | None:
    """Whether a set has a map of an example, for any class. Reads no model.

    None if unknown: the set was imported by an older version.
    """
    if not stored.has_sources:
        return None
    return source_digest(example) in _sources(stored)


def _sources(stored: ImportedMaps) -> set[str]:
    return {one.source for by_class in stored.by_input.values() for one in by_class.values()}


def _readable(source: sources.ExampleSource) -> Iterable[Input]:
    for place in range(source.count):
        with contextlib.suppress(ExegesisError):  # an invalid row has no map either
            yield source.read(place).input


def maps_folder() -> Path:
    """Return the folder of imported maps, which may not exist yet."""
    return home() / "maps"


def import_maps(file: MapFile, name: str, model: str = "", report: Report = silent) -> ImportedMaps:
    """Check a file of maps against its model, and store it under a new name.

    `model`: the model, if the file names none. It reads every input, to verify that scores and tokens match.
    Errors: an invalid or used name; the model is missing or is another one; the first map that does not match. Nothing
    is stored after an error.
    """
    if not NAME.fullmatch(name):
        raise not_allowed("name", "letters, digits, dots, - and _, at most 50", name)
    path = maps_folder() / f"{name}{SUFFIX}"
    if path.is_dir():
        raise UsageError(f"name: a folder is called {path.name} in {path.parent}. Choose another name.")
    if path.exists():
        raise UsageError(f"name: {name} is taken. Choose another name, or remove it: exegesis maps remove {name}.")
    if file.model and model and file.model != model:
        raise UsageError(f"model: the file holds maps of {file.model}, got {model}. Leave the model out.")
    if not (model := model or file.model):
        raise UsageError("model: the file does not name the model that was explained. Give it with --model.")
    kind = input_kinds.kind_of_model(model)
    inputs = _Inputs(kind, model)
    examples = [inputs.read(entry) for entry in file.maps]
    stored: dict[tuple[str, str], StoredMap] = {}
    with runtime.turn():
        loaded = input_kinds.load_classifier(kind, model, device=runtime.device())
        for place, (entry, example) in enumerate(zip(file.maps, examples, strict=True)):
            check_cancelled()
            report(place, len(file.maps), "checking")
            one = _stored_map(loaded, entry, example)
            if (one.input, one.label) in stored:
                raise UsageError(f"{entry.name}: the file has two maps of this input for {excerpt(one.label, 40)}.")
            stored[one.input, one.label] = one
    imported = ImportedMaps(
        name, kind, model, catalog.revision(model), file.tool, file.method, file.signed,
        datetime.datetime.now(datetime.UTC).date().isoformat(),
    )  # fmt: skip
    _write(imported, stored.values(), path)
    report(len(file.maps), len(file.maps), "")
    return load(path)


class _Inputs:
    """Reader of the inputs that entries name, which loads each data set once."""

    def __init__(self, kind: str, model: str) -> None:
        self.kind, self.is_causal = kind, catalog.is_causal(model)
        self.sources: dict[tuple[str, str | None], Any] = {}

    def read(self, entry: MapEntry) -> Input:
        """Return the input of an entry. Errors: it does not exist, or is of another kind."""
        try:
            example = self._read(entry)
        except ExegesisError as error:
            raise UsageError(f"{entry.name}: {error}") from None
        if self.is_causal and isinstance(example, Example):
            target = entry.target if isinstance(entry.target, str) else None
            named = example if isinstance(example, Prompt) else Prompt(example.text, example.text_pair)
            return replace(named, target=target or named.target, contrast=entry.contrast)
        return example

    def _read(self, entry: MapEntry) -> Input:
        if entry.text is not None:
            if self.kind != "text":
                raise UsageError("the model reads pictures: name dataset and example.")
            return Example(entry.text, entry.text_pair)
        name = str(entry.dataset), entry.split
        if name not in self.sources:
            self.sources[name] = sources.load_source(self.kind, *name)
        return self.sources[name].read(int(entry.example or 0)).input


def _stored_map(model: AnyClassifier, entry: MapEntry, example: Input) -> StoredMap:
    """Convert an entry to a stored map. The caller must hold the device."""
    try:
        encoded = model.encode(example)
        [prediction] = explain.predict_encoded(model, [encoded])
        target = model.target_index(None if isinstance(example, Prompt) else entry.target, prediction, encoded)
    except ExegesisError as error:
        raise UsageError(f"{entry.name}: {error}") from None
    scores = alignment.align(entry, example, encoded)
    label, probability = prediction.labels[target], prediction.probabilities[target]
    return StoredMap(input_digest(encoded), label, probability, scores, source_digest(example))


def input_digest(encoded: EncodedInput) -> str:
    """Return a digest of an input as the model reads it. An input with moved embeddings has another digest."""
    moves = getattr(encoded, "moves", None)
    # The classes of a prompt are not included: a map names its class.
    parts = (encoded.ids.tobytes(), getattr(encoded, "types", np.zeros(0)).tobytes(), b"" if moves is None else moves)
    return hashlib.sha256(b"|".join(bytes(part) for part in parts)).hexdigest()[:DIGITS]


def source_digest(example: Input) -> str:
    """Return a digest of an example's texts or pixels, for any model. The classes of a prompt are not included."""
    if isinstance(example, Picture):
        return example.digest[:DIGITS]
    texts = [example.text, example.text_pair] if isinstance(example, Example) else example.as_plain()
    return hashlib.sha256(json.dumps(texts).encode()).hexdigest()[:DIGITS]


FACTS = ("name", "kind", "model", "revision", "tool", "method", "signed", "date")
"""Fields of a set in its file, other than its maps."""


def _write(imported: ImportedMaps, maps: Iterable[StoredMap], path: Path) -> None:
    rows = [{**vars(one), "scores": one.scores.tolist()} for one in maps]
    plain = {"format": FORMAT, **{name: getattr(imported, name) for name in FACTS}, "maps": rows}
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_suffix(".part")
    part.write_text(json.dumps(plain, ensure_ascii=False, allow_nan=False), encoding="utf-8")
    part.replace(path)


def load(path: Path) -> ImportedMaps:
    """Load the facts of a stored set. Errors: the file is missing or damaged."""
    plain, maps, digest = _read(path)
    facts = {name: plain[name] for name in FACTS} | {"name": path.stem}
    inputs, has_sources = len({one.input for one in maps}), all(one.source for one in maps)
    return ImportedMaps(**facts, maps=len(maps), inputs=inputs, has_sources=has_sources, digest=digest)


def _read(path: Path) -> tuple[dict[str, Any], list[StoredMap], str]:
    """Return the fields of a file, its maps and its digest. Errors: the file cannot be read, and why."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise _unreadable(path, str(error.strerror)) from None
    try:
        plain = json.loads(content)
    except (ValueError, RecursionError):
        raise _unreadable(path, "it is not JSON, or only a part of it") from None
    if not isinstance(plain, dict) or plain.get("format") != FORMAT:
        raise _unreadable(path, "it has another format")
    for name in FACTS:
        if not isinstance(plain.get(name), bool if name == "signed" else str):
            raise _unreadable(path, f"its {name} is missing or wrong")
    if plain["kind"] not in input_kinds.INPUT_KINDS:
        raise _unreadable(path, f"{excerpt(plain['kind'], 40)} is no kind of input")
    if not NAME.fullmatch(path.stem):
        raise _unreadable(path, "its name must be letters, digits, dots, - and _, at most 50")
    rows = plain.get("maps")
    if not isinstance(rows, list) or not rows:
        raise _unreadable(path, "it holds no maps")
    return plain, [_parse_map(path, place, row) for place, row in enumerate(rows, 1)], _digest(content)


def _parse_map(path: Path, place: int, row: Any) -> StoredMap:
    try:
        fields = {"source": "", **row}
        scores, probability = np.asarray(fields.pop("scores"), np.float64), fields.pop("probability")
        good = scores.ndim == 1 and scores.size and (abs(scores) <= LARGEST).all() and 0 <= probability <= 1
        if good and all(isinstance(fields[name], str) for name in ("input", "label", "source")):
            return StoredMap(**fields, scores=scores, probability=float(probability))
    except (KeyError, TypeError, ValueError, OverflowError):
        pass
    raise _unreadable(path, f"its map {place} is damaged")


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:16]


def _unreadable(path: Path, reason: str) -> ExegesisError:
    return ExegesisError(f"maps {path.stem}: the file {path.name} cannot be read ({reason}). Import the maps again.")


@functools.lru_cache(maxsize=IN_MEMORY)
def _stored_maps(path: str, digest: str) -> Mapping[str, Mapping[str, StoredMap]]:
    """Return the maps of each input by class. Errors: the file no longer has this digest."""
    _, maps, current = _read(Path(path))
    if current != digest:
        raise ExegesisError(f"maps {Path(path).stem}: the file has just changed. Try again.")
    by_input: dict[str, dict[str, StoredMap]] = {}
    for one in maps:
        by_input.setdefault(one.input, {})[one.label] = one
    return by_input


def all_imported() -> list[ImportedMaps]:
    """Return all imported sets in order of their names, without damaged ones."""
    return [one for one in _all_files().values() if isinstance(one, ImportedMaps)]


def damaged_sets() -> dict[str, str]:
    """Return the reasons why sets cannot be read, by name."""
    return {name: one for name, one in _all_files().items() if isinstance(one, str)}


def refuse_damaged(name: str) -> None:
    """Raise an error with the reason if a set exists but cannot be read."""
    if reason := damaged_sets().get(name):
        raise UsageError(f"method: {reason}")


def _all_files() -> dict[str, ImportedMaps | str]:
    """Return each set by its name, or the reason why it cannot be read."""
    folder = maps_folder()
    paths = sorted(path for path in folder.glob(f"[!.]*{SUFFIX}") if path.is_file())
    sets: dict[str, ImportedMaps | str] = {}
    for path in paths:
        with contextlib.suppress(FileNotFoundError):  # just removed
            stat = path.stat()
            sets[path.stem] = _load_once(str(path), stat.st_mtime_ns, stat.st_size)
    return sets


@functools.lru_cache(maxsize=512)
def _load_once(path: str, modified: int, size: int) -> ImportedMaps | str:
    """Load the facts of a file, or the reason why it cannot be read. `modified`, `size`: part of the cache key."""
    try:
        return load(Path(path))
    except ExegesisError as error:
        return str(error)


def find_imported(name: str) -> ImportedMaps:
    """Return the imported set of that name. Errors: an unknown name, with a list of the known ones."""
    by_name = {one.name: one for one in all_imported()}
    if name not in by_name:
        raise unknown("maps", name, by_name)
    return by_name[name]


def remove(name: str) -> None:
    """Delete an imported set; cached results are not deleted. Errors: no set has that name."""
    path = maps_folder() / f"{name}{SUFFIX}"
    if Path(name).name != name or not path.is_file():  # a damaged one can be removed too
        find_imported(name)
    path.unlink(missing_ok=True)


def methods(kind: str) -> dict[str, Explainer]:
    """Return the method of each imported set for inputs of a kind, by id."""
    return {one.id: _method(one) for one in all_imported() if one.kind == kind}


@functools.lru_cache(maxsize=512)
def _method(imported: ImportedMaps) -> Explainer:
    """Build the method that looks up maps in a set."""

    def resolve(params: Any, model: str) -> Any:
        if why_not := imported.why_not(model):
            raise UsageError(f"method: {why_not}")
        return params

    return Explainer(
        id=imported.id,
        title=f"{imported.method}, imported ({imported.name})",
        family=FAMILY,
        function=functools.partial(_look_up, imported),
        params=NoParams,
        version=FORMAT,
        kind=imported.kind,
        differentiable=False,
        signed=imported.signed,
        cheap=True,
        axes=Axes("as in the other tool", "as in the other tool", "imported map"),
        citation=f"Imported from {imported.tool}, {imported.date}",
        caution="Nothing here checks how the other tool computed it.",
        resolver=resolve,
        digest=imported.digest,
    )


def _look_up(imported: ImportedMaps, task: Task, params: object) -> list[Attribution]:
    """Return the imported map of each item. Errors: there is none of its input or class, or the model has changed."""
    return [_attribution(imported, item) for item in task.items]


def _attribution(imported: ImportedMaps, item: TaskItem) -> Attribution:
    by_class = imported.by_input.get(input_digest(item.encoded))
    if by_class is None:
        raise ExegesisError(
            f"{imported.id} has no map of this input, and maps imported from {imported.tool} are not recomputed. It "
            f"has maps of {count_text(imported.inputs, 'input')}: import more, "
            "or choose a method that computes maps."
        )
    label = item.prediction.labels[item.target]
    if label not in by_class:
        names = ", ".join(excerpt(name, 40) for name in by_class)
        raise ExegesisError(f"{imported.id} has a map of this input for {names}, not for {excerpt(label, 40)}.")
    one, probability = by_class[label], item.prediction.probabilities[item.target]
    if abs(probability - one.probability) > CLOSE:
        raise ExegesisError(
            f"{imported.id}: the probability of {excerpt(label, 40)} is {probability:.3f}, but was "
            f"{one.probability:.3f} at the import. Maps of a changed model (random weights, scaled heads) are not "
            "recomputed: choose a method that computes maps."
        )
    scores, features = np.zeros(len(item.encoded)), item.encoded.features
    if len(one.scores) != len(features):
        raise ExegesisError(
            f"{imported.id}: its map has {count_text(len(one.scores), 'score')}, but the input {len(features):,} "
            "features. Import the maps again."
        )
    scores[features] = one.scores
    note = f"Imported from {imported.tool} ({imported.method}), not recomputed."
    return Attribution(scores, 0, notes=(note,))
