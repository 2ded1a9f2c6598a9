"""`exegesis study`: a study from its design to its end, its tables and its file, without a browser."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from engine.cli import study_ratings, values
from engine.cli.guard import STOPPED, Commands, fail
from engine.cli.output import console, facts, only_ours, print_json, shown, table, visible
from engine.cli.progress import shown as progress
from engine.cli.stopping import stoppable
from engine.cli.storage import can_ask
from engine.cli.writing import write
from engine.errors import Cancelled, ExegesisError, UsageError, not_allowed, unknown
from engine.lazy import LazyModule
from engine.study.design import Design, find_preset
from engine.table_io import to_csv, to_json

if TYPE_CHECKING:
    from engine.study import counted_votes, exports, studies, study_file
else:  # the database and the engine behind it take long to import, which help does not need
    counted_votes, exports = LazyModule("engine.study.counted_votes"), LazyModule("engine.study.exports")
    studies, study_file = LazyModule("engine.study.studies"), LazyModule("engine.study.study_file")

STUDY = "study"
FORMATS = ("csv", "json")
PARTS = ("items", "exclusion")
"""Parts of a design that have fields of their own."""

app = typer.Typer(cls=Commands, rich_markup_mode=None, help="Run studies in which people rank explanations blind.")
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Number = Annotated[str, typer.Argument(metavar="ID", help="The study's number.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]


@app.command()
def create(
    file: Annotated[str | None, typer.Argument(metavar="[FILE]", help="A design as JSON; '-' reads stdin.")] = None,
    preset: Annotated[str, typer.Option(metavar="P", help="Begin with a preset: smat.")] = "",
    title: Annotated[str | None, typer.Option(metavar="T", help="What the study is called.")] = None,
    model: Annotated[str | None, typer.Option(metavar="M", help="Embedded model, folder or hub id.")] = None,
    dataset: Annotated[str | None, typer.Option(metavar="D", help="The data set of the items.")] = None,
    kind: Annotated[str | None, typer.Option(metavar="text|image", help="What the items are.")] = None,
    method: Annotated[str, typer.Option(metavar="A,B", help="2 to 6 methods between commas.")] = "",
    setting: Annotated[
        list[str] | None, typer.Option("--set", metavar="NAME=VALUE", help="More of the design, as items.count=10.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Make a draft. 'exegesis study show ID --json' prints a design that FILE may hold."""
    options = {"title": title, "model": model, "dataset": dataset, "kind": kind}
    draft = studies.create(_read_design(file, preset, options, method, setting or []))
    _report(draft, f"Study {draft.id} is a draft. Let people in with: exegesis study open {draft.id}", as_json)


@app.command("list")
def list_studies(as_json: Json = False) -> None:
    """All studies, the newest first."""
    records, counts = studies.list_studies(), studies.count_answers()
    if as_json:
        return print_json([_to_json(study, counts.get(study.id, studies.NO_ANSWERS)) for study in records])
    rows = table(["id", "state", "answers", "people", "opened", "title"], right=["id", "answers", "people"])
    for study in records:
        count = counts.get(study.id, studies.NO_ANSWERS)
        numbers = (f"{count.answers:,}", f"{count.annotators:,}")
        rows.add_row(str(study.id), study.state, *numbers, _clock(study.opened), visible(study.design.title))
    console().print(rows) if records else print("There are no studies. Make one with: exegesis study create")
    return None


@app.command()
def show(number: Number, as_json: Json = False) -> None:
    """One study: its design, how far it is, and what happened to it."""
    study = studies.find(values.number_of(number))
    count, log = studies.count_answers().get(study.id, studies.NO_ANSWERS), studies.study_log(study.id)
    if as_json:
        events = [{"kind": kind, "at": at, "details": details} for kind, at, details in log]
        return print_json({**_to_json(study, count), "design": study.design.to_json(), "log": events})
    design = study.design
    fields = {name: getattr(design, name) for name in ("title", "question", "mode", "model", "dataset", "kind")}
    methods = counted_votes.method_names(design)
    counts = {"methods": methods, "answers": count.answers, "people": count.annotators}
    print(facts({"id": study.id, "state": study.state, "join": _join_link(study), **fields, **counts}))
    for kind, at, details in log:
        more = ", ".join(f"{name} {shown(value)}" for name, value in details.items() if not isinstance(value, dict))
        print(f"{_clock(at)}  {kind}{f': {more}' if more else ''}")
    return None


