"""`exegesis randomize`: test whether explanations change when the model's weights are randomized.

Prints Spearman's rho and the model's predictions by stage, and a verdict on each method.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from rich.console import RenderableType
from rich.text import Text

from engine.cli.experiments import command_of
from engine.cli.output import NOTHING, table, visible
from engine.format import count_text
from engine.randomization.curves import Curve, curves_of, verdicts_of
from engine.randomization.plan import RANDOMIZE
from engine.randomization.result import ModelRandomization, RandomizationResult

LEGEND = (
    "Mean Spearman's rho over examples between the maps of the original and the randomized model, for the class that "
    "the original model predicts or a prompt names. same class: share of examples with the same predicted class. block "
    "1 is the first. --json adds intervals, seeds, rho of absolute scores and the overlap of the top 15%; --out has "
    "all values."
)


def sections(result: RandomizationResult) -> Iterator[RenderableType]:
    """Yield a table per model and mode, the verdicts, and the reasons for omitted examples and maps."""
    plan = result.plan
    for of_model in result.models:
        for mode in plan.modes:
            yield Text(visible(f"{of_model.model} on {of_model.dataset}, {mode}"), style="bold")
            yield _curve_table(of_model, mode, plan.seed)
        for verdict in verdicts_of(of_model, plan.kind, plan.seed):
            yield Text(visible(f"{verdict.method}: {verdict.reason}"))
        yield from (Text(visible(line)) for line in (*of_model.notes, *_exclusions(of_model)))
        yield ""
    yield Text(LEGEND, style="dim")


def _curve_table(result: ModelRandomization, mode: str, seed: int) -> RenderableType:
    """Create a table with a row per stage and a column per method."""
    own = [curve for curve in curves_of(result, seed) if curve.mode == mode]
    rho = [curve for curve in own if curve.metric == "spearman"]
    predictions = [curve for curve in own if not curve.method]
    columns = ["same class" if curve.metric == "class_changed" else curve.metric for curve in predictions]
    headers = [*(curve.method for curve in rho), *columns]
    rows = table(["randomized", *headers], right=headers)
    for at, point in enumerate((rho or predictions)[0].points):
        cells = [_number(curve.points[at].value) for curve in rho]
        cells += [_prediction(curve, at) for curve in predictions]
        rows.add_row(*map(Text, (_part(point.stage.block, mode), *cells)))
    return rows


def _part(block: str, mode: str) -> str:
    name = f"block {block}" if block.isdecimal() else block
    return f"down to {name}" if mode == "cascading" else name


def _prediction(curve: Curve, at: int) -> str:
    value = curve.points[at].value
    return f"{1 - value:.0%}" if curve.metric == "class_changed" and value is not None else _number(value)


def _number(value: float | None) -> str:
    return NOTHING if value is None else f"{value:.2f}"


def _exclusions(result: ModelRandomization) -> Iterator[str]:
    """Yield a line per reason for omitted examples or maps."""
    for why, count in Counter(result.failed.values()).items():
        yield f"{count_text(count, 'example')} left out: {why}"
    counts = Counter[tuple[str, str]]()
    for place, method in enumerate(result.methods):
        codes: Sequence[int] = result.why[:, :, place][result.why[:, :, place] >= 0].tolist()
        counts.update((result.reasons[code], method) for code in codes)
    for (why, method), count in counts.items():
        yield f"{count_text(count, 'map')} of {method} left out: {why}"


randomize = command_of(RANDOMIZE, sections)
