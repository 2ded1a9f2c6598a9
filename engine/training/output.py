"""The folder that a trained model is written to, checked before anything is read or computed."""

from __future__ import annotations

import tempfile
from pathlib import Path

from engine.errors import UsageError

CHECKPOINT = "checkpoint"
"""The folder in it that a stopped run goes on from."""


def output_folder(out: Path, base: Path | None = None) -> Path:
    """The folder, made and empty, or with the checkpoint of a run that was stopped.

    `base`: what is trained. Errors: it is a file, cannot be written, is the base, or holds something else.
    """
    if base is not None and out.resolve() == base.resolve():
        raise UsageError(f"out: {out} is the base itself, which would be overwritten. Give another folder.")
    if out.exists() and not out.is_dir():
        raise UsageError(f"out: must be a folder, got the file {out}.")
    try:
        out.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=out):
            names = sorted(file.name for file in out.iterdir())
    except OSError as error:
        raise UsageError(f"out: {out} cannot be written ({error.strerror}). Give another folder.") from None
    if names and CHECKPOINT not in names:
        raise UsageError(f"out: {out} holds files already ({names[0]}). Give an empty or a new folder.")
    return out
