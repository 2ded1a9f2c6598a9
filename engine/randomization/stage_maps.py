"""The cached maps of one example stage by stage: the data behind a curve."""

from __future__ import annotations

from dataclasses import dataclass

from engine import runtime
from engine.errors import ExegesisError, unknown
from engine.experiments.sample import Sample
from engine.models import catalog
from engine.params import as_plain, from_mapping
from engine.randomization.chunks import PREDICTION, ChunkMaps, ChunkPredictions, ModelWork, Scores, Setting, find_chunk
from engine.randomization.plan import RandomizationPlan
from engine.randomization.stages import ORIGINAL, Stage
from engine.registry import explainer
from engine.result import Explanation, Prediction, Provenance


@dataclass(frozen=True)
class StageMaps:
    """The results of one example at one stage. `stage`: None of the model as it is. `prediction`: of the model then.

    `maps`: by method, as explanations of the class that the model as it is predicts; a method that failed has none.
    """

    stage: Stage | None
    prediction: Prediction
    maps: dict[str, Explanation]


def stage_maps(
    plan: RandomizationPlan, model: str, sample: Sample, index: int, seed: int | None = None
) -> list[StageMaps]:
    """The model as it is, then each stage in the order of `stages_of`, as far as the cache holds it.

    `index`: of the example in the data set, one of `ModelRandomization.examples`. `seed`: of the randomization, the
    first of the plan's if None. No model is loaded. Errors: an example or a seed that is not of the plan.
    """
    reader = _Reader(plan, model, sample, index)
    seed = plan.seed if seed is None else seed
    if seed not in plan.all_seeds:
        raise unknown("seed", seed, map(str, plan.all_seeds))
    original = reader.predictions((ORIGINAL, 0))
    if original is None:
        return []
    settings = [(None, (ORIGINAL, 0)), *((stage, (stage.parts, seed)) for stage in reader.work.stages)]
    each = (reader.stage(stage, setting, original) for stage, setting in settings)
    return [one for one in each if one is not None]


class _Reader:
    """Reads what the cache holds of one example on one model."""

    def __init__(self, plan: RandomizationPlan, model: str, sample: Sample, index: int) -> None:
        self.plan, self.model, self.index = plan, model, index
        self.work = ModelWork(plan, model, sample)
        own = next((indices for indices in self.work.batches if index in indices), None)
        if own is None:
            raise ExegesisError(f"example {index}: is none of the examples of this check. Choose one of them.")
        self.indices = own

    def predictions(self, setting: Setting) -> ChunkPredictions | None:
        """The predictions of the chunk, None where it has none of the example."""
        result = find_chunk(self.work.chunk(setting, self.indices, PREDICTION))
        return result if isinstance(result, ChunkPredictions) and self.index in result.predictions else None

    def stage(self, stage: Stage | None, setting: Setting, original: ChunkPredictions) -> StageMaps | None:
        own = self.predictions(setting)
        if own is None:
            return None
        prediction, maps = own.predictions[self.index], dict[str, Explanation]()
        for method in self.plan.methods_with_baselines:
            result = find_chunk(self.work.chunk(setting, self.indices, method))
            if isinstance(result, ChunkMaps) and self.index in result.scores:
                scores = result.scores[self.index]
                note = () if stage is None else (f"The model is not as it is: {stage.words}, seed {setting[1]}.",)
                maps[method] = self._explanation(method, scores, prediction, original, note)
        return StageMaps(stage, prediction, maps)

    def _explanation(
        self, method: str, scores: Scores, prediction: Prediction, original: ChunkPredictions, notes: tuple[str, ...]
    ) -> Explanation:
        read, target = original.inputs[self.index], original.predictions[self.index].index
        known = explainer(method, self.plan.kind)
        params = as_plain(from_mapping(known.params, self.plan.params_of(method), method))
        provenance = Provenance(
            self.model, catalog.revision(self.model), method, known.version, params, target,
            prediction.labels[target], self.plan.seed, self.plan.dtype, runtime.device_type(),
        )  # fmt: skip
        return Explanation(
            tokens=read.tokens,
            scores=scores,
            prediction=prediction,
            provenance=provenance,
            evaluations=0,
            seconds=0.0,
            notes=notes,
            truncated=read.truncated,
            cached=True,
            grid=read.grid,
        )
