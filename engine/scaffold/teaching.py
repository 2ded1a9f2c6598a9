"""Teaching one student: passes over its examples, early stopping, the best kept; goes on after a kill."""

from __future__ import annotations

import math
import random
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
import torch

from engine import runtime
from engine.models.classifier import AnyClassifier
from engine.progress import Report, check_cancelled
from engine.scaffold import bilevel
from engine.scaffold.bilevel import Objective, Rates
from engine.scaffold.lessons import Taught
from engine.scaffold.normalising import normalisation
from engine.scaffold.plan import ATTENTION, NONE, SMAT, Pupil, Recipe
from engine.scaffold.simulability import simulability
from engine.scaffold.student import Student, head_count
from engine.training.checkpoint import CheckpointFolder
from engine.training.loop import plan_batches as batches_of

Tensors = dict[str, torch.Tensor]
ROWS = 64
"""Examples that a student answers at once."""


@dataclass(frozen=True, eq=False)
class Course:
    """All that a student is taught from and measured on: four disjoint splits with what the teacher says of them."""

    base: AnyClassifier
    train: Taught
    held_out: Taught
    validation: Taught
    test: Taught
    outputs: int
    regression: bool


@dataclass
class Position:
    """Where the teaching stands; everything but tensors."""

    epoch: int = 0
    steps: int = 0
    best_epoch: int = -1
    best: float = -math.inf
    seconds: float = 0.0
    stopped: str = ""
    history: list[dict[str, Any]] = field(default_factory=list)


@dataclass(frozen=True, eq=False)
class Lived:
    """How a teaching went. `phi`: the learned coefficients, None where the explainer is static."""

    simulability: float
    answers: np.ndarray
    phi: np.ndarray | None
    student_phi: np.ndarray | None
    at: Position


