"""Charts of attacks: three curves along the steps, and bars of means with intervals."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import altair as alt
import pandas as pd

from components.adversarial.descriptions import OBJECTIVE_TITLES
from components.charts.frame import AxisRange, ChartFrame, blank_chart, linear_axis, style_chart
from components.charts.scores import GROUP, bar_chart, round_number
from components.numbers import plain
from components.palette import Theme
from engine.attacks.experiment_result import METRICS, AttackScore
from engine.attacks.result import Trajectory
from engine.evaluation.result import format_reasons

CURVES = {"objective": "Objective", "rank_change": "Rank change", "probability": "Probability"}
SCORE = "Score"
"""Title for regression, which has no probability."""
SHARES = ("rank_change", "probability")
CURVE_HEIGHT = 220
DIFFERENT = "another class"


@dataclass(frozen=True)
class AttackCurve:
    """The steps of one attack. `best`: the best step, None while it runs or if there is none."""

    objective: str
    trajectory: Trajectory
    best: int | None = None


def curve_data(attacks: Sequence[AttackCurve], curve: str) -> pd.DataFrame:
    """One row per point: step, value, attack, class, whether it is the best step."""
    return pd.DataFrame(
        [
            {
                "step": int(step),
                "value": float(value),
                "name": OBJECTIVE_TITLES[one.objective],
                "class": "unchanged" if kept else DIFFERENT,
                "best": one.best == int(step),
                "shown": plain(float(value)),
            }
            for one in attacks
            for step, value, kept in zip(
                one.trajectory.step, getattr(one.trajectory, curve), one.trajectory.class_kept, strict=True
            )
        ]
    )


def curve_chart(attacks: Sequence[AttackCurve], curve: str, theme: Theme, regression: bool = False) -> alt.LayerChart:
    """One of `CURVES`, with a large point at the best step and small points at steps in another class."""
    table = curve_data(attacks, curve)
    if table.empty:
        return blank_chart(ChartFrame({}, theme))
    names = [OBJECTIVE_TITLES[one.objective] for one in attacks]
    share = curve in SHARES and not (regression and curve == "probability")
    legend = alt.Legend(orient="bottom", columns=1, symbolType="stroke", symbolSize=420) if len(names) > 1 else None
    title = SCORE if regression and curve == "probability" else CURVES[curve]
    base = alt.Chart(table).encode(
        x=alt.X("step:Q", title="step", axis=alt.Axis(tickMinStep=1, tickCount=4, grid=False)),
        y=alt.Y(
            "value:Q", title=title, scale=alt.Scale(domain=[0, 1]) if share else alt.Scale(zero=False),
            axis=alt.Axis(tickCount=4, format="%" if share else ""),
        ),
        color=alt.Color("name:N", scale=alt.Scale(domain=names), title=None, legend=legend),
        strokeDash=alt.StrokeDash("name:N", scale=alt.Scale(domain=names, range=[[1, 0], [6, 3]][: len(names)]),
                                  title=None, legend=legend),
        tooltip=[alt.Tooltip("name:N", title="Attack"), alt.Tooltip("step:Q", title="Step"),
                 alt.Tooltip("shown:N", title=title), alt.Tooltip("class:N", title="Class")],
    )  # fmt: skip
    layers = [base.mark_line(strokeWidth=2)]
    for points, size in ((table[table["class"] == DIFFERENT], 26), (table[table["best"]], 110)):
        if len(points):
            layers.append(base.properties(data=points).mark_point(filled=True, opacity=1, size=size))
    return style_chart(alt.LayerChart(layer=layers), CURVE_HEIGHT + 24 * (len(names) if legend else 0) + 40, theme)


def means_chart(
    scores: Sequence[AttackScore],
    frame: ChartFrame,
    company: Sequence[str],
    objectives: Sequence[str],
    span: AxisRange,
    models: Sequence[str] = (),
) -> alt.LayerChart:
    """Bars of one metric: a group per objective, a bar per method. `models`: if several, a group for each."""
    scored = [score for score in scores if score.value is not None]
    if not scored:
        return blank_chart(frame)
    several = len(models) > 1
    ordered = sorted(
        scored,
        key=lambda score: (models.index(score.key.model) if several else 0, objectives.index(score.key.objective)),
    )
    table = pd.DataFrame([_bar_record(score, frame, several) for score in ordered])
    metric = METRICS[scored[0].key.metric]
    unit = "" if metric.unit in metric.title.lower() else f" ({metric.unit})"
    return bar_chart(table, company, frame, linear_axis([f"{metric.title}{unit}"], span), {"group": "Objective"})


def axis_span(scores: Iterable[AttackScore]) -> AxisRange:
    """The axis range of charts that are compared; bars start at 0."""
    ends = [end for one in scores if one.value is not None for end in (one.value, *(one.interval or ()))]
    low, high = min([0.0, *ends]), max([0.0, *ends])
    room = 0.04 * (high - low) or 0.5
    return low - (room if low < 0 else 0.0), high + (room if high > 0 or low == 0 else 0.0)


def means_table(scores: Sequence[AttackScore], titles: Mapping[str, str]) -> pd.DataFrame:
    """One row per mean, including those without a value."""
    return pd.DataFrame([_table_row(score, titles) for score in scores])


def _bar_record(score: AttackScore, frame: ChartFrame, named: bool) -> dict[str, object]:
    """A record of a chart; `slice` is the objective for a click. `named`: include the model in its group."""
    low, high = score.interval or (None, None)
    key = score.key
    return {
        "model": key.model, "method": key.method, "metric": key.metric, "percent": 0, "slice": key.objective,
        GROUP: f"{key.model}, {OBJECTIVE_TITLES[key.objective].lower()}" if named else OBJECTIVE_TITLES[key.objective],
        "name": frame.title(key.method), "value": score.value,
        "low": low, "high": high, "shown": plain(score.value or 0.0), "interval": _interval(score),
        "examples": f"{score.n:,}", "skipped": format_reasons(score.skipped) or "none",
    }  # fmt: skip


def _interval(score: AttackScore) -> str:
    return score.doubt or " to ".join(map(plain, score.interval or ()))


def _table_row(score: AttackScore, titles: Mapping[str, str]) -> dict[str, object]:
    low, high = (None if score.doubt else score.interval) or (None, None)
    key = score.key
    return {
        "Method": titles.get(key.method, key.method),
        "Objective": OBJECTIVE_TITLES[key.objective],
        "Model": key.model,
        "Measure": METRICS[key.metric].title,
        "Mean": round_number(score.value),
        "95% from": round_number(low),
        "95% to": round_number(high),
        "Examples": score.n,
        "Without a value": sum(score.skipped.values()),
    }
