"""The Reproduction page: declared claims, the run that tries them, and what became of them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

import streamlit as st

from components.controls import PERSIST
from components.errors import describe_error, show_error, show_note
from components.export import file_button
from components.job_panel import JobPanel
from components.links import MOST_SEED
from components.reproduction import state as page_state
from components.reproduction.claim_view import (
    SECTIONS,
    Outcomes,
    by_section,
    claim_card,
    count_verdicts,
    counts_row,
    note_html,
    overview_html,
    sections_html,
    totals,
    verdict_of,
)
from components.reproduction.state import (
    FEWEST_EXAMPLES,
    MOST_EXAMPLES,
    SCALE,
    SMAT,
    THESIS,
    ReproductionState,
    TopicStatus,
    topic_status,
)
from components.tables import table_styles
from engine.errors import ExegesisError
from engine.reproduction.claims import Claim
from engine.reproduction.documents import failure_reasons, report_files
from engine.reproduction.papers import NON_FINDING_RULES, PAPERS, TOPICS, scale_of
from engine.reproduction.query import ReproductionQuery
from engine.reproduction.report import NOT_RUN, VERDICTS, Reproduction
from engine.reproduction.wording import accuracy_text, quantity_text, shared_data_text

PAPER_TITLES = {"thesis": "Thesis on faithfulness", "smat": "SMaT: explanations that teach"}
ABOUT = {
    "thesis": "What a thesis found (*Assessing the Interpretability of Large Language Models*, chapter 4), claim by "
    "claim in our own words, each with its statistic and its bounds as they were declared before a run was complete. A "
    "run tries them on the small models that come with the project.",
    "smat": "What the SMaT paper found (*Learning to Scaffold: Optimizing Model Explanations for Teaching*, Fernandes "
    "et al., 2022, sections 5 and 6), claim by claim in our own words, each with its statistic and its bounds as they "
    "were declared before a run. A run teaches students of the small models that come with the project, with each "
    "explainer and several seeds, and compares them.",
}
FULL_SCALE = {
    "thesis": "With the models and data sets of the thesis itself, which are fetched and fine-tuned first:",
    "smat": "With the models and data sets of the paper itself, once their teachers are trained:",
}
JSON_HELP = {"thesis": "The same as plain values.", "smat": "As plain values."}
RUN_LABELS = {"faithfulness": "Run", "sanity": "Run random models and attacks", "smat": "Teach and judge"}
RUN_HERE_LABELS = {
    "faithfulness": "Run it on this computer",
    "sanity": "Run random models and attacks on this computer",
    "smat": "Run it on this computer",
}
NOT_RUN_YET = {
    "faithfulness": "Nothing has been run on the models that are here now. Press **Run**: explanations and "
    "measurements are kept one by one, so that a run that is stopped goes on where it was, also while you are on other "
    "pages.",
    "sanity": "**Sections 4.1.4, 4.1.6, 4.2.4 and 4.2.6**, of random models and of attacks, are a run of their own. "
    "Nothing has been run on the models that are here now. Press **Run random models and attacks**: explanations and "
    "measurements are kept one by one, so that a run that is stopped goes on where it was, also while you are on other "
    "pages.",
    "smat": "Nothing has been judged yet with the teachers that are here now. A run teaches some 200 students, one by "
    "one, which takes hours; what is finished is kept, so that a run that is stopped goes on where it was.",
}
FILE_SUFFIXES = {"faithfulness": "", "sanity": ", random models and attacks", "smat": ""}
CHANGED = "Since then these models have changed, so that a run here may find something else: {}."
DECLARED = "The SHA-256 of all that was declared{}. It changes with any word, bound or number of examples."
ABSENT = "Not here, so that claims that need them will not be run:"
SOME_MISSING = "Claims whose models are not here are not run. Once they are here, this page offers a run again."
"""Of the thesis: of SMaT's claims some are never run."""
JOBS = {id: JobPanel("_".join(filter(None, ("reproduction", topic.suffix)))) for id, topic in TOPICS.items()}
FILES = {
    ".md": ("Report", "text/markdown", "All claims and numbers as Markdown, as the command writes it."),
    ".json": ("JSON", "application/json", ""),
    ".csv": ("Claims CSV", "text/csv", "A line a number of the claims."),
    "-tables.csv": ("Tables CSV", "text/csv", "A line a number of the paper's tables."),
}
"""Label, type and help of a report's files, by the end of their names."""


def reproduction_page() -> None:
    """Draw all of it."""
    loaded, errors = page_state.load()
    for error in errors:
        show_error(error)
    st.segmented_control(
        "Whose claims", list(PAPERS), key=page_state.key("paper"), required=True,
        format_func=PAPER_TITLES.__getitem__, label_visibility="collapsed", persist_state=PERSIST,
    )  # fmt: skip
    paper = page_state.from_widgets(loaded).paper
    st.markdown(ABOUT[paper])
    if paper == THESIS:
        _controls()
    state = page_state.from_widgets(loaded)
    try:
        statuses = {query.topic_id: topic_status(query) for query in state.queries}
        claims = sorted_claims(state.queries)
    except ExegesisError as error:
        show_error(describe_error(error))
    else:
        _paper(state, claims, statuses)
    page_state.save(page_state.from_widgets(loaded), loaded)


def sorted_claims(queries: Sequence[ReproductionQuery]) -> list[Claim]:
    """The claims of all topics of a paper, in its order."""
    claims = (claim for query in queries for claim in query.selected_claims)
    return sorted(claims, key=lambda claim: claim.section.partition(",")[0])


