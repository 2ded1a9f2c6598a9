"""What pieces come to: each map is compared with the original as it comes in, and need not be held."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from engine.params import from_mapping
from engine.randomization.measures import MEASURES, likeness, no_order
from engine.randomization.pieces import Answers, Maps, Seen
from engine.randomization.result import FINE, OfModel
from engine.randomization.work import Setting, Work
from engine.registry import explainer
from engine.result import Prediction


class Gathering:
    """Of one model. Give it the pieces of the model as it is first."""

    def __init__(self, work: Work) -> None:
        plan = work.plan
        self.work, self.methods = work, plan.company
        self.answers: dict[int, Prediction] = {}
        self.seen: dict[int, Seen] = {}
        self.failed = dict(work.faults)
        self.before: dict[tuple[str, int], np.ndarray] = {}
        self.signed = [explainer(one, plan.kind).is_signed(self._params(one)) for one in self.methods]
        self.broken = False
        self.reasons: dict[str, int] = {}
        shape = len(work.stages), len(plan.draws), len(work.sample.indices)
        stages, seeds, examples = shape
        self.place = {index: place for place, index in enumerate(work.sample.indices)}
        self.likeness = np.full((stages, seeds, len(self.methods), len(MEASURES), examples), np.nan)
        self.why = np.full((stages, seeds, len(self.methods), examples), FINE)
        self.after = np.full(shape, np.nan)
        self.changed = np.zeros(shape, dtype=bool)

    def add(self, setting: Setting, found: Mapping[str, Maps | Answers]) -> None:
        """The pieces of one setting on some examples, by method."""
        for method, made in found.items():
            if not setting[0]:
                self._take_original(method, made)
                continue
            for at in self._places(setting):
                self._take_answers(at, made) if isinstance(made, Answers) else self._compare(at, method, made)

    def result(self) -> OfModel:
        """Of the examples of which the model as it is has an answer."""
        work = self.work
        having = [index for index in work.sample.indices if index in self.answers]
        places = [self.place[index] for index in having]
        said = [self.answers[index] for index in having]
        return OfModel(
            model=work.model,
            dataset=work.sample.source.name,
            stages=work.stages,
            seeds=work.plan.draws,
            methods=self.methods,
            examples=tuple(having),
            targets=tuple(one.label for one in said),
            likeness=self.likeness[..., places],
            why=self.why[..., places],
            reasons=tuple(self.reasons),
            before=np.array([one.probabilities[one.index] for one in said], dtype=np.float64),
            after=self.after[..., places],
            changed=self.changed[..., places],
            failed=self.failed,
            regression=any(one.regression for one in said),
            complete=not self.broken,
        )

    def _params(self, method: str) -> dict[str, object]:
        known = explainer(method, self.work.plan.kind)
        return vars(from_mapping(known.params, self.work.plan.params_of(method), method))

    def _places(self, setting: Setting) -> list[tuple[int, int]]:
        """Stage and seed that the setting is: of both modes where they share it."""
        draw = self.work.plan.draws.index(setting[1])
        return [(stage, draw) for stage, one in enumerate(self.work.stages) if one.parts == setting[0]]

    def _take_original(self, method: str, made: Maps | Answers) -> None:
        if isinstance(made, Answers):
            self.answers |= made.predictions
            self.seen |= made.seen
            self.failed |= made.failed
            self.broken |= not made.lasting
            return
        for index, scores in made.scores.items():
            self.before[method, index] = scores[self.seen[index].features]
        self._note_failures(
            method, made, [(s, d) for s in range(len(self.work.stages)) for d in range(len(self.why[0]))]
        )

    def _take_answers(self, at: tuple[int, int], made: Answers) -> None:
        self.broken |= not made.lasting
        for index, said in made.predictions.items():
            target = self.answers[index].index
            self.after[(*at, self.place[index])] = said.probabilities[target]
            self.changed[(*at, self.place[index])] = said.index != target

    def _compare(self, at: tuple[int, int], method: str, made: Maps) -> None:
        which = self.methods.index(method)
        for index, scores in made.scores.items():
            seen, place, before = self.seen[index], self.place[index], self.before.get((method, index))
            if before is None:
                continue  # why is noted already
            after = scores[seen.features]
            if why := no_order(before, after):
                self.why[(*at, which, place)] = self._code(why)
            else:
                self.likeness[(*at, which, slice(None), place)] = likeness(before, after, seen.grid, self.signed[which])
        self._note_failures(method, made, [at])

    def _note_failures(self, method: str, made: Maps, places: list[tuple[int, int]]) -> None:
        for index, why in made.failed.items():
            self.broken = True
            for at in places:
                self.why[(*at, self.methods.index(method), self.place[index])] = self._code(why)

    def _code(self, why: str) -> int:
        return self.reasons.setdefault(why, len(self.reasons))
