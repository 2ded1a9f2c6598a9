"""Texts for claims, rules, numbers and verdicts, in reports and on the page."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from engine.experiments.options import RANDOM
from engine.format import join_names
from engine.registry import explainer
from engine.reproduction.claims import SPARSEMAX, Claim, Contrast, MethodTerm, Sizes, StudentTerm
from engine.reproduction.experiments import METHODS
from engine.reproduction.papers import (
    AUC,
    MEASURES,
    NORMALIZATIONS,
    SIDES,
    STUDENT_MEASURES,
    TASKS,
    Scale,
    Topic,
    measure,
    setting_name,
    size_name,
)
from engine.reproduction.report import (
    CONSTRUCTION,
    DUPLICATE,
    FINDINGS,
    NON_FINDINGS,
    UNLEARNED,
    ClaimNumber,
    ClaimOutcome,
    Finding,
    Reproduction,
    Verdict,
    margin,
)
from engine.reproduction.thesis import ThesisQuery

MIXED = "mixed"
ATTACKED = {
    MIXED: "Attacks change a map of the logit, and the constrained objective penalizes changes of the probability. At "
    "these scales the penalty hardly counts (docs/attacks.md). The numbers include attacks that changed the class.",
    "logit": "Attacks change a map of the logit, and the constrained objective penalizes changes of it.",
    "probability": "Attacks change a map of the probability, and the constrained objective penalizes changes of it.",
}
"""Sentences about attacks by their quantity; runs from before this setting existed are mixed."""
SHARED_DATA = "One data set stands in for both MultiNLI and e-SNLI, so claims of {} rest on the same examples."
INSIDE: dict[Finding, str] = {"holds": "yes", "does not hold": "no", "undecided": "open"}
"""Words for whether a number is inside its bounds."""
COUNTED: dict[Verdict, str] = {
    "holds": "hold",
    "does not hold": "do not",
    UNLEARNED: "not run (the model has not learned the task)",
}
"""Plural forms of verdicts after a number of claims, if they differ from the verdict."""
ON_BOUND = "lies on the bound itself, where no number of {} would decide"
"""Predicate for a number on its bound."""
TIME = (
    "On one processor core like those of the shipped report, the whole run takes about {}. Results already in the "
    "cache are not computed again."
)
TOO_SMALL = (
    "any gain is below {}, and five students per setting, as in the paper, miss such gains more than two times in three"
)
"""Clause for a number whose gain is too small to count."""
UNKNOWN_TIME = "The time is unknown until such models have been run once."


def rule_text(claim: Claim) -> str:
    """Return the rule of a claim, such as `at least 0.9`."""
    low, high = claim.bounds
    if low is not None and high is not None:
        return f"from {format_number(low)} to {format_number(high)}"
    return f"{claim.rule} {format_number(low if low is not None else high or 0.0)}"


def format_number(value: float) -> str:
    """Format a number with at most three decimals and without trailing zeros."""
    return f"{value:.3f}".rstrip("0").rstrip(".").replace("-", "−") if round(value, 3) else "0"


def number_with_interval(number: ClaimNumber) -> str:
    """Format a number and its interval, all with the same number of decimals."""
    values = (number.value, number.low, number.high)
    decimals = max(len(format_number(value).partition(".")[2]) for value in values)
    value, low, high = (f"{round(value, decimals) + 0.0:.{decimals}f}".replace("-", "−") for value in values)
    return f"{value} ({low} to {high})"


def statistic_text(claim: Claim) -> str:
    """Return the statistic that is computed for each entry, in one line."""
    if not claim.contrasts:
        return "what people say" if claim.people else "difference between train sizes"
    if isinstance(claim.terms[0], StudentTerm):
        statistic = _student_statistic(claim.contrasts[0])
    else:
        metrics = dict.fromkeys(measure(term.metric).title.lower() for term in claim.terms)
        statistic = f"{_method_statistic(claim.contrasts[0])} of {' and '.join(metrics)}"
    count, choices = len(claim.entries), max(map(len, claim.entries))
    return statistic if count == choices == 1 else f"{statistic}; {_entries_text(count, choices, claim.least)}"


def trainings_text(claim: Claim, scale: Scale) -> str:
    """Return a sentence with the number of trainings that a claim rests on; empty for a claim about students."""
    terms = [term for term in claim.terms if isinstance(term, MethodTerm)]
    count = len({scale.model(part, term.task) for term in terms for part in term.models})
    if count < 2:
        return "It rests on one training of one model." if count else ""
    return f"It rests on one training of each of {count} models."


def _method_statistic(contrast: Contrast) -> str:
    if any(term.take == "variance" for term in contrast.terms):
        return "difference of variances between models"
    if len(contrast.terms) == 1:
        return "mean"
    return _difference(contrast, paired=len({term.task for term in contrast.terms}) == 1)


def quantity_name(claim: Claim, name: str, scale: Scale) -> str:
    """Describe the number called `name`, such as `paired difference of overlap with the marks (LIME minus chance)`."""
    contrast = next(one for one in claim.contrasts if one.name == name)
    if isinstance(contrast.terms[0], StudentTerm):
        return _student_statistic(contrast)
    statistic, sides = _method_statistic(contrast), _sides(contrast, scale)
    metrics = list(dict.fromkeys(measure(term.metric).title.lower() for term in contrast.terms))
    if sides and len(metrics) > 1:  # the sides are the metrics
        return f"{statistic} ({sides})"
    return f"{statistic} of {' and '.join(metrics)}{f' ({sides})' if sides else ''}"


def _sides(contrast: Contrast, scale: Scale) -> str:
    """Return the minuend and subtrahend of a difference, such as `LIME minus chance`.

    Empty unless there are two terms, with weights of 1 or -1, that differ in exactly one aspect other than the task.
    """
    if len(contrast.terms) != 2 or any(abs(term.times) != 1 for term in contrast.terms):
        return ""
    flips = contrast.oriented and measure(contrast.terms[0].metric).better == "low"
    terms = sorted(contrast.terms, key=lambda term: term.times, reverse=not flips)
    aspects = zip(*((term.methods, term.models, (term.metric,), (term.task,)) for term in terms), strict=True)
    different = [(one, other) for one, other in aspects if one != other]
    if len(different) != 1 or terms[0].task != terms[1].task:
        return ""
    return " minus ".join(join_names([_side_name(word, scale) for word in words]) for words in different[0])


def _side_name(word: str, scale: Scale) -> str:
    return "chance" if word == RANDOM else _title(word, scale).lower() if word in MEASURES else _title(word, scale)


def _student_statistic(contrast: Contrast) -> str:
    title = STUDENT_MEASURES[contrast.terms[0].metric]
    if len(contrast.terms) == 1:
        return f"mean {title}"
    return f"{_difference(contrast, paired=len({term.task for term in contrast.terms}) == 1)} of {title}"


def _difference(contrast: Contrast, paired: bool) -> str:
    return f"{'paired ' * paired}difference{' of differences' if len(contrast.terms) > 2 else ''}"


def _entries_text(entries: int, choices: int, least: int | None) -> str:
    if least is not None:
        return f"at least {least} of {entries} numbers"
    if choices == 1:
        return f"each of {entries} numbers"
    return f"for each of {entries} pairs, one of {choices} numbers" if entries > 1 else f"one of {choices} numbers"


def sum_text(contrast: Contrast, scale: Scale, sizes: Sizes) -> str:
    """Return a contrast as a formula. `scale`: for the names of models. `sizes`: train sizes of students."""
    texts = []
    for place, term in enumerate(contrast.terms):
        is_student = isinstance(term, StudentTerm)
        times = term.times
        if contrast.oriented and measure(term.metric).better == "low":
            times = -times
        minus = "− " if is_student else "- "
        sign = ("+ " if place else "") if times > 0 else minus
        factor = "" if abs(times) == 1 else f"{format_number(abs(times))} "
        text = _student_term_text(term, sizes) if is_student else _method_term_text(term, scale)
        texts.append(f"{sign}{factor}{text}")
    return " ".join(texts)


def _method_term_text(term: MethodTerm, scale: Scale) -> str:
    models = (scale.model(part, term.task) for part in term.models)
    variance = "variance of " if term.take == "variance" else ""
    return f"{variance}{term.metric}({', '.join(term.methods)}; {', '.join(models)})"


def _student_term_text(term: StudentTerm, sizes: Sizes) -> str:
    where = [TASKS[term.task], *([SIDES[term.side]] if term.side else [])]
    if term.metric != AUC:
        where.append(size_name(sizes[term.task][term.size]))
    if term.normalization != SPARSEMAX:
        where.append(NORMALIZATIONS[term.normalization])
    return f"{STUDENT_MEASURES[term.metric]}({setting_name(term.setting)}; {', '.join(where)})"


def settling_text(outcome: ClaimOutcome) -> str:
    """Return what would decide an undecided claim, such as a number of examples."""
    if not outcome.numbers:
        return outcome.why
    settles = f"about {outcome.settled_by or 0:,} {outcome.unit} would decide"
    if not outcome.on_bound:
        return settles
    lies = ON_BOUND.format(outcome.unit)
    bound = f"its number {lies}" if outcome.on_bound == 1 else f"each of {outcome.on_bound} of its numbers {lies}"
    return bound if outcome.settled_by is None else f"{bound}; of the others {settles}"


def shared_data_text(scale: Scale, topic: Topic) -> str:
    """Return a sentence about claims that share their examples; empty if each task has its own data set."""
    return SHARED_DATA.format(topic.shared_data) if topic.shared_data and len(scale.data) < len(scale.tasks) else ""


def quantity_text(report: Reproduction, topic: Topic) -> str:
    """Return sentences about what the maps explain and what was measured: the logit of a class or its probability."""
    attacks = (one.plan["attack"] for one in report.experiments if one.source == "attack" and one.plan)
    kinds = dict.fromkeys(str(attack.get("quantity", MIXED)) for attack in attacks)
    return " ".join((topic.quantity, *(ATTACKED[kind] for kind in kinds)))


def accuracy_text(report: Reproduction) -> str:
    """Return the range of the models' accuracies on each data set, in percent; empty if none is known."""
    shares: dict[str, list[float]] = {}
    for one in report.models:
        if one.accuracy is not None:
            shares.setdefault(one.data, []).append(one.accuracy)
    parts = (f"on {data} the models are right on {_range(own)} of the examples" for data, own in shares.items())
    text = "; ".join(parts)
    return f"{text[0].upper()}{text[1:]}." if text else ""


