"""One step of SMaT's bi-level optimization for students of several seeds in one pass.

That is worth it where a pass of one student leaves a device idle; `python -m benchmarks scaffold` measures it. The
product trains students one by one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch.func import functional_call, grad, grad_and_value, jvp, vmap
from torch.nn import functional

from engine.errors import ExegesisError
from engine.models.attention import twice_differentiable
from engine.models.text_classifier import TextBatch
from engine.scaffold.attention_explainer import divergence, log_explanation
from engine.scaffold.bilevel import NamedTensors, StepRates, TeachingObjective
from engine.scaffold.student import Student, StudentBatch, StudentOutput

TEXT_FIELDS = ("ids", "visible", "types", "lengths")
BATCH_FIELDS = ("features", "teacher_logits", "heads")
"""What is stacked of a batch of texts, and of what is taught with it."""


class VmappedStep(NamedTuple):
    """A number a student: loss in nats, the gradient of its explainer, and the loss on held-out examples."""

    losses: Float[torch.Tensor, "seed"]
    gradients: Float[torch.Tensor, "seed head"]
    outer_losses: Float[torch.Tensor, "seed"]


@dataclass(eq=False)
class VmappedStudents:
    """Stacked students. `weights` and `phi_s` are those after the last step; `students` stay as they are."""

    students: Sequence[Student]
    phi_s: Float[torch.Tensor, "seed head"]
    objective: TeachingObjective
    rates: StepRates

    def __post_init__(self) -> None:
        learning = [student.learning for student in self.students]
        with torch.no_grad():
            self.weights = {name: torch.stack([one[name] for one in learning]) for name in learning[0]}

    def step(
        self, phi_t: Float[torch.Tensor, "seed head"], inner: Sequence[StudentBatch], outer: Sequence[StudentBatch]
    ) -> VmappedStep:
        """Eq. 6 and 7 on all students; then eq. 8 and 9. Errors: batches of texts alone, of as many rows each."""
        inputs = (self.weights, self.phi_s, phi_t.detach(), _stack_batches(inner), _stack_batches(outer))
        with twice_differentiable(self.students[0].module):
            self.weights, self.phi_s, losses = vmap(self._inner)(*inputs[:4])
            gradients, outer_losses = vmap(self._outer)(self.weights, self.phi_s, *inputs[2:])
        return VmappedStep(losses, gradients, outer_losses)

    def _inner(
        self, weights: NamedTensors, phi_s: torch.Tensor, phi_t: torch.Tensor, inner: NamedTensors
    ) -> tuple[NamedTensors, torch.Tensor, torch.Tensor]:
        (slopes, phi_slope), loss = grad_and_value(self._loss, argnums=(0, 1))(weights, phi_s, phi_t, inner)
        factor = _clip_factor(_norm([*slopes.values(), phi_slope]), self.rates.clip) * self.rates.inner
        return {name: weights[name] - factor * slopes[name] for name in weights}, phi_s - factor * phi_slope, loss

    def _outer(
        self, weights: NamedTensors, phi_s: torch.Tensor, phi_t: torch.Tensor, inner: NamedTensors, outer: NamedTensors
    ) -> tuple[torch.Tensor, torch.Tensor]:
        slopes = grad(self._loss)(weights, phi_s, phi_t, inner)
        norm = _norm(list(slopes.values()))
        factor = _clip_factor(norm, self.rates.clip)
        pilot = {name: weights[name] - self.rates.inner * factor * slopes[name] for name in weights}
        direction, loss = grad_and_value(self._simulation)(pilot, outer)
        # Back through the clip, where there is one: what is along the gradient no longer matters.
        along = sum((direction[name] * slopes[name]).sum() for name in weights) / norm.square()
        along = torch.where(factor < 1, along, torch.zeros_like(along))
        direction = {name: factor * (direction[name] - along * slopes[name]) for name in weights}
        slope = jvp(lambda values: self._student_map(values, phi_s, inner), (weights,), (direction,))[1]
        batch, scale = _batch(inner), self.rates.inner * self.objective.beta / len(slope)
        return grad(lambda leaf: (self.objective.target_maps(batch, leaf) * slope).sum() * scale)(phi_t), loss

    def _loss(
        self, weights: NamedTensors, phi_s: torch.Tensor, phi_t: torch.Tensor, tensors: NamedTensors
    ) -> torch.Tensor:
        batch = _batch(tensors)
        output = self._call(weights, batch, True)
        assert output.heads is not None
        target = self.objective.target_maps(batch, phi_t.detach())
        student_map = log_explanation(self.objective.normalize(phi_s), output.heads, batch.features)
        return self.objective.simulation(output.logits, batch) + self.objective.beta * divergence(target, student_map)

    def _simulation(self, weights: NamedTensors, tensors: NamedTensors) -> torch.Tensor:
        batch = _batch(tensors)
        return self.objective.simulation(self._call(weights, batch, False).logits, batch)

    def _student_map(self, weights: NamedTensors, phi_s: torch.Tensor, tensors: NamedTensors) -> torch.Tensor:
        batch = _batch(tensors)
        output = self._call(weights, batch, True)
        assert output.heads is not None
        return log_explanation(self.objective.normalize(phi_s), output.heads, batch.features)

    def _call(self, weights: NamedTensors, batch: StudentBatch, explain: bool) -> StudentOutput:
        output: StudentOutput = functional_call(self.students[0], weights, (batch, explain), tie_weights=False)
        return output


def _norm(tensors: Sequence[torch.Tensor]) -> torch.Tensor:
    return torch.stack([tensor.square().sum() for tensor in tensors]).sum().sqrt()


def _clip_factor(norm: torch.Tensor, most: float) -> torch.Tensor:
    return (most / norm).clamp(max=1) if most else torch.ones_like(norm)


def _stack_batches(batches: Sequence[StudentBatch]) -> NamedTensors:
    """The batches' tensors stacked, padded to the longest of all."""
    if not all(isinstance(batch.rows, TextBatch) for batch in batches):
        raise ExegesisError("batches: must be texts for a step of several students. Train these students one by one.")
    counts = sorted({len(batch.teacher_logits) for batch in batches})
    if len(counts) > 1:
        raise ExegesisError(f"batches: must have equally many rows, got {counts}. Leave out the last, smaller batch.")
    width = max(batch.visible.shape[1] for batch in batches)
    padded = [_pad_batch(batch, width) for batch in batches]
    return {name: torch.stack([tensors[name] for tensors in padded]) for name in padded[0]}


def _pad_batch(batch: StudentBatch, width: int) -> NamedTensors:
    tensors = {name: getattr(batch.rows, name) for name in TEXT_FIELDS}
    tensors |= {name: getattr(batch, name) for name in BATCH_FIELDS}
    padding = width - batch.visible.shape[1]
    return {
        name: value if name in ("lengths", "teacher_logits") else functional.pad(value, (0, padding))
        for name, value in tensors.items()
        if value is not None
    }


def _batch(tensors: NamedTensors) -> StudentBatch:
    rows = TextBatch(tensors["ids"], tensors["visible"], tensors["types"], tensors["lengths"], whole=False)
    return StudentBatch(rows, tensors["visible"], tensors["features"], tensors["teacher_logits"], tensors.get("heads"))
