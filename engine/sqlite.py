"""SQLite through SQLAlchemy: WAL, and transactions that say at their begin whether they write."""

from __future__ import annotations

from typing import Any

from engine.lazy import sqlalchemy as sa


def sqlite_engine(address: str, busy_seconds: float, *pragmas: str) -> sa.Engine:
    """An engine that many processes may write through: who finds it busy waits for `busy_seconds`.

    A transaction takes the turn to write as it begins, unless its execution options say `reading=True`.
    """
    memory = {"poolclass": sa.StaticPool} if address == "sqlite://" else {}
    options = {"timeout": busy_seconds, "check_same_thread": False}
    engine = sa.create_engine(address, connect_args=options, hide_parameters=True, **memory)

    @sa.event.listens_for(engine, "connect")
    def connected(link: Any, _record: Any) -> None:
        link.isolation_level = None  # SQLAlchemy says BEGIN below; the driver must not say it late
        for pragma in ("journal_mode=WAL", *pragmas):
            link.execute(f"PRAGMA {pragma}")

    @sa.event.listens_for(engine, "begin")
    def begun(link: sa.Connection) -> None:
        link.exec_driver_sql("BEGIN" if link.get_execution_options().get("reading") else "BEGIN IMMEDIATE")

    return engine
