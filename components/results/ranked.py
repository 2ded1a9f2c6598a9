"""Sections of a study's results that rest on rankings: each a chart or a measure, its meaning, and its numbers."""

from __future__ import annotations

import streamlit as st

from components.numbers import plain
from components.results.wins import draw_wins
from components.tables import draw_table
from components.theme import shown_theme
from components.trouble import literal
from engine.study.ratings.summary import Summary

UNKNOWN = "not known"
FORECAST = "A forecast, not a promise: it supposes that people go on as those before did."


def wins_section(found: Summary) -> None:
    """In what share of the votes each method is ranked above each other."""
    draw_wins(found)
    st.caption(found.meanings["wins"])


def course_section(found: Summary) -> None:
    """How the rating moved as votes came in."""
    # Here and below: charts and tables take long to import, and a section may never be opened.
    from components.results.charts import course_chart
    from components.results.tables import course_table

    st.altair_chart(course_chart(found, shown_theme()), key="results_course", alt="Skill of each method by votes")
    st.caption(found.meanings["course"])
    draw_table(course_table(found), "course")


def checks_section(found: Summary) -> None:
    """What another order of the votes and another model would say."""
    from components.results.tables import order_table, worth_table

    st.markdown("**Another order of the votes**")
    st.caption(found.meanings["spread"])
    draw_table(order_table(found), "orders")
    st.markdown("**Another model: Plackett and Luce's**")
    st.caption(literal(found.meanings["worths"]))
    draw_table(worth_table(found), "worths")


def agreement_section(found: Summary) -> None:
    """Whether people agree with each other, and with themselves."""
    rho = None if found.consistency is None else found.consistency[0]
    told = (
        ("Kendall's W", found.concordance, "concordance"),
        ("Krippendorff's α", found.alpha, "alpha"),
        ("With themselves, Spearman's ρ", rho, "consistency"),
    )
    for (name, value, part), place in zip(told, st.columns(3, gap="medium"), strict=True):
        place.metric(name, UNKNOWN if value is None else plain(value))
        place.caption(found.meanings[part])


def power_section(found: Summary) -> None:
    """How many votes would tell more methods apart."""
    from components.results.charts import power_chart
    from components.results.tables import needed_table, power_table

    if not found.power:
        st.info(found.meanings["needed"])
        draw_table(needed_table(found), "needed")
        return
    st.altair_chart(power_chart(found, shown_theme()), key="results_power", alt="Pairs told apart by number of votes")
    st.caption(f"{found.meanings['needed']} {FORECAST}")
    draw_table(needed_table(found), "needed")
    draw_table(power_table(found), "power")
