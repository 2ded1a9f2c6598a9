"""`exegesis study export` and `import`: tables and study files."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from engine.cli import values
from engine.cli.writing import write
from engine.errors import ExegesisError, UsageError, not_allowed, unknown

STUDY = "study"
FORMATS = ("csv", "json")


def export(
    number: Annotated[str, typer.Argument(metavar="ID", help="The study's number.")],
    what: Annotated[str, typer.Option(metavar="W", help="study, items, votes, orders or ratings.")] = STUDY,
    format: Annotated[str, typer.Option(metavar="csv|json", help="How a table is written.")] = "csv",
    votes: Annotated[bool, typer.Option("--votes", help="Put the answers into the study file too.")] = False,
    out: Annotated[str, typer.Option(metavar="FILE", help="Where to write; '-' is stdout.")] = "-",
    as_json: Annotated[bool, typer.Option("--json", help="The same as --format json.")] = False,
) -> None:
    """Write a study as a file that makes it again elsewhere, or one of its tables. Nobody's code or name is in it."""
    study = values.number_of(number)
    if format not in FORMATS:
        raise unknown("--format", format, FORMATS)
    if votes and what != STUDY:
        raise UsageError("--votes: belongs to the study file. Leave it out, or give --what study.")
    data = _study_file(study, votes) if what == STUDY else _table(study, what, "json" if as_json else format)
    if out == "-":
        sys.stdout.buffer.write(data)
        return
    write("--out", Path(out), data)
    print(f"Written: {out}")


def import_file(
    file: Annotated[str, typer.Argument(metavar="FILE", help="A study file; '-' reads stdin.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Make a study again from its file: with votes closed and with its results, without a draft ready to open."""
    from engine.cli.output import print_json
    from engine.study.study_file import import_study

    made = import_study(_read(file))
    if as_json:
        return print_json({"id": made.id, "state": made.state, "title": made.design.title})
    next_step = "results" if made.state == "closed" else "open"
    print(f"Study {made.id} is {made.state}. Go on with: exegesis study {next_step} {made.id}")
    return None


def _study_file(study: int, votes: bool) -> bytes:
    from engine.study.study_file import export_study

    return export_study(study, votes)


def _table(study: int, what: str, format: str) -> bytes:
    from engine.study.exports import TABLES, rows
    from engine.table_io import to_csv, to_json

    if what not in TABLES:
        raise unknown("--what", what, (STUDY, *TABLES))
    found = rows(study, what)
    return (to_json(found) if format == "json" else to_csv(found)).encode()


def _read(file: str) -> bytes:
    if file == "-":
        return sys.stdin.buffer.read()
    path = Path(file)
    if not path.is_file():
        raise not_allowed("FILE", "a study file", file, "Check the path.")
    try:
        return path.read_bytes()
    except OSError as error:
        raise ExegesisError(f"FILE: {file} cannot be read ({error.strerror}). Check its permissions.") from None
