"""All claims at a glance: a row each with its verdict and the number that decides, and a link to the rest of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from html import escape
from typing import TypeVar

from components.reproduction.words import EVERY_SECTION, SIGNS
from engine.reproduction.claims import Declaration
from engine.reproduction.outcome import Outcome
from engine.reproduction.scales import Scale
from engine.reproduction.verdicts import VERDICTS, Verdict
from engine.reproduction.words import counted, decisive, interval_told, name_told, number_told, rule_told

NOTHING = "–"
D = TypeVar("D", bound=Declaration)
HEADS = ("Claim", "Verdict", "What decides")


def by_section(claims: Sequence[D]) -> dict[str, list[D]]:
    """By the first section that each is of."""
    by: dict[str, list[D]] = {}
    for claim in claims:
        by.setdefault(claim.section.partition(",")[0], []).append(claim)
    return by


def sections_html(counts: Mapping[str, Mapping[Verdict, int]]) -> str:
    """A line a section that leads to it. `counts`: by section, how many claims have each verdict."""
    lines = (
        f'<li><a href="#section-{name}">{name} {escape(EVERY_SECTION[name])}</a>: '
        f"{', '.join(counted(verdict, own[verdict]) for verdict in VERDICTS if own.get(verdict))}</li>"
        for name, own in counts.items()
    )
    return f'<nav class="xg xg-small" aria-label="Sections"><ul>{"".join(lines)}</ul></nav>'


def totals(counts: Mapping[str, Mapping[Verdict, int]]) -> dict[Verdict, int]:
    """Over all sections."""
    return {verdict: sum(own.get(verdict, 0) for own in counts.values()) for verdict in VERDICTS}


def counts_of(claims: Sequence[Declaration], outcomes: Mapping[str, Outcome]) -> dict[str, Counter[Verdict]]:
    """By section. What has no outcome was not run."""
    return {name: Counter(verdict_of(one, outcomes) for one in own) for name, own in by_section(claims).items()}


def overview_html(claims: Sequence[Declaration], outcomes: Mapping[str, Outcome], scale: Scale) -> str:
    """A table with a part for each section."""
    heads = "".join(f'<th scope="col" role="columnheader">{head}</th>' for head in HEADS)
    parts = "".join(_part(name, own, outcomes, scale) for name, own in by_section(claims).items())
    return (
        '<div class="xg"><div class="xg-scroll" role="region" tabindex="0" aria-label="All claims">'
        f'<table class="xg-numbers" role="table"><thead role="rowgroup"><tr role="row">{heads}</tr></thead>{parts}'
        "</table></div></div>"
    )


def _part(section: str, claims: Sequence[Declaration], outcomes: Mapping[str, Outcome], scale: Scale) -> str:
    head = f'<a href="#section-{section}">{section} {escape(EVERY_SECTION[section])}</a>'
    rows = "".join(_row(claim, outcomes, scale) for claim in claims)
    return (
        f'<tbody role="rowgroup"><tr role="row"><th scope="rowgroup" role="rowheader" colspan="{len(HEADS)}">'
        f"<b>{head}</b></th></tr>{rows}</tbody>"
    )


def _row(claim: Declaration, outcomes: Mapping[str, Outcome], scale: Scale) -> str:
    verdict = verdict_of(claim, outcomes)
    title = f'<a href="#{claim_anchor(claim)}">{escape(claim.title)}</a>'
    told = escape(number_shown(claim, outcomes.get(claim.id), scale))
    sign = f'<span aria-hidden="true">{SIGNS[verdict]}</span>'
    return (
        f'<tr role="row"><th scope="row" role="rowheader">{title}</th>'
        f'<td role="cell" style="white-space:nowrap">{sign} {verdict}</td><td role="cell">{told}</td></tr>'
    )


def verdict_of(claim: Declaration, outcomes: Mapping[str, Outcome]) -> Verdict:
    """What has no outcome was not run."""
    return outcomes[claim.id].verdict if claim.id in outcomes else "not run"


def claim_anchor(claim: Declaration) -> str:
    """Where the rest of a claim stands on the page."""
    return f"claim-{claim.id}"


def number_shown(claim: Declaration, outcome: Outcome | None, scale: Scale) -> str:
    """The number that decides beside what is asked of it."""
    if outcome is None or not outcome.numbers:
        return NOTHING
    number = decisive(claim, outcome)
    named = name_told(number.name, scale)
    told = f"{number_told(number.value)} ({interval_told(number)}), asked: {rule_told(claim)}"
    return f"{named}: {told}" if named else told
