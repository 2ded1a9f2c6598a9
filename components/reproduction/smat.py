"""The claims of the SMaT paper: the run that tries them, what became of them, and the way to the students."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

import streamlit as st

from components.job_panel import JobPanel
from components.keeping import file_button
from components.kept import KEPT
from components.reproduction import session
from components.reproduction.claim_view import counts_row, made_html
from components.reproduction.overview import (
    by_section,
    claim_anchor,
    counts_of,
    overview_html,
    sections_html,
    verdict_of,
)
from components.reproduction.smat_claim import smat_card
from components.reproduction.smat_known import KnownSmat, known_smat
from components.reproduction.state import SCALE, ReproductionState
from components.reproduction.words import (
    DECLARED,
    SMAT_ABOUT,
    SMAT_FULL,
    SMAT_HERE,
    SMAT_NO_TEACHER,
    SMAT_NOTHING,
    SMAT_RUN,
    SMAT_SECTIONS,
)
from components.tables import table_styles
from components.trouble import say_error, say_note, sentence
from engine.errors import ExegesisError
from engine.jobs.reproducing_smat import KIND
from engine.reproduction.outcome import Outcome
from engine.reproduction.scales import scale_of
from engine.reproduction.smat.asked import Asked
from engine.reproduction.smat.claims import Claim
from engine.reproduction.smat.examined import examined
from engine.reproduction.smat.report import SmatReport
from engine.reproduction.smat.words import ABOUT, LEVEL, QUANTITY
from engine.reproduction.verdicts import VERDICTS
from engine.reproduction.words import NO_FINDINGS, right_told

JOBS = JobPanel("reproduction_smat")


def smat_claims(state: ReproductionState) -> None:
    """All of the paper's."""
    st.markdown(SMAT_ABOUT)
    asked = Asked()
    try:
        seen, claims = known_smat(asked), asked.chosen
    except ExegesisError as error:
        say_error(sentence(error))
        return
    _work(asked, seen)
    found = seen.shown
    outcomes = {one.id: one for one in found.outcomes} if found else {}
    if found is not None:
        _summary(asked, found, seen.made)
    st.html(sections_html(counts_of(claims, outcomes)))
    st.caption(ABOUT)
    _claims(state, asked, claims, outcomes, found)
    with st.expander("How numbers become a verdict", key="reproduction_smat.level"):
        st.markdown(f"{LEVEL} {NO_FINDINGS}")
    _declared(asked)


def _work(asked: Asked, seen: KnownSmat) -> None:
    JOBS.trouble()
    if seen.shipped is not None and seen.found is None:
        st.html(made_html(seen.made))
    if seen.running is not None:
        JOBS.progress(seen.running.id)
    elif seen.shown is None:
        with st.container(border=True, key="reproduction_smat_to_do"):
            st.markdown(SMAT_NOTHING)
            _start(asked, seen)
    else:
        with st.expander(SMAT_HERE, key="reproduction_smat.here"):
            _start(asked, seen)


def _start(asked: Asked, seen: KnownSmat) -> None:
    if absent := [why for why in asked.tasks.values() if isinstance(why, str)]:
        say_note(f"{SMAT_NO_TEACHER} {' '.join(absent)}")
    JOBS.start(SMAT_RUN, KIND, asked.as_plain(), seen.last)


def _summary(asked: Asked, found: SmatReport, made: str) -> None:
    counts_row(found.counts)
    say_note(" ".join(filter(None, (QUANTITY, right_told(found)))))
    st.pills(
        "Show", VERDICTS, selection_mode="multi", key=session.key("show"), persist_state=KEPT,
        help="Claims with these verdicts; none chosen shows all.",
    )  # fmt: skip
    with st.container(horizontal=True, gap="small"):
        _files(asked, found, made)


def _files(asked: Asked, found: SmatReport, made: str) -> None:
    from engine.reproduction.smat.writing import claims_csv, markdown, numbers_csv

    def report() -> str:
        return markdown(found, asked.declared, asked.chosen, examined(found.digest), made)

    for label, ending, mime, content, said in (
        ("Report", ".md", "text/markdown", report, "All claims and numbers as Markdown, as the command writes it."),
        ("JSON", ".json", "application/json", lambda: json.dumps(found.as_plain(), indent=1), "As plain values."),
        ("Claims CSV", ".csv", "text/csv", lambda: claims_csv(found, asked.chosen), "A line a number of the claims."),
        ("Tables CSV", "-tables.csv", "text/csv", lambda: numbers_csv(found), "A line a number of the paper's tables."),
    ):
        file_button(label, f"smat-{SCALE}{ending}", mime, content, said, f"reproduction_smat.{label}")


def _claims(
    state: ReproductionState,
    asked: Asked,
    claims: Sequence[Claim],
    outcomes: Mapping[str, Outcome],
    found: SmatReport | None,
) -> None:
    wanted = state.show if found else ()
    shown = [one for one in claims if not wanted or verdict_of(one, outcomes) in wanted]
    if not shown:
        st.info("No claim has this verdict. Choose another above.")
        return
    st.html(f"<style>{table_styles()}</style>{overview_html(shown, outcomes, scale_of(SCALE))}")
    known = examined(asked.declared.digest)
    for section, own in by_section(shown).items():
        st.subheader(f"{section} {SMAT_SECTIONS[section]}", anchor=f"section-{section}")
        for claim in own:
            smat_card(claim, claim_anchor(claim), outcomes.get(claim.id), asked, known)


def _declared(asked: Asked) -> None:
    with st.expander("What was declared, and how to repeat it", key="reproduction_smat.declared"):
        st.caption(f"{DECLARED.format('')} {asked.declared.revised}")
        st.code(asked.declared.digest, language=None)
        st.caption("This command makes the same report:")
        st.code(asked.command(), language="bash", wrap_lines=True)
        st.caption(SMAT_FULL)
        st.code("exegesis reproduce smat --scale full", language="bash", wrap_lines=True)
