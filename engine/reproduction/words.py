"""The words in which claims, rules and numbers are told, on paper and on the page."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from engine.registry import explainer
from engine.reproduction.claims import TOPICS, Claim, Contrast, Declaration, Term
from engine.reproduction.measures import MEASURES, measure
from engine.reproduction.outcome import Number, Outcome, Reproduction
from engine.reproduction.scales import Scale
from engine.reproduction.sources import METHODS
from engine.reproduction.verdicts import CONSTRUCTION, FINDINGS, LABELS, TWIN, UNLEARNED, Finding, Verdict, margin

LEVEL = (
    "Intervals are 95 % intervals over examples, paired wherever the examples are the same. A claim holds when the "
    "intervals of all its numbers lie inside their bounds (Berger, 1982). It does not hold when one lies outside even "
    "after it was widened for as many numbers as the claim has (Bonferroni); where some of several numbers are enough, "
    "those must be inside so widened. So each of the two verdicts is given to at most 5 % of the claims of which it is "
    "wrong, however many numbers they have. Everything else is undecided: the number of examples that would then "
    "tell does so with power 0.8 for each number that is open, if that lies where it now seems to."
)
NO_FINDINGS = (
    "Only these three verdicts are findings. A claim is not run where one of its models has not learned the task: "
    "where it is right on the examples used no more often than by chance (one-sided exact binomial test against "
    "1/classes; a correlation against 0; level 0.05). It is true by construction where its numbers would hold with "
    "random weights too. It is at a ceiling where every overlap, AUC or agreement that it compares is within 0.01 of "
    "1 (of ranks: where the words that count are the top ones as often), so that nothing could differ. It is counted "
    "with another claim where both rest on the same numbers, because one data set stands for both of theirs."
)
"""Follows `LEVEL`."""
FLAT = (
    "A map whose scores are all equal orders nothing and has no value by its order: claims about a method that gives "
    "nothing else on a model are not run."
)
SANITY = (
    "Rho is Spearman's rank correlation of a map with that of the trained model; the cascade makes blocks random from "
    "the last to the first; the unconstrained objective of an attack keeps the class alone, the constrained one its "
    "probability too."
)
TOP = (
    "The top three are integrated gradients, LIME and Kernel SHAP, as in the thesis; both gradients are the L2 norm of "
    "the gradient and gradient x input; chance is a random order; the added word is the one that decides."
)
ABOUT = dict(zip(TOPICS, (TOP, SANITY), strict=True))
"""What words of the claims mean, by topic."""
QUANTITY = (
    "Gradients and integrated gradients explain the logit of the predicted class, LIME and Kernel SHAP its "
    "probability, attention neither; comprehensiveness and sufficiency are falls of the probability."
)
MAPS = (
    "Gradients and integrated gradients explain the logit of the predicted class, attention neither its logit nor its "
    "probability."
)
MIXED = "mixed"
ATTACKED = {
    MIXED: "Attacks move a map of the logit, and the constrained objective keeps the probability: a mixture, of whose "
    "scales the penalty hardly counts (docs/attacks.md). Attacks that changed the class are among the numbers.",
    "logit": "Attacks move a map of the logit, and the constrained objective keeps the logit.",
    "probability": "Attacks move a map of the probability, and the constrained objective keeps the probability.",
}
"""By the quantity of the attack; runs from before there was one were mixed."""
SAME_DATA = "MultiNLI and e-SNLI are stood for by one data set, so that claims of {} rest on the same examples."
SAME_OF = dict(zip(TOPICS, ("4.1.2 and 4.1.3, and of 4.2.2 and 4.2.3,", "both"), strict=True))
INSIDE: dict[Finding, str] = {"holds": "yes", "does not hold": "no", "undecided": "open"}
"""Whether one number is inside its bounds."""
COUNTED: dict[Verdict, str] = {
    "holds": "hold",
    "does not hold": "do not",
    UNLEARNED: "not run (the model has not learned the task)",
}
"""Verdicts as they stand behind a number of claims, where that differs."""
NO_N = "lies on the bound itself, where no number of {} would tell"
"""Of one number."""


def rule_told(claim: Declaration) -> str:
    """How the claim is judged, such as `at least 0.9`."""
    low, high = claim.bounds
    if low is not None and high is not None:
        return f"from {number_told(low)} to {number_told(high)}"
    return f"{claim.rule} {number_told(low if low is not None else high or 0.0)}"


def number_told(value: float) -> str:
    """With three digits after the point where it has them."""
    return f"{value:.3f}".rstrip("0").rstrip(".").replace("-", "−") if round(value, 3) else "0"


def statistic_told(claim: Claim) -> str:
    """What is computed for each entry, in one line."""
    terms = [one.terms for one in claim.contrasts]
    metrics = dict.fromkeys(measure(term.metric).title.lower() for own in terms for term in own)
    kind = _kind(claim.contrasts[0])
    count, choices = len(claim.asked), max(map(len, claim.asked))
    entries = "" if count == choices == 1 else f"; {_entries(count, choices, claim.least)}"
    return f"{kind} of {' and '.join(metrics)}{entries}"


def _kind(contrast: Contrast) -> str:
    if any(term.take == "variance" for term in contrast.terms):
        return "difference of variances between models"
    tasks = {term.task for term in contrast.terms}
    if len(contrast.terms) == 1:
        return "mean"
    paired = "paired " if len(tasks) == 1 else ""
    return f"{paired}difference{' of differences' if len(contrast.terms) > 2 else ''}"


def _entries(entries: int, choices: int, least: int | None) -> str:
    if least is not None:
        return f"at least {least} of {entries} numbers"
    if choices == 1:
        return f"each of {entries} numbers"
    return f"for each of {entries} pairs, one of {choices} numbers" if entries > 1 else f"one of {choices} numbers"


def sum_told(contrast: Contrast, scale: Scale) -> str:
    """The sum that is computed, with its signs, and the models that play its parts."""
    return " ".join(_term(term, contrast.oriented, scale, not place) for place, term in enumerate(contrast.terms))


def _term(term: Term, oriented: bool, scale: Scale, first: bool) -> str:
    times = term.times * (-1 if oriented and measure(term.metric).better == "low" else 1)
    sign = ("" if first else "+ ") if times > 0 else "- "
    models = (scale.model(part, term.task) for part in term.models)
    size = "" if abs(times) == 1 else f"{number_told(abs(times))} "
    taken = "variance of " if term.take == "variance" else ""
    return f"{sign}{size}{taken}{term.metric}({', '.join(term.methods)}; {', '.join(models)})"


def settled_told(outcome: Outcome) -> str:
    """What would settle an undecided claim."""
    if not outcome.numbers:
        return outcome.why
    told = f"about {outcome.settled_by or 0:,} {outcome.unit} would tell"
    if not outcome.on_bound:
        return told
    lies = NO_N.format(outcome.unit)
    bound = f"its number {lies}" if outcome.on_bound == 1 else f"each of {outcome.on_bound} of its numbers {lies}"
    return bound if outcome.settled_by is None else f"{bound}; of the others {told}"


def same_data_told(scale: Scale, topic: str = TOPICS[0]) -> str:
    """Which tasks have the same examples; empty where each has its own."""
    return SAME_DATA.format(SAME_OF[topic]) if len(scale.data) < len(scale.tasks) else ""


def quantities_told(found: Reproduction, topic: str = TOPICS[0]) -> str:
    """Of what the maps are and what was measured: the logit of a class or its probability."""
    if topic == TOPICS[0]:
        return QUANTITY
    attacks = (one.plan["attack"] for one in found.experiments if one.source == "attack" and one.plan)
    kinds = dict.fromkeys(str(attack.get("quantity", MIXED)) for attack in attacks)
    return " ".join((MAPS, *(ATTACKED[kind] for kind in kinds)))


def right_told(found: Reproduction) -> str:
    """How often the models of each data set are right; empty where none is known.

    A range of percentages over models.
    """
    by: dict[str, list[float]] = {}
    for one in found.models:
        if one.accuracy is not None:
            by.setdefault(one.data, []).append(one.accuracy)
    told = (f"on {data} the models are right on {_range(shares)} of the examples" for data, shares in by.items())
    said = "; ".join(told)
    return f"{said[0].upper()}{said[1:]}." if said else ""


def _range(shares: Sequence[float]) -> str:
    low, high = (f"{100 * end:.0f}" for end in (min(shares), max(shares)))
    return f"{low} %" if low == high else f"{low} to {high} %"


def counted(verdict: Verdict, number: int) -> str:
    """So many claims with that verdict, such as `9 hold`."""
    return f"{number} {verdict if number == 1 and verdict in FINDINGS else COUNTED.get(verdict, verdict)}"


def sentence(found: Reproduction) -> str:
    """How many claims are findings, with each verdict, and what became of the others. Claims that share their numbers
    at this scale are one."""
    counts = found.counts
    claims = len(found.outcomes) - counts[TWIN]
    findings, others = (
        ", ".join(counted(one, counts[one]) for one in verdicts if counts[one] and one != TWIN)
        for verdicts in (FINDINGS, LABELS)
    )
    told = f"Of {claims} {'claim' if claims == 1 else 'claims'}"
    rest = f" Not counted as findings: {others}." if others else ""
    more = f" {counts[TWIN]} more {'is' if counts[TWIN] == 1 else 'are'} {TWIN}." if counts[TWIN] else ""
    return f"{told}: {findings or 'no findings'}.{rest}{more}"


def interval_told(number: Number) -> str:
    return f"{number_told(number.low)} to {number_told(number.high)}"


def wide_told(number: Number) -> str:
    """The interval that is widened for all numbers of its claim."""
    return f"{number_told(number.wide_low)} to {number_told(number.wide_high)}"


def name_told(name: str, scale: Scale) -> str:
    """What a number is of, such as `LIME, t5-small`, by the titles of methods and metrics; empty where it is alone."""
    return ", ".join(_word(word, scale) for word in name.split(", ")) if name else ""


def _word(word: str, scale: Scale) -> str:
    if word in scale.bases:
        return scale.bases[word].rpartition("/")[2]
    if word in MEASURES:
        return measure(word).title
    return explainer(word).title if word in METHODS else word


def seen_told(outcome: Outcome) -> str:
    """How many numbers lie where, and between what; empty for a number alone, which `decides` tells."""
    if len(outcome.numbers) < 2:
        return ""
    found = Counter(number.verdict for number in outcome.numbers)
    where = {"inside their bounds": found["holds"], "outside": found["does not hold"], "open": found["undecided"]}
    counts = ", ".join(f"{count} {place}" for place, count in where.items() if count)
    values = sorted(number.value for number in outcome.numbers)
    ends = f"from {number_told(values[0])} to {number_told(values[-1])}"
    return f"of {len(outcome.numbers)} numbers {counts}; they go {ends}"


def decides(claim: Declaration, outcome: Outcome, scale: Scale) -> str:
    """The number that the verdict hangs on, or why there is none."""
    if not outcome.numbers:
        return outcome.why
    if outcome.why:
        return f"{outcome.why} {_number_decides(claim, outcome, scale)}"
    return _number_decides(claim, outcome, scale)


def _number_decides(claim: Declaration, outcome: Outcome, scale: Scale) -> str:
    number = decisive(claim, outcome)
    named = f"{name_told(number.name, scale)}: " if number.name else ""
    wide = "" if interval_told(number) == wide_told(number) else f", widened {wide_told(number)}"
    told = f"{named}{number_told(number.value)} ({interval_told(number)}{wide}), n {number.n:,}"
    return f"{told}; {settled_told(outcome)}" if outcome.verdict == "undecided" else told


def decisive(claim: Declaration, outcome: Outcome) -> Number:
    """Of the best number of each entry, in order of how far they are inside by the end that made the verdict, the last
    one that must be."""
    widens = claim.least is not None or any(len(entry) > 1 for entry in outcome.entries)

    def inside(number: Number) -> float:
        wide = number.wide_low, number.wide_high
        plain = wide if widens else (number.low, number.high)
        found = margin(number.value, plain, wide, claim.bounds, number.n)
        ends = {"holds": found.low, CONSTRUCTION: found.low, "does not hold": found.high}
        return ends.get(outcome.verdict, found.value)

    best = sorted((max(entry, key=inside) for entry in outcome.entries), key=inside, reverse=True)
    return best[: claim.least][-1]
