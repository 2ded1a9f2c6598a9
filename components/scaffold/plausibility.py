"""Plausibility on the Scaffold page: measured on request, part by part, then as charts and a table."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import altair as alt
import pandas as pd
import streamlit as st

from components.charts.comparisons import interval_chart
from components.compute import run_cached
from components.errors import escape_label, show_note
from components.numbers import count, hundredths
from components.palette import PALETTES, Theme
from components.progress import ProgressLine, resume_button
from components.scaffold.controls import key, view_select
from components.scaffold.export import ScaffoldChart, draw_chart
from components.scaffold.head_weights import show_median_student
from components.scaffold.page_texts import ACTIVE, ACTIVE_ALL, MARKED, NO_MARKS, PARTS, PLAUSIBILITY, SUPERVISED, TITLES
from components.scaffold.runs import cached_sample, marked_sets
from engine.errors import Cancelled
from engine.scaffold.plausibility import (
    HEAD,
    LAYER,
    HeadContrast,
    Plausibility,
    PlausibilityRow,
    PlausibilitySide,
    measure_part,
    part_key,
    part_names,
    plausibility,
)
from engine.scaffold.result import HeadCoefficients, ScaffoldResult, coefficients_of
from engine.scaffold.splits import EvaluationSample
from engine.store import result_store

SIDE_TITLES: Mapping[str, str] = {"": "", "first": ", first text (source)", "second": ", second text (target)"}
CHANCE = 0.5
DECIMALS = 3


def row_title(row: PlausibilityRow) -> str:
    """The explainer, with the layer or head that was chosen and a star where labels chose it."""
    title = TITLES.get(row.explainer, row.explainer)
    if row.explainer == LAYER:
        return f"{title} * ({row.at[0]})"
    return f"{title} * ({row.at[0]}.{row.at[1]})" if row.explainer == HEAD else title


def plausibility_table(side: PlausibilitySide) -> pd.DataFrame:
    """A row an explainer, in the order of the paper's tables; a star: chosen by these labels."""
    return pd.DataFrame(
        [
            {
                "Explainer": row_title(row),
                "AUC": round(row.mean, DECIMALS),
                "Low": None if row.interval is None else round(row.interval[0], DECIMALS),
                "High": None if row.interval is None else round(row.interval[1], DECIMALS),
            }
            for row in side.rows
        ]
    )


def side_chart(side: PlausibilitySide, theme: Theme) -> alt.LayerChart:
    """A point an explainer and its 95 % interval, and a line at chance."""
    rows = side.rows
    table = pd.DataFrame([_chart_row(row) for row in rows])
    ends = table[["Low", "AUC", "High"]].to_numpy()
    span = [min(CHANCE, float(ends.min())) - 0.02, min(1.0, float(ends.max()) + 0.02)]
    axis = alt.X("Low:Q", title="AUC, 0.5 by chance", scale=alt.Scale(domain=span, nice=False))
    line = alt.Chart(pd.DataFrame({"chance": [CHANCE]}))
    rule = line.mark_rule(color=PALETTES[theme].muted, strokeDash=[4, 4]).encode(x="chance:Q")
    names = [row_title(row) for row in rows]
    chart = interval_chart(table, names, ("AUC", "auc"), axis, None, theme)
    chart.layer = [rule, *chart.layer]
    return chart


def _chart_row(row: PlausibilityRow) -> dict[str, object]:
    low, high = row.interval or (row.mean, row.mean)
    text = "none of one example" if row.interval is None else f"{hundredths(low)} to {hundredths(high)}"
    chosen = "by these labels" if row.supervised else "without labels"
    return {
        "Method": row_title(row), "AUC": row.mean, "Low": low, "High": high, "auc": hundredths(row.mean),
        "interval": text, "chosen": chosen,
    }  # fmt: skip


SIZES = (25, 50, 100, 200)
HELP = "Runs the teacher on these examples, integrated gradients with 50 steps each. What is measured is kept."


