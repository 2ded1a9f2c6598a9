"""From a plan to what each student is taught from: four disjoint splits, and what the teacher says of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from engine import runtime
from engine.data.sources import ExampleSource
from engine.errors import ExegesisError
from engine.input_kinds import load_classifier
from engine.models.classifier import AnyClassifier, EncodedInput
from engine.progress import check_cancelled
from engine.scaffold import signals
from engine.scaffold.bases import load_base
from engine.scaffold.examples import examples_of
from engine.scaffold.lessons import Taught
from engine.scaffold.plan import NONE, SMAT, Plan, Pupil, base_named
from engine.scaffold.simulability import constant
from engine.scaffold.splits import Splits, splits_of
from engine.scaffold.teaching import Course


@dataclass(eq=False)
class Courses:
    """The courses of a plan. The teacher is asked once for each example; call inside the device's turn."""

    plan: Plan
    _coded: dict[int, EncodedInput] = field(default_factory=dict)
    _said: dict[str, dict[int, np.ndarray]] = field(default_factory=dict)

    @cached_property
    def source(self) -> ExampleSource:
        """The data set. Errors: those of reading it."""
        return examples_of(self.plan)

    @cached_property
    def splits(self) -> Splits:
        return splits_of(self.source.count, self.plan)

    @cached_property
    def teacher(self) -> AnyClassifier:
        return load_classifier(self.plan.kind, self.plan.teacher, "float32", runtime.device())

    @cached_property
    def base(self) -> AnyClassifier:
        return load_base(base_named(self.plan), self.teacher)

    def course(self, pupil: Pupil) -> Course:
        """What a student is taught from. Errors: too few examples; a teacher that says the same of all of them."""
        splits = self.splits
        train, held_out = splits.of_seed(pupil.seed, pupil.train_size, self.plan.recipe.held_out)
        held, validation, test = (self._taught(s, NONE) for s in (held_out, splits.validation, splits.test))
        regression = self.teacher.regression
        check_varied(self.plan.teacher, test.answers, regression)
        outputs = 1 if regression else len(self.teacher.labels)
        return Course(self.base, self._taught(train, pupil.setting), held, validation, test, outputs, regression)

    def _taught(self, places: Sequence[int], setting: str) -> Taught:
        examples = [self._example(place) for place in places]
        answers = np.stack(self._asked("answers", places, lambda e: list(signals.answers(self.teacher, e))))
        heads = maps = None
        if setting == SMAT:
            heads = self._asked("heads", places, lambda e: signals.heads(self.teacher, e))
        elif setting != NONE:
            maps = self._asked(setting, places, lambda e: signals.maps(self.teacher, setting, e))
        return Taught(examples, answers, heads, maps)

    def _asked(
        self, what: str, places: Sequence[int], ask: Callable[[list[EncodedInput]], Sequence[np.ndarray]]
    ) -> list[np.ndarray]:
        known = self._said.setdefault(what, {})
        # Short ones together, so that little of a pass is padding.
        new = sorted({place for place in places if place not in known}, key=lambda place: len(self._example(place)))
        if new:
            check_cancelled()
            known.update(zip(new, ask([self._example(place) for place in new]), strict=True))
        return [known[place] for place in places]

    def _example(self, place: int) -> EncodedInput:
        if place not in self._coded:
            self._coded[place] = self.teacher.encode(self.source.read(place).input)
        return self._coded[place]


def check_varied(teacher: str, answers: np.ndarray, regression: bool) -> None:
    """Refuses a teacher whose answers are all the same: any student would simulate it at once."""
    same = constant(answers[:, 0]) if regression else len(set(answers.argmax(1).tolist())) == 1
    if same:
        what = "the same score" if regression else "the same class"
        raise ExegesisError(
            f"teacher: {teacher} predicts {what} for all {len(answers):,} test examples, so that simulability would "
            "measure nothing. Choose a data set on which its predictions differ."
        )
