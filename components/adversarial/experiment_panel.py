"""Attacks on many examples: the job, bars with intervals by method and objective, the examples behind a bar, files."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial

import altair as alt
import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from components.adversarial.before_after import sentences_html, use_adversarial_styles
from components.adversarial.controls import MANY, key, open_example, put
from components.adversarial.descriptions import (
    CITED,
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
from components.adversarial.export import cite_experiment, experiment_command
from components.adversarial.state import MEASURES, WHICH, AdversarialState
from components.charts.files import CaptionedChart, ChartCaption, chart_file_buttons
from components.charts.frame import PICKED, AxisRange, ChartFrame, blank_chart, linear_axis
from components.charts.scores import GROUP, bar_chart, round_number
from components.controls import PERSIST
from components.errors import describe_error, escape_label, show_error, show_note
from components.experiment.page import TYPES, summary_json
from components.experiment.runs import PlanStatus, error_of, skip_reasons_html, status_of, work_area
from components.export import REPEATS, citation_box, citation_html, file_button
from components.inputs.choices import Opened
from components.job_panel import FINDS
from components.numbers import count, percent, plain
from components.palette import Theme, browser_theme
from components.tables import draw_table
from engine.attacks.experiment_result import METRICS, TRANSFERRED, AttackExperimentResult, AttackRow, AttackScore
from engine.attacks.plan import AttackPlan
from engine.errors import ExegesisError
from engine.evaluation.result import ExampleFacts, format_reasons
from engine.experiments.run import FORMATS
from engine.experiments.sample import Sample
from engine.format import shorten
from engine.registry import Explainer
from engine.request import Example

PAGE = "adversarial_many"
"""Prefix of the widget keys of the job."""
START = "Attack all examples"
LONGEST = 70
ROWS_HELP = "One row per model, example, method, objective and measure: the output of `exegesis attack --out`."
SCORES_HELP = "All means with intervals: the output of `exegesis attack --json`."
BESIDE = 2
"""Number of charts side by side."""


@dataclass(frozen=True)
class ExperimentMeans(CaptionedChart):
    """Means of the chosen measure for the maps that `ManyExamples.of` selects."""

    state: AdversarialState
    result: AttackExperimentResult
    frame: ChartFrame

    @property
    def plan(self) -> AttackPlan:
        return self.result.plan

    @cached_property
    def scores(self) -> list[AttackScore]:
        own = (score for score in self.result.scores if score.key.metric == self.state.many.measure)
        return [score for score in own if score.key.attacked == (self.attacked or score.key.method)]

    @property
    def attacked(self) -> str:
        """The method after whose attacks all methods are shown; empty to show each after its own attacks."""
        return self.state.many.of if self.state.many.of in self.plan.methods and self.plan.transfer else ""

    @property
    def methods_with_baselines(self) -> Sequence[str]:
        """The measured methods."""
        if not self.attacked:
            return self.plan.methods
        return (self.attacked, *self.plan.transfer_methods(self.attacked))

    @property
    def models(self) -> list[str]:
        """The models with a mean."""
        return [model for model in self.plan.models if self.model_scores(model)]

    def model_scores(self, model: str) -> list[AttackScore]:
        return [score for score in self.scores if score.key.model == model]

    @property
    def file(self) -> str:
        return f"exegesis-attack-{self.state.many.measure.replace('_', '-')}"

    @property
    def table(self) -> pd.DataFrame:
        return means_table(self.scores, self.frame.titles)

    def key(self, kind: str) -> str:
        """The key of a widget."""
        return key(self.state.kind, f"many.keep.{kind}")

    def chart(self, theme: Theme | None = None) -> alt.LayerChart:
        """All models in one chart, for files."""
        frame = replace(self.frame, theme=theme) if theme else self.frame
        return means_chart(
            self.scores, frame, self.methods_with_baselines, self.plan.objectives, axis_span(self.scores), self.models
        )

    def caption(self) -> ChartCaption:
        """Title, citation and command for the file."""
        what = f"{METRICS[self.state.many.measure].title} under attack"
        of = f" on {self.frame.title(self.attacked)}" if self.attacked else ""
        title = f"{what}{of}, {', '.join(self.models)}, {self.plan.dataset}"
        return ChartCaption(title, [cite_experiment(self.plan), f"{REPEATS}:"], [experiment_command(self.plan)])


def means_chart(
    scores: Sequence[AttackScore],
    frame: ChartFrame,
    company: Sequence[str],
    objectives: Sequence[str],
    span: AxisRange,
    models: Sequence[str] = (),
) -> alt.LayerChart:
    """Draw bars of one metric: a group per objective, a bar per method.

    `models`: if there are several, each gets its own groups.
    """
    scored = [score for score in scores if score.value is not None]
    if not scored:
        return blank_chart(frame)
    several = len(models) > 1
    ordered = sorted(
        scored,
        key=lambda score: (models.index(score.key.model) if several else 0, objectives.index(score.key.objective)),
    )
    table = pd.DataFrame([_bar_record(score, frame, several) for score in ordered])
    metric = METRICS[scored[0].key.metric]
    unit = "" if metric.unit in metric.title.lower() else f" ({metric.unit})"
    return bar_chart(table, company, frame, linear_axis([f"{metric.title}{unit}"], span), {"group": "Objective"})


def axis_span(scores: Iterable[AttackScore]) -> AxisRange:
    """Return the axis range of charts that are compared; bars start at 0."""
    ends = [end for one in scores if one.value is not None for end in (one.value, *(one.interval or ()))]
    low, high = min([0.0, *ends]), max([0.0, *ends])
    room = 0.04 * (high - low) or 0.5
    return low - (room if low < 0 else 0.0), high + (room if high > 0 or low == 0 else 0.0)


def means_table(scores: Sequence[AttackScore], titles: Mapping[str, str]) -> pd.DataFrame:
    """One row per mean, including those without a value."""
    return pd.DataFrame([_table_row(score, titles) for score in scores])


def _bar_record(score: AttackScore, frame: ChartFrame, named: bool) -> dict[str, object]:
    """Build the chart record of a mean; its `slice` is the objective, which identifies a clicked bar.

    `named`: whether the name of the group includes the model.
    """
    low, high = score.interval or (None, None)
    key = score.key
    return {
        "model": key.model, "method": key.method, "metric": key.metric, "percent": 0, "slice": key.objective,
        GROUP: f"{key.model}, {OBJECTIVE_TITLES[key.objective].lower()}" if named else OBJECTIVE_TITLES[key.objective],
        "name": frame.title(key.method), "value": score.value,
        "low": low, "high": high, "shown": plain(score.value or 0.0), "interval": _interval(score),
        "examples": f"{score.n:,}", "skipped": format_reasons(score.skipped) or "none",
    }  # fmt: skip


def _interval(score: AttackScore) -> str:
    return score.doubt or " to ".join(map(plain, score.interval or ()))


def _table_row(score: AttackScore, titles: Mapping[str, str]) -> dict[str, object]:
    low, high = (None if score.doubt else score.interval) or (None, None)
    key = score.key
    return {
        "Method": titles.get(key.method, key.method),
        "Objective": OBJECTIVE_TITLES[key.objective],
        "Model": key.model,
        "Measure": METRICS[key.metric].title,
        "Mean": round_number(score.value),
        "95% from": round_number(low),
        "95% to": round_number(high),
        "Examples": score.n,
        "Without a value": sum(score.skipped.values()),
    }


def experiment_area(
    state: AdversarialState, methods: Mapping[str, Explainer], opened: Opened, answer: DeltaGenerator
) -> None:
    """Draw the job and its results, or an error in the plan. `answer`: place for the summary."""
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
    """Describe the number of attacks to compute."""
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
    """Draw the choice of maps: each attacked method's own, or those of all methods after attacks on one."""
    name = key(state.kind, f"{MANY}of")
    known = ["", *result.plan.methods]
    if state.many.of not in known:
        st.session_state[name] = ""
    st.selectbox(
        "Maps", known, key=name, width=300, persist_state=PERSIST, help=TRANSFER,
        format_func=lambda id: f"All, after attacks on {titles.get(id, id)}" if id else OWN_MAPS,
    )  # fmt: skip


