"""Students for people: simulability by setting and train size, and what went otherwise than meant, in words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from engine.cli.drawing_evaluation import NOTHING
from engine.cli.output import console, table, visible

if TYPE_CHECKING:
    from rich.console import RenderableType

    from engine.scaffold.artefact import Learned
    from engine.scaffold.result import Outcome, Scaffold

BETTER = "+"
LEGEND = {
    "accuracy": "Simulability: share of test examples on which a student predicts what the teacher predicts.",
    "pearson": "Simulability: Pearson's correlation of a student's scores with the teacher's on the test examples.",
}
CELLS = (
    f"Median over seeds [quartiles]. {BETTER}: above no explainer (none) by more than chance, as the quartiles do not "
    "overlap. Seeds one by one, passes and learned heads are in --json, all values in --out."
)


def draw(found: Scaffold, file: Path | None, learned: tuple[Learned, Path] | None = None) -> None:
    """`file`: where rows went; `learned`: the explainer that was kept, and the folder."""
    from engine.cli.scaffold_explainer import told
    from engine.scaffold.export import rows

    out = console()
    for part in _parts(found):
        out.print(part)
    if file is not None:
        print(f"Written: {visible(str(file))}, {sum(1 for _ in rows(found)):,} rows")
    if learned is not None:
        print(visible(told(*learned)))


def _parts(found: Scaffold) -> Iterator[RenderableType]:
    from rich.text import Text

    plan = found.plan
    yield Text(visible(f"students of {plan.teacher} on {plan.dataset}"), style="bold")
    yield _board(found)
    yield from (Text(visible(line)) for line in said(found))
    yield ""
    yield Text(f"{LEGEND[found.metric]} {CELLS}", style="dim")


def _board(found: Scaffold) -> RenderableType:
    """A row a setting, a column a train size."""
    from rich.text import Text

    sizes = [f"{size:,} examples" for size in found.plan.train_sizes]
    made = table(["shown", *sizes], right=sizes)
    for setting in found.plan.settings:
        made.add_row(Text(setting), *(Text(_cell(found, setting, size)) for size in found.plan.train_sizes))
    return made


def _cell(found: Scaffold, setting: str, size: int) -> str:
    cell = found.cell(setting, size)
    if cell is None:
        return NOTHING
    mark = f" {BETTER}" if found.improves(setting, size) else "  "
    return f"{cell.median:.3f} [{cell.low:.3f}:{cell.high:.3f}]{mark}"


def said(found: Scaffold) -> Iterator[str]:
    """A line for each way in which students did not go as meant."""
    seeds = len(found.plan.seeds)
    if seeds < 3:
        yield f"{_many(seeds, 'seed')} alone: quartiles tell little of chance. The paper has 5 seeds."
    for outcome in found.outcomes:
        if outcome.diverged:
            yield f"{outcome.pupil}: {outcome.stopped}; {_kept(outcome)}. A lower --inner-rate may help."
    yield from _untaught([outcome for outcome in found.outcomes if not outcome.diverged])
    for outcome in found.outcomes:
        if outcome.simulability is None and not outcome.diverged:
            yield f"{outcome.pupil}: its scores are all the same, so that it has no simulability."
    for why, pupils in Counter(found.failed.values()).items():
        yield f"{_many(pupils, 'student')} left out: {why}"


def _kept(outcome: Outcome) -> str:
    if outcome.best_epoch < 0:
        return "it was never better than at its start, so that its start was measured"
    return f"its best state, after pass {outcome.best_epoch + 1}, was measured"


def _untaught(outcomes: list[Outcome]) -> Iterator[str]:
    """Cell by cell: of which seeds nothing was gained."""
    seeds: dict[tuple[str, int], list[int]] = {}
    for outcome in outcomes:
        if outcome.best_epoch < 0:
            seeds.setdefault((outcome.pupil.setting, outcome.pupil.train_size), []).append(outcome.pupil.seed)
    if seeds:
        cells = "; ".join(
            f"{setting}, {size:,} examples, seed{'' if len(found) == 1 else 's'} {', '.join(map(str, found))}"
            for (setting, size), found in seeds.items()
        )
        yield (
            "On validation never better than at the start, which was measured (more examples or another --inner-rate "
            f"may help): {cells}."
        )


def _many(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"
