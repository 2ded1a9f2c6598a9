"""A check for people: Spearman's rho stage by stage, what the model then says, and a verdict a method."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from engine.cli.drawing_evaluation import NOTHING
from engine.cli.output import console, table, visible

if TYPE_CHECKING:
    from rich.console import RenderableType

    from engine.randomization.curves import Curve
    from engine.randomization.result import OfModel, Randomization

LEGEND = (
    "Spearman's rho between the map of the model as it is and that of the randomized one, for the class that the model "
    "as it is predicts; mean over examples. same class: how many examples keep it. block 1 is the first. Intervals, "
    "seeds, rho of absolute scores and the overlap of the top are in --json, all values in --out."
)


def draw(found: Randomization, file: Path | None) -> None:
    """`file`: where rows went."""
    out = console()
    for part in _parts(found):
        out.print(part)
    if file is not None:
        print(f"Written: {visible(str(file))}, {sum(1 for _ in found.rows):,} rows")


def _parts(found: Randomization) -> Iterator[RenderableType]:
    from rich.text import Text

    from engine.randomization.verdict import verdicts

    for one in found.models:
        for mode in found.plan.modes:
            yield Text(visible(f"{one.model} on {one.dataset}, {mode}"), style="bold")
            yield _board(one, mode, found.plan.seed)
        for made in verdicts(one, found.plan.kind, found.plan.seed):
            yield Text(visible(f"{made.method}: {made.reason}"))
        yield from (Text(visible(line)) for line in _left_out(one))
        yield ""
    yield Text(LEGEND, style="dim")


def _board(found: OfModel, mode: str, seed: int) -> RenderableType:
    """A row a stage, a column a method."""
    from rich.text import Text

    from engine.randomization.curves import curves_of

    own = [curve for curve in curves_of(found, seed) if curve.mode == mode]
    rho = [curve for curve in own if curve.metric == "spearman"]
    said = [curve for curve in own if not curve.method]
    named = [*(curve.method for curve in rho), *(_column(curve) for curve in said)]
    made = table(["randomized", *named], right=named)
    for at, point in enumerate((rho or said)[0].points):
        cells = [_number(curve.points[at].value) for curve in rho]
        made.add_row(*map(Text, (_part(point.stage.block, mode), *cells, *(_said(curve, at) for curve in said))))
    return made


def _column(curve: Curve) -> str:
    return "same class" if curve.metric == "class_changed" else curve.metric


def _part(block: str, mode: str) -> str:
    named = f"block {block}" if block.isdecimal() else block
    return f"down to {named}" if mode == "cascading" else named


def _said(curve: Curve, at: int) -> str:
    value = curve.points[at].value
    return f"{1 - value:.0%}" if curve.metric == "class_changed" and value is not None else _number(value)


def _number(value: float | None) -> str:
    return NOTHING if value is None else f"{value:.2f}"


def _left_out(found: OfModel) -> Iterator[str]:
    """A line for each reason why maps were left out."""
    from collections import Counter

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