@app.command("open")
def open_study(number: Number, as_json: Json = False) -> None:
    """Compute and freeze what people will see, then let them in. Stopped before the end, it stays a draft."""
    study = studies.find(values.number_of(number)).id
    with only_ours(), stoppable() as cancel, progress("explaining") as report:
        try:
            opened = studies.open_study(study, report, cancel)
        except Cancelled:
            message = f"study {study}: stopped, and still a draft. Finished parts are kept: exegesis study open {study}"
            raise typer.Exit(fail(message, STOPPED)) from None
    _report(opened, f"Study {study} is open. People join at {_join_link(opened)} of the server.", as_json)


@app.command()
def close(number: Number, as_json: Json = False) -> None:
    """Take no more votes. What was confirmed stays."""
    study = studies.close(values.number_of(number))
    _report(study, f"Study {study.id} is closed. See: exegesis study results {study.id}", as_json)


@app.command()
def archive(number: Number, as_json: Json = False) -> None:
    """Put a closed study away; its votes and results stay."""
    study = studies.archive(values.number_of(number))
    _report(study, f"Study {study.id} is archived.", as_json)


@app.command()
def duplicate(number: Number, as_json: Json = False) -> None:
    """Make a draft of the same design, with a link of its own."""
    copy = studies.duplicate(values.number_of(number))
    _report(copy, f"Study {copy.id} is a draft of the same design.", as_json)


@app.command()
def delete(number: Number, yes: Yes = False, as_json: Json = False) -> None:
    """Delete a study with all of its votes. Nothing brings it back but a file exported before."""
    study = studies.find(values.number_of(number))
    answers = studies.count_answers().get(study.id, studies.NO_ANSWERS).answers
    if not yes and not can_ask():
        raise UsageError(
            f"study delete: would delete study {study.id} with {answers:,} answers and cannot ask here. Give --yes to "
            "do it."
        )
    if not yes:
        question = f"Delete study {study.id} ({study.design.title}) with {answers:,} answers?"
        typer.confirm(question, abort=True, err=True)
    studies.delete(study.id)
    _report(study, f"Study {study.id} is deleted, with {answers:,} answers.", as_json)


app.command("results")(study_ratings.results)


@app.command()
def export(
    number: Number,
    what: Annotated[str, typer.Option(metavar="W", help="study, items, votes, orders or ratings.")] = STUDY,
    format: Annotated[str, typer.Option(metavar="csv|json", help="How a table is written.")] = "csv",
    votes: Annotated[bool, typer.Option("--votes", help="Put the answers into the study file too.")] = False,
    out: Annotated[str, typer.Option(metavar="FILE", help="Where to write; '-' is stdout.")] = "-",
    json_format: Annotated[bool, typer.Option("--json", help="The same as --format json.")] = False,
) -> None:
    """Write a study as a file that makes it again elsewhere, or one of its tables. Nobody's code or name is in it."""
    study = values.number_of(number)
    if format not in FORMATS:
        raise unknown("--format", format, FORMATS)
    if votes and what != STUDY:
        raise UsageError("--votes: belongs to the study file. Leave it out, or give --what study.")
    if what == STUDY:
        data = study_file.export_study(study, votes)
    elif what not in exports.EXPORT_TABLES:
        raise unknown("--what", what, (STUDY, *exports.EXPORT_TABLES))
    else:
        rows = exports.export_rows(study, what)
        data = (to_json(rows) if json_format or format == "json" else to_csv(rows)).encode()
    if out == "-":
        sys.stdout.buffer.write(data)
        return
    write("--out", Path(out), data)
    print(f"Written: {out}")