def _range(shares: Sequence[float]) -> str:
    low, high = (f"{100 * end:.0f}" for end in (min(shares), max(shares)))
    return f"{low}%" if low == high else f"{low} to {high}%"


def count_text(verdict: Verdict, number: int) -> str:
    """Return the number of claims with a verdict, such as `9 hold`."""
    return f"{number} {verdict if number == 1 and verdict in FINDINGS else COUNTED.get(verdict, verdict)}"


def summary_sentence(report: Reproduction) -> str:
    """Return the number of claims with each verdict: the findings, then the others.

    Claims that share their numbers at this scale count as one.
    """
    counts = report.counts
    claims, duplicates = len(report.outcomes) - counts[DUPLICATE], counts[DUPLICATE]
    named = ["holds"] if counts["does not hold"] else []  # "5 do not" needs "0 hold" before it
    findings, others = (
        ", ".join(
            count_text(one, counts[one]) for one in verdicts if (counts[one] or one in named) and one != DUPLICATE
        )
        for verdicts in (FINDINGS, NON_FINDINGS)
    )
    total = f"Of {claims} {'claim' if claims == 1 else 'claims'}"
    small = sum(one.too_small for one in report.outcomes)
    rest = f" {small_text(small, counts['does not hold'])}" if small else ""
    rest += f" Not counted as findings: {others}." if others else ""
    more = f" {duplicates} more {'is' if duplicates == 1 else 'are'} {DUPLICATE}." if duplicates else ""
    return f"{total}: {findings or 'no findings'}.{rest}{more}"


