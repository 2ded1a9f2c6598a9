"""Plausibility of a map: whether it finds the units that are known to matter, or that people marked.

Marks are one boolean per ranked unit. There are metrics for known ground truth, and metrics for human rationales, in
which the marks are binary labels and the scores are the map's confidence in them.
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
    """A text as a model reads it: an explanation, or the encoded text that is explained.

    `truncated`: number of tokens that did not fit.
    """

    @property
    def tokens(self) -> Sequence[Token]: ...

    @property
    def truncated(self) -> int: ...


def rankable_units(text: TokenizedText, labeled: LabeledExample, unit: str) -> list[Token | Unit]:
    """Return the tokens or words that can be ranked, in the order of `engine.word_units.unit_scores`."""
    if unit == "token":
        return [token for token in text.tokens if not token.special]
    return [one for one in units(text.tokens, np.zeros(len(text.tokens)), labeled.example, unit) if not one.special]


def marks_of_text(text: TokenizedText, labeled: LabeledExample, unit: str = "token") -> Marks:
    """Mark the units that share a character with a marked span of their own text."""
    rankable = rankable_units(text, labeled, unit)
    return np.array([overlaps(one, spans_of(labeled, one.segment)) for one in rankable])


def marks_of_picture(model: str, example: ImageExample) -> Marks | None:
    """Mark the patches that belong to the picture's mask, row by row; None without a mask."""
    return None if example.mask is None else read_view(model).patches(example.mask).ravel()


def segments(text: TokenizedText, labeled: LabeledExample, unit: str) -> list[int]:
    """Return the text of each unit: 0 for the first, 1 for the second."""
    return [one.segment for one in rankable_units(text, labeled, unit)]


def overlaps(unit: Token | Unit, spans: Sequence[Span]) -> bool:
    """Whether a unit shares a character with one of the spans of its text."""
    return any(unit.start < end and start < unit.end for start, end in spans)


def spans_of(labeled: LabeledExample, segment: int) -> Sequence[Span]:
    """Return the marked spans of the first or the second text."""
    return (labeled.rationale, labeled.rationale_pair)[segment]


def is_cut_off(text: TokenizedText, labeled: LabeledExample) -> bool:
    """Whether a marked span lies, in whole or in part, beyond what the model reads.

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
    """Return why no map can be compared with these marks, or None."""
    if not marks.any():
        return NOTHING
    return ALL if marks.all() else None


def roc_auc(scores: UnitScores, marks: Marks) -> float:
    """Return the share of pairs in which the marked unit scores higher than the unmarked one, ties counting half.

    From 0 to 1; computed from ranks (Mann and Whitney, 1947), it is the area under the ROC curve (Hanley and McNeil,
    1982). scikit-learn's `roc_auc_score` agrees to rounding, but spends 2 ms on input checks, compared with 0.04 ms
    here, and an evaluation computes one value per map.
    """
    _check_marks(marks)
    count = int(marks.sum())
    ranks = average_ranks(scores)[marks].sum()
    return float((ranks - count * (count + 1) / 2) / (count * (len(marks) - count)))


def average_precision(scores: UnitScores, marks: Marks) -> float:
    """Return the precision at each threshold, weighted by its gain in recall; from 0 to 1. Ties share a threshold.

    Equals scikit-learn's `average_precision_score`, in a thirtieth of its time for one map.
    """
    _check_marks(marks)
    levels, place = np.unique(-scores, return_inverse=True)
    hits = np.cumsum(np.bincount(place, weights=marks, minlength=len(levels)))
    precision = hits / np.cumsum(np.bincount(place, minlength=len(levels)))
    return float((np.diff(hits, prepend=0) * precision).sum() / marks.sum())


def token_f1(scores: UnitScores, marks: Marks, share: float, seed: Sequence[int] = (0,)) -> float:
    """Return the F1 of the max(1, round(share n)) units with the highest scores, from 0 to 1.

    `share`: share of marked units in an average example of the data set (DeYoung et al., 2020, section 5).
    """
    _check_marks(marks)
    if not 0 < share <= 1:
        raise not_allowed("share", "more than 0 and at most 1", share)
    chosen = max(1, round(share * len(marks)))
    hits = marks[rank_features(scores, seed)[:chosen]].sum()
    return float(2 * hits / (chosen + marks.sum()))


def recall_at_k(scores: UnitScores, marks: Marks, k: int = K, seed: Sequence[int] = (0,)) -> float:
    """Return the share of the marked units that are among the k highest scores, from 0 to 1."""
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

    Ranks count from 1, the highest score; low ranks and high shares are good. For a single map, `exact` and `pointing`
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
    """The smallest r such that the top r features contain L, from |L| to n. The name is that of its mean over
    examples."""
    mean_of_ranks: float
    """The mean of the ranks of L, from (|L| + 1) / 2 to n - (|L| - 1) / 2."""

    @property
    def mean_rank_pct(self) -> float:
        """`mean_rank` as a share of all features, from |L| / n to 1."""
        return self.mean_rank / self.n


def truth_scores(
    scores: Float[np.ndarray, "*shape"], truth: Bool[np.ndarray, "*shape"], seed: Sequence[int] = (0,)
) -> TruthScores:
    """Compare the map of one example with the truth. `scores`: one per feature, in a grid or row, no special tokens.

    The highest score counts as the most important, for signed maps too. Ties are broken as in `engine.metrics.ranking`,
    so that a constant map scores as by chance. The pointing game is that of Zhang et al. (2018), section 4.1, without
    their tolerance of 15 pixels, as a patch is coarse enough. Overlap and mean rank: section 6 of the design.
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
    """Return the share of `sum |a|` on the true features, from 0 to 1, high is good; None for a zero map.

    Source: Arras, Osman and Samek (2022), CLEVR-XAI, relevance mass accuracy. They leave the sign to the method; here
    it is ignored, so that methods with and without signs can be compared.
    """
    _check_truth(truth)
    size = np.abs(scores)
    total = float(size.sum())
    return float(size[truth].sum()) / total if total else None


def expected_truth_scores(n: int, size: int) -> TruthScores:
    """Return the mean scores over all orders of `n` features, of which `size` are true."""
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
    """Return why no map can be compared with this truth, or None. `feature`: name of a feature in the reason."""
    if not truth.any():
        return f"no {feature} is true, so there is nothing to find."
    return f"every {feature} is true, so any map finds them." if truth.all() else None


def _check_truth(truth: Bool[np.ndarray, "*shape"]) -> None:
    if reason := truth_skip_reason(truth):
        raise UsageError(f"truth: {reason}")
