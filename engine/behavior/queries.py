"""Questions about one text: the true answer, the answers of direct queries, and those of attributions.

The truth of each question is declared: the mean over many replacements, or all removals there are. Direct queries spend
a budget; an attribution's answer is read off its scores.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int

from engine.behavior.plan import FEATURE, LOCAL, BehaviorPlan
from engine.errors import ExegesisError, UsageError
from engine.explain import predict_encoded, require_finite
from engine.lazy import scipy
from engine.metrics.results import LEVEL
from engine.models.causal import CausalModel
from engine.models.text_classifier import TextClassifier
from engine.progress import check_cancelled
from engine.request import Example
from engine.result import Explanation
from engine.substitution import (
    Edit,
    MaskedModel,
    Word,
    edited,
    like,
    overlaps,
    sampled_words,
    with_fixed_classes,
    word_scores,
    words_of,
)

TRUTH_DRAWS = 256
"""Replacements of a word whose mean effect is the truth. They are independent of those of direct answers."""
MOST_REMOVALS = 5_000
"""Removals of a text that are all tried."""
SINGLE_WORD = "text: has a single word, so that nothing would be left of it."
Removal = tuple[int, ...]
"""Positions of words that are removed together, rising."""


class NoQuestion(ExegesisError):
    """There is no question about this text, so that it is left out. To try again would not help."""


@dataclass(frozen=True, eq=False)
class ExampleBehavior:
    """The questions about one text, a case each, and their answers.

    `target`, `probability`: the predicted class and its probability. `words`: of each case.
    `truth`: positive where the right answer is yes. Local behavior: the fall of the probability, from -1 to 1, with
    `truth_error`, half of its 95% interval (0 where exact), and `falls`, how many replacements of the largest budget
    lower it. Recourse: the words of the smallest removal, 0 for none. Feature: whether a change of it changes the
    class. `counted`: whether the case enters accuracies. `chance`: the accuracy of random guessing.

    `values`: of each way. Local behavior: an attribution's score, or the estimated fall, with `errors`, half of its
    95% interval (NaN where there is none). Recourse: the words of its removal, 0 for none. Feature: the rank of the
    feature, or the changes of class. `yes`: the answer. `edits`: a removal in words. `evaluations`: of the whole text.
    """

    target: str
    probability: float
    words: tuple[str, ...]
    truth: Float[np.ndarray, "case"]
    truth_error: Float[np.ndarray, "case"]
    falls: Int[np.ndarray, "case"]
    counted: Bool[np.ndarray, "case"]
    chance: Float[np.ndarray, "case"]
    values: Float[np.ndarray, "case way"]
    errors: Float[np.ndarray, "case way"]
    yes: Bool[np.ndarray, "case way"]
    edits: tuple[tuple[str, ...], ...]
    evaluations: Int[np.ndarray, "way"]


@dataclass(frozen=True)
class Subject:
    """A text and the model that is asked about it. Whoever asks must hold the device."""

    model: TextClassifier
    example: Example
    words: tuple[Word, ...]
    target: int
    labels: tuple[str, ...]

    def probabilities(self, changes: Sequence[Sequence[Edit]]) -> Float[np.ndarray, "change label"]:
        """Probabilities of all classes (regression: the score) after each set of edits. Equal texts run once."""
        check_cancelled()
        texts = [edited(self.example, edits) for edits in changes]
        unique = list(dict.fromkeys(texts))
        predictions = predict_encoded(self.model, [self.model.encode(text) for text in unique])
        known = {text: one.probabilities for text, one in zip(unique, predictions, strict=True)}
        values = np.array([known[text] for text in texts], dtype=np.float64)
        require_finite(self.model, "probabilities", values)
        return values

    @property
    def base(self) -> float:
        """The probability of the target (regression: the score) of the text itself."""
        return float(self.probabilities([[]])[0, self.target])


def subject_of(model: TextClassifier, example: Example) -> Subject:
    """The subject of questions about a text: its predicted class, and the words that the model reads.

    Errors: no word.
    """
    if isinstance(model, CausalModel):
        example = with_fixed_classes(model.id, example)
    encoded = model.encode(example)
    words = tuple(word for word in words_of(example) if any(overlaps(token, word) for token in encoded.tokens))
    if not words:
        raise NoQuestion("text: has no word that can be changed.")
    [prediction] = predict_encoded(model, [encoded])
    return Subject(model, example, words, model.target_index(None, prediction, encoded), prediction.labels)


def says_falls(scores: Float[np.ndarray, "word"], signed: bool) -> Bool[np.ndarray, "word"]:
    """Whether scores say that the probability falls without a word: a positive score.

    Scores without a sign only say how much, so that a score above the mean of the text counts as a yes.
    """
    return scores > (0.0 if signed else scores.mean())


def half_interval(values: Float[np.ndarray, "row draw"]) -> Float[np.ndarray, "row"]:
    """Half of the 95% interval of each row's mean, by Student's t; NaN for a single draw."""
    n = values.shape[1]
    if n < 2:
        return np.full(len(values), np.nan)
    quantile = float(scipy.stats.t.ppf((1 + LEVEL) / 2, n - 1))
    return quantile * values.std(axis=1, ddof=1) / math.sqrt(n)


def measure(
    subject: Subject, explanations: Mapping[str, Explanation], signed: Mapping[str, bool], plan: BehaviorPlan,
    masked: MaskedModel | None, index: int,
) -> ExampleBehavior:  # fmt: skip
    """The questions of the plan's task about one text. The caller must hold the device.

    `explanations`, `signed`: of each method. `masked`: proposes replacements; None where words are deleted.
    `index`: of the example, for the draws.
    Errors: `NoQuestion` for a regression head; no word of the feature; too many removals; a text that cannot be changed
    so, such as a single word that would be deleted.
    """
    if subject.model.regression:
        raise NoQuestion(f"task: {plan.task} needs classes, and {subject.model.id} predicts a score. Use a classifier.")
    try:
        return _measure(subject, explanations, signed, plan, masked, index)
    except UsageError as error:  # the changed text cannot be read: to try again would not help
        raise NoQuestion(str(error)) from error


def _measure(
    subject: Subject, explanations: Mapping[str, Explanation], signed: Mapping[str, bool], plan: BehaviorPlan,
    masked: MaskedModel | None, index: int,
) -> ExampleBehavior:  # fmt: skip
    scores = {method: word_scores(one, subject.words) for method, one in explanations.items()}
    costs = [one.evaluations for one in explanations.values()]
    if plan.task == LOCAL:
        return local_behavior(subject, scores, signed, costs, plan, masked, index)
    if plan.task == FEATURE:
        return feature_use(subject, scores, costs, plan, index)
    return recourse(subject, scores, costs, plan)


def local_behavior(
    subject: Subject, scores: Mapping[str, Float[np.ndarray, "word"]], signed: Mapping[str, bool],
    costs: Sequence[int], plan: BehaviorPlan, masked: MaskedModel | None, index: int,
) -> ExampleBehavior:  # fmt: skip
    """For each word: does the probability of the target fall when the word is changed, on average?

    Truth: the exact fall of a deletion, or the mean over `TRUTH_DRAWS` replacements; a word counts where the fall is
    larger than the margin and its interval excludes 0. A direct answer is the sign of its own mean. Errors: a single
    word that would be deleted.
    """
    base, exact = subject.base, masked is None
    if exact and len(subject.words) == 1:
        raise NoQuestion(SINGLE_WORD)
    if masked is None:
        truths = draws = _falls(subject, base, [[[Edit(word)]] for word in subject.words])
    else:
        truths = _falls(subject, base, _replacements(subject, masked, TRUTH_DRAWS, [plan.seed, index, 0]))
        draws = _falls(subject, base, _replacements(subject, masked, plan.draws, [plan.seed, index, 1]))
    truth_error = np.zeros(len(truths)) if exact else half_interval(truths)
    truth, count = truths.mean(axis=1), len(subject.words)
    queries = [draws[:, :budget] for budget in plan.budgets]
    means = [one.mean(axis=1) for one in queries]
    errors = [np.zeros(count) if exact else half_interval(one) for one in queries]
    answers = [says_falls(own, signed[method]) for method, own in scores.items()]
    return ExampleBehavior(
        target=subject.labels[subject.target],
        probability=base,
        words=tuple(word.text for word in subject.words),
        truth=truth,
        truth_error=truth_error,
        falls=(draws > 0).sum(axis=1),
        counted=(np.abs(truth) > truth_error) & (np.abs(truth) >= plan.margin / 100) & (truth != 0),
        chance=np.full(count, 0.5),
        values=np.stack([*scores.values(), *means], axis=1),
        errors=np.stack([*(np.full(count, np.nan) for _ in scores), *errors], axis=1),
        yes=np.stack([*answers, *(mean > 0 for mean in means)], axis=1),
        edits=tuple(("",) * len(plan.ways) for _ in subject.words),
        evaluations=np.array([*costs, *(1 + budget * count for budget in plan.budgets)]),
    )


def _replacements(subject: Subject, masked: MaskedModel, draws: int, seed: list[int]) -> list[list[list[Edit]]]:
    words = subject.words
    each = sampled_words(masked, subject.example, words, draws, np.random.default_rng(seed))
    return [[[Edit(word, like(word.text, one))] for one in own] for word, own in zip(words, each, strict=True)]


def _falls(
    subject: Subject, base: float, changes: Sequence[Sequence[Sequence[Edit]]]
) -> Float[np.ndarray, "word draw"]:  # fmt: skip
    flat = subject.probabilities(list(itertools.chain.from_iterable(changes)))[:, subject.target]
    return base - flat.reshape(len(changes), -1)


def feature_use(
    subject: Subject, scores: Mapping[str, Float[np.ndarray, "word"]], costs: Sequence[int], plan: BehaviorPlan,
    index: int,
) -> ExampleBehavior:  # fmt: skip
    """Does the prediction rely on the feature: does its class change when its words are removed or exchanged?

    The same is asked of as many other words of the text, drawn by the seed, as a control. Truth: whether any of these
    changes has an effect. A direct answer makes the first ones, the removal first. An attribution says yes where a word
    of the feature has the highest score of all. Errors: the text has no word of the feature.
    """
    feature, words = plan.feature_words, subject.words
    own = [at for at, word in enumerate(words) if word.text.lower() in feature]
    if not own:
        raise NoQuestion(f"feature: the text has none of {', '.join(feature)}.")
    generator = np.random.default_rng([plan.seed, index])
    others = generator.permutation([at for at in range(len(words)) if at not in own]).tolist()
    groups = [own, *([others[: len(own)]] if others else [])]
    # In the place of a control no word of the feature may stand, so it is exchanged for other words of the text.
    pools = [feature, tuple(dict.fromkeys(words[at].text.lower() for at in others))]
    changed = np.stack(
        [_class_changes(subject, group, pool, len(feature)) for group, pool in zip(groups, pools, strict=False)]
    )
    ranks = [[_rank(one, group) for one in scores.values()] for group in groups]
    counts = np.stack([changed[:, :budget].sum(axis=1) for budget in plan.budgets], axis=1)
    ways = len(plan.ways)
    return ExampleBehavior(
        subject.labels[subject.target], subject.base,
        tuple(", ".join(words[at].text for at in group) for group in groups),
        np.array(changed.any(axis=1), dtype=np.float64), np.zeros(len(groups)), changed.sum(axis=1),
        np.ones(len(groups), dtype=bool), np.full(len(groups), 0.5),
        np.concatenate([np.array(ranks, dtype=np.float64), counts], axis=1), np.full((len(groups), ways), np.nan),
        np.concatenate([np.array(ranks) == 1, counts > 0], axis=1), tuple(("",) * ways for _ in groups),
        np.array([*costs, *(1 + budget * len(groups) for budget in plan.budgets)]),
    )  # fmt: skip


def _class_changes(
    subject: Subject, places: Sequence[int], pool: Sequence[str], count: int
) -> Bool[np.ndarray, "change"]:  # fmt: skip
    """Whether the class changes when these words are removed, and when each becomes the next of the pool, and so on.

    The words of a pool differ. A step that leads back to the words themselves changes nothing.
    """
    words = [subject.words[at] for at in places]
    changes = [[Edit(word) for word in words]]
    steps = [step for step in range(1, count) if step % len(pool)]
    for step in steps:
        starts = [pool.index(word.text.lower()) for word in words]
        others = [pool[(start + step) % len(pool)] for start in starts]
        changes.append([Edit(word, like(word.text, other)) for word, other in zip(words, others, strict=True)])
    changed: Bool[np.ndarray, "change"] = np.zeros(count, dtype=bool)
    changed[[0, *steps]] = subject.probabilities(changes).argmax(axis=1) != subject.target
    return changed


def _rank(scores: Float[np.ndarray, "word"], places: Sequence[int]) -> int:
    """The rank of the best of these words among all, 1 for the highest score; others that tie are before it."""
    best = scores[list(places)].max()
    return 1 + int((np.delete(scores, list(places)) >= best).sum())


def recourse(
    subject: Subject, scores: Mapping[str, Float[np.ndarray, "word"]], costs: Sequence[int], plan: BehaviorPlan
) -> ExampleBehavior:
    """Which words have to be removed to change the predicted class, at most `plan.size`?

    Truth: the smallest of all removals. A direct answer searches with a beam: all single words, then each with those
    that lowered the probability most. An attribution removes its highest scores in order, and each removal is tried. A
    text without such a removal does not count. Errors: more than `MOST_REMOVALS` removals.
    """
    space = RemovalSpace.of_subject(subject, plan.size)
    smallest = space.smallest_flip()
    orders = [np.argsort(-one, kind="stable").tolist() for one in scores.values()]
    by_score = [space.flip_in_order(order) for order in orders]
    by_beam = [space.beam_search(width) for width in plan.budgets]
    flips = [flip for flip, _ in (*by_score, *by_beam)]
    spent = [cost + tried for cost, (_, tried) in zip(costs, by_score, strict=True)]
    return ExampleBehavior(
        subject.labels[subject.target], subject.base,
        (" … ".join(subject.words[at].text for at in smallest),), np.array([float(len(smallest))]), np.zeros(1),
        np.zeros(1, dtype=int), np.array([bool(smallest)]), np.array([space.random_success()]),
        np.array([[float(len(flip)) for flip in flips]]), np.full((1, len(flips)), np.nan),
        np.array([[bool(flip) for flip in flips]]),
        (tuple(" … ".join(subject.words[at].text for at in flip) for flip in flips),),
        np.array([*spent, *(1 + tried for _, tried in by_beam)]),
    )  # fmt: skip


@dataclass(frozen=True)
class RemovalSpace:
    """All removals of at most `size` of the words. `flips`: whether each changes the class. `left`: the target's
    probability then."""

    words: int
    size: int
    flips: Mapping[Removal, bool]
    left: Mapping[Removal, float]

    @classmethod
    def of_subject(cls, subject: Subject, size: int) -> RemovalSpace:
        """Ask the model about each removal; at least one word stays. Errors: more than `MOST_REMOVALS` removals."""
        count = len(subject.words)
        size = min(size, count - 1)
        total = sum(math.comb(count, own) for own in range(1, size + 1))
        if total > MOST_REMOVALS:
            raise NoQuestion(
                f"size: a text of {count} words has {total:,} removals of at most {size}, more than {MOST_REMOVALS:,} "
                "are not tried. Use a smaller size."
            )
        removals = [one for own in range(1, size + 1) for one in itertools.combinations(range(count), own)]
        if not removals:
            raise NoQuestion(SINGLE_WORD)
        values = subject.probabilities([[Edit(subject.words[at]) for at in one] for one in removals])
        flips = (values.argmax(axis=1) != subject.target).tolist()
        left = values[:, subject.target].tolist()
        return cls(count, size, dict(zip(removals, flips, strict=True)), dict(zip(removals, left, strict=True)))

    def smallest_flip(self) -> Removal:
        """The smallest removal that changes the class; of equal ones that with the lowest probability. Or nothing."""
        flips = [one for one, flip in self.flips.items() if flip]
        return min(flips, key=lambda one: (len(one), self.left[one]), default=())

    def flip_in_order(self, order: Sequence[int]) -> tuple[Removal, int]:
        """The first removal in this order that changes the class, or nothing, and how many were tried."""
        for own in range(1, self.size + 1):
            removal = tuple(sorted(order[:own]))
            if self.flips[removal]:
                return removal, own
        return (), self.size

    def beam_search(self, width: int) -> tuple[Removal, int]:
        """The removal by a search that goes on from the best `width` ones, or nothing, and how many were tried."""
        beam, tried = list[Removal]([()]), 0
        for _ in range(self.size):
            grown = {tuple(sorted({*one, at})) for one in beam for at in range(self.words) if at not in one}
            ordered = sorted(grown, key=lambda one: (self.left[one], one))
            tried += len(ordered)
            if flips := [one for one in ordered if self.flips[one]]:
                return flips[0], tried
            beam = ordered[:width]
        return (), tried

    def random_success(self) -> float:
        """The probability that words removed in random order change the class, exactly, over all orders."""
        orders = itertools.permutations(range(self.words), self.size)
        flips = [bool(self.flip_in_order(order)[0]) for order in orders]
        return sum(flips) / len(flips)
