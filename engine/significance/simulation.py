"""Simulations of the significance tests: is the false discovery rate controlled if it is known which words matter?

Texts with a small vocabulary are classified by a constructed model. Most words are drawn from the distribution of the
replacements, as under the null hypothesis, so that significant ones are false discoveries; the others are words of the
class, as in the simulations of Burns et al. (2020, section 4). The classifier is linear in the words (the tests are
then independent), linear but blind to half of the words, or has products of neighbors (the tests are dependent). In the
last setting the replacements are wrong: the words that do not matter have another distribution than the replacements.

Pictures whose patches are all drawn from one distribution are tested too, each against 255 others or as many as the
rate needs: no patch matters, so every discovery is false. Their score is the sum of their patches. The rate is
controlled if the class is chosen in advance and all other pictures provide patches, and exceeded by the rest of
`TESTS`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

from engine.progress import Report, check_cancelled, silent
from engine.significance.false_discovery import (
    CONTROLS,
    RATES,
    Control,
    adjusted_p_values,
    draws_needed,
    randomization_p_values,
    survives,
)

WORDS, MATTERING, VOCABULARY = 20, 5, 2_000
"""Number of words of a text, of words that matter among them, and of words of the vocabulary."""
LINEAR, IGNORED, PRODUCTS, WRONG = "linear", "half of the words ignored", "products of neighbors", "wrong replacements"
SETTINGS = (LINEAR, IGNORED, PRODUCTS, WRONG)
NEIGHBORS = 0.5
"""Weight of the product of two neighbors."""
SHIFT = 1.5
"""How much more likely words of the class are if the replacements are wrong: log-odds of a word per weight."""
STRONGEST = 5
"""Number of words of the vocabulary, those with the largest weights, from which the words that matter are drawn."""
TEXTS = 2_000
PATCHES, PICTURES, PICTURE_RATE = (9, 16, 64), 2_000, 0.1
TESTS = {
    "chosen class": (False, False),
    "predicted class": (True, False),
    "chosen class against others": (False, True),
    "predicted class against others": (True, True),
}
"""Whether the class is the predicted one, and whether only pictures of the other class provide patches."""


@dataclass(frozen=True)
class SimulatedRate:
    """The false discovery rate over `texts` texts or pictures, with its standard error.

    `power`: share of the words that matter that are significant; None if no word matters.
    """

    setting: str
    control: Control
    rate: float
    texts: int
    false_discovery_rate: float
    standard_error: float
    power: float | None

    @property
    def controlled(self) -> bool:
        """Whether the rate is exceeded by at most two standard errors."""
        return self.false_discovery_rate <= self.rate + 2 * self.standard_error


def simulate(
    texts: int = TEXTS, seed: int = 0, settings: tuple[str, ...] = SETTINGS, report: Report = silent
) -> list[SimulatedRate]:
    """Test texts with known words that matter, by each setting, control and rate."""
    rates = []
    for place, setting in enumerate(settings):
        tested = []
        for at in range(texts):
            check_cancelled()
            report(place * texts + at, len(settings) * texts, "texts")
            tested.append(simulated_p_values(setting, np.random.default_rng([seed, SETTINGS.index(setting), at])))
        rates += list(_rates(setting, np.array(tested)))
    return rates


def simulate_pictures(pictures: int = PICTURES, seed: int = 0, report: Report = silent) -> list[SimulatedRate]:
    """Test pictures in which no patch matters, by each number of patches and each of `TESTS`."""
    rates = []
    cells = [(patches, test) for patches in PATCHES for test in TESTS]
    for place, (patches, test) in enumerate(cells):
        wrong = np.empty(pictures)
        for at in range(pictures):
            check_cancelled()
            report(place * pictures + at, len(cells) * pictures, "pictures")
            p_values = picture_p_values(patches, *TESTS[test], np.random.default_rng([seed, patches, at]))
            wrong[at] = survives(adjusted_p_values(p_values), PICTURE_RATE).any()
        error = float(wrong.std(ddof=1) / np.sqrt(pictures))
        setting = f"{patches} patches, {test}"
        rates.append(SimulatedRate(setting, "bh", PICTURE_RATE, pictures, float(wrong.mean()), error, None))
    return rates


def picture_p_values(
    patches: int, predicted: bool, others: bool, generator: np.random.Generator
) -> Float[np.ndarray, "patch"]:
    """Return the p-values of the patches of one picture of two classes. `predicted`, `others`: see `TESTS`."""
    draws = max(255, draws_needed(patches, PICTURE_RATE))
    scores = generator.normal(size=(3 * draws, patches))  # of the picture itself first
    if predicted and scores[0].sum() < 0:
        scores = -scores
    donors = scores[1:]
    donors = (donors[donors.sum(1) < 0] if others else donors)[:draws]
    value = scores[0].sum()
    return randomization_p_values(np.full(patches, value), value - scores[0][:, None] + donors.T)


def simulated_p_values(setting: str, generator: np.random.Generator) -> Float[np.ndarray, "word"]:
    """Return the p-values of the words of one text. The first `MATTERING` words matter."""
    weights = np.linspace(-1.0, 1.0, VOCABULARY)
    count = draws_needed(WORDS, min(RATES), "by")
    likely = np.exp(SHIFT * weights) if setting == WRONG else np.ones(VOCABULARY)
    text = generator.choice(VOCABULARY, WORDS, p=likely / likely.sum())
    text[:MATTERING] = generator.integers(VOCABULARY - STRONGEST, VOCABULARY, MATTERING)
    order = generator.permutation(WORDS)  # the places that matter are random
    rows = np.tile(text[order], (WORDS, count + 1, 1))
    rows[np.arange(WORDS), 1:, np.arange(WORDS)] = generator.integers(VOCABULARY, size=(WORDS, count))
    values = _classify(setting, weights, rows, order)
    found = np.empty(WORDS)
    found[order] = randomization_p_values(values[:, 0], values[:, 1:])
    return found


def _classify(
    setting: str, weights: Float[np.ndarray, "type"], rows: Int[np.ndarray, "word row place"],
    order: Int[np.ndarray, "place"],
) -> Float[np.ndarray, "word row"]:  # fmt: skip
    """Return the probability of the class for each text."""
    scores = weights[rows]
    if setting == IGNORED:
        scores = scores * (order < WORDS // 2)
    logits = scores.sum(-1)
    if setting == PRODUCTS:
        logits = logits + NEIGHBORS * (scores[..., 1:] * scores[..., :-1]).sum(-1)
    probabilities: np.ndarray = 1 / (1 + np.exp(-(logits - MATTERING)))
    return probabilities


def _rates(setting: str, p_values: Float[np.ndarray, "text word"]) -> Iterator[SimulatedRate]:
    for control in CONTROLS:
        adjusted = np.array([adjusted_p_values(own, control) for own in p_values])
        for rate in RATES:
            significant = survives(adjusted, rate)
            wrong = significant[:, MATTERING:].sum(1) / np.maximum(1, significant.sum(1))
            error = float(wrong.std(ddof=1) / np.sqrt(len(wrong)))
            power = float(significant[:, :MATTERING].mean())
            yield SimulatedRate(setting, control, rate, len(p_values), float(wrong.mean()), error, power)
