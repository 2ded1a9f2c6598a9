"""`exegesis scaffold`: measure how well explanations teach students to predict the model.

Prints simulability by setting and train size, and a line per problem with students.
"""

from __future__ import annotations

import dataclasses
import inspect
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import RenderableType
from rich.text import Text

from engine.cli import options
from engine.cli.experiments import check_job, require_value, rows_file, with_absolute_paths, worked
from engine.cli.output import NOTHING, console, print_json, table, visible, write_file
from engine.cli.root import FAILED, fail
from engine.errors import UsageError, not_allowed
from engine.format import count_text
from engine.input_kinds import kind_of_model
from engine.params import from_mapping
from engine.scaffold import presets
from engine.scaffold.experiment import scaffold as run_scaffold
from engine.scaffold.learned_explainer import (
    CARD,
    NAME,
    LearnedExplainer,
    explainers_folder,
    median_explainer,
    save,
    save_to_home,
)
from engine.scaffold.plan import SEEDS, SETTINGS, SMAT, Recipe, ScaffoldPlan
from engine.scaffold.result import FORMATS, ScaffoldResult, StudentResult, rows, to_json

FIELDS = {field.name: field for field in dataclasses.fields(Recipe)}
OPTIONS = options.ConfigOptions(
    FIELDS,
    lambda name: str(FIELDS[name].metadata["help"]),
    lambda name: str(FIELDS[name].default).lower(),
    "Print cells and students as JSON.",
)
EXPLAINER_OPTION = "--explainer"
BETTER = "+"
LEGEND = {
    "accuracy": "Simulability: share of test examples for which student and teacher predict the same class.",
    "pearson": "Simulability: Pearson's correlation between student's and teacher's scores on the test examples.",
}
CELLS = (
    f"Median over seeds [quartiles]. {BETTER}: quartiles above those of no explainer (none). --json adds single seeds, "
    "passes and learned heads; --out writes all values."
)


def scaffold(
    teacher: Annotated[
        str | None,
        typer.Option(
            "--teacher",
            "--models",
            metavar="M",
            help=f"The model that students learn to predict. [default: {options.DEFAULT_MODEL}]",
        ),
    ] = None,
    dataset: Annotated[str | None, typer.Option(metavar="D", help="Name, file, folder or hub:owner/name.")] = None,
    settings: Annotated[
        str | None,
        typer.Option(metavar="A,B", help=f"Explanations shown to students: {', '.join(SETTINGS)}. [default: all]"),
    ] = None,
    train_sizes: Annotated[
        str | None, typer.Option(metavar="N,N", help="Numbers of examples that students learn from. [default: 500]")
    ] = None,
    seeds: Annotated[str, typer.Option(metavar="N,N", help="One student per seed.")] = ",".join(map(str, SEEDS)),
    base: Annotated[
        str | None,
        typer.Option(metavar="B", help="Pre-trained model that students start from. [default: the teacher's own base]"),
    ] = None,
    split: options.SplitOption = None,
    preset: Annotated[
        str | None,
        typer.Option(
            metavar="|".join(presets.PRESETS), help="Use the data and recipe of an experiment in the SMaT paper."
        ),
    ] = None,
    job: options.JobOption = False,
    executor: options.ExecutorOption = "local",
    address: options.AddressOption = None,
    out: options.OutOption = None,
    explainer: Annotated[
        str | None, typer.Option(metavar="NAME|DIR", help="Save the learned explainer for method smat.")
    ] = None,
    as_json: bool = False,
    **recipe: Any,
) -> None:
    """Train students to predict a model, with and without its explanations. Run it again to resume."""
    check_job(job, executor)
    file = rows_file(out)
    plan = _plan(preset, teacher, dataset, base, split, OPTIONS.chosen(recipe))
    plan = dataclasses.replace(
        plan,
        settings=SETTINGS if settings is None else tuple(options.read_names("--settings", settings)),
        seeds=_whole_numbers("--seeds", seeds, 0),
        train_sizes=plan.train_sizes if train_sizes is None else _whole_numbers("--train-sizes", train_sizes, 1),
    )
    plan = with_absolute_paths(plan) if job else plan
    _check_explainer(explainer, plan)
    result = worked(
        "scaffold",
        "training students",
        lambda report, cancel: run_scaffold(plan, report, cancel, executor, address),
        plan.as_plain() if job else None,
    )
    if file is not None:
        write_file("--out", file, FORMATS[file.suffix.lower().removeprefix(".")](result))
    saved = None if explainer is None else _save_explainer(explainer, result)
    if as_json:
        print_json(to_json(result, None if saved is None else saved[1] / saved[0].name))
    else:
        for part in _parts(result):
            console().print(part)
        if file is not None:
            print(f"Written: {visible(str(file))}, {sum(1 for _ in rows(result)):,} rows")
        if saved is not None:
            print(visible(_explainer_line(*saved)))
    if not result.students:
        raise typer.Exit(fail("scaffold: no student could be trained; see the reasons above.", FAILED))


def _plan(
    name: str | None,
    teacher: str | None,
    dataset: str | None,
    base: str | None,
    split: str | None,
    recipe: Mapping[str, object],
) -> ScaffoldPlan:
    """Create the plan of a preset, or the default plan, and set the values of the options."""
    if teacher is not None and "," in teacher and not Path(teacher).exists():
        raise UsageError(f"--teacher: must be one model, got {teacher!r}. Run the command once per model.")
    if name is None:
        plan = ScaffoldPlan(teacher or options.DEFAULT_MODEL, require_value("--dataset", dataset or ""))
    else:
        plan = presets.preset_plan(name, teacher, dataset)
    fields = dataclasses.asdict(plan.recipe) | dict(recipe)
    changed = {key: value for key, value in (("base", base), ("split", split)) if value is not None}
    return dataclasses.replace(plan, recipe=from_mapping(Recipe, fields, "scaffold", flags=True), **changed)  # type: ignore[arg-type]


