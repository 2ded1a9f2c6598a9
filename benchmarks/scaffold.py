"""One bi-level step of a student against the bare passes that it needs."""

from __future__ import annotations

import copy
import itertools
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.func import functional_call, jvp
from torch.nn import functional

from benchmarks.harness import Limit, Measurement, Table, benchmark, empty_home, time_in_turn, time_rows
from benchmarks.vmapped_students import VmappedStudents
from engine.models.text_classifier import TextBatch
from engine.scaffold.bilevel import inner_step, outer_gradient
from engine.scaffold.plan import SEEDS, SMAT, Recipe, ScaffoldPlan, StudentRun
from engine.scaffold.student import StudentBatch
from engine.scaffold.training import StudentTraining
from engine.scaffold.training_sets import TrainingSetBuilder, TrainingSets

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
