"""The results of a study of guesses: do people who see an explanation guess the model's answer better?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import streamlit as st

from components.numbers import count
from components.tables import draw_table
from components.theme import shown_theme
from components.trouble import literal
from engine.study.forward.guesses import WITHOUT
from engine.study.forward.summary import ForwardSummary


def titled_forward(found: ForwardSummary, titles: Mapping[str, str]) -> ForwardSummary:
    """The same results with the methods' titles."""
    named = {WITHOUT: WITHOUT} | dict(titles)
    conditions = tuple(replace(one, name=named[one.name]) for one in found.conditions)
    return replace(found, conditions=conditions, placebo=named[found.placebo] if found.placebo else None)


def forward_area(found: ForwardSummary) -> None:
    """The answer in a sentence, what it does not say, the intervals, and their numbers."""
    from components.results.forward_tables import condition_table

    said = found.meanings
    st.subheader(literal(said["helpful"]), anchor=False)
    st.markdown(literal(f"{said['placebo']} {_rests_on(found)}"))
    st.caption(literal(f"{said['plausible']} {said['leak']}"))
    _charts(found)
    st.caption(literal(f"{said['accuracy']} {said['baseline']} {said['cannot_tell']}"))
    draw_table(condition_table(found), "forward")


def sureness_section(found: ForwardSummary) -> None:
    """Whether people know when they are right, and whether they say the same when they are asked again."""
    from components.results.forward_charts import sureness_chart
    from components.results.forward_tables import sureness_table

    if not found.guesses:
        st.markdown("Nobody has guessed yet.")
        return
    chart = sureness_chart(found, shown_theme())
    st.altair_chart(chart, key="results_sureness", alt="Share of right guesses by how sure people were")
    st.caption(literal(f"{found.meanings['sureness']} {found.meanings['consistency']}"))
    draw_table(sureness_table(found), "sureness")


def _charts(found: ForwardSummary) -> None:
    # Here and above: charts and tables take long to import, and the list of studies needs neither.
    from components.results.forward_charts import accuracy_chart, gain_chart

    left, right = st.columns(2, gap="medium")
    if found.guesses:
        left.markdown("**How often people guess what the model said**")
        left.altair_chart(
            accuracy_chart(found, shown_theme()),
            key="results_accuracy",
            alt="Share of right guesses with its interval, with each explanation and without",
        )
    if any(one.gain for one in found.conditions):
        right.markdown("**What an explanation adds to none**")
        right.altair_chart(
            gain_chart(found, shown_theme()),
            key="results_gains",
            alt="Difference to guesses without an explanation, with its interval",
        )


def _rests_on(found: ForwardSummary) -> str:
    people = count(found.annotators, "annotator")
    guesses = f"{found.guesses:,} guess{'' if found.guesses == 1 else 'es'}"
    return f"This rests on {guesses} by {people} on {count(found.items, 'item')}."
