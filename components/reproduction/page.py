"""The Reproduction page: how many claims of a paper hold, the widest failures, and all claims by section."""

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
    Outcomes,
    by_section,
    claim_card,
    count_verdicts,
    counts_row,
    headline,
    note_html,
    overview_html,
    section_label,
    surprise,
    totals,
    trainings_caption,
    verdict_of,
    widest_failures,
)
from components.reproduction.state import (
    FEWEST_EXAMPLES,
    MOST_EXAMPLES,
    SMAT,
    THESIS,
    ReproductionState,
    TopicStatus,
    topic_status,
)
from components.tables import table_styles
from engine.errors import ExegesisError
from engine.reproduction.claims import Claim, ReproductionQuery
from engine.reproduction.documents import Examination, report_files, topic_examination
from engine.reproduction.papers import NON_FINDING_RULES, TOPICS, scale_of
from engine.reproduction.report import NOT_RUN, VERDICTS, Reproduction
from engine.reproduction.wording import accuracy_text, quantity_text, shared_data_text, small_text

PAPER_TITLES = {
    "thesis": "Thesis on faithfulness",
    "data": "Thesis on real data",
    "smat": "SMaT: explanations that teach",
    "smat-data": "SMaT on real data",
}
ABOUT = {
    "thesis": "Findings of a thesis (*Assessing the Interpretability of Large Language Models*, chapter 4), one claim "
    "at a time and in our own words. The statistic and the bounds of each claim were declared before a run was "
    "complete. A run tests the claims on the small models that come with the project.",
    "data": "Findings of the same thesis that compare methods, tried on one model that is competent on real data: "
    "MiniLM on SST-2 with an added word, on SNLI, and on film reviews with words that people highlighted. Claims that "
    "compare sizes or architectures need models of these kinds; “Thesis on faithfulness” has them.",
    "smat": "Findings of the SMaT paper (*Learning to Scaffold: Optimizing Model Explanations for Teaching*, Fernandes "
    "et al., 2022, sections 5 and 6), one claim at a time and in our own words. The statistic and the bounds of each "
    "claim were declared before a run. A run trains students of the small models that come with the project, with "
    "each explainer and several seeds, and compares them.",
    "smat-data": "Findings of the same paper on pictures and on scores, tried on real data: photographs (CIFAR-10) and "
    "translations with scores and error tags by people (MLQE-PE), each language pair by itself. A run fine-tunes a "
    "small model for each pair. It trains students in each setting, for pictures and for the pair that is learned "
    "best. Claims on texts, several train sizes and normalizations are in “SMaT: explanations that teach”.",
}
SURPRISING = "The margin is the distance of the deciding number from its bound. Open a line to read the claim."
FULL_SCALE = {
    "thesis": "With the models and data sets of the thesis, which are downloaded and fine-tuned first:",
    "smat": "With the models and data sets of the paper, once their teachers are trained:",
}
RUN_LABELS = {
    "faithfulness": "Run",
    "sanity": "Run randomization and attacks",
    "data": "Fine-tune and run",
    "smat": "Train students and judge",
    "smat-data": "Fine-tune, train students and judge",
}
RUN_HERE_LABELS = {
    "faithfulness": "Run on this computer",
    "sanity": "Run randomization and attacks on this computer",
    "data": "Run on this computer",
    "smat": "Run on this computer",
    "smat-data": "Run on this computer",
}
RESUMES = (
    "Finished parts are stored, so a stopped run resumes where it left off. It continues while you use other pages."
)
NOT_RUN_YET = {
    "faithfulness": f"No run yet with the current models. {RESUMES}",
    "sanity": f"**Sections 4.1.4, 4.1.6, 4.2.4 and 4.2.6** (randomized models, attacks) are a separate run. No run yet "
    f"with the current models. {RESUMES}",
    "data": f"No run yet. A run fine-tunes MiniLM on SST-2 and on film reviews, both from `EXEGESIS_DATA`, and takes "
    f"hours. {RESUMES}",
    "smat": f"No run yet with the current teachers. A run trains about 700 students, which takes hours. {RESUMES}",
    "smat-data": f"No run yet. A run fine-tunes six small models on MLQE-PE and trains 540 students there and on "
    f"CIFAR-10, both from `EXEGESIS_DATA`. It takes about two hours. {RESUMES}",
}
FILE_SUFFIXES = {"faithfulness": "", "sanity": ", randomization and attacks", "data": "", "smat": "", "smat-data": ""}
CHANGED = "These models have changed since this report was made, so a run here may give other results: {}."
DECLARED = "SHA-256 of the declaration{}. It changes with any word, bound or number of examples."
ABSENT = "Missing models or data sets; claims that need them will not be run:"
SOME_MISSING = "Claims about missing models are not run. Once the models are here, this page offers another run."
"""Shown only for the thesis, because some claims of SMaT are never run."""
JOBS = {id: JobPanel("_".join(filter(None, ("reproduction", topic.suffix)))) for id, topic in TOPICS.items()}
FILES = {
    ".md": ("Report", "text/markdown", "All claims and numbers as Markdown, as the command writes it."),
    ".json": ("JSON", "application/json", "The same results as JSON."),
    ".csv": ("Claims CSV", "text/csv", "One row per number of the claims."),
    "-tables.csv": ("Tables CSV", "text/csv", "One row per number of the paper's tables."),
}
"""Label, media type and help of a report's files, by the end of their names."""


