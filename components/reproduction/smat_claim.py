"""A claim of SMaT as it is shown: verdict, what was declared, what decides, why it fails, and all numbers on demand."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape

import streamlit as st

from components.frame import SCAFFOLD
from components.reproduction.claim_view import claim_html, decided_html, rows, sum_html, verdict_row
from components.reproduction.session import OPEN, key
from components.tables import draw_table
from engine.reproduction.outcome import Outcome
from engine.reproduction.scales import scale_of
from engine.reproduction.smat.asked import Asked
from engine.reproduction.smat.claims import Claim
from engine.reproduction.smat.examined import Examined, examined_told
from engine.reproduction.smat.naming import TASKS
from engine.reproduction.smat.words import statistic_told, sum_told
from engine.reproduction.words import rule_told
from engine.scaffold.plan import Plan

WIDENED = ("Widened from", "Widened to")


def smat_card(claim: Claim, anchor: str, outcome: Outcome | None, asked: Asked, known: Mapping[str, Examined]) -> None:
    """`anchor`: what links lead to. `outcome`: None before it was run. `known`: why claims fail."""
    with st.container(border=True, key=f"claim-{claim.id}", gap="xsmall"):
        verdict_row(claim, outcome)
        rule = f"; {rule_told(claim)}" if claim.contrasts else ""
        st.html(claim_html(claim, anchor, f"{statistic_told(claim)}{rule}"))
        if outcome is None:
            return
        st.html(decided_html(claim, outcome, scale_of(asked.scale)))
        if told := examined_told(outcome, known):
            st.html(f'<div class="xg"><p class="xg-small">{escape(told)}</p></div>')
        if outcome.numbers:
            _numbers(claim, outcome, asked)


def _numbers(claim: Claim, outcome: Outcome, asked: Asked) -> None:
    opened = st.expander("Numbers", key=key(f"{OPEN}{claim.id}"), on_change="rerun")
    if not opened.open:
        return
    import pandas

    with opened:
        st.html(sum_html(sum_told(claim.contrasts[0], asked.sizes)))
        table = pandas.DataFrame(rows(outcome, scale_of(asked.scale)))
        draw_table(table.drop(columns=list(WIDENED)) if claim.by_seeds else table, f"claim_{claim.id}")
        for task, normalisation in claim.needed:
            if not isinstance(plan := asked.plan((task, normalisation)), str):
                students_link(task, normalisation, plan)


def students_link(task: str, normalisation: str, plan: Plan) -> None:
    """Opens the students that the number is of on the Scaffold page."""
    from components.scaffold.state import of_plan, write

    label = f"Students: {TASKS[task]}, {normalisation}"
    query = write(of_plan(plan, "image" if task == "image" else "text"))
    st.page_link(SCAFFOLD.file, label=label, icon=":material/open_in_new:", query_params=query)
