"""The results of a study in words: methods are named by their titles, in the order of the design."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeVar

import streamlit as st

from components.browse.thumbnails import thumbnail_url
from components.numbers import count
from engine.errors import ExegesisError
from engine.format import join_names
from engine.registry import explainer
from engine.result import Prediction
from engine.study.annotators import SUREST
from engine.study.counted_votes import WITHOUT, CountedVote, GuessTarget, guess_targets, method_names
from engine.study.design import Design, ExclusionRules
from engine.study.guesses import GuessSummary
from engine.study.items import ItemName, item_names, item_pictures
from engine.study.ratings import Rating, count_differences, strictly_better
from engine.study.results import Results
from engine.study.studies import AnswerCounts, StudyRecord
from engine.study.summary import RankingSummary, VoteGroup

PLAUSIBLE = (
    "Preferred is not the same as helpful or faithful. People may prefer explanations that do not help them predict "
    "the model, or that do not reflect how it works. A study of guesses measures helpfulness; no study measures "
    "faithfulness."
)
SMAT_WARNING = (
    "For comparison only. In this setting skills drift over time, so the intervals widen with more votes and the "
    "skills depend on the order of the votes."
)
T = TypeVar("T")
MOST_STUDIES = 8


@dataclass(frozen=True)
class TitledResults:
    """Results with the titles of their methods. `untitled`: the same results with ids."""

    untitled: Results

    @property
    def study(self) -> StudyRecord:
        return self.untitled.study

    @property
    def votes(self) -> tuple[CountedVote, ...]:
        """The votes that count."""
        return self.untitled.votes

    @cached_property
    def titles(self) -> Mapping[str, str]:
        return method_titles(self.study.design)

    @cached_property
    def items(self) -> Mapping[str, ItemName]:
        """The names of the items by their places in votes."""
        return item_names(self.study.id)

    @cached_property
    def summary(self) -> RankingSummary | None:
        """The results of rankings; None if nothing is ranked."""
        return None if self.untitled.summary is None else titled_summary(self.untitled.summary, self.titles)

    @cached_property
    def forward(self) -> GuessSummary | None:
        """The results of guesses; None if the study has none."""
        return None if self.untitled.forward is None else titled_forward(self.untitled.forward, self.titles)

    @cached_property
    def targets(self) -> Mapping[str, GuessTarget]:
        """The right classes of a study of guesses by the items' places."""
        return guess_targets(self.study.id)

    def thumbnails(self, places: Sequence[str]) -> list[str]:
        """The `data:` URLs of thumbnails of these items; empty in a study of texts."""
        if self.study.design.kind != "image":
            return []
        urls = _thumbnails(self.study.id, self.study.token)
        return [urls[place] for place in places]


@st.cache_data(show_spinner="Creating thumbnails of the items", max_entries=MOST_STUDIES)
def _thumbnails(study: int, token: str) -> dict[str, str]:
    """Thumbnails by place. The pictures of an open study never change; `token` distinguishes databases."""
    return {place: thumbnail_url(picture.pixels) for place, picture in item_pictures(study).items()}


def method_titles(design: Design) -> dict[str, str]:
    """Return the title of each method by its name in the votes. A variant with other parameters has a number."""
    names = method_names(design)
    return {
        name: f"{_title(method.id, design.kind)}{name.removeprefix(method.id)}"
        for name, method in zip(names, design.ballot_methods, strict=True)
    }


def titled_summary(summary: RankingSummary, titles: Mapping[str, str]) -> RankingSummary:
    """Replace the names of methods in the results by their titles, and sort the methods in the order of the titles."""
    places = [summary.methods.index(name) for name in titles if name in summary.methods]
    return replace(
        summary,
        methods=tuple(titles[summary.methods[place]] for place in places),
        placebo=None if summary.placebo is None else titles[summary.placebo],
        ratings=_titled_ratings(summary.ratings, titles, places),
        smat=_titled_ratings(summary.smat, titles, places),
        course=summary.course[:, places],
        wins=summary.wins[places][:, places],
        worths=_titled_values(summary.worths, titles),
        by_item=_titled_groups(summary.by_item, titles),
        by_annotator=_titled_groups(summary.by_annotator, titles),
    )


def titled_forward(summary: GuessSummary, titles: Mapping[str, str]) -> GuessSummary:
    """Replace the names of methods in the results of guesses by their titles."""
    names = {WITHOUT: WITHOUT} | dict(titles)
    conditions = tuple(replace(one, name=names[one.name]) for one in summary.conditions)
    return replace(summary, conditions=conditions, placebo=names[summary.placebo] if summary.placebo else None)


def _title(method: str, kind: str) -> str:
    """Return the title of a method, or its id, since an imported study may have methods that are unknown here."""
    try:
        return explainer(method, kind).title
    except ExegesisError:
        return method


def _titled_ratings(ratings: Sequence[Rating], titles: Mapping[str, str], places: Sequence[int]) -> tuple[Rating, ...]:
    return tuple(replace(ratings[place], method=titles[ratings[place].method]) for place in places)


