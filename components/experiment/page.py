"""The page of an experiment, from its title to its export. A page's file only calls `experiment_page(PAGE)`."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Sequence
from dataclasses import MISSING, dataclass
from functools import partial
from typing import Any

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from components.compute import warm_up
from components.controls import options_popover
from components.errors import describe_error, escape_label, show_error
from components.experiment.runs import PlanStatus, error_of, recent_area, status_of, work_area
from components.experiment.state import (
    ExperimentSession,
    ExperimentState,
    Methods,
    Places,
    list_text,
    plan_controls,
    plan_of,
    say_beside,
)
from components.export import REPEATS, citation_box, citation_html, file_button
from components.navigation import PageEntry, heading
from components.numbers import count
from components.styles import use_styles
from engine.errors import ExegesisError
from engine.experiments.base import experiment_of
from engine.experiments.options import options_of
from engine.experiments.run import FORMATS, rows_of
from engine.home import product_version
from engine.registry import all_explainers

TYPES = {"csv": "text/csv", "json": "application/json", "parquet": "application/vnd.apache.parquet"}
TITLES = {"csv": "CSV", "json": "JSON", "parquet": "Parquet"}
ROWS_HELP = "One row per value: the output of `exegesis {} --out`."
Results = Callable[[ExperimentState, PlanStatus, Methods, DeltaGenerator | None], None]
"""Function that draws the results. The last argument contains rarely used controls: see `options_popover`."""
Preview = Callable[[Any, PlanStatus, Methods], None]


def cost_words(plan: Any, status: PlanStatus) -> str:
    """Return the size of the plan in words: number of examples, methods and models."""
    sizes = (
        (len(status.results.sample.indices), "example"),
        (len(plan.methods_with_baselines), "method"),
        (len(plan.models), "model"),
    )
    return ", ".join(count(size, noun) for size, noun in sizes) + "."


@dataclass(frozen=True)
class ExperimentPage:
    """The parts of a page that are specific to its experiment.

    `about`: Markdown below the title. `results`: draws the cached results; by default a table. `cost`, `failed`: see
    `components.experiment.runs.work_area`. `entry`: navigation entry whose heading is drawn. `preview`: draws more
    below the cost, before the first run. `recent`: label of the list of recent runs and the note below it; no list if
    None. `summary`: returns the plan in one line, the label of an expander with the plan's controls. `advice`: returns
    a note below these controls. `lead`: draws controls that come before all others. `fields`: draws controls in rows
    of their own, above the models. `start`: label of the start button; the experiment's name if empty.
    """

    session: ExperimentSession
    about: str
    results: Results | None = None
    cost: Callable[[Any, PlanStatus], str] = cost_words
    failed: str = "Some results of {} failed. They are left out of the numbers."
    entry: PageEntry | None = None
    preview: Preview | None = None
    recent: tuple[str, str] | None = None
    summary: Callable[[Any], str] | None = None
    advice: Callable[[Any], str] | None = None
    lead: Callable[[str], None] | None = None
    fields: Callable[[str], None] | None = None
    start: str = ""


def experiment_page(page: ExperimentPage) -> None:
    """Draw the whole page."""
    if page.entry is not None:
        use_styles()
        heading(page.entry)
    if page.about:
        st.markdown(page.about)
    session = page.session
    kind = session.chosen()
    line = st.container(horizontal=True, gap="small", vertical_alignment="center")
    with line:
        session.switch()
        if page.recent is not None:
            recent_area(session, *page.recent)
    methods = all_explainers(kind)
    loaded, wrong = session.load(kind, methods)
    for one in wrong:
        show_error(one)
    if page.lead is not None:
        with line:
            page.lead(kind)
    options = options_popover(session.key(kind, ""), line)
    if page.fields is not None:
        page.fields(kind)
    state = session.from_widgets(loaded, methods)
    box = st.container()
    if page.summary is not None:
        opened = session.key(kind, "plan")
        st.session_state[opened] = st.session_state.get(opened, False)  # a new label would close it
        box = st.expander(escape_label(page.summary(state.plan)), key=opened, on_change="rerun")
    with box:
        places = plan_controls(session, kind, methods, options)
        if page.advice is not None:
            st.caption(page.advice(state.plan))
    if page.summary is not None:
        places = dict.fromkeys(places, st.empty())  # an error in a closed expander would not be seen
    state = session.from_widgets(loaded, methods)
    session.save(state, loaded)
    try:
        plan = plan_of(state)
    except ExegesisError as error:
        say_beside(places, describe_error(error))
    else:
        _results(page, state, plan, methods, places, options)
    warm_up()  # last: see components/compute.py


def _results(
    page: ExperimentPage, state: ExperimentState, plan: Any, methods: Methods, places: Places,
    options: DeltaGenerator | None,
) -> None:  # fmt: skip
    if wrong := error_of(plan):
        say_beside(places, wrong)
        return
    try:
        status = status_of(plan)
    except Exception as error:
        say_beside(places, describe_error(error))
        return
    preview = None if page.preview is None else partial(page.preview, plan, status, methods)
    work_area(page.session.page, plan, status, page.cost, page.failed, page.start, preview=preview)
    if status.results.found:
        if page.results is not None:
            page.results(state, status, methods, options)
        else:
            _rows_area(page.session, state.kind, status, methods)


def _rows_area(session: ExperimentSession, kind: str, status: PlanStatus, methods: Methods) -> None:
    """Draw the default results: the rows as a table, and the export."""
    own, plan = session.experiment, status.results.plan
    result = status.results.result
    st.dataframe(list(rows_of(result)), hide_index=True, key=session.key(kind, "rows"))
    cited = f"Exegesis {product_version()}. {own.title_of(plan.as_plain())}, seed {plan.seed}, {plan.dtype}."
    export_area(session, kind, result, citation_html(cited, references(plan, methods)))


@dataclass(frozen=True)
class ExportFile:
    """A file in addition to those of every experiment. `type`: media type. `build`: returns the content."""

    label: str
    name: str
    type: str
    build: Callable[[], str | bytes]
    help: str


def export_area(
    session: ExperimentSession, kind: str, result: Any, cited: str, rows_help: str = "",
    summary: tuple[str, str, str] | None = None, more: Sequence[ExportFile] = (),
) -> None:  # fmt: skip
    """Draw the download buttons, the citation and the command. A file is built when its button is pressed.

    `cited`: HTML of the citation. `summary`: label, name and help of the file with the output of `--json`. `more`: more
    files.
    """
    own = session.experiment
    label, name, help = summary or ("Numbers, JSON", f"exegesis-{own.noun}-numbers.json", "The output of `--json`.")
    files = {
        ending: ExportFile(
            f"Rows, {TITLES[ending]}", f"exegesis-{own.noun}.{ending}", TYPES[ending], partial(build, result),
            rows_help or ROWS_HELP.format(own.id),
        )
        for ending, build in FORMATS.items()
    }  # fmt: skip
    files |= {"summary": ExportFile(label, name, TYPES["json"], partial(summary_json, result), help)}
    files |= {one.name: one for one in more}
    st.subheader("Export", anchor=False)
    with st.container(horizontal=True, gap="small", key=session.key(kind, "keep")):
        for key, one in files.items():
            file_button(one.label, one.name, one.type, one.build, one.help, session.key(kind, f"keep.{key}"))
    citation_box(
        cited,
        [(f"{REPEATS}:", command_line(result.plan if own.joint else result.requested_plan))],
        session.key(kind, "keep.cite"),
    )


def summary_json(result: Any) -> str:
    """Return the output of the command with `--json`."""
    plain = experiment_of(result.plan).steps.to_json(result)
    return json.dumps(plain, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def command_line(plan: Any) -> str:
    """Return the command that computes the same plan, without the options that have their default value.

    Order: methods, options marked `first`, integers, other values, switches, method parameters.
    """
    own = experiment_of(plan)
    given = ["exegesis", own.id, "--models", ",".join(plan.models), "--dataset", plan.dataset]
    given += ["--methods", ",".join(plan.methods)] if plan.methods else []
    numbers, texts, switches = list[str](), list[str](), list[str]()
    for name, one in options_of(own.plan).items():
        value = getattr(plan, name)
        if name in ("methods", "params") or one.default is MISSING or value == one.default:
            continue
        if one.hint is bool:
            switches.append(one.flag)
        else:
            text = list_text(value) if one.is_list else str(value)
            (given if one.get("first") else numbers if one.hint is int else texts).extend([one.flag, text])
    for method, params in plan.params.items():
        switches += [part for name, value in params.items() for part in ("--param", f"{method}.{name}={value}")]
    return shlex.join([*given, *numbers, *texts, *switches, "--out", "rows.csv"])


def references(plan: Any, methods: Methods, first: Sequence[str] = ()) -> list[str]:
    """Return the lines of `first`, then a reference for each method."""
    known = [methods[id] for id in plan.methods_with_baselines]
    return [*first, *(f"{one.title} ({one.id}, version {one.version}): {one.citation.rstrip('.')}." for one in known)]
