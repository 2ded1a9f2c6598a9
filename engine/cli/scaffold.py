"""`exegesis scaffold`: how well does an explanation teach a student, and which attention teaches best?"""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from engine.cli import options
from engine.cli.experiments import check_job, given, rows_file, worked
from engine.cli.guard import FAILED, fail
from engine.cli.options import DEFAULT_MODEL, ConfigOptions, Split
from engine.cli.output import write_file
from engine.errors import UsageError
from engine.params import from_mapping
from engine.scaffold import presets
from engine.scaffold.plan import SEEDS, SETTINGS, Plan, Recipe

if TYPE_CHECKING:
    from engine.progress import CancelToken, Report
    from engine.scaffold.result import Scaffold

    Work = Callable[[Report, CancelToken], Scaffold]

FIELDS = {field.name: field for field in dataclasses.fields(Recipe)}
OPTIONS = ConfigOptions(
    FIELDS,
    lambda name: str(FIELDS[name].metadata["help"]),
    lambda name: str(FIELDS[name].default).lower(),
    "Print cells and students as JSON.",
)


def scaffold(
    teacher: Annotated[
        str | None,
        typer.Option("--teacher", "--models", metavar="M", help=f"Who is explained. [default: {DEFAULT_MODEL}]"),
    ] = None,
    dataset: Annotated[str | None, typer.Option(metavar="D", help="Name, file, folder or hub:owner/name.")] = None,
    settings: Annotated[
        str | None,
        typer.Option(metavar="A,B", help=f"What students are shown: {', '.join(SETTINGS)}. [default: all]"),
    ] = None,
    train_sizes: Annotated[
        str | None, typer.Option(metavar="N,N", help="Examples that a student learns from. [default: 500]")
    ] = None,
    seeds: Annotated[str, typer.Option(metavar="N,N", help="A student each.")] = ",".join(map(str, SEEDS)),
    base: Annotated[
        str | None, typer.Option(metavar="B", help="What students start from. [default: what the teacher was made of]")
    ] = None,
    split: Split = None,
    preset: Annotated[
        str | None, typer.Option(metavar="|".join(presets.PRESETS), help="Data and settings of the SMaT paper.")
    ] = None,
    job: Annotated[bool, typer.Option("--job", help="Do it as a job, seen and cancelled elsewhere.")] = False,
    executor: Annotated[str, typer.Option(metavar="local|ray", help="Here, or on a Ray cluster.")] = "local",
    address: Annotated[str | None, typer.Option(metavar="A", help="Of the Ray cluster, as host:port.")] = None,
    out: Annotated[str | None, typer.Option(metavar="FILE", help="A row a value: .csv, .json or .parquet.")] = None,
    explainer: Annotated[
        str | None, typer.Option(metavar="NAME|DIR", help="Keep the learned explainer, for method smat.")
    ] = None,
    as_json: bool = False,
    **recipe: Any,
) -> None:
    """Teach students to say what a model says, with and without explanations; stopped, it goes on where it was."""
    from engine.cli import drawing_scaffold, output, plain_scaffold, scaffold_explainer
    from engine.scaffold.export import FORMATS

    check_job(job, executor)
    file = rows_file(out)
    plan = _plan(preset, teacher, dataset, base, split, OPTIONS.chosen(recipe))
    plan = dataclasses.replace(
        plan,
        settings=SETTINGS if settings is None else tuple(options.read_names("--settings", settings)),
        seeds=_wholes("--seeds", seeds, 0),
        train_sizes=plan.train_sizes if train_sizes is None else _wholes("--train-sizes", train_sizes, 1),
    )
    scaffold_explainer.check(explainer, plan)
    found = worked("scaffold", "teaching", _work(plan, executor, address), plan.as_plain() if job else None)
    if file is not None:
        write_file("--out", file, FORMATS[file.suffix.lower().removeprefix(".")](found))
    learned = None if explainer is None else scaffold_explainer.saved(explainer, found)
    if as_json:
        output.print_json(plain_scaffold.as_plain(found, learned))
    else:
        drawing_scaffold.draw(found, file, learned)
    if not found.outcomes:
        raise typer.Exit(fail("scaffold: no student could be taught; why is said above.", FAILED))


def _plan(
    name: str | None,
    teacher: str | None,
    dataset: str | None,
    base: str | None,
    split: str | None,
    recipe: Mapping[str, object],
) -> Plan:
    """That of the preset or the usual one, changed where something else is given."""
    if teacher is not None and "," in teacher and not Path(teacher).exists():
        raise UsageError(f"--teacher: must be one model, got {teacher!r}. Give the command once for each.")
    if name is None:
        plan = Plan(teacher or DEFAULT_MODEL, given("--dataset", dataset or ""))
    else:
        plan = presets.preset(name, teacher, dataset)
    changed = {key: value for key, value in (("base", base), ("split", split)) if value is not None}
    known = dataclasses.asdict(plan.recipe)
    return dataclasses.replace(plan, recipe=from_mapping(Recipe, known | dict(recipe), "scaffold"), **changed)  # type: ignore[arg-type]


def _wholes(option: str, text: str, low: int) -> tuple[int, ...]:
    return tuple(options.read_whole(option, part, low) for part in options.read_names(option, text))


def _work(plan: Plan, executor: str, address: str | None) -> Work:
    from engine.scaffold.executors import scaffold_on

    return lambda report, cancel: scaffold_on(executor, plan, address, report, cancel)


def _signature() -> inspect.Signature:
    """Its own options, then one for each field of the recipe, and --json at the end."""
    own = inspect.signature(scaffold, eval_str=True).parameters.values()
    keyword = inspect.Parameter.KEYWORD_ONLY
    kept = [one.replace(kind=keyword) for one in own if one.name not in ("as_json", "recipe")]
    return inspect.Signature([*kept, *OPTIONS.signature().parameters.values()])


_SIGNATURE = _signature()
scaffold.__signature__ = _SIGNATURE  # type: ignore[attr-defined]
scaffold.__annotations__ = {name: one.annotation for name, one in _SIGNATURE.parameters.items()}
