"""Train one student by SMaT's bi-level optimization, and estimate how long all students of a plan take.

A step (eq. 6 to 9) uses the exact gradient of its pilot step `θ(φ_T) = θ - η clip(∇_θ L_student(θ, φ_S, φ_T))`, which
depends on φ_T only through the mixed second derivative of the explainer loss. Let `v` be the gradient of the outer loss
at the pilot student, pulled back through the clipping. Then
`dL/dφ_T = η β mean_b sum_i (∂E_T,bi/∂φ_T) (v . ∇_θ log E_S,bi)`. One forward-mode pass computes the last factor for all
features at once, so nothing has to be differentiated twice. A training consists of passes over the examples, with early
stopping, the best state, and checkpoints to resume from.
"""

from __future__ import annotations

import contextlib
import math
import random
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, NamedTuple, TypeVar

import numpy as np
import torch
from jaxtyping import Float
from torch.func import functional_call, jvp
from torch.nn import functional

from engine import runtime
from engine.progress import Report, check_cancelled
from engine.scaffold.plan import ATTENTION, SMAT, UNEXPLAINED, Recipe, ScaffoldPlan, StudentRun, source_of, splits_of
from engine.scaffold.result import simulability
from engine.scaffold.student import (
    Projection,
    Student,
    StudentBatch,
    TeachingExamples,
    divergence,
    explanation,
    head_count,
    log_explanation,
    projection,
)
from engine.scaffold.training_sets import TrainingSetBuilder, TrainingSets, predict_logits
from engine.training.loop import CheckpointFolder, plan_batches

Tensors = Sequence[torch.Tensor]
NamedTensors = dict[str, torch.Tensor]


@dataclass(frozen=True)
class TeachingObjective:
    """The losses of student and explainers. `soft`: use the teacher's probabilities as targets, not only its class."""

    normalize: Projection
    beta: float
    regression: bool = False
    soft: bool = False

    def simulation(self, logits: Float[torch.Tensor, "batch label"], batch: StudentBatch) -> Float[torch.Tensor, ""]:
        """`L_sim`: cross-entropy in nats against the teacher's class, or the mean squared error of a score."""
        if self.regression:
            return functional.mse_loss(logits[:, 0], batch.teacher_logits[:, 0])
        target = batch.teacher_logits.softmax(-1) if self.soft else batch.teacher_logits.argmax(-1)
        return functional.cross_entropy(logits, target)

    def target_maps(self, batch: StudentBatch, phi_t: torch.Tensor | None) -> Float[torch.Tensor, "batch key"]:
        """`E_T`: the static maps, or the learned explainer's maps from the teacher's heads."""
        if phi_t is None:
            assert batch.maps is not None
            return batch.maps
        assert batch.heads is not None
        return explanation(self.normalize(phi_t), batch.heads, batch.features)


@dataclass(frozen=True)
class StepRates:
    """Rates of a step. `inner`, `outer`: learning rates of student and explainer. `clip`: maximum gradient norm."""

    inner: float = 5e-3
    outer: float = 5e-4
    clip: float = 5.0


class ClippedGradients(NamedTuple):
    """A clipped gradient. `norm`: its norm before clipping. `factor`: its scale factor, 1 if it was not clipped."""

    gradients: Tensors
    norm: torch.Tensor
    factor: torch.Tensor

    def pull_back(self, vector: Tensors) -> Tensors:
        """Return `J^T vector` for the Jacobian J of clipping; a clipped gradient removes the component along itself."""
        if self.factor == 1:
            return vector
        along = _dot(self.gradients, vector) / (self.factor * self.norm) ** 2  # the norm after clipping
        inside = torch._foreach_sub(list(vector), torch._foreach_mul(list(self.gradients), along))
        return torch._foreach_mul(inside, self.factor)


def clip_gradients(gradients: Tensors, most: float) -> ClippedGradients:
    """Clip the global norm of the gradients to `most`; 0: no clipping."""
    norm = torch.linalg.vector_norm(torch.stack(torch._foreach_norm(list(gradients))))
    factor = (most / norm).clamp(max=1) if most else torch.ones_like(norm)
    return ClippedGradients(torch._foreach_mul(list(gradients), factor), norm, factor)


