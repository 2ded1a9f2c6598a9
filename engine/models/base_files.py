"""The files of pre-trained bases: where they lie, what they state, their hash. Nothing here loads a model."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from engine import access
from engine.errors import ExegesisError, UsageError, unknown
from engine.models import catalog, hub, minilm


def locate(base: str) -> Path:
    """The folder of a base: `minilm`, `bases/NAME`, a local folder, or a hub id, perhaps `@revision` (safetensors)."""
    if base == "minilm":
        return minilm.folder()
    if base in catalog.embedded_bases():
        return catalog.EMBEDDED / base
    if not base.strip():
        raise UsageError("base: must be `minilm`, a folder with a checkpoint or a hub id, got an empty name.")
    access.check_model(base)
    path = Path(base).expanduser()
    if path.is_dir():
        return path
    if base.startswith(catalog.OF_BASES):
        raise unknown("base", base, ["minilm", *catalog.embedded_bases()])
    if base.startswith((".", "/", "~")):
        raise UsageError(f"base: no such folder {base!r}. Give `minilm`, a hub id or a folder with a checkpoint.")
    name, _, pinned = base.partition("@")
    return hub.snapshot(name, pinned, argument="base", instead="give a local folder or `minilm`")


def read_config(path: Path) -> dict[str, Any]:
    """The checkpoint's config.json; one that asks for remote code is refused."""
    file = path / "config.json"
    if not file.is_file():
        raise ExegesisError(f"base: {path} has no config.json, so it is no checkpoint. Give its folder.")
    try:
        config = json.loads(file.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise ExegesisError(f"base: {file} cannot be read as JSON ({error}). Download or save it again.") from error
    catalog.check_config_sizes(f"base {path}", config)
    if "auto_map" in config:
        raise ExegesisError(f"base: {path} asks to run its own code, which is refused. Choose another base.")
    return config


def weights_sha256(path: Path) -> str:
    """SHA-256 over the checkpoint's safetensors (of their hashes, in name order, when there are several)."""
    hashes = [minilm.file_sha256(file) for file in sorted(path.glob("*.safetensors"))]
    return hashes[0] if len(hashes) == 1 else hashlib.sha256("".join(hashes).encode()).hexdigest()
