"""`exegesis jobs`: list, run, resume and cancel jobs. All processes share the list."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any

import typer

from engine import jobs
from engine.cli import output
from engine.cli.options import JsonOption, read_id, read_json_file
from engine.cli.root import FAILED, STOPPED, Commands, fail, note
from engine.errors import ExegesisError, UsageError
from engine.jobs import Job

Number = Annotated[str, typer.Argument(metavar="ID", help="ID of the job.")]


class JobCommands(Commands):
    """Command group that runs `list` if no command is given."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        return super().parse_args(ctx, args or ["list"])


app = typer.Typer(cls=JobCommands, rich_markup_mode=None, help="List, run, resume and cancel jobs.")


@app.command("list")
def list_jobs(as_json: JsonOption = False) -> None:
    """List all jobs, the newest first."""
    records = jobs.list_jobs()
    _warn(jobs.job_table().status)
    if as_json:
        return output.print_json([asdict(job) for job in records])
    rows = output.table(["id", "state", "done", "left", "started", "what"], right=["id", "done", "left"])
    for job in records:
        cells = (
            str(job.id),
            job.state,
            _share(job),
            _time_left(job),
            output.format_time(job.started),
            output.visible(job.title),
        )
        rows.add_row(*cells)
    output.console().print(rows) if records else print("There are no jobs.")
    return None


@app.command()
def show(number: Number, as_json: JsonOption = False) -> None:
    """Show one job and the errors of its failed parts."""
    job = jobs.get(read_id(number))
    failures = jobs.failures(job.id)
    if as_json:
        more = {"place": jobs.count_ahead(job), "failures": [asdict(failure) for failure in failures]}
        return output.print_json({**asdict(job), **more})
    times = {name: output.format_time(getattr(job, name)) for name in ("created", "started", "finished")}
    counts = {"done": _share(job), "computed": job.computed, "failed": job.failed, "time left": _time_left(job)}
    print(
        output.format_facts({"id": job.id, "kind": job.kind, "title": job.title, "state": job.state, **counts, **times})
    )
    for line in filter(None, (job.error, job.note, *(f"{failure.label}: {failure.error}" for failure in failures))):
        print(" ".join(line.split()))
    return None


@app.command()
def run(
    spec: Annotated[str, typer.Argument(metavar="FILE", help="The job as JSON; '-' reads stdin.")],
    kind: Annotated[str, typer.Option(metavar="KIND", help="Kind of job.")] = "explain",
    as_json: JsonOption = False,
) -> None:
    """Run a job in the foreground. If interrupted, resume it with 'exegesis jobs resume'."""
    content = read_json_file(spec)
    if not isinstance(content, dict):
        raise UsageError(f"FILE: must hold a JSON object, got {type(content).__name__}.")
    _run_and_report(jobs.create(kind, content), as_json)


@app.command()
def resume(number: Number, as_json: JsonOption = False) -> None:
    """Resume a job in the foreground; finished parts are not computed again."""
    job = jobs.get(read_id(number))
    if not job.is_over:
        raise ExegesisError(
            f"job {job.id}: is {job.state} in process {job.owner.pid}. Cancel it first, or wait for it."
        )
    _run_and_report(job, as_json)


@app.command()
def cancel(number: Number, as_json: JsonOption = False) -> None:
    """Cancel a job of any process; finished parts are kept."""
    before = jobs.get(read_id(number))
    after = jobs.cancel(before.id)
    if as_json:
        output.print_json(asdict(after))
    elif before.is_over and before.state == after.state:
        print(f"Job {after.id} is {after.state}: there is nothing to cancel.")
    else:
        print(f"Job {after.id} is {after.state if after.is_over else 'stopping'}. Finished parts are kept.")


def run_with_progress(job: Job) -> Job:
    """Run a job in the foreground with a progress bar. Notes report that the job list or the cache cannot be used."""
    with output.stdout_reserved(), output.stoppable() as token, output.progress_bar(job.title) as report:
        ended = jobs.run_now(job, report, token)
    _warn(jobs.job_table().status, ended.note)
    return ended


def exit_unless_done(job: Job) -> None:
    """Exit with an error unless the job is done. The message says how to resume, or what failed."""
    if job.state == "done":
        return
    if job.state == "cancelled":
        message = f"job {job.id}: stopped after {_share(job)}. Resume with: exegesis jobs resume {job.id}"
        raise typer.Exit(fail(message, STOPPED))
    message = f"job {job.id}: {job.state}. {job.error} See: exegesis jobs show {job.id}"
    raise typer.Exit(fail(message, FAILED))


def _run_and_report(job: Job, as_json: bool) -> None:
    ended = run_with_progress(job)
    if as_json:
        output.print_json(asdict(ended))
    elif ended.state == "done":
        print(f"Job {ended.id} is done: {ended.total:,} parts, {ended.computed:,} computed now, the rest cached.")
    exit_unless_done(ended)


def _share(job: Job) -> str:
    return f"{job.done:,} of {job.total:,}" if job.total else ""


def _time_left(job: Job) -> str:
    return "" if job.seconds_left is None else f"{job.seconds_left:.0f} s"


def _warn(*sentences: str) -> None:
    for sentence in filter(None, sentences):
        note(sentence)
