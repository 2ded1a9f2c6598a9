"""Results of a study of guesses: do people choose the right class more often with an explanation than without one?

The right class depends on the mode of the study: the model's prediction, its prediction for an edited text, or the
true class.
"""

from __future__ import annotations

import dataclasses
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from scipy.special import ndtri

from engine.errors import UsageError, unknown
from engine.format import count_text, join_names
from engine.metrics.results import wilson_interval
from engine.study.counted_votes import WITHOUT, GuessAnswer
from engine.study.design import COUNTERFACTUAL, DECIDE, PREDICT
from engine.study.ratings import ERROR_RATE, Interval, student_quantile
from engine.study.summary import AnswerTimes, answer_times

RESAMPLES = 2000
SEED = 0
"""Seed of the bootstrap, so that the same answers always have the same intervals."""
UNEVEN = 0.1
"""Difference in the share of "cannot tell" from which the text calls accuracies hard to compare. Affects text only."""
ALL_CONDITIONS = "any condition"

Counts = Float[np.ndarray, "person condition"]


@dataclass(frozen=True)
class GuessWords:
    """Phrases that describe the results of a mode.

    `act`: a correct choice, as a verb. `right`: definition of a right choice. `commonest`, `obvious`: two simple
    strategies that need no understanding. `misled`: people choose the obvious class although it is wrong. `leak`:
    caution about right choices without understanding. `helpful`: effect of a helpful explanation. `answer`: title of
    the right class in a table.
    """

    act: str
    right: str
    commonest: str
    obvious: str
    misled: str
    leak: str
    helpful: str
    answer: str


WORDS = {
    PREDICT: GuessWords(
        act="guess the prediction correctly",
        right="A guess is right if it matches the prediction, even if the prediction is wrong.",
        commonest="guessing the most frequently predicted class",
        obvious="guessing the true class",
        misled="Where the model is wrong, people guess the true class",
        leak="A better guess does not prove understanding: an explanation is computed for the model's answer, and its "
        "colors can reveal that answer (Hase and Bansal, 2020).",
        helpful="help people predict the model",
        answer="Prediction",
    ),
    COUNTERFACTUAL: GuessWords(
        act="guess the prediction for the edited text correctly",
        right="A guess is right if it matches the prediction for the edited text.",
        commonest="guessing the most frequent answer",
        obvious="guessing that the prediction stays the same",
        misled="Where the edit changes the prediction, people guess that it stays the same",
        leak="The explanation is of the original text, so it cannot reveal the answer. Edits that change the "
        "prediction are chosen on purpose, more often than at random.",
        helpful="help people predict what an edit does to the prediction",
        answer="Prediction after the edit",
    ),
    DECIDE: GuessWords(
        act="decide correctly",
        right="A decision is right if it is the true class, whatever the model predicts.",
        commonest="choosing the most frequent class",
        obvious="following the model",
        misled="Where the model is wrong, people follow it",
        leak="Explanations can make people follow a wrong prediction (Bansal et al., 2021), so look at both numbers.",
        helpful="help people decide",
        answer="Correct class",
    ),
}
"""Phrases by mode of the study."""


@dataclass(frozen=True)
class GuessShare:
    """Share of right guesses (`right` of `guesses`). `interval`: 95%, for other people on the same items."""

    right: int
    guesses: int
    interval: Interval

    @property
    def accuracy(self) -> float:
        return self.right / self.guesses


@dataclass(frozen=True)
class GuessGain:
    """Difference between an explanation and none, in accuracy and in sureness (on the scale from 1 to 5).

    The intervals of all methods have a joint coverage of 95%, separately for accuracy and sureness.
    """

    accuracy: float
    interval: Interval
    sure: float
    sure_interval: Interval


