"""Checkpoints that survive a kill at any moment: safetensors plus one JSON file that is replaced last."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file

STATE = "state.json"


class CheckpointFolder:
    """A folder with the newest state.

    Tensor files are written under new names, then state.json names them: a kill in between leaves the old state.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def save(self, state: Mapping[str, Any], tensors: Mapping[str, dict[str, torch.Tensor]]) -> None:
        """Stores plain `state` and named groups of tensors as one unit."""
        self.path.mkdir(parents=True, exist_ok=True)
        old = set(self.path.glob("*.safetensors"))
        turn = (self._read() or {}).get("turn", 0) + 1
        files = {group: f"{group}-{turn}.safetensors" for group in tensors}
        for group, name in files.items():
            _write_tensors(tensors[group], self.path / name)
        _write_text(json.dumps({**state, "turn": turn, "files": files}), self.path / STATE)
        for file in old:
            file.unlink(missing_ok=True)

    def load(self) -> tuple[dict[str, Any], dict[str, dict[str, torch.Tensor]]] | None:
        """The newest whole state, or None where there is none."""
        state = self._read()
        if state is None:
            return None
        try:
            groups = {group: load_file(self.path / name) for group, name in state["files"].items()}
        except (OSError, ValueError, KeyError, SafetensorError):
            return None
        return state, groups

    def remove(self) -> None:
        shutil.rmtree(self.path, ignore_errors=True)

    def _read(self) -> dict[str, Any] | None:
        try:
            return json.loads((self.path / STATE).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return None


def _write_tensors(tensors: dict[str, torch.Tensor], path: Path) -> None:
    partial = path.with_suffix(".partial")
    save_file({name: t.detach().cpu().contiguous().clone() for name, t in tensors.items()}, partial)
    os.replace(partial, path)


def _write_text(text: str, path: Path) -> None:
    partial = path.with_suffix(".partial")
    with open(partial, "w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    os.replace(partial, path)
