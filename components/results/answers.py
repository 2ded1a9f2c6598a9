"""Sections on the answers by item and by annotator, each answer with a link to what was seen."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from html import escape

import streamlit as st

from components.frame import RESULTS
from components.results.shown import Shown
from components.results.words import guess_words, ranking_words
from components.tables import draw_table
from components.trouble import literal
from engine.study.design import PREDICT
from engine.study.forward.guesses import Guessed, as_guesses
from engine.study.tally import Kept
from engine.study.targets import targets_of

LIST_HEIGHT, MOST_AT_ONCE = 420, 10
"""A longer list of answers scrolls in a box of so many pixels."""
FIRST_LOOKS = "First looks alone are counted: who sees an item again may know the answer."


def items_section(shown: Shown) -> None:
    """The answers on each item."""
    if shown.summary is not None:
        _ranked_items(shown)
    elif shown.forward is not None:
        from components.results.guess_tables import guessed_items_table

        st.caption(f"What people guessed of each item, and how often it is what the model said. {FIRST_LOOKS}")
        answers = _guesses(shown)
        places = sorted({answer.item for answer in answers if not answer.repeat}, key=int)
        draw_table(guessed_items_table(answers, shown.items), "item", shown.thumbnails(places))
    places = sorted({vote.item for vote in shown.found.kept}, key=int)
    chosen = _choice(shown, "item", places, lambda place: shown.items[place].title)
    if chosen is not None:
        st.html(_item_html(shown, chosen))
    _answers(shown, [vote for vote in shown.found.kept if vote.item == chosen], lambda vote: vote.annotator)


def annotators_section(shown: Shown) -> None:
    """The answers of each annotator."""
    if shown.summary is not None:
        from components.results.tables import group_table

        st.caption(shown.summary.meanings["by_annotator"])
        draw_table(group_table(shown.summary.by_annotator, "Annotator"), "annotator")
    elif shown.forward is not None:
        from components.results.guess_tables import guessers_table

        st.caption(f"How often each annotator guessed what the model said. {FIRST_LOOKS}")
        draw_table(guessers_table(_guesses(shown)), "annotator")
    chosen = _choice(shown, "annotator", sorted({vote.annotator for vote in shown.found.kept}), str)
    own = [vote for vote in shown.found.kept if vote.annotator == chosen]
    _answers(shown, own, lambda vote: shown.items[vote.item].name, items=True)


def link_to(study: int, vote: Kept) -> Mapping[str, str]:
    """The query of the page that shows what was seen."""
    return {"study": str(study), "annotator": vote.annotator, "item": vote.item, "repeat": str(vote.repeat)}


def answer_words(vote: Kept, shown: Shown) -> str:
    """What was ranked or guessed."""
    if shown.found.study.design.mode == PREDICT:
        return guess_words(vote, shown.items[vote.item].said, shown.titles)
    return ranking_words(vote, shown.titles)


def _ranked_items(shown: Shown) -> None:
    # Here and above: tables take long to import, and a section may never be opened.
    from components.results.tables import group_table

    if shown.summary is None:
        return
    groups = sorted(shown.summary.by_item, key=lambda group: int(group.name))
    table = group_table(groups, "Item")
    table["Item"] = [shown.items[group.name].title for group in groups]
    st.caption(shown.summary.meanings["by_item"])
    draw_table(table, "item", shown.thumbnails([group.name for group in groups]))


def _guesses(shown: Shown) -> list[Guessed]:
    return as_guesses(shown.found.kept, targets_of(shown.found.study.id))


def _choice(shown: Shown, what: str, known: list[str], called: Callable[[str], str]) -> str | None:
    chosen: str | None = st.selectbox(
        f"Votes by {what}", known, index=None, placeholder=f"Choose an {what}", key=f"results.by.{what}", width=480,
        format_func=called,
    )  # fmt: skip
    return chosen


def _answers(shown: Shown, votes: list[Kept], label: Callable[[Kept], str], items: bool = False) -> None:
    """Each with a link to what was seen; `items`: and with the item's text or picture."""
    with st.container(height=LIST_HEIGHT if len(votes) > MOST_AT_ONCE else "content", border=False):
        for vote in votes:
            row = st.container(horizontal=True, vertical_alignment="center", gap="small")
            words, query = f"{label(vote)}{_again(vote)}", link_to(shown.found.study.id, vote)
            row.page_link(RESULTS.file, label=literal(words), icon=":material/visibility:", query_params=query)
            row.markdown(literal(answer_words(vote, shown)), width="content")
            if items:
                row.html(_item_html(shown, vote.item), width="content")


def _item_html(shown: Shown, place: str) -> str:
    """The start of the text, or the picture, small."""
    pictures = shown.thumbnails([place])
    image = f'<img src="{escape(pictures[0])}" alt="The picture">' if pictures else ""
    text = shown.items[place].text
    return f'<div class="xg-item xg">{image}<bdi>{escape(text)}</bdi></div>'


def _again(vote: Kept) -> str:
    return ", again" if vote.repeat else ""
