"""Charts, tables and sentences about simulability, and charts of learning curves. Pure functions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape

import altair as alt
import pandas as pd

from components.charts.files import LEGEND_COLUMNS
from components.charts.frame import (
    DASHED,
    FOOT,
    LABEL,
    LEGEND_ROW,
    SOLID,
    line_legend,
    method_colors,
    shapes,
    style_chart,
)
from components.numbers import count, fixed, plain
from components.palette import CHART_COLORS, PALETTES, Theme
from components.scaffold.state import MEASURES, SETTING_TITLES
from engine.experiments.options import RANDOM
from engine.format import join_names
from engine.scaffold.plan import HELD_OUT, NONE, SETTINGS, UNEXPLAINED, StudentRun
from engine.scaffold.result import ScaffoldResult, SimulabilityCell, StudentResult, TrainingPass

METRICS = {"accuracy": "agreement with the teacher", "pearson": "correlation with the teacher's scores"}
NO_BASELINE = "Select the setting “No explainer” to compare with students without explanations."
DECIMALS = 3
POINT, SEED = 90, 16
"""Areas of the points of a median and of a single seed, in square pixels."""
BAND, FAINT = 0.22, 0.45
NOTHING = "Nothing to draw: no student has a simulability."
BLANK_HEIGHT = 80
PLOT_HEIGHT = 200
"""Height of the plot in pixels. With one legend column, the chart fits on the first screen."""
SIZE = "Examples that a student learns from"
LEAST_SPAN = 0.1
"""Smallest range of a simulability axis, so that tiny differences do not fill the chart."""
VERDICTS = {
    "better": "Better than without explanations: {}",
    "": "No clear difference (quartiles overlap): {}",
    "worse": "Worse than without explanations: {}",
}
"""Sentences of the answer by verdict; the explanations are filled in."""
AGAINST = {"better": "better: quartiles apart", "worse": "worse: quartiles apart", "": "quartiles overlap"}


def simulability_chart(result: ScaffoldResult, theme: Theme) -> alt.LayerChart:
    """Draw medians as points, quartiles as bars and seeds as faint dots, by setting and train size."""
    cells, seeds, base = cells_data(result), seeds_data(result), base_data(result)
    if cells.empty and base.empty:
        return _blank(NOTHING, theme)
    drawn = [*base.get("low", []), *base.get("high", []), *cells.get("low", []), *cells.get("high", [])]
    ends = span([*drawn, *seeds.get("value", [])])
    layers = _reference(base, ends, theme) if not base.empty else []
    if not cells.empty:
        layers += _settings(cells, seeds, ends, theme)
    height = PLOT_HEIGHT + FOOT + LEGEND_ROW * (len(set(cells["name"])) if not cells.empty else 0)
    return style_chart(alt.LayerChart(layer=layers), height, theme)


def _blank(text: str, theme: Theme) -> alt.LayerChart:
    """Draw a sentence in place of a chart, without a frame, which would look like zeros."""
    words = alt.Chart(pd.DataFrame({"words": [text]})).mark_text(fontSize=14, color=PALETTES[theme].muted)
    return style_chart(alt.LayerChart(layer=[words.encode(text="words:N")]), BLANK_HEIGHT, theme)


def cells_data(result: ScaffoldResult) -> pd.DataFrame:
    """Return one row per cell with a value, except cells of the setting without an explainer."""
    return pd.DataFrame(
        [_row(result, cell) for cell in _cells(result) if cell.setting != NONE]
    )  # fmt: skip


def base_data(result: ScaffoldResult) -> pd.DataFrame:
    """Return one row per cell of the setting without an explainer."""
    return pd.DataFrame([_row(result, cell) for cell in _cells(result) if cell.setting == NONE])


def seeds_data(result: ScaffoldResult) -> pd.DataFrame:
    """Return one row per student with a simulability, except students without an explainer."""
    return pd.DataFrame(
        [
            {
                "size": f"{one.run.train_size:,}", "name": SETTING_TITLES[one.run.setting],
                "value": one.simulability, "seed": one.run.seed, "shown": fixed(one.simulability, DECIMALS, False),
            }
            for one in result.students
            if one.simulability is not None and one.run.setting != NONE
        ]
    )  # fmt: skip


def simulability_table(result: ScaffoldResult) -> pd.DataFrame:
    """Return the values of the chart as one row per cell, for the page and for files."""
    return pd.DataFrame(
        [
            {
                "Setting": SETTING_TITLES[cell.setting], "Train size": cell.train_size,
                "Median": round(cell.median, 4), "25%": round(cell.low, 4), "75%": round(cell.high, 4),
                "Seeds": len(cell.values), "Against no explainer": against_words(result, cell),
            }
            for cell in _cells(result)
        ]
    )  # fmt: skip


def against(result: ScaffoldResult, cell: SimulabilityCell) -> str | None:
    """Return "better" or "worse" if the quartiles do not overlap with those of no explainer, else an empty string.

    None if there are no students without an explainer to compare with.
    """
    base = result.cell(NONE, cell.train_size)
    if base is None or cell.setting == NONE:
        return None
    if result.improves(cell.setting, cell.train_size):
        return "better"
    return "worse" if base.above(cell) else ""


def against_words(result: ScaffoldResult, cell: SimulabilityCell) -> str:
    """Describe the result of `against`."""
    verdict = against(result, cell)
    return "none to compare with" if verdict is None else AGAINST[verdict]


def answer_html(result: ScaffoldResult) -> str:
    """Return the answer as HTML: the largest train size with a value in bold, then `answer_sentences`."""
    size, sentences = answer_sentences(result)
    head = f"Students with {count(size, 'example')}:"
    return f'<div class="xg"><p class="xg-answer"><b>{escape(head)}</b> {escape(" ".join(sentences))}</p></div>'


def answer_sentences(result: ScaffoldResult) -> tuple[int, list[str]]:
    """Return the largest train size with a value, and sentences on which explanations teach better than none.

    Better and worse are defined as in the paper: the quartiles over seeds do not overlap. If there are no students
    without an explainer, only the highest median is named.
    """
    cells = _cells(result)
    if not cells:
        return max(result.plan.train_sizes), ["No student has a simulability."]
    size = max(cell.train_size for cell in cells)
    cells = sorted((cell for cell in cells if cell.train_size == size), key=lambda cell: -cell.median)
    base = result.cell(NONE, size)
    taught = [cell for cell in cells if cell.setting not in UNEXPLAINED]
    if base is None:
        return size, [f"The highest median is that of {_with_interval(cells[0])}. {NO_BASELINE}"]
    sentences = []
    for verdict, words in VERDICTS.items():
        if named := [_with_interval(cell) for cell in taught if against(result, cell) == verdict]:
            sentences.append(f"{words.format(join_names(named))}.")
    more = result.cell(HELD_OUT, size)
    with_more = f"; with {result.plan.recipe.held_out:,} more examples {interval_words(more)}" if more else ""
    sentences.append(f"Without explanations: {interval_words(base)}{with_more}.")
    return size, sentences


def _with_interval(cell: SimulabilityCell) -> str:
    return f"{SETTING_TITLES[cell.setting]} {interval_words(cell)}"


def span(values: Sequence[float]) -> list[float]:
    """Return the ends of a simulability axis: the range of the values, widened evenly to at least `LEAST_SPAN`."""
    low, high = min(values), max(values)
    more = max(0.0, LEAST_SPAN - (high - low)) / 2
    return [low - more, high + more]


def interval_words(cell: SimulabilityCell) -> str:
    """Format a cell as the paper's tables do: median [low:high]."""
    low, high = (fixed(value, DECIMALS, False) for value in (cell.low, cell.high))
    return f"{fixed(cell.median, DECIMALS, False)} [{low}:{high}]"


