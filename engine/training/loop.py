"""Training loop: batches by length, learning rate, running average, evaluation, early stopping, and checkpoints."""

from __future__ import annotations

import contextlib
import json
import math
import os
import random
import shutil
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch.nn import functional

from engine.errors import Cancelled, ExegesisError, UsageError
from engine.progress import CancelToken, Report
from engine.runtime import out_of_memory
from engine.training.config import LoopConfig

Tensors = dict[str, torch.Tensor]
WINDOW = 50
"""Number of batches sorted by length together: large enough to save padding, small enough to stay random."""
EVALUATION_BATCH = 64
"""Examples per batch in evaluations."""
STATE = "state.json"
LOSS = "loss (nats per token)"
"""The metric of pre-trainings; its exponential is the perplexity."""


@runtime_checkable
class TrainingSet(Protocol):
    """Examples by index, with a length and a label each."""

    @property
    def labels(self) -> list[float]: ...

    @property
    def lengths(self) -> list[int]: ...

    def __len__(self) -> int: ...

    def batch(self, indices: Sequence[int], device: torch.device) -> Tensors: ...


@dataclass(frozen=True)
class SplitScore:
    """Score on a split: accuracy in [0, 1], Pearson's correlation in [-1, 1], or the loss of a pre-training in nats.

    `count`: the number of examples.
    """

    metric: str
    value: float
    count: int


@dataclass(frozen=True)
class EpochRecord:
    """Result of an epoch: mean loss in nats (or squared error), score on the held-out part, seconds so far."""

    epoch: int
    loss: float
    held_out: float
    seconds: float


@dataclass
class LoopState:
    """State of the loop that a resumed run needs, except tensors."""

    epoch: int = 0
    batch: int = 0
    step: int = 0
    loss_sum: float = 0.0
    seconds: float = 0.0
    best_epoch: int = -1
    history: list[dict[str, Any]] = field(default_factory=list)


