"""Sections of the Scaffold page about the learned explainer: plausibility, trivial protocols, normalizations."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial

import altair as alt
import pandas as pd
import streamlit as st

from components.charts.comparisons import interval_chart
from components.compute import run_cached
from components.errors import describe_error, escape_label, show_error, show_note
from components.export import file_button
from components.numbers import count, fixed, hundredths, percent, points
from components.palette import PALETTES, Theme
from components.progress import ProgressLine, resume_button, run_with_progress
from components.scaffold.charts import DECIMALS
from components.scaffold.controls import bound_select, key, view_switch
from components.scaffold.export import ScaffoldChart, draw_chart
from components.scaffold.learned_explainer import EXAMPLES, TITLES, heads_area, maps_area, show_median_student
from components.scaffold.runs import cached_sample, marked_sets
from components.scaffold.state import SECTIONS
from components.tables import draw_table
from engine.errors import Cancelled, ExegesisError
from engine.scaffold.experiment import load_result
from engine.scaffold.explainer_checks import (
    BORDER,
    FIRST,
    HEAD,
    LAST,
    LAYER,
    LEAN_THRESHOLD,
    PUNCTUATION,
    STOP,
    ExplanationMass,
    HeadContrast,
    Plausibility,
    PlausibilityRow,
    PlausibilitySide,
    TrivialProtocols,
    measure_part,
    part_key,
    part_names,
    plausibility,
    protocols_key,
    trivial_protocols,
)
from engine.scaffold.plan import ATTENTION, NONE, NORMALIZATIONS, SMAT, EvaluationSample, ScaffoldPlan
from engine.scaffold.result import HeadCoefficients, ScaffoldResult, SimulabilityCell, coefficients_of
from engine.store import result_store

KINDS: Mapping[str, str] = {
    PUNCTUATION: "punctuation",
    STOP: "stop words",
    FIRST: "the first token",
    LAST: "the last token",
    BORDER: "border patches",
}
PLAUSIBILITY = (
    "How often an explanation ranks a marked {} above an unmarked one: the area under the ROC curve (AUC), averaged "
    "over examples. Chance is 0.5 (SMaT, tables 2 and 6). {} Bars are 95% bootstrap intervals over examples."
)
MARKED = {True: "The marks follow from how the examples were generated.", False: "The marks were made by people."}
SUPERVISED = (
    "Best layer and best head are supervised: they were selected by these same labels. Read them as upper bounds for "
    "attention."
)
NO_MARKS = "No example of {} has marks, so explanations cannot be scored. Choose a data set with marks."
ACTIVE_ALL = "All heads are active (λ > 0), so there are no inactive ones to compare with."
ACTIVE = "Active heads (λ > 0) against inactive ones"
PROTOCOLS = (
    "How much of an explanation's mass lies on features that can leak the label. A learned explainer that points only "
    "at punctuation, at stop words or at the ends of the text could reveal the label without explaining it (SMaT, "
    "section 7, after Treviso and Martins, 2020). Special tokens get 0 by construction."
)
PROTOCOLS_PICTURES = (
    "How much of an explanation's mass lies on features that can leak the label. A learned explainer that points only "
    "at the border could reveal the label without explaining it (SMaT, section 7). The special token gets 0 by "
    "construction."
)
STOP_NOTE = "Stop words are English function words without negations; texts in other languages have none."
NORMALIZATIONS_CAPTION = (
    "Simulability by how coefficients become head weights: median [lower : upper quartile] over seeds (SMaT, table 7). "
    "Only finished students are counted."
)
NO_OTHER = (
    "Trained with SMaT so far: {}. To compare, choose another normalization under **Options** and press **Teach**."
)
NOT_TRAINED = "not trained"
PARTS: Mapping[str, str] = {
    "heads": "All layers and heads",
    "smat": TITLES["smat"],
    "gradient_l2": TITLES["gradient_l2"],
    "gradient_x_input": TITLES["gradient_x_input"],
    "integrated_gradients": TITLES["integrated_gradients"],
}
"""Titles of the parts, which are measured one after the other."""
SIDE_TITLES: Mapping[str, str] = {"": "", "first": ", first text (source)", "second": ", second text (target)"}
CHANCE = 0.5


def row_title(row: PlausibilityRow) -> str:
    """Return the explainer's title. Best layer and best head have a star and their indices."""
    title = TITLES.get(row.explainer, row.explainer)
    if row.explainer == LAYER:
        return f"{title} * ({row.at[0]})"
    return f"{title} * ({row.at[0]}.{row.at[1]})" if row.explainer == HEAD else title


