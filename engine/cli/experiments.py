"""What the commands `evaluate`, `randomize` and `attack` share: their checks, and how the work is done."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import typer

from engine.cli.guard import STOPPED, fail, note
from engine.cli.jobs import carried_out, end
from engine.cli.writing import check_place
from engine.errors import Cancelled, UsageError, not_allowed

if TYPE_CHECKING:
    from engine.progress import CancelToken, Report

T = TypeVar("T")


def given(option: str, value: str) -> str:
    """What has to be named. Errors: it is not."""
    if not value.strip():
        raise UsageError(f"{option}: is missing. Example: {option} reviews. See: exegesis datasets.")
    return value


def check_job(job: bool, executor: str) -> None:
    """Refuses a job for another machine."""
    if job and executor != "local":
        raise UsageError(f"--job: is done on this machine, got --executor {executor} too. Leave one of them out.")


def rows_file(out: str | None) -> Path | None:
    """Where the rows go, None for nowhere; refused before long work is done for them."""
    from engine.evaluation.export import FORMATS

    if out is None:
        return None
    path = Path(out).expanduser()
    if path.suffix.lower().removeprefix(".") not in FORMATS:
        endings = ", ".join(f".{name}" for name in FORMATS)
        raise not_allowed("--out", f"a file whose name ends with one of {endings}", out)
    check_place("--out", path)
    return path


def worked(
    kind: str, doing: str, work: Callable[[Report, CancelToken], T], job_spec: Mapping[str, Any] | None = None
) -> T:
    """What the work finds, with progress; stopped, it says how to go on. `kind`: of the job, and the command's name.

    `job_spec`: first goes through the list of jobs. What failed there is tried again by the work, which says why.
    """
    from engine.cli.output import only_ours
    from engine.cli.progress import shown
    from engine.cli.stopping import stoppable
    from engine.store import result_store

    if job_spec is not None:
        _as_job(kind, job_spec)
    with only_ours(), stoppable() as cancel, shown(doing) as report:
        try:
            found = work(report, cancel)
        except Cancelled:
            told = f"{kind}: stopped; finished parts are kept. The same command goes on."
            raise typer.Exit(fail(told, STOPPED)) from None
    if trouble := result_store().status:
        note(trouble)
    return found


def _as_job(kind: str, spec: Mapping[str, Any]) -> None:
    from engine.jobs import create

    ended = carried_out(create(kind, dict(spec)))
    if ended.state != "failed":
        end(ended)
