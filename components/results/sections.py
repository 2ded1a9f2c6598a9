"""The results of a study: the answer with its intervals, sections that are computed when opened, one ballot's replay.

The organizer reads the names of the methods here; participants did not see them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from html import escape
from typing import Any

import streamlit as st

from components.ballot_maps import draw_input, edit_html, explanation_html, scale_html
from components.errors import describe_error, escape_label, show_error
from components.export import file_button
from components.navigation import RESULTS
from components.numbers import count, percent, plain, seconds
from components.palette import browser_theme
from components.results.charts import (
    accuracy_chart,
    condition_table,
    course_chart,
    course_table,
    exclusion_table,
    gain_chart,
    group_table,
    guess_item_table,
    guesser_table,
    needed_table,
    order_table,
    power_chart,
    power_table,
    rating_chart,
    rating_span,
    rating_table,
    sureness_chart,
    sureness_table,
    time_table,
    times_chart,
    wins_html,
    worth_table,
)
from components.results.descriptions import (
    PLAUSIBLE,
    SMAT_WARNING,
    TitledResults,
    describe_answers,
    describe_guess,
    describe_guesses,
    describe_preference,
    describe_ranking,
    describe_rankings,
    describe_rules,
)
from components.tables import draw_table, table_styles
from engine.request import Example, Input
from engine.result import Prediction, predicted_name
from engine.study.annotators import SUREST
from engine.study.ballots import BallotMap, BallotReplay, replay_ballot
from engine.study.counted_votes import CountedVote, GuessAnswer, to_guesses
from engine.study.design import PREDICT
from engine.study.guesses import WORDS, GuessSummary
from engine.study.items import ItemName, item_names
from engine.study.results import export_rows, results_to_json
from engine.study.results import results as complete_results
from engine.study.studies import NO_ANSWERS, count_answers
from engine.study.study_file import export_study
from engine.study.summary import RankingSummary
from engine.table_io import to_csv, to_json

UNKNOWN = "unknown"
FORECAST = "The forecast assumes that future participants resemble the past ones."
FORMATS = {"csv": "CSV", "json": "JSON"}
WRITERS = {"csv": ("text/csv", to_csv), "json": ("application/json", to_json)}
TABLES: Mapping[str, tuple[str, str]] = {
    "votes": ("Votes", "One row per answer. Excluded answers are marked with the rule."),
    "orders": ("Orders", "One row per ballot, with the method at each position."),
    "items": ("Items", "One row per item: its input, label, prediction and edit."),
    "ratings": ("Ratings", "One row per method: skill, interval, first and last rank."),
}
NOTE = "Methods are named by their IDs, people by pseudonyms. Cells that look like spreadsheet formulas are escaped."
RESULTS_FILE = "All numbers on this page, with descriptions."
STUDY_FILE = "The design, items, explanations and answers. Import it to reproduce the study and its results elsewhere."
LIST_HEIGHT, MOST_AT_ONCE = 420, 10
"""Height in pixels of the scrolling list of answers, and the number of answers above which it scrolls."""
FIRST_LOOKS = "Repeated items are not counted, since people may remember them."


def draw_sections(results: TitledResults) -> None:
    """Draw the answer, then the sections, which are closed at first; open ones stay open when the page is redrawn."""
    if results.summary is not None:
        _draw_ratings(results.summary)
    elif results.forward is not None:
        _draw_guesses(results.forward)
    elif results.study.design.mode == "rank" and results.untitled.sample is None:
        st.info("No rankings yet, so there are no ratings.")
    counts = count_answers().get(results.study.id, NO_ANSWERS)
    st.caption(escape_label(describe_answers(results.untitled, counts)))
    for sections, subject in (
        (RANKING_SECTIONS, results.summary),
        (GUESS_SECTIONS, results.forward),
        (ANSWER_SECTIONS, results),
    ):
        for name, (title, draw) in sections.items() if subject is not None else ():
            box = st.expander(title, key=f"results.{name}", on_change="rerun")
            if box.open:
                with box:
                    draw(subject)


def _draw_ratings(summary: RankingSummary) -> None:
    """Draw the answer, the comparison with the placebo, the intervals next to SMaT's, and their table."""
    st.subheader(escape_label(describe_preference(summary)), anchor=False)
    st.markdown(escape_label(f"{summary.meanings['placebo']} {describe_rankings(summary)}"))
    st.caption(PLAUSIBLE)
    span, theme = rating_span(summary.ratings, summary.smat), browser_theme()
    settings = (
        ("Rating", summary.ratings, summary.meanings["ratings"]),
        ("Rating in the setting of the SMaT paper", summary.smat, SMAT_WARNING),
    )
    for (title, ratings, words), place in zip(settings, st.columns(2, gap="medium"), strict=True):
        place.markdown(f"**{title}**")
        chart = rating_chart(ratings, summary.methods, summary.placebo, span, theme)
        place.altair_chart(chart, key=f"results_{title}", alt=f"{title}: skill and interval of each method")
        place.caption(escape_label(words))
    draw_table(rating_table(summary), "ratings")


