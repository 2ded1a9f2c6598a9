"""The results of a study as files: votes, orders and ratings as CSV, all results as JSON. People are pseudonyms."""

from __future__ import annotations

import json
from collections.abc import Callable

import streamlit as st

from components.keeping import file_button
from components.result_shown import Shown
from engine.study.exchange import Order, as_csv, order_rows, rating_rows, summary_plain, vote_rows
from engine.study.results import Results
from engine.study.tally import as_matches

HELP = "Methods go by their ids, people by pseudonyms. Cells that a spreadsheet would run as formulas are defused."


def downloads_section(shown: Shown) -> None:
    """Buttons; a file is made when its button is pressed."""
    found = shown.found
    st.caption(HELP)
    with st.container(horizontal=True):
        for title, ending, build in FILES:
            if found.summary is not None:
                _button(title, ending, build, found)


def _button(title: str, ending: str, build: Callable[[Results], str], found: Results) -> None:
    kind = "text/csv" if ending.endswith("csv") else "application/json"
    file_button(title, f"study-{found.study.id}-{ending}", kind, lambda: build(found), HELP, f"results.file.{ending}")


def _votes(found: Results) -> str:
    return as_csv(vote_rows(as_matches(found.kept)))


def _orders(found: Results) -> str:
    return as_csv(order_rows(Order(vote.annotator, vote.item, vote.repeat, vote.order) for vote in found.kept))


def _ratings(found: Results) -> str:
    return as_csv([] if found.summary is None else rating_rows(found.summary.ratings))


def _all(found: Results) -> str:
    plain = None if found.summary is None else summary_plain(found.summary)
    return json.dumps(plain, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


FILES = (
    ("Votes", "votes.csv", _votes),
    ("Orders", "orders.csv", _orders),
    ("Ratings", "ratings.csv", _ratings),
    ("All results", "results.json", _all),
)
