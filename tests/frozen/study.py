"""Studies: the tables of the database, of the list of jobs and of the cache; what is made of study files of the day of
freezing, one of rankings and one of guesses: results, every table as CSV and JSON, the file itself again; what a design
holds; and which links the pages of studies take.
"""

from __future__ import annotations

import csv
import io
import json
import os
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.frozen import doors
from tests.frozen.commands import shape
from tests.frozen.golden import DATA, summary

FILES = {"ranks": DATA / "study_ranks.json", "guesses": DATA / "study_guesses.json"}
TABLES = ("items", "votes", "orders", "ratings")
DESIGNS: dict[str, list[str]] = {
    "usual": ["--model", "reviews-minilm", "--dataset", "reviews", "--method", "lime,gradient"],
    "preset": ["--preset", "smat", "--model", "reviews-minilm", "--dataset", "reviews"],
    "guesses": ["--model", "digits-vit", "--dataset", "digits", "--kind", "image", "--method", "lime,grad_cam", "--set",
                "mode=predict", "--set", "items.count=3", "--set", "items_per_annotator=3", "--set", "repeats=0",
                "--set", "exclusion.least_seconds=2", "--set", "seed=9"],
}  # fmt: skip


def parts() -> dict[str, Callable[[], Any]]:
    """Each golden file of this subject."""
    return {"databases": _databases, "studies": _studies}


def _databases() -> dict[str, Any]:
    """The statement of each table and index, by the place of its database in the home folder."""
    for arguments in (["study", "list"], ["jobs", "list"], ["explain", "--text", "x", "--method", "random"]):
        assert doors.run(arguments).code == 0
    home = Path(os.environ["EXEGESIS_HOME"])
    found = {}
    for file in sorted(file for file in home.rglob("*") if file.is_file()):
        if not file.read_bytes().startswith(b"SQLite format 3"):
            continue
        link = sqlite3.connect(f"file:{file}?mode=ro", uri=True)
        rows = link.execute("select type, name, sql from sqlite_master where sql is not null order by type, name")
        statements = {f"{kind} {name}": " ".join(sql.split()) for kind, name, sql in rows}
        asked = ("user_version", "application_id", "journal_mode", "page_size", "auto_vacuum")
        pragmas = {name: link.execute(f"pragma {name}").fetchone()[0] for name in asked}
        found[file.relative_to(home).as_posix()] = {**statements, **pragmas, **_revision(link)}
        link.close()
    return found


def _revision(link: sqlite3.Connection) -> dict[str, Any]:
    """Up to which migration the tables are."""
    if link.execute("select 1 from sqlite_master where name = 'alembic_version'").fetchone() is None:
        return {}
    return {"revision": link.execute("select version_num from alembic_version").fetchone()[0]}


def _studies() -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, options in DESIGNS.items():
        made = doors.run(["study", "create", "--title", name, *options, "--json"]).json
        shown = doors.run(["study", "show", str(made["id"]), "--json"])
        found[f"design, {name}"] = json.loads(shown.out)
    for name, file in FILES.items():
        found[f"study of {name}"] = _imported(file)
    found["listed"] = [_plain(row) for row in doors.run(["study", "list", "--json"]).json]
    return _plain(found)


def _imported(file: Path) -> dict[str, Any]:
    made = doors.run(["study", "import", str(file), "--json"])
    assert made.code == 0, made.err
    number = str(made.json["id"])
    found: dict[str, Any] = {"imported": made.json, "results": doors.run(["study", "results", number, "--json"]).json}
    for table in TABLES:
        rows, sheet = (
            doors.run(["study", "export", number, "--what", table, "--format", one]) for one in ("json", "csv")
        )
        if rows.code:
            found[table] = rows.err.strip()
            continue
        columns = next(csv.reader(io.StringIO(sheet.out)), [])
        found[table] = {"columns": columns, "lines": len(sheet.out.splitlines()), "rows": summary(rows.json, 24)}
    again = json.loads(doors.run(["study", "export", number, "--votes"]).out)
    before = json.loads(file.read_text(encoding="utf-8"))["content"]
    same = {name: one == again["content"][name] for name, one in before.items() if name not in ("opened", "closed")}
    found["file"] = {"written again": same, "shape": shape(again)}
    return found


def _plain(value: Any) -> Any:
    """Without dates and secrets."""
    if isinstance(value, dict):
        return {
            name: ""
            if name in ("join", "token", "exegesis", "digest", "created", "opened", "closed", "at")
            else _plain(one)
            for name, one in value.items()
        }
    if isinstance(value, list):
        return [_plain(one) for one in value]
    return value