def student_loss(
    student: Student,
    phi_s: torch.Tensor | None,
    batch: StudentBatch,
    objective: TeachingObjective,
    phi_t: torch.Tensor | None,
) -> Float[torch.Tensor, ""]:
    """Return `L_student` of eq. 3: `L_sim + β KL(E_T || E_S)`; without a student explainer, only `L_sim`."""
    output = student(batch, explain=phi_s is not None)
    loss = objective.simulation(output.logits, batch)
    if phi_s is None:
        return loss
    with torch.no_grad():
        target = objective.target_maps(batch, phi_t)
    student_map = log_explanation(objective.normalize(phi_s), output.heads, batch.features)
    return loss + objective.beta * divergence(target, student_map)


def inner_step(
    student: Student,
    phi_s: torch.Tensor | None,
    batch: StudentBatch,
    objective: TeachingObjective,
    rates: StepRates,
    phi_t: torch.Tensor | None,
) -> Float[torch.Tensor, ""]:
    """Eq. 6 and 7 in place: one SGD step on the student and, if there is one, its explainer. Returns the loss."""
    weights = [*trainable(student), *([] if phi_s is None else [phi_s])]
    loss = student_loss(student, phi_s, batch, objective, phi_t)
    gradients = clip_gradients(torch.autograd.grad(loss, weights), rates.clip).gradients
    with torch.no_grad():
        torch._foreach_add_(weights, list(gradients), alpha=-rates.inner)
    return loss.detach()


def outer_gradient(
    student: Student,
    phi_s: torch.Tensor,
    phi_t: torch.Tensor,
    inner: StudentBatch,
    outer: StudentBatch,
    objective: TeachingObjective,
    rates: StepRates,
) -> tuple[Float[torch.Tensor, "head"], Float[torch.Tensor, ""]]:
    """Eq. 8 and 9: `∇_φ_T L_sim(S_θ(φ_T))` on the held-out batch, and that loss. The student is left unchanged."""
    weights = trainable(student)
    step = clip_gradients(
        torch.autograd.grad(student_loss(student, phi_s, inner, objective, phi_t), weights), rates.clip
    )
    with _moved(weights, step.gradients, -rates.inner):
        loss = objective.simulation(student(outer).logits, outer)
        direction = step.pull_back(torch.autograd.grad(loss, weights))
    slope = _slope(student, phi_s.detach(), inner, objective, direction)
    leaf = phi_t.detach().requires_grad_()
    scale = rates.inner * objective.beta / len(slope)
    (gradient,) = torch.autograd.grad((objective.target_maps(inner, leaf) * slope).sum() * scale, leaf)
    return gradient, loss.detach()


def trainable(student: Student) -> list[torch.Tensor]:
    """Return the trainable weights θ of a student, in a fixed order."""
    return list(student.learning.values())


def _slope(
    student: Student, phi_s: torch.Tensor, batch: StudentBatch, objective: TeachingObjective, direction: Tensors
) -> Float[torch.Tensor, "batch key"]:
    """Return `v . ∇_θ log E_S` for each feature, by forward-mode differentiation up to the last attention layer."""
    pairs = zip(student.learning.items(), direction, strict=True)
    body = {name: (weight.detach(), by) for (name, weight), by in pairs if not name.startswith(("mix", "head."))}
    weights = objective.normalize(phi_s)

    def logs(values: NamedTensors) -> torch.Tensor:
        named = {f"student.{name}": value for name, value in values.items()}
        # T5 registers its embedding under two names: tying would restore the weights wrongly, and is not needed.
        heads = functional_call(_HeadsModule(student), named, (batch,), tie_weights=False)
        return log_explanation(weights, heads, batch.features)

    values, tangents = {n: p[0] for n, p in body.items()}, {n: p[1] for n, p in body.items()}
    return jvp(logs, (values,), (tangents,))[1].detach()


