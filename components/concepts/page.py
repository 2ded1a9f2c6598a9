"""The Concepts page: examples of concepts, the answer, scores by layer next to random ones, and the export."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape

import altair as alt
import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from components.charts.frame import style_chart
from components.controls import PERSIST
from components.errors import show_note
from components.experiment.page import ExperimentPage, export_area, references
from components.experiment.runs import PlanStatus
from components.experiment.state import ExperimentSession, ExperimentState, Methods, view_select
from components.export import citation_html
from components.navigation import CONCEPTS_PAGE
from components.numbers import count, fixed
from components.palette import PALETTES, STEPS, Theme, browser_theme, color
from components.tables import draw_table
from engine.concepts.experiment import LEAST_CLASS, ConceptFinding, ConceptScores
from engine.concepts.plan import CONCEPTS, SETS, ConceptsPlan
from engine.home import product_version
from engine.params import option

HEIGHT, NAMED = 280, 3
"""Height of the chart in pixels, and maximum number of findings in the answer."""
ABOUT = (
    "Give examples of a concept, such as texts with a negation or pictures with a mark. A linear classifier separates "
    "their activations from those of random examples at each layer. The score is the share of a class’s examples whose "
    "logit rises along the classifier’s normal (TCAV)."
)
CITED = (
    "Scores: B. Kim, M. Wattenberg, J. Gilmer, C. Cai, J. Wexler, F. Viegas and R. Sayres (2018), Interpretability "
    "beyond feature attribution: quantitative testing with concept activation vectors (TCAV), ICML."
)
CHART = (
    "Dots: mean score of the concept with its 95% interval over vectors; filled where significant. Gray: the same for "
    "random examples. Activations are means over tokens or patches of each block’s output."
)
TEST = (
    "Each vector has its own part of the concept’s examples. p: a t-test against random vectors, adjusted over "
    "concepts, layers and classes (Holm). Below an accuracy of 0.6 on held-out examples, a vector separates nothing."
)
TEXTS_HELP = "One example a line, at least 10; 50 are good. A line “# name” begins another concept."
ROWS_HELP = "One row per vector, layer and class: the output of `exegesis concepts --out`."


@dataclass(frozen=True)
class ConceptsView:
    """The view options: the model, and the class whose scores are drawn."""

    model: str = option("", link="drawn")
    label: str = option("", link="shown")


SESSION = ExperimentSession(CONCEPTS, "concepts", ConceptsView)


def concept_fields(kind: str) -> None:
    """Draw the fields of the concepts' examples."""
    st.text_input("Concepts: names or data sets", key=SESSION.key(kind, "concepts"), persist_state=PERSIST, help=SETS)
    if kind == "text":
        st.text_area(
            "Concepts: texts", key=SESSION.key(kind, "texts"), persist_state=PERSIST, help=TEXTS_HELP, height=100,
            placeholder="# negation\nI did not like it.\n…",
        )  # fmt: skip


def results_area(state: ExperimentState, status: PlanStatus, methods: Methods, options: DeltaGenerator | None) -> None:
    """Draw the answer, the chart of one class, all numbers, and the export."""
    results, kind = status.results, state.kind
    with st.container(horizontal=True, gap="medium", vertical_alignment="bottom"):
        names = {one.model: one.model for one in results.found}
        model = view_select(SESSION, state, "Model", "model", names, 240) if len(names) > 1 else next(iter(names))
        found: ConceptScores = next(one for one in results.found if one.model == model)
        scored = [own.label for own in found.findings]
        labels = {label: label for label in found.classes if label in scored}
        usual = min(found.findings, key=lambda own: (not own.significant, own.p_holm)).label if labels else None
        label = view_select(SESSION, state, "Class", "label", labels, 240, default=usual) if labels else ""
    st.html(answer_html(found))
    for name, size in zip(found.classes, found.class_sizes, strict=True):
        if size < LEAST_CLASS:
            show_note(f"{name} is left out: it has {count(size, 'example')}, and {LEAST_CLASS} are needed.")
    if found.failed:
        show_note(f"{count(len(found.failed), 'example')} left out: {next(iter(found.failed.values()))}")
    if label:
        table = findings_table([own for own in found.findings if own.label == label])
        chart = layers_chart(table, browser_theme())
        st.altair_chart(chart, key=SESSION.key(kind, "chart"), alt="Score of each concept by layer, beside random ones")
        st.caption(CHART)
    with st.expander("All numbers", key=SESSION.key(kind, "numbers")):
        draw_table(findings_table(found.findings), SESSION.key(kind, "table"))
        st.caption(TEST)
    export_area(
        SESSION, kind, results.result, citation_html(cite(results.plan), references(results.plan, {}, [CITED])),
        ROWS_HELP,
    )  # fmt: skip


def findings_table(findings: list[ConceptFinding] | tuple[ConceptFinding, ...]) -> pd.DataFrame:
    """Return a row for each concept, class and layer."""
    return pd.DataFrame(
        [
            {
                "Concept": one.concept, "Class": one.label, "Layer": one.layer, "Score": round(one.score, 3),
                "Low": round(one.low, 3), "High": round(one.high, 3), "Random": round(one.random, 3),
                "Random low": round(one.random_low, 3), "Random high": round(one.random_high, 3),
                "Accuracy": round(one.accuracy, 3), "Adjusted p": round(one.p_holm, 4),
                "Result": verdict(one),
            }
            for one in findings
        ]
    )  # fmt: skip


