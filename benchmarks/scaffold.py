"""One bi-level step against the bare passes it needs: `python -m benchmarks.scaffold [--rounds 40] [--json]`.

Ours: everything of a step on 16 examples and 16 held-out ones: collating, the inner step, the pilot step, the outer
gradient, both updates. Bare: the plain transformers module with the same weights on the same rows, collated beforehand:
two passes forward and back that give attention and all hidden states, one forward and back on the held-out rows by
torch's own attention, and one in forward mode that gives attention. They take turns step by step, batch by batch.
Then a step of the students of five seeds in one pass against one after the other, each with its own batch.
"""

from __future__ import annotations

import copy
import itertools
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch.func import functional_call, jvp
from torch.nn import functional

from benchmarks.harness import (
    Limit,
    benchmark_parser,
    judge,
    load_average,
    ratio_to,
    scratch_folder,
    show,
    time_in_turn,
)
from engine.models.text_classifier import TextBatch
from engine.scaffold.bilevel import VmappedStudents, inner_step, outer_gradient
from engine.scaffold.plan import SEEDS, SMAT, Recipe, ScaffoldPlan, StudentRun
from engine.scaffold.student import StudentBatch
from engine.scaffold.training import StudentTraining
from engine.scaffold.training_sets import TrainingSetBuilder, TrainingSets

LIMIT = 1.2
MODELS = {"bert-marked": ("bases/bert", "reviews-marked"), "reviews-minilm": ("minilm", "reviews-generated")}
"""Teachers, what their students start from, and of which texts they learn."""
RECIPE = Recipe(batch_size=16, held_out=64, validation=16, test=16)
TRAIN = 160


class Bare:
    """The passes of a step, on a copy of the base."""

    def __init__(self, course: TrainingSets) -> None:
        self.module: Any = copy.deepcopy(course.base.module).requires_grad_(True)
        self.backbone: Any = self.module.get_submodule(course.base.adapter.backbone)
        self.names = {n: p for n, p in self.backbone.named_parameters() if "pooler" not in n}
        self.classes = torch.zeros(RECIPE.batch_size, dtype=torch.long)

    def step(self, inner: TextBatch, outer: TextBatch) -> None:
        self._attend("eager")
        for _ in range(2):
            self._back(self._run(inner, attention=True))
        tangents = {name: torch.ones_like(value) for name, value in self.names.items()}
        values = {name: value.detach() for name, value in self.names.items()}
        jvp(lambda given: self._attention(inner, given), (values,), (tangents,))
        self._attend("sdpa")
        self._back(self._run(outer, attention=False))

    def _run(self, batch: TextBatch, attention: bool) -> torch.Tensor:
        found = self.backbone(**_inputs(batch), output_attentions=attention, output_hidden_states=True)
        loss = functional.cross_entropy(sum(found.hidden_states).mean(1), self.classes[: len(batch.ids)])
        return loss + sum(layer.square().mean() for layer in found.attentions) if attention else loss

    def _attention(self, batch: TextBatch, values: dict[str, torch.Tensor]) -> tuple[torch.Tensor, ...]:
        given = _inputs(batch) | {"output_attentions": True}
        found: Any = functional_call(self.backbone, values, kwargs=given, tie_weights=False)
        return tuple(layer.mean(2) for layer in found.attentions)

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


def course_of(teacher: str, seed: int = 0) -> TrainingSets:
    """What a student of this teacher is taught from."""
    base, dataset = MODELS[teacher]
    plan = ScaffoldPlan(teacher, dataset, (SMAT,), (TRAIN,), base=base, recipe=RECIPE)
    return TrainingSetBuilder(plan).build(StudentRun(SMAT, TRAIN, seed))


