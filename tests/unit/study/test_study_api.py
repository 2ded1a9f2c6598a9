"""Taking part over HTTP: the same votes as on the pages, nothing of the methods, and limits on what is sent."""

from __future__ import annotations

import base64
import io
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from starlette.applications import Starlette
from starlette.testclient import TestClient

from components.annotate.api import LARGEST_BODY, study_routes
from components.ballot_maps import explanation_html
from engine.study import annotators, studies
from engine.study.access import AttemptLimit, new_token
from engine.study.ballots import next_ballot
from engine.study.counted_votes import CountedVote, counted_votes
from engine.study.database import ADDRESS
from tests.unit.study.polls import METHODS, PARAMS, open_study, set_state
from tests.unit.study.samples import image_design

JSON = {"Content-Type": "application/json"}


@pytest.fixture(autouse=True)
def fresh_limits(store: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(annotators, "CODE_ATTEMPTS", AttemptLimit(each=5))
    monkeypatch.setattr(
        annotators, "JOIN_ATTEMPTS", AttemptLimit(each=60, seconds=60, message="Too many people joined just now.")
    )


@pytest.fixture
def client() -> Iterator[TestClient]:
    with TestClient(Starlette(routes=study_routes())) as opened:
        yield opened


class Guest:
    """One participant's requests; `code` after `join`."""

    def __init__(self, client: TestClient, link: str) -> None:
        self.client, self.link, self.code = client, link, ""

    def post(self, what: str, said: object = None, status: int = 200) -> Any:
        told = self.client.post(self._at(what), content=json.dumps(said or {}), headers=self._headers())
        assert told.status_code == status, told.text
        return told.json()

    def ballot(self, status: int = 200) -> Any:
        told = self.client.get(self._at("ballot"), headers=self._headers())
        assert told.status_code == status, told.text
        return told.json()["ballot"] if status == 200 else told.json()

    def join(self) -> Guest:
        self.code = self.post("join")["code"]
        self.post("consent")
        return self

    def _at(self, what: str) -> str:
        return f"/api/study/{self.link}/{what}"

    def _headers(self) -> dict[str, str]:
        return JSON | ({"Authorization": f"Bearer {self.code}"} if self.code else {})


def said(given: Any, **more: Any) -> dict[str, Any]:
    """An answer to a ballot, with its last fields changed."""
    return {"ballot": given["token"], "token": new_token(), "ranks": [2, 1, 2], "seconds": 3.5} | more


def ranks_of(vote: CountedVote) -> list[int]:
    """In the order of the places."""
    assert vote.ranks is not None
    return [vote.ranks[method] for method in vote.order]


def test_a_person_joins_agrees_votes_and_is_through(client: TestClient) -> None:
    study = open_study(items=3, practice=1, items_per_annotator=3, repeats=0)
    guest = Guest(client, study.token)
    joined = guest.post("join")
    assert set(joined) == {"code", "title", "question", "consent", "instructions", "mode"}
    guest.code = joined["code"]
    assert "has not consented yet" in guest.ballot(status=404)["error"]
    assert guest.post("consent") == {"agreed": True}
    walked = []
    while ballot := guest.ballot():
        walked.append((ballot["practice"], ballot["done"], ballot["of"]))
        assert guest.ballot() == ballot, "the same until it is answered"
        guest.post("answer", said(ballot))
    assert walked == [(True, 0, 3), (False, 0, 3), (False, 1, 3), (False, 2, 3)]
    assert [(ranks_of(vote), vote.seconds) for vote in counted_votes(study.id)] == [([2, 1, 2], 3.5)] * 3


def test_an_answer_sent_twice_is_there_once_and_an_undo_takes_back_one(client: TestClient) -> None:
    study = open_study(practice=0)
    guest = Guest(client, study.token).join()
    ballot = guest.ballot()
    answer = said(ballot)
    assert guest.post("answer", answer) == {"token": answer["token"], "before": False}
    assert guest.post("answer", answer) == {"token": answer["token"], "before": True}
    set_state(study, "closed")
    assert guest.post("answer", answer)["before"], "confirmed again, even after the study closed"
    set_state(study, "open")
    undo = {"token": new_token()}
    assert guest.post("undo", undo) == guest.post("undo", undo) == {"ballot": ballot["token"]}
    assert counted_votes(study.id) == []
    assert guest.ballot() == ballot


def test_cannot_tell_and_a_changed_answer(client: TestClient) -> None:
    study = open_study(practice=0)
    guest = Guest(client, study.token).join()
    ballot = guest.ballot()
    guest.post("answer", said(ballot, ranks=None))
    guest.post("answer", said(ballot, ranks=[1, 2, 3]))
    assert [ranks_of(vote) for vote in counted_votes(study.id)] == [[1, 2, 3]]


def test_in_a_study_of_guesses_the_prediction_is_kept_back(client: TestClient) -> None:
    study = open_study(mode="predict", practice=0)
    guest = Guest(client, study.token).join()
    ballot = guest.ballot()
    assert (ballot["prediction"], ballot["classes"]) == (None, ["bad", "good"])
    assert len(ballot["explanations"]) <= 1
    guess = {"label": 1, "sure": 4}
    guest.post("answer", said(ballot, ranks=None, guess=guess))
    assert [vote.guess for vote in counted_votes(study.id)] == [guess]
    told = guest.post("answer", said(guest.ballot(), ranks=None, guess={"label": 2, "sure": 4}), status=400)
    assert "guess.label: must be" in told["error"]


def test_in_a_study_of_edits_the_prediction_after_the_edit_is_kept_back(client: TestClient) -> None:
    guest = Guest(client, open_study(mode="counterfactual", practice=0).token).join()
    ballot = guest.ballot()
    assert ballot["prediction"]["label"] == "good"
    word = {"segment": 0, "start": 0, "end": 4, "text": "Text"}
    assert ballot["edit"] == {"word": word, "replacement": "Word"}
    assert "0.91" not in json.dumps(ballot)


def test_two_tabs_get_the_same_ballot_and_two_people_never_each_others(client: TestClient) -> None:
    study = open_study()
    one, other = Guest(client, study.token).join(), Guest(client, study.token).join()
    assert one.ballot()["token"] == one.ballot()["token"] != other.ballot()["token"]
    assert "ballot: unknown" in other.post("answer", said(one.ballot()), status=404)["error"]


def test_nothing_that_is_sent_names_a_method(client: TestClient) -> None:
    guest = Guest(client, open_study().token)
    sent = json.dumps([guest.post("join"), guest.join() and guest.ballot()]).lower()
    assert not [word for word in (*METHODS, *PARAMS, "0" * 40, "provenance", "digest") if word in sent]


def test_colors_are_those_of_the_page(client: TestClient) -> None:
    guest = Guest(client, open_study().token).join()
    sent = guest.ballot()
    ballot = next_ballot(annotators.identify(guest.link, guest.code, "here").id)
    assert ballot is not None
    for told, drawn in zip(sent["explanations"], ballot.maps, strict=True):
        page = re.findall(r'<b(?=[ >])(?: class="?([^">]*))?', explanation_html(ballot.input, drawn))
        colored = [re.search(r"\bm(\d+)\b", classes) for classes in page]
        steps = [0 if found is None else int(found[1]) for found in colored]
        assert told["steps"] == steps
        assert max(map(abs, steps)) == 20
        assert not any(isinstance(step, float) for step in told["steps"])


def test_a_picture_is_sent_as_it_was_and_without_metadata(client: TestClient, tmp_path: Path) -> None:
    study = studies.open_study(studies.create(image_design(tmp_path)).id)
    ballot = Guest(client, study.token).join().ballot()
    picture = Image.open(io.BytesIO(base64.b64decode(ballot["input"]["png"])))
    assert picture.info == {}
    assert np.asarray(picture).shape[2] == 3
    for one in ballot["explanations"]:
        assert len(one["steps"]) == len(one["tokens"]) == np.prod(one["grid"])


@pytest.mark.parametrize("state", ["draft", "closed", "archived"])
def test_a_study_that_is_not_open_lets_nobody_in(client: TestClient, state: str) -> None:
    study = open_study()
    guest = Guest(client, study.token).join()
    answer = said(guest.ballot())
    set_state(study, state)
    for refused in (lambda: guest.post("join", status=403), lambda: guest.post("answer", answer, status=403)):
        assert "stud" in refused()["error"]
    assert "stud" in guest.ballot(status=403)["error"]


@pytest.mark.parametrize("address", ["sqlite:////proc/no/such/place.db", "mysql://anna@place.db/votes"])
def test_a_database_that_is_down_is_not_named(
    client: TestClient, address: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    guest = Guest(client, open_study().token).join()
    answer = said(guest.ballot())
    with monkeypatch.context() as down:
        down.setenv(ADDRESS, address)
        sent = [guest.post("answer", answer, status=503), guest.post("join", status=503), guest.ballot(status=503)]
        for told in sent:
            assert told == {"error": "The server cannot reach its database. Nothing was saved. Try again."}
    assert "place.db" in caplog.text
    assert guest.code not in caplog.text
    assert guest.post("answer", answer)["before"] is False


@pytest.mark.parametrize("link", ["x", "%00", "x" * 300, "a b", "%F0%9F%8D%8B"])
def test_a_link_of_no_study_is_told_so(client: TestClient, link: str) -> None:
    assert Guest(client, link).post("join", status=404)["error"].startswith("Link: does not belong to any study")


def test_wrong_codes_are_limited_and_right_ones_are_not(client: TestClient) -> None:
    guest = Guest(client, open_study().token).join()
    for _ in range(8):
        guest.ballot()
    right, guest.code = guest.code, "abcd-efgh-jkmn-pqrs"
    for _ in range(5):
        assert "does not belong to anybody" in guest.ballot(status=404)["error"]
    assert "Too many wrong attempts. Wait" in guest.ballot(status=429)["error"]
    guest.code = right
    guest.ballot()


def test_a_class_behind_one_address_may_join_and_no_more_a_minute(client: TestClient) -> None:
    study, other = open_study(), open_study()
    for _ in range(60):
        Guest(client, study.token).post("join")
    assert "Too many people joined just now. Wait" in Guest(client, study.token).post("join", status=429)["error"]
    Guest(client, other.token).post("join")


NO_ANSWERS = {
    "not a list": {"ranks": "123"},
    "no numbers": {"ranks": [True, 2, 3]},
    "halves": {"ranks": [1.5, 2, 3]},
    "too few": {"ranks": [1, 2]},
    "huge": {"ranks": [10**40, 1, 1]},
    "a guess": {"ranks": None, "guess": {"label": 0, "sure": 3}},
    "no guess": {"guess": [1]},
    "a strange guess": {"guess": {"label": 0, "sure": 3, "method": "lime"}},
    "no time": {"seconds": "long"},
    "half a letter": {"token": "\ud800" * 20},
    "nothing": {"token": "\0" * 20},
    "short": {"token": "x"},
    "no ballot": {"ballot": 5},
    "another field": {"method": "lime"},
}


@pytest.mark.parametrize("change", NO_ANSWERS.values(), ids=NO_ANSWERS)
def test_what_is_no_answer_is_refused_in_words(client: TestClient, change: dict[str, Any]) -> None:
    study = open_study(practice=0)
    guest = Guest(client, study.token).join()
    told = guest.post("answer", said(guest.ballot(), **change), status=400)
    assert any(word in told["error"] for word in ("must be", "unknown name"))
    assert counted_votes(study.id) == []


@pytest.mark.parametrize(
    ("content", "headers", "status"),
    [
        (b"{}", {"Content-Type": "text/plain"}, 415),
        (b"{}", {}, 415),
        (b"x=1", {"Content-Type": "application/x-www-form-urlencoded"}, 415),
        (b"{", JSON, 400),
        (b"[]", JSON, 400),
        (b"\xff", JSON, 400),
        (b"[" * 10_000, JSON, 400),
        (b" " * (LARGEST_BODY + 1), JSON, 413),
    ],
)
def test_what_other_sites_or_no_clients_send_is_refused(
    client: TestClient, content: bytes, headers: dict[str, str], status: int
) -> None:
    told = client.post(f"/api/study/{open_study().token}/join", content=content, headers=headers)
    assert told.status_code == status
    assert told.json()["error"].startswith("body: ")


def test_answers_are_not_kept_by_anybody_on_the_way(client: TestClient) -> None:
    told = client.post(f"/api/study/{open_study().token}/join", content=b"{}", headers=JSON)
    assert told.headers["cache-control"] == "no-store"


def test_the_addresses_stand_below_the_path_of_the_pages() -> None:
    with TestClient(Starlette(routes=study_routes("/lab"))) as opened:
        told = opened.post(f"/lab/api/study/{open_study().token}/join", content=b"{}", headers=JSON)
    assert told.status_code == 200
