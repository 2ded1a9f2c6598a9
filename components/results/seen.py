"""What one participant saw at one look, with the names of the methods that they did not see."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

import streamlit as st

from components.ballot_maps import draw_input, explanation_html, scale_html
from components.frame import RESULTS
from components.numbers import percent, seconds
from components.results.shown import Shown
from components.results.words import ranking_words
from components.tables import table_styles
from components.trouble import literal, say_error, sentence
from engine.request import Example, Input
from engine.result import Prediction
from engine.study.ballots import PLACES, Map
from engine.study.design import PREDICT
from engine.study.forward.guesses import SUREST
from engine.study.item_names import NamedItem, named_items
from engine.study.seen import Seen, seen
from engine.study.tally import Kept


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
    named = named_items(study)[item]
    st.subheader(literal(f"What {annotator} saw on {_lower(named.name)}{again}"), anchor=False)
    if shown.found.study.design.mode == PREDICT:
        _guessed(found, named, shown.titles)
    else:
        _ranked(found, shown.titles)


def _ranked(found: Seen, titles: Mapping[str, str]) -> None:
    """The input, what the model said, and the explanations in the order in which they stood."""
    ballot, vote = found.ballot, found.vote
    said = "Not answered." if vote is None else f"{ranking_words(vote, titles)}, after {seconds(vote.seconds)}."
    st.caption(literal(said))
    draw_input(ballot.input)
    st.html(_said_html(ballot.prediction))
    st.html(scale_html(None if ballot.prediction is None else ballot.prediction.label, ballot.maps[0].colors))
    names = [escape(titles[name]) + _rank(found, name) for name in found.methods]
    shown = zip(PLACES, names, ballot.maps, strict=False)
    st.html(maps_html(ballot.input, [(f"{place}: {name}", one) for place, name, one in shown]))


def _guessed(found: Seen, named: NamedItem, titles: Mapping[str, str]) -> None:
    """The guess beside the model's answer, the input, and the one explanation or none."""
    st.html(f"<style>{table_styles()}</style>{verdict_html(found.vote, named.said)}")
    draw_input(found.ballot.input)
    if not found.ballot.maps:
        st.markdown("No explanation was shown: this is a guess from the input alone.")
        return
    st.html(scale_html(None, found.ballot.maps[0].colors))
    st.html(maps_html(found.ballot.input, [(escape(titles[found.methods[0]]), found.ballot.maps[0])]))


def verdict_html(vote: Kept | None, said: Prediction) -> str:
    """What somebody guessed, and what the model had said, which they were not told."""
    cells = "".join(
        f"<div><dt>{term}</dt><dd><bdi>{escape(named)}</bdi> <span>{escape(more)}</span></dd></div>"
        for term, named, more in (("They guessed", *_guess(vote, said)), ("The model had said", *_model(said)))
    )
    return f'<div class="xg"><dl class="xg-verdict">{cells}</dl></div>'


def _guess(vote: Kept | None, said: Prediction) -> tuple[str, str]:
    if vote is None:
        return "nothing yet", ""
    after = f"after {seconds(vote.seconds)}"
    if vote.guess is None:
        return "cannot tell", after
    verdict = "right" if vote.guess["label"] == said.index else "wrong"
    return said.labels[vote.guess["label"]], f"{verdict}, {vote.guess['sure']} of {SUREST} sure, {after}"


def _model(said: Prediction) -> tuple[str, str]:
    return said.label, f"{percent(max(said.probabilities))}; kept back from them"


def maps_html(given: Input, named: Sequence[tuple[str, Map]]) -> str:
    """Explanations under their titles, which are HTML; pictures beside each other, where there is room."""
    figures = "".join(
        f'<section><p class="xg-title">{title}</p>{explanation_html(given, one)}</section>' for title, one in named
    )
    kind = "" if isinstance(given, Example) else ' class="xg-beside"'
    return f'<style>{table_styles()}</style><div class="xg"><div{kind}>{figures}</div></div>'


def _said_html(said: Prediction | None) -> str:
    if said is None:
        return ""
    sure = "" if said.regression else f" ({escape(percent(max(said.probabilities)))})"
    return f'<div class="xg"><p>The model said <b><bdi>{escape(said.label)}</bdi></b>{sure}.</p></div>'


def _lower(name: str) -> str:
    return name[0].lower() + name[1:]


def _rank(found: Seen, name: str) -> str:
    ranks = None if found.vote is None else found.vote.ranks
    return "" if ranks is None else f'<span class="xg-small"> ranked {ranks[name]}</span>'
