"""The words in which claims, rules and numbers are told, on paper and on the page."""

from __future__ import annotations

from engine.metrics.catalog import metric
from engine.reproduction.claims import Claim, Contrast, Term
from engine.reproduction.outcome import Number, Outcome, Reproduction
from engine.reproduction.scales import Scale
from engine.reproduction.verdicts import Verdict, margin

LEVEL = (
    "Intervals are 95 % bootstrap intervals over examples, paired wherever the examples are the same. A claim holds "
    "when each of its intervals lies inside its bounds, does not hold as soon as one lies outside, and cannot be told "
    "otherwise."
)
INSIDE: dict[Verdict, str] = {"holds": "yes", "does not hold": "no", "cannot be told": "open"}
"""Whether one number is inside its bounds."""
NO_N = "its number is the bound itself, so that no number of examples would tell"


def rule_told(claim: Claim) -> str:
    """How the claim is judged, such as `at least 0.9`."""
    low, high = claim.bounds
    if low is not None and high is not None:
        return f"from {number_told(low)} to {number_told(high)}"
    return f"{claim.rule} {number_told(low if low is not None else high or 0.0)}"


def number_told(value: float) -> str:
    """With three digits after the point where it has them."""
    return f"{value:.3f}".rstrip("0").rstrip(".") if round(value, 3) else "0"


def statistic_told(claim: Claim) -> str:
    """What is computed for each entry, in one line."""
    terms = [one.terms for one in claim.contrasts]
    metrics = dict.fromkeys(metric(term.metric).title.lower() for own in terms for term in own)
    kind = _kind(claim.contrasts[0])
    counts = [len(claim.asked), max(len(choices) for choices in claim.asked)]
    entries = "" if counts == [1, 1] else f"; {_entries(*counts)}"
    return f"{kind} of {' and '.join(metrics)}{entries}"


def _kind(contrast: Contrast) -> str:
    if any(term.take == "spread" for term in contrast.terms):
        return "difference of spreads over models"
    tasks = {term.task for term in contrast.terms}
    if len(contrast.terms) == 1:
        return "mean"
    paired = "paired " if len(tasks) == 1 else ""
    return f"{paired}difference{' of differences' if len(contrast.terms) > 2 else ''}"


def _entries(entries: int, choices: int) -> str:
    if choices == 1:
        return f"each of {entries} numbers"
    return f"for each of {entries} pairs, one of {choices} numbers" if entries > 1 else f"one of {choices} numbers"


def sum_told(contrast: Contrast, scale: Scale) -> str:
    """The sum that is computed, with its signs, and the models that play its parts."""
    return " ".join(_term(term, contrast.oriented, scale, not place) for place, term in enumerate(contrast.terms))


def _term(term: Term, oriented: bool, scale: Scale, first: bool) -> str:
    times = term.times * (-1 if oriented and metric(term.metric).better == "low" else 1)
    sign = ("" if first else "+ ") if times > 0 else "- "
    models = (scale.model(part, term.task) for part in term.models)
    spread = "spread of " if term.take == "spread" else ""
    return f"{sign}{spread}{term.metric}({', '.join(term.methods)}; {', '.join(models)})"


def settled_told(outcome: Outcome) -> str:
    """What would settle a claim that cannot be told."""
    return NO_N if outcome.settled_by is None else f"about {outcome.settled_by:,} examples would tell"


def sentence(found: Reproduction) -> str:
    """How many claims have each verdict."""
    counts = ", ".join(f"{count} {verdict}" for verdict, count in found.counts.items() if count)
    claims = "claim" if len(found.outcomes) == 1 else "claims"
    return f"Of {len(found.outcomes)} {claims}: {counts}."


def interval_told(number: Number) -> str:
    return f"{number_told(number.low)} to {number_told(number.high)}"


def decides(claim: Claim, outcome: Outcome) -> str:
    """The number that the verdict hangs on, or why there is none."""
    if outcome.verdict == "not run":
        return outcome.why
    number = decisive(claim, outcome)
    named = f"{number.name}: " if number.name else ""
    told = f"{named}{number_told(number.value)} ({interval_told(number)}), n {number.n:,}"
    return f"{told}; {settled_told(outcome)}" if outcome.verdict == "cannot be told" else told


def decisive(claim: Claim, outcome: Outcome) -> Number:
    """Of the best number of each entry, the one that is least inside the bounds, by the end that made the verdict."""

    def inside(number: Number) -> float:
        found = margin(number.value, (number.low, number.high), claim.bounds, number.n)
        ends = {"holds": found.low, "does not hold": found.high}
        return ends.get(outcome.verdict, found.value)

    return min((max(entry, key=inside) for entry in outcome.entries), key=inside)
