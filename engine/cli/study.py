"""`exegesis study`: a study from its design to its end, without a browser."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Annotated, Any

import typer

from engine.cli import study_design, study_files, study_ratings, values
from engine.cli.guard import STOPPED, Commands, fail
from engine.cli.stopping import stoppable
from engine.cli.storage import can_ask
from engine.errors import Cancelled, UsageError

if TYPE_CHECKING:
    from engine.study.counts import Counts
    from engine.study.studies import StudyRecord

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
    from engine.study.studies import create

    given = {"title": title, "model": model, "dataset": dataset, "kind": kind}
    design = study_design.given(file, preset, given, method, setting or [])
    made = create(design)
    _say(made, f"Study {made.id} is a draft. Let people in with: exegesis study open {made.id}", as_json)


@app.command("list")
def listing(as_json: Json = False) -> None:
    """All studies, the newest first."""
    from engine.cli.output import console, print_json, table, visible
    from engine.study.counts import NOBODY, counts
    from engine.study.studies import all_studies

    found, counted = all_studies(), counts()
    if as_json:
        return print_json([_plain(study, counted.get(study.id, NOBODY)) for study in found])
    made = table(["id", "state", "answers", "people", "opened", "title"], right=["id", "answers", "people"])
    for study in found:
        count = counted.get(study.id, NOBODY)
        numbers = (f"{count.answers:,}", f"{count.annotators:,}")
        made.add_row(str(study.id), study.state, *numbers, _clock(study.opened), visible(study.design.title))
    console().print(made) if found else print("There are no studies. Make one with: exegesis study create")
    return None


@app.command()
def show(number: Number, as_json: Json = False) -> None:
    """One study: its design, how far it is, and what happened to it."""
    from engine.cli.output import facts, print_json, shown
    from engine.study.counts import NOBODY, counts
    from engine.study.studies import find, log_of
    from engine.study.tally import method_names

    study = find(_id(number))
    count, log = counts().get(study.id, NOBODY), log_of(study.id)
    if as_json:
        events = [{"kind": kind, "at": at, "details": details} for kind, at, details in log]
        return print_json({**_plain(study, count), "design": study.design.as_plain(), "log": events})
    design = study.design
    told = {name: getattr(design, name) for name in ("title", "question", "mode", "model", "dataset", "kind")}
    counted = {"methods": method_names(design), "answers": count.answers, "people": count.annotators}
    print(facts({"id": study.id, "state": study.state, "join": _join(study), **told, **counted}))
    for kind, at, details in log:
        more = ", ".join(f"{name} {shown(value)}" for name, value in details.items() if not isinstance(value, dict))
        print(f"{_clock(at)}  {kind}{f': {more}' if more else ''}")
    return None


@app.command("open")
def opening(number: Number, as_json: Json = False) -> None:
    """Compute and freeze what people will see, then let them in. Stopped before the end, it stays a draft."""
    from engine.cli.output import only_ours
    from engine.cli.progress import shown
    from engine.study.studies import find, open_study

    study = find(_id(number)).id
    with only_ours(), stoppable() as cancel, shown("explaining") as report:
        try:
            opened = open_study(study, report, cancel)
        except Cancelled:
            told = f"study {study}: stopped, and still a draft. Finished parts are kept: exegesis study open {study}"
            raise typer.Exit(fail(told, STOPPED)) from None
    _say(opened, f"Study {study} is open. People join at {_join(opened)} of the server.", as_json)


@app.command()
def close(number: Number, as_json: Json = False) -> None:
    """Take no more votes. What was confirmed stays."""
    from engine.study.studies import close

    closed = close(_id(number))
    _say(closed, f"Study {closed.id} is closed. See: exegesis study results {closed.id}", as_json)


@app.command()
def archive(number: Number, as_json: Json = False) -> None:
    """Put a closed study away; its votes and results stay."""
    from engine.study.studies import archive

    put = archive(_id(number))
    _say(put, f"Study {put.id} is archived.", as_json)


@app.command()
def duplicate(number: Number, as_json: Json = False) -> None:
    """Make a draft of the same design, with a link of its own."""
    from engine.study.studies import duplicate

    copy = duplicate(_id(number))
    _say(copy, f"Study {copy.id} is a draft of the same design.", as_json)


@app.command()
def delete(number: Number, yes: Yes = False, as_json: Json = False) -> None:
    """Delete a study with all of its votes. Nothing brings it back but a file exported before."""
    from engine.study.counts import NOBODY, counts
    from engine.study.studies import delete, find

    study = find(_id(number))
    count = counts().get(study.id, NOBODY)
    if not yes:
        _confirm(study, count)
    delete(study.id)
    _say(study, f"Study {study.id} is deleted, with {count.answers:,} answers.", as_json)


def _confirm(study: StudyRecord, count: Counts) -> None:
    if not can_ask():
        raise UsageError(
            f"study delete: would delete study {study.id} with {count.answers:,} answers and cannot ask here. Give "
            "--yes to do it."
        )
    asked = f"Delete study {study.id} ({study.design.title}) with {count.answers:,} answers?"
    typer.confirm(asked, abort=True, err=True)


def _say(study: StudyRecord, said: str, as_json: bool) -> None:
    from engine.cli.output import print_json

    print_json(_plain(study)) if as_json else print(said)


def _plain(study: StudyRecord, count: Counts | None = None) -> dict[str, Any]:
    counted = {} if count is None else {"answers": count.answers, "annotators": count.annotators}
    times = {"created": study.created, "opened": study.opened, "closed": study.closed}
    return {
        "id": study.id,
        "state": study.state,
        "title": study.design.title,
        "join": _join(study),
        **counted,
        **times,
    }


def _join(study: StudyRecord) -> str:
    """The join link below the server's address, which the command does not know."""
    return f"/annotate?study={study.token}"


def _clock(moment: float | None) -> str:
    return "" if moment is None else time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(moment))


def _id(number: str) -> int:
    return values.number_of(number)


app.command("results")(study_ratings.results)
app.command("export")(study_files.export)
app.command("import")(study_files.import_file)
app.command("simulate")(study_ratings.simulate)
app.command("rate")(study_ratings.rate)
