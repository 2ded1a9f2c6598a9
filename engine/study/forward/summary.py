"""What a study of guesses found: how often people guess the model's answer, with each explanation and without."""

from __future__ import annotations

import dataclasses
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from engine.errors import UsageError, unknown
from engine.study.forward.guesses import WITHOUT, Guessed
from engine.study.forward.intervals import (
    Ratios,
    gain_interval,
    mean_gain_interval,
    ratios,
    share_interval,
)
from engine.study.forward.meaning import meanings
from engine.study.ratings.partial_order import Interval
from engine.study.ratings.summary import Times, times_of

ANY = "any condition"


@dataclass(frozen=True)
class Share:
    """`right` of `guesses` name the model's answer. `interval`: 95 %, for other people on the same items."""

    right: int
    guesses: int
    interval: Interval

    @property
    def accuracy(self) -> float:
        return self.right / self.guesses


@dataclass(frozen=True)
class Gain:
    """What an explanation adds to none: in accuracy, and in how sure people are, on the scale from 1 to 5.

    The intervals of all methods hold together in 95 %, those of accuracy by themselves and those of sureness too.
    """

    accuracy: float
    interval: Interval
    sure: float
    sure_interval: Interval


@dataclass(frozen=True)
class Condition:
    """The answers with one method's explanation, or without any. What nobody guessed yet is None.

    `by_sureness`: the guesses made 1, 2, ... 5 sure, of those levels that were used. `gain`: None without explanation.
    """

    name: str
    share: Share | None
    cannot_tell: int
    sure: float | None
    by_sureness: dict[int, Share]
    seconds: Times | None
    gain: Gain | None

    @property
    def answers(self) -> int:
        return self.cannot_tell + (self.share.guesses if self.share else 0)


@dataclass(frozen=True)
class ForwardSummary:
    """First looks alone count, but for `consistency`: the share of repeated guesses that are the same, of how many.

    `conditions`: no explanation first, the methods in the study's order. `commonest`: how often who always names the
    class that the model gave most would be right; `truthful`: the same of who names the true class, if it is known.
    """

    conditions: tuple[Condition, ...]
    placebo: str | None
    annotators: int
    items: int
    by_sureness: dict[int, Share]
    commonest: float
    truthful: float | None
    consistency: tuple[float, int] | None

    @property
    def guesses(self) -> int:
        return sum(one.share.guesses for one in self.conditions if one.share)

    @property
    def cannot_tell(self) -> int:
        return sum(one.cannot_tell for one in self.conditions)

    @property
    def meanings(self) -> dict[str, str]:
        """A plain sentence for each part."""
        return meanings(self)


def forward_summary(answers: Sequence[Guessed], methods: Sequence[str], placebo: str | None = None) -> ForwardSummary:
    """Everything that guesses say. `methods`: those of the study. Errors: no answers, or a method that is not there."""
    names = (WITHOUT, *methods)
    for name in [answer.condition for answer in answers] + ([placebo] if placebo else []):
        if name not in names:
            raise unknown("method", name, names)
    first = [answer for answer in answers if not answer.repeat]
    if not first:
        raise UsageError("answers: must hold at least one, got none. Wait until somebody took part.")
    return ForwardSummary(
        conditions=_conditions(first, names),
        placebo=placebo,
        annotators=len({answer.annotator for answer in first}),
        items=len({answer.item for answer in first}),
        by_sureness=_by_sureness(first),
        commonest=Counter(answer.target.label for answer in first).most_common(1)[0][1] / len(first),
        truthful=_truthful(first),
        consistency=_consistency(answers),
    )


def _conditions(answers: Sequence[Guessed], names: Sequence[str]) -> tuple[Condition, ...]:
    guessed = [answer for answer in answers if answer.label is not None]
    right, sure = _ratios(guessed, names, lambda guess: guess.right), _ratios(guessed, names, _sureness)
    scatter = float(np.std([_sureness(guess) for guess in guessed])) if guessed else 0.0
    parts = []
    for place, name in enumerate(names):
        own = [answer for answer in answers if answer.condition == name]
        told = [answer for answer in own if answer.label is not None]
        part = Condition(
            name=name,
            share=_share(told, right, place) if told else None,
            cannot_tell=len(own) - len(told),
            sure=float(sure.value[place]) if told else None,
            by_sureness=_by_sureness(told),
            seconds=times_of([answer.seconds for answer in own]),
            gain=_gain(right, sure, place, scatter) if place else None,
        )
        parts.append(part)
    return tuple(parts)


def _share(told: Sequence[Guessed], found: Ratios, place: int) -> Share:
    return Share(sum(guess.right for guess in told), len(told), share_interval(found, place))


def _gain(right: Ratios, sure: Ratios, place: int, scatter: float) -> Gain | None:
    """None where the condition, or the one without an explanation, has no guesses yet."""
    if not right.count[[0, place]].all():
        return None
    methods = len(right.count) - 1
    return Gain(
        accuracy=float(right.value[place] - right.value[0]),
        interval=gain_interval(right, place, 0, methods),
        sure=float(sure.value[place] - sure.value[0]),
        sure_interval=mean_gain_interval(sure, place, 0, methods, scatter),
    )


def _by_sureness(answers: Sequence[Guessed]) -> dict[int, Share]:
    levels: dict[int, list[Guessed]] = defaultdict(list)
    for answer in answers:
        if answer.sure is not None:
            levels[answer.sure].append(dataclasses.replace(answer, condition=ANY))
    return {
        level: _share(own, _ratios(own, (ANY,), lambda guess: guess.right), 0) for level, own in sorted(levels.items())
    }


def _ratios(guessed: Sequence[Guessed], names: Sequence[str], value: Callable[[Guessed], int]) -> Ratios:
    """The mean value by condition, of guesses by nobody too."""
    people = sorted({guess.annotator for guess in guessed}) or [""]
    sums, counts = np.zeros((2, len(people), len(names)))
    for guess in guessed:
        cell = people.index(guess.annotator), names.index(guess.condition)
        sums[cell] += value(guess)
        counts[cell] += 1
    return ratios(sums, counts)


def _sureness(guess: Guessed) -> int:
    return guess.sure or 0


def _truthful(answers: Sequence[Guessed]) -> float | None:
    known = [answer.target.correct for answer in answers if answer.target.correct is not None]
    return sum(known) / len(known) if known else None


def _consistency(answers: Sequence[Guessed]) -> tuple[float, int] | None:
    looks: dict[tuple[str, str], dict[int, int]] = defaultdict(dict)
    for answer in answers:
        if answer.label is not None:
            looks[answer.annotator, answer.item][answer.repeat] = answer.label
    same = [labels[0] == labels[1] for labels in looks.values() if {0, 1} <= labels.keys()]
    return (sum(same) / len(same), len(same)) if same else None
