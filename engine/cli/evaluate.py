"""`exegesis evaluate`: methods on a data set, by metrics, on one model or several."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from engine.cli import options
from engine.cli.experiments import check_job, given, rows_file, worked
from engine.cli.guard import FAILED, fail
from engine.cli.inputs import check_dtype, read_methods, read_typed_params
from engine.cli.options import DEFAULT_MODEL, DtypeOption, ParamOption, SeedOption, SplitOption
from engine.cli.output import write_file

if TYPE_CHECKING:
    from engine.evaluation.plan import Plan
    from engine.evaluation.result import Evaluation
    from engine.progress import CancelToken, Report

    Work = Callable[[Report, CancelToken], Evaluation]


def evaluate(
    models: Annotated[str, typer.Option(metavar="A,B", help="Models between commas.")] = DEFAULT_MODEL,
    dataset: Annotated[str, typer.Option(metavar="D", help="Name, file, folder or hub:owner/name.")] = "",
    methods: Annotated[str, typer.Option(metavar="A,B", help="Methods between commas, or 'all'.")] = "",
    metrics: Annotated[
        str, typer.Option(metavar="A,B", help="[default: all that suit but sensitivity and falls of the logit]")
    ] = "",
    examples: Annotated[str, typer.Option(metavar="N", help="How many, drawn by the seed.")] = "500",
    seed: SeedOption = "0",
    split: SplitOption = None,
    unit: Annotated[str | None, typer.Option(metavar="U", help="What is ranked: token, word or patch.")] = None,
    removal: Annotated[str | None, typer.Option(metavar="O", help="How units are removed.")] = None,
    shares: Annotated[str, typer.Option(metavar="A,B", help="Percent removed for the means.")] = "5,10,20,50",
    k: Annotated[str, typer.Option("--k", metavar="K", help="Of recall_at_k.")] = "5",
    samples: Annotated[str, typer.Option(metavar="N", help="Changed inputs for sensitivity.")] = "10",
    param: ParamOption = None,
    dtype: DtypeOption = "float32",
    job: Annotated[bool, typer.Option("--job", help="Do it as a job, seen and cancelled elsewhere.")] = False,
    executor: Annotated[str, typer.Option(metavar="local|ray", help="Here, or on a Ray cluster.")] = "local",
    address: Annotated[str | None, typer.Option(metavar="A", help="Of the Ray cluster, as host:port.")] = None,
    out: Annotated[str | None, typer.Option(metavar="FILE", help="A row a value: .csv, .json or .parquet.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the scores as JSON.")] = False,
) -> None:
    """Score methods on many examples; stopped, the same command goes on where it was."""
    from engine.cli import drawing_evaluation, output, plain_evaluation
    from engine.evaluation.plan import Plan

    check_dtype(dtype)
    check_job(job, executor)
    file = rows_file(out)
    plan = Plan(
        models=tuple(options.read_names("--models", models)),
        dataset=given("--dataset", dataset),
        methods=(),
        metrics=tuple(options.read_names("--metrics", metrics)) if metrics else (),
        examples=options.read_whole("--examples", examples, 1),
        seed=options.read_whole("--seed", seed),
        split=split,
        unit=unit,
        removal=removal,
        dtype=dtype,
        shares=tuple(options.read_whole("--shares", share) for share in options.read_names("--shares", shares)),
        k=options.read_whole("--k", k, 1),
        samples=options.read_whole("--samples", samples, 1),
    )
    asked, _ = read_methods("--methods", methods, plan.kind, plan.models)
    plan = replace(plan, methods=tuple(one.id for one in asked), params=read_typed_params(param, asked))
    found = worked("evaluate", "evaluating", _work(plan, executor, address), plan.as_plain() if job else None)
    if file is not None:
        _write(found, file)
    if as_json:
        output.print_json(plain_evaluation.as_plain(found))
    else:
        drawing_evaluation.draw(found, bool(metrics), file)
    if not found.facts:
        raise typer.Exit(fail("evaluate: no example could be explained; why is said above.", FAILED))


def _work(plan: Plan, executor: str, address: str | None) -> Work:
    from engine.evaluation.executors import carry_out_on

    return lambda report, cancel: carry_out_on(executor, plan, address, report, cancel)


def _write(found: Evaluation, file: Path) -> None:
    from engine.evaluation.export import FORMATS

    write_file("--out", file, FORMATS[file.suffix.lower().removeprefix(".")](found))
