"""A home that an earlier revision wrote opens: cached results, jobs, and an open study that goes on."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from alembic.script import ScriptDirectory

from engine.store import result_store
from engine.study.annotators import confirm, resume
from engine.study.ballots import next_ballot
from engine.study.counted_votes import counted_votes, to_rankings
from engine.study.database import ADDRESS, MIGRATIONS, study_database
from engine.study.results import export_rows
from tests.unit.study.polls import answer
from tests.upgrade import make

SCRIPTS = ScriptDirectory(str(MIGRATIONS), version_locations=[str(MIGRATIONS)])
WRITTEN: dict[str, Any] = json.loads((make.DATA / "home.json").read_text(encoding="utf-8"))


@pytest.fixture
def earlier_home(home: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A home as the earlier revision left it."""
    monkeypatch.delenv(ADDRESS, raising=False)
    monkeypatch.setenv("EXEGESIS_DEVICE", "cpu")
    make.load(home)
    yield home
    study_database().close()


def table_revision(home: Path) -> str:
    """The migration that the tables of studies have reached."""
    link = sqlite3.connect(home / "study.db")
    [revision] = link.execute("SELECT version_num FROM alembic_version").fetchone()
    link.close()
    return str(revision)


def test_cached_results_are_read_and_nothing_is_computed_anew(earlier_home: Path) -> None:
    before = result_store().stats()
    assert before.entries > 3
    written = WRITTEN["explanation"]
    assert make.explanation() == {"label": written["label"], "scores": pytest.approx(written["scores"], rel=1e-12)}
    run_again = {"removal_rows": {"asked": 0, "run": 0}}
    assert make.evaluation() == WRITTEN["evaluation"] | run_again
    after = result_store().stats()
    assert (after.status, after.entries, after.bytes) == ("", before.entries, before.bytes)
    assert result_store().check().ok
    assert result_store().put("0" * 64, {"new": True}, {})
    assert result_store().stats().entries == before.entries + 1


def test_jobs_are_listed(earlier_home: Path) -> None:
    assert make.jobs() == WRITTEN["jobs"]


def test_an_open_study_goes_on(earlier_home: Path) -> None:
    study = WRITTEN["study"]
    assert table_revision(earlier_home) == "0005"
    assert json.loads(json.dumps(export_rows(study["id"], "votes"))) == study["votes"]
    assert table_revision(earlier_home) == SCRIPTS.get_current_head()

    before = to_rankings(counted_votes(study["id"]))
    person = resume(study["token"], study["codes"][1], "another device")
    ballot = next_ballot(person.id)
    assert ballot is not None
    assert ballot.token == study["pending"], "the ballot that was on the screen before the upgrade"
    first = answer(ballot, 3, 1, 2)
    assert confirm(person.id, first).token == first.token
    rankings = to_rankings(counted_votes(study["id"]))
    assert rankings[:-1] == before
    assert rankings[-1].annotator == person.pseudonym
    assert next_ballot(person.id) is not None
    assert next_ballot(resume(study["token"], study["codes"][0], "a phone").id) is None, "this person was through"
