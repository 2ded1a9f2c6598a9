"""Data sets by name: load requests, loaders, options, splits and cards."""

from __future__ import annotations

import functools
import os
import tomllib
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, TypeVar, cast

from engine import plugins
from engine.errors import UsageError, not_allowed, unknown
from engine.home import home, is_checkout, project_root
from engine.params import parse_assignments

Loader = TypeVar("Loader")

CARDS_FOLDER = Path(__file__).resolve().parent / "cards"
SPLIT_ALIASES = {"dev": "validation", "val": "validation", "valid": "validation"}
DEFAULT_SPLITS = ("validation", "test", "train")
"""In order of preference: the default split of a data set is the first of these that it has."""


@dataclass(frozen=True)
class LoadRequest:
    """Options for loading a data set; None means the data set's own.

    `tolerant`: skip invalid rows and report why they are invalid.
    """

    split: str | None = None
    columns: Mapping[str, str] | None = None
    limit: int | None = None
    label_names: Sequence[str] | None = None
    options: Mapping[str, str] = field(default_factory=dict)
    tolerant: bool = False

    def __post_init__(self) -> None:
        if self.limit is not None and (type(self.limit) is not int or self.limit < 1):
            raise not_allowed("limit", "a whole number of 1 or more", self.limit)

    def revision_parts(self) -> dict[str, object]:
        """Return the settings that change how files are read, for the revision."""
        columns = dict(sorted(self.columns.items())) if self.columns else None
        return {"columns": columns, "label_names": list(self.label_names) if self.label_names else None}


@dataclass(frozen=True)
class DatasetCard:
    """Card of a data set: its content, origin and uses in plain sentences, one field for each."""

    title: str
    source: str
    licence: str
    size: str
    made: str
    command: str
    intended_use: str
    limits: str

    def markdown(self) -> str:
        """Render the card as Markdown: a heading and one line per field."""
        lines = [f"* **{f.name.replace('_', ' ').capitalize()}**: {getattr(self, f.name)}" for f in fields(self)[1:]]
        return "\n".join([f"# {self.title}", "", *lines, ""])


def card_names() -> tuple[str, ...]:
    """Return the names of the data sets with a card, one TOML file each in `cards/`."""
    return tuple(sorted(path.stem for path in CARDS_FOLDER.glob("*.toml")))


def read_card(name: str) -> DatasetCard:
    """Read the card `cards/<name>.toml`."""
    if name not in card_names():
        raise unknown("card", name, card_names())
    content = tomllib.loads((CARDS_FOLDER / f"{name}.toml").read_text(encoding="utf-8"))
    return DatasetCard(**{key: " ".join(value.split()) for key, value in content.items()})


def external_card(title: str, source: str, size: str) -> DatasetCard:
    """Build the card of a data set unknown to the project: a user's file or a data set on the hub."""
    return DatasetCard(
        title=title,
        source=source,
        licence="as stated by its source; unknown to Exegesis",
        size=size,
        made="read unchanged, except for the names of its columns",
        command="none",
        intended_use="chosen by the person who loaded it",
        limits="its labels and rationales were not checked",
    )


