"""The page of an experiment from its title to its results: `experiment_page(PAGE)` is all that a page's file holds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import streamlit as st

from components.compute import warm_up
from components.errors import describe_error, show_error
from components.experiment.controls import Places, plan_controls, say_beside
from components.experiment.export import export_area, references
from components.experiment.recent import recent_area
from components.experiment.runs import PlanStatus, error_of, status_of, work_area
from components.experiment.session import ExperimentSession
from components.experiment.state import ExperimentState, Methods, plan_of
from components.export import citation_html
from components.navigation import PageEntry, guard, heading
from components.numbers import count
from components.styles import use_styles
from engine.errors import ExegesisError
from engine.home import product_version
from engine.registry import all_explainers

Results = Callable[[ExperimentState, PlanStatus, Methods], None]
Preview = Callable[[Any, PlanStatus, Methods], None]


def cost_words(plan: Any, status: PlanStatus) -> str:
    """The size of the plan: examples, methods and models."""
    sizes = (
        (len(status.results.sample.indices), "example"),
        (len(plan.methods_with_baselines), "method"),
        (len(plan.models), "model"),
    )
    return ", ".join(count(size, noun) for size, noun in sizes) + "."


@dataclass(frozen=True)
class ExperimentPage:
    """`about`: what the experiment is, below the title. `results`: draws what the cache holds; a table if left out.

    `cost`, `failed`: see `components.experiment.runs.work_area`. `preview`: draws what is known before the work, below
    what it costs. `recent`: the label of the list of recent runs and a note below it; no list if left out.
    """

    session: ExperimentSession
    about: str
    results: Results | None = None
    cost: Callable[[Any, PlanStatus], str] = cost_words
    failed: str = "Something failed on {} and is left out of the numbers."
    entry: PageEntry | None = None
    preview: Preview | None = None
    recent: tuple[str, str] | None = None


def experiment_page(page: ExperimentPage) -> None:
    """The whole page."""
    if page.entry is not None:
        guard()
        use_styles()
        heading(page.entry)
    if page.about:
        st.markdown(page.about)
    session = page.session
    kind = session.input_kind.chosen()
    line = st.container(horizontal=True, gap="small", vertical_alignment="center")
    with line:
        session.input_kind.switch()
        if page.recent is not None:
            recent_area(session, *page.recent)
    methods = all_explainers(kind)
    loaded, wrong = session.load(kind, methods)
    for one in wrong:
        show_error(one)
    places = plan_controls(session, kind, methods, line)
    state = session.from_widgets(loaded, methods)
    session.save(state, loaded)
    try:
        plan = plan_of(state)
    except ExegesisError as error:
        say_beside(places, describe_error(error))
    else:
        _results(page, state, plan, methods, places)
    warm_up()  # last: see components/compute.py


def _results(page: ExperimentPage, state: ExperimentState, plan: Any, methods: Methods, places: Places) -> None:
    if wrong := error_of(plan):
        say_beside(places, wrong)
        return
    try:
        status = status_of(plan)
    except Exception as error:
        say_beside(places, describe_error(error))
        return
    preview = None if page.preview is None else partial(page.preview, plan, status, methods)
    work_area(page.session.page, plan, status, page.cost, page.failed, preview=preview)
    if status.results.found:
        if page.results is not None:
            page.results(state, status, methods)
        else:
            _rows_area(page.session, state.kind, status, methods)


def _rows_area(session: ExperimentSession, kind: str, status: PlanStatus, methods: Methods) -> None:
    """For experiments that draw nothing of their own: the rows as a table, and the files."""
    from engine.experiments.run import rows_of

    own, plan = session.experiment, status.results.plan
    result = status.results.result
    st.dataframe(list(rows_of(result)), hide_index=True, key=session.key(kind, "rows"))
    describe_error = f"Exegesis {product_version()}. {own.title_of(plan.as_plain())}, seed {plan.seed}, {plan.dtype}."
    export_area(session, kind, result, citation_html(describe_error, references(plan, methods)))
