"""Plausibility of a map: whether it finds the units that are known to matter, or that people marked.

Marks are a yes or no for each unit that is ranked. Metrics for known truth stand beside those for human rationales,
where marks are classes and the scores say how sure the map is of them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
from jaxtyping import Bool, Float

from engine.data.examples import ImageExample, LabeledExample, Span
from engine.errors import UsageError, not_allowed
from engine.metrics.catalog import K
from engine.metrics.ranking import average_ranks, rank_features
from engine.result import Token
from engine.vision.picture import read_view
from engine.word_units import Unit, units

UnitScores = Float[np.ndarray, "unit"]
Marks = Bool[np.ndarray, "unit"]

NOTHING = "nothing is marked"
ALL = "everything is marked"
CUT_OFF = "marked words were cut off by the model's length limit"
UNREAD = "no marked word is in the part that the model reads"
UNMARKED_TRUTH = "the data set has no marks for it"


@runtime_checkable
class TokenizedText(Protocol):
    """A text as a model reads it: an explanation of it, or what the explanation is made from.

    `truncated`: tokens that did not fit.
    """

    @property
    def tokens(self) -> Sequence[Token]: ...

    @property
    def truncated(self) -> int: ...


def rankable_units(text: TokenizedText, labeled: LabeledExample, unit: str) -> list[Token | Unit]:
    """The tokens or words in the order of their scores in `engine.word_units.unit_scores`."""
    if unit == "token":
        return [token for token in text.tokens if not token.special]
    return [one for one in units(text.tokens, np.zeros(len(text.tokens)), labeled.example, unit) if not one.special]


def marks_of_text(text: TokenizedText, labeled: LabeledExample, unit: str = "token") -> Marks:
    """Units that share a character with a marked span of their own text."""
    rankable = rankable_units(text, labeled, unit)
    return np.array([overlaps(one, spans_of(labeled, one.segment)) for one in rankable])


def marks_of_picture(model: str, example: ImageExample) -> Marks | None:
    """The patches that belong to the mask, row by row; None where the picture has none."""
    return None if example.mask is None else read_view(model).patches(example.mask).ravel()


def segments(text: TokenizedText, labeled: LabeledExample, unit: str) -> list[int]:
    """In which text each unit stands: 0 the first, 1 the second."""
    return [one.segment for one in rankable_units(text, labeled, unit)]


def overlaps(unit: Token | Unit, spans: Sequence[Span]) -> bool:
    """Whether a unit shares a character with one of the spans of its text."""
    return any(unit.start < end and start < unit.end for start, end in spans)


def spans_of(labeled: LabeledExample, segment: int) -> Sequence[Span]:
    """The marked spans of the first or the second text."""
    return (labeled.rationale, labeled.rationale_pair)[segment]


def is_cut_off(text: TokenizedText, labeled: LabeledExample) -> bool:
    """Whether a marked span lies, whole or in part, in what was too long for the model to read.

    A text loses its end, a prompt its start.
    """
    if not text.truncated:
        return False
    for segment in (0, 1):
        own = [token for token in text.tokens if token.segment == segment and not token.special]
        first, last = min((token.start for token in own), default=0), max((token.end for token in own), default=0)
        if any(start < first or end > last for start, end in spans_of(labeled, segment)):
            return True
    return False


def skip_reason(marks: Marks) -> str | None:
    """Why no map can be held against these marks; None where one can."""
    if not marks.any():
        return NOTHING
    return ALL if marks.all() else None


def roc_auc(scores: UnitScores, marks: Marks) -> float:
    """Share of pairs in which the marked unit has a higher score than the unmarked one, ties counting half; 0 to 1.

    By ranks (Mann and Whitney, 1947), which is the area under the ROC curve (Hanley and McNeil, 1982). scikit-learn's
    `roc_auc_score` gives the same to rounding, but checks its input for 2 ms where this takes 0.04: an evaluation asks
    for one value a map.
    """
    _check_marks(marks)
    count = int(marks.sum())
    ranks = average_ranks(scores)[marks].sum()
    return float((ranks - count * (count + 1) / 2) / (count * (len(marks) - count)))


def average_precision(scores: UnitScores, marks: Marks) -> float:
    """Precision at each threshold, weighted by the recall that it adds; from 0 to 1. Equal scores share a threshold.

    The definition of scikit-learn's `average_precision_score`, at a thirtieth of its time for one map.
    """
    _check_marks(marks)
    levels, place = np.unique(-scores, return_inverse=True)
    hits = np.cumsum(np.bincount(place, weights=marks, minlength=len(levels)))
    precision = hits / np.cumsum(np.bincount(place, minlength=len(levels)))
    return float((np.diff(hits, prepend=0) * precision).sum() / marks.sum())


def token_f1(scores: UnitScores, marks: Marks, share: float, seed: Sequence[int] = (0,)) -> float:
    """F1 of max(1, round(share n)) units with the highest scores, from 0 to 1.

    `share`: of the units of an average example of the data set that are marked (DeYoung et al., 2020, section 5).
    """
    _check_marks(marks)
    if not 0 < share <= 1:
        raise not_allowed("share", "more than 0 and at most 1", share)
    chosen = max(1, round(share * len(marks)))
    hits = marks[rank_features(scores, seed)[:chosen]].sum()
    return float(2 * hits / (chosen + marks.sum()))


def recall_at_k(scores: UnitScores, marks: Marks, k: int = K, seed: Sequence[int] = (0,)) -> float:
    """The share of the marked units among the k highest scores, from 0 to 1."""
    _check_marks(marks)
    if k < 1:
        raise not_allowed("k", "a whole number of at least 1", k)
    return float(marks[rank_features(scores, seed)[:k]].sum() / marks.sum())


def _check_marks(marks: Marks) -> None:
    if reason := skip_reason(marks):
        raise UsageError(f"marks: {reason}, so no map can be judged. Skip this example.")


@dataclass(frozen=True)
class TruthScores:
    """Scores of one map, or the expected scores of a random one. `size` of the `n` features are true: the set L.

    Ranks count from 1, the highest score; low ranks and high shares are good. Of one map, `exact` and `pointing`
    are 0 or 1.
    """

    n: int
    size: int
    overlap: float
    """The share of L among the |L| features with the highest scores, from 0 to 1."""
    exact: float
    """Whether the |L| features with the highest scores are L."""
    pointing: float
    """Whether the feature with the highest score is in L."""
    mean_rank: float
    """The smallest r whose top r contain L, from |L| to n. Its mean over examples gave it the name."""
    mean_of_ranks: float
    """The mean of the ranks of L, from (|L| + 1) / 2 to n - (|L| - 1) / 2."""

    @property
    def mean_rank_pct(self) -> float:
        """`mean_rank` as a share of all features, from |L| / n to 1."""
        return self.mean_rank / self.n


def truth_scores(
    scores: Float[np.ndarray, "*shape"], truth: Bool[np.ndarray, "*shape"], seed: Sequence[int] = (0,)
) -> TruthScores:
    """Scores of the map of one example: a score a feature, in a grid or a row, without special tokens.

    The highest score counts as the most important, for signed maps too. Ties: `engine.metrics.ranking`, so that a
    map of equal scores is judged by chance. The pointing game is that of Zhang et al. (2018), section 4.1, without
    their tolerance of 15 pixels: a patch is coarse enough. Overlap and mean rank: section 6 of the design.
    """
    _check_truth(truth)
    true = truth.ravel()[rank_features(scores.ravel(), seed)]
    ranks, size = np.flatnonzero(true) + 1, int(true.sum())
    hits = int(true[:size].sum())
    return TruthScores(
        n=len(true),
        size=size,
        overlap=hits / size,
        exact=float(hits == size),
        pointing=float(true[0]),
        mean_rank=float(ranks[-1]),
        mean_of_ranks=float(ranks.mean()),
    )


def truth_mass(scores: Float[np.ndarray, "*shape"], truth: Bool[np.ndarray, "*shape"]) -> float | None:
    """The share of `sum |a|` that lies on the true features, from 0 to 1, high is good; None of a map of zeros.

    Source: Arras, Osman and Samek (2022), CLEVR-XAI, relevance mass accuracy. They leave the sign to the method; here
    it does not count, so that methods with and without signs are held against each other.
    """
    _check_truth(truth)
    size = np.abs(scores)
    total = float(size.sum())
    return float(size[truth].sum()) / total if total else None


def expected_truth_scores(n: int, size: int) -> TruthScores:
    """The mean over all orders of the features, `size` of `n` being true."""
    return TruthScores(
        n=n,
        size=size,
        overlap=size / n,
        exact=1 / math.comb(n, size),
        pointing=size / n,
        mean_rank=size * (n + 1) / (size + 1),
        mean_of_ranks=(n + 1) / 2,
    )


def truth_skip_reason(truth: Bool[np.ndarray, "*shape"], feature: str = "feature") -> str | None:
    """Why no map can be held against this truth; None where one can. `feature`: what one is called."""
    if not truth.any():
        return f"no {feature} is true, so there is nothing to find."
    return f"every {feature} is true, so any map finds them." if truth.all() else None


def _check_truth(truth: Bool[np.ndarray, "*shape"]) -> None:
    if reason := truth_skip_reason(truth):
        raise UsageError(f"truth: {reason}")
