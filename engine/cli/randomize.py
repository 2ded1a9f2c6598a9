"""`exegesis randomize`: do explanations change when what a model has learned is destroyed?"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from engine.cli import values
from engine.cli.experiments import check_job, given, rows_file, worked
from engine.cli.guard import FAILED, fail
from engine.cli.methods import methods_of, values_of
from engine.cli.options import DEFAULT_MODEL, Dtype, Param, Seed, Split, check_dtype
from engine.cli.writing import write

if TYPE_CHECKING:
    from engine.progress import CancelToken, Report
    from engine.randomization.plan import Plan
    from engine.randomization.result import Randomization

    Work = Callable[[Report, CancelToken], Randomization]


def randomize(
    models: Annotated[str, typer.Option(metavar="A,B", help="Models between commas.")] = DEFAULT_MODEL,
    dataset: Annotated[str, typer.Option(metavar="D", help="Name, file, folder or hub:owner/name.")] = "",
    methods: Annotated[str, typer.Option(metavar="A,B", help="Or 'all'. [default: five of the thesis]")] = "",
    examples: Annotated[str, typer.Option(metavar="N", help="How many, drawn by the seed.")] = "50",
    seed: Seed = "0",
    mode: Annotated[
        str, typer.Option(metavar="A,B", help="cascading: from the last block down; independent: one at a time.")
    ] = "cascading,independent",
    seeds: Annotated[str, typer.Option(metavar="K", help="Randomizations of each part.")] = "3",
    head: Annotated[bool, typer.Option("--head", help="Randomize what follows the last block too, first.")] = False,
    embeddings: Annotated[bool, typer.Option("--embeddings", help="Randomize the embeddings too, last.")] = False,
    split: Split = None,
    param: Param = None,
    dtype: Dtype = "float32",
    job: Annotated[bool, typer.Option("--job", help="Do it as a job, seen and cancelled elsewhere.")] = False,
    executor: Annotated[str, typer.Option(metavar="local|ray", help="Here, or on a Ray cluster.")] = "local",
    address: Annotated[str | None, typer.Option(metavar="A", help="Of the Ray cluster, as host:port.")] = None,
    out: Annotated[str | None, typer.Option(metavar="FILE", help="A row a value: .csv, .json or .parquet.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the curves and verdicts as JSON.")] = False,
) -> None:
    """Randomize a model block by block and see whether explanations change; stopped, it goes on where it was."""
    from engine.cli import drawing_randomization, output, plain_randomization
    from engine.randomization.export import FORMATS
    from engine.randomization.plan import THESIS, Plan

    check_dtype(dtype)
    check_job(job, executor)
    file = rows_file(out)
    plan = Plan(
        models=tuple(values.names("--models", models)),
        dataset=given("--dataset", dataset),
        methods=(),
        examples=values.whole("--examples", examples, 1),
        seed=values.whole("--seed", seed),
        modes=tuple(values.names("--mode", mode)),
        seeds=values.whole("--seeds", seeds, 1),
        head=head,
        embeddings=embeddings,
        split=split,
        dtype=dtype,
    )
    asked, _ = methods_of("--methods", methods or ",".join(THESIS), plan.kind, plan.models)
    plan = replace(plan, methods=tuple(one.id for one in asked), params=values_of(param, asked))
    found = worked("randomize", "randomizing", _work(plan, executor, address), plan.as_plain() if job else None)
    if file is not None:
        write("--out", file, FORMATS[file.suffix.lower().removeprefix(".")](found))
    if as_json:
        output.print_json(plain_randomization.as_plain(found))
    else:
        drawing_randomization.draw(found, file)
    if not any(one.examples for one in found.models):
        raise typer.Exit(fail("randomize: no example could be explained; why is said above.", FAILED))


def _work(plan: Plan, executor: str, address: str | None) -> Work:
    from engine.randomization.executors import carry_out_on

    return lambda report, cancel: carry_out_on(executor, plan, address, report, cancel)
