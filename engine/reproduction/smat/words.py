"""The words in which SMaT's claims and their numbers are told, on paper and on the page."""

from __future__ import annotations

from engine.reproduction.smat.claims import AUC, Claim, Contrast, Sizes, Term
from engine.reproduction.smat.naming import MEASURES, NORMALISATIONS, SIDES, TASKS, setting_named, size_named
from engine.reproduction.words import number_told

LEVEL = (
    "Of students the median over the seeds is compared, and its ends are the quartiles, as in the paper: a claim "
    "holds when the ends of all its numbers lie inside their bounds, does not hold when those of one lie outside, and "
    "is undecided where quartiles overlap. Quartiles do not narrow with more students; the number of seeds that is "
    "told is that with which a 95 % interval of the difference of medians would leave the bound with power 0.8, if "
    "they are as spread as they now seem. Plausibility has 95 % intervals over examples, paired, widened for as many "
    "numbers as the claim has before it is said not to hold (Bonferroni)."
)
ABOUT = (
    "Simulability is how often a student's answer is the teacher's, from 0 to 1, for scores their correlation, from −1 "
    "to 1. Texts, pictures and scores stand for the paper's IMDB, CIFAR-100 and MLQE; the sizes are the examples that "
    "a student learns from."
)
QUANTITY = (
    "Gradient explanations are of the teacher's logit of the class that it predicts (of a regression model its score), "
    "not of the probability; attention explanations are of neither."
)
NOT_EXAMINED = "not examined"


def statistic_told(claim: Claim) -> str:
    """What is computed for each entry, in one line."""
    if not claim.contrasts:
        return "what people say" if claim.people else "difference between train sizes"
    first = claim.contrasts[0]
    measure = MEASURES[first.terms[0].measure]
    kind = "" if len(first.terms) == 1 else _kind(first)
    count, choices = len(claim.asked), max(map(len, claim.asked))
    entries = "" if count == choices == 1 else f"; {_entries(count, choices, claim.least)}"
    return f"{kind}{measure}{entries}"


def _kind(contrast: Contrast) -> str:
    paired = "paired " if contrast.terms[0].measure == AUC else ""
    return f"{paired}difference {'of differences ' if len(contrast.terms) > 2 else ''}of "


def _entries(entries: int, choices: int, least: int | None) -> str:
    if least is not None:
        return f"at least {least} of {entries} numbers"
    return f"each of {entries} numbers" if choices == 1 else f"one of {choices} numbers"


def sum_told(contrast: Contrast, sizes: Sizes) -> str:
    """The sum that is computed, with its signs."""
    return " ".join(_term(term, sizes, not place) for place, term in enumerate(contrast.terms))


def _term(term: Term, sizes: Sizes, first: bool) -> str:
    sign = ("" if first else "+ ") if term.times > 0 else "− "
    size = 1 if abs(term.times) == 1 else abs(term.times)
    times = "" if size == 1 else f"{number_told(size)} "
    where = [TASKS[term.of], *([SIDES[term.side]] if term.side else [])]
    if term.measure != AUC:
        where.append(size_named(sizes[term.of][term.size]))
    if term.normalisation != "sparsemax":
        where.append(NORMALISATIONS[term.normalisation])
    return f"{sign}{times}{MEASURES[term.measure]}({setting_named(term.setting)}; {', '.join(where)})"
