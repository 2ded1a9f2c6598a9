"""The Randomization page: its cost, the answer, charts and verdicts for each model or for one method, and files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from html import escape

import altair as alt
import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from components.charts.files import CaptionedChart, ChartCaption, chart_file_buttons
from components.charts.frame import PICKED, AxisRange, ChartFrame
from components.errors import escape_label, show_note
from components.experiment.page import ExperimentPage, command_line, export_area, references
from components.experiment.runs import PlanStatus, is_timed_here, seconds_of, skip_reasons_html
from components.experiment.state import ExperimentState, Methods
from components.export import REPEATS, citation_html
from components.navigation import RANDOMIZATION
from components.numbers import count, hundredths, rough_duration
from components.palette import Theme, browser_theme
from components.randomization.charts import (
    class_chart,
    likeness_chart,
    models_chart,
    numbers_table,
    prediction_chart,
    span_of,
)
from components.randomization.stage_maps import stage_maps_area
from components.randomization.view import (
    MEASURES,
    NO_VERDICT,
    SESSION,
    DrawnModel,
    chart_options,
    cite,
    compared_checks,
    describe_plan,
    drawn_models,
    examples_note,
    measure_control,
    methods_drawn,
    offered_checks,
)
from components.styles import use_sheet
from components.tables import draw_table
from components.widgets.patch_map import use_picture_styles
from engine.format import count_text, join_names
from engine.models.summary import block_count
from engine.randomization.curves import (
    FEW,
    HIGH,
    NEAR_ZERO,
    UNMOVED,
    Curve,
    CurvePoint,
    Verdict,
    curves_of,
    verdicts_of,
)
from engine.randomization.plan import MODE_TITLES, MODES, RandomizationPlan
from engine.randomization.result import FLAT_BEFORE, not_applicable, stages_of

ABOUT = "The model's weights are randomized block by block. An explanation that depends on the model should change."
CAUTION = (
    "The check can show that a method fails, but not that it is faithful: a map that changes is not necessarily right "
    "(Adebayo et al., 2018, Sanity checks for saliency maps)."
)
APPLIES = (
    "Methods that use only the model's predictions, such as LIME and SHAP, change whenever the predictions do. The "
    "thesis (section 4.1.4) leaves them out."
)
ZERO = (
    "Gradient sums over the embedding dimensions. The sum is zero on models with layer norm, so such a map has no "
    "ranking. Use Gradient L2 norm instead."
)
FAILED = "Some maps failed on {} and are not included. The reasons are listed at the end of this page."
CITED = (
    "Sanity checks: J. Adebayo, J. Gilmer, M. Muelly, I. Goodfellow, M. Hardt and B. Kim (2018), Sanity checks for "
    "saliency maps, NeurIPS."
)
TIMED = "Takes about {}, estimated from an earlier run on this device."
FOUND = "Cached maps are not computed again."
ROWS_HELP = "One row per model, stage, seed, example, method and measure: the output of `exegesis randomize --out`."
CURVES_HELP = "Every mean with its interval, and the verdicts: the output of `exegesis randomize --json`."
MEANS = "Means over {} and {}; bands are 95% intervals. Click a point to see its maps below."
MEANS_HELP = (
    "Each correlation compares the scores of all {} of an example with those of the original map. A band has no width "
    "where all examples agree."
)
UNITS = {"text": "tokens", "image": "patches"}
JUDGED = (
    "Verdicts always use the rank correlation in the cascading mode, of signed and of absolute scores. By its 95% "
    f"interval, a correlation up to {NEAR_ZERO} counts as zero, one from {HIGH} on as high, and one from {UNMOVED} on "
    "as unchanged."
)
VERDICTS = {
    "at_once": "falls at once",
    "falls": "falls to zero or below",
    "partly": "falls partly",
    "high": "stays high",
    "invariant": "hardly changes",
    "unsure": "undecided",
    "no_order": "no correlation",
    "same_model": "not tested: the predictions did not change",
    "baseline": "baseline",
}
"""Label of each kind of verdict."""
MARKS = {True: ("✓", "depends on the model"), False: ("✗", "depends too little on the model"), None: ("·", "")}
NOT_MEANT = "check does not apply"
MOST_NAMED = 6
"""Maximum number of methods that a sentence names; the others are counted."""
PASSES, SIGNS, NOT_APPLICABLE = "passes", "signs", "not_applicable"
SUMMARIES = {
    PASSES: ("depends", "depend", " on the model ({correlation} falls to {values})."),
    SIGNS: (
        "depends", "depend",
        " on the model only partly: the signs become random, but the order of absolute scores stays similar "
        "({correlation} {values}).",
    ),
    "partly": ("depends", "depend", " on the model only partly ({correlation} falls to {values})."),
    "high": ("stays", "stay", " similar ({correlation} {values}) and so mostly shows the input."),
    "invariant": (
        "hardly changes", "hardly change",
        f" ({{correlation}} at least {UNMOVED} at every stage; at the last {{values}}).",
    ),
    "no_order": ("cannot", "cannot", " be judged: no map has a rank correlation with the original."),
    "same_model": ("cannot", "cannot", " be judged: most predictions did not change when the model was randomized."),
    NOT_APPLICABLE: ("is", "are", " not judged: the check is not for methods that use only the model's predictions."),
}  # fmt: skip
"""Singular verb, plural verb and the rest of the sentence for each outcome, in the order of the sentences."""


def results_area(state: ExperimentState, status: PlanStatus, methods: Methods, options: DeltaGenerator | None) -> None:
    """Draw the answer, the charts, the maps of one example, and the export."""
    results, titles = status.results, {id: method.title for id, method in methods.items()}
    offered = offered_checks(results.plan, status.runs)
    others, missing = compared_checks(state.view.beside, offered, status.runs)
    models = drawn_models([results, *others])
    use_picture_styles()
    use_sheet("randomization")
    for sentence in (*missing, *(f"{one.name}: {note}" for one in models for note in one.found.notes)):
        show_note(sentence)
    names, plans = [one.name for one in models], {mark: describe_plan(plan) for mark, plan in offered.items()}
    method = chart_options(state, names, methods_drawn(models), titles, plans, options)
    curves_area(state, models, method, titles)
    flat = any(FLAT_BEFORE in one.found.reasons for one in models)
    with st.expander("What the check can show", key="randomization.limits"):
        st.markdown(" ".join([CAUTION, APPLIES, *([ZERO] if flat else [])]))
    stage_maps_area(state, status, models, methods, options)
    if lines := left_out(models, titles):
        with st.expander(f"Left out: {count(len(lines), 'reason')}", key="randomization.left_out"):
            st.html(skip_reasons_html(lines))
    cited = citation_html(cite(results.plan), references(results.plan, methods, [CITED]))
    curves = "Curves, JSON", "exegesis-randomization-curves.json", CURVES_HELP
    export_area(SESSION, state.kind, results.result, cited, ROWS_HELP, curves)


@dataclass(frozen=True)
class Panel(CaptionedChart):
    """The charts of one mode: a line for each method of one model, or for each model if `method` is given.

    `curves`: all curves of the models. `span`: range of the similarity axis.
    """

    state: ExperimentState
    mode: str
    curves: Sequence[Curve]
    frame: ChartFrame
    span: AxisRange
    models: Sequence[DrawnModel]
    method: str = ""

    @property
    def name(self) -> str:
        """The method and the models."""
        names = ", ".join(one.name for one in self.models)
        return f"{self.frame.title(self.method)}, {names}" if self.method else names

    @property
    def plans(self) -> list[RandomizationPlan]:
        """The plans of the models."""
        return [one.plan for one in {id(model.results): model.results for model in self.models}.values()]

    @property
    def likeness(self) -> list[Curve]:
        """The curves of the chosen measure."""
        methods = [self.method] if self.method else self.frame.drawn_methods(self.plans[0].methods_with_baselines)
        measured = [one for one in self.curves if one.metric == self.state.view.measure and one.mode == self.mode]
        return [one for one in measured if one.method in methods]

    @property
    def prediction(self) -> list[Curve]:
        """The curves of the predictions; with several models only the probability."""
        below = [one for one in self.curves if not one.method and one.mode == self.mode]
        return [one for one in below if not self.method or one.metric == "probability"]

    @property
    def table(self) -> pd.DataFrame:
        return numbers_table([*self.likeness, *self.prediction], self.frame.titles, models=bool(self.method))

    @property
    def file(self) -> str:
        return f"exegesis-randomization-{self.mode}"

    def key(self, kind: str) -> str:
        """The key of a widget of this chart."""
        return SESSION.key(self.state.kind, f"{kind}.{self.name}.{self.mode}")

    def caption(self) -> ChartCaption:
        what = MEASURES[self.state.view.measure].lower()
        title = f"{MODE_TITLES[self.mode]} randomization, {what}, {self.name}"
        return ChartCaption(title, [*map(cite, self.plans), f"{REPEATS}:"], [command_line(plan) for plan in self.plans])

    def chart(self, theme: Theme | None = None) -> alt.LayerChart:
        frame = replace(self.frame, theme=theme) if theme else self.frame
        if self.method:
            return models_chart(self.likeness, frame, self.span)
        return likeness_chart(self.likeness, frame, self.plans[0].methods_with_baselines, self.span)

    def prediction_chart(self) -> alt.LayerChart | None:
        """The chart of the predictions; None if one of several models is a regression (no probability)."""
        regression = any(one.found.regression for one in self.models)
        if not self.method:
            return prediction_chart(self.prediction, self.frame, regression)
        return None if regression else class_chart(self.prediction, self.frame)

    def draw(self) -> None:
        """Draw the chart of the maps."""
        name, title = self.key("chart"), MODE_TITLES[self.mode]
        measure = MEASURES[self.state.view.measure].lower()
        st.altair_chart(
            self.chart(), key=name, on_select=partial(_pick, self.state.kind, name), selection_mode=PICKED,
            alt=f"{title} randomization of {self.name}: {measure} by stage; the numbers are in the table below",
        )  # fmt: skip

    def draw_details(self) -> None:
        """Draw the chart of the predictions, and the numbers and files in an expander."""
        below = self.prediction_chart()
        if below is not None:
            words = f"Predictions of {self.name} by stage of the {MODE_TITLES[self.mode].lower()} randomization"
            st.altair_chart(below, key=self.key("prediction"), alt=words)
        with st.expander(
            f"Numbers and files: {MODE_TITLES[self.mode].lower()}", key=self.key("numbers"), on_change="rerun"
        ) as box:
            if box.open:
                draw_table(self.table, self.key("table"))
                chart_file_buttons(self)


def curves_area(
    state: ExperimentState, models: Sequence[DrawnModel], method: str, titles: Mapping[str, str]
) -> None:  # fmt: skip
    """Draw the answer, the charts and the verdicts of each model, or of one method on all models if it is given."""
    alone = not method and any(one.name == state.view.model for one in models)
    drawn = [one for one in models if not alone or one.name == state.view.model]
    curves = {one.name: named_curves(one) for one in drawn}
    measured = [curve for own in curves.values() for curve in own if curve.metric == state.view.measure]
    span = span_of([curve for curve in measured if curve.method == method] or measured)
    controls = partial(_chart_controls, state.kind, drawn)
    if method:
        method_area(state, method, drawn, curves, titles, span, controls)
        return
    for one in drawn:
        if len(drawn) > 1:
            st.markdown(f"**{escape_label(one.name)}**, {count(one.found.blocks, 'block')}")
        _model_area(state, one, curves[one.name], titles, span, controls if one is drawn[0] else None)


def named_curves(model: DrawnModel) -> list[Curve]:
    """Return the curves of a model under its unique name, which clicks return."""
    return [replace(curve, model=model.name) for curve in curves_of(model.found, model.results.plan.seed)]


def _chart_controls(kind: str, models: Sequence[DrawnModel]) -> None:
    """Draw the choice of the measure and the caption of the charts."""
    measure_control(kind)
    st.caption(describe_means(models), help=MEANS_HELP.format(UNITS[kind]))


def describe_means(models: Sequence[DrawnModel]) -> str:
    """Return the caption of the charts, with the numbers of examples and randomizations."""
    examples = [len(one.found.examples) for one in models]
    seeds = [len(one.found.seeds) for one in models]
    return MEANS.format(_range(examples, "example"), _range(seeds, "randomization"))


def _range(numbers: Sequence[int], noun: str) -> str:
    first, last = min(numbers), max(numbers)
    return count(last, noun) if first == last else f"{first:,} to {count(last, noun)}"


def _model_area(
    state: ExperimentState, model: DrawnModel, curves: Sequence[Curve], titles: Mapping[str, str], span: AxisRange,
    controls: Callable[[], None] | None,
) -> None:  # fmt: skip
    plan = model.results.plan
    verdicts = verdicts_of(model.found, plan.kind, plan.seed)
    named = [(titles.get(one.method, one.method), one) for one in verdicts]
    if MODES[0] in plan.modes:
        st.html(summary_html([(name, one, signed_and_absolute(curves, one.method)) for name, one in named], plan.kind))
    else:
        show_note(NO_VERDICT)
    frame = _frame(state, titles, plan.methods_with_baselines)
    _draw_modes([Panel(state, mode, curves, frame, span, [model]) for mode in plan.modes], controls)
    if MODES[0] in plan.modes:
        st.html(verdicts_html(named, plan.kind, f"Verdicts on {model.name}"))


def method_area(
    state: ExperimentState, method: str, models: Sequence[DrawnModel], curves: Mapping[str, Sequence[Curve]],
    titles: Mapping[str, str], span: AxisRange, controls: Callable[[], None] | None = None,
) -> None:  # fmt: skip
    """Draw the answer, charts and verdicts of one method. `curves`: of each model by its name."""
    title = titles.get(method, method)
    judged = method_verdicts(method, models, state.kind)
    if judged:
        rows = [(f"{title} on {name}", one, signed_and_absolute(curves[name], method)) for name, one in judged]
        st.html(summary_html(rows, state.kind))
    else:
        show_note(NO_VERDICT)
    every = [one for model in models for one in curves[model.name]]
    frame = _frame(state, titles, (method,))
    _draw_modes([Panel(state, mode, every, frame, span, models, method) for mode in MODES], controls)
    if judged:
        st.html(verdicts_html(judged, state.kind, f"Verdicts on {title}"))


def _draw_modes(panels: Sequence[Panel], controls: Callable[[], None] | None) -> None:
    """Draw the charts of all modes that have curves, side by side, then their controls and their details."""
    there = [one for one in panels if any(curve.mode == one.mode for curve in one.curves)]
    for place, panel in zip(st.columns(len(there), gap="medium"), there, strict=True):
        with place:
            panel.draw()
    if controls is not None:
        controls()
    for place, panel in zip(st.columns(len(there), gap="medium"), there, strict=True):
        with place:
            panel.draw_details()


def method_verdicts(method: str, models: Sequence[DrawnModel], kind: str) -> list[tuple[str, Verdict]]:
    """Return the verdict on each model by its name; models without the cascading mode or the method have none."""
    each = ((one.name, verdicts_of(one.found, kind, one.results.plan.seed)) for one in models)
    return [(name, verdict) for name, verdicts in each for verdict in verdicts if verdict.method == method]


Judgment = tuple[str, Verdict, tuple[CurvePoint | None, CurvePoint | None]]
"""A name, its verdict, and its last points of the signed and the absolute rank correlation."""


def signed_and_absolute(curves: Sequence[Curve], method: str) -> tuple[CurvePoint | None, CurvePoint | None]:
    """Return a method's last points with a value in the cascading mode, by signed and by absolute scores."""
    signed, absolute = (
        [
            point
            for curve in curves
            if (curve.mode, curve.method, curve.metric) == (MODES[0], method, metric)
            for point in curve.points
            if point.value is not None
        ]
        for metric in ("spearman", "spearman_abs")
    )
    return signed[-1] if signed else None, absolute[-1] if absolute else None


