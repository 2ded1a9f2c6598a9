"""Commands of experiments, generated from their plans, and functions that these commands share."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields, replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer
from rich.console import RenderableType

from engine import runtime
from engine.cli import output
from engine.cli.inputs import check_dtype, read_methods, read_typed_params
from engine.cli.jobs import exit_unless_done, run_with_progress
from engine.cli.options import (
    DEFAULT_MODEL,
    AddressOption,
    DtypeOption,
    ExecutorOption,
    JobOption,
    OutOption,
    ParamOption,
    read_names,
    read_whole,
    set_parameters,
)
from engine.cli.root import FAILED, STOPPED, fail, note
from engine.concepts.plan import INCLUDED
from engine.data.tasks import registered_dataset
from engine.errors import Cancelled, UsageError, not_allowed
from engine.experiments.base import Experiment
from engine.experiments.options import Option, has_methods, options_of
from engine.experiments.run import FORMATS, carry_out, formats_of, part_results, rows_of
from engine.jobs import create
from engine.jobs.cluster import RAY_ADDRESS
from engine.models.catalog import is_embedded
from engine.models.label_prompts import MARK as LABELS_MARK
from engine.progress import CancelToken, Report
from engine.store import result_store

T = TypeVar("T")
P = TypeVar("P", bound=Any)
PATHS = {"models", "model", "teacher", "base", "dataset", "concepts"}
"""Plan fields that may name a file or folder."""
Work = Callable[[Any, Report, CancelToken], Any]
"""Computes the result of a plan."""
Sections = Callable[[Any], Iterable[RenderableType]]
"""Returns the sections that are printed for a result."""
SHARED = {
    "param": (ParamOption, None), "dtype": (DtypeOption, "float32"), "job": (JobOption, False),
    "executor": (ExecutorOption, "local"), "address": (AddressOption, None), "out": (OutOption, None),
}  # fmt: skip
"""Annotation and default of the options that each command has in addition to those of its plan."""


def command_of(own: Experiment, sections: Sections) -> Callable[..., None]:
    """Create the command of an experiment, with an option per field of the plan and the shared options."""

    def command(**typed: Any) -> None:
        run_experiment(own, sections, partial(_read_plan, own, typed), typed)

    plan_options = {name: (_annotation(one), _default(one)) for name, one in _plan_options(own).items()}
    as_json = (Annotated[bool, typer.Option("--json", help=own.json_help)], False)
    shared = {name: one for name, one in SHARED.items() if name != "param" or has_methods(own.plan)}
    set_parameters(command, {**plan_options, **shared, "as_json": as_json})
    command.__doc__ = own.summary
    return command


def _plan_options(own: Experiment) -> Mapping[str, Option]:
    hidden = ("dtype", "params") if has_methods(own.plan) else ("dtype", "params", "methods")
    return {name: one for name, one in options_of(own.plan).items() if name not in hidden}


def _annotation(one: Option) -> Any:
    option = typer.Option(one.flag, metavar=None if one.hint is bool else one.get("metavar"), help=one.get("help"))
    return Annotated[bool if one.hint is bool else str | None if one.default is None else str, option]


def _default(one: Option) -> Any:
    """Return the default as typed. The default of the methods is only in the help, since it is longer than a line."""
    if one.name == "models":
        return DEFAULT_MODEL
    if one.name in ("dataset", "methods"):
        return ""
    if one.is_list:
        return ",".join(map(str, one.default))
    return one.default if one.default is None or one.hint is bool else str(one.default)


def _value(one: Option, typed: Any) -> Any:
    """Parse the value of a plan field. Errors: a missing or invalid number or name."""
    if one.name == "dataset":
        return require_value(one.flag, typed)
    if one.is_list and not typed and one.default == ():
        return ()
    if one.is_number_list:
        return tuple(read_whole(one.flag, name, one.get("low") or 0) for name in read_names(one.flag, typed))
    if one.is_list:
        return one.get("parse")(typed) if one.get("parse") else tuple(read_names(one.flag, typed))
    if one.hint is int:
        return read_whole(one.flag, typed, one.get("low") or 0)
    return typed


def _read_plan(own: Experiment, typed: Mapping[str, Any]) -> Any:
    options = {name: one for name, one in _plan_options(own).items() if name != "methods"}
    plan = own.plan(methods=(), dtype=typed["dtype"], **{n: _value(one, typed[n]) for n, one in options.items()})
    if not has_methods(own.plan):
        return plan
    usual = options_of(own.plan)["methods"].default
    wanted = typed["methods"] or (",".join(usual) if isinstance(usual, tuple) else "")
    methods, _ = read_methods("--methods", wanted, plan.kind, plan.models)
    return replace(plan, methods=tuple(one.id for one in methods), params=read_typed_params(typed["param"], methods))


def run_experiment(
    own: Experiment, sections: Sections, read_plan: Callable[[], Any], typed: Mapping[str, Any],
    work: Work | None = None, failed: str = "no example could be explained",
) -> None:  # fmt: skip
    """Run a plan as a command, write the rows and print the result.

    `read_plan`: creates the plan from its options, once the shared options are checked. `typed`: values of the shared
    options, by their names in `SHARED`, and `as_json`. `work`: replaces the default work on the plan. `failed`: error
    message if the result has no example.
    """
    check_dtype(typed["dtype"])
    check_job(typed["job"], typed["executor"])
    file = rows_file(typed["out"], own)
    plan = with_absolute_paths(read_plan()) if typed["job"] else read_plan()
    if work is None:
        work = partial(carry_out, executor=typed["executor"], address=typed["address"])
    result = worked(own.id, own.doing, partial(work, plan), plan.as_plain() if typed["job"] else None)
    if file is not None:
        output.write_file("--out", file, formats_of(own)[_ending(file, formats_of(own))](result))
    if typed["as_json"]:
        output.print_json(own.steps.to_json(result))
    else:
        out = output.console()
        for section in sections(result):
            out.print(section)
        if file is not None:
            rows = f", {sum(1 for _ in rows_of(result)):,} rows" if _ending(file, formats_of(own)) in FORMATS else ""
            print(f"Written: {output.visible(str(file))}{rows}")
    if not any(one.examples for one in part_results(result)):
        raise typer.Exit(fail(f"{own.id}: {failed}; see the reasons above.", FAILED))


def require_value(option: str, value: str) -> str:
    """Return the value of a required option. Errors: it is empty."""
    if not value.strip():
        raise UsageError(f"{option}: is missing. Example: {option} reviews. See: exegesis datasets.")
    return value


def check_job(job: bool, executor: str) -> None:
    """Refuse `--job` together with another executor, since only the cluster settings decide where a job runs."""
    if job and executor != "local":
        raise UsageError(
            f"--job: runs on this machine or on the cluster that {RAY_ADDRESS} names, got --executor {executor} too. "
            "Remove one of them."
        )


def with_absolute_paths(plan: P) -> P:
    """Make the paths of models and data sets in a plan absolute, since a job may run in another folder."""
    changed: dict[str, Any] = {}
    for field in PATHS & {one.name for one in fields(plan)}:
        value = getattr(plan, field)
        if isinstance(value, tuple):
            changed[field] = tuple(map(_absolute, value))
        elif value is not None:
            changed[field] = _absolute(value)
    return replace(plan, **changed)


def _absolute(name: str) -> str:
    """Make the name of a model or data set absolute if it is a path. Its options and labels are kept."""
    if name in INCLUDED or is_embedded(name) or registered_dataset(name):
        return name
    for path, mark, rest in ((name, "", ""), name.partition(LABELS_MARK), name.partition(":")):
        if path and Path(path).expanduser().exists():
            return str(Path(path).expanduser().absolute()) + mark + rest
    return name


def rows_file(out: str | None, own: Experiment | None = None) -> Path | None:
    """Return the output file for rows, or None. Invalid paths are refused here, before long work starts.

    `own`: the experiment, which may add formats.
    """
    if out is None:
        return None
    path, formats = Path(out).expanduser(), formats_of(own)
    if not _ending(path, formats):
        endings = ", ".join(f".{name}" for name in formats)
        raise not_allowed("--out", f"a file whose name ends with one of {endings}", out)
    output.check_place("--out", path)
    return path


def _ending(path: Path, formats: Iterable[str]) -> str:
    """Return the longest format that the file name ends with, or an empty string."""
    return max((one for one in formats if path.name.lower().endswith(f".{one}")), key=len, default="")


def worked(
    kind: str, doing: str, work: Callable[[Report, CancelToken], T], job_spec: Mapping[str, Any] | None = None
) -> T:
    """Run the work with a progress bar. If it is stopped, print how to resume. `kind`: of the job and the command.

    `job_spec`: run this job first. The work then tries failed parts again and reports the reasons.
    """
    if job_spec is not None:
        _as_job(kind, job_spec)
    with (
        runtime.noting() as notes,
        output.stdout_reserved(),
        output.stoppable() as cancel,
        output.progress_bar(doing) as report,
    ):
        try:
            result = work(report, cancel)
        except Cancelled:
            message = f"{kind}: stopped; finished parts are stored. Run the same command to resume."
            raise typer.Exit(fail(message, STOPPED)) from None
    for line in filter(None, [*notes, result_store().status]):
        note(line)
    return result


def _as_job(kind: str, spec: Mapping[str, Any]) -> None:
    ended = run_with_progress(create(kind, dict(spec)))
    if ended.state != "failed":
        exit_unless_done(ended)
