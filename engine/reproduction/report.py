"""The report of a reproduction: verdicts derived from numbers and their intervals, in types that the cache stores."""

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
"""Verdicts that are findings about explanations."""
NON_FINDINGS: tuple[NonFinding, ...] = get_args(NonFinding)
"""Verdicts that are not findings, because the result was certain beforehand or nothing was measured.

True by construction: the numbers would hold with random weights too. At a ceiling: every compared number is the best
possible score. Counted with another claim: at this scale one data set stands in for both tasks, so both claims rest on
the same numbers.
"""
CONSTRUCTION, CEILING, DUPLICATE, UNLEARNED, NOT_RUN = NON_FINDINGS
VERDICTS: tuple[Verdict, ...] = (*FINDINGS, *NON_FINDINGS)
FORMER_NAMES: dict[str, Verdict] = {"cannot be told": "undecided"}
"""Current names of verdicts by their names in older reports and links."""
OPPOSED: frozenset[Verdict] = frozenset({"holds", "does not hold"})
"""Verdicts that contradict each other if two trainings of the same models give them to one claim."""
Bounds = tuple[int | float | None, int | float | None]
Ends = tuple[int | float, int | float]
ROUNDING = 1e-9
"""Tolerance for rounding errors in sums of equal values."""
ERROR_RATE = 0.05
"""Maximum probability of a wrong verdict on a claim."""
POWER = 0.8
"""Probability that the reported number of examples settles an undecided number."""
SOURCE_POWER = 1 / 3
"""Power of the paper's design at the smallest gain that counts (Simonsohn, 2015)."""
CEILING_WIDTH = 0.01
"""A mean within this distance of the best possible score is at a ceiling."""


@dataclass(frozen=True)
class Margin:
    """Distance of a number inside its bounds, negative outside, estimated from `n` examples or seeds.

    `low`, `high`: ends of its two-sided intervals at the first and the second of `error_rates`. `strict`: whether the
    bound itself is outside. `smallest_gain`: a number whose `high` is below it is outside too, unless its `low` is
    inside; 0 if any distance counts.
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
        """Number of examples or seeds that would decide it with power 0.8; None for a value on its bound."""
        return min(self.settled_as.values(), default=None)

    @property
    def settled_as(self) -> dict[Finding, int]:
        """The n that would decide it, by the verdict that the observed value then leads to.

        The interval of a mean narrows with the square root of n. Its half width h is z standard errors; a bound at the
        distance d is excluded with power 0.8 if d is z + z(0.8) standard errors: at n (h / d)^2 (1 + z(0.8) / z)^2.
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
    """The verdict on a claim.

    `settled_by`: the n that would decide an undecided claim. `on_bound`: how many of its undecided numbers lie on a
    bound, if the claim cannot be decided without them; `settled_by` is then the n for the others, None if there are
    none.
    """

    verdict: Finding
    settled_by: int | None = None
    on_bound: int = 0


def margin(
    value: float, plain: Ends, wide: Ends, bounds: Bounds, n: int, strict: bool = False,
    error_rates: tuple[float, float] = (ERROR_RATE, ERROR_RATE), smallest_gain: float = 0.0,
) -> Margin:  # fmt: skip
    """Return the margin of a number that must lie between `bounds`; None is no bound.

    The number holds if the interval `plain` lies inside, and fails if `wide` lies outside. `strict`, `smallest_gain`:
    see `Margin`.
    """
    lower, upper = -math.inf if bounds[0] is None else bounds[0], math.inf if bounds[1] is None else bounds[1]

    def inside(number: float) -> float:
        return min(number - lower, upper - number)

    # The distance from two bounds is largest midway between them.
    if math.isfinite(lower) and math.isfinite(upper):
        middle = (lower + upper) / 2
    else:
        middle = math.inf if math.isfinite(lower) else -math.inf
    best = min(max(middle, wide[0]), wide[1])
    return Margin(inside(value), min(map(inside, plain)), inside(best), n, strict, error_rates, smallest_gain)


def best_margin(choices: Sequence[Margin]) -> Margin:
    """Combine the margins of several numbers if one inside its bounds is enough."""
    return replace(
        choices[0],
        value=max(one.value for one in choices),
        low=max(one.low for one in choices),
        high=max(one.high for one in choices),
        n=min(one.n for one in choices),
    )


@functools.cache
def detectable_effect(n: int, power: float = SOURCE_POWER) -> float:
    """Return the effect size that a two-sided t test at 5% with two groups of `n` detects with this power.

    The unit is the standard deviation within a group. The default power is that of "small telescopes" (Simonsohn,
    2015): smaller effects would be missed more than two times in three.
    """
    critical = scipy.stats.t.ppf(1 - ERROR_RATE / 2, 2 * n - 2)

    def missing(shift: float) -> float:
        return power - float(scipy.stats.nct.sf(critical, 2 * n - 2, shift))

    return float(scipy.optimize.brentq(missing, 1e-6, 5.0)) * (2 / n) ** 0.5