def summarize_verdicts(judgments: Sequence[Judgment], kind: str) -> list[str]:
    """Return one sentence for each outcome, with the final correlations; baselines are left out."""
    judged = [one for one in judgments if one[1].kind != "baseline"]
    groups: dict[str, list[Judgment]] = {}
    for one in judged:
        groups.setdefault(_outcome(one, kind), []).append(one)
    sentences = [_sentence(outcome, groups[outcome]) for outcome in SUMMARIES if outcome in groups]
    if undecided := groups.get("unsure"):
        names, n = _names([name for name, *_ in undecided]), max(_examples(one) for one in undecided)
        needed = f" (a verdict needs at least {FEW})" if n < FEW else ""
        sentences.append(
            f"{len(undecided)} of {len(judged)} cannot be decided from {count_text(n, 'example')}{needed}: {names}."
        )
    return sentences


def summary_html(judgments: Sequence[Judgment], kind: str) -> str:
    """HTML of the sentences above the charts."""
    return f'<div class="xg xg-lead"><p>{escape(" ".join(summarize_verdicts(judgments, kind)))}</p></div>'


def _outcome(judgment: Judgment, kind: str) -> str:
    """Return the key of the sentence, or "unsure"."""
    _, verdict, (signed, _) = judgment
    if verdict.kind in ("same_model", "no_order"):
        return verdict.kind
    if not_applicable(verdict.method, kind):
        return NOT_APPLICABLE
    if verdict.passes:
        return PASSES
    return SIGNS if verdict.kind == "partly" and signed is not None and signed.high <= NEAR_ZERO else verdict.kind