def small_text(count: int, failed: int) -> str:
    """Return a sentence with the number of claims that fail only because a gain is too small."""
    what = "fails only because its gain is" if count == 1 else "fail only because their gains are"
    return f"{count} of the {failed} that do not hold {what} too small to be found with five students per setting."


def interval_text(number: ClaimNumber) -> str:
    return f"{format_number(number.low)} to {format_number(number.high)}"


def wide_interval_text(number: ClaimNumber) -> str:
    """Format the interval that is widened for all numbers of its claim."""
    return f"{format_number(number.wide_low)} to {format_number(number.wide_high)}"


def number_title(name: str, scale: Scale) -> str:
    """Replace ids in a number's name by titles, such as `LIME, t5-small`; empty for the only number of a claim."""
    return ", ".join(_title(word, scale) for word in name.split(", ")) if name else ""


def _title(word: str, scale: Scale) -> str:
    if word in scale.bases:
        return scale.bases[word].rpartition("/")[2]
    if word in MEASURES:
        return measure(word).title
    return explainer(word).title if word in METHODS else word


def distribution_text(outcome: ClaimOutcome) -> str:
    """Return how many numbers lie inside and outside their bounds, and their range.

    Empty for a single number, which `decision_text` describes.
    """
    if len(outcome.numbers) < 2:
        return ""
    counts = Counter(number.verdict for number in outcome.numbers)
    where = {"within their bounds": counts["holds"], "outside": counts["does not hold"], "open": counts["undecided"]}
    parts = ", ".join(f"{count} {place}" for place, count in where.items() if count)
    values = sorted(number.value for number in outcome.numbers)
    ends = f"from {format_number(values[0])} to {format_number(values[-1])}"
    return f"{len(outcome.numbers)} numbers, {parts}; values {ends}"


