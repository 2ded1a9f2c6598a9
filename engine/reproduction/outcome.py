"""What a reproduction found: plain values that a report is written from and the cache keeps."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from engine.reproduction.measures import Source
from engine.reproduction.verdicts import CHANCE, RENAMED, VERDICTS, Finding, Verdict, p_of_correlation, p_of_share


@dataclass(frozen=True)
class Number:
    """A contrast with the ends of its 95 % interval, and of the one that is widened for all numbers of its claim.
    `verdict`: whether it is inside its bounds. `at_best`: all that it compares is the best that its score can be.
    """

    name: str
    value: float
    low: float
    high: float
    wide_low: float
    wide_high: float
    n: int
    verdict: Finding
    at_best: bool = False


@dataclass(frozen=True)
class Outcome:
    """What became of a claim. `entries`: what must hold, each by one of its numbers.

    `why`: why it was not run, or is no finding. `settled_by`, `on_bound`: those of `verdicts.Judgement`, in `unit`.
    """

    id: str
    verdict: Verdict
    entries: tuple[tuple[Number, ...], ...] = ()
    why: str = ""
    settled_by: int | None = None
    on_bound: int = 0
    unit: str = "examples"

    @property
    def numbers(self) -> tuple[Number, ...]:
        return tuple(number for entry in self.entries for number in entry)


@dataclass(frozen=True)
class ModelFound:
    """`accuracy`: on the `n` examples that were evaluated, None where labels are not known or it was not there.

    `revision`: a hash of its weights. `classes`: of the data set, 0 where it is not known. `correlation`: of a
    regression model in the place of the accuracy, Pearson's with the labels.
    """

    name: str
    data: str
    why: str
    accuracy: float | None
    n: int
    revision: str = ""
    classes: int = 0
    correlation: float | None = None

    @property
    def p_value(self) -> float | None:
        """Of being right so often, or correlated so much, by chance; None where that is not known."""
        if self.correlation is not None:
            return p_of_correlation(self.correlation, self.n)
        if self.accuracy is None or self.classes < 2:
            return None
        return p_of_share(round(self.accuracy * self.n), self.n, self.classes)

    @property
    def unlearned(self) -> bool:
        """Whether it is known to be no better than chance: its p is above 0.05."""
        return self.p_value is not None and self.p_value > CHANCE


@dataclass(frozen=True)
class ExperimentFound:
    """`plan`: the fields of what was done, empty where nothing was; `why`: why not. `source`: the kind of it."""

    name: str
    plan: Mapping[str, Any]
    why: str
    skipped: int
    """Examples that failed, over all models."""
    source: Source = "evaluation"


@dataclass(frozen=True)
class Reproduction:
    """All that a report says. `versions`: of what computed it. `given`: models and data sets whose folders were."""

    command: str
    scale: str
    examples: int
    seed: int
    digest: str
    versions: Mapping[str, str]
    models: tuple[ModelFound, ...]
    experiments: tuple[ExperimentFound, ...]
    outcomes: tuple[Outcome, ...]
    given: tuple[str, ...] = ()

    @property
    def counts(self) -> dict[Verdict, int]:
        """How many claims have each verdict."""
        found = Counter(one.verdict for one in self.outcomes)
        return {verdict: found[verdict] for verdict in VERDICTS}

    def as_plain(self) -> dict[str, Any]:
        return dataclasses.asdict(self)


def from_plain(plain: Mapping[str, Any]) -> Reproduction:
    """The opposite of `as_plain`; verdicts of older reports get their names of now."""
    return Reproduction(
        **{
            **plain,
            "models": tuple(ModelFound(**one) for one in plain["models"]),
            "experiments": tuple(ExperimentFound(**one) for one in plain["experiments"]),
            "outcomes": tuple(_outcome(one) for one in plain["outcomes"]),
            "given": tuple(plain["given"]),
        }
    )


def _outcome(plain: Mapping[str, Any]) -> Outcome:
    entries = tuple(tuple(Number(**_renamed(number)) for number in entry) for entry in plain["entries"])
    return Outcome(**{**_renamed(plain), "entries": entries})


def _renamed(plain: Mapping[str, Any]) -> dict[str, Any]:
    return {**plain, "verdict": RENAMED.get(plain["verdict"], plain["verdict"])}