@dataclass(frozen=True)
class ConditionSummary:
    """Summary of the answers with one method's explanation, or without one. Results that need guesses may be None.

    `sure`: mean sureness. `by_sureness`: guesses by level of sureness (1 to 5), for levels that occur. `gain`: None for
    the condition without an explanation. `misled`: share of guesses of the obvious class (see `GuessTarget`) among
    items where it is wrong; its `right` counts these guesses.
    """

    name: str
    share: GuessShare | None
    cannot_tell: int
    sure: float | None
    by_sureness: dict[int, GuessShare]
    seconds: AnswerTimes | None
    gain: GuessGain | None
    misled: GuessShare | None = None

    @property
    def answers(self) -> int:
        return self.cannot_tell + (self.share.guesses if self.share else 0)

    @property
    def helps(self) -> bool:
        return self.gain is not None and self.gain.interval[0] > 0


@dataclass(frozen=True)
class GuessSummary:
    """Results of a study of guesses. Repeats are used for `consistency` only.

    `conditions`: no explanation first, then the methods in the study's order. `commonest`: accuracy of always guessing
    the class that is right most often. `obvious`: accuracy of always guessing the obvious class (see `GuessTarget`);
    None if it is unknown. `consistency`: share of repeated guesses that equal the first, and their number.
    """

    conditions: tuple[ConditionSummary, ...]
    placebo: str | None
    annotators: int
    items: int
    by_sureness: dict[int, GuessShare]
    commonest: float
    obvious: float | None
    consistency: tuple[float, int] | None
    mode: str = PREDICT

    @property
    def guesses(self) -> int:
        return sum(condition.share.guesses for condition in self.conditions if condition.share)

    @property
    def cannot_tell(self) -> int:
        return sum(condition.cannot_tell for condition in self.conditions)

    @property
    def meanings(self) -> dict[str, str]:
        """A plain sentence for each part of the results, in the order in which a page shows them."""
        return {
            "helpful": _describe_help(self),
            "plausible": _describe_plausibility(self),
            "leak": WORDS[self.mode].leak,
            "accuracy": _describe_accuracy(self),
            "baseline": _describe_baseline(self),
            "misled": _describe_misled(self),
            "placebo": _describe_placebo(self),
            "cannot_tell": _describe_cannot_tell(self),
            "sureness": _describe_sureness(self),
            "consistency": _describe_consistency(self),
        }


def summarize_guesses(
    answers: Sequence[GuessAnswer], methods: Sequence[str], placebo: str | None = None, mode: str = PREDICT
) -> GuessSummary:
    """Compute all results. `methods`, `mode`: of the study. Errors: no first answer, or an unknown method."""
    names = (WITHOUT, *methods)
    for name in [answer.condition for answer in answers] + ([placebo] if placebo else []):
        if name not in names:
            raise unknown("method", name, names)
    first = [answer for answer in answers if not answer.repeat]
    if not first:
        raise UsageError("answers: must include at least one first answer, got none.")
    obvious = [not answer.misleading for answer in first if answer.target.obvious is not None]
    labels: dict[tuple[str, str], dict[int, int]] = defaultdict(dict)
    for answer in answers:
        if answer.label is not None:
            labels[answer.annotator, answer.item][answer.repeat] = answer.label
    same = [pair[0] == pair[1] for pair in labels.values() if {0, 1} <= pair.keys()]
    return GuessSummary(
        conditions=_summarize_conditions(first, names),
        placebo=placebo,
        annotators=len({answer.annotator for answer in first}),
        items=len({answer.item for answer in first}),
        by_sureness=_group_by_sureness(first),
        commonest=Counter(answer.target.label for answer in first).most_common(1)[0][1] / len(first),
        obvious=sum(obvious) / len(obvious) if obvious else None,
        consistency=(sum(same) / len(same), len(same)) if same else None,
        mode=mode,
    )


def _is_right(guess: GuessAnswer) -> int:
    return guess.right


def _takes_obvious(guess: GuessAnswer) -> int:
    return guess.label == guess.target.obvious


