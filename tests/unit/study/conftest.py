"""Each test of the study's store runs on SQLite, and on PostgreSQL too where a server of it is named."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
import sqlalchemy as sa

from engine.study.database import ADDRESS, study_database

SERVER = "EXEGESIS_TEST_POSTGRES"
"""Where the address of a PostgreSQL server stands, whose user may make databases."""
DEMANDED = "EXEGESIS_REQUIRE_POSTGRES"
"""Where this stands, tests that have no PostgreSQL fail instead of being left out."""
HAS_SERVER = os.environ.get(SERVER) or os.environ.get(DEMANDED)
slow = pytest.mark.slow(reason="every test of the store once more, on PostgreSQL")
DATABASES = ("sqlite", pytest.param("postgresql", marks=slow)) if HAS_SERVER else ("sqlite",)


@pytest.fixture(params=DATABASES)
def store(request: pytest.FixtureRequest, home: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """An empty database of studies, and which kind it is."""
    if request.param == "sqlite":
        monkeypatch.delenv(ADDRESS, raising=False)
        yield request.param
        study_database().close()
        return
    if not os.environ.get(SERVER):
        pytest.fail(f"{SERVER} names no PostgreSQL server, and {DEMANDED} demands one")
    server = sa.make_url(os.environ[SERVER]).set(drivername="postgresql+psycopg")
    name = f"exegesis_test_{uuid.uuid4().hex}"
    _at(server, f"CREATE DATABASE {name}")
    monkeypatch.setenv(ADDRESS, server.set(database=name).render_as_string(hide_password=False))
    try:
        yield request.param
        study_database().close()
    finally:
        _at(server, f"DROP DATABASE {name} WITH (FORCE)")


def _at(server: sa.URL, command: str) -> None:
    engine = sa.create_engine(server, isolation_level="AUTOCOMMIT")
    with engine.connect() as link:
        link.exec_driver_sql(command)
    engine.dispose()
