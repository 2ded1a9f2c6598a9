"""Attacks on many examples: controls, the job, bars with intervals by method and objective, the examples behind one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

import streamlit as st

from components.adversarial.board import troubles_html
from components.adversarial.charts import means_chart, span_of
from components.adversarial.known import Known, known, spec_of, trouble_of
from components.adversarial.many_keep import Means, keep_many
from components.adversarial.many_words import how, left_out, summary
from components.adversarial.session import MANY, key, put
from components.adversarial.session import show as show_above
from components.adversarial.state import MEASURES, MOST_EXAMPLES, WHICH
from components.adversarial.styles import use_adversarial_styles
from components.adversarial.told import SIGN, starts_words
from components.adversarial.words import (
    ASKED_HELP,
    ASKED_LESS,
    MANY_ABOUT,
    MANY_EMPTY,
    MANY_FAILED,
    OBJECTIVE_TITLES,
    OWN_MAPS,
    TRANSFER,
)
from components.charts.files import chart_file_buttons
from components.charts.frame import PICKED, AxisRange, ChartFrame
from components.experiment.controls import models_control
from components.experiment.results import skip_reasons_html
from components.job_panel import FINDS, JobPanel
from components.kept import KEPT
from components.numbers import count, percent, plain
from components.tables import draw_table
from components.theme import shown_theme
from components.trouble import literal, say_error, say_note, sentence
from engine.attacks.findings import METRICS, TRANSFERRED
from engine.attacks.params import METHODS
from engine.errors import ExegesisError
from engine.registry import Explainer, method_order
from engine.request import Example

if TYPE_CHECKING:
    from components.adversarial.session import Opened
    from components.adversarial.state import AdversarialState
    from engine.attacks.findings import Findings, Row
    from engine.attacks.plan import AttackPlan
    from engine.evaluation.result import Facts

AREA = JobPanel("adversarial")
KIND = "attack"
AGAIN = "Try the failed ones again"
LONGEST = 70
BESIDE = 2
"""Charts side by side."""


def many_controls(kind: str, methods: Mapping[str, Explainer]) -> None:
    """What is attacked besides: models, methods, how many examples."""
    st.subheader("On many examples", anchor=False)
    st.caption(MANY_ABOUT)
    models, number = st.columns([6, 2], gap="small")
    with models:
        models_control(kind, key(kind, f"{MANY}models"))
        st.caption("None chosen: the model above.")
    number.number_input(
        "Examples", 1, MOST_EXAMPLES, key=key(kind, f"{MANY}examples"), step=1, persist_state=KEPT,
        help="So many are drawn by the seed; all of a data set that has fewer.",
    )  # fmt: skip
    st.pills(
        "Attacked methods", [id for id in METHODS if id in methods], selection_mode="multi", persist_state=KEPT,
        key=key(kind, f"{MANY}methods"), format_func=lambda id: methods[id].title,
    )  # fmt: skip
    st.multiselect(
        "Also asked of every attacked input", list(methods), key=key(kind, f"{MANY}transfer"), persist_state=KEPT,
        format_func=lambda id: methods[id].title if id in methods else id, help=ASKED_HELP, placeholder="No method",
    )  # fmt: skip


def many_area(state: AdversarialState, methods: Mapping[str, Explainer], opened: Opened) -> None:
    """What is wrong with what is asked, or the work and what came of it."""
    if not state.many.methods:
        say_note("No method is chosen. Pick one or more.")
        return
    try:
        plan = state.plan()
        if trouble := trouble_of(plan):
            say_error(trouble)
            return
        seen = known(plan)
    except Exception as error:
        say_error(sentence(error))
        return
    _work(plan, seen)
    if seen.found is not None:
        _found(state, seen, seen.found, methods, opened)


def cost_words(plan: AttackPlan, size: int) -> str:
    """How many attacks are asked for."""
    number = size * len(plan.models) * len(plan.methods) * len(plan.objectives)
    asked = [count(size, "example"), count(len(plan.methods), "method"), count(len(plan.objectives), "objective"),
             count(len(plan.models), "model")]  # fmt: skip
    params = plan.chosen(plan.objectives[0])
    others = size * len(plan.models) * sum(len(plan.others(method)) for _, method in plan.pairs)
    more = f", then {count(others, 'map')} by the methods that are asked" if others else ""
    attacks = f"{count(number, 'attack')}{starts_words(params.starts)} of at most {count(params.steps, 'step')}"
    return f"{', '.join(asked)}: {attacks}{more}. {FINDS}"


def _work(plan: AttackPlan, seen: Known) -> None:
    AREA.trouble()
    if seen.running is not None:
        AREA.progress(seen.running.id)
    elif seen.found is None:
        with st.container(border=True, key="adversarial_many_to_do"):
            st.markdown(MANY_EMPTY)
            st.caption(cost_words(plan, seen.size))
            AREA.start("Attack them all", KIND, spec_of(plan), seen.last)
    elif seen.failed:
        with st.container(border=True, key="adversarial_many_failed"):
            say_note(MANY_FAILED)
            if not AREA.go_on(seen.last, AGAIN):
                AREA.offer(AGAIN, "again", KIND, spec_of(plan), help=FINDS)


def _found(
    state: AdversarialState, seen: Known, whole: Findings, methods: Mapping[str, Explainer], opened: Opened
) -> None:
    st.caption(how(whole, seen.size))
    if troubles := list(whole.troubles):
        use_adversarial_styles()
        st.html(troubles_html(troubles))
    for line in whole.said:
        say_note(line)
    titles = {id: method.title for id, method in methods.items()}
    _view_controls(state, whole, titles)
    found = whole if state.many.which == "all" else whole.slice(lambda one: one.right is (state.many.which == "right"))
    means = Means(state, found, ChartFrame(titles, shown_theme(), None, method_order()))
    if not means.scores:
        say_note(f"No example is left: {WHICH[state.many.which].lower()} there is none. Choose All.")
        return
    _charts(state, means)
    _behind(state, seen, means, opened)
    with st.expander("Numbers and files", key="adversarial.many.numbers", on_change="rerun") as box:
        if box.open:
            draw_table(means.table, "adversarial.means")
            chart_file_buttons(means)
            keep_many(state, whole)
    lines = left_out(whole, titles)
    if lines:
        with st.expander(f"Left out somewhere: {count(len(lines), 'reason')}", key="adversarial.left_out"):
            st.html(skip_reasons_html(lines))


def _view_controls(state: AdversarialState, whole: Findings, titles: Mapping[str, str]) -> None:
    with st.container(horizontal=True, gap="small", vertical_alignment="bottom"):
        st.selectbox(
            "Measure", MEASURES, key=key(state.kind, f"{MANY}measure"), width=300, persist_state=KEPT,
            format_func=lambda id: METRICS[id].title, help=METRICS[state.many.measure].about,
        )  # fmt: skip
        if whole.plan.transfer:
            _of_control(state, whole, titles)
        st.segmented_control(
            "Examples that count", list(WHICH), key=key(state.kind, f"{MANY}which"), required=True,
            format_func=WHICH.__getitem__, persist_state=KEPT,
        )  # fmt: skip


def _of_control(state: AdversarialState, whole: Findings, titles: Mapping[str, str]) -> None:
    """Whose maps: each attacked method's own, or those of all after an attack on one."""
    name = key(state.kind, f"{MANY}of")
    known = ["", *whole.plan.methods]
    if state.many.of not in known:
        st.session_state[name] = ""
    st.selectbox(
        "Maps", known, key=name, width=300, persist_state=KEPT, help=TRANSFER,
        format_func=lambda id: f"All, after an attack on {titles.get(id, id)}" if id else OWN_MAPS,
    )  # fmt: skip


