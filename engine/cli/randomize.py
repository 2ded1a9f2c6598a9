"""`exegesis randomize`: do explanations change when what a model has learned is destroyed?

For people: Spearman's rho stage by stage, what the model then predicts, and a verdict a method.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from engine.cli.drawing_evaluation import NOTHING
from engine.cli.experiments import command_of
from engine.cli.output import console, table, visible
from engine.randomization.plan import RANDOMIZE

if TYPE_CHECKING:
    from rich.console import RenderableType

    from engine.randomization.curves import Curve
    from engine.randomization.result import ModelRandomization, RandomizationResult

LEGEND = (
    "Spearman's rho between the map of the model as it is and that of the randomized one, for the class that the model "
    "as it is predicts; mean over examples. same class: how many examples keep it. block 1 is the first. Intervals, "
    "seeds, rho of absolute scores and the overlap of the top are in --json, all values in --out."
)


def draw(found: RandomizationResult, file: Path | None) -> None:
    """Print a table a model and mode, the verdicts, and what was left out."""
    out = console()
    for part in _parts(found):
        out.print(part)


def _parts(found: RandomizationResult) -> Iterator[RenderableType]:
    from rich.text import Text

    from engine.randomization.curves import verdicts_of

    for one in found.models:
        for mode in found.plan.modes:
            yield Text(visible(f"{one.model} on {one.dataset}, {mode}"), style="bold")
            yield _table(one, mode, found.plan.seed)
        for verdict in verdicts_of(one, found.plan.kind, found.plan.seed):
            yield Text(visible(f"{verdict.method}: {verdict.reason}"))
        yield from (Text(visible(line)) for line in _left_out(one))
        yield ""
    yield Text(LEGEND, style="dim")


def _table(found: ModelRandomization, mode: str, seed: int) -> RenderableType:
    """A row a stage, a column a method."""
    from rich.text import Text

    from engine.randomization.curves import curves_of

    own = [curve for curve in curves_of(found, seed) if curve.mode == mode]
    rho = [curve for curve in own if curve.metric == "spearman"]
    predictions = [curve for curve in own if not curve.method]
    columns = ["same class" if curve.metric == "class_changed" else curve.metric for curve in predictions]
    named = [*(curve.method for curve in rho), *columns]
    rows = table(["randomized", *named], right=named)
    for at, point in enumerate((rho or predictions)[0].points):
        cells = [_number(curve.points[at].value) for curve in rho]
        cells += [_prediction(curve, at) for curve in predictions]
        rows.add_row(*map(Text, (_part(point.stage.block, mode), *cells)))
    return rows


def _part(block: str, mode: str) -> str:
    named = f"block {block}" if block.isdecimal() else block
    return f"down to {named}" if mode == "cascading" else named


def _prediction(curve: Curve, at: int) -> str:
    value = curve.points[at].value
    return f"{1 - value:.0%}" if curve.metric == "class_changed" and value is not None else _number(value)


def _number(value: float | None) -> str:
    return NOTHING if value is None else f"{value:.2f}"


def _left_out(found: ModelRandomization) -> Iterator[str]:
    """A line for each reason why maps were left out."""
    for why, count in Counter(found.failed.values()).items():
        yield f"{_many(count, 'example')} left out: {why}"
    counts = Counter[tuple[str, str]]()
    for place, method in enumerate(found.methods):
        codes: Sequence[int] = found.why[:, :, place][found.why[:, :, place] >= 0].tolist()
        counts.update((found.reasons[code], method) for code in codes)
    for (why, method), count in counts.items():
        yield f"{_many(count, 'map')} of {method} left out: {why}"


def _many(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


randomize = command_of(RANDOMIZE, draw)