def _summarize_conditions(answers: Sequence[GuessAnswer], names: Sequence[str]) -> tuple[ConditionSummary, ...]:
    guesses = [answer for answer in answers if answer.label is not None]
    right = _pool_by_condition(guesses, names, _is_right)
    misleading = [guess for guess in guesses if guess.misleading]
    misled = _pool_by_condition(misleading, names, _takes_obvious)
    sure = _pool_by_condition(guesses, names, _sureness)
    scatter = float(np.std([_sureness(guess) for guess in guesses])) if guesses else 0.0
    conditions = []
    for place, name in enumerate(names):
        own = [answer for answer in answers if answer.condition == name]
        own_guesses = [answer for answer in own if answer.label is not None]
        own_misleading = [guess for guess in own_guesses if guess.misleading]
        condition = ConditionSummary(
            name=name,
            share=_to_share(own_guesses, right, place) if own_guesses else None,
            cannot_tell=len(own) - len(own_guesses),
            sure=float(sure.value[place]) if own_guesses else None,
            by_sureness=_group_by_sureness(own_guesses),
            seconds=answer_times([answer.seconds for answer in own]),
            gain=_to_gain(right, sure, place, scatter) if place else None,
            misled=_to_share(own_misleading, misled, place, _takes_obvious) if own_misleading else None,
        )
        conditions.append(condition)
    return tuple(conditions)


def _to_share(
    guesses: Sequence[GuessAnswer], ratios: PooledRatios, place: int, value: Callable[[GuessAnswer], int] = _is_right
) -> GuessShare:
    return GuessShare(sum(map(value, guesses)), len(guesses), share_interval(ratios, place))


def _to_gain(right: PooledRatios, sure: PooledRatios, place: int, scatter: float) -> GuessGain | None:
    """Return the gain of a condition; None if it or the condition without an explanation has no guesses yet."""
    if not right.count[[0, place]].all():
        return None
    methods = len(right.count) - 1
    return GuessGain(
        accuracy=float(right.value[place] - right.value[0]),
        interval=gain_interval(right, place, 0, methods),
        sure=float(sure.value[place] - sure.value[0]),
        sure_interval=mean_gain_interval(sure, place, 0, methods, scatter),
    )


def _group_by_sureness(answers: Sequence[GuessAnswer]) -> dict[int, GuessShare]:
    levels: dict[int, list[GuessAnswer]] = defaultdict(list)
    for answer in answers:
        if answer.sure is not None:
            levels[answer.sure].append(dataclasses.replace(answer, condition=ALL_CONDITIONS))
    return {
        level: _to_share(own, _pool_by_condition(own, (ALL_CONDITIONS,), _is_right), 0)
        for level, own in sorted(levels.items())
    }


def _pool_by_condition(
    guesses: Sequence[GuessAnswer], names: Sequence[str], value: Callable[[GuessAnswer], int]
) -> PooledRatios:
    """Pool the values by condition. `guesses` may be empty."""
    people = sorted({guess.annotator for guess in guesses}) or [""]
    sums, counts = np.zeros((2, len(people), len(names)))
    for guess in guesses:
        cell = people.index(guess.annotator), names.index(guess.condition)
        sums[cell] += value(guess)
        counts[cell] += 1
    return pool_ratios(sums, counts)


def _sureness(guess: GuessAnswer) -> int:
    return guess.sure or 0


@dataclass(frozen=True)
class PooledRatios:
    """Ratios of sums to counts by condition, also for resampled people; NaN in a condition without counts.

    `people`: number of people with answers, by condition.
    """

    value: Float[np.ndarray, "condition"]
    count: Float[np.ndarray, "condition"]
    resampled: Float[np.ndarray, "resample condition"]
    people: tuple[int, ...]

    def error(self, place: int) -> float:
        return _bootstrap_error(self.resampled[:, place], self.people[place])

    def gain_error(self, place: int, base: int) -> float:
        gains = self.resampled[:, place] - self.resampled[:, base]
        return _bootstrap_error(gains, min(self.people[place], self.people[base]))


def pool_ratios(sums: Counts, counts: Counts) -> PooledRatios:
    """Pool over people. The bootstrap resamples people, each with all answers."""
    people = len(counts)
    rng = np.random.default_rng(SEED)
    weights = rng.multinomial(people, np.full(people, 1 / people), RESAMPLES).astype(float)
    with np.errstate(invalid="ignore", divide="ignore"):
        value, resampled = sums.sum(0) / counts.sum(0), (weights @ sums) / (weights @ counts)
    return PooledRatios(value, counts.sum(0), resampled, tuple((counts > 0).sum(0).tolist()))


