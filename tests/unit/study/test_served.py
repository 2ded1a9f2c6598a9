"""The server, however it is started, serves the pages and the study's addresses beside them."""

from __future__ import annotations

import urllib.request
from pathlib import Path

import pytest
import sqlalchemy as sa
from sqlalchemy.exc import IntegrityError

import components.server as dashboard_server
from engine.study.database import Annotator, study_database
from tests.browser.server import Server, running
from tests.unit.study.polls import agreed, open_study
from tests.unit.study.voter import Voter


def page(server: Server) -> str:
    with urllib.request.urlopen(f"{server.url}/annotate", timeout=30) as answer:
        return str(answer.read().decode())


@pytest.mark.parametrize("way", ["launcher", "streamlit"])
def test_both_ways_of_starting_serve_pages_and_votes(way: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EXEGESIS_HOME", str(tmp_path / "home"))
    voter = Voter(open_study(items=2, items_per_annotator=2, repeats=0).token)
    with running(tmp_path, way) as server:
        voter.vote(server.url)
        assert voter.through
        assert '<div id="root">' in page(server)
    study_database().close()


@pytest.mark.parametrize(
    ("options", "address"),
    [
        ({}, "http://localhost:8501/"),
        ({"server.address": "0.0.0.0", "server.port": 80}, "http://localhost:80/"),
        ({"server.address": "lab.example", "server.baseUrlPath": "/x/"}, "http://lab.example:8501/x/"),
        ({"server.sslCertFile": "cert.pem"}, "https://localhost:8501/"),
    ],
)
def test_the_browser_is_sent_to_where_the_server_listens(
    options: dict[str, object], address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = {"server.port": 8501} | options
    monkeypatch.setattr(dashboard_server.st, "get_option", known.get)
    assert dashboard_server.dashboard_url() == address


@pytest.mark.usefixtures("store")
def test_an_error_of_the_database_tells_nothing_of_what_was_to_be_stored() -> None:
    person = agreed(open_study().token)
    with study_database().reading() as session:
        row = session.get_one(Annotator, person.id)
    again = sa.insert(Annotator).values(study=row.study, pseudonym="p-new", code=row.code, joined=1234.5)
    with pytest.raises(IntegrityError) as told, study_database().writing() as session:
        session.execute(again)
    assert "1234.5" not in str(told.value)
    assert "p-new" not in str(told.value)