def _sentence(outcome: str, judgments: Sequence[Judgment]) -> str:
    singular, plural, rest = SUMMARIES[outcome]
    names = [name for name, *_ in judgments]
    points = [ends[outcome == SIGNS] for _, _, ends in judgments]
    values = _values([point for point in points if point is not None]) if "{values}" in rest else ""
    verb = singular if len(names) == 1 else plural
    return f"{_names(names)} {verb}{rest.format(correlation='rank correlation', values=values)}"


def _values(points: Sequence[CurvePoint]) -> str:
    """Format a value with its interval; for several points, the ranges of both."""
    values = [point.value or 0.0 for point in points]
    low, high = hundredths(min(point.low for point in points)), hundredths(max(point.high for point in points))
    if len(points) == 1:
        return f"{hundredths(values[0])}, 95% interval {low} to {high}"
    first, last = hundredths(min(values)), hundredths(max(values))
    ends = first if first == last else f"between {first} and {last}"
    return f"{ends}, 95% intervals within {low} to {high}"


def _names(names: Sequence[str]) -> str:
    left = len(names) - MOST_NAMED
    return join_names([*names[:MOST_NAMED], f"{left} more"] if left > 0 else names)


def _examples(judgment: Judgment) -> int:
    signed = judgment[2][0]
    return 0 if signed is None else signed.n


