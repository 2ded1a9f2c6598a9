"""Answers by item and by annotator, and the replay of one ballot.

The organizer reads the names of the methods here; participants did not see them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from html import escape

import streamlit as st

from components.ballot_maps import draw_input, explanation_html, scale_html
from components.errors import describe_error, escape_label, show_error
from components.navigation import RESULTS
from components.numbers import percent, seconds
from components.results.descriptions import describe_guess, describe_ranking
from components.results.tables import group_table, guess_item_table, guesser_table
from components.results.titles import TitledResults
from components.tables import draw_table, table_styles
from engine.request import Example, Input
from engine.result import Prediction
from engine.study.annotators import SUREST
from engine.study.ballots import BallotMap, BallotReplay, replay_ballot
from engine.study.counted_votes import CountedVote, GuessAnswer, guess_targets, to_guesses
from engine.study.design import PREDICT
from engine.study.items import ItemName, item_names

LIST_HEIGHT, MOST_AT_ONCE = 420, 10
"""Height in pixels of the scrolling list of answers, and the number of answers above which it scrolls."""
FIRST_LOOKS = "Repeated items are not counted, since people may remember them."


def draw_item_answers(results: TitledResults) -> None:
    """Draw the answers on each item."""
    if results.summary is not None:
        groups = sorted(results.summary.by_item, key=lambda group: int(group.name))
        table = group_table(groups, "Item")
        table["Item"] = [results.items[group.name].title for group in groups]
        st.caption(results.summary.meanings["by_item"])
        draw_table(table, "item", results.thumbnails([group.name for group in groups]))
    elif results.forward is not None:
        st.caption(f"Guesses for each item, and how many match the prediction. {FIRST_LOOKS}")
        guesses = _guesses(results)
        places = sorted({guess.item for guess in guesses if not guess.repeat}, key=int)
        draw_table(guess_item_table(guesses, results.items), "item", results.thumbnails(places))
    places = sorted({vote.item for vote in results.votes}, key=int)
    chosen = _choose("item", places, lambda place: results.items[place].title)
    if chosen is not None:
        st.html(_item_html(results, chosen))
    _draw_answers(results, [vote for vote in results.votes if vote.item == chosen], lambda vote: vote.annotator)


def draw_annotator_answers(results: TitledResults) -> None:
    """Draw the answers of each annotator."""
    if results.summary is not None:
        st.caption(results.summary.meanings["by_annotator"])
        draw_table(group_table(results.summary.by_annotator, "Annotator"), "annotator")
    elif results.forward is not None:
        st.caption(f"How many guesses of each annotator match the prediction. {FIRST_LOOKS}")
        draw_table(guesser_table(_guesses(results)), "annotator")
    chosen = _choose("annotator", sorted({vote.annotator for vote in results.votes}), str)
    own = [vote for vote in results.votes if vote.annotator == chosen]
    _draw_answers(results, own, lambda vote: results.items[vote.item].name, with_items=True)


def _guesses(results: TitledResults) -> list[GuessAnswer]:
    return to_guesses(results.votes, guess_targets(results.study.id))


def _choose(what: str, options: list[str], title: Callable[[str], str]) -> str | None:
    chosen: str | None = st.selectbox(
        f"Votes by {what}", options, index=None, placeholder=f"Choose an {what}", key=f"results.by.{what}", width=480,
        format_func=title,
    )  # fmt: skip
    return chosen


def _draw_answers(
    results: TitledResults, votes: list[CountedVote], label: Callable[[CountedVote], str], with_items: bool = False
) -> None:
    """A row per answer with a link to its ballot; `with_items`: also the item's text or picture."""
    with st.container(height=LIST_HEIGHT if len(votes) > MOST_AT_ONCE else "content", border=False):
        for vote in votes:
            row = st.container(horizontal=True, vertical_alignment="center", gap="small")
            words = f"{label(vote)}{', repeated' if vote.repeat else ''}"
            query = {
                "study": str(results.study.id),
                "annotator": vote.annotator,
                "item": vote.item,
                "repeat": str(vote.repeat),
            }
            row.page_link(RESULTS.file, label=escape_label(words), icon=":material/visibility:", query_params=query)
            row.markdown(escape_label(_describe_answer(vote, results)), width="content")
            if with_items:
                row.html(_item_html(results, vote.item), width="content")


def _describe_answer(vote: CountedVote, results: TitledResults) -> str:
    """Describe the ranking or the guess."""
    if results.study.design.mode == PREDICT:
        return describe_guess(vote, results.items[vote.item].prediction, results.titles)
    return describe_ranking(vote, results.titles)


