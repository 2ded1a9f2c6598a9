"""Reading, validating and hashing the files of a checkpoint, before anything is loaded."""

from __future__ import annotations

import fnmatch
import functools
import hashlib
import json
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from engine.errors import ExegesisError

PROCESSOR = "preprocessor_config.json"
"""File with the preprocessing of an image model; text models have none."""
NESTED_PROCESSOR = ("processor_config.json", "image_processor")
"""File and key of the image preprocessing of a model that also reads texts."""
PICKLES = ("*.bin", "*.pt", "*.pth", "*.pkl", "*.ckpt")
VOCABULARIES = ("tokenizer.json", "vocab*", "*.model")
"""Vocabulary files of a tokenizer. Without any, transformers creates a tokenizer that reads every word as unknown."""
MAX_SIZE, MAX_SIZES = 10_000_000, {"layer": 1_000, "label": 100_000}
"""Largest sizes allowed in a config.json: in general, and for names that contain a given part."""
IS_SIZE = re.compile(r"^(n|num|d|max)_|_(size|dim|length|layers?|heads?)$|^dim$|channels|positions|embeddings|layers")
REVISION_FILES = (
    "*.safetensors",
    "config.json",
    "adapter_config.json",
    "tokenizer*",
    "special_tokens_map.json",
    "added_tokens.json",
    "vocab*",
    "merges.txt",
    "*.model",
    "chat_template*",
    PROCESSOR,
    NESTED_PROCESSOR[0],
)
"""Files that affect a model's output."""
IS_REVISION_FILE = re.compile("|".join(map(fnmatch.translate, REVISION_FILES)))


def read_base_config(folder: Path) -> dict[str, Any]:
    """Read and validate the config.json of a checkpoint; remote code is refused."""
    file = folder / "config.json"
    if not file.is_file():
        raise ExegesisError(f"base: {folder} has no config.json, so it is no checkpoint. Give its folder.")
    try:
        config = json.loads(file.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise ExegesisError(f"base: {file} cannot be read as JSON ({error}). Download or save it again.") from error
    if not isinstance(config, dict):
        raise ExegesisError(f"base: {file} must be a JSON object, got {type(config).__name__}. Save it again.")
    check_config_sizes(f"base {folder}", config)
    if "auto_map" in config:
        raise ExegesisError(f"base: {folder} asks to run its own code, which is refused. Choose another base.")
    return config


def revision_files(folder: Path) -> list[Path]:
    """List the files of a folder that affect a model's output, by name."""
    # A single scan of the folder, since every cached result waits for it.
    with os.scandir(folder) as entries:
        names = [entry.name for entry in entries if IS_REVISION_FILE.match(entry.name) and entry.is_file()]
    return [folder / name for name in sorted(names)]


def check_config_sizes(where: str, config: Mapping[str, Any]) -> None:
    """Refuse sizes beyond those of any supported family, before anything of that size is allocated."""
    for name, value in config.items():
        if isinstance(value, dict) and name not in ("id2label", "label2id"):
            check_config_sizes(where, value)
        elif isinstance(value, dict) or (type(value) is int and IS_SIZE.search(name)):
            size, name = (len(value), "num_labels") if isinstance(value, dict) else (value, name)
            most = next((most for part, most in MAX_SIZES.items() if part in name), MAX_SIZE)
            least = -1 if name == "max_relative_positions" else 0  # DeBERTa's -1: as many as there are positions
            if not least <= size <= most:
                bound = f"at most {most:,}" if size > most else f"at least {least}"
                raise ExegesisError(f"{where}: in its config.json {name} must be {bound}, got {size}.")


def check_safetensors(model: str, folder: Path, wanted: str) -> None:
    """Refuse a folder without weights of the pattern `wanted`. `model`: its name, for the error."""
    if any(folder.glob(wanted)):
        return
    if any(any(folder.glob(p)) for p in PICKLES):
        raise ExegesisError(
            f"model {model}: it holds only a pickle checkpoint, which can run code when opened and is refused. "
            "Save it again with save_pretrained(..., safe_serialization=True)."
        )
    raise ExegesisError(f"model {model}: no weights ({wanted}) in the folder. Download or save it again.")


def has_vocabulary(folder: Path) -> bool:
    """Whether a folder holds the vocabulary of a tokenizer."""
    return any(any(folder.glob(pattern)) for pattern in VOCABULARIES)


def check_vocabulary(where: str, folder: Path) -> None:
    """Refuse a folder without a tokenizer. `where`: name of the checkpoint, for the error."""
    if not has_vocabulary(folder):
        raise ExegesisError(
            f"{where}: no tokenizer in the folder ({', '.join(VOCABULARIES)}), so every word would be unknown. Save it "
            "there with the tokenizer's save_pretrained."
        )


def read_json(model: str, file: Path) -> dict[str, Any]:
    """Read a JSON object of a checkpoint. `model`: its name, for the error."""
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise ExegesisError(f"model {model}: {file.name} cannot be read as JSON ({error}).") from error
    if not isinstance(content, dict):
        raise ExegesisError(f"model {model}: {file.name} must be a JSON object, got {type(content).__name__}.")
    return content


def weights_sha256(folder: Path) -> str:
    """SHA-256 of the folder's safetensors file, or of the hashes of several, sorted by name."""
    hashes = [file_sha256(file) for file in sorted(folder.glob("*.safetensors"))]
    return hashes[0] if len(hashes) == 1 else hashlib.sha256("".join(hashes).encode()).hexdigest()


def file_sha256(path: Path) -> str:
    """SHA-256 of a file as hex, memoized until the file's identity, size or modification time changes."""
    stat = path.stat()
    return _sha256(str(path), (stat.st_dev, stat.st_ino), stat.st_size, stat.st_mtime_ns)


@functools.lru_cache(maxsize=256)
def _sha256(path: str, file: tuple[int, int], size: int, modified: int) -> str:
    with open(path, "rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()
