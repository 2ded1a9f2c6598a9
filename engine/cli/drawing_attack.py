"""Attacks for people: a table a model, what was skipped, and what the words mean."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

from engine.attacks.findings import LEFT_OUT
from engine.attacks.params import TOLERANCE
from engine.cli.output import console, table, visible

if TYPE_CHECKING:
    from rich.console import RenderableType

    from engine.attacks.findings import Findings, Score

NOTHING = "-"
HEADS = {
    "rank_change": "rank change",
    "top_k_sum_change": "top-k sum change",
    "top_k_sum_change_normalised": "normalised",
    "probability_change": "probability change",
    "probability_distance": "distance",
    "class_kept": "class kept",
    "fooled": "fooled",
}
LEGEND = (
    "mean [95 % interval]. rank change: share of the top k places that another feature holds after the attack. top-k "
    "sum change: by how much the scores of the top fell; normalised: of maps divided by their sum of absolute values. "
    "fooled: share of all attacks that changed the top k and kept their constraint: the class and, constrained, its "
    f"probability within {TOLERANCE:g}. Maps of other attacks are left out of the means. A robust method has low "
    "values although probability and class stayed. -> method: its map of an input that fooled the attacked one."
)


def draw(found: Findings, file: Path | None) -> None:
    """`file`: where the rows went."""
    out = console()
    for part in _parts(found):
        out.print(part)
    if file is not None:
        print(f"Written: {visible(str(file))}, {len(found.rows):,} rows")


def _parts(found: Findings) -> Iterator[RenderableType]:
    from rich.text import Text

    for model, own in groupby(found.scores, key=lambda score: score.of.model):
        scores = list(own)
        yield Text(visible(f"{model} on {scores[0].of.dataset}"), style="bold")
        yield _board(scores)
        yield from (Text(visible(line)) for line in _skipped(scores))
        yield ""
    yield from (Text(visible(f"! {line}"), style="bold red") for line in found.troubles)
    yield from (Text(visible(line)) for line in found.said)
    yield Text(LEGEND, style="dim")


def _board(scores: Sequence[Score]) -> RenderableType:
    """A row a map that was measured: an objective, an attacked method, a method."""
    from rich.text import Text

    made = table(["objective", "method", "n", *HEADS.values()], right=["n", *HEADS.values()])
    rows: dict[tuple[str, str, str], dict[str, Score]] = {}
    for score in scores:
        rows.setdefault((score.of.objective, score.of.attacked, score.of.method), {})[score.of.metric] = score
    for (objective, attacked, method), cells in rows.items():
        name = method if method == attacked else f"{attacked} -> {method}"
        n = max(score.n for score in cells.values())
        numbers = [_cell(cells[metric]) if metric in cells else NOTHING for metric in HEADS]
        made.add_row(*(Text(visible(cell)) for cell in (objective, name, str(n), *numbers)))
    return made


def _cell(score: Score) -> str:
    if score.value is None:
        return NOTHING
    if score.interval is None or score.doubt:
        return f"{score.value:.3g}"
    low, high = score.interval
    return f"{score.value:.3g} [{low:.3g}, {high:.3g}]"


def _skipped(scores: Sequence[Score]) -> Iterator[str]:
    """A line for each reason and method, once for all metrics that share it; `Findings.troubles` are said apart."""
    said = {(score.of.objective, score.of.method, reason, count): None
            for score in scores for reason, count in score.skipped.items()}  # fmt: skip
    for objective, method, reason, count in said:
        if reason not in LEFT_OUT.values():
            yield f"skipped, {method}, {objective}: {count} {'example' if count == 1 else 'examples'}: {reason}"
