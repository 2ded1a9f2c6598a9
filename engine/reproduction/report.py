"""The report of a reproduction: verdicts from numbers and their intervals, as plain values that the cache stores."""

from __future__ import annotations

import dataclasses
import functools
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import NormalDist
from typing import Any, Literal, get_args

from engine.lazy import scipy
from engine.models.chance import share_p_value
from engine.reproduction.papers import Source

Finding = Literal["holds", "does not hold", "undecided"]
NonFinding = Literal[
    "true by construction",
    "at a ceiling",
    "counted with another claim",
    "not run: the model has not learned the task",
    "not run",
]
Verdict = Literal[Finding, NonFinding]
FINDINGS: tuple[Finding, ...] = get_args(Finding)
"""Verdicts that say something about explanations."""
NON_FINDINGS: tuple[NonFinding, ...] = get_args(NonFinding)
"""Verdicts that are no finding: the comparison could not have come out otherwise, or was not measured.

True by construction: the numbers hold, and would with random weights. At a ceiling: every number that is compared is
the best that its score can be. Counted with another claim: at this scale one data set stands in for both tasks, so
both claims rest on the same numbers.
"""
CONSTRUCTION, CEILING, DUPLICATE, UNLEARNED, NOT_RUN = NON_FINDINGS
VERDICTS: tuple[Verdict, ...] = (*FINDINGS, *NON_FINDINGS)
FORMER_NAMES: dict[str, Verdict] = {"cannot be told": "undecided"}
"""Current names of the verdicts of older reports and links."""
OPPOSED: frozenset[Verdict] = frozenset({"holds", "does not hold"})
"""Verdicts that two trainings of the same models may give one claim."""
Bounds = tuple[int | float | None, int | float | None]
Ends = tuple[int | float, int | float]
ROUNDING = 1e-9
"""Rounding error allowed in sums of equal values."""
ERROR_RATE = 0.05
"""Highest probability of a wrong verdict, for a whole claim."""
POWER = 0.8
"""Probability that the reported number of examples settles an undecided number."""
SOURCE_POWER = 1 / 3
"""Power of the source's design at the smallest gain that counts (Simonsohn, 2015)."""
CEILING_WIDTH = 0.01
"""A mean within this distance of the best that its score can be is at a ceiling."""


@dataclass(frozen=True)
class Margin:
    """Distance by which a number is inside its bounds, negative outside. Of `n` examples or seeds.

    `low`: the least, wrong at the first of `error_rates` (of a two-sided interval); `high`: the most, wrong at the
    second. `strict`: the bound itself is outside. `smallest_gain`: a number whose `high` is below this distance is
    outside too, unless its `low` is inside; 0 where any distance counts.
    """

    value: int | float
    low: int | float
    high: int | float
    n: int
    strict: bool = False
    error_rates: tuple[float, float] = (ERROR_RATE, ERROR_RATE)
    smallest_gain: float = 0.0

    @property
    def verdict(self) -> Finding:
        bound = ROUNDING if self.strict else -ROUNDING
        if self.low >= bound:
            return "holds"
        return "does not hold" if self.high < (self.smallest_gain or bound) else "undecided"

    @property
    def settled_by(self) -> int | None:
        """Number of examples or seeds that would settle it with power 0.8; None where none would: it is the bound."""
        return min(self.settled_as.values(), default=None)

    @property
    def settled_as(self) -> dict[Finding, int]:
        """That number for each verdict that it may lead to, as the number now lies.

        An interval of a mean narrows with the square root of n. Half of it, h, is z standard errors long; the bound,
        at a distance d, is excluded with power 0.8 once d is z + z(0.8) of them: at n (h / d)^2 (1 + z(0.8) / z)^2.
        """
        distances: dict[Finding, tuple[float, float, float]] = {
            "holds": (self.value, self.value - self.low, self.error_rates[0]),
            "does not hold": (self.smallest_gain - self.value, self.high - self.value, self.error_rates[1]),
        }
        counts: dict[Finding, int] = {}
        for verdict, (distance, half, rate) in distances.items():
            if distance > ROUNDING:
                times = (1 + NormalDist().inv_cdf(POWER) / NormalDist().inv_cdf(1 - rate / 2)) ** 2
                counts[verdict] = math.ceil(round(self.n * times * (half / distance) ** 2, 6))
        return counts


@dataclass(frozen=True)
class Judgment:
    """`settled_by`: the n that would settle an undecided claim. `on_bound`: numbers that no n would settle, and
    without which nothing is settled; the n is then that of the others, None where there are none."""

    verdict: Finding
    settled_by: int | None = None
    on_bound: int = 0


