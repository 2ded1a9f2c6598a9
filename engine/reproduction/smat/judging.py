"""SMaT's claims on what was found."""

from __future__ import annotations

from collections.abc import Sequence

from engine.reproduction.estimates import NoNumber
from engine.reproduction.outcome import Outcome
from engine.reproduction.smat.asked import Asked
from engine.reproduction.smat.claims import Claim
from engine.reproduction.smat.estimates import BySeeds, numbered
from engine.reproduction.smat.findings import Findings
from engine.reproduction.verdicts import Margin, chances, judged, most

SEEDS, EXAMPLES = "seeds", "examples"


def judge(asked: Asked, found: Findings) -> tuple[Outcome, ...]:
    """An outcome for each chosen claim, in their order."""
    return tuple(outcome_of(claim, found, asked.seed) for claim in asked.chosen)


def outcome_of(claim: Claim, found: Findings, seed: int) -> Outcome:
    """What becomes of a claim."""
    unit = SEEDS if claim.by_seeds else EXAMPLES
    if claim.people:
        return Outcome(claim.id, "not run", why=claim.people)
    if claim.why:
        return Outcome(claim.id, "not run", why=claim.why, unit=unit)
    choices = max(map(len, claim.asked))
    wrong = chances(len(claim.asked), choices, claim.least or len(claim.asked))
    try:
        entries = [[numbered(claim, one, found, seed, wrong) for one in entry] for entry in claim.asked]
    except NoNumber as error:
        return Outcome(claim.id, "not run", why=str(error), unit=unit)
    judgement = judged([best([inside for _, inside in entry]) for entry in entries], claim.least)
    numbers = tuple(tuple(number for number, _ in entry) for entry in entries)
    return Outcome(
        claim.id, judgement.verdict, numbers, settled_by=judgement.settled_by, on_bound=judgement.on_bound, unit=unit
    )


def best(choices: Sequence[Margin]) -> Margin:
    """Where one of several is enough; the fewest seeds that one of them needs."""
    if len(choices) == 1:
        return choices[0]
    joined = most(choices)
    counts = [one.seeds for one in choices if isinstance(one, BySeeds) and one.seeds is not None]
    if not isinstance(choices[0], BySeeds):
        return joined
    return BySeeds(joined.value, joined.low, joined.high, joined.n, joined.strict, seeds=min(counts, default=None))
