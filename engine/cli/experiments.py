"""The command of an experiment, made of its plan; and what the commands of experiments share."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from statistics import fmean
from typing import Annotated, Any, TypeVar

import typer

from engine.cli.guard import FAILED, STOPPED, fail, note
from engine.cli.inputs import check_dtype, read_methods, read_typed_params
from engine.cli.jobs import exit_unless_done, run_with_progress
from engine.cli.options import DEFAULT_MODEL, DtypeOption, ParamOption, read_names, read_whole
from engine.cli.output import (
    check_place,
    console,
    print_json,
    progress_bar,
    stdout_reserved,
    stoppable,
    table,
    visible,
    write_file,
)
from engine.errors import Cancelled, UsageError, not_allowed
from engine.experiments.base import Experiment
from engine.experiments.options import Option, options_of
from engine.experiments.run import FORMATS, carry_out, part_results, rows_of
from engine.jobs import create
from engine.progress import CancelToken, Report
from engine.store import result_store

T = TypeVar("T")
Work = Callable[[Any, Report, CancelToken], Any]
"""Gives the result of a plan."""
Draw = Callable[[Any, Path | None], object]
"""Prints a result for people; the second is the file to which rows went."""
SHARED = {
    "param": (ParamOption, None),
    "dtype": (DtypeOption, "float32"),
    "job": (Annotated[bool, typer.Option("--job", help="Do it as a job, seen and cancelled elsewhere.")], False),
    "executor": (Annotated[str, typer.Option(metavar="local|ray", help="Here, or on a Ray cluster.")], "local"),
    "address": (Annotated[str | None, typer.Option(metavar="A", help="Of the Ray cluster, as host:port.")], None),
    "out": (
        Annotated[str | None, typer.Option(metavar="FILE", help="A row a value: .csv, .json or .parquet.")], None,
    ),
}  # fmt: skip
"""The options that each command has after those of its plan, with their defaults."""


def command_of(own: Experiment, draw: Draw) -> Callable[..., None]:
    """The command: an option a field of the plan, then those that all experiments share."""

    def command(**given: Any) -> None:
        _run(own, draw, given)

    parameters = {name: (_annotation(one), _default(one)) for name, one in _plan_options(own).items()} | SHARED
    parameters["as_json"] = (Annotated[bool, typer.Option("--json", help=own.json_help)], False)
    keyword = inspect.Parameter.KEYWORD_ONLY
    command.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [inspect.Parameter(name, keyword, default=d, annotation=a) for name, (a, d) in parameters.items()]
    )
    command.__annotations__ = {name: annotation for name, (annotation, _) in parameters.items()}
    command.__doc__ = own.summary
    return command


def _plan_options(own: Experiment) -> Mapping[str, Option]:
    return {name: one for name, one in options_of(own.plan).items() if name not in ("dtype", "params")}


def _annotation(one: Option) -> Any:
    option = typer.Option(one.flag, metavar=None if one.hint is bool else one.get("metavar"), help=one.get("help"))
    return Annotated[bool if one.hint is bool else str | None if one.default is None else str, option]


def _default(one: Option) -> Any:
    """As it is typed. The methods' own default is said in the help: it is longer than a line."""
    if one.name == "models":
        return DEFAULT_MODEL
    if one.name in ("dataset", "methods"):
        return ""
    if one.is_list:
        return ",".join(map(str, one.default))
    return one.default if one.default is None or one.hint is bool else str(one.default)


def _value(one: Option, typed: Any) -> Any:
    """What the plan is given. Errors: a number or a name that is missing or wrong."""
    if one.name == "dataset":
        return require_value(one.flag, typed)
    if one.is_number_list:
        return tuple(read_whole(one.flag, name, one.get("low") or 0) for name in read_names(one.flag, typed))
    if one.is_list:
        return tuple(read_names(one.flag, typed)) if typed or one.default != () else ()
    if one.hint is int:
        return read_whole(one.flag, typed, one.get("low") or 0)
    return typed


def _run(own: Experiment, draw: Draw, typed: Mapping[str, Any]) -> None:
    run_experiment(own, draw, partial(_read_plan, own, typed), typed)


def _read_plan(own: Experiment, typed: Mapping[str, Any]) -> Any:
    options = {name: one for name, one in _plan_options(own).items() if name != "methods"}
    plan = own.plan(methods=(), dtype=typed["dtype"], **{n: _value(one, typed[n]) for n, one in options.items()})
    usual = options_of(own.plan)["methods"].default
    wanted = typed["methods"] or (",".join(usual) if isinstance(usual, tuple) else "")
    methods, _ = read_methods("--methods", wanted, plan.kind, plan.models)
    return replace(plan, methods=tuple(one.id for one in methods), params=read_typed_params(typed["param"], methods))


def run_experiment(
    own: Experiment, draw: Draw, read_plan: Callable[[], Any], typed: Mapping[str, Any], work: Work | None = None,
    failed: str = "no example could be explained",
) -> None:  # fmt: skip
    """Carry out a plan as a command does, then write the rows and print the result.

    `read_plan`: makes the plan of what was typed, after the options that all experiments share are checked. `typed`:
    values of these options, by their names in `SHARED`, and `as_json`. `work`: does something else with the plan.
    `failed`: what is said where the result has no example.
    """
    check_dtype(typed["dtype"])
    check_job(typed["job"], typed["executor"])
    file = rows_file(typed["out"])
    plan = read_plan()
    if work is None:
        work = partial(carry_out, executor=typed["executor"], address=typed["address"])
    found = worked(own.id, own.doing, partial(work, plan), plan.as_plain() if typed["job"] else None)
    if file is not None:
        write_file("--out", file, FORMATS[file.suffix.lower().removeprefix(".")](found))
    if typed["as_json"]:
        print_json(own.steps.to_json(found))
    else:
        draw(found, file)
        if file is not None:
            print(f"Written: {visible(str(file))}, {sum(1 for _ in rows_of(found)):,} rows")
    if not any(one.examples for one in part_results(found)):
        raise typer.Exit(fail(f"{own.id}: {failed}; why is said above.", FAILED))


def draw_means(found: Any, file: Path | None) -> None:
    """For people: the mean of each metric by model and method."""
    groups: dict[tuple[str, str, str], list[float]] = {}
    for row in rows_of(found):
        groups.setdefault((row["model"], row["method"], row["metric"]), []).append(row["value"])
    means = table(["model", "method", "metric", "mean", "n"], right=["mean", "n"])
    for names, numbers in groups.items():
        means.add_row(*map(visible, names), f"{fmean(numbers):.4g}", str(len(numbers)))
    console().print(means)


def require_value(option: str, value: str) -> str:
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
    if job_spec is not None:
        _as_job(kind, job_spec)
    with stdout_reserved(), stoppable() as cancel, progress_bar(doing) as report:
        try:
            found = work(report, cancel)
        except Cancelled:
            told = f"{kind}: stopped; finished parts are kept. The same command goes on."
            raise typer.Exit(fail(told, STOPPED)) from None
    if trouble := result_store().status:
        note(trouble)
    return found


def _as_job(kind: str, spec: Mapping[str, Any]) -> None:
    ended = run_with_progress(create(kind, dict(spec)))
    if ended.state != "failed":
        exit_unless_done(ended)
