"""Data sets on the Hugging Face hub, and local folders with the same layout: parquet files by split."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from engine.data.registry import DEFAULT_SPLITS, SPLIT_ALIASES, choose_split, order_splits, reject_split
from engine.data.tables import TableRow, content_revision
from engine.errors import ExegesisError, UsageError, excerpt
from engine.lazy import huggingface_hub, pyarrow

HUB_PREFIX = "hub:"
CONVERTED_REVISION = "refs/convert/parquet"


@dataclass(frozen=True)
class ParquetShards:
    """The parquet files of one split: their names, a function to fetch one, and their revision."""

    source: str
    split: str
    files: tuple[str, ...]
    fetch: Callable[[str], Path]
    revision: str
    splits: tuple[str, ...] = ()
    """All available splits, the default first."""


def find_hub_shards(name: str, split: str | None) -> ParquetShards:
    """Find the files of a split of `owner/name[/config][@revision]`, or of its parquet conversion by the hub."""
    path, _, revision = name.partition("@")
    owner, _, rest = path.partition("/")
    repo, _, config = rest.partition("/")
    source = f"{HUB_PREFIX}{name}"
    if not owner or not repo:
        raise UsageError(f"dataset: a hub data set is hub:owner/name or hub:owner/name/config, got {excerpt(source)}.")
    repo_id = f"{owner}/{repo}"
    commit, files = _list_files(repo_id, revision or None)
    chosen, shards, splits = pick_split(source, files, split, config)
    digest = hashlib.sha256(f"{repo_id}@{commit}".encode()).hexdigest()
    return ParquetShards(source, chosen, shards, lambda file: _download(repo_id, file, commit), digest, splits)


def find_folder_shards(folder: Path, split: str | None) -> ParquetShards:
    """Find the parquet files of a split in a local folder; the revision is the SHA-256 of their bytes."""
    files = sorted(str(path.relative_to(folder).as_posix()) for path in folder.rglob("*.parquet"))
    chosen, shards, splits = pick_split(str(folder), files, split, "")
    revision = content_revision([folder / name for name in shards], {})
    return ParquetShards(folder.name, chosen, shards, lambda name: folder / name, revision, splits)


def find_file_shards(path: Path, split: str | None) -> ParquetShards:
    """Wrap a single parquet file, which has no splits; the revision is the SHA-256 of its bytes."""
    reject_split(path.name, split)
    return ParquetShards(path.name, "all", (path.name,), lambda _: path, content_revision([path], {}))


def pick_split(
    source: str, files: Sequence[str], split: str | None, config: str
) -> tuple[str, tuple[str, ...], tuple[str, ...]]:
    """Pick (split, its files, all splits) among names like `data/train-00000-of-00002.parquet`."""
    by_split: dict[str, list[str]] = {}
    for name in sorted(files):
        if name.endswith(".parquet") and (not config or config in name.split("/")):
            by_split.setdefault(parse_split(name), []).append(name)
    if not by_split:
        where = f" for the config {config!r}" if config else ""
        raise ExegesisError(f"{source}: holds no parquet files{where}. Download it as CSV or JSONL and name the file.")
    chosen = choose_split(split, by_split)
    roots = {name.split("/")[0] for name in by_split[chosen] if "/" in name}
    configs = sorted(root for root in roots if root != "data" and SPLIT_ALIASES.get(root, root) not in DEFAULT_SPLITS)
    if len(configs) > 1:
        raise UsageError(f"{source}: has several configs. Name one: {', '.join(f'{source}/{c}' for c in configs)}.")
    return chosen, tuple(by_split[chosen]), order_splits(by_split)


def parse_split(name: str) -> str:
    """Parse the split from a file's name or its folders; `train` if there is none, as on the hub."""
    words = re.split(r"[/._\-\d]+", name.removesuffix(".parquet").lower())
    splits = [SPLIT_ALIASES.get(word, word) for word in words if SPLIT_ALIASES.get(word, word) in DEFAULT_SPLITS]
    split = splits[-1] if splits else "train"
    # MultiNLI has a second validation split, from other sources than its training split.
    return f"{split}_mismatched" if "mismatched" in words else split


