"""The results of a study: the answer with its intervals, and sections that are computed when opened."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

import streamlit as st

from components.errors import escape_label
from components.export import file_button
from components.numbers import count, plain
from components.palette import browser_theme
from components.results.answers import draw_annotator_answers, draw_item_answers
from components.results.charts import (
    accuracy_chart,
    course_chart,
    gain_chart,
    power_chart,
    rating_chart,
    rating_span,
    sureness_chart,
    times_chart,
    wins_html,
)
from components.results.descriptions import (
    PLAUSIBLE,
    SMAT_WARNING,
    describe_answers,
    describe_guesses,
    describe_preference,
    describe_rankings,
    describe_rules,
)
from components.results.tables import (
    condition_table,
    course_table,
    exclusion_table,
    needed_table,
    order_table,
    power_table,
    rating_table,
    sureness_table,
    time_table,
    worth_table,
)
from components.results.titles import TitledResults
from components.tables import draw_table, table_styles
from engine.study.guesses import GuessSummary
from engine.study.results import export_rows, results_to_json
from engine.study.results import results as complete_results
from engine.study.studies import NO_ANSWERS, count_answers
from engine.study.study_file import export_study
from engine.study.summary import RankingSummary
from engine.table_io import to_csv, to_json

UNKNOWN = "unknown"
FORECAST = "The forecast assumes that future participants resemble the past ones."
FORMATS = {"csv": "CSV", "json": "JSON"}
WRITERS = {"csv": ("text/csv", to_csv), "json": ("application/json", to_json)}
TABLES: Mapping[str, tuple[str, str]] = {
    "votes": ("Votes", "One row per answer. Excluded answers are marked with the rule."),
    "orders": ("Orders", "One row per ballot, with the method at each position."),
    "items": ("Items", "One row per item: its input, label and prediction."),
    "ratings": ("Ratings", "One row per method: skill, interval, first and last rank."),
}
NOTE = "Methods are named by their IDs, people by pseudonyms. Cells that look like spreadsheet formulas are escaped."
RESULTS_FILE = "All numbers on this page, with descriptions."
STUDY_FILE = "The design, items, explanations and answers. Import it to reproduce the study and its results elsewhere."


def draw_sections(results: TitledResults) -> None:
    """Draw the answer, then the sections, which start closed; when the page is drawn again, open ones stay open."""
    if results.summary is not None:
        _draw_ratings(results.summary)
    elif results.forward is not None:
        _draw_guesses(results.forward)
    elif results.study.design.mode == "rank" and results.untitled.sample is None:
        st.info("No rankings yet, so there are no ratings.")
    counts = count_answers().get(results.study.id, NO_ANSWERS)
    st.caption(escape_label(describe_answers(results.untitled, counts)))
    for sections, subject in (
        (RANKING_SECTIONS, results.summary),
        (GUESS_SECTIONS, results.forward),
        (ANSWER_SECTIONS, results),
    ):
        for name, (title, draw) in sections.items() if subject is not None else ():
            box = st.expander(title, key=f"results.{name}", on_change="rerun")
            if box.open:
                with box:
                    draw(subject)


def _draw_ratings(summary: RankingSummary) -> None:
    """Draw the answer, the comparison with the placebo, the intervals beside SMaT's, and their table."""
    st.subheader(escape_label(describe_preference(summary)), anchor=False)
    st.markdown(escape_label(f"{summary.meanings['placebo']} {describe_rankings(summary)}"))
    st.caption(PLAUSIBLE)
    span, theme = rating_span(summary.ratings, summary.smat), browser_theme()
    settings = (
        ("Rating", summary.ratings, summary.meanings["ratings"]),
        ("Rating in the setting of the SMaT paper", summary.smat, SMAT_WARNING),
    )
    for (title, ratings, words), place in zip(settings, st.columns(2, gap="medium"), strict=True):
        place.markdown(f"**{title}**")
        chart = rating_chart(ratings, summary.methods, summary.placebo, span, theme)
        place.altair_chart(chart, key=f"results_{title}", alt=f"{title}: skill and interval of each method")
        place.caption(escape_label(words))
    draw_table(rating_table(summary), "ratings")


def _draw_guesses(summary: GuessSummary) -> None:
    """Draw the answer, its limits, the intervals, and their table."""
    meanings = summary.meanings
    st.subheader(escape_label(meanings["helpful"]), anchor=False)
    st.markdown(escape_label(f"{meanings['placebo']} {describe_guesses(summary)}"))
    st.caption(escape_label(f"{meanings['plausible']} {meanings['leak']}"))
    left, right = st.columns(2, gap="medium")
    if summary.guesses:
        left.markdown("**Accuracy of guesses**")
        left.altair_chart(
            accuracy_chart(summary, browser_theme()),
            key="results_accuracy",
            alt="Accuracy of guesses with its interval, with each explanation and without",
        )
    if any(one.gain for one in summary.conditions):
        right.markdown("**Gain over no explanation**")
        right.altair_chart(
            gain_chart(summary, browser_theme()),
            key="results_gains",
            alt="Difference to guesses without an explanation, with its interval",
        )
    st.caption(escape_label(f"{meanings['accuracy']} {meanings['baseline']} {meanings['cannot_tell']}"))
    draw_table(condition_table(summary), "forward")


def _draw_wins(summary: RankingSummary) -> None:
    """Draw the share of votes that rank one method above another."""
    st.html(f"<style>{table_styles()}</style>{wins_html(summary)}")
    st.caption(summary.meanings["wins"])


