"""The chosen claims on what the experiments found."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from engine.reproduction.asked import Asked, Experiment
from engine.reproduction.claims import Claim, Contrast
from engine.reproduction.estimates import Cell, NoNumber, Values, estimate
from engine.reproduction.labels import CEILING_WIDTH, best_measure
from engine.reproduction.measures import Source, measure
from engine.reproduction.outcome import Number, Outcome
from engine.reproduction.scales import Scale, scale_of
from engine.reproduction.verdicts import CHANCE, ROUNDING, Margin, chances, judged, margin, most


@dataclass(frozen=True)
class Findings:
    """`values`: of each cell, with the data set's key in the place of the task. `absent`: why a model has none of a
    source."""

    values: Mapping[Cell, Values]
    absent: Mapping[tuple[str, str, Source], str] = field(default_factory=dict)


def findings(pairs: Sequence[tuple[Experiment, Any]]) -> Findings:
    """Of the experiments; in the place of what one found stands why it found nothing."""
    values: dict[Cell, dict[int, float]] = {}
    absent: dict[tuple[str, str, Source], str] = {}
    for experiment, found in pairs:
        why = found if isinstance(found, str) else ""
        absent |= {
            (experiment.data.key, part, experiment.source): f"{player.name}: {player.why or why}"
            for player in experiment.players
            for part in player.parts
            if player.why or why
        }
        if not isinstance(found, str):
            _note(values, experiment, found)
    return Findings(values, absent)


def _note(values: dict[Cell, dict[int, float]], experiment: Experiment, found: Any) -> None:
    parts: dict[str, list[str]] = {}
    for player in experiment.players:
        parts.setdefault(player.place, []).extend(player.parts if player.there else ())
    for row in experiment.way.rows(found):
        for part in parts[row.of.model]:
            cell = (experiment.data.key, part, row.of.method, row.of.metric)
            values.setdefault(cell, {})[row.example] = row.value


def judge(asked: Asked, found: Findings) -> tuple[Outcome, ...]:
    """An outcome for each chosen claim, in their order."""
    scale = scale_of(asked.scale)
    return tuple(_outcome(claim, scale, found, asked.seed) for claim in asked.chosen)


def _outcome(claim: Claim, scale: Scale, found: Findings, seed: int) -> Outcome:
    asked = entries_at(scale, claim)
    if why := _absent(asked, found):
        return Outcome(claim.id, "not run", why=why)
    entries, choices = len(asked), max(map(len, asked))
    rule = _Rule(claim, chances(entries, choices, claim.least or entries), seed)
    try:
        judgements = [[rule.judgement(one, found) for one in choices] for choices in asked]
    except NoNumber as error:
        return Outcome(claim.id, "not run", why=str(error))
    judgement = judged([most([inside for _, inside in own]) for own in judgements], claim.least)
    numbers = tuple(tuple(number for number, _ in own) for own in judgements)
    return Outcome(claim.id, judgement.verdict, numbers, settled_by=judgement.settled_by, on_bound=judgement.on_bound)


@dataclass(frozen=True)
class _Rule:
    """`chances`: those of `verdicts.chances`."""

    claim: Claim
    chances: tuple[float, float]
    seed: int

    def judgement(self, contrast: Contrast, found: Findings) -> tuple[Number, Margin]:
        made = estimate(contrast, found.values, self.seed, (CHANCE, *self.chances))
        plain, inner, outer = made.intervals
        inside = margin(made.value, inner, outer, self.claim.bounds, made.n, self.claim.strict, self.chances)
        number = Number(
            contrast.name, made.value, *plain, *outer, made.n, inside.verdict, _at_best(contrast, found.values)
        )
        return number, inside


def _at_best(contrast: Contrast, values: Mapping[Cell, Values]) -> bool:
    """Whether each method on each model has the best mean that its score can have, or one that is hardly below."""
    cells = [
        (term.task, model, method, best_measure(term.metric))
        for term in contrast.terms
        for model in term.models
        for method in term.methods
    ]
    return all(cell in values and _is_best(values[cell], measure(cell[3]).high) for cell in cells)


def _is_best(values: Values, best: float) -> bool:
    return sum(values.values()) / len(values) >= best - CEILING_WIDTH - ROUNDING


def entries_at(scale: Scale, claim: Claim) -> list[tuple[Contrast, ...]]:
    """The claim's entries with the data sets that stand for its tasks, each once."""
    return list(dict.fromkeys(tuple(_on(scale, one) for one in choices) for choices in claim.asked))


def _on(scale: Scale, contrast: Contrast) -> Contrast:
    """With the data sets that stand for its tasks; two tasks may have the same."""
    keys = {task: data.key for task, data in scale.tasks.items()}
    terms = tuple(dataclasses.replace(term, task=keys[term.task]) for term in contrast.terms)
    name = ", ".join(keys.get(word, word) for word in contrast.name.split(", "))
    return dataclasses.replace(contrast, name=name, terms=terms)


def _absent(asked: Sequence[Sequence[Contrast]], found: Findings) -> str:
    terms = [term for choices in asked for one in choices for term in one.terms]
    needed = dict.fromkeys((term.task, model, measure(term.metric).source) for term in terms for model in term.models)
    return " ".join(dict.fromkeys(found.absent[pair] for pair in needed if pair in found.absent))
