"""Data sets of the Hugging Face hub, and local folders laid out the same way: parquet files by split."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine.data.files import content_revision
from engine.data.jsonl import Row
from engine.errors import ExegesisError, UsageError, shown, unknown

if TYPE_CHECKING:
    from pyarrow.parquet import ParquetFile

ALIASES = {"dev": "validation", "val": "validation", "valid": "validation"}
SPLITS = ("validation", "test", "train")
"""Which is taken where none is asked for: the first that is there."""
CONVERTED = "refs/convert/parquet"


@dataclass(frozen=True)
class Shards:
    """The parquet files of one split: their names, how to get one, and the revision they belong to."""

    source: str
    split: str
    files: tuple[str, ...]
    fetch: Callable[[str], Path]
    revision: str
    splits: tuple[str, ...] = ()
    """All splits that are there, the usual one first."""


def hub_shards(name: str, split: str | None) -> Shards:
    """The split's files of `owner/name[/config][@revision]`, or of its parquet conversion by the hub."""
    path, _, revision = name.partition("@")
    owner, _, rest = path.partition("/")
    repo, _, config = rest.partition("/")
    if not owner or not repo:
        got = shown(f"hub:{name}")
        raise UsageError(f"dataset: a hub data set is hub:owner/name or hub:owner/name/config, got {got}.")
    repo_id = f"{owner}/{repo}"
    at, files, commit = _list_files(repo_id, revision or None)
    chosen, picked = pick_split(f"hub:{name}", files, split, config)
    splits = in_order(_by_split(files, config))
    return Shards(f"hub:{name}", chosen, picked, lambda file: _download(repo_id, file, at), commit, splits)


def folder_shards(folder: Path, split: str | None) -> Shards:
    """The split's parquet files of a local folder; the revision is the SHA-256 of their bytes."""
    files = sorted(str(path.relative_to(folder).as_posix()) for path in folder.rglob("*.parquet"))
    chosen, picked = pick_split(str(folder), files, split, "")
    revision = content_revision([folder / name for name in picked], {})
    splits = in_order(_by_split(files, ""))
    return Shards(folder.name, chosen, picked, lambda name: folder / name, revision, splits)


def in_order(splits: Collection[str]) -> tuple[str, ...]:
    """The names of splits, the usual one first."""
    return tuple(dict.fromkeys([*(name for name in SPLITS if name in splits), *splits]))


def pick_split(source: str, files: Sequence[str], split: str | None, config: str) -> tuple[str, tuple[str, ...]]:
    """The parquet files of a split, such as `data/train-00000-of-00002.parquet` or `mnli/train/0.parquet`."""
    by_split = _by_split(files, config)
    if not by_split:
        where = f" for the config {config!r}" if config else ""
        raise ExegesisError(f"{source}: holds no parquet files{where}. Download it as CSV or JSONL and name the file.")
    chosen = _choose(by_split, split)
    _check_one_config(source, by_split[chosen])
    return chosen, tuple(by_split[chosen])


def _by_split(files: Sequence[str], config: str) -> dict[str, list[str]]:
    parquet = sorted(name for name in files if name.endswith(".parquet") and (not config or config in name.split("/")))
    by_split: dict[str, list[str]] = {}
    for name in parquet:
        by_split.setdefault(split_of(name), []).append(name)
    return by_split


def _choose(by_split: Mapping[str, list[str]], split: str | None) -> str:
    if split is None:
        return in_order(by_split)[0]
    wanted = ALIASES.get(split, split)
    if wanted not in by_split:
        raise unknown("split", split, by_split)
    return wanted


def split_of(name: str) -> str:
    """The split that a file name or one of its folders tells; `train` where nothing does, as on the hub."""
    words = re.split(r"[/._\-\d]+", name.removesuffix(".parquet").lower())
    found = [ALIASES.get(word, word) for word in words if ALIASES.get(word, word) in SPLITS]
    split = found[-1] if found else "train"
    # MultiNLI has a second validation split, of other sources than it was trained on.
    return f"{split}_mismatched" if "mismatched" in words else split


