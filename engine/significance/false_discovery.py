"""Randomization p-values, and the control of the false discovery rate over many of them."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from typing import Any, ClassVar, Literal

import numpy as np
from jaxtyping import Bool, Float

from engine.errors import not_allowed, unknown
from engine.format import count_text, plural
from engine.lazy import scipy

RATES = (0.05, 0.1, 0.2)
"""False discovery rates to choose from."""
USUAL_RATE = 0.1
TIE = 1e-6
"""Values that differ by less are ties: by rounding, the probability for a text depends on its batch."""
Alternative = Literal["greater", "two-sided"]
ALTERNATIVES: tuple[Alternative, ...] = ("greater", "two-sided")
"""A word is significant if the class is more probable with it than with its replacements, or either more or less."""
Control = Literal["bh", "by"]
CONTROLS: tuple[Control, ...] = ("bh", "by")
"""Benjamini and Hochberg (1995), for p-values that are independent or positively dependent; Benjamini and Yekutieli
(2001), for p-values with any dependence."""


def check_choices(rate: float, alternative: str, control: str) -> None:
    """Refuse a rate outside (0, 1) and unknown names."""
    if not 0 < rate < 1:
        raise not_allowed("rate", "a number between 0 and 1, such as 0.1", rate)
    if alternative not in ALTERNATIVES:
        raise unknown("alternative", alternative, ALTERNATIVES)
    if control not in CONTROLS:
        raise unknown("control", control, CONTROLS)


def randomization_p_values(
    observed: Float[np.ndarray, "word"], draws: Float[np.ndarray, "word draw"], alternative: Alternative = "greater"
) -> Float[np.ndarray, "word"]:
    """Return (1 + number of draws at least as extreme) / (1 + number of draws), from 1 / (1 + draws) to 1.

    Under the null hypothesis it is at most a with probability at most a, for each a. Ties count as extreme. Burns et
    al. (2020), algorithm 1. "two-sided" compares distances from the mean of the observed value and all draws. The paper
    takes one more draw as the center; the mean also treats all values alike, so the test stays exact, and does not
    depend on a single draw.
    """
    if alternative == "two-sided":
        center = (observed + draws.sum(1)) / (1 + draws.shape[1])
        observed, draws = np.abs(observed - center), np.abs(draws - center[:, None])
    extreme = (draws >= observed[:, None] - TIE).sum(1)
    p_values: np.ndarray = (1 + extreme) / (1 + draws.shape[1])
    return p_values


def adjusted_p_values(p_values: Float[np.ndarray, "test"], control: Control = "bh") -> Float[np.ndarray, "test"]:
    """Return the smallest false discovery rate at which each test is significant, from 0 to 1; empty without tests."""
    if not len(p_values):
        return p_values
    adjusted: np.ndarray = scipy.stats.false_discovery_control(p_values, method=control)
    return adjusted


def survives(adjusted: Float[np.ndarray, "*test"], rate: float) -> Bool[np.ndarray, "*test"]:
    """Return whether each test is significant at that rate. Values equal to the rate up to rounding count."""
    significant: np.ndarray = adjusted <= rate * (1 + 1e-9)
    return significant


def fewest_significant(tests: int, draws: int, rate: float, control: Control = "bh") -> int:
    """Return how many tests must be significant together before any can be; 1 if there are enough draws."""
    return math.ceil((draws_needed(tests, rate, control) + 1) / (draws + 1) - 1e-9)


def shortage(
    tests: int, draws: int, rate: float, control: Control = "bh", drawn: str = "draws", noun: str = "word"
) -> str:  # fmt: skip
    """Return a sentence if there are too few draws for a single word or patch to be significant, else ""."""
    if (fewest := fewest_significant(tests, draws, rate, control)) <= 1:
        return ""
    least = f"no {noun} can be" if fewest > tests else f"none is unless at least {count_text(fewest, noun)} are"
    return (
        f"With {draws:,} {drawn} a p-value is at least {1 / (draws + 1):.2g}, so at a rate of {100 * rate:g}% {least} "
        "significant."
    )


def draws_needed(tests: int, rate: float = RATES[0], control: Control = "bh") -> int:
    """Return the fewest draws with which a single test can be significant: its p-value has to reach rate / tests.

    With "by" it has to reach that divided by 1 + 1/2 + ... + 1/tests.
    """
    factor = sum(1 / at for at in range(1, tests + 1)) if control == "by" else 1.0
    return max(1, math.ceil(tests * factor / rate - 1e-6) - 1)


class ReplacementTest(ABC):
    """Base class of the tests of words and of patches. `value`: value for the input.

    `draws`: values with one of its parts replaced. `source`: source of the replacements. `label`: class whose
    probability is the value. `noun`: name of a part. `drawn`: name of the draws. `beside`: additional JSON fields.
    """

    model: str
    revision: str
    source: str
    seed: int
    label: str
    value: float
    draws: Float[np.ndarray, "part draw"]
    noun: ClassVar[str]
    drawn: ClassVar[str]
    beside: ClassVar[Mapping[str, str]]

    @abstractmethod
    def parts(self) -> Iterable[Mapping[str, Any]]:
        """Return the words or patches as JSON values, in the order of the draws."""

    def check_draws(self, parts: int) -> None:
        """Refuse draws for another number of parts or that are not finite; make valid ones read-only."""
        if self.draws.shape[0] != parts or not np.isfinite(self.draws).all():
            raise ValueError(f"draws: a row of finite numbers for each of {count_text(parts, self.noun)} is expected.")
        self.draws.setflags(write=False)

    @property
    def count(self) -> int:
        """Number of draws for each word or patch."""
        return int(self.draws.shape[1])

    @property
    def changes(self) -> Float[np.ndarray, "part"]:
        """The value for the input minus the mean over its draws: the effect of a word or patch, in units of value."""
        difference: np.ndarray = self.value - self.draws.mean(1)
        return difference

    def p_values(self, alternative: Alternative = "greater") -> Float[np.ndarray, "part"]:
        """Return the p-value of each word or patch: see `randomization_p_values`."""
        return randomization_p_values(np.full(len(self.draws), self.value), self.draws, alternative)

    def adjusted(self, alternative: Alternative = "greater", control: Control = "bh") -> Float[np.ndarray, "part"]:
        """Return the smallest rate at which each word or patch is significant: see `adjusted_p_values`."""
        return adjusted_p_values(self.p_values(alternative), control)

    def shortage(self, rate: float, control: Control = "bh") -> str:
        """Return a sentence if there are too few draws for a single word or patch to be significant, else ""."""
        return shortage(len(self.draws), self.count, rate, control, self.drawn, self.noun)

    def as_json(
        self, rate: float = USUAL_RATE, alternative: Alternative = "greater", control: Control = "bh"
    ) -> dict[str, Any]:
        """Return the result as JSON values, without the single draws."""
        check_choices(rate, alternative, control)
        adjusted = self.adjusted(alternative, control)
        columns = zip(
            self.parts(), self.changes.tolist(), self.p_values(alternative).tolist(), adjusted.tolist(),
            survives(adjusted, rate).tolist(), strict=True,
        )  # fmt: skip
        names = ("change", "p_value", "adjusted_p_value", "significant")
        return {
            "model": self.model,
            "revision": self.revision,
            "replacements": self.source,
            "seed": self.seed,
            "target": self.label,
            "value": self.value,
            "draws": self.count,
            "rate": rate,
            "alternative": alternative,
            "control": control,
            **{name: as_plain_value(getattr(self, own)) for name, own in self.beside.items()},
            plural(self.noun): [{**part, **dict(zip(names, cells, strict=True))} for part, *cells in columns],
        }


def as_plain_value(value: Any) -> Any:
    """Convert a tuple to a list, as in JSON; other values are returned unchanged."""
    return list(value) if isinstance(value, tuple) else value
