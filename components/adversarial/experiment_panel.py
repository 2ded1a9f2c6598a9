"""Attacks on many examples: the job, bars with intervals by method and objective, the examples behind a bar."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from components.adversarial.before_after import sentences_html, use_adversarial_styles
from components.adversarial.charts import axis_span, means_chart
from components.adversarial.controls import MANY, Opened, key, open_example, put
from components.adversarial.descriptions import (
    MANY_EMPTY,
    MANY_FAILED,
    OBJECTIVE_TITLES,
    OWN_MAPS,
    SIGN,
    TRANSFER,
    TRANSFER_LIMITS,
    describe_experiment,
    describe_starts,
    excluded_lines,
    summarize_fooled,
    summarize_means,
)
from components.adversarial.export import ExperimentMeans, experiment_export_area
from components.adversarial.state import MEASURES, WHICH, AdversarialState
from components.charts.files import chart_file_buttons
from components.charts.frame import PICKED, AxisRange, ChartFrame
from components.controls import PERSIST
from components.errors import describe_error, escape_label, show_error, show_note
from components.experiment.runs import PlanStatus, error_of, skip_reasons_html, status_of, work_area
from components.job_panel import FINDS
from components.numbers import count, percent, plain
from components.palette import browser_theme
from components.tables import draw_table
from engine.attacks.experiment_result import METRICS, TRANSFERRED, AttackExperimentResult, AttackRow
from engine.attacks.plan import AttackPlan
from engine.errors import ExegesisError
from engine.evaluation.result import ExampleFacts
from engine.experiments.sample import Sample
from engine.registry import Explainer
from engine.request import Example

PAGE = "adversarial_many"
"""Prefix of the widget keys of the job."""
START = "Attack all examples"
LONGEST = 70
BESIDE = 2
"""Number of charts side by side."""


def experiment_area(
    state: AdversarialState, methods: Mapping[str, Explainer], opened: Opened, answer: DeltaGenerator
) -> None:
    """The job and its results, or an error in the plan. `answer`: the place of the sentences that answer first."""
    if not state.many.methods:
        show_note("No method is chosen. Choose one or more.")
        return
    try:
        plan = state.plan()
        if error := error_of(plan):
            show_error(error)
            return
        status = status_of(plan)
    except Exception as error:
        show_error(describe_error(error))
        return
    work_area(PAGE, plan, status, describe_experiment_cost, MANY_FAILED, START, MANY_EMPTY)
    if status.results.found:
        _results_area(state, status.results.sample, status.results.found[0], methods, opened, answer)


def describe_experiment_cost(plan: AttackPlan, status: PlanStatus) -> str:
    """The number of attacks to compute."""
    size = len(status.results.sample.indices)
    number = size * len(plan.models) * len(plan.methods) * len(plan.objectives)
    counts = [count(size, "example"), count(len(plan.methods), "method"), count(len(plan.objectives), "objective"),
             count(len(plan.models), "model")]  # fmt: skip
    params = plan.attack_params(plan.objectives[0])
    others = size * len(plan.models) * sum(len(plan.transfer_methods(method)) for _, method in plan.pairs)
    more = f", then {count(others, 'map')} of other methods" if others else ""
    attacks = f"{count(number, 'attack')}{describe_starts(params.starts)}, at most {count(params.steps, 'step')}"
    return f"{', '.join(counts)}: {attacks}{more}. {FINDS}"


def _results_area(
    state: AdversarialState, sample: Sample, result: AttackExperimentResult, methods: Mapping[str, Explainer],
    opened: Opened, answer: DeltaGenerator,
) -> None:  # fmt: skip
    titles = {id: method.title for id, method in methods.items()}
    _view_controls(state, result, titles)
    which = state.many.which
    selected = result if which == "all" else result.subset(lambda one: one.right is (which == "right"))
    means = ExperimentMeans(state, selected, ChartFrame(titles, browser_theme()))
    if not means.scores:
        show_note(f"No example is {WHICH[which].lower()}. Choose All.")
        return
    use_adversarial_styles()
    answer.html(sentences_html(summarize_fooled(selected.scores, titles, which), list(result.problems(titles))))
    answer.caption(describe_experiment(result, len(sample.indices)))
    _charts(state, means)
    for line in result.notes:
        show_note(line)
    _examples_area(state, sample, means, opened)
    with st.expander("Numbers and files", key="adversarial.many.numbers", on_change="rerun") as box:
        if box.open:
            draw_table(means.table, "adversarial.means")
            chart_file_buttons(means)
            experiment_export_area(state, result)
    lines = excluded_lines(result, titles)
    if lines:
        with st.expander(f"Excluded: {count(len(lines), 'reason')}", key="adversarial.left_out"):
            st.html(skip_reasons_html(lines))


def _view_controls(state: AdversarialState, result: AttackExperimentResult, titles: Mapping[str, str]) -> None:
    with st.container(horizontal=True, gap="small", vertical_alignment="bottom"):
        st.selectbox(
            "Measure", MEASURES, key=key(state.kind, f"{MANY}measure"), width=300, persist_state=PERSIST,
            format_func=lambda id: METRICS[id].title, help=METRICS[state.many.measure].about,
        )  # fmt: skip
        if result.plan.transfer:
            _maps_control(state, result, titles)
        st.segmented_control(
            "Include examples", list(WHICH), key=key(state.kind, f"{MANY}which"), required=True,
            format_func=WHICH.__getitem__, persist_state=PERSIST,
        )  # fmt: skip


def _maps_control(state: AdversarialState, result: AttackExperimentResult, titles: Mapping[str, str]) -> None:
    """The choice of maps: each attacked method's own, or those of all methods after attacks on one."""
    name = key(state.kind, f"{MANY}of")
    known = ["", *result.plan.methods]
    if state.many.of not in known:
        st.session_state[name] = ""
    st.selectbox(
        "Maps", known, key=name, width=300, persist_state=PERSIST, help=TRANSFER,
        format_func=lambda id: f"All, after attacks on {titles.get(id, id)}" if id else OWN_MAPS,
    )  # fmt: skip