def _draw_guesses(summary: GuessSummary) -> None:
    """Draw the answer, its limits, the intervals, and their table."""
    meanings = summary.meanings
    st.subheader(escape_label(meanings["helpful"]), anchor=False)
    st.markdown(escape_label(f"{meanings['placebo']} {describe_guesses(summary)}"))
    st.caption(escape_label(f"{meanings['plausible']} {meanings['leak']}"))
    left, right = st.columns(2, gap="medium")
    if summary.guesses:
        left.markdown("**Accuracy of guesses**")
        left.altair_chart(
            accuracy_chart(summary, browser_theme()),
            key="results_accuracy",
            alt="Accuracy of guesses with its interval, with each explanation and without",
        )
    if any(one.gain for one in summary.conditions):
        right.markdown("**Gain over no explanation**")
        right.altair_chart(
            gain_chart(summary, browser_theme()),
            key="results_gains",
            alt="Difference to guesses without an explanation, with its interval",
        )
    parts = ("accuracy", "baseline", "misled", "cannot_tell")
    st.caption(escape_label(" ".join(meanings[part] for part in parts)))
    draw_table(condition_table(summary), "forward")


def _draw_wins(summary: RankingSummary) -> None:
    """Draw the share of votes that rank one method above another."""
    st.html(f"<style>{table_styles()}</style>{wins_html(summary)}")
    st.caption(summary.meanings["wins"])


def _draw_course(summary: RankingSummary) -> None:
    """Draw the ratings over the number of votes."""
    st.altair_chart(course_chart(summary, browser_theme()), key="results_course", alt="Skill of each method by votes")
    st.caption(summary.meanings["course"])
    draw_table(course_table(summary), "course")


def _draw_checks(summary: RankingSummary) -> None:
    """Draw how the results depend on the order of the votes and on the rating model."""
    st.markdown("**Different order of the votes**")
    st.caption(summary.meanings["spread"])
    draw_table(order_table(summary), "orders")
    st.markdown("**Different model: Plackett-Luce**")
    st.caption(escape_label(summary.meanings["worths"]))
    draw_table(worth_table(summary), "worths")


def _draw_agreement(summary: RankingSummary) -> None:
    """Draw the agreement of people with each other and with themselves."""
    rho = None if summary.consistency is None else summary.consistency[0]
    measures = (
        ("Kendall's W", summary.concordance, "concordance"),
        ("Krippendorff's α", summary.alpha, "alpha"),
        ("Self-consistency (Spearman's ρ)", rho, "consistency"),
    )
    for (name, value, part), place in zip(measures, st.columns(3, gap="medium"), strict=True):
        place.metric(name, UNKNOWN if value is None else plain(value))
        place.caption(summary.meanings[part])


def _draw_power(summary: RankingSummary) -> None:
    """Draw the forecast of the votes that separate more methods."""
    if not summary.power:
        st.info(summary.meanings["needed"])
        draw_table(needed_table(summary), "needed")
        return
    st.altair_chart(
        power_chart(summary, browser_theme()), key="results_power", alt="Separated pairs by number of votes"
    )
    st.caption(f"{summary.meanings['needed']} {FORECAST}")
    draw_table(needed_table(summary), "needed")
    draw_table(power_table(summary), "power")


def _draw_sureness(summary: GuessSummary) -> None:
    """Draw the accuracy by sureness, and the consistency of repeated guesses."""
    if not summary.guesses:
        st.markdown("No guesses yet.")
        return
    chart = sureness_chart(summary, browser_theme())
    st.altair_chart(chart, key="results_sureness", alt="Accuracy of guesses by confidence")
    st.caption(escape_label(f"{summary.meanings['sureness']} {summary.meanings['consistency']}"))
    draw_table(sureness_table(summary), "sureness")


def _draw_times(results: TitledResults) -> None:
    """Draw the times of the votes."""
    seconds = [vote.seconds for vote in results.votes]
    st.altair_chart(times_chart(seconds, browser_theme()), key="results_times", alt="Histogram of response times")
    if results.summary is not None:
        st.caption(results.summary.meanings["seconds"])
    draw_table(time_table(seconds), "times")


