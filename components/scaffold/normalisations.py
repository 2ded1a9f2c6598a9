"""How coefficients become head weights, compared: the students of each normalisation that are finished (table 7)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pandas as pd
import streamlit as st

from components.keeping import file_button
from components.numbers import fixed
from components.scaffold.section_words import NO_OTHER, NORMALISATIONS, NOT_TAUGHT, TITLES
from components.scaffold.session import key
from components.tables import draw_table
from engine.scaffold.plan import ATTENTION, NONE, SMAT, Plan
from engine.scaffold.plan import NORMALISATIONS as KNOWN
from engine.scaffold.result import Cell, Scaffold
from engine.scaffold.run import finished

SETTINGS = (NONE, *ATTENTION, SMAT)
"""Those of table 7: students whose explanations are attention, and the baseline."""
DECIMALS = 3


def normalisations_area(found: Scaffold, train_size: int) -> None:
    """The table of what is finished, or what to do for more of it."""
    st.caption(NORMALISATIONS)
    each = with_each(found, train_size)
    table = table_of(each, train_size)
    kind = found.plan.kind
    draw_table(table, key(kind, "normalisations_table"))
    there = [name for name, one in each.items() if one.cell(SMAT, train_size) is not None]
    if len(there) < len(KNOWN):
        st.markdown(NO_OTHER.format(" and ".join(f"*{name}*" for name in there) or "none"))
    file_button(
        "Normalisations, CSV", "exegesis-scaffold-normalisations.csv", "text/csv", lambda: table.to_csv(index=False),
        "What the table says.", key(kind, "normalisations_csv"),
    )  # fmt: skip


def with_each(found: Scaffold, train_size: int) -> dict[str, Scaffold]:
    """The finished students of the plan with each normalisation; those of its own are taken as they are."""
    own = found.plan.recipe.normalisation
    return {name: found if name == own else finished(plan_with(found.plan, name, train_size)) for name in KNOWN}


def plan_with(plan: Plan, normalisation: str, train_size: int) -> Plan:
    """The plan with another normalisation. Its sizes stay: the splits hang on the largest."""
    return replace(plan, settings=SETTINGS, recipe=replace(plan.recipe, normalisation=normalisation))


def table_of(each: Mapping[str, Scaffold], train_size: int) -> pd.DataFrame:
    """A row a setting, a column a normalisation. Without explainer there is nothing to normalise: one value for all."""
    cells = {(setting, name): one.cell(setting, train_size) for name, one in each.items() for setting in SETTINGS}
    baseline = next((cell for (setting, _), cell in cells.items() if setting == NONE and cell is not None), None)
    rows = []
    for setting in SETTINGS:
        own = {name: _told(baseline if setting == NONE else cells[setting, name]) for name in each}
        rows.append({"Setting": TITLES[setting], **own})
    return pd.DataFrame(rows)


def _told(cell: Cell | None) -> str:
    if cell is None:
        return NOT_TAUGHT
    median, low, high = (fixed(value, DECIMALS, False) for value in (cell.median, cell.low, cell.high))
    return f"{median} [{low} : {high}], {len(cell.values)} seed{'' if len(cell.values) == 1 else 's'}"
