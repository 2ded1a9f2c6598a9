"""Output folder of a training, with checkpoints that stay intact if the process is killed at any time."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file

from engine.errors import UsageError

CHECKPOINT = "checkpoint"
"""The folder of the checkpoint in the output folder."""
STATE = "state.json"


def prepare_output_folder(out: Path, base: Path | None = None) -> Path:
    """Create the folder, or accept one that is empty or contains the checkpoint of an interrupted run.

    `base`: folder of the base model. Errors: `out` is a file, is not writable, is the base, or has other content.
    """
    if base is not None and out.resolve() == base.resolve():
        raise UsageError(f"out: {out} is the folder of the base, which would be overwritten. Choose another folder.")
    if out.exists() and not out.is_dir():
        raise UsageError(f"out: must be a folder, got the file {out}. Choose another path.")
    try:
        out.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=out):
            names = sorted(file.name for file in out.iterdir())
    except OSError as error:
        raise UsageError(f"out: {out} cannot be written ({error.strerror}). Choose another folder.") from None
    if names and CHECKPOINT not in names:
        raise UsageError(f"out: {out} already contains files ({names[0]}). Choose an empty or a new folder.")
    return out


class CheckpointFolder:
    """A folder with the latest state: safetensors, and one JSON file that is replaced last.

    Tensor files are written under new names before state.json refers to them, so an interruption leaves the old state.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def save(self, state: Mapping[str, Any], tensors: Mapping[str, dict[str, torch.Tensor]]) -> None:
        """Store the plain `state` and named groups of tensors as one unit."""
        self.path.mkdir(parents=True, exist_ok=True)
        old = set(self.path.glob("*.safetensors"))
        turn = (self._read_state() or {}).get("turn", 0) + 1
        files = {group: f"{group}-{turn}.safetensors" for group in tensors}
        for group, name in files.items():
            partial = (self.path / name).with_suffix(".partial")
            save_file({n: t.detach().cpu().contiguous().clone() for n, t in tensors[group].items()}, partial)
            os.replace(partial, self.path / name)
        partial = (self.path / STATE).with_suffix(".partial")
        with open(partial, "w", encoding="utf-8") as file:
            file.write(json.dumps({**state, "turn": turn, "files": files}))
            file.flush()
            os.fsync(file.fileno())
        os.replace(partial, self.path / STATE)
        for file_to_remove in old:
            file_to_remove.unlink(missing_ok=True)

    def load(self) -> tuple[dict[str, Any], dict[str, dict[str, torch.Tensor]]] | None:
        """Load the latest complete state: (state, tensors), or None if there is none."""
        state = self._read_state()
        if state is None:
            return None
        try:
            groups = {group: load_file(self.path / name) for group, name in state["files"].items()}
        except (OSError, ValueError, KeyError, SafetensorError):
            return None
        return state, groups

    def remove(self) -> None:
        shutil.rmtree(self.path, ignore_errors=True)

    def _read_state(self) -> dict[str, Any] | None:
        try:
            return json.loads((self.path / STATE).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return None
