"""One bi-level step of a student against the bare passes that it needs, and of several students in one pass.

Students of several seeds in one pass (`VmappedStudents`) are worth it where a pass of one student leaves a device idle;
`python -m benchmarks scaffold` measures it. The product trains students one by one.
"""

from __future__ import annotations

import copy
import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from jaxtyping import Float
from torch.func import functional_call, grad, grad_and_value, jvp, vmap
from torch.nn import functional

from benchmarks.harness import Limit, Measurement, Table, benchmark, empty_home, time_in_turn, time_rows
from engine.errors import ExegesisError
from engine.models.attention import twice_differentiable
from engine.models.text_classifier import TextBatch
from engine.scaffold.plan import SEEDS, SMAT, Recipe, ScaffoldPlan, StudentRun
from engine.scaffold.student import Student, StudentBatch, StudentOutput, divergence, log_explanation
from engine.scaffold.training import (
    NamedTensors,
    StepRates,
    StudentTraining,
    TeachingObjective,
    inner_step,
    outer_gradient,
)
from engine.scaffold.training_sets import TrainingSetBuilder, TrainingSets

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


LIMIT = 1.2
MODELS = {"bert-marked": ("bases/bert", "reviews-marked"), "reviews-minilm": ("minilm", "reviews-generated")}
"""Teachers, what their students start from, and of which texts they learn."""
RECIPE = Recipe(batch_size=16, held_out=64, validation=16, test=16)
TRAIN = 160


