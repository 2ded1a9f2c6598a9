"""`exegesis jobs`: long work in the list that every process shares."""

from __future__ import annotations

import json
import time
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from engine.cli import values
from engine.cli.guard import FAILED, STOPPED, Commands, fail, note
from engine.errors import ExegesisError, UsageError

if TYPE_CHECKING:
    from engine.jobs import Job

Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Number = Annotated[str, typer.Argument(metavar="ID", help="The job's number.")]


class JobCommands(Commands):
    """`exegesis jobs` alone is `exegesis jobs list`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        return super().parse_args(ctx, args or ["list"])


app = typer.Typer(cls=JobCommands, rich_markup_mode=None, help="List, run, resume and cancel long work.")


@app.command("list")
def listing(as_json: Json = False) -> None:
    """All jobs, the newest first."""
    from engine.cli.output import console, print_json, table, visible
    from engine.jobs import ledger, list_jobs

    jobs = list_jobs()
    _warn(ledger().trouble)
    if as_json:
        return print_json([_plain(job) for job in jobs])
    made = table(["id", "state", "done", "left", "started", "what"], right=["id", "done", "left"])
    for job in jobs:
        made.add_row(str(job.id), job.state, _share(job), _left(job), _clock(job.started), visible(job.title))
    console().print(made) if jobs else print("There are no jobs.")
    return None


@app.command()
def show(number: Number, as_json: Json = False) -> None:
    """One job, with what failed in it and why."""
    from engine.cli.output import facts, print_json
    from engine.jobs import failures, get, place

    job = get(_id(number))
    lost = failures(job.id)
    if as_json:
        return print_json({**_plain(job), "place": place(job), "failures": [asdict(failure) for failure in lost]})
    times = {"created": _clock(job.created), "started": _clock(job.started), "finished": _clock(job.finished)}
    counts = {"done": _share(job), "computed": job.computed, "failed": job.failed, "time left": _left(job)}
    print(facts({"id": job.id, "kind": job.kind, "title": job.title, "state": job.state, **counts, **times}))
    for line in filter(None, (job.error, job.note, *(f"{failure.label}: {failure.error}" for failure in lost))):
        print(" ".join(line.split()))
    return None


@app.command()
def run(
    spec: Annotated[str, typer.Argument(metavar="FILE", help="What to do, as JSON; '-' reads stdin.")],
    kind: Annotated[str, typer.Option(metavar="KIND", help="What kind of work it is.")] = "explain",
    as_json: Json = False,
) -> None:
    """Do a job here and now. Stopped or killed, it goes on with 'exegesis jobs resume'."""
    from engine.jobs import create

    _work(create(kind, _spec(spec)), as_json)


@app.command()
def resume(number: Number, as_json: Json = False) -> None:
    """Go on with a job here and now; what is finished is found, not computed again."""
    from engine.jobs import get

    job = get(_id(number))
    if not job.over:
        raise ExegesisError(
            f"job {job.id}: is {job.state} in process {job.owner.pid}. Cancel it first, or let it work."
        )
    _work(job, as_json)


@app.command()
def cancel(number: Number, as_json: Json = False) -> None:
    """Stop a job of any process. What is finished is kept."""
    from engine import jobs
    from engine.cli.output import print_json

    before = jobs.get(_id(number))
    after = jobs.cancel(before.id)
    if as_json:
        print_json(_plain(after))
    elif before.over and before.state == after.state:
        print(f"Job {after.id} is {after.state}: there is nothing to cancel.")
    else:
        print(f"Job {after.id} is {after.state if after.over else 'asked to stop'}. Finished parts are kept.")


def carried_out(job: Job) -> Job:
    """Works on a job here and now, with progress; says what troubles the list of jobs or the cache."""
    from engine.cli.output import only_ours
    from engine.cli.progress import shown
    from engine.cli.stopping import stoppable
    from engine.jobs import ledger, run_now

    with only_ours(), stoppable() as token, shown(job.title) as report:
        ended = run_now(job, report, token)
    _warn(ledger().trouble, ended.note)
    return ended


def _work(job: Job, as_json: bool) -> None:
    from engine.cli.output import print_json

    ended = carried_out(job)
    if as_json:
        print_json(_plain(ended))
    elif ended.state == "done":
        print(f"Job {ended.id} is done: {ended.total:,} parts, {ended.computed:,} computed now, the others found.")
    end(ended)


def end(job: Job) -> None:
    """Ends the command where the job is not done: says how to go on, or what failed."""
    if job.state == "done":
        return
    if job.state == "cancelled":
        told = f"job {job.id}: stopped after {_share(job)}. Go on with: exegesis jobs resume {job.id}"
        raise typer.Exit(fail(told, STOPPED))
    told = f"job {job.id}: {job.state}. {job.error} See: exegesis jobs show {job.id}"
    raise typer.Exit(fail(told, FAILED))


def _spec(file: str) -> dict[str, Any]:
    try:
        content = values.text("FILE", "-") if file == "-" else Path(file).read_text(encoding="utf-8-sig")
        spec = json.loads(content)
    except OSError as error:
        raise UsageError(f"FILE: must be a file with JSON, got {file!r} ({error.strerror}).") from None
    except ValueError as error:
        raise UsageError(f"FILE: {file} is not valid JSON ({error}).") from None
    if not isinstance(spec, dict):
        raise UsageError(f"FILE: must hold a JSON object, got {type(spec).__name__}.")
    return spec


def _plain(job: Job) -> dict[str, Any]:
    return asdict(job)


def _id(number: str) -> int:
    return values.number_of(number)


def _share(job: Job) -> str:
    return f"{job.done:,} of {job.total:,}" if job.total else ""


def _left(job: Job) -> str:
    return "" if job.seconds_left is None else f"{job.seconds_left:.0f} s"


def _clock(moment: float | None) -> str:
    return "" if moment is None else time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(moment))


def _warn(*troubles: str) -> None:
    for trouble in filter(None, troubles):
        note(trouble)
