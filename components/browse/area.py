"""Browse: the data set as a list that can be filtered, searched and sorted; a row or a button shows its example."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from html import escape
from typing import Any

import streamlit as st

from components.browse.controls import SHOW_NAMES, SORT_NAMES, browse_switch, list_area, listing_choice, walk
from components.browse.job import Offer, job_area
from components.browse.known import Known, known, spec_of
from components.browse.rows import Table, listed
from components.browse.state import LONGEST_SEARCH, PLAIN_BROWSE, Browse
from components.browse.table import MOST_SHOWN, frame, left_out, summary, unanswered
from components.engine_room import explainers
from components.numbers import count
from components.row_choice import row_choice
from components.text import focus_controls
from components.text.open_data import OpenData
from components.text.session import key, value
from components.trouble import say_note

CLASSES_ONLY = {"right", "wrong", "confident_wrong", "unsure", "mistakes", "confident", "doubtful"}
SCORES_ONLY = {"off", "error"}
TABLE = "browse_table"
MOST_IN_VIEW = 8


def browse_area(opened: OpenData) -> None:
    """Opened by its switch: the list, and the buttons that walk through it. Stands below the choice of the example."""
    if not browse_switch(opened.data.title or opened.name, "a table", key):
        return
    focus = focus_controls.from_widgets(opened)
    list_area(
        "browse", partial(known, focus.model, opened), lambda held: _drawn(opened, focus.model, held, focus.index)
    )


def _drawn(opened: OpenData, model: str, held: Known, current: int | None) -> None:
    st.html(f'<div class="xg"><p class="xg-small">{escape(summary(held.rows))}</p></div>')
    job_area(held, _offers(model, opened, held.rows))
    browse = _controls(held.rows, opened.data.task == "regression")
    found = listed(held.rows, browse)
    walk(found, current, partial(focus_controls.show, opened), key)
    if missing := unanswered(held.rows, browse):
        say_note(missing)
    if found:
        _table(opened, held.rows, found, current)
    elif not missing:
        _nothing(held.rows)
    _notes(held.rows, found)


def _offers(model: str, opened: OpenData, rows: Table) -> list[Offer]:
    from engine.metrics.agreement import QUICK

    total, spec = len(rows.rows), partial(spec_of, model, opened.name)
    examples = count(total, "example")
    predict = Offer(f"Predict all {examples}", "predict", spec())
    compare = Offer(
        f"Compare methods on all {examples}", "compare", spec(QUICK),
        f"Explains each example by {', '.join(QUICK)}, to find those where the methods disagree. "
        "Takes far longer than predicting.",
    )  # fmt: skip
    missing = ((predict, rows.predicted), (compare, rows.compared))
    return [offer for offer, done in missing if done < total]


def _controls(rows: Table, scores: bool) -> Browse:
    barred = SCORES_ONLY if not (scores if rows.regression is None else rows.regression) else CLASSES_ONLY
    search, show, label, sort = st.columns([4, 5, 3, 4], gap="small")
    search.text_input("Search", key=key("browse.search"), max_chars=LONGEST_SEARCH, placeholder="words in the text")
    with show:
        listing_choice("Show", "show", SHOW_NAMES, barred, key)
    with label:
        labels = dict.fromkeys(filter(None, [*(() if scores else rows.label_names), value("browse.label")]))
        listing_choice("Label", "label", {"": "Any", **{name: name for name in labels}}, set(), key)
    with sort:
        listing_choice("Sort", "sort", SORT_NAMES, barred, key)
    return Browse(*(value(f"browse.{name}") or usual for name, usual in vars(PLAIN_BROWSE).items()))


def _table(opened: OpenData, rows: Table, found: Sequence[int], current: int | None) -> None:
    shown = found[:MOST_SHOWN]
    row_choice(
        frame([rows.rows[index] for index in shown], rows),
        key(TABLE),
        shown.index(current) if current in shown else None,
        lambda row: focus_controls.show(opened, shown[row]),
        _columns(),
        MOST_IN_VIEW,
    )


def _columns() -> dict[str, Any]:
    column = st.column_config
    return {
        "#": column.NumberColumn(width=60, help="The place in the data set"),
        "Text": column.TextColumn(width=300),
        "Second text": column.TextColumn(width=260),
        "Confidence": column.ProgressColumn(
            min_value=0, max_value=1, format="percent", width=120, help="The probability of the predicted class"
        ),
        "Score": column.NumberColumn(format="%.3f"),
        "Error": column.NumberColumn(format="%.3f", help="The distance of the score from the true one"),
        "Disagreement": column.NumberColumn(
            format="%.2f", help="1 minus the mean rank correlation of the methods: 0 one order, about 1 by chance"
        ),
        "Length": column.NumberColumn(width=70, help="Characters"),
        "Rationale": column.TextColumn(width=220, help="What people marked as the reason for the label"),
    }


def _nothing(rows: Table) -> None:
    left = len(rows.rows) - rows.predicted
    more = f" {left:,} are not predicted yet." if left else ""
    st.info(f"No example matches.{more} Change the search or what is shown.")


def _notes(rows: Table, found: Sequence[int]) -> None:
    told = [] if len(found) <= MOST_SHOWN else [
        f"The table holds the first {MOST_SHOWN:,} of {len(found):,}; Previous, Next and Random go through all of them."
    ]  # fmt: skip
    if rows.compared:
        told += [_comparison(rows)]
    if told:
        st.caption(" ".join(told))


def _comparison(rows: Table) -> str:
    from engine.metrics.agreement import QUICK

    titles = {id: method.title for id, method in explainers().items()}
    names = ", ".join(titles[id] for id in QUICK)
    told = (
        f"Disagreement on {rows.compared:,} examples: 1 minus the mean Spearman ρ between every two of {names}, "
        "of the scores without their signs."
    )
    return f"{told} {left_out(rows, titles)}".rstrip()
