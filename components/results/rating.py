"""What comes first of a study's results: the answer, and the intervals it rests on."""

from __future__ import annotations

import streamlit as st

from components.results.words import PLAUSIBLE, SMAT_WARNING, preferred, rests_on
from components.tables import draw_table
from components.theme import shown_theme
from components.trouble import literal
from engine.study.ratings.summary import Summary


def rating_area(found: Summary) -> None:
    """The answer in a sentence, whether anything beats the placebo, intervals beside SMaT's, and their numbers."""
    from components.results.tables import rank_table

    st.subheader(literal(preferred(found)), anchor=False)
    st.markdown(literal(f"{found.meanings['placebo']} {rests_on(found)}"))
    st.caption(PLAUSIBLE)
    _intervals(found)
    draw_table(rank_table(found), "ratings")


def _intervals(found: Summary) -> None:
    # Here and in the sections: charts and tables take long to import, and the list of studies needs neither.
    from components.results.charts import intervals_chart, span_of

    span, theme = span_of(found.ratings, found.smat), shown_theme()
    shown = (
        ("Rating", found.ratings, found.meanings["ratings"]),
        ("In the setting of the paper on SMaT", found.smat, SMAT_WARNING),
    )
    for (title, ratings, words), place in zip(shown, st.columns(2, gap="medium"), strict=True):
        place.markdown(f"**{title}**")
        chart = intervals_chart(ratings, found.methods, found.placebo, span, theme)
        place.altair_chart(chart, key=f"results_{title}", alt=f"{title}: skill and interval of each method")
        place.caption(literal(words))
