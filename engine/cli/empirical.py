"""`exegesis empirical`: small models that predict the maps of a costly method, for previews."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer
from rich.text import Text

from engine import jobs
from engine.cli import options, output
from engine.cli.experiments import require_value, with_absolute_paths, worked
from engine.cli.inputs import read_typed_params
from engine.cli.jobs import JobCommands, exit_unless_done, run_with_progress
from engine.data.sources import load_source
from engine.errors import ExegesisError
from engine.experiments.options import DATASET_HELP
from engine.input_kinds import kind_of_model
from engine.lazy import LazyModule
from engine.models import catalog
from engine.registry import explainer

if TYPE_CHECKING:
    from engine.empirical import explainer as trained_explainers
    from engine.empirical import training
    from engine.empirical.explainer import EmpiricalExplainer
else:  # they load torch, which the help does not need
    trained_explainers = LazyModule("engine.empirical.explainer")
    training = LazyModule("engine.empirical.training")

app = typer.Typer(
    cls=JobCommands, rich_markup_mode=None, help="Train and list models that predict the maps of a costly method."
)


@app.command()
def train(
    method: Annotated[str, typer.Option(metavar="METHOD", help="The costly method to predict.")] = "kernel_shap",
    dataset: Annotated[str, typer.Option(metavar="D", help=DATASET_HELP)] = "",
    out: Annotated[str, typer.Option(metavar="NAME", help="Name of the empirical explainer.")] = "",
    model: Annotated[str, typer.Option(metavar="M", help="The model whose maps it predicts.")] = options.DEFAULT_MODEL,
    train_size: Annotated[str, typer.Option(metavar="N", help="Number of examples to train on.")] = "300",
    held_out: Annotated[str, typer.Option(metavar="N", help="Number of further examples, to measure errors.")] = "100",
    longest: Annotated[
        str, typer.Option(metavar="N", help="Leave out texts of more characters, whose maps cost most.")
    ] = "1000",
    seed: Annotated[str, typer.Option(metavar="N", help="Selects the examples, and the classes to explain.")] = "0",
    split: options.SplitOption = None,
    param: options.ParamOption = None,
    job: options.JobOption = False,
    as_json: options.JsonOption = False,
) -> None:
    """Train an empirical explainer and save it. Run it again to resume."""
    kind = kind_of_model(model)
    params = read_typed_params(param, [explainer(method, kind)]).get(method, {})
    plan = training.EmpiricalPlan(
        model, method, require_value("--dataset", dataset), out or trained_explainers.free_name(model, method),
        train_size=options.read_whole("--train-size", train_size, 8),
        held_out=options.read_whole("--held-out", held_out, 4),
        longest=options.read_whole("--longest", longest, 1),
        seed=options.read_whole("--seed", seed, 0),
        split=split,
        params=params,
    )  # fmt: skip
    plan = with_absolute_paths(plan) if job else plan
    training.check(plan)
    if job:
        exit_unless_done(run_with_progress(jobs.create("empirical", plan.as_plain())))
        trained = trained_explainers.load(trained_explainers.explainers_folder() / plan.out)
    else:
        trained = worked("empirical", "explaining", lambda report, cancel: training.train(plan, report, cancel))
    if as_json:
        output.print_json({"name": trained.name, **trained.card.as_plain()})
        return
    _print_table([trained])
    errors = output.table(["error on held-out examples", "relative", "pearson", "spearman", "cosine", "examples"],
                          right=["relative", "pearson", "spearman", "cosine", "examples"])  # fmt: skip
    for name, one in trained.card.errors.items():
        numbers = (one.relative, one.pearson, one.spearman, one.cosine)
        errors.add_row(name, *("–" if value is None else f"{value:.3f}" for value in numbers), f"{one.count:,}")
    output.console().print(errors)
    pairs = load_source(kind, plan.dataset, plan.split).pairs
    print(usage(trained, pairs))


def usage(trained: EmpiricalExplainer, pairs: bool) -> str:
    """Return a command that uses the explainer, or a warning that it predicts nothing.

    `pairs`: whether the model reads pairs of texts.
    """
    card = trained.card
    if card.expected() >= 1:
        return "It predicts nothing: a map of zeros has an error of 1. Train it on more examples, with --train-size."
    given = "--image F" if card.kind == "image" else "--text '...'" + (" --text-pair '...'" if pairs else "")
    return f"Use it: exegesis explain --model {card.model} --method empirical --param of={trained.name} {given}"


@app.command("list")
def list_trained(as_json: options.JsonOption = False) -> None:
    """List the empirical explainers, with their errors and what both cost."""
    trained = trained_explainers.all_trained()
    if as_json:
        output.print_json([{"name": one.name, "usable": not _problem(one), **one.card.as_plain()} for one in trained])
    elif trained:
        _print_table(trained)
        for problem in filter(None, map(_problem, trained)):
            print(output.visible(f"{problem} Train it again."))
    else:
        print("There are no empirical explainers. Train one with: exegesis empirical train")


def _problem(trained: EmpiricalExplainer) -> str:
    """Return the reason why the explainer can no longer be used, or an empty string."""
    try:
        return trained.why_not(trained.card.model, catalog.revision(trained.card.model))
    except ExegesisError as error:
        return f"{trained.name} cannot be used: {error}"


def _print_table(trained: list[EmpiricalExplainer]) -> None:
    number = ["error", "exact", "exact s", "own", "own s", "pays after"]
    rows = output.table(["name", "model", "method", *number], right=number)
    for one in trained:
        card = one.card
        cells = (
            one.name, card.model, card.method, f"{card.expected():.3f}", f"{card.passes:,.0f} passes",
            f"{card.seconds:.2f}", f"{trained_explainers.OWN_PASSES} pass", f"{card.own_seconds:.3f}",
            f"{card.break_even:,} maps",
        )  # fmt: skip
        rows.add_row(*(Text(output.visible(cell)) for cell in cells))
    output.console().print(rows)