def plausibility_table(side: PlausibilitySide) -> pd.DataFrame:
    """One row per explainer, in the order of the paper's tables."""
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
    """Draw one point per explainer with its 95% interval, and a line at chance."""
    rows = side.rows
    table = pd.DataFrame([_chart_row(row) for row in rows])
    ends = table[["Low", "AUC", "High"]].to_numpy()
    span = [min(CHANCE, float(ends.min())) - 0.02, min(1.0, float(ends.max()) + 0.02)]
    axis = alt.X("Low:Q", title="AUC (chance: 0.5)", scale=alt.Scale(domain=span, nice=False))
    line = alt.Chart(pd.DataFrame({"chance": [CHANCE]}))
    rule = line.mark_rule(color=PALETTES[theme].muted, strokeDash=[4, 4]).encode(x="chance:Q")
    names = [row_title(row) for row in rows]
    chart = interval_chart(table, names, ("AUC", "auc"), axis, None, theme)
    chart.layer = [rule, *chart.layer]
    return chart


def _chart_row(row: PlausibilityRow) -> dict[str, object]:
    low, high = row.interval or (row.mean, row.mean)
    text = "undefined for one example" if row.interval is None else f"{hundredths(low)} to {hundredths(high)}"
    chosen = "by these labels" if row.supervised else "without labels"
    return {
        "Method": row_title(row), "AUC": row.mean, "Low": low, "High": high, "auc": hundredths(row.mean),
        "interval": text, "chosen": chosen,
    }  # fmt: skip


SIZES = (25, 50, 100, 200)
HELP = "Runs the teacher on these examples, with 50 steps of integrated gradients for each. Results are cached."


def plausibility_area(result: ScaffoldResult, train_size: int) -> None:
    """Draw the controls, the button that measures, and the results."""
    learned = coefficients_of(result.plan, show_median_student(result, train_size))
    plan, kind = result.plan, result.plan.kind
    with st.container(horizontal=True, gap="small", vertical_alignment="bottom"):
        marks = bound_select(kind, "Marks from", "marks", marked_sets(plan), 300)
        size = bound_select(kind, "Examples", "examples", {number: f"{number}" for number in SIZES}, 130)
    sample = cached_sample(plan, size, marks)
    if _is_measured(sample, learned, kind):
        _results_area(result, plausibility(sample, learned))


def contrast_words(contrast: HeadContrast) -> str:
    """Describe whether active heads are more plausible, with the numbers."""
    low, high = contrast.interval or (contrast.difference, contrast.difference)
    return (
        f"**{ACTIVE}**: mean AUC {hundredths(contrast.mean_active)} of {count(contrast.active, 'active head')}, "
        f"{hundredths(contrast.mean_inactive)} of {count(contrast.inactive, 'inactive head')}; difference "
        f"{hundredths(contrast.difference, sign=True)}, 95% interval over examples {hundredths(low, sign=True)} to "
        f"{hundredths(high, sign=True)}. {contrast.verdict}"
    )


def judged_words(result: Plausibility) -> str:
    """Describe how many examples were judged and why others were left out."""
    side = result.side()
    return _with_skipped(f"{count(len(side.examples), 'example')} judged.", side.skipped)


