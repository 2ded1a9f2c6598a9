"""The data set of texts as a list that can be filtered, searched and sorted; a row or a button shows its example."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from html import escape
from typing import Any

import streamlit as st

from components.browse.controls import (
    Offer,
    draw_framed,
    draw_jobs,
    draw_listing_controls,
    draw_walk,
)
from components.browse.examples import (
    MOST_SHOWN,
    ExampleTable,
    describe_examples,
    describe_left_out,
    example_frame,
    explain_missing,
    list_examples,
)
from components.browse.listing import LONGEST_SEARCH
from components.browse.results import ExampleResults, predict_spec, text_results
from components.errors import show_note
from components.inputs import text_choice
from components.inputs.datasets import OpenTexts
from components.numbers import count
from components.tables import row_choice
from components.text.state import key, value
from engine.metrics.agreement import QUICK
from engine.registry import all_explainers

CLASSES_ONLY = {"right", "wrong", "confident_wrong", "unsure", "mistakes", "confident", "doubtful"}
SCORES_ONLY = {"off", "error"}
TABLE = "browse_table"
MOST_IN_VIEW = 8


def draw_browse(opened: OpenTexts) -> None:
    """Draw the list and the buttons that walk through it, if its switch is on.

    Stands below the choice of the example.
    """
    if not value("open.browse"):
        return
    focus = text_choice.read_controls(opened)
    draw_framed(
        "browse",
        partial(text_results, focus.model, opened),
        lambda results: _draw_list(opened, focus.model, results, focus.index),
    )


def _draw_list(opened: OpenTexts, model: str, results: ExampleResults, current: int | None) -> None:
    table = results.rows
    st.html(f'<div class="xg"><p class="xg-small">{escape(describe_examples(table))}</p></div>')
    draw_jobs(results, _offers(model, opened, table))
    scores = opened.data.task == "regression"
    barred = SCORES_ONLY if not (scores if table.regression is None else table.regression) else CLASSES_ONLY
    search, *places = st.columns([4, 5, 3, 4], gap="small")
    search.text_input("Search", key=key("browse.search"), max_chars=LONGEST_SEARCH, placeholder="words in the text")
    listing = draw_listing_controls(places, barred, () if scores else table.label_names, key)
    listed = list_examples(table, listing)
    draw_walk(listed, current, partial(text_choice.show, opened), key)
    if missing := explain_missing(table, listing):
        show_note(missing)
    if listed:
        _draw_table(opened, table, listed, current)
    elif not missing:
        left = len(table.rows) - table.predicted
        more = f" {left:,} are not predicted yet." if left else ""
        st.info(f"No example matches.{more} Change the search or the filter.")
    _draw_notes(table, listed)


def _offers(model: str, opened: OpenTexts, table: ExampleTable) -> list[Offer]:
    total, spec = len(table.rows), partial(predict_spec, model, opened.name)
    examples = count(total, "example")
    predict = Offer(f"Predict all {examples}", "predict", spec())
    compare = Offer(
        f"Compare methods on all {examples}", "compare", spec(QUICK),
        f"Explains each example with {', '.join(QUICK)} to find where the methods disagree. "
        "This takes much longer than predicting.",
    )  # fmt: skip
    missing = ((predict, table.predicted), (compare, table.compared))
    return [offer for offer, done in missing if done < total]


def _draw_table(opened: OpenTexts, table: ExampleTable, listed: Sequence[int], current: int | None) -> None:
    first = listed[:MOST_SHOWN]
    row_choice(
        example_frame([table.rows[index] for index in first], table),
        key(TABLE),
        first.index(current) if current in first else None,
        lambda row: text_choice.show(opened, first[row]),
        _columns(),
        MOST_IN_VIEW,
    )


def _columns() -> dict[str, Any]:
    column = st.column_config
    return {
        "#": column.NumberColumn(width=60, help="Row number in the data set"),
        "Text": column.TextColumn(width=300),
        "Second text": column.TextColumn(width=260),
        "Confidence": column.ProgressColumn(
            min_value=0, max_value=1, format="percent", width=120, help="The probability of the predicted class"
        ),
        "Score": column.NumberColumn(format="%.3f"),
        "Error": column.NumberColumn(format="%.3f", help="The distance of the score from the true one"),
        "Disagreement": column.NumberColumn(
            format="%.2f", help="1 minus the mean rank correlation of the methods. 0: the same order; about 1: chance"
        ),
        "Length": column.NumberColumn(width=70, help="Characters"),
        "Rationale": column.TextColumn(width=220, help="Words that people marked as the reason for the label"),
    }


def _draw_notes(table: ExampleTable, listed: Sequence[int]) -> None:
    notes = []
    if len(listed) > MOST_SHOWN:
        notes.append(
            f"The table shows the first {MOST_SHOWN:,} of {len(listed):,}; Previous, Next and Random cover all of them."
        )
    if table.compared:
        notes.append(_describe_comparison(table))
    if notes:
        st.caption(" ".join(notes))


def _describe_comparison(table: ExampleTable) -> str:
    titles = {id: method.title for id, method in all_explainers().items()}
    names = ", ".join(titles[id] for id in QUICK)
    comparison = (
        f"Disagreement on {table.compared:,} examples: 1 minus the mean Spearman ρ over all pairs of {names}, computed "
        "on absolute scores."
    )
    return f"{comparison} {describe_left_out(table, titles)}".rstrip()