class Teaching:
    """One student and, in the setting `smat`, the explainer that learns to teach it."""

    def __init__(self, course: Course, pupil: Pupil, recipe: Recipe) -> None:
        self.course, self.pupil, self.recipe = course, pupil, recipe
        last = pupil.setting == ATTENTION[1]
        self.student = Student(course.base, course.outputs, pupil.seed, last)
        normalise = normalisation(recipe.normalisation)
        self.objective = Objective(normalise, recipe.beta(pupil.setting), course.regression, recipe.soft_targets)
        self.rates = Rates(recipe.inner_rate, recipe.outer_rate, recipe.clip)
        count = head_count(course.base)
        own = count // len(course.base.blocks) if last else count
        self.phi_s = None if pupil.setting == NONE else self._uniform(own).requires_grad_()
        self.phi_t = self._uniform(count).requires_grad_() if pupil.setting == SMAT else None
        learned = [] if self.phi_t is None else [self.phi_t]
        self.optimizer = torch.optim.AdamW(learned, recipe.outer_rate, weight_decay=0.0) if learned else None
        self.weights = self.student.learning
        self.best: Tensors = {}
        self.at = Position()

    def run(self, folder: CheckpointFolder | None, report: Report) -> Lived:
        """Teaches until nothing is gained any more; goes on from the checkpoint in `folder` if there is one."""
        if not self._resume(folder):
            self._keep(self._validated())  # what is taught must be better than not being taught
        while not self.at.stopped:
            self._epoch(report)
            if folder is not None:
                self._save(folder)
        return self._measured()

    def _epoch(self, report: Report) -> None:
        began = time.perf_counter()
        losses, outers = [], []
        for number, (inner, outer) in enumerate(self._batches()):
            check_cancelled()
            runtime.lend()
            loss, outer_loss = self._step(inner, outer)
            losses.append(loss)
            outers += [] if outer_loss is None else [outer_loss]
            wrong = [value for value in (loss, outer_loss) if value is not None and not math.isfinite(value)]
            if wrong:
                self.at.stopped = f"diverged: the loss became {wrong[0]} in step {self.at.steps + 1}"
                return
            self.at.steps += 1
            report(self.at.epoch, self.recipe.epochs, f"{self.pupil}, pass {self.at.epoch + 1}, step {number + 1}")
        self._close(losses, outers, time.perf_counter() - began)

    def _step(self, inner: Sequence[int], outer: Sequence[int]) -> tuple[float, float | None]:
        course = self.course
        lesson = course.train.lesson(inner, course.base)
        loss = bilevel.inner_step(self.student, self.phi_s, lesson, self.objective, self.rates, self.phi_t)
        if self.phi_t is None or self.phi_s is None or self.optimizer is None:
            return loss.item(), None
        held = course.held_out.lesson(outer, course.base)
        gradient, outer_loss = bilevel.outer_gradient(
            self.student, self.phi_s, self.phi_t, lesson, held, self.objective, self.rates
        )
        (self.phi_t.grad,) = bilevel.clipped([gradient], self.rates.clip).gradients
        if torch.isfinite(gradient).all():
            self.optimizer.step()
        return loss.item(), outer_loss.item()

    def _batches(self) -> list[tuple[list[int], list[int]]]:
        """Batches of this pass, each with one of the held-out examples, in an order that hangs on seed and pass."""
        size, seed, epoch = self.recipe.batch_size, self.pupil.seed, self.at.epoch
        inner = batches_of(self.course.train.lengths, size, seed, epoch)
        draw = random.Random(f"{seed}/{epoch}/held out")
        places = range(len(self.course.held_out))
        return [(batch, draw.sample(places, min(size, len(places)))) for batch in inner]

    def _close(self, losses: list[float], outers: list[float], seconds: float) -> None:
        began = time.perf_counter()
        score, at = self._validated(), self.at
        at.seconds += seconds + time.perf_counter() - began
        outer = float(np.mean(outers)) if outers else None
        row = {"epoch": at.epoch, "loss": float(np.mean(losses)), "outer": outer, "validation": score}
        at.history.append(row)
        if score is not None and score > at.best:
            at.best_epoch = at.epoch
            self._keep(score)
        at.epoch += 1
        if at.epoch - 1 - at.best_epoch >= self.recipe.patience:
            at.stopped = "patience"
        elif at.epoch >= self.recipe.epochs:
            at.stopped = "epochs"

    def _validated(self) -> float | None:
        course = self.course
        return simulability(self.answers(course.validation), course.validation.answers, course.regression)

    def _keep(self, score: float | None) -> None:
        self.at.best = -math.inf if score is None else score
        self.best = {name: tensor.detach().clone() for name, tensor in self._state().items()}

    def answers(self, taught: Taught) -> np.ndarray:
        """The student's logits."""
        made = []
        with torch.no_grad():
            for start in range(0, len(taught), ROWS):
                lesson = taught.lesson(range(start, min(len(taught), start + ROWS)), self.course.base)
                made.append(self.student(lesson).logits.double().cpu().numpy())
        return np.concatenate(made)

    def _measured(self) -> Lived:
        self._restore(self.best)
        found = self.answers(self.course.test)
        score = simulability(found, self.course.test.answers, self.course.regression)
        return Lived(
            math.nan if score is None else score,
            found,
            None if self.phi_t is None else self.phi_t.detach().double().cpu().numpy(),
            None if self.phi_s is None else self.phi_s.detach().double().cpu().numpy(),
            self.at,
        )

    def _state(self) -> Tensors:
        named = {"phi_s": self.phi_s, "phi_t": self.phi_t}
        return {**self.weights, **{name: tensor for name, tensor in named.items() if tensor is not None}}

    def _restore(self, tensors: Tensors) -> None:
        state = self._state()
        with torch.no_grad():
            for name, tensor in tensors.items():
                state[name].copy_(tensor)

    def _save(self, folder: CheckpointFolder) -> None:
        groups: dict[str, Tensors] = {"now": self._state(), "best": self.best, "moments": self._moments()}
        folder.save({"at": asdict(self.at)}, {name: tensors for name, tensors in groups.items() if tensors})

    def _resume(self, folder: CheckpointFolder | None) -> bool:
        found = None if folder is None else folder.load()
        if found is None:
            return False
        state, groups = found
        self.at = Position(**state["at"])
        self.best = {name: tensor.to(self.course.base.device) for name, tensor in groups.get("best", {}).items()}
        self._restore(groups["now"])
        if self.optimizer is not None and self.phi_t is not None and "moments" in groups:
            self.optimizer.state[self.phi_t] = {
                name: tensor if name == "step" else tensor.to(self.phi_t.device)
                for name, tensor in groups["moments"].items()
            }
        return True

    def _moments(self) -> Tensors:
        if self.optimizer is None or self.phi_t is None:
            return {}
        return dict(self.optimizer.state.get(self.phi_t, {}))

    def _uniform(self, count: int) -> torch.Tensor:
        base = self.course.base
        return torch.full((count,), 1 / count, dtype=base.dtype, device=base.device)
