"""The report of a reproduction: plain values that a document is written from and the cache stores."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from engine.reproduction.measures import Source
from engine.reproduction.verdicts import (
    ERROR_RATE,
    FORMER_NAMES,
    VERDICTS,
    Finding,
    Verdict,
    correlation_p_value,
    share_p_value,
)


@dataclass(frozen=True)
class ClaimNumber:
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
class ClaimOutcome:
    """The outcome of a claim. `entries`: what must hold, each by one of its numbers.

    `why`: why it was not run, or is no finding. `settled_by`, `on_bound`: those of `verdicts.Judgment`, in `unit`.
    """

    id: str
    verdict: Verdict
    entries: tuple[tuple[ClaimNumber, ...], ...] = ()
    why: str = ""
    settled_by: int | None = None
    on_bound: int = 0
    unit: str = "examples"

    @property
    def numbers(self) -> tuple[ClaimNumber, ...]:
        return tuple(number for entry in self.entries for number in entry)


@dataclass(frozen=True)
class ModelSummary:
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
        """P value of being right so often, or correlated so much, by chance; None where that is not known."""
        if self.correlation is not None:
            return correlation_p_value(self.correlation, self.n)
        if self.accuracy is None or self.classes < 2:
            return None
        return share_p_value(round(self.accuracy * self.n), self.n, self.classes)

    @property
    def unlearned(self) -> bool:
        """Whether it is known to be no better than chance: its p is above 0.05."""
        return self.p_value is not None and self.p_value > ERROR_RATE


@dataclass(frozen=True)
class ExperimentSummary:
    """`plan`: the fields of what was done, empty where nothing was; `why`: why not. `source`: the kind of it."""

    name: str
    plan: Mapping[str, Any]
    why: str
    skipped: int
    """Examples that failed, over all models; students that are not finished."""
    source: Source = "evaluation"


@dataclass(frozen=True)
class TableRow:
    """A number of a table of the SMaT paper. `table`: the measure. `what`: the setting.

    Simulability and heads: median and quartiles over `n` students; `train_size` examples. AUC: mean and 95 % interval
    over `n` examples of a `side`, empty for all of it. `note`: what else is to be known, in words, else empty.
    """

    table: str
    task: str
    normalisation: str
    what: str
    side: str
    train_size: int
    value: float
    low: float
    high: float
    n: int
    note: str = ""


@dataclass(frozen=True)
class Reproduction:
    """All that a report says. `versions`: of what computed it. `given`: models and data sets whose folders were.

    `rows`: of the paper's tables; None of a paper without.
    """

    command: str
    scale: str
    examples: int
    seed: int
    digest: str
    versions: Mapping[str, str]
    models: tuple[ModelSummary, ...]
    experiments: tuple[ExperimentSummary, ...]
    outcomes: tuple[ClaimOutcome, ...]
    given: tuple[str, ...] = ()
    rows: tuple[TableRow, ...] | None = None

    @property
    def counts(self) -> dict[Verdict, int]:
        """How many claims have each verdict."""
        counts = Counter(one.verdict for one in self.outcomes)
        return {verdict: counts[verdict] for verdict in VERDICTS}

    def as_plain(self) -> dict[str, Any]:
        plain = dataclasses.asdict(self)
        if self.rows is None:
            del plain["rows"]
        return plain


def report_from_plain(plain: Mapping[str, Any]) -> Reproduction:
    """The opposite of `Reproduction.as_plain`; verdicts of older reports get their current names."""
    rows = plain.get("rows")
    return Reproduction(
        **{
            **plain,
            "models": tuple(ModelSummary(**one) for one in plain["models"]),
            "experiments": tuple(ExperimentSummary(**one) for one in plain["experiments"]),
            "outcomes": tuple(_outcome(one) for one in plain["outcomes"]),
            "given": tuple(plain["given"]),
            "rows": None if rows is None else tuple(TableRow(**one) for one in rows),
        }
    )


def _outcome(plain: Mapping[str, Any]) -> ClaimOutcome:
    entries = tuple(tuple(ClaimNumber(**_current(number)) for number in entry) for entry in plain["entries"])
    return ClaimOutcome(**{**_current(plain), "entries": entries})


def _current(plain: Mapping[str, Any]) -> dict[str, Any]:
    return {**plain, "verdict": FORMER_NAMES.get(plain["verdict"], plain["verdict"])}
