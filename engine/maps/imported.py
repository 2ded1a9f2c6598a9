"""Imported sets of maps as methods: stored as one file each in the home, and offered as `maps:NAME`.

A set is of one model and one kind of input. It has the map of an input and a class or it has none: nothing is
computed. So methods that need the maps of changed inputs or models refuse it.
"""

from __future__ import annotations

import datetime
import functools
import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from engine.errors import ExegesisError, UsageError, excerpt, not_allowed, unknown
from engine.format import count_text
from engine.home import home
from engine.lazy import LazyModule
from engine.models import catalog
from engine.params import NoParams
from engine.progress import Report, check_cancelled, silent
from engine.registry import IMPORTED_PREFIX, Axes, Explainer
from engine.request import Example, Input, Prompt
from engine.task import Attribution, Task, TaskItem

if TYPE_CHECKING:
    from engine import explain, input_kinds, runtime
    from engine.data import sources
    from engine.maps import alignment
    from engine.maps.files import MapEntry, MapFile
    from engine.models.classifier import AnyClassifier, EncodedInput
else:  # the list of methods is read before any model, and by what these import
    explain, input_kinds = LazyModule("engine.explain"), LazyModule("engine.input_kinds")
    runtime, sources = LazyModule("engine.runtime"), LazyModule("engine.data.sources")
    alignment = LazyModule("engine.maps.alignment")

FORMAT = 1
SUFFIX = ".json"
NAME = re.compile(r"[A-Za-z0-9][\w.-]{0,49}")
CLOSE = 0.02
"""By how much the probability of the explained class may differ from that at the import, as in half precision."""
FAMILY = "imported"


@dataclass(frozen=True)
class StoredMap:
    """One map: the scores of the features in their order. `probability`: of the explained class at the import."""

    input: str
    label: str
    probability: float
    scores: tuple[float, ...]


@dataclass(frozen=True, eq=False)
class ImportedMaps:
    """A set of maps. `inputs`: the number of different inputs. `digest`: of its file."""

    name: str
    kind: str
    model: str
    revision: str
    tool: str
    method: str
    signed: bool
    date: str
    maps: tuple[StoredMap, ...]
    digest: str = ""

    @functools.cached_property
    def by_input(self) -> Mapping[str, Mapping[str, StoredMap]]:
        """The maps of each input by class."""
        by_input: dict[str, dict[str, StoredMap]] = {}
        for one in self.maps:
            by_input.setdefault(one.input, {})[one.label] = one
        return by_input

    @property
    def id(self) -> str:
        """The id of its method."""
        return f"{IMPORTED_PREFIX}{self.name}"

    def why_not(self, model: str) -> str:
        """Why it cannot be used on a model, else ""."""
        if model != self.model:
            return f"{self.id} holds maps of {self.model}, not of {model}. Import maps of {model} to see them here."
        if catalog.revision(model) != self.revision:
            return f"{self.id} holds maps of another revision of {model}: its weights changed. Import them again."
        return ""


def maps_folder() -> Path:
    """The folder of imported maps. It may not exist yet."""
    return home() / "maps"


def import_maps(file: MapFile, name: str, model: str = "", report: Report = silent) -> ImportedMaps:
    """Check a file of maps against its model, and store it under a name that must be new.

    `model`: where the file names none. The model reads every input, so that scores and tokens are known to match.
    Errors: the first map that does not match; nothing is stored then.
    """
    if not NAME.fullmatch(name):
        raise not_allowed("name", "letters, digits, dots, - and _, at most 50", name)
    path = maps_folder() / f"{name}{SUFFIX}"
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
        datetime.datetime.now(datetime.UTC).date().isoformat(), tuple(stored.values()),
    )  # fmt: skip
    _write(imported, path)
    report(len(file.maps), len(file.maps), "")
    return load(path)