@app.command("import")
def import_file(
    file: Annotated[str, typer.Argument(metavar="FILE", help="A study file; '-' reads stdin.")],
    as_json: Json = False,
) -> None:
    """Make a study again from its file: with votes closed and with its results, without a draft ready to open."""
    study = study_file.import_study(_read_study_file(file))
    if as_json:
        return print_json({"id": study.id, "state": study.state, "title": study.design.title})
    next_step = "results" if study.state == "closed" else "open"
    print(f"Study {study.id} is {study.state}. Go on with: exegesis study {next_step} {study.id}")
    return None


app.command("simulate")(study_ratings.simulate)
app.command("rate")(study_ratings.rate)


def _read_design(
    file: str | None, preset: str, options: Mapping[str, str | None], methods: str, settings: list[str]
) -> Design:
    """A design from a file or a preset, options and settings; the last one wins. `studies.create` checks it as a whole.

    Errors name the option or the part of the design.
    """
    if file is not None and preset:
        raise UsageError("--preset: got FILE too. Leave one of them out.")
    design: dict[str, Any] = {}
    if file is not None:
        design = _read_design_file(file)
    elif preset:
        defaults = (("model", ""), ("dataset", ""), ("kind", "text"))
        design = find_preset(preset).design(*(options[name] or default for name, default in defaults)).to_json()
    design |= {name: value for name, value in options.items() if value is not None}
    if methods:
        design["methods"] = [{"id": name} for name in values.names("--method", methods)]
    for name, value in values.pairs("--set", settings, "items.count=10").items():
        part, dot, field = name.rpartition(".")
        if dot and part not in PARTS:
            raise not_allowed("--set", f"a field of the design, or one of {', '.join(PARTS)} after a dot", name)
        holder = design.setdefault(part, {}) if dot else design
        if not isinstance(holder, dict):
            raise not_allowed(f"design.{part}", "names with values", holder)
        is_list = name == "items.indices"
        holder[field] = [values.whole(f"--set {name}", each) for each in value.split(",")] if is_list else value
    return Design.from_json(design)


def _read_design_file(file: str) -> dict[str, Any]:
    """The design in a JSON file, or in the output of `exegesis study show --json`."""
    try:
        content = json.loads(values.text("FILE", "-") if file == "-" else Path(file).read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise UsageError(f"FILE: must be a file with JSON, got {file!r} ({error.strerror}).") from None
    except (ValueError, RecursionError) as error:
        raise UsageError(f"FILE: {file} is not valid JSON ({error}).") from None
    design = content.get("design", content) if isinstance(content, dict) else content
    if not isinstance(design, dict):
        raise not_allowed("FILE", "a JSON object with a design", design)
    return design


def _read_study_file(file: str) -> bytes:
    if file == "-":
        return sys.stdin.buffer.read()
    path = Path(file)
    if not path.is_file():
        raise not_allowed("FILE", "a study file", file, "Check the path.")
    try:
        return path.read_bytes()
    except OSError as error:
        raise ExegesisError(f"FILE: {file} cannot be read ({error.strerror}). Check its permissions.") from None


def _report(study: studies.StudyRecord, message: str, as_json: bool) -> None:
    print_json(_to_json(study)) if as_json else print(message)


def _to_json(study: studies.StudyRecord, count: studies.AnswerCounts | None = None) -> dict[str, Any]:
    counts = {} if count is None else {"answers": count.answers, "annotators": count.annotators}
    return {
        "id": study.id,
        "state": study.state,
        "title": study.design.title,
        "join": _join_link(study),
        **counts,
        "created": study.created,
        "opened": study.opened,
        "closed": study.closed,
    }


def _join_link(study: studies.StudyRecord) -> str:
    """The join link below the server's address, which the command does not know."""
    return f"/annotate?study={study.token}"


def _clock(moment: float | None) -> str:
    return "" if moment is None else time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(moment))
