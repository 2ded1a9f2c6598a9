"""The registry of data sets, and `load`: by registered name, local file or folder, or `hub:owner/name`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from engine import access
from engine.data.cards import Card, own_card, read_card
from engine.data.columns import Mapped, map_rows
from engine.data.examples import Dataset, LabelledExample
from engine.data.files import content_revision
from engine.data.generated import reviews_generated, reviews_marked
from engine.data.hub import ALIASES, Shards, class_names, folder_shards, hub_shards, read_shards
from engine.data.jsonl import Broken, Row
from engine.data.labels import NLI_LABELS
from engine.data.named import Named, options_of, without_options
from engine.data.native.found import Found
from engine.data.native.known import COPIES, OPTIONED, PLACES, find, find_named, missing
from engine.data.quality.rows import quality
from engine.data.sst2 import COLUMNS, LABELS, hub_sst2, local_sst2, sst2_split
from engine.data.tables import TABLES, read_table
from engine.errors import ExegesisError, UsageError, not_allowed, shown, unknown

__all__ = ["Asked", "Dataset", "LabelledExample", "dataset_card", "dataset_names", "load", "register", "registered"]


@dataclass(frozen=True)
class Asked:
    """What the caller of `load` asked for; None means the data set's own."""

    split: str | None = None
    columns: Mapping[str, str] | None = None
    limit: int | None = None
    label_names: Sequence[str] | None = None
    options: Mapping[str, str] = field(default_factory=dict)
    tolerant: bool = False

    def how(self) -> dict[str, object]:
        """What changes how bytes are read, for the revision."""
        columns = dict(sorted(self.columns.items())) if self.columns else None
        return {"columns": columns, "label_names": list(self.label_names) if self.label_names else None}


Loader = Callable[[Asked], Dataset]
_LOADERS: Named[Loader] = Named()
register = _LOADERS.enter
dataset_names = _LOADERS.as_entered
dataset_card = _LOADERS.card
registered = _LOADERS.registered


def load(
    name_or_path: str | Path,
    split: str | None = None,
    columns: Mapping[str, str] | None = None,
    limit: int | None = None,
    label_names: Sequence[str] | None = None,
    tolerant: bool = False,
) -> Dataset:
    """A registered data set, perhaps with options (`reviews-generated:seed=7`), `hub:owner/name[/config][@revision]`,
    a file, or a folder of splits.

    Files are CSV, TSV, JSONL or parquet. `columns` maps text, text_pair, label, rationale, rationale_pair to
    columns; `limit` keeps the first examples. Without a split: validation, else test, else train.
    `tolerant`: rows that are no examples are left out, with the reasons; else one of them is an error.
    """
    if limit is not None and (type(limit) is not int or limit < 1):
        raise not_allowed("limit", "a whole number of 1 or more", limit)
    asked = Asked(split, columns, limit, label_names, tolerant=tolerant)
    name = str(name_or_path)
    access.check_dataset(name)
    if known := registered(name):
        asked = replace(_without_mapping(known, asked), options=options_of(name))
        return replace(_LOADERS[known](asked), id=name)
    if not name:
        raise unknown("dataset", name, _LOADERS)
    if name.startswith("hub:"):
        return _from_shards(hub_shards(name.removeprefix("hub:"), split), asked)
    try:
        return _from_path(Path(name_or_path), asked)
    except OSError as error:
        raise ExegesisError(f"dataset: {shown(name)} cannot be read ({error.strerror}). Check the path.") from None


def _without_mapping(name: str, asked: Asked) -> Asked:
    if asked.columns or asked.label_names:
        raise UsageError(f"columns: {name} has its own columns and label names. Leave columns and label_names out.")
    return asked


@register("reviews")
def _reviews(asked: Asked) -> Dataset:
    return _embedded("reviews", asked, LABELS)


def _embedded(name: str, asked: Asked, label_names: Sequence[str]) -> Dataset:
    """A set of one file that is part of the project."""
    without_options(name, asked.options)
    _one_split(name, asked.split)
    path, card = Path(__file__).resolve().parent / f"{name}.jsonl", read_card(name)
    found = _from_file(path, Asked(limit=asked.limit, label_names=label_names))
    return replace(found, title=card.title, card=card, revision=content_revision([path], {}))


@register("reviews-generated")
def _reviews_generated(asked: Asked) -> Dataset:
    return reviews_generated(asked.options, asked.split, asked.limit)


@register("reviews-marked")
def _reviews_marked(asked: Asked) -> Dataset:
    return reviews_marked(asked.options, asked.split, asked.limit)


@register("nli")
def _nli(asked: Asked) -> Dataset:
    return _embedded("nli", asked, NLI_LABELS)


@register("quality")
def _quality(asked: Asked) -> Dataset:
    return quality(asked.options, asked.split, asked.limit)


@register("sst2")
def _sst2(asked: Asked) -> Dataset:
    without_options("sst2", asked.options)
    split, card = sst2_split(asked.split), read_card("sst2")
    asked = replace(asked, split=split, columns=COLUMNS, label_names=LABELS)
    path = local_sst2(split)
    found = _from_file(path, asked) if path else _from_shards(hub_sst2(split), asked)
    return replace(found, title=card.title, card=card, split="dev" if split == "validation" else split)


