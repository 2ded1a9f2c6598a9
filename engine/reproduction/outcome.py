"""What a reproduction found: plain values that a report is written from and the cache keeps."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from engine.reproduction.measures import Source
from engine.reproduction.verdicts import VERDICTS, Verdict


@dataclass(frozen=True)
class Number:
    """A contrast with the ends of its 95 % interval, and of the one that is widened for all numbers of its claim.
    `verdict`: whether it is inside its bounds."""

    name: str
    value: float
    low: float
    high: float
    wide_low: float
    wide_high: float
    n: int
    verdict: Verdict


@dataclass(frozen=True)
class Outcome:
    """What became of a claim. `entries`: what must hold, each by one of its numbers.

    `why`: why it was not run, or has no number. `settled_by`, `on_bound`: those of `verdicts.Judgement`, in `unit`.
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
    `revision`: a hash of its weights."""

    name: str
    data: str
    why: str
    accuracy: float | None
    n: int
    revision: str = ""


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
    """The opposite of `as_plain`."""
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
    entries = tuple(tuple(Number(**number) for number in entry) for entry in plain["entries"])
    return Outcome(**{**plain, "entries": entries})
