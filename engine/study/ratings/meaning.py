"""What the results of a study mean, in a plain sentence each."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from engine.study.ratings.summary import Summary

STRONG, SOME, LITTLE = 0.7, 0.4, 0.1
"""Where agreement is called strong, some or little. Words alone: nothing is decided by them."""


def meanings(found: Summary) -> dict[str, str]:
    """By part of the results, in the order in which a page shows them."""
    return {
        "ratings": _ratings(found),
        "smat": "The setting of the paper on SMaT, for comparison: its intervals widen with votes and its skills "
        "depend on the order of the votes.",
        "placebo": _placebo(found),
        "wins": "The share of votes that rank the method of the row above that of the column; a tie counts half.",
        "course": "Each method's skill after each vote: while the lines still move, more votes are needed.",
        "spread": f"Another order of the same votes would move a skill by about {found.spread:.2f}.",
        "worths": _worths(found),
        "concordance": _concordance(found),
        "alpha": _alpha(found),
        "consistency": _consistency(found),
        "needed": _needed(found),
        "seconds": _seconds(found),
        "by_item": "The mean place of each method on each item: 1 is best, and ties share the mean of their places.",
        "by_annotator": "The mean place that each annotator gives each method: people differ in taste.",
    }


def _ratings(found: Summary) -> str:
    told = any(rating.rank > 1 for rating in found.ratings)
    what = "Methods whose intervals do not overlap differ" if told else "No two methods are told apart yet"
    whose = "other people" if found.annotators > 1 else "other votes of this one person"
    return (
        f"{what}; the intervals are at least 95 % for {whose}, and wide enough that at most 5 % of studies of equally "
        "good methods would tell any two apart."
    )


def _placebo(found: Summary) -> str:
    doubtful = found.no_better_than_placebo
    if doubtful is None:
        return "The study has no placebo, so whether a method is better than chance is not known."
    if not doubtful:
        return f"Every method is rated above the placebo, {found.placebo}."
    return f"Not shown to be better than the placebo, {found.placebo}: {', '.join(doubtful)}."


def _worths(found: Summary) -> str:
    if found.same_order:
        return "Plackett and Luce's model of rankings puts the methods in the same order."
    return (
        f"Plackett and Luce's model of rankings has another order, {', '.join(found.worth_order)}: "
        "do not rely on the order of methods whose intervals overlap."
    )


def _concordance(found: Summary) -> str:
    value, chance = found.concordance, found.concordance_by_chance
    if value is None or chance is None:
        return "Whether people agree on an item is not known: no item has rankings by two people."
    beyond = (value - chance) / (1 - chance)
    return f"On one item people {_agree(beyond)}: W is 1 where all rank alike, and by chance about {chance:.2f} here."


def _alpha(found: Summary) -> str:
    if found.alpha is None:
        return "Agreement beyond chance is not known: no item has rankings by two people that differ at all."
    if found.alpha < 0:
        return "People agree less than they would by chance: 1 is perfect agreement and 0 is chance."
    return f"Beyond chance, people {_agree(found.alpha)}: alpha is 1 for perfect agreement and 0 for chance."


def _consistency(found: Summary) -> str:
    if found.consistency is None:
        return "Whether people agree with themselves is not known: no item was ranked twice by one person."
    rho, pairs = found.consistency
    said = "one repeated ranking" if pairs == 1 else f"{pairs} repeated rankings"
    return f"Asked again, people {_agree(rho)} with themselves over {said}: 1 is the same order, 0 is chance."


def _needed(found: Summary) -> str:
    open_pairs = [pair for pair in found.needed if not pair.apart]
    if not open_pairs:
        return "All pairs of methods are told apart already."
    if not found.power:
        return "How many votes would tell more methods apart is not known of one annotator: a forecast needs two."
    reachable = [pair.votes for pair in open_pairs if pair.votes is not None]
    if not reachable:
        return "The methods that are not told apart are so close that no study of a usual size would do it."
    return f"If people go on as they did, about {min(reachable):,} votes in all tell the next pair of methods apart."


def _seconds(found: Summary) -> str:
    if found.seconds is None:
        return "How long people looked is not known."
    took = found.seconds
    return f"Half of the votes took {took.low:.0f} to {took.high:.0f} seconds; the median is {took.median:.0f}."


def _agree(value: float) -> str:
    how = ("strongly", "to some extent", "a little", "hardly")[sum(value < limit for limit in (STRONG, SOME, LITTLE))]
    return f"agree {how}" if how != "hardly" else "hardly agree"