def verdicts_html(verdicts: Sequence[tuple[str, Verdict]], kind: str, label: str) -> str:
    """HTML of a list of verdicts with their reasons. Names and reasons are escaped."""
    rows = "".join(_verdict_html(name, one, kind) for name, one in verdicts)
    return (
        f'<div class="xg"><div class="xg-judged" role="list" aria-label="{escape(label)}">{rows}</div>'
        f'<p class="xg-small">{JUDGED}</p></div>'
    )


def verdict_words(one: Verdict, kind: str) -> str:
    """Describe the verdict in a few words."""
    words = VERDICTS[one.kind]
    return f"{words}, {NOT_MEANT}" if not_applicable(one.method, kind) else words


def _verdict_html(name: str, one: Verdict, kind: str) -> str:
    mark, meaning = MARKS[one.passes]
    side = {True: " xg-good", False: " xg-fails", None: ""}[one.passes]
    explained = f'<span class="xg-small"> · {meaning}</span>' if meaning else ""
    return (
        f'<div class="xg-judgment{side}" role="listitem"><p class="xg-title"><i aria-hidden="true">{mark}</i> '
        f"{escape(name)}</p><p><b>{escape(verdict_words(one, kind))}</b>{explained}</p>"
        f'<p class="xg-small">{escape(one.reason)}</p></div>'
    )


