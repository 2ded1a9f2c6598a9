"""The question that a reproduction answers, and what a paper must supply for the engine to answer it."""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol, runtime_checkable

from engine.errors import not_allowed
from engine.metrics.results import Interval
from engine.progress import Report, silent
from engine.reproduction.claims import Claim, Contrast, Declaration, declaration
from engine.reproduction.papers import TOPICS, Topic, scale_of
from engine.reproduction.report import ClaimNumber, ExperimentSummary, Margin, ModelSummary, TableRow, margin

PLACES_FILE = "places.json"
"""Name that a report gives the file of folders by name."""


class NoNumber(Exception):
    """Says why a contrast comes to no number."""


@runtime_checkable
class Findings(Protocol):
    """The values of all experiments, as claims ask for them."""

    def entries(self, claim: Claim) -> Sequence[Sequence[Contrast]]:
        """The claim's entries on the data sets that were used."""

    def missing(self, claim: Claim) -> str:
        """Why what the claim needs is not there, else empty."""

    def number(
        self, claim: Claim, contrast: Contrast, seed: int, error_rates: tuple[float, float]
    ) -> tuple[ClaimNumber, Margin]:
        """The number of a contrast, and how far it is inside the claim's bounds. Errors: `NoNumber`."""


@dataclass(frozen=True)
class Evidence:
    """What the experiments of a query yield. `rows`: of the paper's tables, None of a paper without."""

    findings: Findings
    models: tuple[ModelSummary, ...]
    experiments: tuple[ExperimentSummary, ...]
    rows: tuple[TableRow, ...] | None = None


@dataclass(frozen=True)
class ReproductionQuery(ABC):
    """`examples`: None for as many as are declared. `claims`: none for all. `places`: folders of models, bases and data
    sets by name."""

    scale: str = "embedded"
    examples: int | None = None
    seed: int = 0
    claims: tuple[str, ...] = ()
    places: Mapping[str, str] = field(default_factory=dict)

    job: ClassVar[str]
    """The kind of job that answers it."""

    @property
    @abstractmethod
    def topic_id(self) -> str:
        """The topic whose claims are meant."""

    @property
    @abstractmethod
    def selected_claims(self) -> tuple[Claim, ...]:
        """The claims that are meant, in the order of the paper."""

    @abstractmethod
    def collect(self, report: Report = silent, compute: bool = True) -> Evidence:
        """Run the experiments that the claims need. `compute`: also what a job would have computed before.

        What is there from before is not computed again.
        """

    @abstractmethod
    def key_parts(self) -> dict[str, Any]:
        """What the report depends on, for its cache key: models and data sets as they are."""

    @abstractmethod
    def models_of_claims(self, models: Sequence[ModelSummary]) -> dict[str, list[ModelSummary]]:
        """The models that each claim rests on, by its id."""

    def duplicates(self) -> dict[str, str]:
        """Claims with the same numbers as an earlier one, and which that is."""
        return {}

    def as_plain(self) -> dict[str, object]:
        return {**dataclasses.asdict(self), "claims": list(self.claims)}

    def check(self) -> None:
        """Raise `UsageError` for an unknown scale or claim, and for numbers that are not allowed."""
        scale_of(self.scale)
        self.declaration.select(self.claims)
        if self.examples is not None and (type(self.examples) is not int or self.examples < 2):
            raise not_allowed("examples", "a whole number of at least 2", self.examples)
        if type(self.seed) is not int or self.seed < 0:
            raise not_allowed("seed", "a whole number of at least 0", self.seed)

    @property
    def about(self) -> Topic:
        """The topic as data."""
        return TOPICS[self.topic_id]

    @property
    def declaration(self) -> Declaration:
        return declaration(self.topic_id)

    @property
    def count(self) -> int:
        """Examples of each data set, where it has as many."""
        return self.declaration.examples[self.scale] if self.examples is None else self.examples

    def command(self) -> str:
        """The command that repeats it. `PLACES_FILE` names the folders of `places`, which are those of this machine."""
        topic = f" --topic {self.topic_id}" if self.about.stem != self.about.paper else ""
        claims = f" --claims {','.join(self.claims)}" if self.claims else ""
        places = f" --places {PLACES_FILE}" if self.places else ""
        numbers = f"--scale {self.scale} --examples {self.count} --seed {self.seed}"
        return f"exegesis reproduce {self.about.paper}{topic} {numbers}{claims}{places}"


def interval_number(
    claim: Claim,
    contrast: Contrast,
    value: float,
    intervals: Sequence[Interval],
    n: int,
    rates: tuple[float, float],
    at_best: bool,
) -> tuple[ClaimNumber, Margin]:
    """A number with intervals over examples. `intervals`: at the plain error rate, then at those of its claim."""
    plain, inner, outer = intervals
    inside = margin(value, inner, outer, claim.bounds, n, claim.strict, rates)
    return ClaimNumber(contrast.name, value, *plain, *outer, n, inside.verdict, at_best), inside
