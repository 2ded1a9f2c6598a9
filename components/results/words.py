"""What the results of a study say, in a sentence: first of all the answer."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

from components.numbers import count
from engine.result import Prediction
from engine.study.design import ExclusionRules
from engine.study.forward.guesses import SUREST, WITHOUT
from engine.study.ratings.headline import Rating
from engine.study.ratings.summary import Summary
from engine.study.results import Results
from engine.study.tally import Kept

PLAUSIBLE = (
    "Plausible is not helpful, nor faithful: what people find plausible need not help them foresee the model, and need "
    "not be what the model does. A study of guesses tells the first; a study of this kind tells neither."
)
SMAT_WARNING = (
    "For comparison, not for conclusions: in this setting skills drift, so its intervals widen with votes and its "
    "skills depend on the order of the votes."
)


def preferred(found: Summary) -> str:
    """Whom people prefer, as far as the intervals tell."""
    ranked = {rating.method: rating.rank for rating in found.ratings}
    best = [method for method in found.order if ranked[method] == 1]
    behind = [method for method in found.order if ranked[method] > 1]
    if not behind:
        return "No two methods are told apart yet."
    if len(best) == 1:
        return f"People prefer {best[0]}: it is rated above every other method."
    is_or_are = "is" if len(behind) == 1 else "are"
    return f"{listed(best)} share the first rank; {listed(behind)} {is_or_are} rated below at least one of them."


def rests_on(found: Summary) -> str:
    """How many votes speak."""
    people = count(found.annotators, "annotator")
    return f"This rests on {count(found.votes, 'ranking')} by {people} on {count(found.items, 'item')}."


def taken(found: Results) -> str:
    """What came in, and what does not count as a ranking."""
    gone = sum(one.votes for one in found.excluded)
    again = sum(vote.repeat > 0 and (vote.ranks or vote.guess) is not None for vote in found.kept)
    parts = [f"{count(found.answers, 'answer')} by {count(found.annotators, 'annotator')}"]
    parts += [f"{found.cannot_tell:,} could not tell"] if found.cannot_tell else []
    parts += [f"{count(again, 'repeat')}, not rated: they tell how steadily people answer"] if again else []
    parts += [f"{gone:,} left out by the study's rules"] if gone else []
    return f"{'; '.join(parts)}."


def rank_text(rating: Rating) -> str:
    """The places that a method may hold in the partial order: 2, or 3–4."""
    return str(rating.rank) if rating.rank == rating.last else f"{rating.rank}–{rating.last}"


def ranking_words(vote: Kept, titles: Mapping[str, str]) -> str:
    """The best first, ties joined: A › B = C."""
    if vote.ranks is None:
        return "could not tell"
    steps: dict[int, list[str]] = defaultdict(list)
    for method, rank in vote.ranks.items():
        steps[rank].append(titles[method])
    return " › ".join(" = ".join(sorted(steps[rank])) for rank in sorted(steps))


def guess_words(vote: Kept, said: Prediction, titles: Mapping[str, str]) -> str:
    """What was guessed, whether it is what the model said, how sure they were, and what they saw."""
    shown = f"with {titles[vote.order[0]]}" if vote.order else f"with {WITHOUT}"
    if vote.guess is None:
        return f"could not tell, {shown}"
    label, sure = vote.guess["label"], f"{vote.guess['sure']} of {SUREST} sure"
    verdict = "right" if label == said.index else f"wrong, the model said {said.label}"
    return f"guessed {said.labels[label]}: {verdict}; {sure}, {shown}"


def rules_words(rules: ExclusionRules) -> str:
    """What was declared before the study opened."""
    said = [
        f"answers in less than {rules.least_seconds:.3g} seconds" if rules.least_seconds else None,
        f"annotators with fewer than {count(rules.least_votes, 'answer')}" if rules.least_votes else None,
        _limit("annotators who could not tell in over {:.0%}", rules.most_cannot_tell),
        _limit("annotators whose repeated rankings have a tau below {:.2f}", rules.least_consistency),
    ]
    kept = [words for words in said if words is not None]
    if not kept:
        return "No rule was declared before the study opened, so nothing is left out."
    return f"Declared before the study opened: leave out {'; '.join(kept)}."


def listed(names: Sequence[str]) -> str:
    """A; A and B; A, B and C."""
    *most, last = names
    return f"{', '.join(most)} and {last}" if most else last


def _limit(words: str, limit: float | None) -> str | None:
    return None if limit is None else words.format(limit)
