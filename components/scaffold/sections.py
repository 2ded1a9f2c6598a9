"""What stands below the tables of the Scaffold page: a look into the learned explainer, one section at a time."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import pandas as pd
import streamlit as st

from components.compute import run_cached
from components.errors import describe_error, escape_label, show_error, show_note
from components.export import file_button
from components.numbers import count, fixed, percent, points
from components.progress import run_with_progress
from components.scaffold.comparison import maps_area
from components.scaffold.controls import key, view_switch
from components.scaffold.head_weights import heads_area, show_median_student
from components.scaffold.page_texts import (
    KINDS,
    NO_OTHER,
    NORMALIZATIONS_CAPTION,
    NOT_TAUGHT,
    PROTOCOLS,
    PROTOCOLS_PICTURES,
    STOP_NOTE,
    TITLES,
)
from components.scaffold.plausibility import plausibility_area
from components.scaffold.runs import cached_sample
from components.scaffold.state import SECTIONS
from components.tables import draw_table
from engine.errors import ExegesisError
from engine.scaffold.experiment import load_result
from engine.scaffold.plan import ATTENTION, NONE, NORMALIZATIONS, SMAT, ScaffoldPlan
from engine.scaffold.result import ScaffoldResult, SimulabilityCell, coefficients_of
from engine.scaffold.trivial_protocols import (
    LEAN_THRESHOLD,
    ExplanationMass,
    TrivialProtocols,
    protocols_key,
    trivial_protocols,
)

ATTENTION_SETTINGS = (NONE, *ATTENTION, SMAT)
"""Those of table 7: students whose explanations are attention, and the baseline."""
DECIMALS = 3


def normalizations_area(result: ScaffoldResult, train_size: int) -> None:
    """The table of what is finished, or what to do for more of it."""
    st.caption(NORMALIZATIONS_CAPTION)
    each = results_by_normalization(result)
    table = normalizations_table(each, train_size)
    kind = result.plan.kind
    draw_table(table, key(kind, "normalisations_table"))
    there = [name for name, one in each.items() if one.cell(SMAT, train_size) is not None]
    if len(there) < len(NORMALIZATIONS):
        st.markdown(NO_OTHER.format(" and ".join(f"*{name}*" for name in there) or "none"))
    file_button(
        "Normalisations, CSV", "exegesis-scaffold-normalisations.csv", "text/csv", lambda: table.to_csv(index=False),
        "What the table says.", key(kind, "normalisations_csv"),
    )  # fmt: skip


def results_by_normalization(result: ScaffoldResult) -> dict[str, ScaffoldResult]:
    """The finished students of the plan with each normalization; those of its own are taken as they are."""
    own = result.plan.recipe.normalisation
    return {name: result if name == own else load_result(plan_with(result.plan, name)) for name in NORMALIZATIONS}


def plan_with(plan: ScaffoldPlan, normalization: str) -> ScaffoldPlan:
    """The plan with another normalization. Its sizes stay: the splits depend on the largest."""
    return replace(plan, settings=ATTENTION_SETTINGS, recipe=replace(plan.recipe, normalisation=normalization))


def normalizations_table(each: Mapping[str, ScaffoldResult], train_size: int) -> pd.DataFrame:
    """A row a setting, a column a normalization. Without explainer there is nothing to normalize: one value for all."""
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
        return NOT_TAUGHT
    median, low, high = (fixed(value, DECIMALS, False) for value in (cell.median, cell.low, cell.high))
    return f"{median} [{low} : {high}], {len(cell.values)} seed{'' if len(cell.values) == 1 else 's'}"


EXAMPLES = 100
"""Of the test split."""
AGAINST = "SMaT above uniform, points"


def protocols_area(result: ScaffoldResult, train_size: int) -> None:
    """The verdict, and the shares of each kind of features."""
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
    """In words: on which kinds the learned explainer leans, or that it does not."""
    if not result.suspects:
        kinds = " or ".join(KINDS[kind] for kind in result.kinds)
        return (
            f"**No trivial protocol is seen**: the learned explainer puts on {kinds} less than "
            f"{100 * LEAN_THRESHOLD:.0f} percentage points more of its mass than a uniform map does."
        )
    text = "; ".join(_leaning_words(one) for one in result.suspects)
    return (
        f"**Take care, this may be a trivial protocol**: {text}. Look whether its maps explain the prediction or only "
        "leak it."
    )


def protocols_table(result: TrivialProtocols) -> pd.DataFrame:
    """A row a kind: each explainer's mean share, and how many points above uniform the learned one is."""
    return pd.DataFrame([_protocols_row(result, kind) for kind in result.kinds])


def skipped_words(result: TrivialProtocols) -> str:
    """On how many examples, and why others are left out."""
    text = f"Means over {count(len(result.examples), 'test example')}."
    left = "; ".join(f"{number:,}: {why}" for why, number in result.skipped.items())
    return f"{text} Left out: {left}." if left else text


def _leaning_words(one: ExplanationMass) -> str:
    return f"{percent(one.mean)} of its mass lies on {KINDS[one.kind]}, {points(one.excess)} points more than uniform"


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
    st.caption(f"{escape_label(skipped_words(protocols))} In brackets 95 % intervals over examples.{note}")
    file_button(
        "Shares, CSV", "exegesis-scaffold-protocols.csv", "text/csv", lambda: table.to_csv(index=False),
        "What the table says.", key(kind, "protocols_csv"),
    )  # fmt: skip


AREAS: Mapping[str, Callable[[ScaffoldResult, int], None]] = {
    "heads": heads_area,
    "maps": maps_area,
    "plausibility": plausibility_area,
    "protocols": protocols_area,
    "normalisations": normalizations_area,
}


def sections_area(result: ScaffoldResult, train_size: int) -> None:
    """A switch, and the section that it names, of the explainer learned at this train size."""
    st.subheader("The learned explainer", anchor=False)
    chosen = view_switch(result.plan.kind, "Look at", "section", SECTIONS)
    try:
        AREAS[chosen](result, train_size)
    except ExegesisError as error:
        show_error(describe_error(error))
