"""The Ask the model page: the answer, accuracy by evaluations, one example, and the constructed models."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

import altair as alt
import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from components.behavior.answers import answer_html, constructed_text
from components.behavior.charts import (
    accuracy_chart,
    accuracy_table,
    attribution_table,
    constructed_chart,
    constructed_table,
    example_twins,
    twin_chart,
)
from components.behavior.example_panel import example_area
from components.behavior.view import QUESTIONS, SESSION, cite, describe_plan, task_control
from components.charts.files import CaptionedChart, ChartCaption, chart_file_buttons
from components.charts.frame import ChartFrame
from components.controls import PERSIST
from components.errors import show_note
from components.experiment.page import ExperimentPage, command_line, export_area, references
from components.experiment.runs import PlanStatus, skip_reasons_html
from components.experiment.state import VIEW, ExperimentState, Methods
from components.export import REPEATS, citation_html
from components.navigation import BEHAVIOR
from components.numbers import count
from components.palette import Theme, browser_theme
from components.tables import draw_table, table_html, table_styles
from engine.behavior.impossibility import demonstrate
from engine.behavior.plan import DELETE, FEATURE, INPUTS, LOCAL, PARTS, REPLACE, BehaviorPlan, question_text
from engine.behavior.result import ORDER, BehaviorAnswer, ModelBehavior, answers_of
from engine.format import plural

LOCAL_ABOUT = "Each {} of a {} is a question: does the probability of the predicted class fall when it is {}?"
FEATURE_ABOUT = {
    "text": "Each text is a question: does the class change when the words of the feature are removed or exchanged?",
    "image": "Each picture is a question: does the class change when the patches of the object that the data set marks "
    "are removed, or replaced by those of other pictures?",
}
RECOURSE_ABOUT = "Each {} is a question: which {}, at most {}, have to be removed to change the predicted class?"
ORDER_ABOUT = "Each pair of {} of a {} is a question: which of the two lowers the probability more when it is {}?"
CHANGES = {
    ("text", REPLACE): "replaced by what a masked language model expects there",
    ("text", DELETE): "deleted",
    ("image", REPLACE): "replaced by the same place of another picture",
    ("image", DELETE): "removed (in the mean color)",
}
HOW = (
    "The chart shows the share of right answers by the number of evaluations. An attribution answers by its scores. "
    "Vertical lines and the band are 95% intervals over {}."
)
FAILED = "Some answers about {} failed and are not included. The reasons are listed at the end of this page."
CONSTRUCTED = "Why attributions can fail"
EXPLAINED = (
    "Integrated gradients and SHAP are complete and linear: their scores add up to the difference between the output "
    "at the point and at the baseline. Two models can agree on all that these scores depend on, and still do the "
    "opposite at the point: one rises with feature 1, the other falls. Whatever is concluded from the scores is then "
    "right for one model and wrong for the other, while a few evaluations near the point tell them apart."
)
SOURCE = (
    "B. Bilodeau, N. Jaques, P. W. Koh and B. Kim (2024), Impossibility theorems for feature attribution, PNAS 121(2)."
)
EQUAL = "The scores of both models differ by rounding alone, over all pairs by at most {:.0e}."
ROWS_HELP = "One row per question and way of answering: the output of `exegesis behavior --out`."
ANSWERS_HELP = "The accuracy of each way with its interval: the output of `exegesis behavior --json`."
START = "Ask the model"
ALT = "Right answers by evaluations on {}; the numbers are in the table below"


def about(plan: BehaviorPlan, question: str) -> str:
    """Return a sentence that says what the questions of the task are."""
    changed, part, input = CHANGES[plan.kind, plan.edit], PARTS[plan.kind], INPUTS[plan.kind]
    if plan.task == FEATURE:
        return FEATURE_ABOUT[plan.kind]
    if plan.task == LOCAL:
        return (
            ORDER_ABOUT.format(plural(part), input, changed) if question == ORDER
            else LOCAL_ABOUT.format(part, input, changed)
        )  # fmt: skip
    return RECOURSE_ABOUT.format(input, plural(part), plan.size)


@dataclass(frozen=True)
class AccuracyPanel(CaptionedChart):
    """The accuracy chart of one model, with its numbers and files."""

    kind: str
    plan: BehaviorPlan
    answer: BehaviorAnswer
    titles: Mapping[str, str]

    @property
    def file(self) -> str:
        return f"exegesis-behavior-{self.plan.task}"

    @property
    def table(self) -> pd.DataFrame:
        return accuracy_table(self.answer, self.plan, self.titles)

    def key(self, kind: str) -> str:
        return SESSION.key(self.kind, f"{kind}.{self.answer.model}.{self.answer.question}")

    def chart(self, theme: Theme | None = None) -> alt.LayerChart:
        return accuracy_chart(self.answer, self.plan, ChartFrame(self.titles, theme or browser_theme()))

    def caption(self) -> ChartCaption:
        title = f"{question_text(self.plan)} {self.answer.model}"
        return ChartCaption(title, [cite(self.plan), f"{REPEATS}:"], [command_line(self.plan)])

    def draw(self) -> None:
        """Draw the chart, and its numbers and files in an expander."""
        st.altair_chart(self.chart(), key=self.key("chart"), alt=ALT.format(self.answer.model))
        with st.expander("Numbers and files", key=self.key("numbers"), on_change="rerun") as box:
            if box.open:
                draw_table(_readable(self.table), self.key("table"))
                chart_file_buttons(self)


def _readable(table: pd.DataFrame) -> pd.DataFrame:
    """Return the table of a chart with rounded numbers."""
    shares = {name: table[name].astype(float).round(3) for name in ("Right", "Low", "High")}
    return table.assign(**shares, Evaluations=table["Evaluations"].round(1))


def results_area(state: ExperimentState, status: PlanStatus, methods: Methods, options: DeltaGenerator | None) -> None:
    """Draw the answer, the charts, one example, the constructed models, and the export."""
    results, titles = status.results, {id: method.title for id, method in methods.items()}
    plan = results.plan
    if plan.task == LOCAL:
        st.segmented_control(
            "Question", list(QUESTIONS[state.kind]), key=SESSION.key(state.kind, f"{VIEW}question"), required=True,
            format_func=QUESTIONS[state.kind].__getitem__, label_visibility="collapsed", persist_state=PERSIST,
        )  # fmt: skip
    question = state.view.question if plan.task == LOCAL else ""
    st.caption(about(plan, question))
    for found in results.found:
        answers = answers_of(found, plan)
        answer = next((one for one in answers if one.question == question), answers[0])
        st.html(answer_html(answer, found, plan, titles))
        if note := failures_text(found, plan, titles):
            show_note(note)
        AccuracyPanel(state.kind, plan, answer, titles).draw()
    st.caption(HOW.format(plural(INPUTS[state.kind])))
    example_area(state, results, titles)
    constructed_area(state.kind)
    if lines := left_out(results.found, titles):
        with st.expander(f"Left out: {count(len(lines), 'reason')}", key="behavior.left_out"):
            st.html(skip_reasons_html(lines))
    cited = citation_html(cite(plan), references(plan, methods, [SOURCE]))
    summary = "Accuracy, JSON", "exegesis-behavior-accuracy.json", ANSWERS_HELP
    export_area(SESSION, state.kind, results.result, cited, ROWS_HELP, summary)


def constructed_area(kind: str) -> None:
    """Draw the constructed models: the answer, a pair of them, accuracy by evaluations, and the reason."""
    found, theme = demonstrate(), browser_theme()
    st.subheader(CONSTRUCTED, anchor=False)
    st.html(f'<div class="xg"><p class="xg-answer">{constructed_text(found)}</p></div>')
    left, right = st.columns(2, gap="medium")
    with left:
        words = "A pair of models along feature 1. They agree at the baseline and at the point, and differ near it."
        st.altair_chart(twin_chart(example_twins(), theme), key=SESSION.key(kind, "twins"), alt=words)
    with right:
        words = "Right answers by evaluations on the constructed models; the numbers are in the table below"
        st.altair_chart(constructed_chart(found, theme), key=SESSION.key(kind, "constructed"), alt=words)
    st.caption(EXPLAINED)
    with st.expander("Scores of this pair, and accuracy", key=SESSION.key(kind, "constructed_numbers")):
        st.html(f"<style>{table_styles()}</style>{table_html(attribution_table(example_twins()))}")
        st.caption(EQUAL.format(found.largest_difference))
        draw_table(_readable(constructed_table(found)), SESSION.key(kind, "constructed_table"))


def left_out(models: tuple[ModelBehavior, ...], titles: Mapping[str, str]) -> list[tuple[str, str, str]]:
    """Return why examples are left out: reason, number of examples and model, and what is left out.

    An example without a question is left out for all ways; one on which a method failed, for that method only.
    """
    return [
        (why, f"{count(number, 'example')} on {found.model}", who)
        for found in models
        for who, reasons in [("all ways", found.failed), *((titles[id], own) for id, own in found.failures.items())]
        for why, number in Counter(reasons.values()).items()
    ]


def failures_text(found: ModelBehavior, plan: BehaviorPlan, titles: Mapping[str, str]) -> str:
    """Return a sentence on how many examples each method failed on; empty if none did."""
    each = [f"{titles[id]} failed on {count(len(own), INPUTS[plan.kind])}" for id, own in found.failures.items()]
    if not each:
        return ""
    return f"{found.model}: {', '.join(each)} of {len(found.examples):,}. Only its answers there are left out."


PAGE = ExperimentPage(
    SESSION, "", results_area, failed=FAILED, entry=BEHAVIOR, summary=describe_plan, lead=task_control,
    start=START,
)  # fmt: skip
