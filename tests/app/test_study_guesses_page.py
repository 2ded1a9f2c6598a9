"""The page of results of a study of guesses as a script: its answer, what that does not say, and its sections."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from streamlit.testing.v1 import AppTest

from components.navigation import RESULTS
from components.organizer import PASSWORD
from engine.study.access import new_token
from engine.study.annotators import Answer, Guess, confirm
from engine.study.ballots import next_ballot
from engine.study.database import ADDRESS, Study, study_database
from engine.study.guesses import WORDS
from engine.study.results import results
from tests.app.drawn_tables import tables_of
from tests.project import ROOT
from tests.unit.study.polls import agreed, open_study

SECONDS = 120.0


@pytest.fixture(autouse=True)
def empty(own_home: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No studies and no password."""
    monkeypatch.delenv(ADDRESS, raising=False)
    monkeypatch.delenv(PASSWORD, raising=False)
    yield
    study_database().close()


def guessed(people: int, guess: Guess | None, mode: str = "predict") -> Study:
    """A study in which these people all said the same to everything."""
    study = open_study(items=4, mode=mode, practice=0, items_per_annotator=4, repeats=0)
    for _ in range(people):
        person = agreed(study.token)
        while ballot := next_ballot(person.id):
            confirm(person.id, Answer(ballot.token, new_token(), None, 5.0, guess))
    return study


def opened(study: Study, **query: str) -> AppTest:
    page = AppTest.from_file(str(ROOT / "app.py"), default_timeout=SECONDS).run()
    page = page.switch_page(RESULTS.file)
    for name, value in {"study": str(study.id), **query}.items():
        page.query_params[name] = value
    for name in ("sureness", "items", "annotators"):
        page.session_state[f"results.{name}"] = True
    page.run()
    assert not page.exception
    return page


def drawn(page: AppTest) -> str:
    return " ".join(element.proto.body for element in page.get("html"))


def texts(page: AppTest) -> str:
    """What the page says, without what keeps Markdown from reading it."""
    said = " ".join(part.value for kind in (page.subheader, page.markdown, page.caption) for part in kind)
    return said.replace("\\", "").replace("\u2060", "")


def test_the_page_says_whether_explanations_help_and_that_plausible_is_not_helpful() -> None:
    study = guessed(3, Guess(1, 4))
    page, found = opened(study), results(study.id).forward
    assert found is not None
    said = texts(page)
    assert "No significant effect: Integrated gradients, LIME and Random." in said
    assert "Based on 12 guesses by 3 annotators on 4 items." in said
    for part in ("plausible", "leak", "accuracy", "baseline", "consistency"):
        assert found.meanings[part] in said
    table = tables_of(page)[0]
    assert [row["Right"] for row in table] == ["1"] * 4
    lows = [one.share.interval[0] for one in found.conditions if one.share]
    assert [float(row["Low"]) for row in table] == pytest.approx(lows, abs=1e-3)
    assert [row["Gain"] for row in table] == ["–", "0", "0", "0"]


def test_answers_that_cannot_tell_are_no_guesses() -> None:
    said = texts(opened(guessed(1, None)))
    assert "Whether explanations help is unknown" in said
    assert "4 answers “cannot tell”" in said
    assert "No guesses yet." in said


def test_the_organizer_sees_the_guess_beside_the_models_answer_and_the_one_explanation_or_none() -> None:
    study = guessed(1, Guess(0, 2))
    kept = results(study.id).votes
    alone, explained = (next(vote for vote in kept if bool(vote.order) == shown) for shown in (False, True))
    for vote in (alone, explained):
        page = opened(study, annotator=vote.annotator, item=vote.item)
        said = drawn(page)
        assert "<dt>Guess</dt><dd><bdi>bad</bdi> <span>wrong, confidence 2 of 5, after 5.0 s</span>" in said
        assert "<dt>Prediction</dt><dd><bdi>good</bdi>" in said
        assert said.count('class="xg xg-unnamed"') == len(vote.order)
        assert ("No explanation was shown" in texts(page)) == (not vote.order)
        assert page.subheader[0].value.endswith(f"on item {int(vote.item) + 1}")


@pytest.mark.parametrize("mode", ["counterfactual", "decide"])
def test_other_modes_say_what_is_right_and_how_often_people_are_misled(mode: str) -> None:
    study, answer = guessed(3, Guess(1, 4), mode), WORDS[mode].answer
    page = opened(study)
    assert f"{WORDS[mode].misled} in 100%" in texts(page)
    assert [row["Misled"] for row in tables_of(page)[0] if row["Guesses, misled"] != "0"]
    assert answer in tables_of(page)[-2][0]
    vote = next(one for one in results(study.id).votes if one.item == "1")
    said = drawn(opened(study, annotator=vote.annotator, item=vote.item))
    assert f"<dt>{answer}</dt><dd><bdi>bad</bdi> <span>hidden from the participant</span>" in said
    assert "shown to the participant" in said
    assert ("<del>Text</del>" in said) == (mode == "counterfactual")


def test_guesses_by_item_and_by_annotator_are_told_with_class_names() -> None:
    study = guessed(3, Guess(0, 2))
    page = opened(study)
    by_item, by_annotator = tables_of(page)[-2:]
    assert [row["Item"] for row in by_item] == [f"Item {number + 1}: Text {number}." for number in range(4)]
    for row in by_item:
        told = [row[name] for name in ("Prediction", "Guessed", "Right", "Confidence", "Cannot tell", "Median seconds")]
        assert told == ["good", "bad 3", "0 of 3", "2", "0", "5"]
    kept = results(study.id).votes
    for row in by_annotator:
        own = [vote for vote in kept if vote.annotator == row["Annotator"]]
        without = sum(not vote.order for vote in own)
        assert row["With an explanation"] == (f"0 of {len(own) - without}")
        assert row["Without"] == (f"0 of {without}" if without else "–")
    page.selectbox("results.by.annotator").select(kept[0].annotator).run()
    assert texts(page).count("guessed bad: wrong, the answer is good; confidence 2 of 5, with ") == 4