def _with_skipped(text: str, skipped: Mapping[str, int]) -> str:
    left = "; ".join(f"{number:,}: {why}" for why, number in skipped.items())
    return f"{text} Left out: {left}." if left else text


def _is_measured(sample: EvaluationSample, learned: HeadCoefficients | None, kind: str) -> bool:
    """Whether all parts are measured. If the button was pressed, measures them first."""
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
            resume_button(place, name, "Stopped. Finished parts are cached.")
            return False
    line.clear()
    return True


def _results_area(result: ScaffoldResult, measured: Plausibility) -> None:
    unit = "patch" if measured.sample.kind == "image" else "word"
    st.caption(PLAUSIBILITY.format(unit, MARKED[measured.exact]))
    if not measured.side().examples:
        show_note(f"{NO_MARKS.format(measured.sample.dataset)} {judged_words(measured)}")
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
    st.caption(f"{escape_label(judged_words(measured))} {SUPERVISED}")
    if measured.coefficients is not None:
        st.markdown(ACTIVE_ALL if measured.contrast is None else contrast_words(measured.contrast))


ATTENTION_SETTINGS = (NONE, *ATTENTION, SMAT)
"""The settings of table 7: attention explanations and the baseline."""


def normalizations_area(result: ScaffoldResult, train_size: int) -> None:
    """Draw the table of finished students, and how to train more."""
    st.caption(NORMALIZATIONS_CAPTION)
    each = results_by_normalization(result)
    table = normalizations_table(each, train_size)
    kind = result.plan.kind
    draw_table(table, key(kind, "normalisations_table"))
    there = [name for name, one in each.items() if one.cell(SMAT, train_size) is not None]
    if len(there) < len(NORMALIZATIONS):
        st.markdown(NO_OTHER.format(" and ".join(f"*{name}*" for name in there) or "none"))
    file_button(
        "Normalizations, CSV", "exegesis-scaffold-normalizations.csv", "text/csv", lambda: table.to_csv(index=False),
        "The numbers of the table.", key(kind, "normalisations_csv"),
    )  # fmt: skip


def results_by_normalization(result: ScaffoldResult) -> dict[str, ScaffoldResult]:
    """The finished students of the plan by normalization."""
    own = result.plan.recipe.normalisation
    return {name: result if name == own else load_result(plan_with(result.plan, name)) for name in NORMALIZATIONS}


def plan_with(plan: ScaffoldPlan, normalization: str) -> ScaffoldPlan:
    """Return the plan with another normalization and the settings of table 7.

    The train sizes stay the same, because the splits depend on the largest one.
    """
    return replace(plan, settings=ATTENTION_SETTINGS, recipe=replace(plan.recipe, normalisation=normalization))


def normalizations_table(each: Mapping[str, ScaffoldResult], train_size: int) -> pd.DataFrame:
    """One row per setting, one column per normalization. The row without an explainer is the same in all columns."""
    cells = {
        (setting, name): one.cell(setting, train_size) for name, one in each.items() for setting in ATTENTION_SETTINGS
    }
    baseline = next((cell for (setting, _), cell in cells.items() if setting == NONE and cell is not None), None)
    rows = []
    for setting in ATTENTION_SETTINGS:
        own = {name: _cell_words(baseline if setting == NONE else cells[setting, name]) for name in each}
        rows.append({"Setting": TITLES[setting], **own})
    return pd.DataFrame(rows)


def _cell_words(cell: SimulabilityCell | None) -> str:
    if cell is None:
        return NOT_TRAINED
    median, low, high = (fixed(value, DECIMALS, False) for value in (cell.median, cell.low, cell.high))
    return f"{median} [{low} : {high}], {len(cell.values)} seed{'' if len(cell.values) == 1 else 's'}"


AGAINST = "SMaT above uniform, points"


