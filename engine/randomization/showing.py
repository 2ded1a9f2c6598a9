"""One example's maps stage by stage, from the cache: so that a curve can be seen in what it is made of."""

from __future__ import annotations

from dataclasses import dataclass

from engine import runtime
from engine.errors import ExegesisError, unknown
from engine.evaluation.sample import Sample
from engine.models import catalog
from engine.params import as_plain, from_mapping
from engine.randomization.pieces import PREDICTION, Answers, Maps, Scores
from engine.randomization.plan import Plan
from engine.randomization.stages import ORIGINAL, Stage
from engine.randomization.work import Setting, Work
from engine.registry import explainer
from engine.result import Explanation, Prediction, Provenance


@dataclass(frozen=True)
class Shown:
    """What there is of one example at one stage. `stage`: None of the model as it is. `prediction`: what the model
    then says. `maps`: by method, as explanations of the class that the model as it is predicts; a method that failed
    has none.
    """

    stage: Stage | None
    prediction: Prediction
    maps: dict[str, Explanation]


def shown(plan: Plan, model: str, sample: Sample, index: int, seed: int | None = None) -> list[Shown]:
    """The model as it is, then each stage in the order of `stages_of`, as far as the cache holds it.

    `index`: of the example in the data set, one of `OfModel.examples`. `seed`: of the randomization, the first of the
    plan's if None. No model is loaded. Errors: an example or a seed that is not of the plan.
    """
    return _Showing(plan, model, sample, index).stages(plan.draws[0] if seed is None else seed)


class _Showing:
    def __init__(self, plan: Plan, model: str, sample: Sample, index: int) -> None:
        self.plan, self.model, self.index = plan, model, index
        self.work = Work(plan, model, sample)
        chunk = next((chunk for chunk in self.work.chunks if index in chunk), None)
        if chunk is None:
            raise ExegesisError(f"example {index}: is none of the examples of this check. Choose one of them.")
        self.chunk = chunk

    def stages(self, seed: int) -> list[Shown]:
        if seed not in self.plan.draws:
            raise unknown("seed", seed, map(str, self.plan.draws))
        first = self._found((ORIGINAL, 0), PREDICTION)
        if not isinstance(first, Answers) or self.index not in first.predictions:
            return []
        self.original = first
        each = ((None, (ORIGINAL, 0)), *((stage, (stage.parts, seed)) for stage in self.work.stages))
        made = [self._at(stage, setting) for stage, setting in each]
        return [one for one in made if one is not None]

    def _at(self, stage: Stage | None, setting: Setting) -> Shown | None:
        said = self._found(setting, PREDICTION)
        if not isinstance(said, Answers) or self.index not in said.predictions:
            return None
        prediction = said.predictions[self.index]
        found = {method: self._found(setting, method) for method in self.plan.company}
        maps = {
            method: self._explanation(method, one.scores[self.index], prediction, stage, setting[1])
            for method, one in found.items()
            if isinstance(one, Maps) and self.index in one.scores
        }
        return Shown(stage, prediction, maps)

    def _found(self, setting: Setting, method: str) -> Maps | Answers | None:
        return self.work.found(self.work.naming.piece(*setting, self.chunk, method))

    def _explanation(
        self, method: str, scores: Scores, prediction: Prediction, stage: Stage | None, seed: int
    ) -> Explanation:
        seen, target = self.original.seen[self.index], self.original.predictions[self.index].index
        note = "" if stage is None else f"The model is not as it is: {stage.words}, seed {seed}."
        return Explanation(
            tokens=seen.tokens,
            scores=scores,
            prediction=prediction,
            provenance=self._provenance(method, target, prediction),
            evaluations=0,
            seconds=0.0,
            notes=(note,) if note else (),
            truncated=seen.truncated,
            cached=True,
            grid=seen.grid,
        )

    def _provenance(self, method: str, target: int, prediction: Prediction) -> Provenance:
        plan, known = self.plan, explainer(method, self.plan.kind)
        params = as_plain(from_mapping(known.params, plan.params_of(method), method))
        return Provenance(
            self.model, catalog.revision(self.model), method, known.version, params, target,
            prediction.labels[target], plan.seed, plan.dtype, runtime.device_type(),
        )  # fmt: skip