def _charts(state: AdversarialState, means: Means) -> None:
    """A chart a model, on the same axis, two beside each other; on a telephone one below the other."""
    st.caption(METRICS[state.many.measure].about)
    span = span_of(means.scores)
    for start in range(0, len(means.models), BESIDE):
        columns = st.columns(min(BESIDE, len(means.models)), gap="medium")
        for place, model in zip(columns, means.models[start : start + BESIDE], strict=False):
            with place:
                _chart(state, means, model, span)
    if means.attacked and state.many.measure not in TRANSFERRED:
        say_note(ASKED_LESS)
    st.caption(summary(means.scores, means.frame.titles))


def _chart(state: AdversarialState, means: Means, model: str, span: AxisRange) -> None:
    st.markdown(f"**{literal(model)}**")
    name = key(state.kind, f"view.bars.{model}")
    st.altair_chart(
        means_chart(means.of(model), means.frame, means.company, means.plan.objectives, span), key=name,
        on_select=partial(_pick, state.kind, name), selection_mode=PICKED,
        alt=f"{METRICS[state.many.measure].title} by method and objective on {model}; its numbers stand below",
    )  # fmt: skip


def _pick(kind: str, name: str) -> None:
    """Lists the examples of the bar that was clicked; a click beside all bars lists none."""
    points = st.session_state[name].selection.get(PICKED) or [{}]
    bar = [points[-1].get(part) for part in ("model", "method", "slice")]
    put(kind, f"{MANY}picked", [str(part) for part in bar] if all(bar) else [])


