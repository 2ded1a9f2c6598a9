"""The table of simulability as the paper has it, and in words what became of students that did not learn."""

from __future__ import annotations

from html import escape

from components.numbers import count
from components.scaffold.charts import against, interval_words
from components.scaffold.words import METRICS, SETTING_TITLES
from engine.scaffold.plan import NONE, SETTINGS, Pupil
from engine.scaffold.result import Cell, Outcome, Scaffold

LABEL = "Simulability by setting and train size"
NOT_YET = "not taught yet"
NO_VALUE = "no value"


def table_html(found: Scaffold) -> str:
    """A row a setting, a column a train size: median [low:high], and a mark where the quartiles do not overlap."""
    sizes = found.plan.train_sizes
    heads = "".join(f'<th scope="col">{escape(count(size, "example"))}</th>' for size in sizes)
    rows = "".join(_row(found, setting) for setting in SETTINGS if setting in found.plan.settings)
    return (
        f'<div class="xg"><p class="xg-small">{escape(caption(found))}</p>'
        f'<div class="xg-simulability-box" role="region" tabindex="0" aria-label="{LABEL}">'
        '<table class="xg-simulability">'
        f'<thead><tr><th scope="col">Shown to the student</th>{heads}</tr></thead><tbody>{rows}</tbody></table>'
        "</div></div>"
    )


def caption(found: Scaffold) -> str:
    """What the numbers are, and of how many students."""
    of = METRICS[found.metric]
    return f"Simulability ({of}): median [lower:upper quartile] over {count(len(found.plan.seeds), 'seed')}"


def told_of(found: Scaffold) -> list[str]:
    """A sentence for each cell whose students diverged, never became better, or have no simulability."""
    plan, said = found.plan, list[str]()
    for size in plan.train_sizes:
        for setting in SETTINGS:
            students = found.of(setting, size)
            if setting in plan.settings and students:
                where = f"{SETTING_TITLES[setting]}, {count(size, 'example')}"
                said += [f"{where}: {words}" for words in _of_cell(students)]
    return said + [f"{_named(pupil)} could not be taught: {why}" for pupil, why in found.failed.items()]


def _of_cell(students: tuple[Outcome, ...]) -> list[str]:
    of, said = len(students), list[str]()
    diverged = [one for one in students if one.diverged]
    if diverged:
        why = diverged[0].stopped.partition(": ")[2]
        kept = "its best state before was kept" if len(diverged) == 1 else "their best states before were kept"
        said.append(f"{_share(len(diverged), of)} diverged ({why}); {kept}.")
    if untaught := sum(one.best_epoch < 0 for one in students):
        said.append(f"{_share(untaught, of)} never better than before the first pass; that state is what was measured.")
    if without := sum(one.simulability is None for one in students):
        said.append(f"{_share(without, of)} without a simulability, because its answers are all alike or no numbers.")
    return said


def _share(number: int, of: int) -> str:
    return f"{number} of {count(of, 'student')}"


def _named(pupil: Pupil) -> str:
    return f"{SETTING_TITLES[pupil.setting]}, {count(pupil.train_size, 'example')}, seed {pupil.seed}"


def _row(found: Scaffold, setting: str) -> str:
    cells = "".join(f"<td>{_cell(found, setting, size)}</td>" for size in found.plan.train_sizes)
    kind = ' class="xg-base"' if setting == NONE else ""
    return f'<tr{kind}><th scope="row">{escape(SETTING_TITLES[setting])}</th>{cells}</tr>'


def _cell(found: Scaffold, setting: str, size: int) -> str:
    cell = found.cell(setting, size)
    if cell is None:
        return f'<span class="xg-small">{NO_VALUE if found.of(setting, size) else NOT_YET}</span>'
    told = against(found, cell)
    mark = f' <b class="xg-mark xg-{told}">{told}</b>' if told else ""
    return f'<span class="xg-interval">{interval_words(cell)}</span>{mark}{_seeds(found, cell)}'


def _seeds(found: Scaffold, cell: Cell) -> str:
    there, asked = len(cell.values), len(found.plan.seeds)
    return "" if there == asked else f' <span class="xg-small">{there} of {count(asked, "seed")}</span>'
