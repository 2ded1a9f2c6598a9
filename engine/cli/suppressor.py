"""`exegesis suppressor`: test which methods credit a feature that carries no information about the class."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from engine.cli import options, output
from engine.cli.root import note
from engine.errors import unknown
from engine.lazy import LazyModule
from engine.params import from_mapping
from engine.store import result_store
from engine.suppressor import gaussian
from engine.suppressor.criterion import CRITERION

if TYPE_CHECKING:
    from engine.suppressor import measurement, scene, text, trained
else:  # they load torch, which the help does not need
    measurement = LazyModule("engine.suppressor.measurement")
    scene = LazyModule("engine.suppressor.scene")
    text = LazyModule("engine.suppressor.text")
    trained = LazyModule("engine.suppressor.trained")

PROBLEMS = GAUSSIAN, TEXT, SCENE = "gaussian", "text", "scene"
NUMBERS = ["suppressor", "theory", "difference", "informative", "unused", "above", "p"]


def suppressor(
    problem: Annotated[str, typer.Option(metavar="P", help=f"One of {', '.join(PROBLEMS)}.")] = GAUSSIAN,
    correlation: Annotated[
        str, typer.Option(metavar="C", help="Correlation of the noise of both features, from -0.95 to 0.95.")
    ] = "0.8",
    scale: Annotated[
        str, typer.Option(metavar="S", help="Standard deviation of the informative feature's noise, 0.5 to 2.")
    ] = "1",
    suppressor_scale: Annotated[
        str, typer.Option(metavar="S", help="Standard deviation of the suppressor, 0.5 to 2.")
    ] = "1",
    seed: options.SeedOption = "0",
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, with the closed forms.")] = False,
) -> None:
    """Test which methods credit a feature that carries no information about the class."""
    if problem not in PROBLEMS:
        raise unknown("--problem", problem, PROBLEMS)
    given = {"correlation": correlation, "scale": scale, "suppressor_scale": suppressor_scale}
    plan = from_mapping(gaussian.GaussianProblem, given, "suppressor", flags=True)
    number = options.read_whole("--seed", seed)
    if problem == GAUSSIAN:
        with output.stdout_reserved():
            measured = measurement.measure_gaussian(plan, number)
        return output.print_json(measured.as_json()) if as_json else _print_gaussian(measured)
    with output.stdout_reserved(), output.progress_bar("suppressor") as report, output.stoppable() as cancel:
        judged = (text.text_result if problem == TEXT else scene.scene_result)(report, cancel)
    if status := result_store().status:
        note(status)
    return output.print_json(judged.as_json()) if as_json else _print_trained(judged)


def _print_gaussian(result: measurement.GaussianResult) -> None:
    w = result.problem.weights
    out = output.console()
    out.print(f"Weights of the best classifier: {w[0]:.4f} informative, {w[1]:.4f} suppressor.", markup=False)
    rows = _table("method", "suppressor", "theory", "difference", "verdict")
    for one in result.methods:
        theory = "-" if one.theory is None else f"{one.theory:.1%}"
        difference = "-" if one.difference is None else f"{one.difference:.1e}{'' if one.ok else ' NOT good'}"
        rows.add_row(one.method.name, f"{one.measured.share:.1%}", theory, difference, one.measured.verdict)
    out.print(rows)
    print("suppressor, theory: share of the three features' mean |score|.")
    print(CRITERION)


def _print_trained(result: trained.TrainedResult) -> None:
    checks, out = result.checks, output.console()
    print(
        f"Accuracy {checks.accuracy:.1%}; {checks.without:.1%} with the suppressor of another example, "
        f"{checks.without_unused:.1%} with its unused feature ({checks.examples} examples). "
        f"Association with the class: p = {checks.association:.2g} (suppressor), {checks.unused_association:.2g} "
        "(unused)."
    )
    rows = _table("method", "informative", "suppressor", "unused", "above", "p", "verdict")
    for one in result.verdicts:
        means = (f"{value:.4f}" for value in (one.informative, one.suppressor, one.unused))
        title = trained.method_title(one.method, result.kind)
        rows.add_row(title, *means, f"{one.above:.0%}", f"{one.p:.2g}", one.verdict)
    out.print(rows)
    print("above: share of the examples in which the suppressor has the larger |score| than the unused feature.")
    print(CRITERION)
    for id, reason in result.skipped.items():
        note(f"{trained.method_title(id, result.kind)}: {reason}")


def _table(*columns: str) -> Table:
    return output.table(columns, right=[column for column in columns if column in NUMBERS])