def _controls() -> None:
    with st.container(horizontal=True, gap="small", vertical_alignment="bottom"):
        st.number_input(
            "Examples of each data set", FEWEST_EXAMPLES, MOST_EXAMPLES, key=page_state.key("examples"), width=210,
            help="As declared; with another number it is a trial, not the declared test.", persist_state=PERSIST,
        )  # fmt: skip
        st.number_input(
            "Seed",
            0,
            MOST_SEED,
            key=page_state.key("seed"),
            width=140,
            help="Draws the examples.",
            persist_state=PERSIST,
        )


def _paper(state: ReproductionState, claims: Sequence[Claim], statuses: Mapping[str, TopicStatus]) -> None:
    """The runs of a paper's topics, and its claims."""
    topics, area = PAPERS[state.paper], JOBS[PAPERS[state.paper][0].id].page
    for query in state.queries:
        _run(query, statuses[query.topic_id])
    reports = {topic: one.report for topic, one in statuses.items() if one.report is not None}
    outcomes = {one.id: one for report in reports.values() for one in report.outcomes}
    counts = count_verdicts(claims, outcomes)
    if reports:
        counts_row(totals(counts))
        _summary(state, reports, statuses)
    st.html(sections_html(counts))
    st.caption(" ".join(topic.about for topic in topics))
    listed = [one for one in claims if not state.show or not outcomes or verdict_of(one, outcomes) in state.show]
    if listed:
        st.html(f"<style>{table_styles()}</style>{overview_html(listed, outcomes)}")
    with st.expander("How numbers become a verdict", key=f"{area}.level"):
        st.markdown(" ".join(filter(None, (topics[0].level, NON_FINDING_RULES, topics[0].note))))
    _claims(state, listed, outcomes, reports)
    with st.expander("What was declared, and how to repeat it", key=f"{area}.declared"):
        for query in state.queries:
            st.caption(f"{DECLARED.format(FILE_SUFFIXES[query.topic_id])} {query.declaration.revised}")
            st.code(query.declaration.digest, language=None)
            st.caption("This command makes the same report:")
            st.code(query.command(), language="bash", wrap_lines=True)
        st.caption(FULL_SCALE[state.paper])
        st.code(f"exegesis reproduce {state.paper} --scale full", language="bash", wrap_lines=True)


def _run(query: ReproductionQuery, status: TopicStatus) -> None:
    """The job of a topic: how far it is, or what starts it."""
    topic, area, local = query.topic_id, JOBS[query.topic_id], status.local
    area.trouble()
    if status.provenance:
        st.html(note_html(f"This report comes with the project. {status.provenance}"))
        if local.changed:
            show_note(CHANGED.format(", ".join(local.changed)))
    if status.running is not None:
        area.progress(status.running.id)
    elif status.report is None:
        with st.container(border=True, key=f"{area.page}_to_do"):
            st.markdown(NOT_RUN_YET[topic])
            _start(query, status)
    elif local.report is None or query.about.paper == SMAT:  # more students may be taught once they failed
        with st.expander(RUN_HERE_LABELS[topic], key=f"{area.page}.here"):
            _start(query, status)


def _start(query: ReproductionQuery, status: TopicStatus) -> None:
    if status.local.time:
        st.caption(status.local.time)
    if status.local.absent:
        show_note(f"{ABSENT} {status.local.absent}")
    JOBS[query.topic_id].start(RUN_LABELS[query.topic_id], query.job, query.as_plain(), status.last)


def _summary(
    state: ReproductionState, reports: Mapping[str, Reproduction], statuses: Mapping[str, TopicStatus]
) -> None:
    if state.paper == THESIS and any(report.counts[NOT_RUN] for report in reports.values()):
        show_note(SOME_MISSING)
    for topic, report in reports.items():
        about = TOPICS[topic]
        texts = quantity_text(report, about), accuracy_text(report), shared_data_text(scale_of(report.scale), about)
        show_note(" ".join(filter(None, texts)))
    st.pills(
        "Show", VERDICTS, selection_mode="multi", key=page_state.key("show"), persist_state=PERSIST,
        help="Claims with these verdicts; none chosen shows all.",
    )  # fmt: skip
    with st.container(horizontal=True, gap="small"):
        for query in state.queries:
            if query.topic_id in reports:
                _files(query, reports[query.topic_id], statuses[query.topic_id].provenance)


def _files(query: ReproductionQuery, report: Reproduction, provenance: str) -> None:
    files = report_files(report, query, provenance)
    files[".json"] = lambda: json.dumps(report.as_plain(), indent=1)
    for ending, build in files.items():
        label, mime, help = FILES[ending]
        file_button(
            f"{label}{FILE_SUFFIXES[query.topic_id]}", f"{query.about.stem}-{SCALE}{ending}", mime, build,
            help or JSON_HELP[query.about.paper], f"{JOBS[query.topic_id].page}.{label.lower()}",
        )  # fmt: skip


def _claims(
    state: ReproductionState, listed: Sequence[Claim], outcomes: Outcomes, reports: Mapping[str, Reproduction]
) -> None:
    if not listed:
        st.info("No claim has this verdict. Choose another above.")
    queries = {claim.id: query for query in state.queries for claim in query.selected_claims}
    reasons = {query.topic_id: failure_reasons(query.about, query.declaration.digest) for query in state.queries}
    for section, claims in by_section(listed).items():
        st.subheader(f"{section} {SECTIONS[section]}", anchor=f"section-{section}")
        for claim in claims:
            query = queries[claim.id]
            topic = query.topic_id
            claim_card(claim, outcomes.get(claim.id), reports.get(topic), query, reasons[topic])
