"""Steps of every training: train, store the best epoch, evaluate the stored model, write the card."""

from __future__ import annotations

import contextlib
import os
import platform
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

import torch

from engine import runtime
from engine.errors import UsageError, not_allowed
from engine.models.weight_files import weights_sha256
from engine.progress import CancelToken, Report
from engine.training.cards import write_card
from engine.training.config import LoopConfig
from engine.training.loop import CheckpointFolder, EpochRecord, SplitScore, TrainingLoop, copy_weights

WEIGHTS_LICENCE = "Apache-2.0"
CHECKPOINT = "checkpoint"
"""The folder of the checkpoint in the output folder."""
ConfigT = TypeVar("ConfigT", bound=LoopConfig)


@dataclass(frozen=True)
class TrainResult:
    """Result of a training: its folder, the records of all epochs, and the scores of the stored model."""

    out: Path
    history: tuple[EpochRecord, ...]
    best_epoch: int
    seconds: float
    scores: Mapping[str, SplitScore]
    card: Mapping[str, Any]


class TrainingRecipe(ABC, Generic[ConfigT]):
    """Base class of trainings. Subclasses read their data in `__init__` and define the steps below.

    `kind` and `labels` are for the card. `score_sign` converts the loop's score, where higher is better, to the metric.
    """

    kind: str
    metric: str = "accuracy"
    labels: tuple[str, ...] = ()
    regression = False
    score_sign = 1
    out: Path

    def __init__(self, config: ConfigT, report: Report, cancel: CancelToken | None) -> None:
        self.config, self.report, self.cancel = config, report, cancel or CancelToken()
        self.device = torch.device(select_device(config.device))

    @abstractmethod
    def new_loop(self) -> TrainingLoop:
        """Create the loop, with a new module."""

    @abstractmethod
    def store(self, module: Any) -> None:
        """Write the weights and everything needed to load them."""

    @abstractmethod
    def measure(self, loop: TrainingLoop) -> dict[str, SplitScore]:
        """Evaluate the stored weights by split."""

    @abstractmethod
    def facts(self, module: Any) -> dict[str, Any]:
        """Facts for the card about base, data, use and limits, and the shape of new models."""

    @abstractmethod
    def sizes(self) -> dict[str, int]:
        """Number of examples by part: train, held_out, dropped."""

    def training_mode(self, module: Any) -> contextlib.AbstractContextManager[None]:
        """Context manager around the loop."""
        return contextlib.nullcontext()

    def run(self) -> TrainResult:
        """Train, store the best epoch by the score on held-out training examples, and evaluate the stored model."""
        with torch.random.fork_rng(devices=[self.device] if self.device.type == "cuda" else []):
            torch.manual_seed(self.config.seed)
            loop = self.new_loop()
            folder = CheckpointFolder(self.out / CHECKPOINT)
            with self.training_mode(loop.module):
                best = loop.run(folder, self.report, self.cancel)
            copy_weights(loop.weights, best)
            self.store(loop.module)
            self.report(loop.state.step, loop.total, "measuring the stored model")
            scores = self.measure(loop)
            card = self._card(loop, scores)
            write_card(self.out, card)
            folder.remove()
            return TrainResult(self.out, loop.records(), loop.state.best_epoch, loop.state.seconds, scores, card)

    def precision(self) -> dict[str, str]:
        """Precision of the stored weights for the card; empty if the card does not state it."""
        return {"precision": "float16" if self.config.stored_half else "float32"}

    def _card(self, loop: TrainingLoop, scores: Mapping[str, SplitScore]) -> dict[str, Any]:
        history = [asdict(record) | {"held_out": self.score_sign * record.held_out} for record in loop.records()]
        return {
            "title": self.out.resolve().name,
            "kind": self.kind,
            **self.facts(loop.module),
            "licence": WEIGHTS_LICENCE,
            "labels": list(self.labels),
            "regression": self.regression,
            "command": self.config.command(),
            "settings": asdict(self.config) | {"out": self.out.name},
            "seconds": round(loop.state.seconds, 1),
            "machine": device_name(self.device),
            "sizes": self.sizes(),
            "metric": self.metric,
            "history": history,
            "best_epoch": loop.state.best_epoch,
            "scores": {name: asdict(score) for name, score in scores.items()},
            "sha256": weights_sha256(self.out),
            "bytes": sum(file.stat().st_size for file in self.out.glob("*.safetensors")),
            **self.precision(),
        }


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


def select_device(name: str) -> str:
    """Resolve `auto` (`EXEGESIS_DEVICE`, else the best device) or a device name. Errors: it is not available."""
    available = {"cpu": True, "cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available()}
    if name == "auto" and os.environ.get("EXEGESIS_DEVICE"):
        return str(runtime.device())
    if name == "auto":
        return next(kind for kind in ("cuda", "mps", "cpu") if available[kind])
    if not available.get(name):
        raise not_allowed("device", "one of " + ", ".join(k for k, ok in available.items() if ok), name)
    return name


def device_name(device: torch.device) -> str:
    """Description of the device for the card."""
    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    threads = min(cores or 1, torch.get_num_threads())
    return f"{threads} CPU thread{'s' if threads > 1 else ''} ({platform.machine()})"
