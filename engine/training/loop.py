"""The training loop: steps, running average, evaluation, early stop and exact resumption."""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

import torch
from torch.nn import functional

from engine.errors import Cancelled, ExegesisError, UsageError
from engine.progress import CancelToken, Report
from engine.runtime import out_of_memory
from engine.training.batches import Examples, plan, targets
from engine.training.checkpoint import CheckpointFolder
from engine.training.config import LoopConfig
from engine.training.metrics import evaluate
from engine.training.schedule import adamw, warmup_linear

Tensors = dict[str, torch.Tensor]


@dataclass(frozen=True)
class EpochRecord:
    """What one epoch gave: mean loss in nats (or squared error), score on the held-out part, seconds so far."""

    epoch: int
    loss: float
    held_out: float
    seconds: float


@dataclass
class Position:
    """Where the loop stands; everything but tensors that a resumed run needs."""

    epoch: int = 0
    batch: int = 0
    step: int = 0
    loss_sum: float = 0.0
    seconds: float = 0.0
    best_epoch: int = -1
    history: list[dict[str, Any]] = field(default_factory=list)


class Loop:
    """Trains `module` in place. `run` returns the best weights by the held-out part and leaves a checkpoint.

    `identity` is what the weights depend on; a checkpoint of another identity is refused.
    """

    def __init__(
        self,
        module: torch.nn.Module,
        data: Examples,
        held_out: Examples,
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
        self.at = Position()
        self.lengths = data.lengths
        self.epoch_steps = -(-len(data) // config.batch_size)

    @property
    def total(self) -> int:
        return self.epoch_steps * self.config.epochs

    def run(self, folder: CheckpointFolder, report: Report, cancel: CancelToken) -> Tensors:
        """Goes on from the checkpoint in `folder` if there is one; on cancelling it leaves one."""
        self._resume(folder)
        while self.at.epoch < self.config.epochs and not self._stopped():
            try:
                self._epoch(folder, report, cancel)
            except (MemoryError, RuntimeError) as error:
                if not out_of_memory(error):
                    raise
                raise ExegesisError(
                    f"batch_size: memory ran out with {self.config.batch_size} examples a step. Give a lower one and "
                    "another --out."
                ) from error
            self._close_epoch(report)
            self.save(folder)
        return self.best

    def records(self) -> tuple[EpochRecord, ...]:
        return tuple(EpochRecord(**row) for row in self.at.history)

    def save(self, folder: CheckpointFolder) -> None:
        groups: dict[str, Tensors] = {
            "model": dict(self.weights),
            "optimizer": self._moments(),
            "random": self._random_state(),
        }
        optional = {"average": self.average, "best": self.best}
        groups |= {name: tensors for name, tensors in optional.items() if tensors}
        folder.save({"identity": self.identity, "at": asdict(self.at)}, groups)

    def _epoch(self, folder: CheckpointFolder, report: Report, cancel: CancelToken) -> None:
        batches = plan(self.lengths, self.config.batch_size, self.config.seed, self.at.epoch)
        self.module.train()
        while self.at.batch < len(batches):
            self._check(cancel, folder)
            began = time.perf_counter()
            self._step(batches[self.at.batch])
            self.at.seconds += time.perf_counter() - began
            report(self.at.step, self.total, f"epoch {self.at.epoch + 1} of {self.config.epochs}")
            if self.at.step % self.config.checkpoint_steps == 0 and self.at.batch < len(batches):
                self.save(folder)

    def _step(self, indices: list[int]) -> None:
        for group in self.optimizer.param_groups:
            group["lr"] = self.config.learning_rate * self._rate()
        loss = self._loss(indices)
        self.at.loss_sum += self._finite(loss.item())
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()
        if self.config.clip:
            torch.nn.utils.clip_grad_norm_(self.weights.values(), self.config.clip)
        self.optimizer.step()
        self._update_average()
        self.at.step += 1
        self.at.batch += 1

    def _rate(self) -> float:
        """Factor of the learning rate at this step."""
        return warmup_linear(self.at.step, self.total, self.config.warmup)

    def _inputs(self, indices: list[int]) -> Tensors:
        """What the module reads in a training step."""
        return self.data.batch(indices, self.device)

    def _loss(self, indices: list[int]) -> torch.Tensor:
        truth = targets(self.data, indices, self.regression, self.device)
        with self._arithmetic():
            logits = self.module(**self._inputs(indices)).logits
        if self.regression:
            return functional.mse_loss(logits[:, 0].float(), truth)
        return functional.cross_entropy(logits.float(), truth, label_smoothing=self.config.label_smoothing)

    def _arithmetic(self) -> contextlib.AbstractContextManager[None]:
        low = self.config.precision == "bfloat16"
        return torch.autocast(self.device.type, torch.bfloat16) if low else contextlib.nullcontext()

    def _finite(self, loss: float) -> float:
        if not math.isfinite(loss):
            raise ExegesisError(
                f"learning_rate: the loss became {loss} at step {self.at.step + 1} with {self.config.learning_rate:g}. "
                "Give a lower one and another --out."
            )
        return loss

    def _update_average(self) -> None:
        if not self.average:
            return
        # The early decay is smaller, so that the average forgets the fresh head.
        decay = min(self.config.average, (1 + self.at.step) / (10 + self.at.step))
        for name, parameter in self.weights.items():
            self.average[name].lerp_(parameter.detach(), 1 - decay)

    def _close_epoch(self, report: Report) -> None:
        began = time.perf_counter()
        candidate = as_shipped(self.average or self.weights, self.config)
        with swapped(self.weights, candidate):
            score = self._score()
        loss = self.at.loss_sum / self.at.batch
        self.at.seconds += time.perf_counter() - began
        self.at.history.append(asdict(EpochRecord(self.at.epoch, loss, score, round(self.at.seconds, 1))))
        if self.at.best_epoch < 0 or score > self._best_score():
            self.at.best_epoch, self.best = self.at.epoch, candidate
        label = f"epoch {self.at.epoch + 1}: loss {loss:.4f}, held-out {score:.4f}"
        self.at.epoch, self.at.batch, self.at.loss_sum = self.at.epoch + 1, 0, 0.0
        report(self.at.step, self.total, label)

    def _score(self) -> float:
        """How good the module is on the held-out part; higher is better."""
        return evaluate(self.module, self.held_out, self.regression).value

    def _best_score(self) -> float:
        return self.at.history[self.at.best_epoch]["held_out"]

    def _stopped(self) -> bool:
        return self.at.best_epoch >= 0 and self.at.epoch - 1 - self.at.best_epoch >= self.config.patience

    def _check(self, cancel: CancelToken, folder: CheckpointFolder) -> None:
        try:
            cancel.check()
        except Cancelled:
            self.save(folder)
            raise

    def _resume(self, folder: CheckpointFolder) -> None:
        found = folder.load()
        if found is None:
            return
        state, groups = found
        _require_same(state["identity"], self.identity)
        self.at = Position(**state["at"])
        _copy_into(self.weights, groups["model"])
        _copy_into(self.average, groups.get("average", {}))
        self.best = {n: t.to(self.device) for n, t in groups.get("best", {}).items()}
        self._restore_moments(groups["optimizer"])
        torch.set_rng_state(groups["random"]["cpu"])
        if self.device.type == "cuda" and "cuda" in groups["random"]:  # not where the run began on a CPU
            torch.cuda.set_rng_state(groups["random"]["cuda"], self.device)

    def _moments(self) -> Tensors:
        state = self.optimizer.state
        return {f"{n}|{k}": t for n, p in self.weights.items() for k, t in state.get(p, {}).items()}

    def _restore_moments(self, tensors: Tensors) -> None:
        for key, tensor in tensors.items():
            name, _, kind = key.rpartition("|")
            # Adam's step counter stays on the CPU, the moments live beside their weights.
            place = "cpu" if kind == "step" else self.device
            self.optimizer.state[self.weights[name]][kind] = tensor.to(place)

    def _random_state(self) -> Tensors:
        states = {"cpu": torch.get_rng_state()}
        if self.device.type == "cuda":
            states["cuda"] = torch.cuda.get_rng_state(self.device)
        return states


@contextlib.contextmanager
def swapped(weights: dict[str, Any], candidate: Tensors) -> Iterator[None]:
    """Puts `candidate` into the weights and restores the old values."""
    old = {name: parameter.detach().clone() for name, parameter in weights.items()}
    try:
        _copy_into(weights, candidate)
        yield
    finally:
        _copy_into(weights, old)


def as_shipped(weights: dict[str, Any], config: LoopConfig) -> Tensors:
    """A copy in the precision in which the artefact is stored."""
    copies = {name: tensor.detach().clone() for name, tensor in weights.items()}
    if config.stored_half:
        return {name: tensor.to(torch.float16).to(tensor.dtype) for name, tensor in copies.items()}
    return copies


def _copy_into(weights: dict[str, Any], source: Tensors) -> None:
    with torch.no_grad():
        for name, tensor in source.items():
            weights[name].copy_(tensor)


def _require_same(old: dict[str, Any], new: dict[str, Any]) -> None:
    differing = sorted(name for name in new if old.get(name) != new[name])
    if differing:
        raise UsageError(
            f"out: holds a checkpoint of a run with another {', '.join(differing)}. "
            "Give the same settings to go on, or another folder."
        )
