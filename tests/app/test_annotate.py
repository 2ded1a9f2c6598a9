"""A participant's way through a study, as a script: in by the link or a code, through the items, and out."""

from __future__ import annotations

import re

import pytest
import sqlalchemy as sa
from streamlit.testing.v1 import AppTest

from components.annotate import page as annotate_page
from components.annotate.page import RELOAD
from components.annotate.seat import AGAIN, SEAT_KEY, UNREACHABLE
from components.errors import escape_label
from engine.study import annotators
from engine.study.access import AttemptLimit, new_token
from engine.study.annotators import Answer, confirm
from engine.study.ballots import Ballot, next_ballot
from engine.study.database import ADDRESS, Annotator, Study, Vote, study_database
from tests.project import ROOT
from tests.unit.study.polls import METHODS, PARAMS, open_study, set_state

SECONDS = 60
OTHER = "abcd-efgh-jkmn-pqrs"


@pytest.fixture(autouse=True)
def fresh(own_home: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """An empty store, and nobody has typed a wrong code yet."""
    monkeypatch.setattr(annotators, "CODE_ATTEMPTS", AttemptLimit())


def opened(token: str) -> AppTest:
    page = AppTest.from_file(str(ROOT / "pages" / "annotate.py"), default_timeout=SECONDS)
    if token:
        page.query_params["study"] = token
    page.run()
    assert not page.exception
    return page


def press(page: AppTest, label: str) -> AppTest:
    [button] = [one for one in page.button if one.label == label]
    button.click().run()
    assert not page.exception
    return page


def begun(study: Study) -> AppTest:
    """At the first item."""
    page = opened(study.token)
    for label in ("I agree and take part", "I have it", "Begin"):
        press(page, label)
    return page


def title(page: AppTest) -> str:
    [one] = page.title
    return str(one.value)


def person(page: AppTest) -> int:
    return int(page.session_state[SEAT_KEY]["person"])


def ballot(page: AppTest) -> Ballot:
    found = next_ballot(person(page))
    assert found is not None
    return found


def answer(page: AppTest) -> None:
    """The next ballot is answered, as another tab would."""
    confirm(person(page), Answer(ballot(page).token, new_token(), (1, 2, 3)))
    page.run()


def notes(page: AppTest) -> str:
    return " ".join(element.proto.body for element in page.get("html") if 'role="' in element.proto.body)


def votes() -> list[Vote]:
    with study_database().reading() as session:
        return list(session.scalars(sa.select(Vote).order_by(Vote.id)))


def joined() -> int:
    with study_database().reading() as session:
        return int(session.scalar(sa.select(sa.func.count()).select_from(Annotator)) or 0)


def test_without_a_link_or_with_a_wrong_one_the_page_says_what_to_do() -> None:
    assert [info.value for info in opened("").info] == [annotate_page.NO_LINK]
    assert annotate_page.UNKNOWN in notes(opened("no-such-study"))


@pytest.mark.parametrize(
    ("state", "said"),
    [("draft", annotate_page.NOT_YET), ("closed", annotate_page.OVER), ("archived", annotate_page.OVER)],
)
def test_a_study_that_is_not_open_takes_nobody_in(state: str, said: str) -> None:
    study = open_study()
    set_state(study, state)
    page = opened(study.token)
    assert [info.value for info in page.info] == [said]
    assert not page.button


def test_who_agrees_gets_a_code_once_and_then_the_first_item() -> None:
    study = open_study(practice=1)
    page = opened(study.token)
    assert joined() == 0
    press(page, "I agree and take part")
    [code] = page.code
    assert title(page) == "Your code"
    assert code.value == page.session_state[SEAT_KEY]["code"]
    press(page, "I have it")
    assert (title(page), len(page.code)) == ("Instructions", 0)
    press(page, "Begin")
    assert title(page) == "Practice"
    assert joined() == 1


def test_the_items_are_counted_and_the_end_says_under_which_name_they_are_kept() -> None:
    page = begun(open_study(items=3, practice=1, items_per_annotator=3))
    seen = []
    while title(page) != "Thank you":
        seen.append(title(page))
        answer(page)
    assert seen == ["Practice", *(f"Item {n} of 4" for n in range(1, 5))]
    assert page.session_state[SEAT_KEY]["pseudonym"] in " ".join(text.value for text in page.text)


def test_a_database_that_is_down_is_not_named_to_participants(monkeypatch: pytest.MonkeyPatch) -> None:
    study = open_study(practice=0)
    page, fresh_page = begun(study), opened(study.token)
    answer(page)
    with monkeypatch.context() as down:
        down.setenv(ADDRESS, "sqlite:////proc/no/such/place.db")
        for at, label in ((page, "Undo my last answer"), (fresh_page, "I agree and take part")):
            press(at, label)
            assert f"{UNREACHABLE} {RELOAD}" in notes(at)
            assert not [shown for shown in (str(at.main), notes(at)) if "place.db" in shown]
    for at in (page, fresh_page):
        at.run()
        assert f"{UNREACHABLE} {AGAIN}" in notes(at), "what came of the click"
    assert title(page) == "Item 2 of 6"


def test_a_code_goes_on_with_the_same_ballot_and_a_wrong_one_does_not() -> None:
    study = open_study()
    page = press(opened(study.token), "I agree and take part")
    code = page.code[0].value
    first = ballot(press(press(page, "I have it"), "Begin")).token
    page = opened(study.token)
    page.text_input[0].set_value(OTHER)
    press(page, "Continue")
    assert "does not belong to anybody in this study" in notes(page)
    page.text_input[0].set_value(str(code).upper().replace("-", " "))
    press(page, "Continue")
    assert title(page) == "Practice"
    assert ballot(page).token == first
    assert joined() == 1


def test_wrong_codes_are_limited() -> None:
    study = open_study()
    page = opened(study.token)
    for _ in range(6):
        page.text_input[0].set_value(OTHER)
        press(page, "Continue")
    assert "Too many wrong attempts." in notes(page)


def test_the_last_answer_is_taken_back_and_given_anew() -> None:
    page = begun(open_study(practice=0))
    first = ballot(page).token
    assert "Undo my last answer" not in [one.label for one in page.button]
    answer(page)
    assert title(page) == "Item 2 of 6"
    press(page, "Undo my last answer")
    assert (title(page), ballot(page).token) == ("Item 1 of 6", first)
    assert "is undone" in notes(page)
    assert [vote.superseded_by is None for vote in votes()] == [False]


def test_a_study_that_ends_meanwhile_says_so() -> None:
    study = open_study()
    page = begun(study)
    set_state(study, "closed")
    page.run()
    assert [info.value for info in page.info] == [annotate_page.OVER]


def test_who_is_forgotten_is_asked_anew_and_the_study_keeps_them() -> None:
    page = begun(open_study())
    press(page, "Sign out in this tab")
    assert title(page) == escape_label("Which one?")
    assert joined() == 1


def test_nothing_that_the_script_draws_names_a_method() -> None:
    page = begun(open_study(items=3, practice=1, items_per_annotator=3))
    drawn = ""
    while title(page) != "Thank you":
        drawn += "".join(str(element.proto) for element in page.get("html")) + str(page.main)
        answer(page)
    for word in (*METHODS[:2], *PARAMS, "Integrated", "LIME"):
        assert word not in drawn


def guessing() -> Study:
    return open_study(mode="predict", practice=0, repeats=0, items_per_annotator=4)


def test_a_guess_is_kept_with_how_sure_it_was_and_needs_both() -> None:
    page = begun(guessing())
    first, sure = page.radio
    assert (first.value, sure.value) == (None, None)
    first.set_value(1)
    press(page, "Confirm")
    assert "how sure you are" in notes(page)
    assert votes() == []
    page.radio[1].set_value(4)
    press(page, "Confirm")
    assert [vote.guess for vote in votes()] == [{"label": 1, "sure": 4}]
    assert title(page) == "Item 2 of 4"
    assert [radio.value for radio in page.radio] == [None, None]
    press(page, "Cannot tell")
    assert [vote.guess for vote in votes()] == [{"label": 1, "sure": 4}, None]


def test_the_model_s_answer_is_not_in_a_page_of_guesses() -> None:
    page = begun(guessing())
    seen = set()
    while title(page) != "Thank you":
        bodies = [element.proto.body for element in page.get("html")]
        html = " ".join(body for body in bodies if not body.startswith("<style>"))
        assert "xg-prediction" not in html
        assert "0.73" not in html
        seen.add("xg-framed" in html)
        press(page, "Cannot tell")
    assert seen == {False, True}


def test_after_an_edit_the_prediction_and_the_changed_word_are_shown_but_not_what_comes_of_it() -> None:
    page = begun(open_study(mode="counterfactual", practice=0, repeats=0, items_per_annotator=4))
    while title(page) != "Thank you":
        html = " ".join(element.proto.body for element in page.get("html"))
        assert "<del>Text</del> <ins>Word</ins>" in html
        assert "xg-prediction" in html
        assert not re.search(r"0\.91|91%", html)
        assert page.radio[0].label == "What does the model say about the edited text?"
        press(page, "Cannot tell")


def test_who_decides_sees_the_prediction() -> None:
    page = begun(open_study(mode="decide", practice=0, repeats=0, items_per_annotator=4))
    assert "xg-prediction" in " ".join(element.proto.body for element in page.get("html"))
    assert page.radio[0].label == "What is the correct answer?"
    page.radio[0].set_value(0)
    page.radio[1].set_value(5)
    press(page, "Confirm")
    assert [vote.guess for vote in votes()] == [{"label": 0, "sure": 5}]