def _cells(result: ScaffoldResult) -> list[SimulabilityCell]:
    plan = result.plan
    settings = [setting for setting in SETTINGS if setting in plan.settings]
    cells = (result.cell(setting, size) for size in plan.train_sizes for setting in settings)
    return [cell for cell in cells if cell is not None]


def _row(result: ScaffoldResult, cell: SimulabilityCell) -> dict[str, object]:
    return {
        "size": f"{cell.train_size:,}", "name": SETTING_TITLES[cell.setting], "value": cell.median, "low": cell.low,
        "high": cell.high, "shown": interval_words(cell), "seeds": count(len(cell.values), "seed"),
        "against": against_words(result, cell),
    }  # fmt: skip


def _settings(cells: pd.DataFrame, seeds: pd.DataFrame, ends: list[float], theme: Theme) -> list[alt.Chart]:
    there, explained = set(cells["name"]), [setting for setting in SETTINGS if setting != NONE]
    names = [SETTING_TITLES[setting] for setting in explained]
    legend = line_legend(alt.ExprRef(LEGEND_COLUMNS), LABEL)
    legend.symbolType, legend.symbolSize, legend.symbolStrokeWidth = alt.Undefined, POINT, 1.5
    legend.values, legend.symbolOpacity = [name for name in names if name in there], 1
    x = alt.X("size:O", sort=_sizes(cells), title=SIZE, axis=alt.Axis(labelAngle=0))
    offset = alt.XOffset("name:N", sort=names, scale=alt.Scale(domain=legend.values, padding=0.35))
    looks = [RANDOM if setting == HELD_OUT else setting for setting in explained]
    colors = alt.Scale(domain=names, range=method_colors(looks, theme))
    color = alt.Color("name:N", scale=colors, title=None, legend=legend)
    shape = alt.Shape("name:N", scale=alt.Scale(domain=names, range=shapes(looks)), title=None, legend=legend)
    chart = alt.Chart(cells).encode(x=x, xOffset=offset, color=color)
    bars = chart.mark_rule(strokeWidth=2.2).encode(y=_y("low", ends), y2="high:Q", tooltip=_tips())
    medians = chart.mark_point(filled=True, opacity=1, size=POINT).encode(
        y=_y("value", ends), shape=shape, tooltip=_tips()
    )
    dots = (
        chart.properties(data=seeds)
        .mark_circle(size=SEED, opacity=FAINT)
        .encode(y=_y("value", ends), tooltip=_seed_tips())
    )
    return [dots, bars, medians]


