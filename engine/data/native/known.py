"""Which formats are known, and where a data set of that name is looked for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from engine.data.labels import NLI_LABELS
from engine.data.native.eraser import find_eraser
from engine.data.native.esnli import find_esnli
from engine.data.native.found import Found
from engine.data.native.imdb import find_imdb
from engine.data.native.mlqe_pe import MlqeParams, find_mlqe
from engine.data.native.nli import ALIASES, find_multinli
from engine.data.native.snli_sick import find_snli_sick
from engine.data.sst2 import LABELS, data_root
from engine.errors import ExegesisError
from engine.params import from_mapping


@dataclass(frozen=True)
class Place:
    """Folders below `EXEGESIS_DATA` where a set may lie, what they hold, and how it is found there."""

    folders: tuple[str, ...]
    holds: str
    finds: tuple[Callable[[Path], Found | None], ...]


PLACES: Mapping[str, Place] = {
    "imdb": Place(("aclImdb", "imdb"), "train and test with a folder pos and a folder neg of text files", (find_imdb,)),
    "movies": Place(("movies",), "train.jsonl, val.jsonl and docs, as in ERASER", (find_eraser,)),
    "esnli": Place(
        ("esnli", "e-SNLI"),
        "esnli_train_1.csv, esnli_dev.csv and so on, or the set of ERASER",
        (find_esnli, find_eraser),
    ),
    "multinli": Place(
        ("multinli", "multinli_1.0", "MNLI"), "multinli_1.0_train.jsonl and so on, or its .txt", (find_multinli,)
    ),
    "snli-sick": Place(("nli",), "snli_test.tsv, sick_train.tsv and snli_dev.tsv", (find_snli_sick,)),
    "mlqe-pe": Place(
        ("mlqe_pe", "mlqe-pe"),
        "the unpacked folders post-editing and direct-assessments, or en-de.dev.jsonl",
        (find_mlqe,),
    ),
}
OPTIONED = ("mlqe-pe",)
FINDS = (find_imdb, find_eraser, find_esnli, find_multinli, find_snli_sick, find_mlqe)


@dataclass(frozen=True)
class Copy:
    """The same set on the hub, its columns and its classes by number."""

    hub: str
    columns: Mapping[str, str]
    labels: tuple[str, ...]
    aliases: Mapping[str, str]


COPIES: Mapping[str, Copy] = {
    "imdb": Copy("stanfordnlp/imdb", {"text": "text", "label": "label"}, LABELS, {}),
    "multinli": Copy(
        "nyu-mll/multi_nli", {"text": "premise", "text_pair": "hypothesis", "label": "label"}, NLI_LABELS, ALIASES
    ),
}
"""Where a set is looked for that is in no folder."""


def find(path: Path) -> Found | None:
    """A folder or file of a known format; None for what is none."""
    return next((found for finds in FINDS if (found := finds(path)) is not None), None)


def find_named(name: str, options: Mapping[str, str]) -> Found | None:
    """A set by its name, where one of its folders is there; only MLQE-PE has options."""
    if name in OPTIONED:
        params = from_mapping(MlqeParams, options, name)
        return _first(name, lambda path: find_mlqe(path, params.pair, params.score))
    return _first(name, lambda path: next((f for finds in PLACES[name].finds if (f := finds(path)) is not None), None))


def _first(name: str, finds: Callable[[Path], Found | None]) -> Found | None:
    return next((f for folder in PLACES[name].folders if (f := finds(data_root() / folder)) is not None), None)


def missing(name: str, hub: ExegesisError | None = None) -> ExegesisError:
    """The error for a set that is in no folder, and where it might be on the hub, for the reason why it is not."""
    root, place = data_root(), PLACES[name]
    where = f"is not in {root}." if hub is None else f"found neither in {root} nor on the hub ({hub})"
    told = f"Put a folder {place.folders[0]} there ({place.holds}), or set EXEGESIS_DATA to the folder that holds it."
    return ExegesisError(f"{name}: {where} {told}")