class DatasetRegistry(dict[str, Loader]):
    """Loaders of one kind of data set by name, in order of registration; those of plugins come last.

    `cards`: cards of data sets without a file in `cards/`.
    """

    def __init__(self) -> None:
        super().__init__()
        self.cards: dict[str, DatasetCard] = {}

    def register(self, name: str, card: DatasetCard | None = None) -> Callable[[Loader], Loader]:
        """Return a decorator that registers a loader under a new name. `card`: replaces the file in `cards/`."""

        def add(loader: Loader) -> Loader:
            if name in self:
                raise UsageError(f"dataset: {name!r} is registered twice.")
            plugin = plugins.registering("datasets", name, functools.partial(self.pop, name, None))
            if plugin is None:
                self[name] = loader
            else:
                if not isinstance(card, DatasetCard):
                    raise UsageError(f"card of {name}: must be a DatasetCard, got {type(card).__name__}")
                self[name] = _checked(loader, plugin, name)
            if card is not None:
                self.cards[name] = card
            return loader

        return add

    def registered_name(self, name: str) -> str | None:
        """Return the name without its options (`scenes` for `scenes:seed=7`) if it is registered, or None."""
        plugins.load("datasets")
        bare = name.partition(":")[0]
        return bare if bare in self else None

    def names(self) -> tuple[str, ...]:
        """Return the names in order of registration, the default first."""
        plugins.load("datasets")
        return tuple(self)

    def sorted_names(self) -> tuple[str, ...]:
        """Return the names in alphabetical order."""
        plugins.load("datasets")
        return tuple(sorted(self))

    def card(self, name: str) -> DatasetCard:
        """Return the card of a registered data set."""
        if not self.registered_name(name):
            raise unknown("dataset", name, self)
        return self.cards.get(name) or read_card(name)


def _checked(loader: Loader, plugin: plugins.Plugin, name: str) -> Loader:
    """Wrap a plugin's loader so that its errors and wrong results are reported as the plugin's."""
    guarded = plugins.guarded(cast(Callable[..., Any], loader), plugin, f"dataset {name}: failed")

    @functools.wraps(guarded)
    def load(request: LoadRequest) -> Any:
        data = guarded(request)
        if not hasattr(data, "label_names") or not hasattr(data, "revision"):
            wrong = f"must be a Dataset or an ImageDataset, got {type(data).__name__}"
            raise plugin.failure(f"dataset {name}: wrong result", wrong)
        return data

    return cast(Loader, load)


def parse_names(text: str) -> list[str]:
    """Split a comma-separated list of names. Options may contain commas: `a:seed=1,strength=0.5,b` is two names."""
    names: list[str] = []
    for part in filter(None, map(str.strip, text.split(","))):
        if names and ":" in names[-1] and ":" not in part and "=" in part:
            names[-1] += f",{part}"
        else:
            names.append(part)
    return names


def parse_options(name: str) -> dict[str, str]:
    """Parse the options after the colon, as in `scenes:seed=7,count=500`."""
    options = name.partition(":")[2]
    return parse_assignments(options.split(",")) if options else {}


def reject_options(name: str, options: Mapping[str, str]) -> None:
    """Raise an error if options are given for a data set that takes none."""
    if options:
        raise UsageError(f"dataset: {name} takes no options, got {', '.join(options)[:80]}. Write {name} alone.")


def reject_split(name: str, split: str | None) -> None:
    """Raise an error if a split is given for a data set that has none."""
    if split not in (None, "all"):
        raise UsageError(f"split: {name} is one file without splits, got {split!r}. Leave split out.")


def order_splits(splits: Collection[str]) -> tuple[str, ...]:
    """Return the names of the splits, the default first."""
    return tuple(dict.fromkeys([*(name for name in DEFAULT_SPLITS if name in splits), *splits]))


def choose_split(
    split: str | None,
    splits: Collection[str],
    names: Collection[str] = (),
    aliases: Mapping[str, str] = SPLIT_ALIASES,
) -> str:
    """Resolve the name or alias of a split; the default is validation, else test, else train, else the first.

    `names`: the names listed in the error, if other than `splits`.
    """
    if split is None:
        return order_splits(splits)[0]
    chosen = aliases.get(split, split)
    if chosen not in splits:
        raise unknown("split", split, names or splits)
    return chosen


def data_root() -> Path:
    """Return the folder of local data sets.

    It is `EXEGESIS_DATA`, else `../shared/data` next to a checkout, or `data` in the home.
    """
    usual = project_root().parent / "shared" / "data" if is_checkout() else home() / "data"
    return Path(os.environ.get("EXEGESIS_DATA") or usual)