class _Inputs:
    """The inputs that entries name, each data set loaded once."""

    def __init__(self, kind: str, model: str) -> None:
        self.kind, self.is_causal = kind, catalog.is_causal(model)
        self.sources: dict[tuple[str, str | None], Any] = {}

    def read(self, entry: MapEntry) -> Input:
        """The input of an entry. Errors: it is not there."""
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
    """The map as it is stored. The caller holds the device."""
    try:
        encoded = model.encode(example)
        [prediction] = explain.predict_encoded(model, [encoded])
        target = model.target_index(None if isinstance(example, Prompt) else entry.target, prediction, encoded)
    except ExegesisError as error:
        raise UsageError(f"{entry.name}: {error}") from None
    scores = alignment.align(entry, example, encoded)
    return StoredMap(
        input_digest(encoded), prediction.labels[target], prediction.probabilities[target], tuple(scores.tolist())
    )


def input_digest(encoded: EncodedInput) -> str:
    """Identifies an input as the model reads it; a moved neighbor of it is another input."""
    moves = getattr(encoded, "moves", None)
    # The classes of a prompt are no part of it: a map names its class.
    parts = (encoded.ids.tobytes(), getattr(encoded, "types", np.zeros(0)).tobytes(), b"" if moves is None else moves)
    return hashlib.sha256(b"|".join(bytes(part) for part in parts)).hexdigest()[:32]


def _write(imported: ImportedMaps, path: Path) -> None:
    plain = {"format": FORMAT, **{name: value for name, value in asdict(imported).items() if name != "digest"}}
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_suffix(".part")
    part.write_text(json.dumps(plain, ensure_ascii=False, allow_nan=False), encoding="utf-8")
    part.replace(path)


def load(path: Path) -> ImportedMaps:
    """Load a stored set. Errors: the file is missing or damaged."""
    try:
        content = path.read_bytes()
        plain = json.loads(content)
        if plain.pop("format") != FORMAT:
            raise ValueError("another format")
        maps = tuple(StoredMap(**{**one, "scores": tuple(one["scores"])}) for one in plain.pop("maps"))
        return ImportedMaps(**plain, maps=maps, digest=hashlib.sha256(content).hexdigest()[:16])
    except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise ExegesisError(
            f"maps {path.stem}: the file {path.name} cannot be read ({excerpt(str(error))}). Import the maps again."
        ) from None


def all_imported() -> list[ImportedMaps]:
    """All imported sets by name. Damaged ones are left out."""
    folder = maps_folder()
    if not folder.is_dir():
        return []
    sets = []
    for path in sorted(folder.glob(f"[!.]*{SUFFIX}")):
        try:
            stat = path.stat()
            sets.append(_load_once(str(path), stat.st_mtime_ns, stat.st_size))
        except (OSError, ExegesisError):
            continue
    return sets


@functools.lru_cache(maxsize=512)
def _load_once(path: str, modified: int, size: int) -> ImportedMaps:
    """Load a file once. `modified`, `size`: change with the file."""
    return load(Path(path))


def find_imported(name: str) -> ImportedMaps:
    """The imported set of that name. Errors list the known ones."""
    by_name = {one.name: one for one in all_imported()}
    if name not in by_name:
        raise unknown("maps", name, by_name)
    return by_name[name]


def remove(name: str) -> None:
    """Delete an imported set; results that are in the cache stay. Errors: there is none of that name."""
    path = maps_folder() / f"{name}{SUFFIX}"
    if Path(name).name != name or not path.is_file():  # a damaged one can be removed too
        find_imported(name)
    path.unlink(missing_ok=True)


def methods(kind: str) -> dict[str, Explainer]:
    """The method of each imported set for inputs of a kind, by id."""
    return {one.id: _method(one) for one in all_imported() if one.kind == kind}


@functools.lru_cache(maxsize=512)
def _method(imported: ImportedMaps) -> Explainer:
    """The method that looks maps up in a set."""

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
    """The imported map of each item. Errors: there is none of that input, class or model."""
    return [_attribution(imported, item) for item in task.items]


def _attribution(imported: ImportedMaps, item: TaskItem) -> Attribution:
    by_class = imported.by_input.get(input_digest(item.encoded))
    if by_class is None:
        raise ExegesisError(
            f"{imported.id} has no map of this input, and maps imported from {imported.tool} are not recomputed. It "
            f"has maps of {count_text(len(imported.by_input), 'input')}: import more, "
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
    scores = np.zeros(len(item.encoded))
    scores[item.encoded.features] = one.scores
    note = f"Imported from {imported.tool} ({imported.method}), not recomputed."
    return Attribution(scores, 0, notes=(note,))