def share_interval(ratios: PooledRatios, place: int) -> Interval:
    """Return a 95% interval of a share, for other people on the same items or, with one person, for other answers.

    It is Wilson's interval with the effective number of independent answers: the number of answers divided by the
    design effect, which is the ratio of the variance over resampled people to that of independent answers. The design
    effect is at least 1, since a few people may agree by luck. Student's t replaces the normal quantile, since a few
    people estimate the variance poorly.
    Source: Dean and Pagano (2015), Journal of Survey Statistics and Methodology 3.
    """
    share, count = float(ratios.value[place]), float(ratios.count[place])
    if ratios.people[place] < 2:
        return wilson_interval(share, count, _normal_quantile(1))
    variance = share * (1 - share) / count
    effect = max(1.0, ratios.error(place) ** 2 / variance) if variance > 0 else 1.0
    return wilson_interval(share, count / effect, student_quantile(ratios.people[place], 1))


def gain_interval(ratios: PooledRatios, place: int, base: int, comparisons: int) -> Interval:
    """Return an interval of the difference of two shares, with a joint coverage of 95% for `comparisons` (Bonferroni).

    It is Agresti and Caffo's interval for independent answers, which adds a right and a wrong answer to each share.
    With several people, the quantile is Student's t, and the standard error is at least that over resampled people:
    a person's skill in both conditions cancels out, but differences in how much an explanation helps them do not.
    Source: Agresti and Caffo (2000), The American Statistician 54.
    """
    counts = ratios.count[[place, base]] + 2
    shares = (ratios.value[[place, base]] * (counts - 2) + 1) / counts
    people = min(ratios.people[place], ratios.people[base])
    error = float(np.sqrt((shares * (1 - shares) / counts).sum()))
    quantile = _normal_quantile(comparisons)
    if people > 1:
        error, quantile = max(error, ratios.gain_error(place, base)), student_quantile(people, comparisons)
    middle, reach = float(shares[0] - shares[1]), quantile * error
    return max(-1.0, middle - reach), min(1.0, middle + reach)


def mean_gain_interval(ratios: PooledRatios, place: int, base: int, comparisons: int, scatter: float) -> Interval:
    """Return an interval of the difference of two means by Student's t, with the joint coverage of `gain_interval`.

    `scatter`: standard deviation of single answers. The standard error is at least that of independent answers, since a
    few people may agree by luck.
    """
    gain, people = float(ratios.value[place] - ratios.value[base]), min(ratios.people[place], ratios.people[base])
    independent = scatter * float(np.sqrt((1 / ratios.count[[place, base]]).sum()))
    quantile = student_quantile(people, comparisons) if people > 1 else _normal_quantile(comparisons)
    reach = quantile * max(independent, ratios.gain_error(place, base) if people > 1 else 0.0)
    return gain - reach, gain + reach


def _bootstrap_error(resampled: Float[np.ndarray, "resample"], people: int) -> float:
    """Return the standard error: the standard deviation over resamples, corrected for its bias."""
    finite = resampled[np.isfinite(resampled)]
    return float(finite.std() * np.sqrt(people / max(people - 1, 1))) if len(finite) else 0.0


def _normal_quantile(comparisons: int) -> float:
    return float(ndtri(1 - ERROR_RATE / (2 * comparisons)))


def _describe_help(summary: GuessSummary) -> str:
    gains = {condition.name: condition.gain for condition in summary.conditions if condition.gain}
    better = [name for name, gain in gains.items() if gain.interval[0] > 0]
    worse = [name for name, gain in gains.items() if gain.interval[1] < 0]
    unclear = [name for name in gains if name not in better + worse]
    sentences, act = [], WORDS[summary.mode].act
    if better:
        sentences.append(f"People {act} more often with {join_names(better)} than without an explanation.")
    if worse:
        sentences.append(f"People {act} less often with {join_names(worse)} than without.")
    if unclear:
        sentences.append(f"No significant effect: {join_names(unclear)}.")
    return (
        " ".join(sentences)
        or "Whether explanations help is unknown: guesses with and without an explanation are needed."
    )


