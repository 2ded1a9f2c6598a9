"""A claim as it is shown: its verdict, what was declared, the number that decides, and all numbers on demand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

import streamlit as st

from components.evaluate.look import Look
from components.frame import ADVERSARIAL, EVALUATE, RANDOMIZATION, PageEntry
from components.reproduction.session import OPEN, key
from components.reproduction.words import LOOKS, NOT_FINDINGS
from components.tables import draw_table
from components.text.focus import Query
from engine.reproduction.asked import experiment_names
from engine.reproduction.claims import Claim, Declaration
from engine.reproduction.outcome import ExperimentFound, Outcome, Reproduction
from engine.reproduction.scales import SIZES, Scale, scale_of
from engine.reproduction.verdicts import FINDINGS, LABELS, Verdict
from engine.reproduction.words import (
    INSIDE,
    counted,
    decides,
    name_told,
    rule_told,
    seen_told,
    statistic_told,
    sum_told,
)

BELOW_THE_TOP = "scroll-margin-top:6.5rem"
"""So that a link shows the verdict above the words too, under the bar at the top of the page."""


def claim_card(claim: Claim, anchor: str, outcome: Outcome | None, found: Reproduction | None) -> None:
    """`anchor`: what links lead to. `outcome`: None before it was run."""
    with st.container(border=True, key=f"claim-{claim.id}", gap="xsmall"):
        verdict_row(claim, outcome)
        st.html(declared_html(claim, anchor))
        if outcome is not None and found is not None:
            st.html(decided_html(claim, outcome, scale_of(found.scale)))
        if outcome is not None and found is not None and outcome.numbers:
            _numbers(claim, outcome, found)


def counts_row(counts: Mapping[Verdict, int]) -> None:
    """How many claims are findings, with each verdict, and below them what became of the others."""
    with st.container(gap="xsmall", key="reproduction_counts"):
        with st.container(horizontal=True, gap="small", vertical_alignment="center"):
            _badges(counts, FINDINGS)
        if others := [verdict for verdict in LABELS if counts[verdict]]:
            with st.container(horizontal=True, gap="small", vertical_alignment="center"):
                st.caption(NOT_FINDINGS, width="content")
                _badges(counts, others)


def _badges(counts: Mapping[Verdict, int], verdicts: Sequence[Verdict]) -> None:
    for verdict in verdicts:
        color, icon = LOOKS[verdict]
        st.badge(counted(verdict, counts[verdict]), color=color, icon=icon)


def verdict_row(claim: Declaration, outcome: Outcome | None) -> None:
    """The verdict, and where the claim stands."""
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        verdict = outcome.verdict if outcome else "not run"
        colour, icon = LOOKS[verdict]
        st.badge(verdict, color=colour, icon=icon)
        st.caption(f"Section {claim.section}")


def declared_html(claim: Claim, anchor: str) -> str:
    """The claim, its statistic and its rule."""
    return claim_html(claim, anchor, f"{statistic_told(claim)}; {rule_told(claim)}")


def claim_html(claim: Declaration, anchor: str, declared: str) -> str:
    """The claim and what was declared of it."""
    rule = f"Declared: {declared}. For the command: {claim.id}."
    said = f"<p><b>{escape(claim.title)}</b></p><p>{escape(claim.says)}</p>"
    return f'<div class="xg" id="{anchor}" style="{BELOW_THE_TOP}">{said}<p class="xg-small">{escape(rule)}</p></div>'


def decided_html(claim: Declaration, outcome: Outcome, scale: Scale) -> str:
    """What the verdict hangs on, and what else was seen."""
    lead = "Why" if outcome.why else "What decides"
    seen = f"<br>Seen: {escape(seen_told(outcome))}." if seen_told(outcome) else ""
    return f'<div class="xg"><p class="xg-small">{lead}: {escape(decides(claim, outcome, scale))}{seen}</p></div>'


def made_html(made: str) -> str:
    """How a report that comes with the project was made."""
    return f'<div class="xg"><p class="xg-small">This report comes with the project. {escape(made)}</p></div>'


def sum_html(told: str) -> str:
    """How the first number is computed."""
    return f'<div class="xg"><p class="xg-small">The first is {escape(told)}.</p></div>'


def rows(outcome: Outcome, scale: Scale) -> list[dict[str, object]]:
    """A row a number."""
    return [
        {
            "What": name_told(one.name, scale) or "all",
            "Value": round(one.value, 3),
            "From": round(one.low, 3),
            "To": round(one.high, 3),
            "Widened from": round(one.wide_low, 3),
            "Widened to": round(one.wide_high, 3),
            "n": one.n,
            "Inside": INSIDE[one.verdict],
        }
        for one in outcome.numbers
    ]


def _numbers(claim: Claim, outcome: Outcome, found: Reproduction) -> None:
    opened = st.expander("Numbers", key=key(f"{OPEN}{claim.id}"), on_change="rerun")
    if not opened.open:
        return
    import pandas

    with opened:
        st.html(sum_html(sum_told(claim.contrasts[0], scale_of(found.scale))))
        draw_table(pandas.DataFrame(rows(outcome, scale_of(found.scale))), f"claim_{claim.id}")
        by_name = {one.name: one for one in found.experiments}
        for name in experiment_names(claim, scale_of(found.scale)):
            if by_name[name].plan:
                experiment_link(by_name[name], claim.contrasts[0].terms[0].metric)


def experiment_link(experiment: ExperimentFound, metric: str) -> None:
    """Opens the experiment on its page, at the comparison that the claim is about."""
    ways = {"evaluation": _evaluation, "randomization": _randomization, "attack": _attack}
    entry, query = ways[experiment.source](experiment, metric)
    label = f"{experiment.source.capitalize()}: {experiment.name}"
    st.page_link(entry.file, label=label, icon=":material/open_in_new:", query_params=query)


def _evaluation(experiment: ExperimentFound, metric: str) -> tuple[PageEntry, Query]:
    from components.evaluate.state import of_plan, write
    from engine.jobs.evaluating import plan_of

    view = "scaling" if experiment.name.endswith(SIZES) else "architecture"
    return EVALUATE, write(of_plan(plan_of(experiment.plan), Look(view=view, metric=metric)))


def _randomization(experiment: ExperimentFound, metric: str) -> tuple[PageEntry, Query]:
    from components.randomization.state import of_plan, write
    from engine.randomization.plan import RANDOMIZE

    return RANDOMIZATION, write(of_plan(RANDOMIZE.plan_of(experiment.plan)))


def _attack(experiment: ExperimentFound, metric: str) -> tuple[PageEntry, Query]:
    from components.adversarial.state import of_plan, write
    from engine.jobs.attacking import plan_of

    query = write(of_plan(plan_of(experiment.plan), metric.partition("_")[2]))
    return ADVERSARIAL, {name: values for name, values in query.items() if name != "digest"}
