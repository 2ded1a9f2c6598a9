"""Questions about one input: the true answer, the answers of direct queries, and those of attributions.

The truth of each question is defined as the mean over many replacements, or as the result of all possible removals.
Direct queries spend a budget; an attribution answers by its scores.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from jaxtyping import Bool, Float, Int

from engine.behavior.plan import DELETE, FEATURE, INPUTS, LOCAL, PARTS, BehaviorPlan
from engine.behavior.subjects import NoQuestion, Subject
from engine.errors import ExegesisError, UsageError, one_line
from engine.format import count_text
from engine.lazy import scipy
from engine.metrics.results import LEVEL
from engine.result import Explanation

TRUTH_DRAWS = 256
"""Number of replacements of a word whose mean effect is the truth. They are independent of those of direct answers."""
MOST_REMOVALS = 5_000
"""Maximum number of removals that are tried for one input."""
SINGLE = {
    "text": "text: has a single word, so that nothing would be left of it.",
    "image": "image: is a single patch to the model, so that nothing would be left of it.",
}
Removal = tuple[int, ...]
"""Positions of words or patches that are removed together, in increasing order."""


@dataclass(frozen=True, eq=False, kw_only=True)
class BehaviorCases:
    """Questions, one case each, and their answers.

    `words`: the word of each case; for pictures, the patch. `truth`: positive if the right answer is yes. Local
    behavior: the drop in probability, from -1 to 1, with `truth_error`, half of its 95% interval (0 if it is exact),
    and `falls`, the number of replacements of the largest budget that lower the probability. Recourse: the number of
    words in the smallest removal, 0 if there is none. Feature: whether a change of it changes the class, with `falls`,
    the number of changes that do. `counted`: whether the case enters accuracies. `chance`: the accuracy of random
    guessing.

    `values`: the value of each way of answering. Local behavior: an attribution's score, or the estimated drop, with
    `errors`, half of its 95% interval (NaN if there is none). Recourse: the number of words in its removal, 0 if it has
    none. Feature: the rank of the feature, or the number of changes of the class. `yes`: the answer. `edits`: a removal
    as words. The value of a method that failed is NaN.
    """

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


@dataclass(frozen=True, eq=False, kw_only=True)
class ExampleBehavior(BehaviorCases):
    """The questions about one example.

    `target`, `probability`: the explained class and its probability. `evaluations`: number of model evaluations of each
    way, in units of the whole input. `failures`: why a method has no answer.
    """

    target: str
    probability: float
    evaluations: Int[np.ndarray, "way"]
    failures: dict[str, str] = field(default_factory=dict)


def says_falls(scores: Float[np.ndarray, "word"], signed: bool) -> Bool[np.ndarray, "word"]:
    """Whether scores predict that the probability drops without each word, which is a positive score.

    Unsigned scores only express magnitude, so a score above the mean of the input counts as a yes.
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
    subject: Subject, explanations: Mapping[str, Explanation | ExegesisError], signed: Mapping[str, bool],
    plan: BehaviorPlan, index: int,
) -> ExampleBehavior:  # fmt: skip
    """Answer the questions of the plan's task about one input. The caller must hold the device.

    `explanations`: the explanation by each method, or its error; then only this method has no answer. `signed`: whether
    the scores of each other method are signed. `index`: index of the example, for the draws. Errors: `NoQuestion` for a
    regression head, an input without the feature, too many removals, or an input that cannot be changed in this way,
    such as a single word that would be deleted.
    """
    if subject.model.regression:
        raise NoQuestion(f"task: {plan.task} needs classes, and {subject.model.id} predicts a score. Use a classifier.")
    explained = {method: one for method, one in explanations.items() if isinstance(one, Explanation)}
    failures = {method: one_line(one) for method, one in explanations.items() if isinstance(one, ExegesisError)}
    scores = {method: subject.scores(one) for method, one in explained.items()}
    costs = [one.evaluations for one in explained.values()]
    own = replace(plan, methods=tuple(explained))
    try:
        if plan.task == LOCAL:
            answered = local_behavior(subject, scores, signed, costs, own, index)
        elif plan.task == FEATURE:
            answered = feature_use(subject, scores, costs, own, index)
        else:
            answered = recourse(subject, scores, costs, own)
    except UsageError as error:  # the changed text cannot be read, so a retry would not help
        raise NoQuestion(str(error)) from error
    return with_failures(answered, failures, own.ways, plan.ways)