def _titled_groups(groups: Sequence[VoteGroup], titles: Mapping[str, str]) -> tuple[VoteGroup, ...]:
    return tuple(replace(group, mean_rank=_titled_values(group.mean_rank, titles)) for group in groups)


def _titled_values(values: Mapping[str, T], titles: Mapping[str, str]) -> dict[str, T]:
    return {title: values[name] for name, title in titles.items() if name in values}


def describe_preference(summary: RankingSummary) -> str:
    """Describe which methods are rated above others, and which ones cannot be separated from the best.

    Only methods whose intervals do not overlap are said to differ.
    """
    intervals = {rating.method: rating.interval for rating in summary.ratings}
    beaten = {
        name: tuple(other for other in summary.order if strictly_better(intervals[name], intervals[other]))
        for name in summary.order
    }
    best = [name for name in summary.order if not any(name in others for others in beaten.values())]
    is_one = summary.votes == 1
    basis = f"{count(summary.votes, 'vote')} by {_people(summary)}"
    if not any(beaten.values()):
        return f"{basis} {'shows' if is_one else 'show'} no difference between the methods."
    groups: dict[tuple[str, ...], list[str]] = defaultdict(list)
    for name in best:
        if beaten[name]:
            groups[beaten[name]].append(name)
    raters = "people like these" if summary.annotators > 1 else "this one person"
    clauses = [
        f"{join_names(names)} {'is' if len(names) == 1 else 'are'} rated above {join_names(others)} by {raters}"
        for others, names in groups.items()
    ]
    if len(best) == 1:
        return f"{clauses[0]} ({basis})."
    return f"{'; '.join(clauses)}; {basis} {'does' if is_one else 'do'} not separate {join_names(best)}."


def describe_rankings(summary: RankingSummary) -> str:
    """Describe the evidence for the order: votes, people, items, and separated pairs."""
    methods = len(summary.ratings)
    separated = count_differences([rating.interval for rating in summary.ratings])
    pairs = count(methods * (methods - 1) // 2, "pair")
    basis = f"{count(summary.votes, 'ranking')} by {count(summary.annotators, 'annotator')}"
    they = "it separates" if summary.votes == 1 else "they separate"
    return f"Based on {basis} on {count(summary.items, 'item')}; {they} {separated:,} of {pairs} of methods."


def _people(summary: RankingSummary) -> str:
    return "1 person" if summary.annotators == 1 else f"{summary.annotators:,} people"


def describe_guesses(summary: GuessSummary) -> str:
    """Describe the number of guesses behind the results."""
    people = count(summary.annotators, "annotator")
    guesses = f"{summary.guesses:,} guess{'' if summary.guesses == 1 else 'es'}"
    return f"Based on {guesses} by {people} on {count(summary.items, 'item')}."


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
    """Format the range of a method's ranks in the partial order: 2, or 3–4."""
    return str(rating.rank) if rating.rank == rating.last else f"{rating.rank}–{rating.last}"


def describe_ranking(vote: CountedVote, titles: Mapping[str, str]) -> str:
    """Describe a ranking, the best first, ties joined: A › B = C."""
    if vote.ranks is None:
        return "cannot tell"
    steps: dict[int, list[str]] = defaultdict(list)
    for method, rank in vote.ranks.items():
        steps[rank].append(titles[method])
    return " › ".join(" = ".join(sorted(steps[rank])) for rank in sorted(steps))


def describe_guess(vote: CountedVote, prediction: Prediction, answer: int, titles: Mapping[str, str]) -> str:
    """Describe a guess: whether it is right, how sure the person was, and the explanation shown.

    `answer`: the right class.
    """
    condition = f"with {titles[vote.order[0]]}" if vote.order else f"with {WITHOUT}"
    if vote.guess is None:
        return f"cannot tell, {condition}"
    label, sure = vote.guess["label"], f"confidence {vote.guess['sure']} of {SUREST}"
    verdict = "right" if label == answer else f"wrong, the answer is {prediction.labels[answer]}"
    return f"guessed {prediction.labels[label]}: {verdict}; {sure}, {condition}"


def describe_rules(rules: ExclusionRules) -> str:
    """Describe the exclusion rules declared before the study opened."""
    parts = []
    if rules.least_seconds:
        parts.append(f"answers faster than {rules.least_seconds:.3g} seconds")
    if rules.least_votes:
        parts.append(f"annotators with fewer than {count(rules.least_votes, 'answer')}")
    if rules.most_cannot_tell is not None:
        parts.append(f"annotators with more than {rules.most_cannot_tell:.0%} “cannot tell”")
    if rules.least_consistency is not None:
        parts.append(f"annotators with a self-consistency (Kendall's tau) below {rules.least_consistency:.2f}")
    if not parts:
        return "The study has no exclusion rules, so no votes are excluded."
    return f"Excluded by rules set before the study opened: {'; '.join(parts)}."
