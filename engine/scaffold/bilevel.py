"""One step of SMaT's bi-level optimization (eq. 6 to 9), with the exact gradient of its pilot step.

The pilot step `θ(φ_T) = θ - η clip(∇_θ L_student(θ, φ_S, φ_T))` depends on φ_T through the mixed second derivative of
the explainer loss alone. With `v` the outer loss's gradient at the pilot student, drawn back through the clip,
`dL/dφ_T = η β mean_b sum_i (∂E_T,bi/∂φ_T) (v . ∇_θ log E_S,bi)`: one pass in forward mode gives what stands in the last
bracket for all features at once, so that nothing has to be differentiated twice.

`VmappedStudents` takes the same step for students of several seeds in one pass. That is worth it where a pass of one
student leaves a device idle; `python -m benchmarks scaffold` measures whether it is quicker.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch.func import functional_call, grad, grad_and_value, jvp, vmap
from torch.nn import functional

from engine.errors import ExegesisError
from engine.models.attention import twice_differentiable
from engine.models.text_classifier import TextBatch
from engine.scaffold.attention_explainer import Projection, divergence, explanation, log_explanation
from engine.scaffold.student import Student, StudentBatch, StudentOutput

Tensors = Sequence[torch.Tensor]
NamedTensors = dict[str, torch.Tensor]


@dataclass(frozen=True)
class TeachingObjective:
    """The losses of student and explainers. `soft`: against the teacher's probabilities, not its class alone."""

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
    """`inner`, `outer`: learning rates of student and explainer; `clip`: the largest norm of a gradient of either."""

    inner: float = 5e-3
    outer: float = 5e-4
    clip: float = 5.0


class ClippedGradients(NamedTuple):
    """A gradient of at most some norm. `factor`: by which it was multiplied, 1 where it was short enough."""

    gradients: Tensors
    norm: torch.Tensor
    factor: torch.Tensor

    def pull_back(self, vector: Tensors) -> Tensors:
        """`J^T vector` for the Jacobian J of clipping: what is along the gradient no longer matters where it is cut."""
        if self.factor == 1:
            return vector
        along = _dot(self.gradients, vector) / (self.factor * self.norm) ** 2  # by the norm that is left
        inside = torch._foreach_sub(list(vector), torch._foreach_mul(list(self.gradients), along))
        return torch._foreach_mul(inside, self.factor)


def clip_gradients(gradients: Tensors, most: float) -> ClippedGradients:
    """The gradients, all together of at most the norm `most` (0: as they are)."""
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
    """`L_student` of eq. 3: `L_sim + β KL(E_T || E_S)`; without an S-explainer, `L_sim` alone."""
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
    """Eq. 6 and 7 in place: one SGD step on the student and, where there is one, the S-explainer. Returns the loss."""
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
    """Eq. 8 and 9: `∇_φ_T L_sim(S_θ(φ_T))` on the held-out batch, and that loss. The student is left as it was."""
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
    """The weights θ of a student, in one order."""
    return list(student.learning.values())


def _slope(
    student: Student, phi_s: torch.Tensor, batch: StudentBatch, objective: TeachingObjective, direction: Tensors
) -> Float[torch.Tensor, "batch key"]:
    """`v . ∇_θ log E_S` for each feature, by forward-mode differentiation; the pass ends with the last attention."""
    pairs = zip(student.learning.items(), direction, strict=True)
    body = {name: (weight.detach(), by) for (name, weight), by in pairs if not name.startswith(("mix", "head."))}
    weights = objective.normalize(phi_s)

    def logs(values: NamedTensors) -> torch.Tensor:
        named = {f"student.{name}": value for name, value in values.items()}
        # T5 has one embedding in two places: tied weights would be put back wrongly there, and it needs no tying.
        heads = functional_call(_HeadsModule(student), named, (batch,), tie_weights=False)
        return log_explanation(weights, heads, batch.features)

    values, tangents = {n: p[0] for n, p in body.items()}, {n: p[1] for n, p in body.items()}
    return jvp(logs, (values,), (tangents,))[1].detach()


class _HeadsModule(torch.nn.Module):
    """A student as a module whose output is its heads alone."""

    def __init__(self, student: Student) -> None:
        super().__init__()
        self.student = student

    def forward(self, batch: StudentBatch) -> torch.Tensor:
        return self.student.heads(batch)


@contextlib.contextmanager
def _moved(weights: list[torch.Tensor], by: Tensors, times: float) -> Iterator[None]:
    """Run the block with weights that are moved; afterwards they are exactly as before."""
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
        raise ExegesisError("lessons: students are taught together from texts alone. Teach these one by one.")
    counts = sorted({len(batch.teacher_logits) for batch in batches})
    if len(counts) > 1:
        raise ExegesisError(f"lessons: must have as many rows each, got {counts}. Leave out the last, smaller batch.")
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