def protocols_area(result: ScaffoldResult, train_size: int) -> None:
    """Draw the verdict and the mass on each kind of feature."""
    learned = coefficients_of(result.plan, show_median_student(result, train_size))
    sample = cached_sample(result.plan, EXAMPLES)
    st.caption(PROTOCOLS_PICTURES if sample.kind == "image" else PROTOCOLS)
    name = protocols_key(sample, learned)
    protocols = run_with_progress(
        st.empty(), lambda: name, "Reading the heads of test examples", "Stopped.",
        lambda tick: run_cached(name, lambda token: trivial_protocols(sample, learned, token), tick),
    )  # fmt: skip
    if protocols is None:
        return
    if not protocols.examples:
        show_note(f"No test example can be read. {skipped_words(protocols)}")
        return
    if SMAT in protocols.explainers:
        st.markdown(verdict(protocols))
    _protocols_numbers(protocols, result.plan.kind)


def verdict(result: TrivialProtocols) -> str:
    """Describe the kinds of features on which the learned explainer puts suspiciously much mass, if any."""
    if not result.suspects:
        kinds = " or ".join(KINDS[kind] for kind in result.kinds)
        return (
            f"**No trivial protocol found**: the learned explainer does not put significantly more mass "
            f"({100 * LEAN_THRESHOLD:.0f} percentage points or more) on {kinds} than a uniform map."
        )
    text = "; ".join(_leaning_words(one) for one in result.suspects)
    return (
        f"**This may be a trivial protocol**: {text}. Check whether the explainer's maps explain the prediction or "
        "only leak it."
    )


def protocols_table(result: TrivialProtocols) -> pd.DataFrame:
    """One row per kind of feature: the mean share of each explainer, and the excess of the learned one over uniform."""
    return pd.DataFrame([_protocols_row(result, kind) for kind in result.kinds])


def skipped_words(result: TrivialProtocols) -> str:
    """Describe the number of examples that the shares are averaged over, and why others were left out."""
    return _with_skipped(f"Means over {count(len(result.examples), 'test example')}.", result.skipped)


def _leaning_words(one: ExplanationMass) -> str:
    return f"{percent(one.mean)} of its mass lies on {KINDS[one.kind]} ({points(one.excess)} points from uniform)"


def _protocols_row(result: TrivialProtocols, kind: str) -> dict[str, object]:
    cells = [result.mass(kind, explainer) for explainer in result.explainers]
    shares = {TITLES.get(one.explainer, one.explainer): percent(one.mean) for one in cells}
    learned = {AGAINST: _excess_words(cells[-1])} if cells[-1].explainer == SMAT else {}
    return {"Mass on": KINDS[kind], **shares, **learned}


def _excess_words(one: ExplanationMass) -> str:
    if one.excess_interval is None:
        return points(one.excess)
    low, high = map(points, one.excess_interval)
    return f"{points(one.excess)} [{low} : {high}]"


def _protocols_numbers(protocols: TrivialProtocols, kind: str) -> None:
    table = protocols_table(protocols)
    draw_table(table, key(kind, "protocols_table"))
    note = f" {STOP_NOTE}" if protocols.sample.kind == "text" else ""
    st.caption(f"{escape_label(skipped_words(protocols))} Brackets: 95% intervals over examples.{note}")
    file_button(
        "Shares, CSV", "exegesis-scaffold-protocols.csv", "text/csv", lambda: table.to_csv(index=False),
        "The numbers of the table.", key(kind, "protocols_csv"),
    )  # fmt: skip


AREAS: Mapping[str, Callable[[ScaffoldResult, int], None]] = {
    "heads": heads_area,
    "maps": maps_area,
    "plausibility": plausibility_area,
    "protocols": protocols_area,
    "normalisations": normalizations_area,
}


def sections_area(result: ScaffoldResult, train_size: int) -> None:
    """Draw one section about the explainer learned at this train size, and the switch between the sections."""
    st.subheader("The learned explainer", anchor=False)
    chosen = view_switch(result.plan.kind, "Show", "section", SECTIONS)
    try:
        AREAS[chosen](result, train_size)
    except ExegesisError as error:
        show_error(describe_error(error))
