"""Which outcomes are no findings: of models that have not learned their task, true by construction, at a ceiling."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from engine.reproduction.claims import Claim, Contrast, Declaration
from engine.reproduction.measures import measure
from engine.reproduction.outcome import ModelFound, Outcome
from engine.reproduction.scales import Scale
from engine.reproduction.verdicts import CEILING, CONSTRUCTION, NOT_RUN, TWIN, UNLEARNED

CEILING_WIDTH = 0.01
"""A mean that is not farther below the best that its score can be is at a ceiling."""
OVERLAP = "gt_overlap"
RANKED_BEST = {"mean_rank_pct": OVERLAP}
"""A rank is the best that it can be where the marked tokens are the top ones: what tells that of each measure."""
AT_CEILING = "Every number that is compared is within 0.01 of the best that its score can be."
TWIN_OF = "At this scale one data set stands for both of theirs, so that it rests on the same numbers as `{}`."


@dataclass(frozen=True)
class Labels:
    """What makes the outcome of a claim no finding.

    `models`: those that claims rest on, by the claim's id. `twins`: claims with the same numbers as an earlier one, and
    which that is.
    """

    models: Mapping[str, Sequence[ModelFound]]
    twins: Mapping[str, str] = field(default_factory=dict)

    def label(self, claim: Declaration, outcome: Outcome) -> Outcome:
        """The outcome, labelled where it is no finding. Numbers of models that have learned nothing are left out."""
        if outcome.verdict == NOT_RUN:
            return outcome
        if claim.id in self.twins:
            return Outcome(claim.id, TWIN, why=TWIN_OF.format(self.twins[claim.id]), unit=outcome.unit)
        if unlearned := [one for one in self.models.get(claim.id, ()) if one.unlearned]:
            return Outcome(claim.id, UNLEARNED, why=" ".join(map(unlearned_told, unlearned)), unit=outcome.unit)
        if outcome.verdict == "holds" and claim.by_construction:
            return replace(outcome, verdict=CONSTRUCTION, why=claim.by_construction)
        if outcome.numbers and all(one.at_best for one in outcome.numbers):
            return replace(outcome, verdict=CEILING, why=AT_CEILING, settled_by=None, on_bound=0)
        return outcome


def unlearned_told(model: ModelFound) -> str:
    """How far a model is from chance, in one sentence."""
    if model.correlation is not None:
        found, chance = f"correlates by {model.correlation:.2f} with the labels of {model.n:,}", "0"
    else:
        found, chance = f"is right on {round((model.accuracy or 0) * model.n):,} of {model.n:,}", f"1/{model.classes}"
    return f"{model.name} {found} examples (chance {chance}, p = {model.p_value or 0:.2g})."


def best_measure(metric: str) -> str:
    """The measure whose mean tells whether a score is the best that it can be; empty where no measure does."""
    known = measure(metric)
    return RANKED_BEST.get(metric, metric if known.better == "high" and not known.fall else "")


def models_of(claims: Sequence[Claim], scale: Scale, found: Sequence[ModelFound]) -> dict[str, list[ModelFound]]:
    """By claim, the models that it rests on."""
    by = {(one.name, one.data): one for one in found}
    return {claim.id: [by[key] for key in dict.fromkeys(_players(claim, scale)) if key in by] for claim in claims}


def _players(claim: Claim, scale: Scale) -> Iterator[tuple[str, str]]:
    for contrast in claim.contrasts:
        for term in contrast.terms:
            for part in term.models:
                yield scale.model(part, term.task), scale.tasks[term.task].dataset


def twins_of(claims: Sequence[Claim], scale: Scale) -> dict[str, str]:
    """Claims about different tasks that one data set stands for, and whose numbers are the same but for the sign."""
    first: dict[object, Claim] = {}
    twins = {}
    for claim in claims:
        earlier = first.setdefault(_numbers(claim, scale), claim)
        if earlier.tasks != claim.tasks:
            twins[claim.id] = earlier.id
    return twins


def _numbers(claim: Claim, scale: Scale) -> object:
    return frozenset(_number(contrast, scale) for contrast in claim.contrasts)


def _number(contrast: Contrast, scale: Scale) -> object:
    """The terms on the data sets that stand for their tasks; the same of a sum and of the sum with all signs turned."""
    terms = [
        (scale.tasks[term.task].key, term.metric, term.methods, term.models, term.take, term.times)
        for term in contrast.terms
    ]
    turned = [(*rest, -times) for *rest, times in terms]
    return contrast.oriented, frozenset([frozenset(terms), frozenset(map(tuple, turned))])
