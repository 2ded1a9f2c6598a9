"""The page of results of a study of guesses as a script: its answer, what that does not say, and its sections."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from streamlit.testing.v1 import AppTest

from components.admission import PASSWORD
from components.frame import RESULTS
from engine.study.ballots import next_ballot
from engine.study.codes import new_token
from engine.study.database import ADDRESS, study_database
from engine.study.results import results
from engine.study.tables import Study
from engine.study.voting import Answer, Guess, confirm
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


def guessed(people: int, guess: Guess | None) -> Study:
    """A study in which these people all said the same to everything."""
    study = open_study(items=4, mode="predict", practice=0, items_per_annotator=4, repeats=0)
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
    page.session_state["results.sureness"] = True
    page.run()
    assert not page.exception
    return page


def texts(page: AppTest) -> str:
    """What the page says, without what keeps Markdown from reading it."""
    said = " ".join(part.value for kind in (page.subheader, page.markdown, page.caption) for part in kind)
    return said.replace("\\", "").replace("\u2060", "")


def test_the_page_says_whether_explanations_help_and_that_plausible_is_not_helpful() -> None:
    study = guessed(3, Guess(1, 4))
    page, found = opened(study), results(study.id).forward
    assert found is not None
    said = texts(page)
    assert "Not shown to help or to harm: Integrated gradients, LIME and Random." in said
    assert "This rests on 12 guesses by 3 annotators on 4 items." in said
    for part in ("plausible", "leak", "accuracy", "baseline", "consistency"):
        assert found.meanings[part] in said
    table = page.dataframe[0].value.set_index("Explanation")
    assert table["Right"].tolist() == [1.0] * 4
    lows = [one.share.interval[0] for one in found.conditions if one.share]
    assert table["Low"].tolist() == pytest.approx(lows, abs=1e-3)


def test_answers_that_cannot_tell_are_no_guesses() -> None:
    said = texts(opened(guessed(1, None)))
    assert "Whether explanations help is not known" in said
    assert "4 answers were “cannot tell”" in said
    assert "Nobody has guessed yet." in said


def test_the_organiser_sees_what_was_guessed_of_what_the_model_said() -> None:
    study = guessed(1, Guess(0, 2))
    for vote in results(study.id).kept:
        page = opened(study, annotator=vote.annotator, item=vote.item)
        assert "guessed bad, 2 of 5 sure, where the model said good, after 5" in texts(page)