def reproduction_page() -> None:
    """Draw the page."""
    loaded, errors = page_state.load()
    for error in errors:
        show_error(error)
    st.segmented_control(
        "Paper", list(PAPER_TITLES), key=page_state.key("paper"), required=True,
        format_func=PAPER_TITLES.__getitem__, label_visibility="collapsed", persist_state=PERSIST,
    )  # fmt: skip
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
    """Return the claims of all topics of a paper in the order of its sections."""
    claims = (claim for query in queries for claim in query.selected_claims)
    return sorted(claims, key=lambda claim: claim.section.partition(",")[0])


def _paper(state: ReproductionState, claims: Sequence[Claim], statuses: Mapping[str, TopicStatus]) -> None:
    """Draw the headline, the runs, the widest failures, the claims by section, and how the report was made."""
    reports = {topic: one.report for topic, one in statuses.items() if one.report is not None}
    outcomes = {one.id: one for report in reports.values() for one in report.outcomes}
    counts = totals(count_verdicts(claims, outcomes))
    by_topic = {query.topic_id: topic_examination(query.about, query.declaration.digest) for query in state.queries}
    scale = scale_of(state.queries[0].scale)
    examinations = {claim.id: by_topic[query.topic_id] for query in state.queries for claim in query.selected_claims}
    st.subheader(headline(counts), anchor=False)
    if reports:
        counts_row(counts)
    if small := sum(one.too_small for one in outcomes.values()):
        st.caption(small_text(small, counts["does not hold"]))
    if trained := trainings_caption(outcomes, examinations):
        st.caption(trained)
    for query in state.queries:
        _job(query, statuses[query.topic_id])
    if surprises := widest_failures(claims, outcomes):
        st.markdown("**Claims that fail by the widest margin**", help=SURPRISING)
        with st.container(gap="xsmall", key="reproduction_surprises"):
            for claim in surprises:
                surprise(claim, outcomes[claim.id], examinations[claim.id], scale)
    _toolbar(state, reports, statuses)
    listed = [one for one in claims if not state.show or not outcomes or verdict_of(one, outcomes) in state.show]
    _claims(state, listed, outcomes, reports, examinations)
    _about(state, reports, statuses, [examination.how for examination in by_topic.values() if examination])


def _job(query: ReproductionQuery, status: TopicStatus) -> None:
    """Draw the progress of a topic's run, or the button that starts the first one."""
    area = JOBS[query.topic_id]
    area.trouble()
    if status.provenance and status.local.changed:
        show_note(CHANGED.format(", ".join(status.local.changed)))
    if status.running is not None:
        area.progress(status.running.id)
    elif status.report is None:
        with st.container(border=True, key=f"{area.page}_to_do"):
            st.markdown(NOT_RUN_YET[query.topic_id])
            _start(query, status)


def _start(query: ReproductionQuery, status: TopicStatus) -> None:
    if status.local.time:
        st.caption(status.local.time)
    if status.local.absent:
        show_note(f"{ABSENT} {status.local.absent}")
    JOBS[query.topic_id].start(RUN_LABELS[query.topic_id], query.job, query.as_plain(), status.last)


def _toolbar(
    state: ReproductionState, reports: Mapping[str, Reproduction], statuses: Mapping[str, TopicStatus]
) -> None:
    if reports:
        st.pills(
            "Show claims by verdict", VERDICTS, selection_mode="multi", key=page_state.key("show"),
            persist_state=PERSIST, help="With no verdict selected, all claims are listed.",
        )  # fmt: skip
    with st.container(horizontal=True, gap="small"):
        if state.paper == THESIS:
            with st.popover("Options", key="reproduction_options"):
                _options()
        if reports:
            with st.popover("Export", key="reproduction_export"):
                for query in state.queries:
                    if query.topic_id in reports:
                        _files(query, reports[query.topic_id], statuses[query.topic_id].provenance)