def _charts(state: AdversarialState, means: ExperimentMeans) -> None:
    """A chart per model, on the same axis, two side by side; on narrow screens below each other."""
    st.caption(METRICS[state.many.measure].about)
    span = axis_span(means.scores)
    for start in range(0, len(means.models), BESIDE):
        columns = st.columns(min(BESIDE, len(means.models)), gap="medium")
        for place, model in zip(columns, means.models[start : start + BESIDE], strict=False):
            with place:
                _chart(state, means, model, span)
    if means.attacked and state.many.measure not in TRANSFERRED:
        show_note(TRANSFER_LIMITS)
    st.caption(summarize_means(means.scores, means.frame.titles))


def _chart(state: AdversarialState, means: ExperimentMeans, model: str, span: AxisRange) -> None:
    st.markdown(f"**{escape_label(model)}**")
    name = key(state.kind, f"view.bars.{model}")
    st.altair_chart(
        means_chart(means.model_scores(model), means.frame, means.methods_with_baselines, means.plan.objectives, span),
        key=name, on_select=partial(_pick, state.kind, name), selection_mode=PICKED,
        alt=f"{METRICS[state.many.measure].title} by method and objective on {model}; the numbers are below",
    )  # fmt: skip


def _pick(kind: str, name: str) -> None:
    """List the examples behind the clicked bar; a click outside all bars clears the choice."""
    points = st.session_state[name].selection.get(PICKED) or [{}]
    bar = [points[-1].get(part) for part in ("model", "method", "slice")]
    put(kind, f"{MANY}picked", [str(part) for part in bar] if all(bar) else [])


def examples_of_bar(
    result: AttackExperimentResult, picked: Sequence[str], measure: str, attacked: str = ""
) -> list[AttackRow]:
    """The examples behind a bar, highest value first. `attacked`: the attacked method; empty for that of the bar."""
    model, method, objective = picked
    rows = [
        row for row in result.rows
        if (row.key.model, row.key.method, row.key.attacked, row.key.objective, row.key.metric)
        == (model, method, attacked or method, objective, measure)
    ]  # fmt: skip
    return sorted(rows, key=lambda row: (-row.value, row.example))


def _examples_area(state: AdversarialState, sample: Sample, means: ExperimentMeans, opened: Opened) -> None:
    """The examples behind a bar, and a button that shows one above."""
    result, titles = means.result, means.frame.titles
    bars = [(model, method, objective) for model in result.plan.models for objective in result.plan.objectives
            for method in means.methods_with_baselines]  # fmt: skip
    picked = state.many.picked if state.many.picked in bars else bars[0]
    name = key(state.kind, "view.bar")
    st.session_state[name] = picked
    with st.container(border=True, key="adversarial_examples"):
        st.selectbox(
            "Examples behind a bar", bars, key=name, width=480, persist_state=PERSIST,
            format_func=lambda bar: f"{titles.get(bar[1], bar[1])}, {OBJECTIVE_TITLES[bar[2]].lower()}, {bar[0]}",
            on_change=lambda: put(state.kind, f"{MANY}picked", list(st.session_state[name])),
        )  # fmt: skip
        rows = examples_of_bar(result, picked, state.many.measure, means.attacked)
        if not rows:
            show_note("No example has a value here. Choose another bar.")
            return
        facts = {one.example: one for one in result.facts if one.model == picked[0]}
        with st.container(horizontal=True, gap="small", vertical_alignment="bottom"):
            excluded = {(skip.key, skip.example) for skip in result.excluded}
            labels = {
                row.example: _label(row, facts.get(row.example), sample, (row.key, row.example) in excluded)
                for row in rows
            }
            _open_example_control(state, labels, picked, opened)


def _open_example_control(
    state: AdversarialState, labels: Mapping[int, str], bar: Sequence[str], opened: Opened
) -> None:
    model, method, objective = bar
    attacked = state.many.of or method
    at = st.selectbox(
        "Example, highest value first", list(labels), key=key(state.kind, "view.example"), width=560,
        format_func=labels.__getitem__,
    )  # fmt: skip
    st.button(
        "Show above", key=key(state.kind, "view.open"), icon=":material/arrow_upward:",
        on_click=partial(open_example, state, opened, model, int(at), attacked, objective),
    )  # fmt: skip


def _label(row: AttackRow, fact: ExampleFacts | None, sample: Sample, excluded: bool) -> str:
    """Value, index, prediction before the attack, and text. `excluded`: not included in the mean."""
    parts = [plain(row.value), f"#{row.example}", *([f"{SIGN} excluded"] * excluded)]
    if fact is not None:
        parts.append(f"{fact.predicted} {percent(fact.confidence)}{', wrong' if fact.right is False else ''}")
    return " · ".join([*parts, _example_text(sample, row.example)])


def _example_text(sample: Sample, index: int) -> str:
    try:
        candidate = sample.source.read(index)
    except ExegesisError:
        return ""
    example = candidate.input
    words = " ".join(example.text.split()) if isinstance(example, Example) else candidate.label or ""
    return words if len(words) <= LONGEST else f"{words[: LONGEST - 1]}…"
