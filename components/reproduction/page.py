"""The Reproduction page: declared claims, the run that tries them, and what became of them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from html import escape

import streamlit as st

from components.job_area import JobArea
from components.keeping import file_button
from components.kept import KEPT
from components.reproduction import session
from components.reproduction.claim_view import claim_card
from components.reproduction.known import Known, known
from components.reproduction.overview import by_section, claim_anchor, counts_of, overview_html, sections_html
from components.reproduction.state import FEWEST_EXAMPLES, MOST_EXAMPLES, ReproductionState
from components.reproduction.words import (
    ABOUT,
    ABSENT,
    CHANGED,
    DECLARED,
    FULL,
    HERE,
    LOOKS,
    NOTHING,
    SECTIONS,
    SOME_MISSING,
)
from components.request_link import MOST_SEED
from components.results.wins import sheet
from components.trouble import say_error, say_note, sentence
from engine.errors import ExegesisError
from engine.reproduction.asked import Asked
from engine.reproduction.claims import Claim, declared
from engine.reproduction.outcome import Outcome, Reproduction
from engine.reproduction.scales import scale_of
from engine.reproduction.verdicts import VERDICTS
from engine.reproduction.words import FLAT, LEVEL, TOP, right_told, same_data_told

JOBS = JobArea("reproduction")


def reproduction_page() -> None:
    """All of it."""
    loaded, said = session.load()
    for told in said:
        say_error(told)
    st.markdown(ABOUT)
    _controls()
    state = session.from_widgets(loaded)
    try:
        seen = known(state.asked)
    except ExegesisError as error:
        session.save(state, loaded)
        say_error(sentence(error))
        return
    _work(state.asked, seen)
    if seen.shown is not None:
        _summary(seen.shown, seen.made)
    _overview(state, seen.shown)
    with st.expander("How numbers become a verdict", key="reproduction.level"):
        st.markdown(f"{LEVEL} {FLAT}")
    _claims(state, seen.shown)
    _declared(state.asked)
    session.save(session.from_widgets(loaded), loaded)


def _controls() -> None:
    with st.container(horizontal=True, gap="small", vertical_alignment="bottom"):
        st.number_input(
            "Examples of each data set", FEWEST_EXAMPLES, MOST_EXAMPLES, key=session.key("examples"), width=210,
            help="As declared; with another number it is a trial, not the declared test.", persist_state=KEPT,
        )  # fmt: skip
        st.number_input(
            "Seed", 0, MOST_SEED, key=session.key("seed"), width=140, help="Draws the examples.", persist_state=KEPT
        )


def _work(asked: Asked, seen: Known) -> None:
    JOBS.trouble()
    if seen.shipped is not None and seen.found is None:
        st.html(made_html(seen.made))
        if seen.changed:
            say_note(CHANGED.format(", ".join(seen.changed)))
    if seen.running is not None:
        JOBS.progress(seen.running.id)
    elif seen.shipped is None and seen.found is None:
        with st.container(border=True, key="reproduction_to_do"):
            st.markdown(NOTHING)
            _start(asked, seen)
    elif seen.found is None:
        with st.expander(HERE, key="reproduction.here"):
            _start(asked, seen)


def _start(asked: Asked, seen: Known) -> None:
    st.caption(seen.time)
    if seen.absent:
        say_note(f"{ABSENT} {', '.join(seen.absent)}.")
    JOBS.start("Run", "reproduce", asked.as_plain(), seen.last)


def made_html(made: str) -> str:
    """How a report that comes with the project was made."""
    return f'<div class="xg"><p class="xg-small">This report comes with the project. {escape(made)}</p></div>'


def _summary(found: Reproduction, made: str) -> None:
    with st.container(horizontal=True, gap="small", vertical_alignment="center", key="reproduction_counts"):
        for verdict, number in found.counts.items():
            colour, icon = LOOKS[verdict]
            st.badge(f"{number} {verdict}", color=colour, icon=icon)
    if found.counts["not run"]:
        say_note(SOME_MISSING)
    if right := right_told(found):
        say_note(f"{right} {same_data_told(scale_of(found.scale))}".strip())
    st.pills(
        "Show", VERDICTS, selection_mode="multi", key=session.key("show"), persist_state=KEPT,
        help="Claims with these verdicts; none chosen shows all.",
    )  # fmt: skip
    with st.container(horizontal=True, gap="small"):
        _files(found, made)


def _overview(state: ReproductionState, found: Reproduction | None) -> None:
    """How each section fared, and a row a claim."""
    outcomes = _outcomes(found)
    st.html(sections_html(counts_of(declared().claims, outcomes)))
    st.caption(TOP)
    shown = _shown(state, outcomes)
    if shown:
        st.html(f"<style>{sheet()}</style>{overview_html(shown, outcomes, scale_of(state.asked.scale))}")


def _outcomes(found: Reproduction | None) -> dict[str, Outcome]:
    return {one.id: one for one in found.outcomes} if found else {}


def _shown(state: ReproductionState, outcomes: Mapping[str, Outcome]) -> list[Claim]:
    """The claims with the verdicts that are asked for; all before a run."""
    wanted = state.show if outcomes else ()
    return [one for one in declared().claims if not wanted or outcomes[one.id].verdict in wanted]


def _files(found: Reproduction, made: str) -> None:
    from engine.reproduction.writing import markdown

    file_button(
        "Report", "thesis-embedded.md", "text/markdown", lambda: markdown(found, declared(), made),
        "All claims and numbers as Markdown, as the command writes it.", "reproduction.report",
    )  # fmt: skip
    file_button(
        "JSON", "thesis-embedded.json", "application/json", lambda: json.dumps(found.as_plain(), indent=1),
        "The same as plain values.", "reproduction.json",
    )  # fmt: skip


def _claims(state: ReproductionState, found: Reproduction | None) -> None:
    outcomes = _outcomes(found)
    shown = _shown(state, outcomes)
    if not shown:
        st.info("No claim has this verdict. Choose another above.")
    for section, claims in by_section(shown).items():
        _section(section, claims, outcomes, found)


def _section(
    section: str, claims: Sequence[Claim], outcomes: Mapping[str, Outcome], found: Reproduction | None
) -> None:
    st.subheader(f"{section} {SECTIONS[section]}", anchor=f"section-{section}")
    for claim in claims:
        claim_card(claim, claim_anchor(claim), outcomes.get(claim.id), found)


def _declared(asked: Asked) -> None:
    with st.expander("What was declared, and how to repeat it", key="reproduction.declared"):
        st.caption(f"{DECLARED} {asked.declared.revised}")
        st.code(asked.declared.digest, language=None)
        st.caption("This command makes the same report:")
        st.code(asked.command(), language="bash", wrap_lines=True)
        st.caption(FULL)
        st.code("exegesis reproduce thesis --scale full", language="bash", wrap_lines=True)
