"""Files of the Scaffold page: charts with their numbers, rows, the learned explainer, citation and command."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import altair as alt
import pandas as pd
import streamlit as st

from components.charts.files import ChartCaption, chart_file_buttons, chart_html, chart_svg, light_colors
from components.errors import describe_error, note_html, show_error
from components.experiment.page import TITLES, TYPES
from components.export import REPEATS, citation_box, citation_html, file_button
from components.navigation import IMAGES, TEXT
from components.numbers import count
from components.organizer import is_organizer
from components.palette import Theme, browser_theme
from components.scaffold.charts import (
    CurveLine,
    curves_chart,
    passes_table,
    simulability_chart,
    simulability_table,
)
from components.scaffold.controls import key
from components.scaffold.state import MEASURES, SETTING_TITLES
from components.tables import draw_table
from engine.errors import ExegesisError
from engine.home import product_version
from engine.scaffold.learned_explainer import explainers_folder, explainers_for, median_explainer, save_to_home
from engine.scaffold.plan import SMAT, ScaffoldPlan, command_line
from engine.scaffold.result import FORMATS, ScaffoldResult

SAVE_HELP = (
    "Saves the explainer of the median student. The method SMaT then uses it for this teacher on every page and on the "
    "command line."
)
CITED = (
    "Scaffold: P. Fernandes, M. Treviso, D. Pruthi, A. F. T. Martins and G. Neubig (2022), Learning to scaffold: "
    "optimizing model explanations for teaching, NeurIPS."
)


@dataclass(frozen=True)
class ScaffoldChart:
    """A chart of the page with its files.

    `name`: part of its widget keys and file names. `table`: its values. `note`: a sentence for the files of charts of
    the learned explainer.
    """

    plan: ScaffoldPlan
    name: str
    title: str
    build: Callable[[Theme], alt.LayerChart]
    numbers: Callable[[], pd.DataFrame]
    note: str = ""

    @property
    def file(self) -> str:
        return f"exegesis-scaffold-{self.name}"

    @property
    def table(self) -> pd.DataFrame:
        return self.numbers()

    def key(self, kind: str) -> str:
        """The key of a widget of this chart."""
        return key(self.plan.kind, f"{kind}.{self.file}")

    def spec(self) -> str:
        """The Vega-Lite specification in the theme of the page."""
        return self.build(browser_theme()).to_json()

    def svg(self) -> str:
        """An SVG in the light theme."""
        return chart_svg(self.build("light"), self._caption(), self.table, light_colors())

    def html(self) -> str:
        """An HTML page in the light theme."""
        return chart_html(self.build("light"), self._caption(), self.table, light_colors())

    def _caption(self) -> ChartCaption:
        notes = (
            [self.note, cite(self.plan), f"{REPEATS} of students:"] if self.note else [cite(self.plan), f"{REPEATS}:"]
        )
        return ChartCaption(self.title, notes, [rows_command(self.plan)])


def simulability_files(result: ScaffoldResult) -> ScaffoldChart:
    """The chart of simulability by setting and train size."""
    title = f"Simulability of {result.plan.teacher} on {result.plan.dataset}"
    build, numbers = partial(simulability_chart, result), partial(simulability_table, result)
    return ScaffoldChart(result.plan, "simulability", title, build, numbers)


def curves_files(
    result: ScaffoldResult, setting: str, size: int, measure: str, lines: Sequence[CurveLine]
) -> ScaffoldChart:
    """The chart of learning curves of a setting at a train size, for one measure."""
    plan = result.plan
    students = f"{SETTING_TITLES[setting]}, {count(size, 'example')}"
    title = f"{MEASURES[measure]} by pass: {students}, {plan.teacher} on {plan.dataset}"
    build = partial(curves_chart, lines, measure, result.metric)
    return ScaffoldChart(plan, f"{setting}-{size}-{measure}", title, build, partial(passes_table, lines))


def draw_chart(chart: ScaffoldChart, caption: str = "", with_table: bool = False) -> None:
    """Draw the chart, its caption, and an expander with its numbers and files.

    `with_table`: draw the numbers below the chart instead of in the expander.
    """
    st.altair_chart(chart.build(browser_theme()), key=chart.key("chart"), alt=f"{chart.title}; its numbers are below")
    if caption:
        st.caption(caption)
    if with_table:
        draw_table(chart.table, chart.key("table"))
    title = "Files" if with_table else "Numbers and files"
    with st.expander(title, key=chart.key("files" if chart.note else "numbers"), on_change="rerun") as box:
        if box.open:
            if not with_table:
                draw_table(chart.table, chart.key("table"))
            chart_file_buttons(chart)


ROWS_HELP = "One row per student, and one per pass and measure. `exegesis scaffold --out` writes the same file."
SAVE = "Save the learned explainer"
SAVED = (
    "Saved as {} ({}). The method smat now uses it for {} on every page and on the command line. If several are saved, "
    "it uses the newest."
)


def export_area(result: ScaffoldResult, size: int) -> None:
    """Draw the file buttons and the citation. Files are built on demand."""
    kind = result.plan.kind
    st.subheader("Export", anchor=False)
    with st.container(horizontal=True, gap="small", key=key(kind, "keep")):
        for ending, build in FORMATS.items():
            file_button(
                f"Rows, {TITLES[ending]}", f"exegesis-scaffold.{ending}", TYPES[ending], partial(build, result),
                ROWS_HELP, key(kind, f"keep.{ending}"),
            )  # fmt: skip
    cited = citation_html(cite(result.plan), [CITED])
    citation_box(cited, [(f"{REPEATS}:", rows_command(result.plan))], key(kind, "cite"))


def explainer_area(result: ScaffoldResult, size: int) -> None:
    """Draw the button that saves the learned explainer, and a link to use a saved one."""
    kind, teacher = result.plan.kind, result.plan.teacher
    if result.median_student(size) is None or not is_organizer():
        return
    with st.container(horizontal=True, gap="small", vertical_alignment="center", key=key(kind, "explainer")):
        st.button(
            SAVE, key=key(kind, "save"), on_click=_save, args=(kind, result, size), help=SAVE_HELP,
            icon=":material/save:",
        )  # fmt: skip
        page = IMAGES if kind == "image" else TEXT
        if any(one.card.made_by == command_line(result.plan) for one in explainers_for(teacher)):
            st.page_link(
                page.path, label=f"Use it on {page.title}", icon=":material/open_in_new:",
                query_params={"model": [teacher], "method": [SMAT]},
            )  # fmt: skip
    _save_message(kind)


def rows_command(plan: ScaffoldPlan) -> str:
    """The command that writes the same rows."""
    return f"{command_line(plan)} --out rows.csv"


def cite(plan: ScaffoldPlan) -> str:
    """Cite the version, the teacher, the data and the students in one sentence."""
    sizes, seeds = (", ".join(map(str, values)) for values in (plan.train_sizes, plan.seeds))
    return (
        f"Exegesis {product_version()}. Simulability of {plan.teacher} on {plan.dataset}, {len(plan.settings)} "
        f"settings, train sizes {sizes}, seeds {seeds}."
    )


def _save(kind: str, result: ScaffoldResult, size: int) -> None:
    try:
        explainer = save_to_home(median_explainer(result, size))
    except (ExegesisError, OSError) as error:
        message = ["error", describe_error(error)]
    else:
        message = ["note", SAVED.format(explainer.name, explainers_folder(), result.plan.teacher)]
    st.session_state[_message_key(kind)] = message


def _save_message(kind: str) -> None:
    """Show the outcome of the last save, once."""
    message = st.session_state.pop(_message_key(kind), None)
    if message is None:
        return
    if message[0] == "error":
        show_error(message[1])
    else:
        st.html(note_html(message[1]))


def _message_key(kind: str) -> str:
    return f"scaffold_saved_{kind}"
