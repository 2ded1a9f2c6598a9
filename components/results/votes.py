"""Sections about how long answers took, and which were left out."""

from __future__ import annotations

import streamlit as st

from components.numbers import count
from components.results.shown import Shown
from components.results.words import rules_words
from components.tables import draw_table
from components.theme import shown_theme


def times_section(shown: Shown) -> None:
    """How long votes took."""
    from components.results.charts import times_chart
    from components.results.tables import time_table

    seconds = [vote.seconds for vote in shown.found.kept]
    st.altair_chart(times_chart(seconds, shown_theme()), key="results_times", alt="Votes by how long they took")
    if shown.summary is not None:
        st.caption(shown.summary.meanings["seconds"])
    draw_table(time_table(seconds), "times")


def excluded_section(shown: Shown) -> None:
    """What the declared rules left out."""
    from components.results.tables import exclusion_table

    found = shown.found
    gone = sum(one.votes for one in found.excluded)
    left = f" Of {count(found.answers, 'answer')}, {gone:,} went." if gone else ""
    st.markdown(f"{rules_words(found.study.design.exclusion)}{left}")
    if found.excluded:
        draw_table(exclusion_table(found.excluded, shown.items), "excluded")
