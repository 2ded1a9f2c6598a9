"""Students of several seeds taught in one pass: weights stacked, a batch each, and the same step as one by one.

Worth it where a pass of one student leaves a device idle; `python -m benchmarks.scaffold` says whether it is quicker.
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
from engine.scaffold.bilevel import Objective, Rates
from engine.scaffold.explaining import divergence, log_explanation
from engine.scaffold.lessons import Lesson
from engine.scaffold.student import Said, Student

Weights = dict[str, torch.Tensor]
FIELDS = ("ids", "visible", "types", "lengths", "features", "answers", "heads")
Tensors = dict[str, torch.Tensor]


class Stepped(NamedTuple):
    """A number a student: loss in nats, the gradient of its explainer, and the loss on held-out examples."""

    losses: Float[torch.Tensor, "seed"]
    gradients: Float[torch.Tensor, "seed head"]
    outer_losses: Float[torch.Tensor, "seed"]


@dataclass(eq=False)
class Together:
    """Stacked students. `weights` and `phi_s` are those after the last step; `students` stay as they are."""

    students: Sequence[Student]
    phi_s: Float[torch.Tensor, "seed head"]
    objective: Objective
    rates: Rates

    def __post_init__(self) -> None:
        learning = [student.learning for student in self.students]
        with torch.no_grad():
            self.weights = {name: torch.stack([one[name] for one in learning]) for name in learning[0]}

    def step(
        self, phi_t: Float[torch.Tensor, "seed head"], inner: Sequence[Lesson], outer: Sequence[Lesson]
    ) -> Stepped:
        """Eq. 6 and 7 on all students; then eq. 8 and 9. Errors: batches of texts alone, of as many rows each."""
        given = (self.weights, self.phi_s, phi_t.detach(), _side_by_side(inner), _side_by_side(outer))
        with twice_differentiable(self.students[0].module):
            self.weights, self.phi_s, losses = vmap(self._inner)(*given[:4])
            gradients, outer_losses = vmap(self._outer)(self.weights, self.phi_s, *given[2:])
        return Stepped(losses, gradients, outer_losses)

    def _inner(
        self, weights: Weights, phi_s: torch.Tensor, phi_t: torch.Tensor, inner: Tensors
    ) -> tuple[Weights, torch.Tensor, torch.Tensor]:
        (slopes, of_phi), loss = grad_and_value(self._loss, argnums=(0, 1))(weights, phi_s, phi_t, inner)
        factor = _factor(_norm([*slopes.values(), of_phi]), self.rates.clip) * self.rates.inner
        return {name: weights[name] - factor * slopes[name] for name in weights}, phi_s - factor * of_phi, loss

    def _outer(
        self, weights: Weights, phi_s: torch.Tensor, phi_t: torch.Tensor, inner: Tensors, outer: Tensors
    ) -> tuple[torch.Tensor, torch.Tensor]:
        slopes = grad(self._loss)(weights, phi_s, phi_t, inner)
        norm = _norm(list(slopes.values()))
        factor = _factor(norm, self.rates.clip)
        pilot = {name: weights[name] - self.rates.inner * factor * slopes[name] for name in weights}
        direction, loss = grad_and_value(self._simulated)(pilot, outer)
        # Back through the clip, where there is one: what is along the gradient no longer matters.
        along = sum((direction[name] * slopes[name]).sum() for name in weights) / norm.square()
        along = torch.where(factor < 1, along, torch.zeros_like(along))
        direction = {name: factor * (direction[name] - along * slopes[name]) for name in weights}
        slope = jvp(lambda values: self._explained(values, phi_s, inner), (weights,), (direction,))[1]
        lesson, scale = _lesson(inner), self.rates.inner * self.objective.beta / len(slope)
        return grad(lambda leaf: (self.objective.shown(lesson, leaf) * slope).sum() * scale)(phi_t), loss

    def _loss(self, weights: Weights, phi_s: torch.Tensor, phi_t: torch.Tensor, given: Tensors) -> torch.Tensor:
        lesson = _lesson(given)
        said: Said = self._call(weights, lesson, True)
        assert said.heads is not None
        shown = self.objective.shown(lesson, phi_t.detach())
        ours = log_explanation(self.objective.normalise(phi_s), said.heads, lesson.features)
        return self.objective.simulation(said.logits, lesson) + self.objective.beta * divergence(shown, ours)

    def _simulated(self, weights: Weights, given: Tensors) -> torch.Tensor:
        lesson = _lesson(given)
        return self.objective.simulation(self._call(weights, lesson, False).logits, lesson)

    def _explained(self, weights: Weights, phi_s: torch.Tensor, given: Tensors) -> torch.Tensor:
        lesson = _lesson(given)
        said = self._call(weights, lesson, True)
        assert said.heads is not None
        return log_explanation(self.objective.normalise(phi_s), said.heads, lesson.features)

    def _call(self, weights: Weights, lesson: Lesson, explain: bool) -> Said:
        said: Said = functional_call(self.students[0], weights, (lesson, explain), tie_weights=False)
        return said


def _norm(tensors: Sequence[torch.Tensor]) -> torch.Tensor:
    return torch.stack([tensor.square().sum() for tensor in tensors]).sum().sqrt()


def _factor(norm: torch.Tensor, most: float) -> torch.Tensor:
    return (most / norm).clamp(max=1) if most else torch.ones_like(norm)


def _side_by_side(lessons: Sequence[Lesson]) -> Tensors:
    """The lessons' tensors stacked, padded to the longest of all."""
    if not all(isinstance(lesson.rows, TextBatch) for lesson in lessons):
        raise ExegesisError("lessons: students are taught together from texts alone. Teach these one by one.")
    counts = sorted({len(lesson.answers) for lesson in lessons})
    if len(counts) > 1:
        raise ExegesisError(f"lessons: must have as many rows each, got {counts}. Leave out the last, smaller batch.")
    width = max(lesson.visible.shape[1] for lesson in lessons)
    each = [_tensors(lesson, width) for lesson in lessons]
    return {name: torch.stack([tensors[name] for tensors in each]) for name in each[0]}


def _tensors(lesson: Lesson, width: int) -> Tensors:
    rows: TextBatch = lesson.rows
    found = {name: getattr(lesson, name, None) for name in FIELDS} | {n: getattr(rows, n) for n in FIELDS[:4]}
    more = width - lesson.visible.shape[1]
    return {
        name: value if name in ("lengths", "answers") else functional.pad(value, (0, more))
        for name, value in found.items()
        if value is not None
    }


def _lesson(given: Tensors) -> Lesson:
    rows = TextBatch(given["ids"], given["visible"], given["types"], given["lengths"], whole=False)
    return Lesson(rows, given["visible"], given["features"], given["answers"], given.get("heads"))