def error_rates(entries: int, choices: int, least: int) -> tuple[float, float]:
    """Return error rates for "holds" and "does not hold" that keep a claim's error probability at `ERROR_RATE`.

    If all intervals must lie inside, a wrong "holds" requires that the interval of one particular number is wrong, so
    nothing is widened (Berger, 1982). If one of several intervals decides, each gets an equal part of the rate
    (Bonferroni).
    """
    part = ERROR_RATE / max(entries, choices)
    return (ERROR_RATE if choices == 1 and least == entries else part), part


def judge_margins(margins: Sequence[Margin], least: int | None = None) -> Judgment:
    """Judge a claim of several numbers, of which `least` must be inside their bounds (None: all).

    An undecided claim comes with the n at which enough of its numbers would be decided, taking the observed values as
    true.
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
    """Return the one-sided p-value of Student's t test for a correlation above 0; 1 for fewer than three examples."""
    if n < 3 or r >= 1:
        return 0.0 if n >= 3 else 1.0
    return float(scipy.stats.t.sf(r * ((n - 2) / (1 - r * r)) ** 0.5, n - 2))


@dataclass(frozen=True)
class ClaimNumber:
    """The value of a contrast with its 95% interval, and the interval widened for all numbers of its claim.

    `verdict`: whether it is inside its bounds. `at_best`: whether every value that it compares is the best possible
    score. `smallest_gain`: a gain whose widened interval lies below it does not count; 0 if any gain counts.
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
        """Whether it fails only because its widened interval lies below the smallest gain that counts."""
        return self.verdict == "does not hold" and 0 <= self.wide_high < self.smallest_gain


@dataclass(frozen=True)
class ClaimOutcome:
    """The outcome of a claim. `entries`: groups of alternative numbers; an entry holds if one of its numbers does.

    `why`: why it was not run or is not a finding. `settled_by`, `on_bound`: as in `Judgment`, counted in `unit`.
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
        """Whether it fails only because its gains are smaller than the smallest gain that counts."""
        outside = [number for number in self.numbers if number.verdict == "does not hold"]
        return self.verdict == "does not hold" and bool(outside) and all(number.too_small for number in outside)


@dataclass(frozen=True)
class ModelSummary:
    """A model of a report. `why`: why it is unavailable, else empty.

    `accuracy`: on the `n` evaluated examples; None if labels are unknown or the model is unavailable. `revision`: a
    hash of its weights. `classes`: number of classes of the data set, 0 if unknown. `correlation`: Pearson's
    correlation with the labels, which a regression model has in place of an accuracy.
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
        """P-value of the accuracy or correlation under chance; None if it is unknown."""
        if self.correlation is not None:
            return correlation_p_value(self.correlation, self.n)
        if self.accuracy is None or self.classes < 2:
            return None
        return share_p_value(round(self.accuracy * self.n), self.n, self.classes)

    @property
    def unlearned(self) -> bool:
        """Whether it is no better than chance: its p-value is known and above 0.05."""
        return self.p_value is not None and self.p_value > ERROR_RATE


@dataclass(frozen=True)
class ExperimentSummary:
    """An experiment of a report. `plan`: its fields, empty if it was not run; `why`: why not. `source`: its kind."""

    name: str
    plan: Mapping[str, Any]
    why: str
    skipped: int
    """Number of examples that failed, over all models; or number of unfinished students."""
    source: Source = "evaluation"


@dataclass(frozen=True)
class TableRow:
    """A number of a table of the SMaT paper. `table`: the measure. `what`: the setting.

    Simulability and heads: median and quartiles over `n` students with `train_size` examples. AUC: mean and 95%
    interval over `n` examples of a `side` of a pair, empty for the whole example. `note`: a remark, else empty.
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
    """The content of a report. `digest`: hash of the declared claims. `versions`: versions of the software.

    `given`: names of models and data sets whose folders were given. `rows`: rows of the paper's tables; None for a
    paper without.
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
        """Number of claims with each verdict."""
        counts = Counter(one.verdict for one in self.outcomes)
        return {verdict: counts[verdict] for verdict in VERDICTS}

    def as_plain(self) -> dict[str, Any]:
        plain = dataclasses.asdict(self)
        if self.rows is None:
            del plain["rows"]
        return plain


def report_from_plain(plain: Mapping[str, Any]) -> Reproduction:
    """Inverse of `Reproduction.as_plain`; verdicts of older reports get their current names."""
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
