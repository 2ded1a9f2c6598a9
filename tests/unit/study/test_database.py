"""The database of studies: made once by many processes, equal to its migrations, safe on the disk."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import pytest
import sqlalchemy as sa
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy.exc import IntegrityError

from engine.errors import ExegesisError, UsageError
from engine.study.database import ADDRESS, Annotator, Base, Event, Item, ItemExplanation, Study, Vote, study_database
from tests.project import ROOT

USE = """
from engine.study.database import Study, study_database
with study_database().writing() as session:
    session.add(Study(token={token!r}, design={{}}, state="draft", created=0.0))
"""


def study(token: str = "t") -> Study:
    return Study(token=token, design={}, state="draft", created=0.0)


def vote(annotator: Annotator, item: Item, token: str, **more: object) -> Vote:
    known = {"repeat": 0, "order": [1, 0], "ranks": [1, 1], "seconds": 2.5, "at": 7.0}
    return Vote(study=item.study, annotator=annotator.id, item=item.id, token=token, **known | more)


@pytest.fixture
def own_file(home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file that is used where nothing is said."""
    monkeypatch.delenv(ADDRESS, raising=False)
    return home / "study.db"


@pytest.fixture
def seated(store: str) -> tuple[Annotator, Item]:
    """An annotator of a study of one item."""
    with study_database().writing() as session:
        made = study()
        session.add(made)
        session.flush()
        item = Item(study=made.id, place=0, practice=False, input={"text": "Good."}, prediction={})
        annotator = Annotator(study=made.id, pseudonym="ann", code="c" * 64, joined=1.0)
        session.add_all([item, annotator])
        session.flush()
        shown = ItemExplanation(item=item.id, place=0, body=b"x", provenance={}, digest="d")
        session.add_all([shown, Event(study=made.id, kind="opened", details={"by": "hand"}, at=1.0)])
    return annotator, item


def test_the_migrations_make_the_tables_that_the_code_states(store: str) -> None:
    with study_database().engine.connect() as link:
        assert compare_metadata(MigrationContext.configure(link, opts={"compare_type": True}), Base.metadata) == []
        index = {i["name"]: i for i in sa.inspect(link).get_indexes("votes")}["uq_votes_current"]
        where = next(value for name, value in index["dialect_options"].items() if name.endswith("_where"))
    assert index["unique"]
    assert "superseded_by IS NULL" in str(where)


def test_sqlite_keeps_what_is_committed_whatever_happens(own_file: Path) -> None:
    with study_database().reading() as session:
        found = {name: session.execute(sa.text(f"PRAGMA {name}")).scalar() for name in ("journal_mode", "synchronous")}
        assert found == {"journal_mode": "wal", "synchronous": 2}
        assert session.execute(sa.text("PRAGMA foreign_keys")).scalar() == 1
        assert session.execute(sa.text("PRAGMA busy_timeout")).scalar() == 30_000
    assert own_file.is_file()


def test_many_processes_may_be_the_first(store: str) -> None:
    tokens = [f"t{number}" for number in range(4)]
    started = [
        subprocess.Popen([sys.executable, "-c", USE.format(token=t)], cwd=ROOT, env=dict(os.environ)) for t in tokens
    ]
    assert [process.wait(120) for process in started] == [0] * len(started)
    with study_database().reading() as session:
        assert sorted(session.scalars(sa.select(Study.token))) == tokens


def test_a_transaction_is_kept_whole_or_not_at_all(store: str) -> None:
    database = study_database()

    def cut() -> None:
        with database.writing() as session:
            session.add(study())
            session.flush()
            raise RuntimeError("in the middle")

    with pytest.raises(RuntimeError, match="in the middle"):
        cut()
    with database.reading() as session:
        assert session.scalars(sa.select(Study)).all() == []


def test_one_current_vote_a_ballot_and_a_token_counts_once(seated: tuple[Annotator, Item]) -> None:
    database, (annotator, item) = study_database(), seated
    with database.writing() as session:
        session.add(vote(annotator, item, "first"))
    for second in (vote(annotator, item, "second"), vote(annotator, item, "first", repeat=1)):
        with pytest.raises(IntegrityError), database.writing() as session:
            session.add(second)
    with database.writing() as session:
        session.execute(sa.update(Vote).values(superseded_by="second"))
        session.add(vote(annotator, item, "second", ranks=None))
    with database.reading() as session:
        votes = session.scalars(sa.select(Vote).order_by(Vote.id)).all()
    assert [(v.token, v.ranks, v.superseded_by) for v in votes] == [("first", [1, 1], "second"), ("second", None, None)]
    assert (votes[0].order, votes[0].seconds, votes[0].at) == ([1, 0], 2.5, 7.0)


def test_a_deleted_study_takes_its_rows_along(seated: tuple[Annotator, Item]) -> None:
    database, (annotator, item) = study_database(), seated
    with database.writing() as session:
        session.add(vote(annotator, item, "v"))
    with database.writing() as session:
        session.execute(sa.delete(Study))
    with database.reading() as session:
        for table in (Item, ItemExplanation, Annotator, Vote, Event):
            assert session.scalars(sa.select(table)).all() == []


def test_rows_of_no_study_are_refused(store: str) -> None:
    with pytest.raises(IntegrityError), study_database().writing() as session:
        session.add(Event(study=99, kind="opened", details={}, at=time.time()))


def test_readers_see_one_state(store: str) -> None:
    database = study_database()
    with database.reading() as session:
        before = session.scalars(sa.select(Study)).all()
        with database.writing() as other:
            other.add(study())
        assert session.scalars(sa.select(Study)).all() == before == []
    with database.reading() as session:
        assert len(session.scalars(sa.select(Study)).all()) == 1


@pytest.mark.parametrize("given", ["mysql://u:hush@host/name", "sqlite://", "no address", "sqlite:///:memory:"])
def test_other_addresses_are_refused_without_their_password(given: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(ADDRESS, given)
    with pytest.raises(UsageError, match=rf"{ADDRESS}: .*Example: postgresql://") as caught:
        study_database()
    assert "hush" not in str(caught.value)


def test_a_file_may_be_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(ADDRESS, f"sqlite:///{tmp_path}/mine.db")
    with study_database().writing() as session:
        session.add(study())
    with contextlib.closing(sqlite3.connect(tmp_path / "mine.db")) as link:
        assert link.execute("SELECT token FROM studies").fetchall() == [("t",)]


def test_a_server_that_is_not_there_is_told_without_the_password(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(ADDRESS, "postgresql://u:hush@127.0.0.1:9/name")
    with pytest.raises(ExegesisError, match=r"cannot be used") as caught:
        study_database()
    assert "hush" not in str(caught.value)


def test_a_database_of_a_later_version_is_left_alone(own_file: Path) -> None:
    study_database().close()
    with contextlib.closing(sqlite3.connect(own_file)) as link, link:
        link.execute("UPDATE alembic_version SET version_num = '9999'")
    from engine.study.database import StudyDatabase, database_address

    with pytest.raises(ExegesisError, match=r"by a newer version of Exegesis .*Update Exegesis"):
        StudyDatabase(database_address())


def test_every_reference_is_indexed() -> None:
    """A study is deleted with all that refers to it, which would scan whole tables otherwise."""
    columns = [key.parent for table in Base.metadata.tables.values() for key in table.foreign_keys]
    assert len(columns) > 8
    assert all(column.index for column in columns)
