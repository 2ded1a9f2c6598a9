"""Results of a test of rules: the outcome of each rule on each example, and the scores computed from them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Bool, Float

from engine.lazy import scipy
from engine.metrics.results import LEVEL, Interval, interval, resample, wilson_interval

Booleans = Bool[np.ndarray, "example"]
Floats = Float[np.ndarray, "example"]
NORMAL = 1.959963984540054
"""The two-sided 95% quantile of the normal distribution."""
FEWEST = 2
"""Smallest number of examples for which a mean has an interval."""


@dataclass(frozen=True)
class RuleExample:
    """A rule on one example. Probabilities are of the class of the rule; None if an edit is not possible.

    `holds`: whether the condition is true; for a picture, whether the model predicts the class. `held_out`: whether it
    is outside the half from which the attribution rule is derived. `words`: words that make the condition true.
    `predicted`: index of the predicted class. `as_claimed`: whether that is the class of the rule. `attribution_holds`:
    whether the attribution's word is in the text.

    `removed`: without the words or the region. `random`: mean over removals of as many other words or patches.
    `removed_changed`: whether the removal changes the prediction. `random_changed`: share of the random removals that
    do. `inserted`, `neutral`: with the words, or with other words, inserted into a text without them; for a picture,
    with only the region, or only as many other patches. `attribution`: without the patches with the highest scores.
    """

    example: int
    holds: bool
    held_out: bool
    words: str
    predicted: int
    as_claimed: bool
    probability: float
    attribution_holds: bool = False
    removed: float | None = None
    removed_changed: bool | None = None
    random: float | None = None
    random_changed: float | None = None
    inserted: float | None = None
    neutral: float | None = None
    attribution: float | None = None


@dataclass(frozen=True)
class RuleResult:
    """A rule on all examples. `label`: its class, or `any`. `of_pictures`: whether it names a region.

    `method`, `word`: the attribution method whose word predicts best in the training half, and that word; empty if
    there is none. For pictures, `method` is the one whose top patches lower the probability most. `neutral_word`: the
    word inserted for comparison; empty for random words. `notes`: what is left out, and why.
    """

    rule: str
    label: str
    of_pictures: bool
    examples: tuple[RuleExample, ...]
    method: str = ""
    word: str = ""
    neutral_word: str = ""
    notes: tuple[str, ...] = ()

    @cached_property
    def holds(self) -> Booleans:
        return np.array([one.holds for one in self.examples], dtype=bool)

    @cached_property
    def as_claimed(self) -> Booleans:
        return np.array([one.as_claimed for one in self.examples], dtype=bool)

    @property
    def breaking(self) -> tuple[RuleExample, ...]:
        """The examples on which the condition is true but another class is predicted."""
        return tuple(one for one in self.examples if one.holds and not one.as_claimed)


@dataclass(frozen=True)
class ModelRules:
    """The rules on one model. `failed`: why examples are left out, by index."""

    model: str
    dataset: str
    examples: tuple[int, ...]
    labels: tuple[str, ...]
    rules: tuple[RuleResult, ...]
    failed: dict[int, str]
    complete: bool = True


@dataclass(frozen=True)
class RuleEstimate:
    """A value over `n` examples with its 95% interval; None if it is undefined."""

    value: float | None
    interval: Interval | None
    n: int


@dataclass(frozen=True)
class RuleScores:
    """The scores of a rule.

    Predictiveness. `share`: precision, the share of examples with a true condition that are predicted as the class
    (Wilson's interval). `coverage`: share of all examples with a true condition. `base`: share of all examples
    predicted as the class. `lift`: `share` over `base`. `balanced`: balanced accuracy of the condition as a guess of
    whether the class is predicted: 0.5 by chance, 1 at best, below 0.5 if the opposite is true. `phi`: correlation of
    condition and prediction, from -1 to 1. `p`: Fisher's exact test of the claim that the class is predicted more often
    if the condition is true.

    Necessity: drops in the probability of the class, on examples with a true condition. `fall`: without the words or
    the region. `random_fall`: without as many others. `excess`: mean paired difference. `changed`, `random_changed`:
    share of predictions that change.

    Sufficiency, on the other examples. `inserted`, `neutral`: mean probability with the words, and with the neutral
    word. `rise`: mean paired difference. `toward`: share of examples with a higher probability. For pictures, on those
    predicted as the class: with only the region, and with only as many other patches.

    Comparison with attribution, in the held-out half. `own`, `attribution`, `gain`: balanced accuracy of the rule and
    of the attribution's word, and their paired difference. For pictures: the drops of both, and their difference.
    """

    share: RuleEstimate
    coverage: float
    base: float
    lift: float | None
    balanced: RuleEstimate
    phi: float | None
    p: float | None
    fall: RuleEstimate
    random_fall: RuleEstimate
    excess: RuleEstimate
    changed: RuleEstimate
    random_changed: float | None
    inserted: RuleEstimate
    neutral: RuleEstimate
    rise: RuleEstimate
    toward: RuleEstimate
    own: RuleEstimate
    attribution: RuleEstimate
    gain: RuleEstimate


@dataclass(frozen=True)
class RuleDifference:
    """The best rule minus another one, both by position, in balanced accuracy; for pictures, in excess drop.

    The intervals of all pairs of rules have a joint coverage of at least 95% (Bonferroni), since the best rule is
    selected on the same examples.
    """

    best: int
    other: int
    difference: RuleEstimate


def score_rule(one: RuleResult, seed: int = 0) -> RuleScores:
    """Compute the scores of a rule over its examples; see `RuleScores`."""
    holds, claimed = one.holds, one.as_claimed
    n, hits = int(holds.sum()), int((holds & claimed).sum())
    share, base = _share(hits, n), float(claimed.mean()) if len(claimed) else 0.0
    removed = [own for own in one.examples if own.holds and own.removed is not None and own.random is not None]
    falls = _array(own.probability - (own.removed or 0.0) for own in removed)
    random = _array(own.probability - (own.random or 0.0) for own in removed)
    pairs = [own for own in one.examples if own.inserted is not None and own.neutral is not None]
    rises = _array((own.inserted or 0.0) - (own.neutral or 0.0) for own in pairs)
    return RuleScores(
        share=share,
        coverage=float(holds.mean()) if len(holds) else 0.0,
        base=base,
        lift=share.value / base if share.value is not None and base else None,
        balanced=_no_estimate() if one.of_pictures else _balanced(holds, claimed, seed),
        phi=None if one.of_pictures else phi(holds, claimed),
        p=None if one.of_pictures else independence_p(holds, claimed),
        fall=_mean(falls, seed),
        random_fall=_mean(random, seed),
        excess=_mean(falls - random, seed),
        changed=_share(sum(bool(own.removed_changed) for own in removed), len(removed)),
        random_changed=float(np.mean([own.random_changed or 0.0 for own in removed])) if removed else None,
        inserted=_mean(_array(own.inserted or 0.0 for own in pairs), seed),
        neutral=_mean(_array(own.neutral or 0.0 for own in pairs), seed),
        rise=_mean(rises, seed),
        toward=_share(int((rises > 0).sum()), len(rises)),
        **_against_attribution(one, seed),
    )


def _against_attribution(one: RuleResult, seed: int) -> dict[str, RuleEstimate]:
    if not one.method:
        return dict.fromkeys(("own", "attribution", "gain"), _no_estimate())
    if one.of_pictures:
        both = [own for own in one.examples if own.held_out and own.removed is not None and own.attribution is not None]
        mine = _array(own.probability - (own.removed or 0.0) for own in both)
        theirs = _array(own.probability - (own.attribution or 0.0) for own in both)
        return {"own": _mean(mine, seed), "attribution": _mean(theirs, seed), "gain": _mean(mine - theirs, seed)}
    held_out = np.array([own.held_out for own in one.examples], dtype=bool)
    word = np.array([own.attribution_holds for own in one.examples], dtype=bool)[held_out]
    holds, claimed = one.holds[held_out], one.as_claimed[held_out]
    return {
        "own": _balanced(holds, claimed, seed),
        "attribution": _balanced(word, claimed, seed),
        "gain": _balanced_difference((holds, claimed), (word, claimed), seed),
    }


def excess_fall(one: RuleResult, seed: int = 0, intervals: int = 1) -> RuleEstimate:
    """The estimate `RuleScores.excess`, with one of `intervals` simultaneous 95% intervals (Bonferroni)."""
    removed = [own for own in one.examples if own.holds and own.removed is not None and own.random is not None]
    gaps = _array((own.random or 0.0) - (own.removed or 0.0) for own in removed)
    return _mean_at(gaps, seed, 1 - (1 - LEVEL) / intervals)


def compare_rules(rules: Sequence[RuleResult], seed: int = 0, best: int | None = None) -> list[RuleDifference]:
    """Compare the best rule with each other rule on the same examples. Empty if fewer than two rules have a score.

    `best`: position of a rule to use instead of the best one.
    """
    if rules and rules[0].of_pictures:
        values: list[float | None] = [score_rule(one, seed).excess.value for one in rules]
    else:
        values = [balanced_accuracy(one.holds, one.as_claimed) for one in rules]
    scored = {place: value for place, value in enumerate(values) if value is not None}
    if len(scored) < 2:
        return []
    first = max(scored, key=lambda place: scored[place]) if best is None else best
    level = 1 - (1 - LEVEL) / math.comb(len(scored), 2)
    others = (place for place in scored if place != first)
    return [RuleDifference(first, other, _difference(rules[first], rules[other], seed, level)) for other in others]


def _difference(best: RuleResult, other: RuleResult, seed: int, level: float) -> RuleEstimate:
    if not best.of_pictures:
        pair = ((one.holds, one.as_claimed) for one in (best, other))
        return _balanced_difference(next(pair), next(pair), seed, level)
    excess = [
        {own.example: own.random - own.removed for own in one.examples
         if own.holds and own.removed is not None and own.random is not None}
        for one in (best, other)
    ]  # fmt: skip
    gaps = _array(excess[0][place] - excess[1][place] for place in excess[0] if place in excess[1])
    return _mean_at(gaps, seed, level)


def balanced_accuracy(holds: Booleans, claimed: Booleans) -> float | None:
    """Mean of sensitivity and specificity, 0.5 by chance; None if all or none of the examples have the class."""
    if claimed.all() or not claimed.any():
        return None
    return float((holds[claimed].mean() + (~holds[~claimed]).mean()) / 2)


def phi(holds: Booleans, claimed: Booleans) -> float | None:
    """Pearson's correlation of both as zeros and ones; None if one is constant or there are too few examples."""
    if len(holds) < FEWEST or holds.all() or claimed.all() or not holds.any() or not claimed.any():
        return None
    return float(np.corrcoef(holds.astype(float), claimed.astype(float))[0, 1])


def independence_p(holds: Booleans, claimed: Booleans) -> float | None:
    """One-sided p-value of Fisher's exact test; None if the condition is always or never true."""
    if holds.all() or not holds.any():
        return None
    table = [[int((first & second).sum()) for second in (claimed, ~claimed)] for first in (holds, ~holds)]
    return float(scipy.stats.fisher_exact(table, alternative="greater").pvalue)


def holm(values: Sequence[float | None]) -> list[float | None]:
    """Adjust p-values for multiple tests. Source: Holm (1979)."""
    places = sorted((place for place, value in enumerate(values) if value is not None), key=lambda at: values[at] or 0)
    adjusted, largest = list[float | None]([None] * len(values)), 0.0
    for rank, place in enumerate(places):
        largest = max(largest, min(1.0, (len(places) - rank) * (values[place] or 0.0)))
        adjusted[place] = largest
    return adjusted


def _balanced(holds: Booleans, claimed: Booleans, seed: int) -> RuleEstimate:
    value = balanced_accuracy(holds, claimed)
    if value is None:
        return RuleEstimate(None, None, len(holds))
    return RuleEstimate(value, _quantiles(_resampled(holds, claimed, seed), LEVEL), len(holds))


def _balanced_difference(
    first: tuple[Booleans, Booleans], second: tuple[Booleans, Booleans], seed: int, level: float = LEVEL
) -> RuleEstimate:
    values = [balanced_accuracy(*one) for one in (first, second)]
    if values[0] is None or values[1] is None:
        return RuleEstimate(None, None, len(first[0]))
    gaps = _resampled(*first, seed) - _resampled(*second, seed)  # the same resamples of the examples for both
    return RuleEstimate(values[0] - values[1], _quantiles(gaps, level), len(first[0]))


def _resampled(holds: Booleans, claimed: Booleans, seed: int) -> Float[np.ndarray, "resample"]:
    """Balanced accuracy in each resample of the examples; NaN if a resample has only one class."""
    cells = np.stack([holds & claimed, claimed, ~holds & ~claimed, ~claimed], axis=1).astype(np.float64)
    right, of_class, other, of_others = resample(cells, seed).T
    with np.errstate(invalid="ignore", divide="ignore"):
        return (right / of_class + other / of_others) / 2


def _quantiles(values: Float[np.ndarray, "resample"], level: float) -> Interval | None:
    """The percentile interval; None if no resample has a value."""
    values = values[np.isfinite(values)]
    if not len(values):
        return None
    low, high = np.quantile(values, [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)


def _share(hits: int, n: int) -> RuleEstimate:
    return RuleEstimate(hits / n, wilson_interval(hits / n, n, NORMAL), n) if n else _no_estimate()


def _mean(values: Floats, seed: int) -> RuleEstimate:
    return RuleEstimate(float(values.mean()), interval(values, seed), len(values)) if len(values) else _no_estimate()


def _mean_at(values: Floats, seed: int, level: float) -> RuleEstimate:
    if len(values) < FEWEST:
        return RuleEstimate(float(values.mean()) if len(values) else None, None, len(values))
    return RuleEstimate(float(values.mean()), _quantiles(resample(values[:, None], seed)[:, 0], level), len(values))


def _no_estimate() -> RuleEstimate:
    return RuleEstimate(None, None, 0)


def _array(values: Iterator[float]) -> Floats:
    return np.fromiter(values, dtype=np.float64)