def _draw_course(summary: RankingSummary) -> None:
    """Draw the ratings over the number of votes."""
    st.altair_chart(course_chart(summary, browser_theme()), key="results_course", alt="Skill of each method by votes")
    st.caption(summary.meanings["course"])
    draw_table(course_table(summary), "course")


def _draw_checks(summary: RankingSummary) -> None:
    """Draw how the results depend on the order of the votes and on the rating model."""
    st.markdown("**Different order of the votes**")
    st.caption(summary.meanings["spread"])
    draw_table(order_table(summary), "orders")
    st.markdown("**Different model: Plackett-Luce**")
    st.caption(escape_label(summary.meanings["worths"]))
    draw_table(worth_table(summary), "worths")


def _draw_agreement(summary: RankingSummary) -> None:
    """Draw the agreement of people with each other and with themselves."""
    rho = None if summary.consistency is None else summary.consistency[0]
    measures = (
        ("Kendall's W", summary.concordance, "concordance"),
        ("Krippendorff's α", summary.alpha, "alpha"),
        ("Self-consistency (Spearman's ρ)", rho, "consistency"),
    )
    for (name, value, part), place in zip(measures, st.columns(3, gap="medium"), strict=True):
        place.metric(name, UNKNOWN if value is None else plain(value))
        place.caption(summary.meanings[part])


def _draw_power(summary: RankingSummary) -> None:
    """Draw the forecast of the votes that separate more methods."""
    if not summary.power:
        st.info(summary.meanings["needed"])
        draw_table(needed_table(summary), "needed")
        return
    st.altair_chart(
        power_chart(summary, browser_theme()), key="results_power", alt="Separated pairs by number of votes"
    )
    st.caption(f"{summary.meanings['needed']} {FORECAST}")
    draw_table(needed_table(summary), "needed")
    draw_table(power_table(summary), "power")


def _draw_sureness(summary: GuessSummary) -> None:
    """Draw the accuracy by sureness, and the consistency of repeated guesses."""
    if not summary.guesses:
        st.markdown("No guesses yet.")
        return
    chart = sureness_chart(summary, browser_theme())
    st.altair_chart(chart, key="results_sureness", alt="Accuracy of guesses by confidence")
    st.caption(escape_label(f"{summary.meanings['sureness']} {summary.meanings['consistency']}"))
    draw_table(sureness_table(summary), "sureness")


def _draw_times(results: TitledResults) -> None:
    """Draw the times of the votes."""
    seconds = [vote.seconds for vote in results.votes]
    st.altair_chart(times_chart(seconds, browser_theme()), key="results_times", alt="Histogram of response times")
    if results.summary is not None:
        st.caption(results.summary.meanings["seconds"])
    draw_table(time_table(seconds), "times")


def _draw_excluded(results: TitledResults) -> None:
    """Draw the votes excluded by the declared rules."""
    untitled = results.untitled
    excluded = sum(one.votes for one in untitled.excluded)
    share = f" Excluded: {excluded:,} of {count(untitled.answers, 'answer')}." if excluded else ""
    st.markdown(f"{describe_rules(results.study.design.exclusion)}{share}")
    if untitled.excluded:
        draw_table(exclusion_table(untitled.excluded, results.items), "excluded")


def _draw_downloads(results: TitledResults) -> None:
    """Draw download buttons for tables, results and the study file; a file is created when its button is clicked."""
    study = results.study.id
    st.caption(NOTE)
    ending = st.segmented_control(
        "Table format",
        list(FORMATS),
        default="csv",
        required=True,
        format_func=FORMATS.__getitem__,
        key="results.format",
    )
    with st.container(horizontal=True):
        for table in TABLES:
            _draw_table_button(study, table, str(ending))
        file_button(
            "All results", f"study-{study}-results.json", "application/json", lambda: _results_json(results),
            RESULTS_FILE, "results.file.results",
        )  # fmt: skip
        file_button(
            "Study file", f"study-{study}.json", "application/json", lambda: export_study(study, votes=True),
            STUDY_FILE, "results.file.study",
        )  # fmt: skip


def _draw_table_button(study: int, table: str, ending: str) -> None:
    title, help = TABLES[table]
    kind, write = WRITERS[ending]
    name, key = f"study-{study}-{table}.{ending}", f"results.file.{table}.{ending}"
    file_button(title, name, kind, lambda: write(export_rows(study, table)), help, key)


def _results_json(results: TitledResults) -> str:
    current = results.untitled if results.untitled.sample is None else complete_results(results.study.id)
    return json.dumps(results_to_json(current), indent=2, ensure_ascii=False, allow_nan=False) + "\n"


Sections = Mapping[str, tuple[str, Callable[[Any], None]]]
"""Titles and drawing functions, by the suffix of the sections' keys."""

RANKING_SECTIONS: Sections = {
    "wins": ("Pairwise comparisons", _draw_wins),
    "course": ("Ratings over time", _draw_course),
    "checks": ("Robustness to the order of votes and the rating model", _draw_checks),
    "agreement": ("Agreement between and within people", _draw_agreement),
    "power": ("How many more votes are needed?", _draw_power),
}
GUESS_SECTIONS: Sections = {"sureness": ("Confidence and accuracy", _draw_sureness)}
ANSWER_SECTIONS: Sections = {
    "times": ("Response times", _draw_times),
    "items": ("Results by item", draw_item_answers),
    "annotators": ("Results by annotator", draw_annotator_answers),
    "excluded": ("Excluded votes", _draw_excluded),
    "downloads": ("Download", _draw_downloads),
}