def _item_html(results: TitledResults, place: str) -> str:
    """The start of the text, or a thumbnail of the picture."""
    pictures = results.thumbnails([place])
    image = f'<img src="{escape(pictures[0])}" alt="The picture">' if pictures else ""
    return f'<div class="xg-item xg">{image}<bdi>{escape(results.items[place].text)}</bdi></div>'


def draw_replay(results: TitledResults, query: Mapping[str, str]) -> None:
    """Draw the ballot in the link as its annotator saw it, or why there is none."""
    study, annotator, item = results.study.id, query["annotator"], query.get("item", "")
    repeat = 1 if query.get("repeat") == "1" else 0
    st.page_link(
        RESULTS.file, label="Back to the results", icon=":material/arrow_back:", query_params={"study": str(study)}
    )
    try:
        replay = replay_ballot(study, annotator, item, repeat)
    except Exception as error:
        show_error(describe_error(error))
        return
    again = ", repeated" if repeat else ""
    item_name = item_names(study)[item]
    name = item_name.name[0].lower() + item_name.name[1:]
    st.subheader(escape_label(f"What {annotator} saw on {name}{again}"), anchor=False)
    if results.study.design.mode == PREDICT:
        _draw_guess(replay, item_name, results.titles)
    else:
        _draw_ranking(replay, results.titles)


def _draw_ranking(replay: BallotReplay, titles: Mapping[str, str]) -> None:
    """Draw the input, the prediction, and the explanations in the order of the ballot."""
    ballot, vote = replay.ballot, replay.vote
    answer = "Not answered." if vote is None else f"{describe_ranking(vote, titles)}, after {seconds(vote.seconds)}."
    st.caption(escape_label(answer))
    draw_input(ballot.input)
    st.html(_prediction_html(ballot.prediction))
    st.html(scale_html(None if ballot.prediction is None else ballot.prediction.label, ballot.maps[0].colors))
    ranks = {} if vote is None or vote.ranks is None else vote.ranks
    headings = [
        f"{one.place}: {escape(titles[name])}"
        + (f'<span class="xg-small"> ranked {ranks[name]}</span>' if name in ranks else "")
        for one, name in zip(ballot.maps, replay.methods, strict=True)
    ]
    st.html(_maps_html(ballot.input, headings, ballot.maps))


def _draw_guess(replay: BallotReplay, item: ItemName, titles: Mapping[str, str]) -> None:
    """Draw the guess beside the prediction, the input, and the one explanation or none."""
    ballot = replay.ballot
    st.html(f"<style>{table_styles()}</style>{_verdict_html(replay.vote, item.prediction)}")
    draw_input(ballot.input)
    if not ballot.maps:
        st.markdown("No explanation was shown for this guess.")
        return
    st.html(scale_html(None, ballot.maps[0].colors))
    st.html(_maps_html(ballot.input, [escape(titles[replay.methods[0]])], ballot.maps[:1]))


def _verdict_html(vote: CountedVote | None, prediction: Prediction) -> str:
    """The guess beside the prediction, which was hidden from them."""
    model = (prediction.label, f"{percent(max(prediction.probabilities))}; hidden from the participant")
    cells = "".join(
        f"<div><dt>{term}</dt><dd><bdi>{escape(name)}</bdi> <span>{escape(more)}</span></dd></div>"
        for term, name, more in (("Guess", *_guess(vote, prediction)), ("Prediction", *model))
    )
    return f'<div class="xg"><dl class="xg-verdict">{cells}</dl></div>'


def _guess(vote: CountedVote | None, prediction: Prediction) -> tuple[str, str]:
    if vote is None:
        return "no answer yet", ""
    after = f"after {seconds(vote.seconds)}"
    if vote.guess is None:
        return "cannot tell", after
    verdict = "right" if vote.guess["label"] == prediction.index else "wrong"
    return prediction.labels[vote.guess["label"]], f"{verdict}, confidence {vote.guess['sure']} of {SUREST}, {after}"


def _maps_html(model_input: Input, headings: Sequence[str], maps: Sequence[BallotMap]) -> str:
    """Explanations below their headings, which are HTML; pictures side by side where there is room."""
    figures = "".join(
        f'<section><p class="xg-title">{heading}</p>{explanation_html(model_input, one)}</section>'
        for heading, one in zip(headings, maps, strict=True)
    )
    kind = "" if isinstance(model_input, Example) else ' class="xg-beside"'
    return f'<style>{table_styles()}</style><div class="xg"><div{kind}>{figures}</div></div>'


def _prediction_html(prediction: Prediction | None) -> str:
    if prediction is None:
        return ""
    sure = "" if prediction.regression else f" ({escape(percent(max(prediction.probabilities)))})"
    return f'<div class="xg"><p>Prediction: <b><bdi>{escape(prediction.label)}</bdi></b>{sure}</p></div>'