def _options() -> None:
    st.number_input(
        "Examples per data set", FEWEST_EXAMPLES, MOST_EXAMPLES, key=page_state.key("examples"),
        help="Any other number than the declared one is a trial run, not the declared test.", persist_state=PERSIST,
    )  # fmt: skip
    st.number_input(
        "Seed", 0, MOST_SEED, key=page_state.key("seed"), help="Seed of the random sample of examples.",
        persist_state=PERSIST,
    )  # fmt: skip


def _files(query: ReproductionQuery, report: Reproduction, provenance: str) -> None:
    files = report_files(report, query, provenance)
    files[".json"] = lambda: json.dumps(report.as_plain(), indent=1)
    for ending, build in files.items():
        label, mime, help = FILES[ending]
        file_button(
            f"{label}{FILE_SUFFIXES[query.topic_id]}", f"{query.about.stem}-{query.scale}{ending}", mime, build,
            help, f"{JOBS[query.topic_id].page}.{label.lower()}",
        )  # fmt: skip


def _claims(
    state: ReproductionState,
    listed: Sequence[Claim],
    outcomes: Outcomes,
    reports: Mapping[str, Reproduction],
    examinations: Mapping[str, Examination | None],
) -> None:
    """Draw a closed expander for each section of the paper; a filter by verdict opens them."""
    if not listed:
        st.info("No claim has the selected verdicts.")
        return
    st.html(f"<style>{table_styles()}</style>")
    queries = {claim.id: query for query in state.queries for claim in query.selected_claims}
    scale = scale_of(state.queries[0].scale)
    counts = count_verdicts(listed, outcomes)
    for name, claims in by_section(listed).items():
        control = page_state.section_name(name, state.show)
        page_state.SESSION.fill({control: bool(state.show)})
        box = st.expander(section_label(name, counts[name], scale), key=page_state.key(control), on_change="rerun")
        if not box.open:
            continue
        with box:
            st.html(overview_html(claims, outcomes, examinations, scale))
            for claim in claims:
                query = queries[claim.id]
                claim_card(claim, outcomes.get(claim.id), reports.get(query.topic_id), query, examinations[claim.id])


def _about(
    state: ReproductionState,
    reports: Mapping[str, Reproduction],
    statuses: Mapping[str, TopicStatus],
    other_trainings: Sequence[str],
) -> None:
    """Draw how verdicts are reached, the buttons for runs on this computer, and the declaration with its commands."""
    topics = [query.about for query in state.queries]
    area = JOBS[topics[0].id].page
    with st.expander("How it works", key=f"{area}.level"):
        st.markdown(ABOUT[state.paper])
        st.markdown(" ".join(filter(None, (topics[0].level, NON_FINDING_RULES, topics[0].note))))
        st.markdown(" ".join(topic.about for topic in topics))
        if state.paper == THESIS and any(report.counts[NOT_RUN] for report in reports.values()):
            show_note(SOME_MISSING)
        for topic, report in reports.items():
            about = TOPICS[topic]
            texts = quantity_text(report, about), accuracy_text(report), shared_data_text(scale_of(report.scale), about)
            show_note(" ".join(filter(None, texts)))
        for text in filter(None, other_trainings):
            st.html(note_html(text))
    for query in state.queries:
        status = statuses[query.topic_id]
        is_ready = status.running is None and status.report is not None
        # SMaT: more students can be trained after some failed.
        if is_ready and (status.local.report is None or query.about.paper == SMAT):
            with st.expander(RUN_HERE_LABELS[query.topic_id], key=f"{JOBS[query.topic_id].page}.here"):
                _start(query, status)
    with st.expander("Declaration and commands", key=f"{area}.declared"):
        for query in state.queries:
            if provenance := statuses[query.topic_id].provenance:
                st.html(note_html(f"This report comes with the project. {provenance}"))
            st.caption(f"{DECLARED.format(FILE_SUFFIXES[query.topic_id])} {query.declaration.revised}")
            st.code(query.declaration.digest, language=None)
            st.caption("This command writes the same report:")
            st.code(query.command(), language="bash", wrap_lines=True)
        st.caption(FULL_SCALE[topics[0].paper])
        st.code(f"exegesis reproduce {topics[0].paper} --scale full", language="bash", wrap_lines=True)