class CheckpointFolder:
    """A folder with the latest state: safetensors files, and one JSON file that is replaced last.

    Tensor files are written under new names before state.json refers to them, so an interruption keeps the old state.
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


class TrainingLoop:
    """Training of `module` in place. `run` returns the best weights by held-out score and leaves a checkpoint.

    `identity`: everything that affects the weights; a checkpoint with another identity is refused.
    """

    def __init__(
        self,
        module: torch.nn.Module,
        data: TrainingSet,
        held_out: TrainingSet,
        config: LoopConfig,
        regression: bool,
        identity: Mapping[str, Any],
    ) -> None:
        self.module, self.data, self.held_out = module, data, held_out
        self.config, self.regression, self.identity = config, regression, dict(identity)
        self.device = next(module.parameters()).device
        self.weights = {n: p for n, p in module.named_parameters() if p.requires_grad}
        self.optimizer = adamw(self.weights.items(), config.learning_rate, config.weight_decay)
        self.average = {n: p.detach().clone() for n, p in self.weights.items()} if config.average else {}
        self.best: Tensors = {}
        self.state = LoopState()
        self.lengths = data.lengths
        self.total = -(-len(data) // config.batch_size) * config.epochs

    def run(self, folder: CheckpointFolder, report: Report, cancel: CancelToken) -> Tensors:
        """Train, from the checkpoint in `folder` if there is one. Saves a checkpoint when cancelled."""
        self._resume(folder)
        while self.state.epoch < self.config.epochs and not self._is_patience_over():
            try:
                self._train_epoch(folder, report, cancel)
            except (MemoryError, RuntimeError) as error:
                if not out_of_memory(error):
                    raise
                raise ExegesisError(
                    f"batch_size: out of memory with {self.config.batch_size} examples per step. Use a smaller batch "
                    "and another --out."
                ) from error
            self._close_epoch(report)
            self.save(folder)
        return self.best

    def records(self) -> tuple[EpochRecord, ...]:
        return tuple(EpochRecord(**row) for row in self.state.history)

    def save(self, folder: CheckpointFolder) -> None:
        random_states = {"cpu": torch.get_rng_state()}
        if self.device.type == "cuda":
            random_states["cuda"] = torch.cuda.get_rng_state(self.device)
        optimizer = self.optimizer.state
        moments = {f"{n}|{k}": t for n, p in self.weights.items() for k, t in optimizer.get(p, {}).items()}
        groups: dict[str, Tensors] = {"model": dict(self.weights), "optimizer": moments, "random": random_states}
        optional = {"average": self.average, "best": self.best}
        groups |= {name: tensors for name, tensors in optional.items() if tensors}
        folder.save({"identity": self.identity, "at": asdict(self.state)}, groups)

    def _resume(self, folder: CheckpointFolder) -> None:
        checkpoint = folder.load()
        if checkpoint is None:
            return
        state, groups = checkpoint
        differing = sorted(name for name in self.identity if state["identity"].get(name) != self.identity[name])
        if differing:
            raise UsageError(
                f"out: holds a checkpoint of a run with another {', '.join(differing)}. "
                "Use the same settings to resume, or another folder."
            )
        self.state = LoopState(**state["at"])
        copy_weights(self.weights, groups["model"])
        copy_weights(self.average, groups.get("average", {}))
        self.best = {n: t.to(self.device) for n, t in groups.get("best", {}).items()}
        for key, tensor in groups["optimizer"].items():
            name, _, kind = key.rpartition("|")
            # Adam's step counter stays on the CPU, the moments on the device of their weights.
            self.optimizer.state[self.weights[name]][kind] = tensor.to("cpu" if kind == "step" else self.device)
        torch.set_rng_state(groups["random"]["cpu"])
        if self.device.type == "cuda" and "cuda" in groups["random"]:  # absent if the run started on a CPU
            torch.cuda.set_rng_state(groups["random"]["cuda"], self.device)

    def _train_epoch(self, folder: CheckpointFolder, report: Report, cancel: CancelToken) -> None:
        batches = plan_batches(self.lengths, self.config.batch_size, self.config.seed, self.state.epoch)
        self.module.train()
        while self.state.batch < len(batches):
            try:
                cancel.check()
            except Cancelled:
                self.save(folder)
                raise
            began = time.perf_counter()
            self._train_step(batches[self.state.batch])
            self.state.seconds += time.perf_counter() - began
            report(self.state.step, self.total, f"epoch {self.state.epoch + 1} of {self.config.epochs}")
            if self.state.step % self.config.checkpoint_steps == 0 and self.state.batch < len(batches):
                self.save(folder)

    def _train_step(self, indices: list[int]) -> None:
        for group in self.optimizer.param_groups:
            group["lr"] = self.config.learning_rate * self._rate()
        loss = self._loss(indices)
        number = loss.item()
        if not math.isfinite(number):
            raise ExegesisError(
                f"learning_rate: the loss became {number} at step {self.state.step + 1} with "
                f"{self.config.learning_rate:g}. Use a lower rate and another --out."
            )
        self.state.loss_sum += number
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()
        if self.config.clip:
            torch.nn.utils.clip_grad_norm_(self.weights.values(), self.config.clip)
        self.optimizer.step()
        # The decay starts smaller, so that the average forgets the untrained head.
        decay = min(self.config.average, (1 + self.state.step) / (10 + self.state.step))
        for name, average in self.average.items():
            average.lerp_(self.weights[name].detach(), 1 - decay)
        self.state.step += 1
        self.state.batch += 1

    def _rate(self) -> float:
        """Return the learning rate factor at this step."""
        return warmup_linear(self.state.step, self.total, self.config.warmup)

    def _inputs(self, indices: list[int]) -> Tensors:
        """Return the inputs of the module in a training step."""
        return self.data.batch(indices, self.device)

    def _loss(self, indices: list[int]) -> torch.Tensor:
        labels = label_tensor(self.data, indices, self.regression, self.device)
        with self._arithmetic():
            logits = self.module(**self._inputs(indices)).logits
        if self.regression:
            return functional.mse_loss(logits[:, 0].float(), labels)
        return functional.cross_entropy(logits.float(), labels, label_smoothing=self.config.label_smoothing)

    def _arithmetic(self) -> contextlib.AbstractContextManager[None]:
        low = self.config.precision == "bfloat16"
        return torch.autocast(self.device.type, torch.bfloat16) if low else contextlib.nullcontext()

    def _close_epoch(self, report: Report) -> None:
        began, state = time.perf_counter(), self.state
        candidate = round_to_stored(self.average or self.weights, self.config)
        with swap_weights(self.weights, candidate):
            score = self._score()
        loss = state.loss_sum / state.batch
        state.seconds += time.perf_counter() - began
        state.history.append(asdict(EpochRecord(state.epoch, loss, score, round(state.seconds, 1))))
        if state.best_epoch < 0 or score > state.history[state.best_epoch]["held_out"]:
            state.best_epoch, self.best = state.epoch, candidate
        label = f"epoch {state.epoch + 1}: loss {loss:.4f}, held-out {score:.4f}"
        state.epoch, state.batch, state.loss_sum = state.epoch + 1, 0, 0.0
        report(state.step, self.total, label)

    def _score(self) -> float:
        """Return the score on the held-out part; higher is better."""
        return evaluate(self.module, self.held_out, self.regression).value

    def _is_patience_over(self) -> bool:
        return self.state.best_epoch >= 0 and self.state.epoch - 1 - self.state.best_epoch >= self.config.patience


@contextlib.contextmanager
def swap_weights(weights: dict[str, Any], candidate: Tensors) -> Iterator[None]:
    """Temporarily replace the weights by `candidate`."""
    old = {name: parameter.detach().clone() for name, parameter in weights.items()}
    try:
        copy_weights(weights, candidate)
        yield
    finally:
        copy_weights(weights, old)


def round_to_stored(weights: dict[str, Any], config: LoopConfig) -> Tensors:
    """Copy the weights, rounded to the precision in which they are stored."""
    copies = {name: tensor.detach().clone() for name, tensor in weights.items()}
    if config.stored_half:
        return {name: tensor.to(torch.float16).to(tensor.dtype) for name, tensor in copies.items()}
    return copies


def copy_weights(weights: dict[str, Any], source: Mapping[str, torch.Tensor]) -> None:
    """Copy the tensors of `source` into the weights of the same names."""
    with torch.no_grad():
        for name, tensor in source.items():
            weights[name].copy_(tensor)


def plan_batches(lengths: Sequence[int], batch_size: int, seed: int, epoch: int) -> list[list[int]]:
    """Plan the batches of an epoch: indices are shuffled, sorted by length within windows, and batches shuffled.

    The order depends on seed and epoch only.
    """
    generator = random.Random(f"{seed}/{epoch}")
    order = list(range(len(lengths)))
    generator.shuffle(order)
    batches: list[list[int]] = []
    for start in range(0, len(order), batch_size * WINDOW):
        window = sorted(order[start : start + batch_size * WINDOW], key=lambda i: lengths[i])
        batches += [window[i : i + batch_size] for i in range(0, len(window), batch_size)]
    generator.shuffle(batches)
    return batches


def label_tensor(data: TrainingSet, indices: Sequence[int], regression: bool, device: torch.device) -> torch.Tensor:
    """Return the labels of the examples: scores as float32, or class indices as int64."""
    dtype = torch.float32 if regression else torch.int64
    return torch.tensor([data.labels[i] for i in indices], device=device).to(dtype)


def warmup_linear(step: int, total: int, warmup: float) -> float:
    """Return the learning rate factor in [0, 1] at `step` (0-based): linear warm-up, then linear decay.

    The warm-up takes `warmup * total` steps; the factor of step 0 is not 0. Source: thesis, section 3.1, with a warm-up
    over 6% of the steps.
    """
    rising = max(1, round(warmup * total)) if warmup > 0 else 0
    if step < rising:
        return (step + 1) / rising
    return max(0.0, (total - step) / max(1, total - rising))


def warmup_cosine(step: int, total: int, warmup: float) -> float:
    """Return the learning rate factor in [0, 1] at `step` (0-based): warm-up as in `warmup_linear`, then cosine."""
    rising = max(1, round(warmup * total)) if warmup > 0 else 0
    if step < rising:
        return (step + 1) / rising
    return 0.5 * (1 + math.cos(math.pi * min(1.0, (step - rising) / max(1, total - rising))))


def adamw(
    parameters: Iterable[tuple[str, torch.nn.Parameter]], learning_rate: float, decay: float
) -> torch.optim.AdamW:
    """Create AdamW without weight decay of vectors (biases, layer norms). Keeps the order of parameters."""
    named = [(name, p) for name, p in parameters if p.requires_grad]
    groups = [
        {"params": [p for _, p in named if p.ndim > 1], "weight_decay": decay},
        {"params": [p for _, p in named if p.ndim <= 1], "weight_decay": 0.0},
    ]
    return torch.optim.AdamW([g for g in groups if g["params"]], lr=learning_rate, foreach=True)


@contextlib.contextmanager
def evaluation_mode(module: torch.nn.Module) -> Iterator[None]:
    """Run the block in eval mode without gradients, then restore the mode."""
    training = module.training
    module.eval()
    try:
        with torch.inference_mode():
            yield
    finally:
        module.train(training)


def sorted_batches(lengths: Sequence[int], size: int) -> list[list[int]]:
    """Group indices into batches of similar length, shortest first."""
    order = sorted(range(len(lengths)), key=lambda i: lengths[i])
    return [order[start : start + size] for start in range(0, len(order), size)]


def evaluate(module: torch.nn.Module, data: TrainingSet, regression: bool) -> SplitScore:
    """Return the accuracy on `data`, or Pearson's correlation for a regression head, in eval mode."""
    device, batches = next(module.parameters()).device, sorted_batches(data.lengths, EVALUATION_BATCH)
    with evaluation_mode(module):
        rows = [module(**data.batch(indices, device)).logits.float().cpu().numpy() for indices in batches]
    logits, labels = np.concatenate(rows)[np.argsort(np.concatenate(batches))], np.array(data.labels)
    if regression:
        return SplitScore("pearson", pearson(logits[:, 0], labels), len(data))
    return SplitScore("accuracy", float((logits.argmax(1) == labels).mean()), len(data))


def pearson(a: np.ndarray, b: np.ndarray) -> float:
    """Return Pearson's correlation, or 0 if it is undefined because one side is constant."""
    x, y = a.astype(np.float64) - a.mean(), b.astype(np.float64) - b.mean()
    scale = float(np.sqrt((x @ x) * (y @ y)))
    return float(x @ y) / scale if scale > 0 else 0.0