def with_failures(
    answered: ExampleBehavior, failures: dict[str, str], ways: Sequence[str], all_ways: Sequence[str]
) -> ExampleBehavior:
    """Add a column for each method that failed: its value is NaN, its answer no, and its number of evaluations 0."""
    if not failures:
        return answered
    places = [ways.index(way) if way in ways else -1 for way in all_ways]

    def spread(column: np.ndarray, empty: float | int | bool) -> np.ndarray:
        """Reorder the columns. A way that failed takes the appended last column, which holds the empty value."""
        last = np.full((*column.shape[:-1], 1), empty, dtype=column.dtype)
        spread_out: np.ndarray = np.concatenate([column, last], axis=-1)[..., places]
        return spread_out

    return replace(
        answered,
        values=spread(answered.values, np.nan),
        errors=spread(answered.errors, np.nan),
        yes=spread(answered.yes, False),
        evaluations=spread(answered.evaluations, 0),
        edits=tuple(tuple((*own, "")[place] for place in places) for own in answered.edits),
        failures=failures,
    )


def local_behavior(
    subject: Subject, scores: Mapping[str, Float[np.ndarray, "word"]], signed: Mapping[str, bool],
    costs: Sequence[int], plan: BehaviorPlan, index: int,
) -> ExampleBehavior:  # fmt: skip
    """Test for each word or patch whether the probability of the target drops on average if it is changed.

    Truth: the exact drop of a deletion, or the mean over `TRUTH_DRAWS` replacements. A word counts if its change is at
    least the margin and the interval excludes 0. A direct answer is the sign of its own mean. Errors: a single word
    that would be deleted.
    """
    base, exact, count = subject.base, plan.edit == DELETE, len(subject.names)
    if exact and count == 1:
        raise NoQuestion(SINGLE[subject.model.kind])
    if exact:
        truths = draws = base - subject.without([(at,) for at in range(count)])[:, [subject.target]]
    else:
        truths = base - subject.replaced(TRUTH_DRAWS, [plan.seed, index, 0])
        draws = base - subject.replaced(plan.draws, [plan.seed, index, 1])
    truth_error = np.zeros(count) if exact else half_interval(truths)
    truth = truths.mean(axis=1)
    queries = [draws[:, :budget] for budget in plan.budgets]
    means = [one.mean(axis=1) for one in queries]
    errors = [np.zeros(count) if exact else half_interval(one) for one in queries]
    answers = [says_falls(own, signed[method]) for method, own in scores.items()]
    return ExampleBehavior(
        target=subject.label,
        probability=base,
        words=subject.names,
        truth=truth,
        truth_error=truth_error,
        falls=(draws > 0).sum(axis=1),
        counted=(np.abs(truth) > truth_error) & (np.abs(truth) >= plan.margin / 100) & (truth != 0),
        chance=np.full(count, 0.5),
        values=np.stack([*scores.values(), *means], axis=1),
        errors=np.stack([*(np.full(count, np.nan) for _ in scores), *errors], axis=1),
        yes=np.stack([*answers, *(mean > 0 for mean in means)], axis=1),
        edits=(("",) * len(plan.ways),) * count,
        evaluations=np.array([*costs, *(1 + budget * count for budget in plan.budgets)]),
    )


def feature_use(
    subject: Subject, scores: Mapping[str, Float[np.ndarray, "word"]], costs: Sequence[int], plan: BehaviorPlan,
    index: int,
) -> ExampleBehavior:  # fmt: skip
    """Test whether the prediction relies on the feature: does its class change if the feature is removed or exchanged?

    The same is asked about a random control: as many other words, or a region of the same size. Truth: whether any of
    these changes affects the class. A direct answer makes the first changes, starting with the removal. An attribution
    says yes if a word of the feature has the highest score of all. Errors: the input does not have the feature.
    """
    groups = subject.feature_groups(plan.feature_words, np.random.default_rng([plan.seed, index]))
    changed = np.stack([one.changed for one in groups])
    ranks = np.array([[_rank(one, group.places) for one in scores.values()] for group in groups], dtype=np.float64)
    counts = np.stack([changed[:, :budget].sum(axis=1) for budget in plan.budgets], axis=1)
    number, ways = len(groups), len(plan.ways)
    return ExampleBehavior(
        target=subject.label,
        probability=subject.base,
        words=tuple(one.name for one in groups),
        truth=np.array(changed.any(axis=1), dtype=np.float64),
        truth_error=np.zeros(number),
        falls=changed.sum(axis=1),
        counted=np.ones(number, dtype=bool),
        chance=np.full(number, 0.5),
        values=np.concatenate([ranks, counts], axis=1),
        errors=np.full((number, ways), np.nan),
        yes=np.concatenate([ranks == 1, counts > 0], axis=1),
        edits=(("",) * ways,) * number,
        evaluations=np.array([*costs, *(1 + budget * number for budget in plan.budgets)]),
    )


