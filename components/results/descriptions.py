"""Sentences about the results of a study."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import replace

from components.numbers import count
from engine.format import join_names
from engine.result import Prediction
from engine.study.annotators import SUREST
from engine.study.counted_votes import WITHOUT, CountedVote
from engine.study.design import ExclusionRules
from engine.study.guesses import GuessSummary
from engine.study.ratings import Rating
from engine.study.results import Results
from engine.study.studies import AnswerCounts
from engine.study.summary import RankingSummary

PLAUSIBLE = (
    "Plausible is not helpful, nor faithful: what people find plausible need not help them foresee the model, and need "
    "not be what the model does. A study of guesses tells the first; a study of this kind tells neither."
)
SMAT_WARNING = (
    "For comparison, not for conclusions: in this setting skills drift, so its intervals widen with votes and its "
    "skills depend on the order of the votes."
)


def describe_preference(summary: RankingSummary) -> str:
    """Describe which methods people prefer, by the intervals."""
    ranks = {rating.method: rating.rank for rating in summary.ratings}
    best = [method for method in summary.order if ranks[method] == 1]
    behind = [method for method in summary.order if ranks[method] > 1]
    if not behind:
        return "No two methods are told apart yet."
    if len(best) == 1:
        return f"People prefer {best[0]}: it is rated above every other method."
    is_or_are = "is" if len(behind) == 1 else "are"
    return (
        f"{join_names(best)} share the first rank; {join_names(behind)} {is_or_are} rated below at least one of them."
    )


def describe_rankings(summary: RankingSummary) -> str:
    """Describe the number of rankings behind the results."""
    people = count(summary.annotators, "annotator")
    return f"This rests on {count(summary.votes, 'ranking')} by {people} on {count(summary.items, 'item')}."


def describe_guesses(summary: GuessSummary) -> str:
    """Describe the number of guesses behind the results."""
    people = count(summary.annotators, "annotator")
    guesses = f"{summary.guesses:,} guess{'' if summary.guesses == 1 else 'es'}"
    return f"This rests on {guesses} by {people} on {count(summary.items, 'item')}."


def describe_answers(results: Results, counts: AnswerCounts) -> str:
    """Describe the numbers of people and answers, and of the answers that do not count."""
    excluded = sum(one.votes for one in results.excluded)
    repeats = sum(vote.repeat > 0 and (vote.ranks or vote.guess) is not None for vote in results.votes)
    people = replace(counts, voters=results.annotators).people
    parts = [f"{people}, {count(results.answers, 'answer')}"]
    parts += [f"{results.cannot_tell:,} “cannot tell”"] if results.cannot_tell else []
    parts += [f"{count(repeats, 'repeat')}, used for self-consistency only"] if repeats else []
    parts += [f"{excluded:,} excluded by the study's rules"] if excluded else []
    return f"{'; '.join(parts)}."


def rank_span(rating: Rating) -> str:
    """The range of a method's ranks in the partial order: 2, or 3–4."""
    return str(rating.rank) if rating.rank == rating.last else f"{rating.rank}–{rating.last}"


def describe_ranking(vote: CountedVote, titles: Mapping[str, str]) -> str:
    """Describe a ranking, the best first, ties joined: A › B = C."""
    if vote.ranks is None:
        return "could not tell"
    steps: dict[int, list[str]] = defaultdict(list)
    for method, rank in vote.ranks.items():
        steps[rank].append(titles[method])
    return " › ".join(" = ".join(sorted(steps[rank])) for rank in sorted(steps))


def describe_guess(vote: CountedVote, prediction: Prediction, titles: Mapping[str, str]) -> str:
    """Describe a guess: whether it matches the prediction, how sure the person was, and the explanation shown."""
    condition = f"with {titles[vote.order[0]]}" if vote.order else f"with {WITHOUT}"
    if vote.guess is None:
        return f"could not tell, {condition}"
    label, sure = vote.guess["label"], f"{vote.guess['sure']} of {SUREST} sure"
    verdict = "right" if label == prediction.index else f"wrong, the model said {prediction.label}"
    return f"guessed {prediction.labels[label]}: {verdict}; {sure}, {condition}"


def describe_rules(rules: ExclusionRules) -> str:
    """Describe the exclusion rules declared before the study opened."""
    parts = []
    if rules.least_seconds:
        parts.append(f"answers in less than {rules.least_seconds:.3g} seconds")
    if rules.least_votes:
        parts.append(f"annotators with fewer than {count(rules.least_votes, 'answer')}")
    if rules.most_cannot_tell is not None:
        parts.append(f"annotators who could not tell in over {rules.most_cannot_tell:.0%}")
    if rules.least_consistency is not None:
        parts.append(f"annotators whose repeated rankings have a tau below {rules.least_consistency:.2f}")
    if not parts:
        return "No rule was declared before the study opened, so nothing is left out."
    return f"Declared before the study opened: leave out {'; '.join(parts)}."
