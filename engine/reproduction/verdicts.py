"""From numbers and their intervals to a verdict, and to the number of examples that would settle an open one."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Literal, get_args

Finding = Literal["holds", "does not hold", "undecided"]
Label = Literal[
    "true by construction",
    "at a ceiling",
    "counted with another claim",
    "not run: the model has not learned the task",
    "not run",
]
Verdict = Literal[Finding, Label]
FINDINGS: tuple[Finding, ...] = get_args(Finding)
"""Verdicts that say something about explanations."""
LABELS: tuple[Label, ...] = get_args(Label)
"""Verdicts that are no finding: what was compared could not have come out otherwise, or was not measured.

True by construction: the numbers hold, and would with random weights. At a ceiling: every number that is compared is
the best that its score can be. Counted with another claim: at this scale one data set stands for both of theirs, so
that both rest on the same numbers.
"""
CONSTRUCTION, CEILING, TWIN, UNLEARNED, NOT_RUN = LABELS
VERDICTS: tuple[Verdict, ...] = (*FINDINGS, *LABELS)
RENAMED: dict[str, Verdict] = {"cannot be told": "undecided"}
"""Verdicts of older reports and links by their names now."""
Bounds = tuple[int | float | None, int | float | None]
Ends = tuple[int | float, int | float]
ROUNDING = 1e-9
"""What sums of equal values may be off."""
CHANCE = 0.05
"""Of a wrong verdict, at most, for a whole claim."""
POWER = 0.8
"""How likely the number of examples that is told settles an open number."""


@dataclass(frozen=True)
class Margin:
    """How far a number is inside its bounds, below 0 outside. Of `n` examples.

    `low`: at the least, wrong with the first of `chances` (of a two-sided interval); `high`: at the most, wrong with
    the second. `strict`: the bound itself is outside.
    """

    value: int | float
    low: int | float
    high: int | float
    n: int
    strict: bool = False
    chances: tuple[float, float] = (CHANCE, CHANCE)

    @property
    def verdict(self) -> Finding:
        least = ROUNDING if self.strict else -ROUNDING
        if self.low >= least:
            return "holds"
        return "does not hold" if self.high < least else "undecided"

    @property
    def settled_by(self) -> int | None:
        """How many examples would settle it with power 0.8; None where the number is the bound, where none would.

        An interval of a mean narrows with the square root of n. Half of it, h, is z standard errors long; the bound,
        at a distance d, is excluded with power 0.8 once d is z + z(0.8) of them: at n (h / d)^2 (1 + z(0.8) / z)^2.
        """
        if abs(self.value) <= ROUNDING:
            return None
        inside = self.value > 0
        half = self.value - self.low if inside else self.high - self.value
        quantile = NormalDist().inv_cdf(1 - self.chances[0 if inside else 1] / 2)
        times = (1 + NormalDist().inv_cdf(POWER) / quantile) ** 2
        return math.ceil(round(self.n * times * (half / self.value) ** 2, 6))


@dataclass(frozen=True)
class Judgement:
    """`settled_by`: the n that would settle what is undecided. `on_bound`: numbers for which no n would, and without
    which nothing is settled; the n is then that of the others, None where there are none."""

    verdict: Finding
    settled_by: int | None = None
    on_bound: int = 0


def margin(
    value: float, plain: Ends, wide: Ends, bounds: Bounds, n: int, strict: bool = False,
    chances: tuple[float, float] = (CHANCE, CHANCE),
) -> Margin:  # fmt: skip
    """Of a number that must lie between the bounds; None is no bound. `plain` must lie inside for it to hold, `wide`
    outside for it not to. `strict`: and not on a bound."""
    lower, upper = -math.inf if bounds[0] is None else bounds[0], math.inf if bounds[1] is None else bounds[1]

    def inside(number: float) -> float:
        return min(number - lower, upper - number)

    # Inside two bounds a number is farthest from both in their middle.
    best = min(max(_middle(lower, upper), wide[0]), wide[1])
    return Margin(inside(value), min(map(inside, plain)), inside(best), n, strict, chances)


def _middle(lower: float, upper: float) -> float:
    if math.isfinite(lower) and math.isfinite(upper):
        return (lower + upper) / 2
    return math.inf if math.isfinite(lower) else -math.inf


def most(choices: Sequence[Margin]) -> Margin:
    """Where one of several is enough."""
    return Margin(
        max(one.value for one in choices),
        max(one.low for one in choices),
        max(one.high for one in choices),
        min(one.n for one in choices),
        choices[0].strict,
        choices[0].chances,
    )


def numbers_of(entries: int, choices: int) -> int:
    """For how many numbers the intervals of a claim are widened where one of them could be wrong by chance."""
    return max(entries, choices)


def chances(entries: int, choices: int, least: int) -> tuple[float, float]:
    """Of the intervals that must be inside, and outside, for a verdict that is wrong with at most `CHANCE`.

    Where all must be inside, a wrong "holds" needs a wrong interval of one certain number: no widening (Berger, 1982).
    Where one stray interval would decide, each gets an equal part of the chance (Bonferroni).
    """
    part = CHANCE / numbers_of(entries, choices)
    return (CHANCE if choices == 1 and least == entries else part), part


def judged(asked: Sequence[Margin], least: int | None = None) -> Judgement:
    """Of several of which so many must be inside, None for all. Open ones are told with the n at which, as they now
    lie, enough of them would be told for a verdict."""
    wanted = len(asked) if least is None else least
    verdicts = [one.verdict for one in asked]
    need_inside = wanted - verdicts.count("holds")
    need_outside = len(asked) - wanted + 1 - verdicts.count("does not hold")
    if need_inside <= 0 or need_outside <= 0:
        return Judgement("holds" if need_inside <= 0 else "does not hold")
    unsettled = [one for one in asked if one.verdict == "undecided"]
    inside = sorted(n for one in unsettled if one.value > 0 and (n := one.settled_by) is not None)
    outside = sorted(n for one in unsettled if one.value < 0 and (n := one.settled_by) is not None)
    for counts, need in ((inside, need_inside), (outside, need_outside)):
        if len(counts) >= need:
            return Judgement("undecided", counts[need - 1])
    known = inside + outside
    return Judgement("undecided", max(known, default=None), len(unsettled) - len(known))


def p_of_share(hits: int, n: int, classes: int) -> float:
    """The exact binomial test's p, one-sided: so often right, or more often, by choosing classes at random."""
    from scipy.stats import binomtest

    return float(binomtest(hits, n, 1 / classes, alternative="greater").pvalue)


def p_of_correlation(r: float, n: int) -> float:
    """Student's t test's p, one-sided: a correlation as high, or higher, where there is none; 1 of fewer than three."""
    from scipy.stats import t

    if n < 3 or r >= 1:
        return 0.0 if n >= 3 else 1.0
    return float(t.sf(r * ((n - 2) / (1 - r * r)) ** 0.5, n - 2))
