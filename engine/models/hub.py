"""Checkpoints from the hub: safetensors, JSON and vocabularies only, so nothing that could run code."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from engine.errors import ExegesisError, shown

FILES = ("*.json", "*.safetensors", "*.txt", "*.model")


def snapshot(name: str, revision: str = "", *, argument: str, instead: str, files: Sequence[str] = FILES) -> Path:
    """The folder of the repository's files at `revision`, fetched where they are not here yet.

    The error names the `argument` and what to do `instead`.
    """
    from huggingface_hub import snapshot_download

    try:
        return Path(snapshot_download(name, revision=revision or None, allow_patterns=list(files)))
    except Exception as error:
        raise ExegesisError(
            f"{argument}: {shown(name)} is neither embedded nor a folder, and it cannot be fetched from the hub "
            f"({type(error).__name__}). Check the name and the network, or {instead}."
        ) from error


def fetched_before(name: str, files: Sequence[str] = FILES) -> Path | None:
    """The same folder where it is here already; asks no network."""
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import LocalEntryNotFoundError

    try:
        return Path(snapshot_download(name, allow_patterns=list(files), local_files_only=True))
    except LocalEntryNotFoundError:
        return None