def steps_of(course: TrainingSets) -> dict[str, Callable[[], object]]:
    """A step of either side, on the next batch at each call."""
    teaching, bare = StudentTraining(course, StudentRun(SMAT, TRAIN, 0), RECIPE), Bare(course)
    batches = teaching._batches()
    rows = [
        (course.train.batch(inner, course.base).rows, course.held_out.batch(outer, course.base).rows)
        for inner, outer in batches
    ]
    ours, theirs = itertools.cycle(batches), itertools.cycle(rows)
    return {"bare": lambda: bare.step(*next(theirs)), "exegesis": lambda: teaching._step(*next(ours))}


class Seeds:
    """A step of each of five students, one after the other, and of all in one pass; on the next batches at each call.

    Both sides read batches that are collated beforehand and leave the explainers' own update to whoever asked.
    """

    def __init__(self, course: TrainingSets) -> None:
        taught = [StudentTraining(course, StudentRun(SMAT, TRAIN, seed), RECIPE) for seed in SEEDS]
        phi_s, self.phi_t = (torch.stack([_known(getattr(one, name)) for one in taught]) for name in ("phi_s", "phi_t"))
        self.alone, self.phi_t = taught, self.phi_t.detach()
        self.together = VmappedStudents(
            [one.student for one in taught], phi_s.detach(), taught[0].objective, taught[0].rates
        )
        whole = [[pair for pair in one._batches() if len(pair[0]) == RECIPE.batch_size] for one in taught]
        self.batches = [
            [(course.train.batch(inner, course.base), course.held_out.batch(outer, course.base))
             for inner, outer in pairs]
            for pairs in zip(*whole, strict=False)
        ]  # fmt: skip

    def steps(self) -> dict[str, Callable[[], object]]:
        ours, theirs = itertools.cycle(self.batches), itertools.cycle(self.batches)
        return {"one by one": lambda: self._one_by_one(next(theirs)), "together": lambda: self._together(next(ours))}

    def _one_by_one(self, batches: Sequence[tuple[StudentBatch, StudentBatch]]) -> None:
        for one, phi_t, (inner, outer) in zip(self.alone, self.phi_t, batches, strict=True):
            inner_step(one.student, one.phi_s, inner, one.objective, one.rates, phi_t)
            outer_gradient(one.student, _known(one.phi_s), phi_t, inner, outer, one.objective, one.rates)

    def _together(self, batches: Sequence[tuple[StudentBatch, StudentBatch]]) -> None:
        self.together.step(self.phi_t, [inner for inner, _ in batches], [outer for _, outer in batches])


def _known(phi: torch.Tensor | None) -> torch.Tensor:
    assert phi is not None
    return phi


def measure(rounds: int) -> Iterator[dict[str, Any]]:
    for teacher in MODELS:
        course = course_of(teacher)
        yield from _rows(teacher, "bare", time_in_turn(steps_of(course), rounds))
        yield from _rows(teacher, "one by one", time_in_turn(Seeds(course).steps(), max(2, rounds // 4)))


def _rows(teacher: str, bare: str, times: Mapping[str, np.ndarray]) -> Iterator[dict[str, Any]]:
    for by, seconds in times.items():
        yield {"students of": teacher, "by": by, "ms": 1e3 * float(np.median(seconds)), **ratio_to(times, by, bare)}


def main() -> int:
    parser = benchmark_parser(__doc__)
    parser.add_argument("--rounds", type=int, default=40, help="steps of each side")
    options = parser.parse_args()
    before = load_average()
    with scratch_folder() as home:
        os.environ["EXEGESIS_HOME"] = str(home)
        rows = list(measure(options.rounds))
    show(f"One bi-level step, load {before} to {load_average()}", rows, options.json)
    return judge([limit for row in rows for limit in limits(row)])


def limits(row: dict[str, Any]) -> list[Limit]:
    if row["by"] != "exegesis":
        return []
    return [Limit(f"a bi-level step, students of {row['students of']}, to bare", row["ratio"], LIMIT, "times")]


if __name__ == "__main__":
    sys.exit(main())
