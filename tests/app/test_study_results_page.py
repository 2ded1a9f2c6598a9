"""The page of results as a script: no study, no votes, few and many, closed, unknown, and what somebody saw."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from html import unescape
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from components.errors import WORD_JOINER, escape_label
from components.navigation import RESULTS
from components.numbers import MINUS
from components.organizer import PASSWORD
from components.results.descriptions import PLAUSIBLE, SMAT_WARNING
from components.results.page import EMPTY, WIDGET
from components.results.sections import ANSWER_SECTIONS, RANKING_SECTIONS
from engine.study import results as study_results
from engine.study.access import new_token
from engine.study.annotators import Answer, confirm
from engine.study.ballots import next_ballot
from engine.study.database import ADDRESS, study_database
from engine.study.design import ExclusionRules
from engine.study.results import results
from engine.study.studies import CLOSED, DRAFT
from tests.alerts import errors
from tests.app.drawn_tables import tables_of
from tests.project import ROOT
from tests.unit.study.polls import agreed, answer, open_study, set_state
from tests.unit.study.tastes import poll

SECONDS = 120.0
FIRST_BEST = (3.0, 0.0, 0.0)
TITLES_OF_SECTIONS = [title for title, _ in (*RANKING_SECTIONS.values(), *ANSWER_SECTIONS.values())]
TITLES = {"integrated_gradients": "Integrated gradients", "lime": "LIME", "random": "Random"}


@pytest.fixture(autouse=True)
def empty(own_home: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No studies, no password, and few resamples."""
    monkeypatch.delenv(ADDRESS, raising=False)
    monkeypatch.delenv(PASSWORD, raising=False)
    real: Any = study_results.summarize_rankings
    monkeypatch.setattr(study_results, "summarize_rankings", partial(real, orders=4, resamples=50))
    yield
    study_database().close()


def opened(*sections: str, **query: object) -> AppTest:
    """The page in its frame, with these sections open."""
    page = AppTest.from_file(str(ROOT / "app.py"), default_timeout=SECONDS)
    page = page.switch_page(RESULTS.file)
    for name, value in query.items():
        page.query_params[name] = str(value)
    for name in sections:
        page.session_state[f"results.{name}"] = True
    page.run()
    assert not page.exception
    return page


def words_of(page: AppTest) -> str:
    """All that the page says in Markdown, captions, headings, notes and HTML."""
    said = [one.value for kind in (page.subheader, page.markdown, page.caption, page.info) for one in kind]
    drawn = [element.proto.body for element in page.get("html")]
    return unescape("\n".join([*said, *drawn])).replace("\\", "").replace(WORD_JOINER, "")


def links_of(page: AppTest) -> dict[str, str]:
    """The query behind each link, by its words."""
    return {link.proto.label: link.proto.query_string for link in page.get("page_link")}


def test_without_a_study_the_page_says_where_to_make_one() -> None:
    page = opened()
    assert [info.value for info in page.info] == [EMPTY]
    assert list(links_of(page)) == ["Create a study"]


def test_a_draft_and_a_study_without_answers_say_what_to_do() -> None:
    study = open_study()
    page = opened(study=study.id)
    assert "No answers yet" in page.info[0].value
    assert links_of(page)["Get the join link"] == f"study={study.id}"
    set_state(study, DRAFT)
    page = opened(study=study.id)
    assert "is a draft" in page.info[0].value
    assert not page.expander


def test_the_newest_study_that_has_opened_is_shown_and_the_address_says_so() -> None:
    first, second = open_study(), open_study()
    set_state(second, DRAFT)
    page = opened()
    assert page.selectbox(WIDGET).value == first.id
    assert page.query_params["study"] == str(first.id)


@pytest.mark.parametrize("asked", ["99", "none", "-1", "1e9", "9" * 5000])
def test_an_unknown_study_is_said_and_another_can_be_chosen(asked: str) -> None:
    study = open_study()
    page = opened(study=asked)
    assert any("there is no study" in said for said in errors(page))
    page.selectbox(WIDGET).select(study.id).run()
    assert not page.exception
    assert not errors(page)
    assert page.query_params["study"] == str(study.id)
    assert "No answers yet" in page.info[0].value


def test_many_votes_give_an_answer_intervals_and_smats_setting_with_its_warning() -> None:
    study = open_study(repeats=2)
    poll(study, 6, FIRST_BEST)
    page, found = opened(study=study.id), results(study.id).summary
    assert found is not None
    said = words_of(page)
    assert said.startswith("Integrated gradients is rated above ")
    for sentence in (PLAUSIBLE, SMAT_WARNING, "30 rankings by 6 annotators", "better than the placebo, Random"):
        assert sentence in said
    assert "6 annotators, 42 answers; 12 repeats, used for self-consistency only." in said
    rows = {row["Method"]: row for row in tables_of(page)[0]}
    for rating in found.ratings:
        row = rows[TITLES[rating.method] + (" (placebo)" if rating.method == "random" else "")]
        told = [f"{number:.3f}".replace("-", MINUS) for number in (rating.skill, *rating.interval)]
        assert [row[name] for name in ("Skill", "Low", "High")] == told
    assert [box.label for box in page.expander] == TITLES_OF_SECTIONS