def _frame(state: ExperimentState, titles: Mapping[str, str], company: Sequence[str]) -> ChartFrame:
    """Return the frame that the charts share, with the selected methods, or all if none of them is in `company`."""
    wanted = tuple(method for method in company if method in state.view.only) or None
    return ChartFrame(titles, browser_theme(), wanted)


def _pick(kind: str, name: str) -> None:
    """Show the maps of the clicked stage; a click outside all points shows all stages."""
    picked = st.session_state[name].selection.get(PICKED) or [{}]
    model, mode, stage, method = (picked[-1].get(field) for field in ("model", "slice", "percent", "method"))
    if not isinstance(model, str) or mode not in MODES or not isinstance(stage, int | float):
        SESSION.put_view(kind, "stage", 0)
        return
    for field, value in {"of": model, "way": mode, "stage": int(stage), "by": method}.items():
        SESSION.put_view(kind, field, value)


def left_out(models: Sequence[DrawnModel], titles: Mapping[str, str]) -> list[tuple[str, str, str]]:
    """Return the reasons for missing values: each with the number of examples or maps on a model, and the methods."""
    lines = []
    for name, found in ((one.name, one.found) for one in models):
        for why, number in Counter(found.failed.values()).items():
            lines.append((why, f"{count(number, 'example')} on {name}", "all methods"))
        for code, why in enumerate(found.reasons):
            hit = found.why == code
            of = ", ".join(titles.get(id, id) for at, id in enumerate(found.methods) if hit[:, :, at].any())
            lines.append((why, f"{count(int(hit.sum()), 'map')} on {name}", of))
    return lines