def _whole_numbers(option: str, text: str, low: int) -> tuple[int, ...]:
    return tuple(options.read_whole(option, part, low) for part in options.read_names(option, text))


def _check_explainer(place: str | None, plan: ScaffoldPlan) -> None:
    """Before training, refuse a plan without a learned explainer, or a place where it cannot be saved."""
    if place is None:
        return
    if SMAT not in plan.settings:
        raise UsageError(f"{EXPLAINER_OPTION}: requires the setting {SMAT}, got --settings {','.join(plan.settings)}.")
    folder, name = _folder_and_name(place)
    if folder is None and (not NAME.fullmatch(place) or (explainers_folder() / f"{name}{CARD}").exists()):
        allowed = "a folder, or a name of letters, digits, dots, - and _ that is not taken yet"
        raise not_allowed(EXPLAINER_OPTION, allowed, place, f"Existing explainers are in {explainers_folder()}.")
    if folder is not None and not folder.is_dir():
        raise UsageError(f"{EXPLAINER_OPTION}: {folder} is not a folder. Create it first, or give only a name.")


def _save_explainer(place: str, result: ScaffoldResult) -> tuple[LearnedExplainer, Path]:
    """Save the explainer of the median student at the largest train size. Returns the explainer and its folder."""
    explainer = median_explainer(result, max(result.plan.train_sizes))
    folder, name = _folder_and_name(place)
    if folder is None:
        return save_to_home(explainer, name), explainers_folder()
    return save(explainer, folder, name), folder


def _explainer_line(explainer: LearnedExplainer, folder: Path) -> str:
    """Describe where the explainer is saved and how to use it."""
    card = explainer.card
    given = "--image F" if kind_of_model(card.teacher) == "image" else "--text '...'"
    name = explainer.name if folder == explainers_folder() else folder / explainer.name
    return (
        f"Learned explainer, from {card.train_size:,} examples (median student): {folder / explainer.name}. "
        f"Use it: exegesis explain --model {card.teacher} --method {SMAT} {given} --param explainer={name}"
    )


def _folder_and_name(place: str) -> tuple[Path | None, str]:
    """Split a place into folder (None for a name only) and name (empty for a folder only)."""
    path = Path(place).expanduser()
    if path.is_dir():
        return path, ""
    return (None, place) if path.name == place else (path.parent, path.stem if path.suffix == ".json" else path.name)


def _parts(result: ScaffoldResult) -> Iterator[RenderableType]:
    plan = result.plan
    yield Text(visible(f"students of {plan.teacher} on {plan.dataset}"), style="bold")
    sizes = [f"{size:,} examples" for size in plan.train_sizes]
    cells = table(["setting", *sizes], right=sizes)
    for setting in plan.settings:
        cells.add_row(Text(setting), *(Text(_cell(result, setting, size)) for size in plan.train_sizes))
    yield cells
    yield from (Text(visible(line)) for line in exception_lines(result))
    yield ""
    yield Text(f"{LEGEND[result.metric]} {CELLS}", style="dim")


def _cell(result: ScaffoldResult, setting: str, size: int) -> str:
    cell = result.cell(setting, size)
    if cell is None:
        return NOTHING
    mark = f" {BETTER}" if result.improves(setting, size) else "  "
    return f"{cell.median:.3f} [{cell.low:.3f}:{cell.high:.3f}]{mark}"


def exception_lines(result: ScaffoldResult) -> Iterator[str]:
    """Yield a line per problem with students, such as divergence, no improvement or a failure."""
    seeds = len(result.plan.seeds)
    if seeds < 3:
        yield f"Only {count_text(seeds, 'seed')}: quartiles are unreliable. The paper uses 5 seeds."
    for student in result.students:
        if student.diverged:
            state = "it did not improve, so its state before training was measured"
            if student.best_epoch >= 0:
                state = f"its best state (after pass {student.best_epoch + 1}) was measured"
            yield f"{student.run}: {student.stopped}; {state}. Try a lower --inner-rate."
    yield from _untrained_line([student for student in result.students if not student.diverged])
    for student in result.students:
        if student.simulability is None and not student.diverged:
            yield f"{student.run}: no simulability, because its outputs are constant or not finite."
    for why, count in Counter(result.failed.values()).items():
        yield f"{count_text(count, 'student')} not trained: {why}"


def _untrained_line(students: Sequence[StudentResult]) -> Iterator[str]:
    """Yield at most one line, with the students that did not improve, by cell and seed."""
    seeds: dict[tuple[str, int], list[int]] = {}
    for student in students:
        if student.best_epoch < 0:
            seeds.setdefault((student.run.setting, student.run.train_size), []).append(student.run.seed)
    if seeds:
        cells = "; ".join(
            f"{setting}, {size:,} examples, seed{'' if len(own) == 1 else 's'} {', '.join(map(str, own))}"
            for (setting, size), own in seeds.items()
        )
        yield (
            "No improvement on validation, so the state before training was measured (try more examples or another "
            f"--inner-rate): {cells}."
        )


OWN_OPTIONS = {
    name: (one.annotation, one.default)
    for name, one in inspect.signature(scaffold, eval_str=True).parameters.items()
    if name not in ("as_json", "recipe")
}
options.set_parameters(scaffold, {**OWN_OPTIONS, **OPTIONS.parameters})
