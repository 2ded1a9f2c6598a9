"""SQLite through SQLAlchemy: WAL mode, and transactions that declare at their start whether they write."""

from __future__ import annotations

from typing import Any

from engine.lazy import sqlalchemy as sa


def sqlite_engine(address: str, busy_seconds: float, *pragmas: str) -> sa.Engine:
    """Create an engine for concurrent writes by many processes. A busy database is awaited for `busy_seconds`.

    A transaction takes the write lock as it begins, unless its execution options have `reading=True`.
    """
    memory = {"poolclass": sa.StaticPool} if address == "sqlite://" else {}
    options = {"timeout": busy_seconds, "check_same_thread": False}
    engine = sa.create_engine(address, connect_args=options, hide_parameters=True, **memory)

    @sa.event.listens_for(engine, "connect")
    def connected(link: Any, _record: Any) -> None:
        link.isolation_level = None  # BEGIN is sent below; the driver must not send a late one
        for pragma in ("journal_mode=WAL", *pragmas):
            link.execute(f"PRAGMA {pragma}")

    @sa.event.listens_for(engine, "begin")
    def begun(link: sa.Connection) -> None:
        link.exec_driver_sql("BEGIN" if link.get_execution_options().get("reading") else "BEGIN IMMEDIATE")

    return engine
