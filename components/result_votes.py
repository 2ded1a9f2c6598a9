"""Sections about the answers themselves: how long they took, which were left out, by item and by annotator."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import streamlit as st

from components.frame import RESULTS
from components.numbers import count
from components.result_ranked import numbers
from components.result_shown import Shown
from components.result_words import ranking_words, rules_words
from components.theme import shown_theme
from components.trouble import literal
from engine.study.ratings.summary import Group
from engine.study.tally import Kept

LIST_HEIGHT, MOST_AT_ONCE = 420, 10
"""A longer list of votes scrolls in a box of so many pixels."""


def times_section(shown: Shown) -> None:
    """How long votes took."""
    from components.result_charts import times_chart
    from components.result_tables import time_table

    seconds = [vote.seconds for vote in shown.found.kept]
    st.altair_chart(times_chart(seconds, shown_theme()), key="results_times", alt="Votes by how long they took")
    if shown.summary is not None:
        st.caption(shown.summary.meanings["seconds"])
    numbers(time_table(seconds), "times")


def items_section(shown: Shown) -> None:
    """The votes on each item."""
    groups = () if shown.summary is None else sorted(shown.summary.by_item, key=lambda group: _natural(group.name))
    _groups(groups, "Item", "" if shown.summary is None else shown.summary.meanings["by_item"])
    _votes(shown, "item", lambda vote: vote.item, lambda vote: f"{vote.annotator}{_again(vote)}")


def annotators_section(shown: Shown) -> None:
    """The votes of each annotator."""
    groups = () if shown.summary is None else shown.summary.by_annotator
    _groups(groups, "Annotator", "" if shown.summary is None else shown.summary.meanings["by_annotator"])
    _votes(shown, "annotator", lambda vote: vote.annotator, lambda vote: f"Item {vote.item}{_again(vote)}")


def excluded_section(shown: Shown) -> None:
    """What the declared rules left out."""
    from components.result_tables import exclusion_table

    found = shown.found
    gone = sum(one.votes for one in found.excluded)
    left = f" Of {count(found.answers, 'answer')}, {gone:,} went." if gone else ""
    st.markdown(f"{rules_words(found.study.design.exclusion)}{left}")
    if found.excluded:
        numbers(exclusion_table(found.excluded), "excluded")


def link_to(study: int, vote: Kept) -> Mapping[str, str]:
    """The query of the page that shows what was seen."""
    return {"study": str(study), "annotator": vote.annotator, "item": vote.item, "repeat": str(vote.repeat)}


def _groups(groups: Sequence[Group], name: str, words: str) -> None:
    from components.result_tables import group_table

    if groups:
        st.caption(words)
        numbers(group_table(groups, name), name.lower())


def _votes(shown: Shown, what: str, group: Callable[[Kept], str], label: Callable[[Kept], str]) -> None:
    """Votes of the group that is chosen, each with a link to what was seen."""
    known = sorted({group(vote) for vote in shown.found.kept}, key=_natural)
    chosen = st.selectbox(
        f"Votes by {what}", known, index=None, placeholder=f"Choose an {what}", key=f"results.by.{what}", width=320
    )
    votes = [vote for vote in shown.found.kept if group(vote) == chosen]
    with st.container(height=LIST_HEIGHT if len(votes) > MOST_AT_ONCE else "content", border=False):
        for vote in votes:
            _vote(shown, vote, label(vote))


def _vote(shown: Shown, vote: Kept, label: str) -> None:
    row = st.container(horizontal=True, vertical_alignment="center", gap="small")
    query = link_to(shown.found.study.id, vote)
    row.page_link(RESULTS.file, label=literal(label), icon=":material/visibility:", query_params=query)
    row.markdown(literal(ranking_words(vote, shown.titles)), width="content")


def _again(vote: Kept) -> str:
    return ", again" if vote.repeat else ""


def _natural(name: str) -> tuple[int, str]:
    """Numbers in their order, names by the alphabet."""
    return (len(name) if name.isdigit() else 0), name