def _reference(base: pd.DataFrame, ends: list[float], theme: Theme) -> list[alt.Chart]:
    """Draw a band between the quartiles of students without an explainer, and a line at their median."""
    tone = PALETTES[theme].muted
    chart = alt.Chart(base).encode(x=alt.X("size:O", sort=_sizes(base), title=SIZE, axis=alt.Axis(labelAngle=0)))
    band = chart.mark_bar(
        color=tone, fillOpacity=BAND, stroke=tone, strokeOpacity=0.5, width=alt.RelativeBandSize(0.98)
    )
    line = chart.mark_bar(fillOpacity=0, stroke=tone, strokeWidth=2, width=alt.RelativeBandSize(0.98))
    return [
        band.encode(y=_y("low", ends), y2="high:Q", tooltip=_tips()),
        line.encode(y=_y("value", ends), y2="value:Q", tooltip=_tips()),
    ]


def _sizes(table: pd.DataFrame) -> list[str]:
    return sorted(set(table["size"]), key=lambda size: int(size.replace(",", "")))


def _y(column: str, ends: list[float]) -> alt.Y:
    return alt.Y(f"{column}:Q", title="Simulability", scale=_axis(ends))


def _axis(ends: list[float]) -> alt.Scale:
    return alt.Scale(domain=ends, zero=False, nice=False, padding=12)


def _tips() -> list[alt.Tooltip]:
    titles = {
        "name": "setting", "size": "examples", "shown": "median [quartiles]", "seeds": "students",
        "against": "against no explainer",
    }  # fmt: skip
    return [alt.Tooltip(f"{column}:N", title=title) for column, title in titles.items()]


def _seed_tips() -> list[alt.Tooltip]:
    titles = {"name": "setting", "size": "examples", "seed": "seed", "shown": "simulability"}
    return [alt.Tooltip(f"{column}:N", title=title) for column, title in titles.items()]


CURVES_HEIGHT = 240
PASS_POINT, BEST = 26, 130
"""Areas of the points of a pass and of the pass that is used, in square pixels."""
SEED_COLUMNS = "width < 460 ? 2 : 5"
NO_PASS = "No pass has a value of this measure."
STATES = ("finished", "in training")
LOSSES = {"accuracy": "nats", "pearson": "squared error"}