def _released(name: str, asked: Asked) -> Dataset:
    """A set of others that lies below `EXEGESIS_DATA`, else its copy on the hub."""
    if name not in OPTIONED:
        without_options(name, asked.options)
    card, found = read_card(name), find_named(name, asked.options)
    data = _from_copy(name, asked) if found is None else _from_found(name, found, asked)
    return replace(data, title=card.title, card=card)


for _name in PLACES:
    register(_name)(partial(_released, _name))


def _from_copy(name: str, asked: Asked) -> Dataset:
    if name not in COPIES:
        raise missing(name)
    copy = COPIES[name]
    split = copy.aliases.get(asked.split or "", asked.split)
    try:
        shards = hub_shards(copy.hub, split)
    except UsageError:
        raise
    except ExegesisError as error:
        raise missing(name, error) from None
    return _from_shards(shards, replace(asked, columns=copy.columns, label_names=copy.labels))


def _from_found(name: str, found: Found, asked: Asked) -> Dataset:
    split = found.chosen(asked.split)
    reading = found.splits[split](asked.limit)
    mapped = map_rows(name, reading.rows, None, asked.label_names or reading.labels, True, asked.tolerant)
    card = own_card(Path(name).name, f"the local files of {Path(name).name}", f"{len(mapped.examples):,} examples")
    revision = content_revision(reading.files, {**asked.how(), **asked.options})
    return _dataset(name, mapped, card, revision, asked, split)


def _from_path(path: Path, asked: Asked) -> Dataset:
    if not asked.columns and (found := find(path)):
        return _from_found(str(path), found, asked)
    if path.is_dir():
        return _from_folder(path, asked)
    if not path.exists() and path.suffix.lower() not in (*TABLES, ".parquet"):
        hint = f" For the hub write hub:{path}." if len(path.parts) == 2 else ""
        raise UsageError(f"{unknown('dataset', str(path), _LOADERS)}{hint} Or name a CSV, TSV or JSONL file.")
    if path.suffix.lower() == ".parquet" and path.is_file():
        revision = content_revision([path], {})
        _one_split(path.name, asked.split)
        return _from_shards(Shards(path.name, "all", (path.name,), lambda _: path, revision), asked)
    _one_split(path.name, asked.split)
    return _from_file(path, asked)


def _one_split(name: str, split: str | None) -> None:
    if split not in (None, "all"):
        raise UsageError(f"split: {name} is one file without splits, got {split!r}. Leave split out.")


def _from_folder(folder: Path, asked: Asked) -> Dataset:
    """`train.csv`, `dev.tsv`, `test.jsonl` beside each other, or parquet files as on the hub."""
    tables = {path.stem: path for path in sorted(folder.iterdir()) if path.suffix.lower() in TABLES}
    if not tables:
        return _from_shards(folder_shards(folder, asked.split), asked)
    by_split = {ALIASES.get(stem, stem): path for stem, path in tables.items()}
    default = next(name for name in ("validation", "test", "train", *by_split) if name in by_split)
    split = default if asked.split is None else ALIASES.get(asked.split, asked.split)
    if split not in by_split:
        raise unknown("split", asked.split, tables)
    found = _from_file(by_split[split], asked)
    return replace(found, id=str(folder), title=folder.name, split=split)


def _from_file(path: Path, asked: Asked) -> Dataset:
    broken: Broken | None = {} if asked.tolerant else None
    rows = read_table(path, broken)
    mapped = map_rows(path.name, rows, asked.columns, asked.label_names, tolerant=asked.tolerant, broken=broken)
    card = own_card(path.name, f"the local file {path.name}", f"{len(mapped.examples):,} examples")
    revision = content_revision([path], asked.how())
    return _dataset(str(path), mapped, card, revision, asked, "all")


def _from_shards(shards: Shards, asked: Asked) -> Dataset:
    label = (asked.columns or {}).get("label", "label")
    names = asked.label_names or class_names(shards).get(label)
    # Without names the classes are what the whole split holds, so the limit must wait.
    rows = read_shards(shards, asked.limit if names else None)
    rows = _unlabelled(rows, label) if names else rows
    mapped = map_rows(shards.source, rows, asked.columns, names, True, asked.tolerant)
    card = own_card(shards.source, shards.source, f"{len(mapped.examples):,} examples read of {shards.split}")
    return _dataset(shards.source, mapped, card, _with_how(shards.revision, shards, asked), asked, shards.split)


def _unlabelled(rows: list[Row], label: str) -> list[Row]:
    """The hub writes -1 where a class is not known (test splits of GLUE)."""
    return [(where, {**row, label: None} if row.get(label) == -1 else row) for where, row in rows]


def _with_how(revision: str, shards: Shards, asked: Asked) -> str:
    how = {"revision": revision, "files": list(shards.files), **asked.how()}
    return content_revision([], how)


def _dataset(name: str, mapped: Mapped, card: Card, revision: str, asked: Asked, split: str) -> Dataset:
    if not mapped.examples:
        raise ExegesisError(f"{name}: has no examples.")
    notes = (f"{mapped.skipped:,} rows without text were left out",) if mapped.skipped else ()
    return Dataset(
        id=name,
        title=card.title,
        task=mapped.labels.task,
        label_names=mapped.labels.names,
        examples=mapped.examples[: asked.limit],
        card=card,
        revision=revision,
        split=split,
        notes=notes,
        faults=mapped.faults,
    )