def _charts(state: AdversarialState, means: ExperimentMeans) -> None:
    """Draw a chart per model on the same axis, two side by side; on narrow screens they are stacked."""
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
    """Return the examples behind a bar, highest value first. `attacked`: the attacked method; empty for the bar's."""
    model, method, objective = picked
    rows = [
        row for row in result.rows
        if (row.key.model, row.key.method, row.key.attacked, row.key.objective, row.key.metric)
        == (model, method, attacked or method, objective, measure)
    ]  # fmt: skip
    return sorted(rows, key=lambda row: (-row.value, row.example))


def _examples_area(state: AdversarialState, sample: Sample, means: ExperimentMeans, opened: Opened) -> None:
    """Draw the examples behind a bar, and a button that shows one in the panel above."""
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
    """Label an example with its value, index, prediction before the attack, and text.

    `excluded`: whether it is excluded from the mean.
    """
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
    return shorten(example.text if isinstance(example, Example) else candidate.label or "", LONGEST)


def experiment_export_area(state: AdversarialState, result: AttackExperimentResult) -> None:
    """Draw download buttons of rows and means, and the citation."""
    with st.container(horizontal=True, gap="small"):
        for ending, write in FORMATS.items():
            name = f"exegesis-attack.{ending}"
            file_button(
                f"Rows, {ending.upper()}", name, TYPES[ending], partial(write, result), ROWS_HELP,
                key(state.kind, f"many.rows.{ending}"),
            )  # fmt: skip
        file_button(
            "Means, JSON", "exegesis-attack-means.json", TYPES["json"], partial(summary_json, result), SCORES_HELP,
            key(state.kind, "many.means"),
        )  # fmt: skip
    citation_box(
        citation_html(cite_experiment(result.plan), [CITED]),
        [(f"{REPEATS}:", experiment_command(result.plan))],
        key(state.kind, "many.cite"),
    )
