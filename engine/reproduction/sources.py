"""The experiments that claims rest on: how each is planned, carried out and found again, and its values by example."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from engine.evaluation.plan import RANDOM, Plan
from engine.evaluation.reasons import SAME
from engine.explainers.ensemble import TOP_THREE
from engine.progress import Report, silent
from engine.reproduction.changes import rows_of_attacks
from engine.reproduction.curves import rows_of_models
from engine.reproduction.measures import ATTACKS, Source

if TYPE_CHECKING:
    from engine.attacks.findings import Findings
    from engine.attacks.plan import AttackPlan
    from engine.evaluation.result import Evaluation
    from engine.evaluation.sample import Sample
    from engine.metrics.results import MetricRow
    from engine.randomization.plan import RandomizationPlan
    from engine.randomization.result import RandomizationResult

METHODS = (
    *TOP_THREE, "gradient_l2", "gradient_x_input", "attention_mean", "attention_rollout",
    "ensemble_all", "ensemble_top3",
)  # fmt: skip
"""The thesis's; why the L2 norm stands for its Gradients is told in what is declared."""
GRADIENTS = ("gradient_l2", "gradient_x_input", "integrated_gradients")
"""Those that can be attacked."""
RANDOMIZED = (*GRADIENTS, "attention_mean", "attention_rollout")
"""Those that depend on the parameters."""

Settings = Mapping[str, Any]
Rights = Iterable[tuple[str, bool | None]]


@dataclass(frozen=True)
class Wanted:
    """What every experiment is told. `settings`: what is declared of it beside the claims."""

    models: tuple[str, ...]
    dataset: str
    metrics: tuple[str, ...]
    examples: int
    seed: int
    settings: Settings = field(default_factory=dict)


class Way(ABC):
    """Of one kind of experiment. `job`: the kind of job that does the same. Plans and findings are of its own kind."""

    job: str

    @abstractmethod
    def plan(self, asked: Wanted) -> Any:
        """What is to be carried out."""

    @abstractmethod
    def carry_out(self, plan: Any, report: Report = silent) -> Any:
        """What is there from before is not computed again."""

    @abstractmethod
    def keys(self, plan: Any) -> list[str]:
        """The cache keys of what it finds. Errors: those of reading the data set."""

    @abstractmethod
    def sample(self, plan: Any) -> Sample:
        """The examples. Errors: those of reading the data set."""

    @abstractmethod
    def rows(self, found: Any) -> Iterable[MetricRow]:
        """A value of an example by model, method and measure."""

    @abstractmethod
    def rights(self, found: Any) -> Rights:
        """Of each example, by model, whether the model is right; None where that is not known."""

    @abstractmethod
    def skipped(self, found: Any) -> int:
        """Examples that failed, over all models."""


class Evaluations(Way):
    job = "evaluate"

    def plan(self, asked: Wanted) -> Plan:
        return Plan(asked.models, asked.dataset, METHODS, asked.metrics, asked.examples, asked.seed, **asked.settings)

    def carry_out(self, plan: Plan, report: Report = silent) -> Evaluation:
        from engine.evaluation.evaluate import carry_out

        return carry_out(plan, report)

    def keys(self, plan: Plan) -> list[str]:
        from engine.evaluation.keeping import key_of
        from engine.evaluation.sample import with_metrics

        sample = self.sample(plan)
        whole = with_metrics(plan, sample)
        return [key_of(whole, model, sample) for model in whole.models]

    def sample(self, plan: Plan) -> Sample:
        from engine.evaluation.sample import sample_of

        return sample_of(plan)

    def rows(self, found: Evaluation) -> Iterable[MetricRow]:
        return (*found.rows, *_by_chance(found))

    def rights(self, found: Evaluation) -> Rights:
        return ((one.model, one.right) for one in found.facts)

    def skipped(self, found: Evaluation) -> int:
        return len({(skip.of.model, skip.example) for skip in found.skips})


def _by_chance(found: Evaluation) -> Iterator[MetricRow]:
    """For a method whose maps put nothing in order on a model, what the random order comes to on the same examples."""
    keys = ((row.of.model, row.of.metric, row.example) for row in found.rows if row.of.method == RANDOM)
    chance = dict(zip(keys, (row for row in found.rows if row.of.method == RANDOM), strict=True))
    for skip in found.skips:
        if skip.reason == SAME and (key := (skip.of.model, skip.of.metric, skip.example)) in chance:
            yield replace(chance[key], of=skip.of)


class Randomizations(Way):
    job = "randomize"

    def plan(self, asked: Wanted) -> RandomizationPlan:
        from engine.randomization.plan import RandomizationPlan

        return RandomizationPlan(asked.models, asked.dataset, RANDOMIZED, asked.examples, asked.seed, **asked.settings)

    def carry_out(self, plan: RandomizationPlan, report: Report = silent) -> RandomizationResult:
        from engine.experiments.run import carry_out

        return carry_out(plan, report)

    def keys(self, plan: RandomizationPlan) -> list[str]:
        from engine.experiments.run import key_of

        sample = self.sample(plan)
        return [key_of(plan, model, sample) for model in plan.models]

    def sample(self, plan: RandomizationPlan) -> Sample:
        from engine.experiments.run import sample_of

        return sample_of(plan)

    def rows(self, found: RandomizationResult) -> Iterable[MetricRow]:
        return rows_of_models(found.models)

    def rights(self, found: RandomizationResult) -> Rights:
        from engine.reproduction.accuracy import predicted, rights_of

        source = self.sample(found.plan).source
        for one in found.models:
            pairs = predicted(one.model, source, one.examples, found.plan.dtype)
            yield from ((one.model, right) for right in rights_of(pairs, source))

    def skipped(self, found: RandomizationResult) -> int:
        return sum(len(one.failed) for one in found.models)


class Attacks(Way):
    job = "attack"

    def plan(self, asked: Wanted) -> AttackPlan:
        from engine.attacks.params import AttackParams
        from engine.attacks.plan import AttackPlan

        every = vars(AttackParams()).items()
        usual = {name: value for name, value in every if name != "objective" and value is not None}
        own = {**asked.settings, "attack": {**usual, **asked.settings.get("attack", {})}}
        return AttackPlan(asked.models, asked.dataset, GRADIENTS, ATTACKS, asked.examples, asked.seed, **own)

    def carry_out(self, plan: AttackPlan, report: Report = silent) -> Findings:
        from engine.attacks.experiment import carry_out

        return carry_out(plan, report)

    def keys(self, plan: AttackPlan) -> list[str]:
        from engine.attacks.keeping import key_of

        return [key_of(plan, self.sample(plan))]

    def sample(self, plan: AttackPlan) -> Sample:
        from engine.evaluation.sample import sample_of

        return sample_of(plan.sampled)

    def rows(self, found: Findings) -> Iterable[MetricRow]:
        return rows_of_attacks(found.rows)

    def rights(self, found: Findings) -> Rights:
        return ((one.model, one.right) for one in found.facts)

    def skipped(self, found: Findings) -> int:
        return len({(skip.of.model, skip.example) for skip in found.skips})


WAYS: Mapping[Source, Way] = {"evaluation": Evaluations(), "randomization": Randomizations(), "attack": Attacks()}