class _HeadsModule(torch.nn.Module):
    """A student as a module that returns only its head scores."""

    def __init__(self, student: Student) -> None:
        super().__init__()
        self.student = student

    def forward(self, batch: StudentBatch) -> torch.Tensor:
        return self.student.heads(batch)


@contextlib.contextmanager
def _moved(weights: list[torch.Tensor], by: Tensors, times: float) -> Iterator[None]:
    """Run the block with `times * by` added to the weights; afterwards they are restored exactly."""
    before = [weight.detach().clone() for weight in weights]
    try:
        with torch.no_grad():
            torch._foreach_add_(weights, list(by), alpha=times)
        yield
    finally:
        with torch.no_grad():
            torch._foreach_copy_(weights, before)


def _dot(left: Tensors, right: Tensors) -> torch.Tensor:
    return torch.stack([product.sum() for product in torch._foreach_mul(list(left), list(right))]).sum()


Result = TypeVar("Result")
ROWS = 64
"""Examples per forward pass without gradients."""
MEASURED_ON = 16
"""Number of examples on which an estimate times the teacher's outputs and the student's predictions."""


@dataclass
class TrainingPosition:
    """The progress of a training: its state apart from tensors."""

    epoch: int = 0
    steps: int = 0
    best_epoch: int = -1
    best: float = -math.inf
    seconds: float = 0.0
    stopped: str = ""
    history: list[dict[str, Any]] = field(default_factory=list)


@dataclass(frozen=True, eq=False)
class TrainingOutcome:
    """A finished training. `simulability`: None if it is undefined. `logits`: on the test examples.

    `phi`: the learned coefficients, None if the explainer is static.
    """

    simulability: float | None
    logits: np.ndarray
    phi: np.ndarray | None
    student_phi: np.ndarray | None
    position: TrainingPosition