@benchmark(rounds={"type": int, "default": 40, "help": "steps of each side"})
def scaffold(rounds: int) -> Measurement:
    """One bi-level step against the bare passes it needs.

    Ours: everything of a step on 16 examples and 16 held-out ones: collating, the inner step, the pilot step, the outer
    gradient, both updates. Bare: the plain transformers module with the same weights on the same rows, collated
    beforehand: two passes forward and back that give attention and all hidden states, one forward and back on the
    held-out rows by torch's own attention, and one in forward mode that gives attention. They take turns step by step,
    batch by batch. Then a step of the students of five seeds in one pass against one after the other, each with its own
    batch.
    """
    table: Table = []
    with empty_home():
        for teacher in MODELS:
            sets = training_sets(teacher)
            table += time_rows(time_in_turn(build_steps(sets), rounds), **{"students of": teacher})
            seeds = time_in_turn(Seeds(sets).steps(), max(2, rounds // 4))
            table += time_rows(seeds, "one by one", **{"students of": teacher})
    return Measurement({"One bi-level step": table}, [limit for row in table for limit in limits(row)])


class StepPasses:
    """The passes of a step, on a copy of the base."""

    def __init__(self, sets: TrainingSets) -> None:
        self.module: Any = copy.deepcopy(sets.base.module).requires_grad_(True)
        self.backbone: Any = self.module.get_submodule(sets.base.adapter.backbone)
        self.names = {n: p for n, p in self.backbone.named_parameters() if "pooler" not in n}
        self.classes = torch.zeros(RECIPE.batch_size, dtype=torch.long)

    def step(self, inner: TextBatch, outer: TextBatch) -> None:
        self._attend("eager")
        for _ in range(2):
            self._back(self._run(inner, attention=True))
        tangents = {name: torch.ones_like(value) for name, value in self.names.items()}
        values = {name: value.detach() for name, value in self.names.items()}
        jvp(lambda weights: self._attention(inner, weights), (values,), (tangents,))
        self._attend("sdpa")
        self._back(self._run(outer, attention=False))

    def _run(self, batch: TextBatch, attention: bool) -> torch.Tensor:
        outputs = self.backbone(**_inputs(batch), output_attentions=attention, output_hidden_states=True)
        loss = functional.cross_entropy(sum(outputs.hidden_states).mean(1), self.classes[: len(batch.ids)])
        return loss + sum(layer.square().mean() for layer in outputs.attentions) if attention else loss

    def _attention(self, batch: TextBatch, values: dict[str, torch.Tensor]) -> tuple[torch.Tensor, ...]:
        inputs = _inputs(batch) | {"output_attentions": True}
        outputs: Any = functional_call(self.backbone, values, kwargs=inputs, tie_weights=False)
        return tuple(layer.mean(2) for layer in outputs.attentions)

    def _back(self, loss: torch.Tensor) -> None:
        torch.autograd.grad(loss, list(self.names.values()))

    def _attend(self, name: str) -> None:
        self.module.config._attn_implementation = name


def _inputs(batch: TextBatch) -> dict[str, Any]:
    return {
        "input_ids": batch.ids,
        "token_type_ids": batch.types,
        "attention_mask": None if batch.whole else batch.visible.long(),
    }


def training_sets(teacher: str, seed: int = 0) -> TrainingSets:
    """Build the training sets of a student of this teacher."""
    base, dataset = MODELS[teacher]
    plan = ScaffoldPlan(teacher, dataset, (SMAT,), (TRAIN,), base=base, recipe=RECIPE)
    return TrainingSetBuilder(plan).build(StudentRun(SMAT, TRAIN, seed))


def build_steps(sets: TrainingSets) -> dict[str, Callable[[], object]]:
    """A step of either side, on the next batch at each call."""
    training, bare = StudentTraining(sets, StudentRun(SMAT, TRAIN, 0), RECIPE), StepPasses(sets)
    batches = training._batches()
    rows = [
        (sets.train.batch(inner, sets.base).rows, sets.held_out.batch(outer, sets.base).rows)
        for inner, outer in batches
    ]
    ours, theirs = itertools.cycle(batches), itertools.cycle(rows)
    return {"bare": lambda: bare.step(*next(theirs)), "exegesis": lambda: training._step(*next(ours))}


class Seeds:
    """A step of each of five students, one after the other, and of all in one pass; on the next batches at each call.

    Both sides read batches that are collated beforehand and leave out the update of the teacher's explainer.
    """

    def __init__(self, sets: TrainingSets) -> None:
        students = [StudentTraining(sets, StudentRun(SMAT, TRAIN, seed), RECIPE) for seed in SEEDS]
        phi_s, self.phi_t = (
            torch.stack([_require(getattr(one, name)) for one in students]) for name in ("phi_s", "phi_t")
        )
        self.alone, self.phi_t = students, self.phi_t.detach()
        self.together = VmappedStudents(
            [one.student for one in students], phi_s.detach(), students[0].objective, students[0].rates
        )
        whole = [[pair for pair in one._batches() if len(pair[0]) == RECIPE.batch_size] for one in students]
        self.batches = [
            [(sets.train.batch(inner, sets.base), sets.held_out.batch(outer, sets.base))
             for inner, outer in pairs]
            for pairs in zip(*whole, strict=False)
        ]  # fmt: skip

    def steps(self) -> dict[str, Callable[[], object]]:
        ours, theirs = itertools.cycle(self.batches), itertools.cycle(self.batches)
        return {"one by one": lambda: self._one_by_one(next(theirs)), "together": lambda: self._together(next(ours))}

    def _one_by_one(self, batches: Sequence[tuple[StudentBatch, StudentBatch]]) -> None:
        for one, phi_t, (inner, outer) in zip(self.alone, self.phi_t, batches, strict=True):
            inner_step(one.student, one.phi_s, inner, one.objective, one.rates, phi_t)
            outer_gradient(one.student, _require(one.phi_s), phi_t, inner, outer, one.objective, one.rates)

    def _together(self, batches: Sequence[tuple[StudentBatch, StudentBatch]]) -> None:
        self.together.step(self.phi_t, [inner for inner, _ in batches], [outer for _, outer in batches])


def _require(phi: torch.Tensor | None) -> torch.Tensor:
    assert phi is not None
    return phi


def limits(row: dict[str, Any]) -> list[Limit]:
    if row["by"] != "exegesis":
        return []
    return [Limit(f"a bi-level step, students of {row['students of']}, to bare", row["ratio"], LIMIT)]