def cost_words(plan: RandomizationPlan, status: PlanStatus) -> str:
    """Describe the size of the plan and its time, estimated from the newest job on the same models and device."""
    models, size = explained_models(plan), len(status.results.sample.indices)
    maps, words = models * size * len(plan.methods_with_baselines), [FOUND]
    same = ((job, of) for job, of in status.runs if set(of.models) == set(plan.models) and of.dtype == plan.dtype)
    if timed := next(((job, of) for job, of in same if is_timed_here(job)), None):
        job, of = timed
        share = job.computed / job.total
        pace = explained_models(of) * of.examples * len(of.methods_with_baselines) * share / seconds_of(job)
        words = [TIMED.format(rough_duration(maps / pace)), FOUND]
    sizes = (size, "example"), (len(plan.methods_with_baselines), "method"), (len(plan.models), "model")
    numbers = ", ".join(count(number, noun) for number, noun in sizes)
    random = count(models - len(plan.models), "randomized model")
    needed = [examples_note(size)] if size < FEW else []
    return " ".join([f"{numbers}: {count(maps, 'map')} of {random} and the original.", *needed, *words])


def explained_models(plan: RandomizationPlan) -> int:
    """Return the number of models to explain: the originals, and each distinct stage at each seed."""
    own = (len({stage.parts for stage in stages_of(plan, block_count(model))}) for model in plan.models)
    return sum(1 + stages * plan.seeds for stages in own)


PAGE = ExperimentPage(
    SESSION, ABOUT, results_area, cost_words, FAILED, RANDOMIZATION, summary=describe_plan,
    advice=lambda plan: examples_note(plan.examples),
)  # fmt: skip