@dataclass(frozen=True)
class CurveLine:
    """The training passes of one student. `best`: index of the pass that is used, from 0; -1 if there is none."""

    seed: int
    passes: Sequence[TrainingPass]
    best: int
    in_training: bool


def lines_of(
    result: ScaffoldResult,
    setting: str,
    train_size: int,
    measure: str,
    in_training: Mapping[StudentRun, Sequence[TrainingPass]],
) -> list[CurveLine]:
    """Return the curves of a cell's students, finished or in training, that have a value of the measure."""
    done = [
        CurveLine(one.run.seed, one.history, one.best_epoch, False) for one in result.students_of(setting, train_size)
    ]
    finished_seeds = {line.seed for line in done}
    current = [
        CurveLine(run.seed, passes, -1, True)
        for run, passes in in_training.items()
        if (run.setting, run.train_size) == (setting, train_size) and run.seed not in finished_seeds
    ]
    lines = [*done, *current]
    return [line for line in lines if any(getattr(one, measure) is not None for one in line.passes)]


def curves_chart(lines: Sequence[CurveLine], measure: str, metric: str, theme: Theme) -> alt.LayerChart:
    """Draw one line per seed, dashed while in training, with a larger point at the pass that is used.

    If there are more lines than colors, all lines share one color; the tooltip shows the seed.
    """
    if not lines:
        return _blank(NO_PASS, theme)
    seeds = [str(line.seed) for line in lines]
    colors = CHART_COLORS[theme]
    colored = len(lines) <= len(colors)
    legend = line_legend(alt.ExprRef(SEED_COLUMNS), 120)
    legend.title, legend.titleColor, legend.titleFontWeight = "Seed", PALETTES[theme].muted, "normal"
    table = curves_data(lines, measure)
    free = alt.Scale(zero=False, nice=False, padding=12)
    scale = _axis(span(table["value"].tolist())) if measure == "validation" else free
    base = alt.Chart(table).encode(
        x=alt.X("pass:Q", title="Pass", axis=alt.Axis(tickMinStep=1, format="d"), scale=alt.Scale(nice=False)),
        y=alt.Y("value:Q", title=measure_title(measure, metric), scale=scale),
        color=alt.Color("seed:N", sort=seeds, scale=alt.Scale(domain=seeds), legend=legend)
        if colored
        else alt.value(colors[0]),
        detail="seed:N",
    )
    dash = alt.StrokeDash("state:N", scale=alt.Scale(domain=list(STATES), range=[SOLID, DASHED]), legend=None)
    size = alt.Size("kept:N", scale=alt.Scale(domain=["no", "yes"], range=[PASS_POINT, BEST]), legend=None)
    titles = {"seed": "seed", "pass": "pass", "shown": MEASURES[measure].lower(), "state": "student", "kept": "used"}
    tips = [alt.Tooltip(f"{column}:N", title=title) for column, title in titles.items()]
    points = base.mark_point(filled=True, opacity=1).encode(size=size, tooltip=tips)
    line = base.mark_line(strokeWidth=1.8) if colored else base.mark_line(strokeWidth=1.2, opacity=FAINT)
    height = CURVES_HEIGHT + FOOT + (2 * LEGEND_ROW if colored else 0)
    return style_chart(alt.LayerChart(layer=[line.encode(strokeDash=dash), points]), height, theme)


def curves_data(lines: Sequence[CurveLine], measure: str) -> pd.DataFrame:
    """Return one row per pass with a value of the measure; passes count from 1."""
    return pd.DataFrame(
        [
            {
                "seed": str(line.seed), "pass": one.epoch + 1, "value": value, "shown": plain(value),
                "state": STATES[line.in_training], "kept": "yes" if one.epoch == line.best else "no",
            }
            for line in lines
            for one in line.passes
            if (value := getattr(one, measure)) is not None
        ]
    )  # fmt: skip


def passes_table(lines: Sequence[CurveLine]) -> pd.DataFrame:
    """Return one row per pass with all measures, for the page and for files."""
    return pd.DataFrame(
        [
            {
                "Seed": line.seed, "Pass": one.epoch + 1, MEASURES["validation"]: one.validation,
                MEASURES["loss"]: one.loss, MEASURES["outer"]: one.outer,
                "Kept": "yes" if one.epoch == line.best else "no",
            }
            for line in lines
            for one in line.passes
        ]
    )  # fmt: skip


