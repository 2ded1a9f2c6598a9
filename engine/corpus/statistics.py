"""Means, intervals and tests of words over many examples.

A word's score in an example is the mean over its places in the text. Its score over a data set is the mean over the
examples that have it, with a bootstrap interval over examples, which are the clusters. The test is a randomization
test. Null hypothesis: in the texts with the word, scores are assigned to the places of a text independently of this
word. Scores are therefore permuted within each text. The p-value is (1 + number of permutations whose mean is at least
as far from 0) / (1 + number of permutations). It is exact for any distribution and unit of the scores.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int

from engine.corpus.scores import ExampleScores
from engine.lazy import scipy
from engine.metrics.results import interval
from engine.progress import Report, check_cancelled, silent
from engine.significance.false_discovery import RATES, draws_needed

MOST_PERMUTATIONS = 9_999
CHECKED = 50
"""Number of permutations or intervals between checks for cancellation."""
ROUNDING = 1e-9
"""Tolerance of ties, as a share of the largest absolute score."""


@dataclass(frozen=True, eq=False)
class WordTable:
    """Statistics of words: see `engine.corpus.experiment.CorpusWords`."""

    words: tuple[str, ...]
    permutations: int
    counts: Int[np.ndarray, "slice word"]
    occurrences: Int[np.ndarray, "slice word"]
    means: Float[np.ndarray, "slice method word"]
    low: Float[np.ndarray, "slice method word"]
    high: Float[np.ndarray, "slice method word"]
    p_values: Float[np.ndarray, "slice method word"]


@dataclass(frozen=True, eq=False)
class WordPlaces:
    """The words that are in enough examples, and the pairs of such a word and an example that has it.

    `example_of_place`: example of each place, over all examples. `average`: matrix from scores of places to means over
    the places of each pair.
    """

    words: tuple[str, ...]
    example_of_place: Int[np.ndarray, "place"]
    word: Int[np.ndarray, "pair"]
    example: Int[np.ndarray, "pair"]
    occurrences: Int[np.ndarray, "pair"]
    average: scipy.sparse.csr_array

    def count(self, inside: Bool[np.ndarray, "pair"]) -> Int[np.ndarray, "word"]:
        """Return the number of examples with each word, among the pairs `inside`."""
        return np.bincount(self.word[inside], minlength=len(self.words))

    def means(self, inside: Bool[np.ndarray, "pair"]) -> scipy.sparse.csr_array:
        """Return the matrix from scores of places to each word's mean over examples, among the pairs `inside`."""
        own = np.flatnonzero(inside)
        weights = 1 / self.count(inside)[self.word[own]]
        matrix = scipy.sparse.csr_array((weights, (self.word[own], own)), shape=(len(self.words), len(self.word)))
        return matrix @ self.average


def locate_words(scored: Sequence[ExampleScores], least: int) -> WordPlaces:
    """Locate the words that are in at least `least` examples."""
    counts = Counter(word for one in scored for word in set(one.words))
    words = sorted(word for word, count in counts.items() if count >= least)
    number = {word: at for at, word in enumerate(words)}
    found = [(number[word], at) for at, one in enumerate(scored) for word in one.words if word in number]
    kept = np.flatnonzero([word in number for one in scored for word in one.words])
    pairs, pair, occurrences = np.unique(
        np.array(found, dtype=np.int64).reshape(-1, 2), axis=0, return_inverse=True, return_counts=True
    )
    example_of_place = np.repeat(np.arange(len(scored)), [len(one.words) for one in scored])
    pair = pair.ravel()
    average = scipy.sparse.csr_array((1 / occurrences[pair], (pair, kept)), shape=(len(pairs), len(example_of_place)))
    return WordPlaces(tuple(words), example_of_place, pairs[:, 0], pairs[:, 1], occurrences, average)


def word_statistics(
    scored: Sequence[ExampleScores], slices: Sequence[Bool[np.ndarray, "example"]], least: int, methods: int,
    seed: int = 0, report: Report = silent,
) -> WordTable:  # fmt: skip
    """Compute statistics of the words in at least `least` examples, by slice; NaN if fewer of the slice have the word.

    `methods`: number of rows of scores of each example.
    """
    places = locate_words(scored, least)
    scores = np.concatenate([np.zeros((0, methods)), *(one.scores.T for one in scored)])
    inside = [own[places.example] for own in slices]
    counts = np.array([places.count(own) for own in inside])
    permutations = min(MOST_PERMUTATIONS, draws_needed(max(1, len(places.words)), min(RATES)))
    shape = (len(slices), len(places.words), scores.shape[1])
    means, p_values = permutation_test(
        scipy.sparse.vstack([places.means(own) for own in inside]), scores, places.example_of_place, permutations,
        seed, report,
    )  # fmt: skip
    few = np.broadcast_to((counts < least)[..., None], shape)
    ends, values = np.full((*shape, 2), np.nan), places.average @ scores
    cells = np.argwhere(~few)
    for done, (at, word, method) in enumerate(cells):
        if done % CHECKED == 0:
            check_cancelled()
            report(done, len(cells), "intervals")
        ends[at, word, method] = interval(values[inside[at] & (places.word == word), method], seed)
    by_method = [
        np.ascontiguousarray(np.where(few, np.nan, own.reshape(shape)).swapaxes(1, 2))
        for own in (means, ends[..., 0], ends[..., 1], p_values)
    ]
    occurrences = [np.bincount(places.word[own], places.occurrences[own], len(places.words)) for own in inside]
    return WordTable(places.words, permutations, counts, np.array(occurrences).astype(np.int64), *by_method)


def permutation_test(
    means: scipy.sparse.csr_array, scores: Float[np.ndarray, "place method"], example: Int[np.ndarray, "place"],
    permutations: int, seed: int = 0, report: Report = silent,
) -> tuple[Float[np.ndarray, "mean method"], Float[np.ndarray, "mean method"]]:  # fmt: skip
    """Return each mean and its p-value, by permuting the scores within examples.

    `means`: matrix of weights of the places, one row per mean. All means and methods share the permutations.
    """
    observed = means @ scores
    limit = np.abs(observed) - ROUNDING * np.abs(scores).max(initial=0.0)
    extreme, generator = np.ones_like(observed), np.random.default_rng(seed)
    for at in range(permutations):
        if at % CHECKED == 0:
            check_cancelled()
            report(at, permutations, "permutations")
        order = np.argsort(example + generator.random(len(example)))
        extreme += np.abs(means @ scores[order]) >= limit
    return observed, extreme / (1 + permutations)