class StudentTraining:
    """One student and, in the setting `smat`, the explainer that learns to teach it."""

    def __init__(self, sets: TrainingSets, run: StudentRun, recipe: Recipe) -> None:
        self.sets, self.run, self.recipe = sets, run, recipe
        last_only = run.setting == ATTENTION[1]
        self.student = Student(sets.base, sets.outputs, run.seed, last_only)
        self.objective = TeachingObjective(
            projection(recipe.normalisation), recipe.beta(run.setting), sets.regression, recipe.soft_targets
        )
        self.rates = StepRates(recipe.inner_rate, recipe.outer_rate, recipe.clip)
        count = head_count(sets.base)
        student_count = count // len(sets.base.blocks) if last_only else count
        self.phi_s = None if run.setting in UNEXPLAINED else self._uniform(student_count).requires_grad_()
        self.phi_t = self._uniform(count).requires_grad_() if run.setting == SMAT else None
        learned = [] if self.phi_t is None else [self.phi_t]
        self.optimizer = torch.optim.AdamW(learned, recipe.outer_rate, weight_decay=0.0) if learned else None
        self.weights = self.student.learning
        self.best: NamedTensors = {}
        self.position = TrainingPosition()

    def train(self, folder: CheckpointFolder | None, report: Report) -> TrainingOutcome:
        """Train until early stopping, from the checkpoint in `folder` if there is one."""
        if not self._resume(folder):
            self._keep_best(self._validate())  # a pass must be better than no training
        while not self.position.stopped:
            self._epoch(report)
            if folder is not None:
                self._save(folder)
        return self._measure()

    def _epoch(self, report: Report) -> None:
        began = time.perf_counter()
        losses, outers = [], []
        for number, (inner, outer) in enumerate(self._batches()):
            check_cancelled()
            runtime.lend()
            loss, outer_loss = self._step(inner, outer)
            losses.append(loss)
            outers += [] if outer_loss is None else [outer_loss]
            if wrong := [one for one in (loss, outer_loss) if one is not None and not math.isfinite(one)]:
                self.position.stopped = f"diverged: the loss became {wrong[0]} in step {self.position.steps + 1}"
                return
            self.position.steps += 1
            report(
                self.position.epoch,
                self.recipe.epochs,
                f"{self.run}, pass {self.position.epoch + 1}, step {number + 1}",
            )
        self._close(losses, outers, time.perf_counter() - began)

    def _step(self, inner: Sequence[int], outer: Sequence[int]) -> tuple[float, float | None]:
        sets = self.sets
        batch = sets.train.batch(inner, sets.base)
        loss = inner_step(self.student, self.phi_s, batch, self.objective, self.rates, self.phi_t)
        if self.phi_t is None or self.phi_s is None or self.optimizer is None:
            return loss.item(), None
        held = sets.held_out.batch(outer, sets.base)
        gradient, outer_loss = outer_gradient(
            self.student, self.phi_s, self.phi_t, batch, held, self.objective, self.rates
        )
        (self.phi_t.grad,) = clip_gradients([gradient], self.rates.clip).gradients
        if torch.isfinite(gradient).all():
            self.optimizer.step()
        return loss.item(), outer_loss.item()

    def _batches(self) -> list[tuple[list[int], list[int]]]:
        """Return this pass's batches, each with a batch of held-out examples; seed and pass determine the order."""
        size, seed, epoch = self.recipe.batch_size, self.run.seed, self.position.epoch
        inner = plan_batches(self.sets.train.lengths, size, seed, epoch)
        draw = random.Random(f"{seed}/{epoch}/held out")
        indices = range(len(self.sets.held_out))
        return [(batch, draw.sample(indices, min(size, len(indices)))) for batch in inner]

    def _close(self, losses: list[float], outers: list[float], seconds: float) -> None:
        began = time.perf_counter()
        score, position = self._validate(), self.position
        position.seconds += seconds + time.perf_counter() - began
        outer = float(np.mean(outers)) if outers else None
        row = {"epoch": position.epoch, "loss": float(np.mean(losses)), "outer": outer, "validation": score}
        position.history.append(row)
        if score is not None and score > position.best:
            position.best_epoch = position.epoch
            self._keep_best(score)
        position.epoch += 1
        if position.epoch - 1 - position.best_epoch >= self.recipe.patience:
            position.stopped = "patience"
        elif position.epoch >= self.recipe.epochs:
            position.stopped = "epochs"

    def _validate(self) -> float | None:
        sets = self.sets
        return simulability(self.predict(sets.validation), sets.validation.teacher_logits, sets.regression)

    def _keep_best(self, score: float | None) -> None:
        self.position.best = -math.inf if score is None else score
        self.best = {name: tensor.detach().clone() for name, tensor in self._state().items()}

    def predict(self, examples: TeachingExamples) -> np.ndarray:
        """Return the student's logits."""
        logits = []
        with torch.no_grad():
            for start in range(0, len(examples), ROWS):
                batch = examples.batch(range(start, min(len(examples), start + ROWS)), self.sets.base)
                logits.append(self.student(batch).logits.double().cpu().numpy())
        return np.concatenate(logits)

    def _measure(self) -> TrainingOutcome:
        self._restore(self.best)
        logits = self.predict(self.sets.test)
        return TrainingOutcome(
            simulability(logits, self.sets.test.teacher_logits, self.sets.regression),
            logits,
            None if self.phi_t is None else self.phi_t.detach().double().cpu().numpy(),
            None if self.phi_s is None else self.phi_s.detach().double().cpu().numpy(),
            self.position,
        )

    def _state(self) -> NamedTensors:
        named = {"phi_s": self.phi_s, "phi_t": self.phi_t}
        return {**self.weights, **{name: tensor for name, tensor in named.items() if tensor is not None}}

    def _restore(self, tensors: NamedTensors) -> None:
        state = self._state()
        with torch.no_grad():
            for name, tensor in tensors.items():
                state[name].copy_(tensor)

    def _save(self, folder: CheckpointFolder) -> None:
        groups: dict[str, NamedTensors] = {"now": self._state(), "best": self.best, "moments": self._moments()}
        folder.save({"at": asdict(self.position)}, {name: tensors for name, tensors in groups.items() if tensors})

    def _resume(self, folder: CheckpointFolder | None) -> bool:
        checkpoint = None if folder is None else folder.load()
        if checkpoint is None:
            return False
        state, groups = checkpoint
        self.position = TrainingPosition(**state["at"])
        self.best = {name: tensor.to(self.sets.base.device) for name, tensor in groups.get("best", {}).items()}
        self._restore(groups["now"])
        if self.optimizer is not None and self.phi_t is not None and "moments" in groups:
            self.optimizer.state[self.phi_t] = {
                name: tensor if name == "step" else tensor.to(self.phi_t.device)
                for name, tensor in groups["moments"].items()
            }
        return True

    def _moments(self) -> NamedTensors:
        if self.optimizer is None or self.phi_t is None:
            return {}
        return dict(self.optimizer.state.get(self.phi_t, {}))

    def _uniform(self, count: int) -> torch.Tensor:
        base = self.sets.base
        return torch.full((count,), 1 / count, dtype=base.dtype, device=base.device)


