"""The Reproduction page: declared claims, the run that tries them, and what became of them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

import streamlit as st

from components.job_panel import JobPanel
from components.keeping import file_button
from components.kept import KEPT
from components.reproduction import session
from components.reproduction.claim_view import claim_card, counts_row, made_html
from components.reproduction.known import Known, known
from components.reproduction.overview import (
    by_section,
    claim_anchor,
    counts_of,
    overview_html,
    sections_html,
    totals,
    verdict_of,
)
from components.reproduction.smat import smat_claims
from components.reproduction.state import FEWEST_EXAMPLES, MOST_EXAMPLES, PAPERS, SCALE, SMAT, ReproductionState
from components.reproduction.words import (
    ABOUT,
    ABSENT,
    CHANGED,
    DECLARED,
    FILE_OF,
    FULL,
    HERE,
    NOTHING,
    OF_TOPIC,
    PAPER_TITLES,
    RUN,
    SECTIONS,
    SOME_MISSING,
)
from components.request_link import MOST_SEED
from components.tables import table_styles
from components.trouble import say_error, say_note, sentence
from engine.errors import ExegesisError
from engine.reproduction.asked import Asked
from engine.reproduction.claims import FILES, TOPICS, Claim, declared, every_claim
from engine.reproduction.outcome import Outcome, Reproduction
from engine.reproduction.scales import scale_of
from engine.reproduction.verdicts import NOT_RUN, VERDICTS
from engine.reproduction.words import FLAT, LEVEL, NO_FINDINGS, SANITY, TOP, quantities_told, right_told, same_data_told

JOBS = {topic: JobPanel("reproduction" if topic == TOPICS[0] else f"reproduction_{topic}") for topic in TOPICS}
Reports = Mapping[str, Reproduction]
"""By topic, of those that were run."""


def reproduction_page() -> None:
    """All of it."""
    loaded, said = session.load()
    for told in said:
        say_error(told)
    _paper()
    state = session.from_widgets(loaded)
    if state.paper == SMAT:
        smat_claims(state)
    else:
        _thesis(loaded)
    session.save(session.from_widgets(loaded), loaded)


def _paper() -> None:
    st.segmented_control(
        "Whose claims", PAPERS, key=session.key("paper"), required=True, format_func=PAPER_TITLES.__getitem__,
        label_visibility="collapsed", persist_state=KEPT,
    )  # fmt: skip


def _thesis(loaded: ReproductionState) -> None:
    st.markdown(ABOUT)
    _controls()
    state = session.from_widgets(loaded)
    try:
        seen = {asked.topic: known(asked) for asked in state.asked}
    except ExegesisError as error:
        say_error(sentence(error))
        return
    for asked in state.asked:
        _work(asked, seen[asked.topic])
    reports = {topic: one.shown for topic, one in seen.items() if one.shown is not None}
    if reports:
        _summary(reports, {topic: one.made for topic, one in seen.items()})
    _overview(state, reports)
    with st.expander("How numbers become a verdict", key="reproduction.level"):
        st.markdown(f"{LEVEL} {NO_FINDINGS} {FLAT}")
    _claims(state, reports)
    _declared(state.asked)


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
    area, topic = JOBS[asked.topic], asked.topic
    area.trouble()
    if seen.shipped is not None and seen.found is None:
        st.html(made_html(seen.made))
        if seen.changed:
            say_note(CHANGED.format(", ".join(seen.changed)))
    if seen.running is not None:
        area.progress(seen.running.id)
    elif seen.shipped is None and seen.found is None:
        with st.container(border=True, key=f"{area.page}_to_do"):
            st.markdown(f"{OF_TOPIC[topic]} {NOTHING.format(RUN[topic])}".strip())
            _start(asked, seen)
    elif seen.found is None:
        with st.expander(HERE[topic], key=f"{area.page}.here"):
            _start(asked, seen)


def _start(asked: Asked, seen: Known) -> None:
    st.caption(seen.time)
    if seen.absent:
        say_note(f"{ABSENT} {', '.join(seen.absent)}.")
    JOBS[asked.topic].start(RUN[asked.topic], "reproduce", asked.as_plain(), seen.last)


def _summary(reports: Reports, made: Mapping[str, str]) -> None:
    counts_row(totals(counts_of(every_claim(), _outcomes(reports))))
    if any(found.counts[NOT_RUN] for found in reports.values()):
        say_note(SOME_MISSING)
    for topic, found in reports.items():
        told = quantities_told(found, topic), right_told(found), same_data_told(scale_of(found.scale), topic)
        say_note(" ".join(filter(None, told)))
    st.pills(
        "Show", VERDICTS, selection_mode="multi", key=session.key("show"), persist_state=KEPT,
        help="Claims with these verdicts; none chosen shows all.",
    )  # fmt: skip
    with st.container(horizontal=True, gap="small"):
        for topic, found in reports.items():
            _files(topic, found, made[topic])


def _overview(state: ReproductionState, reports: Reports) -> None:
    """How each section fared, and a row a claim."""
    outcomes = _outcomes(reports)
    st.html(sections_html(counts_of(every_claim(), outcomes)))
    st.caption(f"{TOP} {SANITY}")
    shown = _shown(state, outcomes)
    if shown:
        st.html(f"<style>{table_styles()}</style>{overview_html(shown, outcomes, scale_of(SCALE))}")


def _outcomes(reports: Reports) -> dict[str, Outcome]:
    return {one.id: one for found in reports.values() for one in found.outcomes}


def _shown(state: ReproductionState, outcomes: Mapping[str, Outcome]) -> list[Claim]:
    """The claims with the verdicts that are asked for; all before a run."""
    wanted = state.show if outcomes else ()
    return [one for one in every_claim() if not wanted or verdict_of(one, outcomes) in wanted]


def _files(topic: str, found: Reproduction, made: str) -> None:
    from engine.reproduction.writing import markdown

    name = "thesis" if topic == TOPICS[0] else f"thesis-{topic}"
    file_button(
        f"Report{FILE_OF[topic]}", f"{name}-embedded.md", "text/markdown",
        lambda: markdown(found, declared(FILES[topic]), made),
        "All claims and numbers as Markdown, as the command writes it.", f"{JOBS[topic].page}.report",
    )  # fmt: skip
    file_button(
        f"JSON{FILE_OF[topic]}", f"{name}-embedded.json", "application/json",
        lambda: json.dumps(found.as_plain(), indent=1), "The same as plain values.", f"{JOBS[topic].page}.json",
    )  # fmt: skip


def _claims(state: ReproductionState, reports: Reports) -> None:
    outcomes = _outcomes(reports)
    shown = _shown(state, outcomes)
    if not shown:
        st.info("No claim has this verdict. Choose another above.")
    by_claim = {one.id: found for found in reports.values() for one in found.outcomes}
    for section, claims in by_section(shown).items():
        st.subheader(f"{section} {SECTIONS[section]}", anchor=f"section-{section}")
        for claim in claims:
            claim_card(claim, claim_anchor(claim), outcomes.get(claim.id), by_claim.get(claim.id))


def _declared(every: Sequence[Asked]) -> None:
    with st.expander("What was declared, and how to repeat it", key="reproduction.declared"):
        for asked in every:
            st.caption(f"{DECLARED.format(FILE_OF[asked.topic])} {asked.declared.revised}")
            st.code(asked.declared.digest, language=None)
            st.caption("This command makes the same report:")
            st.code(asked.command(), language="bash", wrap_lines=True)
        st.caption(FULL)
        st.code("exegesis reproduce thesis --scale full", language="bash", wrap_lines=True)
