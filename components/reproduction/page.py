"""The Reproduction page: declared claims, the run that tries them, and what became of them."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from html import escape

import streamlit as st

from components.job_area import JobArea
from components.keeping import file_button
from components.kept import KEPT
from components.reproduction import session
from components.reproduction.claim_view import claim_card
from components.reproduction.known import Known, known
from components.reproduction.state import FEWEST_EXAMPLES, MOST_EXAMPLES, ReproductionState
from components.reproduction.words import ABOUT, ABSENT, DECLARED, FULL, LOOKS, NOTHING, SECTIONS, SOME_MISSING, TIME
from components.request_link import MOST_SEED
from components.trouble import say_error, say_note, sentence
from engine.errors import ExegesisError
from engine.reproduction.asked import Asked
from engine.reproduction.claims import Claim, declared
from engine.reproduction.outcome import Outcome, Reproduction
from engine.reproduction.verdicts import VERDICTS, Verdict
from engine.reproduction.words import FLAT, LEVEL

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
    with st.expander("How numbers become a verdict", key="reproduction.level"):
        st.markdown(f"{LEVEL} {FLAT}")
    if seen.found is not None:
        _summary(seen.found)
    _overview(seen.found)
    _claims(state, seen.found)
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
    if seen.running is not None:
        JOBS.progress(seen.running.id)
    elif seen.found is None:
        with st.container(border=True, key="reproduction_to_do"):
            st.markdown(NOTHING)
            st.caption(TIME)
            if seen.absent:
                say_note(f"{ABSENT} {', '.join(seen.absent)}.")
            JOBS.start("Run", "reproduce", asked.as_plain(), seen.last)


def _summary(found: Reproduction) -> None:
    with st.container(horizontal=True, gap="small", vertical_alignment="center", key="reproduction_counts"):
        for verdict, number in found.counts.items():
            colour, icon = LOOKS[verdict]
            st.badge(f"{number} {verdict}", color=colour, icon=icon)
    if found.counts["not run"]:
        say_note(SOME_MISSING)
    st.pills(
        "Show", VERDICTS, selection_mode="multi", key=session.key("show"), persist_state=KEPT,
        help="Claims with these verdicts; none chosen shows all.",
    )  # fmt: skip
    with st.container(horizontal=True, gap="small"):
        _files(found)


def _overview(found: Reproduction | None) -> None:
    """A line a section that leads to it, with how many of its claims have each verdict."""
    verdicts = {one.id: one.verdict for one in found.outcomes} if found else {}
    by = _by_section(declared().claims).items()
    st.html(overview_html({name: Counter(verdicts.get(one.id, "not run") for one in claims) for name, claims in by}))


def overview_html(counts: Mapping[str, Mapping[Verdict, int]]) -> str:
    """`counts`: by section, how many claims have each verdict."""
    lines = (
        f'<li><a href="#section-{name}">{name} {escape(SECTIONS[name])}</a>: '
        f"{', '.join(f'{own[verdict]} {verdict}' for verdict in VERDICTS if own.get(verdict))}</li>"
        for name, own in counts.items()
    )
    return f'<nav class="xg xg-small" aria-label="Sections"><ul>{"".join(lines)}</ul></nav>'


def _files(found: Reproduction) -> None:
    from engine.reproduction.writing import markdown

    file_button(
        "Report", "thesis-embedded.md", "text/markdown", lambda: markdown(found, declared()),
        "All claims and numbers as Markdown, as the command writes it.", "reproduction.report",
    )  # fmt: skip
    file_button(
        "JSON", "thesis-embedded.json", "application/json", lambda: json.dumps(found.as_plain(), indent=1),
        "The same as plain values.", "reproduction.json",
    )  # fmt: skip


def _claims(state: ReproductionState, found: Reproduction | None) -> None:
    outcomes = {one.id: one for one in found.outcomes} if found else {}
    wanted = state.show if found else ()
    shown = [one for one in declared().claims if not wanted or outcomes[one.id].verdict in wanted]
    if not shown:
        st.info("No claim has this verdict. Choose another above.")
    for section, claims in _by_section(shown).items():
        _section(section, claims, outcomes, found)


def _by_section(claims: Sequence[Claim]) -> dict[str, list[Claim]]:
    """By the first section that each is of."""
    by: dict[str, list[Claim]] = {}
    for claim in claims:
        by.setdefault(claim.section.partition(",")[0], []).append(claim)
    return by


def _section(
    section: str, claims: Sequence[Claim], outcomes: Mapping[str, Outcome], found: Reproduction | None
) -> None:
    st.subheader(f"{section} {SECTIONS[section]}", anchor=f"section-{section}")
    for claim in claims:
        claim_card(claim, outcomes.get(claim.id), found)


def _declared(asked: Asked) -> None:
    with st.expander("What was declared, and how to repeat it", key="reproduction.declared"):
        st.caption(f"{DECLARED} {asked.declared.revised}")
        st.code(asked.declared.digest, language=None)
        st.caption("This command makes the same report:")
        st.code(asked.command(), language="bash", wrap_lines=True)
        st.caption(FULL)
        st.code("exegesis reproduce thesis --scale full", language="bash", wrap_lines=True)