def plausibility_area(result: ScaffoldResult, train_size: int) -> None:
    """The controls, a button where something is to be measured, and the results."""
    learned = coefficients_of(result.plan, show_median_student(result, train_size))
    plan, kind = result.plan, result.plan.kind
    with st.container(horizontal=True, gap="small", vertical_alignment="bottom"):
        marks = view_select(kind, "Marks of", "marks", marked_sets(plan), 300)
        size = view_select(kind, "Examples", "examples", {number: f"{number}" for number in SIZES}, 130)
    sample = cached_sample(plan, size, marks)
    if _is_measured(sample, learned, kind):
        _results_area(result, plausibility(sample, learned))


def contrast_words(contrast: HeadContrast) -> str:
    """Whether active heads are more plausible, with the numbers."""
    low, high = contrast.interval or (contrast.difference, contrast.difference)
    return (
        f"**{ACTIVE}**: mean AUC {hundredths(contrast.mean_active)} of {count(contrast.active, 'active head')}, "
        f"{hundredths(contrast.mean_inactive)} of {count(contrast.inactive, 'inactive head')}; difference "
        f"{hundredths(contrast.difference, sign=True)}, 95 % interval over examples {hundredths(low, sign=True)} to "
        f"{hundredths(high, sign=True)}. {contrast.verdict}"
    )


def skipped_words(result: Plausibility) -> str:
    """How many examples were judged, and why others were not."""
    side = result.side()
    text = f"{count(len(side.examples), 'example')} judged."
    left = "; ".join(f"{number:,}: {why}" for why, number in side.skipped.items())
    return f"{text} Left out: {left}." if left else text


def _is_measured(sample: EvaluationSample, learned: HeadCoefficients | None, kind: str) -> bool:
    """Whether all parts are there, after measuring them where the button was pressed."""
    keys = {part: part_key(sample, learned, part) for part in part_names(learned)}
    if all(map(result_store().contains, keys.values())):
        return True
    wanted, mark = key(kind, "plausibility_wanted"), "/".join(keys.values())
    if st.session_state.get(wanted) != mark:
        st.button("Measure plausibility", key=key(kind, "measure"), help=HELP, on_click=_want, args=(wanted, mark))
        st.caption(f"Not measured yet on these {count(len(sample.indices), 'example')}.")
        return False
    return _measure(sample, learned, keys)


def _want(name: str, mark: str) -> None:
    st.session_state[name] = mark


def _measure(sample: EvaluationSample, learned: HeadCoefficients | None, keys: dict[str, str]) -> bool:
    place = st.empty()
    line = ProgressLine(place, list(keys.values()))
    for number, (part, name) in enumerate(keys.items()):
        line.show(number / len(keys), PARTS[part])
        try:
            run_cached(name, lambda token, part=part: measure_part(sample, learned, part, token), line.tick)  # type: ignore[misc]
        except Cancelled:
            resume_button(place, name, "Stopped. What is measured is kept.")
            return False
    line.clear()
    return True


def _results_area(result: ScaffoldResult, measured: Plausibility) -> None:
    unit = "patch" if measured.sample.kind == "image" else "word"
    st.caption(PLAUSIBILITY.format(unit, MARKED[measured.exact]))
    if not measured.side().examples:
        show_note(f"{NO_MARKS.format(measured.sample.dataset)} {skipped_words(measured)}")
        return
    sides = [one for one in measured.sides if one.examples and (one.name or len(measured.sides) == 1)]
    for place, side in zip(st.columns(len(sides), gap="medium"), sides, strict=True):
        title = f"Plausibility, AUC{SIDE_TITLES[side.name]}: {result.plan.teacher} on {measured.sample.dataset}"
        with place:
            if side.name:
                st.markdown(f"**{SIDE_TITLES[side.name].removeprefix(', ').capitalize()}**")
            chart = ScaffoldChart(
                result.plan,
                f"plausibility{f'-{side.name}' if side.name else ''}",
                title,
                partial(side_chart, side),
                partial(plausibility_table, side),
                SUPERVISED,
            )
            draw_chart(chart, with_table=True)
    st.caption(f"{escape_label(skipped_words(measured))} {SUPERVISED}")
    if measured.coefficients is not None:
        st.markdown(ACTIVE_ALL if measured.contrast is None else contrast_words(measured.contrast))