@dataclass(frozen=True)
class SettingPace:
    """Seconds in a setting: the teacher's `outputs` per example, a training `step`, a student's `prediction`."""

    outputs: float
    step: float
    prediction: float


def estimate_seconds(plan: ScaffoldPlan) -> float:
    """Return the maximum seconds for all students of the plan; early stopping may end a training sooner.

    Errors: those of the plan and of reading its data.
    """
    splits_of(source_of(plan).count, plan)  # raises an error if the data set is too small
    return total_seconds(plan, *measure_paces(plan))


def measure_paces(plan: ScaffoldPlan) -> tuple[float, dict[str, SettingPace]]:
    """Measure the seconds of a teacher's prediction per example, and the pace of each setting.

    Loads teacher and base, and trains each setting for one step. Errors: those of the plan and of reading its data.
    """
    small = replace(
        plan,
        train_sizes=(plan.recipe.batch_size,),
        seeds=plan.seeds[:1],
        recipe=replace(
            plan.recipe, epochs=1, held_out=plan.recipe.batch_size, validation=MEASURED_ON, test=MEASURED_ON
        ),
    )
    with runtime.turn(lends=True):
        builder = TrainingSetBuilder(small)
        examples = [builder.teacher.encode(builder.source.read(index).input) for index in builder.splits.test]
        predict_logits(builder.teacher, examples)  # the first pass is slower than the others
        logits = _timed(lambda: predict_logits(builder.teacher, examples))[0] / len(examples)
        runs = [StudentRun(setting, *small.train_sizes, *small.seeds) for setting in plan.settings]
        return logits, {run.setting: _pace(builder, run) for run in runs}


def total_seconds(plan: ScaffoldPlan, logits: float, paces: dict[str, SettingPace]) -> float:
    """Return the seconds for all students with the maximum number of passes.

    `logits`: seconds of the teacher's prediction per example, which all students share.
    """
    recipe = plan.recipe
    shown = max(plan.train_sizes) + recipe.held_out
    total = logits * plan.needed + sum(pace.outputs * shown for pace in paces.values())
    for run in plan.students:
        pace = paces[run.setting]
        steps = recipe.epochs * math.ceil(plan.examples_of(run) / recipe.batch_size)
        predictions = (recipe.epochs + 1) * recipe.validation + recipe.test
        total += steps * pace.step + predictions * pace.prediction
    return total


def _pace(builder: TrainingSetBuilder, run: StudentRun) -> SettingPace:
    seconds, sets = _timed(lambda: builder.collect(run))
    training = StudentTraining(sets, run, builder.plan.recipe)
    validating, _ = _timed(lambda: training.predict(sets.validation))
    outcome = training.train(None, lambda *_: None)
    prediction = validating / len(sets.validation)
    step = (outcome.position.seconds - validating) / max(1, outcome.position.steps)
    return SettingPace(seconds / run.train_size, max(step, 0.0), prediction)


def _timed(work: Callable[[], Result]) -> tuple[float, Result]:
    began = time.perf_counter()
    result = work()
    return time.perf_counter() - began, result