def _check_one_config(source: str, files: Sequence[str]) -> None:
    roots = {name.split("/")[0] for name in files if "/" in name}
    configs = sorted(root for root in roots if root != "data" and ALIASES.get(root, root) not in SPLITS)
    if len(configs) > 1:
        raise UsageError(f"{source}: has several configs. Name one: {', '.join(f'{source}/{c}' for c in configs)}.")


def read_shards(shards: Shards, limit: int | None) -> list[Row]:
    """Rows of the files in order, no more than `limit`; files beyond it are not fetched."""
    numbered = enumerate(islice(_records(shards), limit))
    return [(f"{shards.source}, {shards.split} row {index}", row) for index, row in numbered]


def _records(shards: Shards) -> Iterator[dict[str, Any]]:
    for name in shards.files:
        with opened(shards.fetch(name)) as file:
            for batch in file.iter_batches(batch_size=1024):
                yield from batch.to_pylist()


@contextmanager
def opened(path: Path) -> Iterator[ParquetFile]:
    """A parquet file, or in one line why it is none."""
    from pyarrow import parquet

    try:
        with parquet.ParquetFile(path) as file:
            yield file
    except (OSError, ValueError) as error:
        reason = str(error).splitlines()[0]
        raise ExegesisError(f"{path.name}: is not a readable parquet file ({reason}).") from None


def class_names(shards: Shards) -> dict[str, list[str]]:
    """The names of `ClassLabel` columns, which the hub's files carry in their schema."""
    with opened(shards.fetch(shards.files[0])) as file:
        metadata = file.schema_arrow.metadata or {}
    info = json.loads(metadata.get(b"huggingface", b"{}"))
    features = info.get("info", {}).get("features", {})
    return {name: kind["names"] for name, kind in features.items() if isinstance(kind, dict) and kind.get("names")}


def _list_files(repo_id: str, revision: str | None) -> tuple[str, list[str], str]:
    """(commit, files, SHA-256 of repository and commit). The hub's own conversion is the second try."""
    from huggingface_hub import HfApi

    info = _ask(repo_id, lambda: HfApi().dataset_info(repo_id, revision=revision))
    files = [entry.rfilename for entry in info.siblings or []]
    if revision is None and not any(name.endswith(".parquet") for name in files):
        info = _ask(repo_id, lambda: HfApi().dataset_info(repo_id, revision=CONVERTED))
        files = [entry.rfilename for entry in info.siblings or []]
    commit = str(info.sha)
    return commit, files, hashlib.sha256(f"{repo_id}@{commit}".encode()).hexdigest()


def _download(repo_id: str, file: str, revision: str) -> Path:
    from huggingface_hub import hf_hub_download

    return Path(_ask(repo_id, lambda: hf_hub_download(repo_id, file, repo_type="dataset", revision=revision)))


def _ask(repo_id: str, call: Callable[[], Any]) -> Any:
    """Calls the hub, and turns whatever goes wrong into one line."""
    from huggingface_hub.errors import (
        GatedRepoError,
        HFValidationError,
        RepositoryNotFoundError,
        RevisionNotFoundError,
    )

    try:
        return call()
    except HFValidationError:
        raise UsageError(f"dataset: {shown(repo_id)} is no hub name. Write hub:owner/name.") from None
    except GatedRepoError:
        raise ExegesisError(f"hub:{repo_id}: is gated. Accept its terms on the hub and log in.") from None
    except RevisionNotFoundError:
        raise ExegesisError(
            f"hub:{repo_id}: has no parquet files at that revision. Download it as CSV or JSONL."
        ) from None
    except RepositoryNotFoundError:
        raise ExegesisError(f"hub:{repo_id}: is not on the hub, or is private. Check the name, or log in.") from None
    # The hub's client has changed its transport library more than once; each has its own error classes.
    except Exception as error:
        raise ExegesisError(
            f"hub:{repo_id}: the hub cannot be reached ({type(error).__name__}). "
            "Check the network, or name a local folder or file instead."
        ) from None
