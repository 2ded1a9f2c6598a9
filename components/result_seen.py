"""What one participant saw at one look, with the names of the methods that they did not see."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape

import streamlit as st

from components.ballot_maps import draw_input, explanation_html, scale_html
from components.frame import RESULTS
from components.numbers import percent, seconds
from components.result_shown import Shown
from components.result_words import ranking_words
from components.trouble import literal, say_error, sentence
from engine.result import Prediction
from engine.study.ballots import PLACES
from engine.study.forward.guesses import SUREST
from engine.study.seen import Seen, seen
from engine.study.tables import Plain
from engine.study.tally import Kept
from engine.study.targets import targets_of


def seen_area(shown: Shown, asked: Mapping[str, str]) -> None:
    """The look that the link asks for, or why there is none."""
    study, annotator, item = shown.found.study.id, asked["annotator"], asked.get("item", "")
    repeat = 1 if asked.get("repeat") == "1" else 0
    back = {"study": str(study)}
    st.page_link(RESULTS.file, label="Back to the results", icon=":material/arrow_back:", query_params=back)
    try:
        found = seen(study, annotator, item, repeat)
    except Exception as error:
        say_error(sentence(error))
        return
    again = ", the second time" if repeat else ""
    st.subheader(literal(f"What {annotator} saw on item {item}{again}"), anchor=False)
    st.caption(literal(_answered(found, shown)))
    _ballot(found, shown.titles)


def _answered(found: Seen, shown: Shown) -> str:
    vote = found.vote
    if vote is None:
        return "Not answered."
    said = ranking_words(vote, shown.titles) if vote.guess is None else _guess(vote, vote.guess, found, shown)
    return f"{said}, after {seconds(vote.seconds)}."


def _guess(vote: Kept, guess: Plain, found: Seen, shown: Shown) -> str:
    """The class that was guessed, and the one that the model had given."""
    target, classes = targets_of(shown.found.study.id)[vote.item], found.ballot.classes
    sure = f"{guess['sure']} of {SUREST} sure"
    return f"guessed {classes[guess['label']]}, {sure}, where the model said {classes[target.label]}"


def _ballot(found: Seen, titles: Mapping[str, str]) -> None:
    """The input, what the model said, and the explanations in the order in which they stood."""
    ballot = found.ballot
    draw_input(ballot.input)
    st.html(_said_html(ballot.prediction))
    st.html(scale_html(None if ballot.prediction is None else ballot.prediction.label))
    for place, name, one in zip(PLACES, found.methods, ballot.maps, strict=False):
        st.html(f'<div class="xg"><p class="xg-title">{place}: {escape(titles[name])}{_rank(found, name)}</p></div>')
        st.html(explanation_html(ballot.input, one))


def _said_html(said: Prediction | None) -> str:
    if said is None:
        return '<div class="xg"><p class="xg-small">What the model said was kept back: people guessed it.</p></div>'
    sure = "" if said.regression else f" ({escape(percent(max(said.probabilities)))})"
    return f'<div class="xg"><p>The model said <b><bdi>{escape(said.label)}</bdi></b>{sure}.</p></div>'


def _rank(found: Seen, name: str) -> str:
    ranks = None if found.vote is None else found.vote.ranks
    return "" if ranks is None else f'<span class="xg-small"> ranked {ranks[name]}</span>'