def test_every_section_draws_when_it_is_opened_and_none_before() -> None:
    study = open_study(repeats=2)
    poll(study, 3, FIRST_BEST)
    assert len(tables_of(opened(study=study.id))) == 1
    page = opened(*RANKING_SECTIONS, *ANSWER_SECTIONS, study=study.id)
    assert len(tables_of(page)) == 9
    assert [metric.label for metric in page.metric] == [
        "Kendall's W", "Krippendorff's α", "Self-consistency (Spearman's ρ)",
    ]  # fmt: skip
    assert 'class="xg-wins"' in words_of(page)
    assert "The study has no exclusion rules" in words_of(page)


def test_one_vote_of_one_person_is_enough_for_every_section() -> None:
    study = open_study(repeats=0)
    person = agreed(study.token)
    for _ in range(2):  # practice first
        ballot = next_ballot(person.id)
        assert ballot is not None
        confirm(person.id, answer(ballot))
    page = opened(*RANKING_SECTIONS, *ANSWER_SECTIONS, study=study.id)
    assert page.subheader[0].value == escape_label("1 vote by 1 person shows no difference between the methods.")
    assert "1 ranking by 1 annotator on 1 item; it separates 0 of" in words_of(page)
    assert "A forecast needs at least two" in page.info[0].value
    assert [metric.value for metric in page.metric] == ["unknown"] * 3


def test_answers_that_rank_nothing_give_no_rating_but_are_told() -> None:
    study = open_study(practice=0)
    person = agreed(study.token)
    ballot = next_ballot(person.id)
    assert ballot is not None
    confirm(person.id, Answer(ballot.token, new_token(), None, 3.0))
    page = opened(*ANSWER_SECTIONS, study=study.id)
    assert page.info[0].value == "No rankings yet, so there are no ratings."
    assert "1 annotator, 1 answer; 1 “cannot tell”." in words_of(page)
    assert [box.label for box in page.expander] == TITLES_OF_SECTIONS[len(RANKING_SECTIONS) :]


def test_a_closed_study_is_not_followed_and_says_what_was_left_out() -> None:
    study = open_study(exclusion=ExclusionRules(least_seconds=20.0))
    poll(study, 3, FIRST_BEST)
    set_state(study, CLOSED)
    page, found = opened("excluded", study=study.id), results(study.id)
    assert "The study does not accept votes." in words_of(page)
    assert "answers faster than 20 seconds" in words_of(page)
    reasons = [row["Reason"] for row in tables_of(page)[1]]
    assert reasons == [one.reason for one in found.excluded] != []


def test_votes_of_a_person_link_to_what_they_saw_with_the_names() -> None:
    study = open_study()
    poll(study, 2, FIRST_BEST, noise=0.0)
    found = results(study.id)
    vote = found.votes[0]
    page = opened("annotators", study=study.id)
    page.selectbox("results.by.annotator").select(vote.annotator).run()
    own = [one for one in found.votes if one.annotator == vote.annotator]
    links = [query for label, query in links_of(page).items() if label.startswith("Item")]
    assert links == [f"study={study.id}&annotator={one.annotator}&item={one.item}&repeat={one.repeat}" for one in own]
    assert words_of(page).count("Integrated gradients › LIME = Random") == len(own)
    page = opened(study=study.id, annotator=vote.annotator, item=vote.item, repeat=vote.repeat)
    said = words_of(page)
    places = [said.index(f"{place}: {TITLES[name]}") for place, name in zip("ABC", vote.order, strict=True)]
    assert places == sorted(places)
    assert f"Text {vote.item}." in said
    assert said.count("ranked 2") == 2
    assert links_of(page) == {"Back to the results": f"study={study.id}"}


@pytest.mark.parametrize(
    "query", [{"annotator": "nobody", "item": "1"}, {"annotator": "<b>", "item": "x"}, {"annotator": "p"}]
)
def test_what_nobody_saw_is_said(query: dict[str, str]) -> None:
    study = open_study()
    poll(study, 1, FIRST_BEST)
    page = opened(study=study.id, **query)
    assert any("was not shown to" in said for said in errors(page))
    assert "<b>" not in "".join(one.proto.body for one in page.get("html"))


def test_the_page_is_behind_the_organizers_password(monkeypatch: pytest.MonkeyPatch) -> None:
    study = open_study()
    poll(study, 1, FIRST_BEST)
    monkeypatch.setenv(PASSWORD, "open sesame")
    page = opened(study=study.id, annotator=results(study.id).votes[0].annotator, item="1")
    assert [field.label for field in page.text_input] == ["The organizer's password"]
    assert not page.expander
    assert not page.selectbox


def test_downloads_hold_every_table_and_every_number() -> None:
    study = open_study()
    poll(study, 2, FIRST_BEST)
    page = opened("downloads", study=study.id)
    assert [button.proto.label for button in page.get("download_button")] == [
        "Votes", "Orders", "Items", "Ratings", "All results", "Study file",
    ]  # fmt: skip


def test_a_second_look_at_an_item_is_told_from_the_first() -> None:
    study = open_study(repeats=2)
    poll(study, 1, FIRST_BEST, noise=0.0)
    again = next(one for one in results(study.id).votes if one.repeat == 1)
    for repeat, told in ((0, False), (1, True)):
        page = opened(study=study.id, annotator=again.annotator, item=again.item, repeat=repeat)
        said = words_of(page)
        assert f"What {again.annotator} saw on " in said
        assert (", repeated" in said) is told
        assert "Not answered." not in said