def _describe_plausibility(summary: GuessSummary) -> str:
    surer = [
        condition.name
        for condition in summary.conditions
        if condition.gain is not None and condition.gain.sure_interval[0] > 0 and not condition.helps
    ]
    if surer:
        return (
            f"People are more confident with {join_names(surer)}, but not significantly more often right: "
            "convincing is not the same as helpful."
        )
    return (
        f"Helpful is not the same as plausible. Guesses show which explanations {WORDS[summary.mode].helpful}; a study "
        "of rankings shows which ones they find convincing."
    )


def _describe_accuracy(summary: GuessSummary) -> str:
    population = "other people" if summary.annotators > 1 else "other guesses of this one person"
    return (
        f"{WORDS[summary.mode].right} The intervals are 95% for "
        f"{population} on the same items; those of the differences are simultaneous for all methods."
    )


def _describe_baseline(summary: GuessSummary) -> str:
    words = WORDS[summary.mode]
    sentence = f"Always {words.commonest} is right in {summary.commonest:.0%} of cases"
    if summary.obvious is None:
        return f"{sentence}."
    return f"{sentence}; always {words.obvious} in {summary.obvious:.0%}."


def _describe_misled(summary: GuessSummary) -> str:
    shares = [
        f"{condition.misled.accuracy:.0%} ({condition.misled.interval[0]:.0%} to {condition.misled.interval[1]:.0%}) "
        f"with {condition.name}"
        for condition in summary.conditions
        if condition.misled
    ]
    if not shares:
        return "No guess was made where the obvious answer is wrong, so it is unknown how often people are misled."
    return f"{WORDS[summary.mode].misled} in {join_names(shares)}."


def _describe_placebo(summary: GuessSummary) -> str:
    own = next((condition for condition in summary.conditions if condition.name == summary.placebo), None)
    if own is None:
        return "The study has no placebo, so a gain may come from seeing any explanation at all."
    if own.helps:
        return f"People also guess better with the placebo, {own.name}: a gain may not come from the content."
    return f"The placebo, {own.name}, has no significant positive effect, as expected."


def _describe_cannot_tell(summary: GuessSummary) -> str:
    if not summary.cannot_tell:
        return "Nobody answered “cannot tell”."
    shares = {
        condition.name: condition.cannot_tell / condition.answers
        for condition in summary.conditions
        if condition.answers
    }
    most, least = max(shares, key=lambda name: shares[name]), min(shares, key=lambda name: shares[name])
    sentence = f"{count_text(summary.cannot_tell, 'answer')} “cannot tell”, counted as neither right nor wrong."
    if shares[most] - shares[least] < UNEVEN:
        return sentence
    return (
        f"{sentence} Their share is {shares[most]:.0%} with {most} and {shares[least]:.0%} with {least}. Compare these "
        "two with care: accuracy covers only items on which people made a guess."
    )


def _describe_sureness(summary: GuessSummary) -> str:
    levels = list(summary.by_sureness.items())
    if len(levels) < 2:
        return "All guesses have the same confidence, so it cannot be compared with accuracy."
    (low, doubtful), (high, certain) = levels[0], levels[-1]
    return (
        f"At confidence {low}, {doubtful.accuracy:.0%} of the guesses are right; at confidence {high}, "
        f"{certain.accuracy:.0%}. If accuracy does not rise with confidence, confidence is not informative."
    )


def _describe_consistency(summary: GuessSummary) -> str:
    if summary.consistency is None:
        return "Self-consistency is unknown: no item was guessed twice by the same person."
    share, pairs = summary.consistency
    repeats = "one repeated guess" if pairs == 1 else f"{pairs:,} repeated guesses"
    return f"People repeated their first guess in {share:.0%} of {repeats}."