def read_shards(shards: ParquetShards, limit: int | None) -> list[TableRow]:
    """Read rows of the files in order, at most `limit`; later files are not fetched."""
    numbered = enumerate(islice(_iterate_rows(shards), limit))
    return [(f"{shards.source}, {shards.split} row {index}", row) for index, row in numbered]


def _iterate_rows(shards: ParquetShards) -> Iterator[dict[str, Any]]:
    for name in shards.files:
        with open_parquet(shards.fetch(name)) as file:
            for batch in file.iter_batches(batch_size=1024):
                yield from batch.to_pylist()


@contextmanager
def open_parquet(path: Path) -> Iterator[pyarrow.parquet.ParquetFile]:
    """Open a parquet file. Errors: one line with the reason why it cannot be read."""
    try:
        with pyarrow.parquet.ParquetFile(path) as file:
            yield file
    except (OSError, ValueError) as error:
        reason = str(error).splitlines()[0]
        raise ExegesisError(f"{path.name}: is not a readable parquet file ({reason}).") from None


def read_class_names(shards: ParquetShards) -> dict[str, list[str]]:
    """Read the class names of `ClassLabel` columns from the metadata of the hub's files; empty if it is damaged."""
    with open_parquet(shards.fetch(shards.files[0])) as file:
        metadata = file.schema_arrow.metadata or {}
    try:
        features = json.loads(metadata.get(b"huggingface", b"{}")).get("info", {}).get("features", {})
        named = {name: kind["names"] for name, kind in features.items() if isinstance(kind, dict) and kind.get("names")}
    except (ValueError, AttributeError, RecursionError):
        return {}
    return {
        name: names
        for name, names in named.items()
        if isinstance(names, list) and all(isinstance(one, str) for one in names)
    }


def _list_files(repo_id: str, revision: str | None) -> tuple[str, list[str]]:
    """List (commit, files) of a repository, or of its conversion by the hub if it has no parquet files."""

    def list_at(at: str | None) -> tuple[str, list[str]]:
        info = _call_hub(repo_id, lambda: huggingface_hub.HfApi().dataset_info(repo_id, revision=at))
        return str(info.sha), [entry.rfilename for entry in info.siblings or []]

    commit, files = list_at(revision)
    if revision is None and not any(name.endswith(".parquet") for name in files):
        return list_at(CONVERTED_REVISION)
    return commit, files


def _download(repo_id: str, file: str, revision: str) -> Path:
    def fetch() -> str:
        return huggingface_hub.hf_hub_download(repo_id, file, repo_type="dataset", revision=revision)

    return Path(_call_hub(repo_id, fetch))


def _call_hub(repo_id: str, call: Callable[[], Any]) -> Any:
    """Call the hub and turn any error into one line."""
    try:
        return call()
    except huggingface_hub.errors.HFValidationError:
        raise UsageError(f"dataset: {excerpt(repo_id)} is not a hub name. Write hub:owner/name.") from None
    except huggingface_hub.errors.GatedRepoError:
        raise ExegesisError(f"hub:{repo_id}: is gated. Accept its terms on the hub and log in.") from None
    except huggingface_hub.errors.RevisionNotFoundError:
        raise ExegesisError(
            f"hub:{repo_id}: has no parquet files at that revision. Download it as CSV or JSONL."
        ) from None
    except huggingface_hub.errors.RepositoryNotFoundError:
        raise ExegesisError(f"hub:{repo_id}: is not on the hub, or is private. Check the name, or log in.") from None
    # The hub's client has changed its transport library more than once, and with it the error classes.
    except Exception as error:
        raise ExegesisError(
            f"hub:{repo_id}: the hub cannot be reached ({type(error).__name__}). "
            "Check the network, or name a local folder or file instead."
        ) from None