def draw_item_answers(results: TitledResults) -> None:
    """Draw the answers on each item."""
    if results.summary is not None:
        groups = sorted(results.summary.by_item, key=lambda group: int(group.name))
        table = group_table(groups, "Item")
        table["Item"] = [results.items[group.name].title for group in groups]
        st.caption(results.summary.meanings["by_item"])
        draw_table(table, "item", results.thumbnails([group.name for group in groups]))
    elif results.forward is not None:
        st.caption(f"Guesses for each item, and how many are right. {FIRST_LOOKS}")
        guesses = _guesses(results)
        places = sorted({guess.item for guess in guesses if not guess.repeat}, key=int)
        draw_table(
            guess_item_table(guesses, results.items, results.study.design.mode), "item", results.thumbnails(places)
        )
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
        st.caption(f"How many guesses of each annotator are right. {FIRST_LOOKS}")
        draw_table(guesser_table(_guesses(results)), "annotator")
    chosen = _choose("annotator", sorted({vote.annotator for vote in results.votes}), str)
    own = [vote for vote in results.votes if vote.annotator == chosen]
    _draw_answers(results, own, lambda vote: results.items[vote.item].name, with_items=True)


def _guesses(results: TitledResults) -> list[GuessAnswer]:
    return to_guesses(results.votes, results.targets)


def _choose(what: str, options: list[str], title: Callable[[str], str]) -> str | None:
    chosen: str | None = st.selectbox(
        f"Votes by {what}", options, index=None, placeholder=f"Choose an {what}", key=f"results.by.{what}", width=480,
        format_func=title,
    )  # fmt: skip
    return chosen


def _draw_answers(
    results: TitledResults, votes: list[CountedVote], label: Callable[[CountedVote], str], with_items: bool = False
) -> None:
    """Draw a row per answer with a link to its ballot. `with_items`: also draw the item's text or picture."""
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
            row.page_link(RESULTS.path, label=escape_label(words), icon=":material/visibility:", query_params=query)
            row.markdown(escape_label(_describe_answer(vote, results)), width="content")
            if with_items:
                row.html(_item_html(results, vote.item), width="content")


def _describe_answer(vote: CountedVote, results: TitledResults) -> str:
    """Describe the ranking or the guess."""
    if results.study.design.guessing:
        answer = results.targets[vote.item].label
        return describe_guess(vote, results.items[vote.item].prediction, answer, results.titles)
    return describe_ranking(vote, results.titles)


def _item_html(results: TitledResults, place: str) -> str:
    """HTML of the start of the text, or of a thumbnail of the picture."""
    pictures = results.thumbnails([place])
    image = f'<img src="{escape(pictures[0])}" alt="The picture">' if pictures else ""
    return f'<div class="xg-item xg">{image}<bdi>{escape(results.items[place].text)}</bdi></div>'


def _draw_excluded(results: TitledResults) -> None:
    """Draw the votes excluded by the declared rules."""
    untitled = results.untitled
    excluded = sum(one.votes for one in untitled.excluded)
    share = f" Excluded: {excluded:,} of {count(untitled.answers, 'answer')}." if excluded else ""
    st.markdown(f"{describe_rules(results.study.design.exclusion)}{share}")
    if untitled.excluded:
        draw_table(exclusion_table(untitled.excluded, results.items), "excluded")


def _draw_downloads(results: TitledResults) -> None:
    """Draw download buttons for tables, results and the study file; a file is created when its button is clicked."""
    study = results.study.id
    st.caption(NOTE)
    ending = st.segmented_control(
        "Table format",
        list(FORMATS),
        default="csv",
        required=True,
        format_func=FORMATS.__getitem__,
        key="results.format",
    )
    with st.container(horizontal=True):
        for table in TABLES:
            _draw_table_button(study, table, str(ending))
        file_button(
            "All results", f"study-{study}-results.json", "application/json", lambda: _results_json(results),
            RESULTS_FILE, "results.file.results",
        )  # fmt: skip
        file_button(
            "Study file", f"study-{study}.json", "application/json", lambda: export_study(study, votes=True),
            STUDY_FILE, "results.file.study",
        )  # fmt: skip


def _draw_table_button(study: int, table: str, ending: str) -> None:
    title, help = TABLES[table]
    kind, write = WRITERS[ending]
    name, key = f"study-{study}-{table}.{ending}", f"results.file.{table}.{ending}"
    file_button(title, name, kind, lambda: write(export_rows(study, table)), help, key)