def behind(found: Findings, picked: Sequence[str], measure: str, attacked: str = "") -> list[Row]:
    """The examples of a bar, the highest value first. `attacked`: by which method; empty for that of the bar."""
    model, method, objective = picked
    rows = [
        row for row in found.rows
        if (row.of.model, row.of.method, row.of.attacked, row.of.objective, row.of.metric)
        == (model, method, attacked or method, objective, measure)
    ]  # fmt: skip
    return sorted(rows, key=lambda row: (-row.value, row.example))


def _behind(state: AdversarialState, seen: Known, means: Means, opened: Opened) -> None:
    """The examples of a bar, and a button that opens one above."""
    found, titles = means.found, means.frame.titles
    bars = [(model, method, objective) for model in found.plan.models for objective in found.plan.objectives
            for method in means.company]  # fmt: skip
    picked = state.many.picked if state.many.picked in bars else bars[0]
    name = key(state.kind, "view.bar")
    st.session_state[name] = picked
    with st.container(border=True, key="adversarial_examples"):
        st.selectbox(
            "Examples of a bar", bars, key=name, width=480, persist_state=KEPT,
            format_func=lambda bar: f"{titles.get(bar[1], bar[1])}, {OBJECTIVE_TITLES[bar[2]].lower()}, {bar[0]}",
            on_change=lambda: put(state.kind, f"{MANY}picked", list(st.session_state[name])),
        )  # fmt: skip
        rows = behind(found, picked, state.many.measure, means.attacked)
        if not rows:
            say_note("No example has a value here. Choose another bar.")
            return
        facts = {one.example: one for one in found.facts if one.model == picked[0]}
        with st.container(horizontal=True, gap="small", vertical_alignment="bottom"):
            troubles = {(skip.of, skip.example) for skip in found.left_out}
            labels = {
                row.example: _label(row, facts.get(row.example), seen, (row.of, row.example) in troubles)
                for row in rows
            }
            _open_one(state, labels, picked, opened)


def _open_one(state: AdversarialState, labels: Mapping[int, str], bar: Sequence[str], opened: Opened) -> None:
    model, method, objective = bar
    attacked = state.many.of or method
    at = st.selectbox(
        "Example, the highest value first", list(labels), key=key(state.kind, "view.example"), width=560,
        format_func=labels.__getitem__,
    )  # fmt: skip
    st.button(
        "Open above", key=key(state.kind, "view.open"), icon=":material/arrow_upward:",
        on_click=partial(show_above, state, opened, model, int(at), attacked, objective),
    )  # fmt: skip


def _label(row: Row, fact: Facts | None, seen: Known, left_out: bool) -> str:
    """Its value, its place, what the model said before, and what it is. `left_out`: it does not count in the mean."""
    said = [plain(row.value), f"#{row.example}", *([f"{SIGN} not counted"] * left_out)]
    if fact is not None:
        said.append(f"{fact.predicted} {percent(fact.confidence)}{', wrong' if fact.right is False else ''}")
    return " · ".join([*said, _called(seen, row.example)])


def _called(seen: Known, index: int) -> str:
    try:
        candidate = seen.sample.source.read(index)
    except ExegesisError:
        return ""
    given = candidate.input
    words = " ".join(given.text.split()) if isinstance(given, Example) else candidate.label or ""
    return words if len(words) <= LONGEST else f"{words[: LONGEST - 1]}…"