def verdict(one: ConceptFinding) -> str:
    """Return the result of a test in words."""
    if not one.separates:
        return "separates nothing"
    return "significant" if one.significant else "not significant"


def answer_html(found: ConceptScores) -> str:
    """HTML of the answer: the layers at which a concept matters to a class, the most layers first."""
    groups: dict[tuple[str, str, bool], list[ConceptFinding]] = {}
    for own in found.findings:
        if own.significant:
            groups.setdefault((own.concept, own.label, own.score > own.random), []).append(own)
    order = sorted(groups.items(), key=lambda one: -len(one[1]))
    lines = [_sentence(found.model, *one) for one in order[:NAMED]]
    if len(order) > NAMED:
        lines.append(f"{len(order) - NAMED} more in the table.")
    if not found.findings:
        lines = [f"No class has {LEAST_CLASS} examples to score. Raise the number of examples."]
    elif not lines:
        lines = [f"No concept matters significantly to <bdi>{escape(found.model)}</bdi>."]
    tested = {own.concept for own in found.findings}
    blind = tested - {own.concept for own in found.findings if own.separates}
    if order:
        matter = {concept for concept, *_ in groups}
        lines += [
            f"“<bdi>{escape(name)}</bdi>” has no significant effect."
            for name in found.concepts if name in tested - blind - matter
        ]  # fmt: skip
    lines += [
        f"“<bdi>{escape(name)}</bdi>” cannot be tested: no vector separates its examples from random ones. "
        "Give more or clearer examples."
        for name in found.concepts if name in blind
    ]  # fmt: skip
    return '<div class="xg">' + "".join(f'<p class="xg-summary">{line}</p>' for line in lines) + "</div>"


def _sentence(model: str, group: tuple[str, str, bool], findings: list[ConceptFinding]) -> str:
    concept, label, rises = group
    layers = ", ".join(str(own.layer) for own in findings)
    largest = max(findings, key=lambda own: abs(own.score - own.random))
    at = f" at layer {largest.layer}" if len(findings) > 1 else ""
    return (
        f"“<bdi>{escape(concept)}</bdi>” {'raises' if rises else 'lowers'} <bdi>{escape(label)}</bdi> in "
        f"<bdi>{escape(model)}</bdi> at {'layers' if len(findings) > 1 else 'layer'} {layers}: score "
        f"{fixed(largest.score, 2, sign=False)} against {fixed(largest.random, 2, sign=False)} for random examples{at}."
    )


def layers_chart(table: pd.DataFrame, theme: Theme) -> alt.LayerChart:
    """Dot with its interval for each concept and layer, and those of random examples in gray."""
    names = list(dict.fromkeys(table["Concept"]))
    drawn = table.assign(Significant=table["Result"] == "significant")
    x, offset = alt.X("Layer:O", axis=alt.Axis(labelAngle=0)), alt.XOffset("Concept:N", sort=names)
    y = alt.Scale(domain=[0, 1])
    gray = alt.value(PALETTES[theme].muted)
    base = alt.Chart(drawn).encode(x=x, xOffset=offset, tooltip=list(table.columns))
    shades = [color(theme, side, STEPS) for side in ("for", "against")]
    hue = alt.Color(
        "Concept:N", sort=names, legend=alt.Legend(orient="top", title=None) if len(names) > 1 else None,
        scale=alt.Scale(range=shades) if len(names) <= len(shades) else alt.Undefined,
    )  # fmt: skip
    layers = [
        base.mark_bar(opacity=0.25, width=14).encode(
            y=alt.Y("Random low:Q", scale=y, title="TCAV score"), y2="Random high:Q", color=gray
        ),
        base.mark_tick(thickness=2, width=14).encode(y=alt.Y("Random:Q", scale=y), color=gray),
        base.mark_rule(strokeWidth=2).encode(y=alt.Y("Low:Q", scale=y), y2="High:Q", color=hue),
        base.mark_point(size=90, strokeWidth=2, opacity=1).encode(
            y=alt.Y("Score:Q", scale=y), color=hue,
            fill=alt.condition("datum.Significant", hue, alt.value(PALETTES[theme].ground)),
        ),
    ]  # fmt: skip
    return style_chart(alt.LayerChart(layer=layers), HEIGHT, theme)


def cite(plan: ConceptsPlan) -> str:
    """Return a citation: version, title of the plan, seed and precision."""
    return f"Exegesis {product_version()}. {CONCEPTS.title_of(plan.as_plain())}, seed {plan.seed}, {plan.dtype}."


def cost(plan: ConceptsPlan, status: PlanStatus) -> str:
    """Return the size of the plan in words."""
    return f"{count(len(status.results.sample.indices), 'example')}, {count(len(plan.models), 'model')}."


PAGE = ExperimentPage(
    SESSION,
    ABOUT,
    results_area,
    cost,
    failed="Some examples of {} failed. They are left out of the numbers.",
    entry=CONCEPTS_PAGE,
    recent=("Recent runs", "Runs of `exegesis concepts --job` are listed too."),
    fields=concept_fields,
)