def _results_json(results: TitledResults) -> str:
    current = results.untitled if results.untitled.sample is None else complete_results(results.study.id)
    return json.dumps(results_to_json(current), indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def draw_replay(results: TitledResults, query: Mapping[str, str]) -> None:
    """Draw the ballot in the link as its annotator saw it, or why there is none."""
    study, annotator, item = results.study.id, query["annotator"], query.get("item", "")
    repeat = 1 if query.get("repeat") == "1" else 0
    st.page_link(
        RESULTS.path, label="Back to the results", icon=":material/arrow_back:", query_params={"study": str(study)}
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
    if results.study.design.guessing:
        _draw_guess(replay, item_name, results, results.targets[item].label)
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


def _draw_guess(replay: BallotReplay, item: ItemName, results: TitledResults, answer: int) -> None:
    """Draw the guess next to the right class and the prediction, the input, and the explanation, if any."""
    ballot, titles = replay.ballot, results.titles
    verdict = _verdict_html(replay.vote, item.prediction, answer, results.study.design.mode)
    st.html(f"<style>{table_styles()}</style>{verdict}")
    draw_input(ballot.input)
    if isinstance(ballot.input, Example) and ballot.edit is not None:
        st.html(edit_html(ballot.input, ballot.edit))
    if not ballot.maps:
        st.markdown("No explanation was shown for this guess.")
        return
    st.html(scale_html(None, ballot.maps[0].colors))
    st.html(_maps_html(ballot.input, [escape(titles[replay.methods[0]])], ballot.maps[:1]))


def _verdict_html(vote: CountedVote | None, prediction: Prediction, answer: int, mode: str) -> str:
    """HTML of the guess, the right class, which the participant did not see, and the prediction if it is not that."""
    sure = percent(prediction.confidence)
    parts = [("Guess", *_guess(vote, prediction.labels, answer))]
    if mode == PREDICT:
        parts.append(("Prediction", prediction.label, f"{sure}; hidden from the participant"))
    else:
        parts.append((WORDS[mode].answer, prediction.labels[answer], "hidden from the participant"))
        parts.append(("Prediction", prediction.label, f"{sure}; shown to the participant"))
    cells = "".join(
        f"<div><dt>{term}</dt><dd><bdi>{escape(name)}</bdi> <span>{escape(more)}</span></dd></div>"
        for term, name, more in parts
    )
    return f'<div class="xg"><dl class="xg-verdict">{cells}</dl></div>'


def _guess(vote: CountedVote | None, labels: Sequence[str], answer: int) -> tuple[str, str]:
    if vote is None:
        return "no answer yet", ""
    after = f"after {seconds(vote.seconds)}"
    if vote.guess is None:
        return "cannot tell", after
    verdict = "right" if vote.guess["label"] == answer else "wrong"
    return labels[vote.guess["label"]], f"{verdict}, confidence {vote.guess['sure']} of {SUREST}, {after}"


def _maps_html(model_input: Input, headings: Sequence[str], maps: Sequence[BallotMap]) -> str:
    """HTML of explanations below their headings, which are HTML; pictures are side by side if there is room."""
    figures = "".join(
        f'<section><p class="xg-title">{heading}</p>{explanation_html(model_input, one)}</section>'
        for heading, one in zip(headings, maps, strict=True)
    )
    kind = "" if isinstance(model_input, Example) else ' class="xg-beside"'
    return f'<style>{table_styles()}</style><div class="xg"><div{kind}>{figures}</div></div>'


def _prediction_html(prediction: Prediction | None) -> str:
    if prediction is None:
        return ""
    sure = "" if prediction.regression else f" ({escape(percent(prediction.confidence))})"
    return f'<div class="xg"><p>Prediction: <b><bdi>{escape(predicted_name(prediction))}</bdi></b>{sure}</p></div>'


Sections = Mapping[str, tuple[str, Callable[[Any], None]]]
"""Titles and drawing functions, by the suffix of the sections' keys."""

RANKING_SECTIONS: Sections = {
    "wins": ("Pairwise comparisons", _draw_wins),
    "course": ("Ratings over time", _draw_course),
    "checks": ("Robustness to the order of votes and the rating model", _draw_checks),
    "agreement": ("Agreement between and within people", _draw_agreement),
    "power": ("How many more votes are needed?", _draw_power),
}
GUESS_SECTIONS: Sections = {"sureness": ("Confidence and accuracy", _draw_sureness)}
ANSWER_SECTIONS: Sections = {
    "times": ("Response times", _draw_times),
    "items": ("Results by item", draw_item_answers),
    "annotators": ("Results by annotator", draw_annotator_answers),
    "excluded": ("Excluded votes", _draw_excluded),
    "downloads": ("Download", _draw_downloads),
}