def decision_text(claim: Claim, outcome: ClaimOutcome, scale: Scale) -> str:
    """Return the number that decides the verdict, with its interval; or the reason why there is none."""
    if not outcome.numbers:
        return outcome.why
    number = decisive_number(claim, outcome)
    named = f"{number_title(number.name, scale)}: " if number.name else ""
    plain, wide = interval_text(number), wide_interval_text(number)
    widened = "" if plain == wide else f", widened {wide}"
    text = f"{named}{format_number(number.value)} ({plain}{widened}), n {number.n:,}"
    if outcome.verdict == "undecided":
        text = f"{text}; {settling_text(outcome)}"
    if outcome.verdict == "does not hold" and number.too_small:
        text = f"{text}; {TOO_SMALL.format(format_number(number.smallest_gain))}"
    return f"{outcome.why} {text}" if outcome.why else text


def decisive_number(claim: Claim, outcome: ClaimOutcome) -> ClaimNumber:
    """Return the number that decides a claim's verdict.

    Each entry is represented by its best number. These are sorted by how far they lie inside their bounds, measured at
    the end of the interval that determines the verdict; the last one that is needed decides.
    """
    widens = claim.least is not None or any(len(entry) > 1 for entry in outcome.entries)

    def inside(number: ClaimNumber) -> tuple[int, float]:
        wide = number.wide_low, number.wide_high
        plain = wide if widens else (number.low, number.high)
        own = margin(number.value, plain, wide, claim.bounds, number.n)
        ends = {"holds": own.low, CONSTRUCTION: own.low, "does not hold": own.high - number.smallest_gain}
        # Numbers outside their bounds explain a failure first, then gains that are too small.
        fails = outcome.verdict == "does not hold"
        rank = 2 if number.verdict != outcome.verdict else int(number.too_small)
        return rank if fails else 0, ends.get(outcome.verdict, own.value)

    best = sorted((max(entry, key=inside) for entry in outcome.entries), key=inside, reverse=True)
    return best[: claim.least][-1]


def time_text(query: ThesisQuery) -> str:
    """Return how long a run takes, in one or two sentences."""
    seconds = query.seconds()
    if seconds is None:
        return UNKNOWN_TIME
    minutes = max(1, round(seconds / 60))
    span = "a minute" if minutes == 1 else f"{minutes} minutes" if minutes < 100 else f"{minutes / 60:.0f} hours"
    return TIME.format(span)