def margin(
    value: float, plain: Ends, wide: Ends, bounds: Bounds, n: int, strict: bool = False,
    error_rates: tuple[float, float] = (ERROR_RATE, ERROR_RATE), smallest_gain: float = 0.0,
) -> Margin:  # fmt: skip
    """Margin of a number that must lie between the bounds; None is no bound.

    `plain` must lie inside for it to hold, `wide` outside for it not to. `strict`: and not on a bound.
    `smallest_gain`: see `Margin`.
    """
    lower, upper = -math.inf if bounds[0] is None else bounds[0], math.inf if bounds[1] is None else bounds[1]

    def inside(number: float) -> float:
        return min(number - lower, upper - number)

    # Between two bounds a number is farthest from both in their middle.
    if math.isfinite(lower) and math.isfinite(upper):
        middle = (lower + upper) / 2
    else:
        middle = math.inf if math.isfinite(lower) else -math.inf
    best = min(max(middle, wide[0]), wide[1])
    return Margin(inside(value), min(map(inside, plain)), inside(best), n, strict, error_rates, smallest_gain)


def best_margin(choices: Sequence[Margin]) -> Margin:
    """The margin of several numbers of which one inside is enough."""
    return replace(
        choices[0],
        value=max(one.value for one in choices),
        low=max(one.low for one in choices),
        high=max(one.high for one in choices),
        n=min(one.n for one in choices),
    )


@functools.cache
def detectable_effect(n: int, power: float = SOURCE_POWER) -> float:
    """The difference, in standard deviations within a group, that two groups of `n` detect with that power.

    By a two-sided t test at 5%. The default power is that of "small telescopes" (Simonsohn, 2015): an effect that is
    smaller would be missed more than two times in three.
    """
    critical = scipy.stats.t.ppf(1 - ERROR_RATE / 2, 2 * n - 2)

    def missing(shift: float) -> float:
        return power - float(scipy.stats.nct.sf(critical, 2 * n - 2, shift))

    return float(scipy.optimize.brentq(missing, 1e-6, 5.0)) * (2 / n) ** 0.5


def error_rates(entries: int, choices: int, least: int) -> tuple[float, float]:
    """Error rates of the intervals that must be inside, and outside, for a verdict wrong with at most `ERROR_RATE`.

    Where all must be inside, a wrong "holds" needs a wrong interval of one certain number: no widening (Berger, 1982).
    Where one stray interval would decide, each gets an equal part of the rate (Bonferroni).
    """
    part = ERROR_RATE / max(entries, choices)
    return (ERROR_RATE if choices == 1 and least == entries else part), part


def judge_margins(margins: Sequence[Margin], least: int | None = None) -> Judgment:
    """Judge several numbers of which `least` must be inside, None for all.

    Undecided ones come with the n at which, as they now lie, enough of them would be settled for a verdict.
    """
    needed = len(margins) if least is None else least
    verdicts = [one.verdict for one in margins]
    need_inside = needed - verdicts.count("holds")
    need_outside = len(margins) - needed + 1 - verdicts.count("does not hold")
    if need_inside <= 0 or need_outside <= 0:
        return Judgment("holds" if need_inside <= 0 else "does not hold")
    undecided = [one for one in margins if one.verdict == "undecided"]
    inside, outside = (
        sorted(n for one in undecided if (n := one.settled_as.get(verdict)) is not None and n == one.settled_by)
        for verdict in ("holds", "does not hold")
    )
    for counts, need in ((inside, need_inside), (outside, need_outside)):
        if len(counts) >= need:
            return Judgment("undecided", counts[need - 1])
    settled = [n for one in undecided if (n := one.settled_by) is not None]
    return Judgment("undecided", max(settled, default=None), len(undecided) - len(settled))


def correlation_p_value(r: float, n: int) -> float:
    """P value of Student's t test, one-sided: a correlation as high, or higher, by chance; 1 of fewer than three."""
    if n < 3 or r >= 1:
        return 0.0 if n >= 3 else 1.0
    return float(scipy.stats.t.sf(r * ((n - 2) / (1 - r * r)) ** 0.5, n - 2))


@dataclass(frozen=True)
class ClaimNumber:
    """A contrast with the ends of its 95% interval, and of the one that is widened for all numbers of its claim.
    `verdict`: whether it is inside its bounds. `at_best`: all that it compares is the best that its score can be.
    `smallest_gain`: a gain that is surely below it does not count; 0 where any does.
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
    smallest_gain: float = 0.0

    @property
    def too_small(self) -> bool:
        """Whether it is outside only because it is surely below the smallest gain that counts."""
        return self.verdict == "does not hold" and 0 <= self.wide_high < self.smallest_gain


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

    @property
    def too_small(self) -> bool:
        """Whether it fails only because a gain, if there is one, is smaller than counts."""
        outside = [number for number in self.numbers if number.verdict == "does not hold"]
        return self.verdict == "does not hold" and bool(outside) and all(number.too_small for number in outside)


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

    Simulability and heads: median and quartiles over `n` students; `train_size` examples. AUC: mean and 95% interval
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