def _rank(scores: Float[np.ndarray, "word"], places: Sequence[int]) -> int:
    """The best rank of these words among all, 1 for the highest score. Other words with the same score come first."""
    best = scores[list(places)].max()
    return 1 + int((np.delete(scores, list(places)) >= best).sum())


def recourse(
    subject: Subject, scores: Mapping[str, Float[np.ndarray, "word"]], costs: Sequence[int], plan: BehaviorPlan
) -> ExampleBehavior:
    """Find words, at most `plan.size`, whose removal changes the predicted class.

    Truth: the smallest of all such removals. A direct answer is a beam search: all single words first, then extensions
    of the removals with the lowest probability. An attribution removes words in decreasing order of score, one more at
    a time. An input without such a removal does not count. Errors: more than `MOST_REMOVALS` removals.
    """
    space = RemovalSpace.of_subject(subject, plan.size)
    smallest = space.smallest_flip()
    orders = [np.argsort(-one, kind="stable").tolist() for one in scores.values()]
    by_score = [space.flip_in_order(order) for order in orders]
    by_beam = [space.beam_search(width) for width in plan.budgets]
    flips = [flip for flip, _ in (*by_score, *by_beam)]
    spent = [cost + tried for cost, (_, tried) in zip(costs, by_score, strict=True)]

    def named(removal: Removal) -> str:
        return " … ".join(subject.names[at] for at in removal)

    return ExampleBehavior(
        target=subject.label,
        probability=subject.base,
        words=(named(smallest),),
        truth=np.array([float(len(smallest))]),
        truth_error=np.zeros(1),
        falls=np.zeros(1, dtype=int),
        counted=np.array([bool(smallest)]),
        chance=np.array([space.random_success()]),
        values=np.array([[float(len(flip)) for flip in flips]]),
        errors=np.full((1, len(flips)), np.nan),
        yes=np.array([[bool(flip) for flip in flips]]),
        edits=(tuple(named(flip) for flip in flips),),
        evaluations=np.array([*spent, *(1 + tried for _, tried in by_beam)]),
    )


@dataclass(frozen=True)
class RemovalSpace:
    """All removals of at most `size` words.

    `flips`: whether each changes the class. `left`: the probability of the target that it leaves.
    """

    words: int
    size: int
    flips: Mapping[Removal, bool]
    left: Mapping[Removal, float]

    @classmethod
    def of_subject(cls, subject: Subject, size: int) -> RemovalSpace:
        """Query the model for each removal; at least one word stays.

        Errors: more than `MOST_REMOVALS` removals, a single word.
        """
        count, kind = len(subject.names), subject.model.kind
        size = min(size, count - 1)
        total = sum(math.comb(count, own) for own in range(1, size + 1))
        if total > MOST_REMOVALS:
            raise NoQuestion(
                f"size: a {INPUTS[kind]} of {count_text(count, PARTS[kind])} has {total:,} removals of at most {size}, "
                f"more than {MOST_REMOVALS:,} are not tried. Use a smaller size."
            )
        removals = [one for own in range(1, size + 1) for one in itertools.combinations(range(count), own)]
        if not removals:
            raise NoQuestion(SINGLE[kind])
        values = subject.without(removals)
        flips = subject.class_changes(values).tolist()
        left = values[:, subject.target].tolist()
        return cls(count, size, dict(zip(removals, flips, strict=True)), dict(zip(removals, left, strict=True)))

    def smallest_flip(self) -> Removal:
        """The smallest removal that changes the class, or an empty one. Ties go to the lowest probability."""
        flips = [one for one, flip in self.flips.items() if flip]
        return min(flips, key=lambda one: (len(one), self.left[one]), default=())

    def flip_in_order(self, order: Sequence[int]) -> tuple[Removal, int]:
        """The first removal in this order that changes the class, or an empty one, and the number of removals tried."""
        for own in range(1, self.size + 1):
            removal = tuple(sorted(order[:own]))
            if self.flips[removal]:
                return removal, own
        return (), self.size

    def beam_search(self, width: int) -> tuple[Removal, int]:
        """The removal found by a beam search of this width, or an empty one, and the number of removals tried."""
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
        """The exact probability that removing words in random order changes the class."""
        orders = itertools.permutations(range(self.words), self.size)
        flips = [bool(self.flip_in_order(order)[0]) for order in orders]
        return sum(flips) / len(flips)
