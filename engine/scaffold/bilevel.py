"""One step of SMaT's bi-level optimization (eq. 6 to 9), with the exact gradient of its pilot step.

The pilot step `θ(φ_T) = θ - η clip(∇_θ L_student(θ, φ_S, φ_T))` depends on φ_T through the mixed second derivative of
the explainer loss alone. With `v` the outer loss's gradient at the pilot student, drawn back through the clip,
`dL/dφ_T = η β mean_b sum_i (∂E_T,bi/∂φ_T) (v . ∇_θ log E_S,bi)`: one pass in forward mode gives what stands in the last
bracket for all features at once, so that nothing has to be differentiated twice.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch.func import functional_call, jvp
from torch.nn import functional

from engine.scaffold.attention_explainer import Projection, divergence, explanation, log_explanation
from engine.scaffold.student import Student, StudentBatch

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