def measure_title(measure: str, metric: str) -> str:
    """Return the title of a measure, with its unit."""
    return MEASURES[measure] if measure == "validation" else f"{MEASURES[measure]} ({LOSSES[metric]})"


TABLE_LABEL = "Simulability by setting and train size"
NOT_YET = "not trained yet"
NO_VALUE = "no value"


def table_html(result: ScaffoldResult) -> str:
    """Build the table as HTML: one row per setting, one column per train size, marked if quartiles do not overlap."""
    sizes = result.plan.train_sizes
    heads = "".join(f'<th scope="col">{escape(count(size, "example"))}</th>' for size in sizes)
    rows = "".join(_table_row(result, setting) for setting in SETTINGS if setting in result.plan.settings)
    return (
        f'<div class="xg"><p class="xg-small">{escape(table_caption(result))}</p>'
        f'<div class="xg-scroll" role="region" tabindex="0" aria-label="{TABLE_LABEL}">'
        '<table class="xg-simulability">'
        f'<thead><tr><th scope="col">Shown to the student</th>{heads}</tr></thead><tbody>{rows}</tbody></table>'
        "</div></div>"
    )


def table_caption(result: ScaffoldResult) -> str:
    """Describe the metric and the number of seeds."""
    seeds = count(len(result.plan.seeds), "seed")
    return f"Simulability ({METRICS[result.metric]}): median [lower:upper quartile] over {seeds}"


def exceptions_of(result: ScaffoldResult) -> list[str]:
    """Return a sentence for each cell with students that diverged, did not improve, or have no simulability.

    A sentence for each student that could not be trained follows.
    """
    plan, sentences = result.plan, list[str]()
    for size in plan.train_sizes:
        for setting in SETTINGS:
            students = result.students_of(setting, size)
            if setting in plan.settings and students:
                where = f"{SETTING_TITLES[setting]}, {count(size, 'example')}"
                sentences += [f"{where}: {words}" for words in _cell_exceptions(students)]
    return sentences + [f"{_student_words(run)} could not be trained: {why}" for run, why in result.failed.items()]


def _cell_exceptions(students: tuple[StudentResult, ...]) -> list[str]:
    total, sentences = len(students), list[str]()
    diverged = [one for one in students if one.diverged]
    if diverged:
        why = diverged[0].stopped.partition(": ")[2]
        sentences.append(f"{_share_words(len(diverged), total)} diverged ({why}); the best earlier state was measured.")
    if untaught := sum(one.best_epoch < 0 for one in students):
        sentences.append(
            f"{_share_words(untaught, total)} did not improve during training; the state before training was measured."
        )
    if without := sum(one.simulability is None for one in students):
        sentences.append(f"{_share_words(without, total)} without a simulability: constant or non-finite outputs.")
    return sentences


def _share_words(number: int, total: int) -> str:
    return f"{number} of {count(total, 'student')}"


def _student_words(run: StudentRun) -> str:
    return f"{SETTING_TITLES[run.setting]}, {count(run.train_size, 'example')}, seed {run.seed}"


def _table_row(result: ScaffoldResult, setting: str) -> str:
    cells = "".join(f"<td>{_table_cell(result, setting, size)}</td>" for size in result.plan.train_sizes)
    kind = ' class="xg-base"' if setting == NONE else ""
    return f'<tr{kind}><th scope="row">{escape(SETTING_TITLES[setting])}</th>{cells}</tr>'


def _table_cell(result: ScaffoldResult, setting: str, size: int) -> str:
    cell = result.cell(setting, size)
    if cell is None:
        return f'<span class="xg-small">{NO_VALUE if result.students_of(setting, size) else NOT_YET}</span>'
    verdict = against(result, cell)
    mark = f' <b class="xg-mark xg-{verdict}">{verdict}</b>' if verdict else ""
    return f'<span class="xg-interval">{interval_words(cell)}</span>{mark}{_seeds_html(result, cell)}'


def _seeds_html(result: ScaffoldResult, cell: SimulabilityCell) -> str:
    measured, planned = len(cell.values), len(result.plan.seeds)
    return "" if measured == planned else f' <span class="xg-small">{measured} of {count(planned, "seed")}</span>'
