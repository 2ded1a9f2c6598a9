"""Charts of the Ask the model page: accuracy by evaluations, and a pair of constructed models."""

from __future__ import annotations

from collections.abc import Mapping

import altair as alt
import numpy as np
import pandas as pd

from components.behavior.answers import always, interval_words, share_words
from components.behavior.view import way_title
from components.charts.frame import ChartAxis, ChartFrame, blank_chart, log_axis, style_chart
from components.charts.scores import BAND, WIDTH
from components.palette import CHART_COLORS, PALETTES, Theme
from engine.behavior.impossibility import FEATURES, RADIUS, Impossibility, TwinModels, build_twins
from engine.behavior.impossibility import METHODS as CONSTRUCTED_METHODS
from engine.behavior.plan import BehaviorPlan
from engine.behavior.result import BehaviorAnswer, WayAccuracy

COST = ["Evaluations per text or picture (log scale)"]
RIGHT = ChartAxis(["Right answers"], alt.Scale(domain=[0, 1]), alt.Axis(format="%", values=[0, 0.25, 0.5, 0.75, 1]))
ROOM = 3.0
"""Factor by which the axis extends beyond the largest cost, so that the labels of levels hide no point."""
UNDER = "datum.name == 'Shapley values' ? 17 : -15"
"""Offset of a point's label: below for Shapley values, else above, because both attributions have equal accuracy."""
LEVEL_DY, LEVEL_SIDE = "datum.below ? 4 : -4", "datum.below ? 'top' : 'bottom'"
"""Offset and baseline of a level's label. The lower of two has it below its line, away from the other line."""
NEAR_AXIS = 0.1
"""Levels up to this accuracy have no room for a label below."""
APART = 1.07
"""Factor between the positions of points of equal cost, so that they do not hide each other."""
ASK = "Ask the model"
SIDE_HEIGHT = 260
TITLES = {"integrated_gradients": "Integrated gradients", "exact_shapley": "Shapley values"}
"""Titles of the attributions of the constructed models."""
TIPS = {"name": "Way", "shown": "Right answers", "interval": "95% interval", "cost": "Evaluations per example"}


def accuracy_table(answer: BehaviorAnswer, plan: BehaviorPlan, titles: Mapping[str, str]) -> pd.DataFrame:
    """Return a row for each way of answering: the data of the chart and of its file."""
    return pd.DataFrame([_row(one, way_title(one, plan, titles)) for one in (*answer.queries, *answer.methods)])


def _row(one: WayAccuracy, name: str) -> dict[str, object]:
    low, high = one.interval or (None, None)
    return {"Way": name, "Right": one.accuracy, "Low": low, "High": high, "Evaluations": one.evaluations}


def accuracy_chart(answer: BehaviorAnswer, plan: BehaviorPlan, frame: ChartFrame) -> alt.LayerChart:
    """Accuracy by evaluations: a line with a band for direct queries, a point with its interval for each method."""
    if not answer.cases:
        return blank_chart(frame)
    table = pd.DataFrame(_points(answer, plan, frame.titles))
    method_ids = list(plan.methods)
    costs = table["at"].tolist()
    x, y = log_axis(COST, [*costs, ROOM * max(costs)]), RIGHT
    queries, methods = table[table["ask"]], table[~table["ask"]]
    tips = [alt.Tooltip(f"{column}:N", title=title) for column, title in TIPS.items()]
    ink = PALETTES[frame.theme].text
    direct = alt.Chart(queries).encode(x=x.x("at"))
    own = alt.Chart(methods).encode(x=x.x("at"), color=frame.color(method_ids, frame.legend(method_ids, "points")))
    layers = [
        *_levels(answer, frame.theme),
        direct.mark_area(color=ink, opacity=BAND).encode(y=y.y("low"), y2="high:Q"),
        own.mark_rule(strokeWidth=2).encode(y=y.y("low"), y2="high:Q"),
        direct.mark_line(color=ink, strokeWidth=WIDTH).encode(y=y.y("right")),
        direct.mark_point(color=ink, filled=True, opacity=1, size=70).encode(y=y.y("right"), tooltip=tips),
        own.mark_point(filled=True, opacity=1, size=110).encode(
            y=y.y("right"), tooltip=tips, shape=frame.shape(method_ids, frame.legend(method_ids, "points"))
        ),
        _name(queries, x, y, ink),
    ]
    return style_chart(alt.LayerChart(layer=layers), frame.height(method_ids), frame.theme)


def _points(answer: BehaviorAnswer, plan: BehaviorPlan, titles: Mapping[str, str]) -> list[dict[str, object]]:
    """Return the rows of the chart, one for each way of answering; methods of equal cost are moved apart."""
    rows, taken = list[dict[str, object]](), dict[float, int]()
    for one in answer.ways:
        cost = max(one.evaluations, 1.0)
        place = taken.get(round(cost), 0)
        taken[round(cost)] = place + (0 if one.is_query else 1)
        low, high = one.interval or (None, None)
        rows.append(
            {
                "name": way_title(one, plan, titles), "ask": one.is_query, "right": one.accuracy, "low": low,
                "high": high, "at": cost if one.is_query else cost * APART**place,
                "shown": share_words(one.accuracy), "interval": interval_words(one.interval),
                "cost": f"{one.evaluations:,.0f}",
            }
        )  # fmt: skip
    return rows


def _levels(answer: BehaviorAnswer, theme: Theme) -> list[alt.Chart]:
    """Return labeled horizontal lines: the accuracy of guessing and of always giving the same answer."""
    levels = [("guessing", answer.chance)]
    if answer.majority is not None and answer.majority != answer.chance:
        levels.append((f"always “{always(answer)}”", answer.majority))
    levels.sort(key=lambda level: level[1] or 0.0)
    table = pd.DataFrame([{"level": value, "text": f"{name}: {share_words(value)}"} for name, value in levels])
    table["below"] = [
        len(levels) > 1 and at == 0 and (value or 0.0) > NEAR_AXIS for at, (_, value) in enumerate(levels)
    ]
    ink = PALETTES[theme].muted
    base = alt.Chart(table).encode(y=RIGHT.y("level"))
    words = base.mark_text(
        align="right", dx=-4, dy=alt.ExprRef(LEVEL_DY), baseline=alt.ExprRef(LEVEL_SIDE), color=ink, fontSize=12
    )
    return [
        base.mark_rule(color=ink, strokeDash=[3, 3]),
        words.encode(x=alt.value("width"), text="text:N"),
    ]


def _name(queries: pd.DataFrame, x: ChartAxis, y: ChartAxis, ink: str) -> alt.Chart:
    """Return the label of the line of direct queries, above its last point."""
    last = queries.tail(1).assign(text=ASK)
    words = alt.Chart(last).mark_text(dy=-14, color=ink, fontSize=13, fontWeight="bold")
    return words.encode(x=x.x("at"), y=y.y("right"), text="text:N")


def constructed_table(found: Impossibility) -> pd.DataFrame:
    """Return a row for each way of answering on the constructed models."""
    return pd.DataFrame(
        [
            {
                "Way": TITLES.get(one.way, ASK), "Evaluations": one.evaluations, "Right": one.accuracy,
                "Low": one.interval[0], "High": one.interval[1],
            }
            for one in (*found.methods, *found.queries)
        ]
    )  # fmt: skip


def constructed_chart(found: Impossibility, theme: Theme) -> alt.LayerChart:
    """Accuracy on the constructed models by evaluations, with a line at 0.5, where both attributions lie."""
    table = constructed_table(found)
    table["shown"], table["name"] = [share_words(value) for value in table["Right"]], table["Way"]
    table["interval"] = [interval_words(one) for one in zip(table["Low"], table["High"], strict=True)]
    x, y = log_axis(["Evaluations of each model (log scale)"], table["Evaluations"].tolist()), RIGHT
    queries, methods = table[table["Way"] == ASK], table[table["Way"] != ASK]
    frame, ink = ChartFrame(TITLES, theme), PALETTES[theme].text
    titles = {**TIPS, "Evaluations": "Evaluations"}
    tips = [alt.Tooltip(f"{column}:N", title=title) for column, title in titles.items() if column != "cost"]
    base = alt.Chart(queries).encode(x=x.x("Evaluations"))
    own = alt.Chart(methods).encode(x=x.x("Evaluations"), y=y.y("Right"))
    method_ids = list(TITLES)
    level = alt.Chart(pd.DataFrame({"level": [0.5]})).mark_rule(color=PALETTES[theme].muted, strokeDash=[3, 3])
    layers = [
        level.encode(y=y.y("level")),
        base.mark_area(color=ink, opacity=BAND).encode(y=y.y("Low"), y2="High:Q"),
        base.mark_line(color=ink, strokeWidth=WIDTH).encode(y=y.y("Right")),
        base.mark_point(color=ink, filled=True, opacity=1, size=70).encode(y=y.y("Right"), tooltip=tips),
        own.mark_point(filled=True, opacity=1, size=110).encode(
            color=frame.color(method_ids, None), shape=frame.shape(method_ids, None), tooltip=tips
        ),
        own.mark_text(dy=alt.ExprRef(UNDER), color=ink, fontSize=12).encode(text="name:N"),
        _name(queries.assign(at=queries["Evaluations"], right=queries["Right"]), x, y, ink),
    ]
    return style_chart(alt.LayerChart(layer=layers), SIDE_HEIGHT, theme)


RISING, FALLING = "rises at the point", "falls at the point"
STEPS = 81


def twin_table(twins: TwinModels) -> pd.DataFrame:
    """Return the outputs of both models of a pair along feature 1, with the other features fixed at the point."""
    across = np.linspace(0, float(twins.point[0]) + RADIUS, STEPS)
    across = np.sort(np.append(across, [twins.point[0] - RADIUS, twins.point[0]]))
    points = np.repeat(twins.point[None], len(across), axis=0)
    points[:, 0] = across
    return pd.DataFrame(
        [
            {"Feature 1": float(at), "Output": float(value), "Model": name}
            for model, name in ((twins.rising, RISING), (twins.falling, FALLING))
            for at, value in zip(across, model.values(points), strict=True)
        ]
    )


def twin_chart(twins: TwinModels, theme: Theme) -> alt.LayerChart:
    """Outputs of both models of a pair along feature 1; they are equal at the baseline, 0, and at the point."""
    table, palette = twin_table(twins), PALETTES[theme]
    names, colors, dashes = [RISING, FALLING], list(CHART_COLORS[theme][:2]), [[1, 0], [7, 4]]
    legend = alt.Legend(orient="bottom", symbolType="stroke", symbolSize=420, symbolStrokeWidth=2.5)
    x = alt.X("Feature 1:Q", title="Feature 1 (the others at the point)", scale=alt.Scale(nice=False))
    y = alt.Y("Output:Q", title="Output", scale=alt.Scale(zero=False))
    lines = alt.Chart(table).mark_line(strokeWidth=WIDTH).encode(
        x=x, y=y, color=alt.Color("Model:N", title=None, legend=legend, scale=alt.Scale(domain=names, range=colors)),
        strokeDash=alt.StrokeDash("Model:N", title=None, legend=legend, scale=alt.Scale(domain=names, range=dashes)),
    )  # fmt: skip
    ends = pd.DataFrame(
        {
            "Feature 1": [0.0, float(twins.point[0])], "text": ["baseline", "point"],
            "Output": [float(twins.rising.values(one[None])[0]) for one in (_at_baseline(twins), twins.point)],
        }
    )  # fmt: skip
    marks = alt.Chart(ends).encode(x=x, y=y)
    layers = [
        lines,
        marks.mark_point(filled=True, opacity=1, size=90, color=palette.text),
        marks.mark_text(dy=-16, fontSize=13, color=palette.text).encode(text="text:N"),
    ]
    return style_chart(alt.LayerChart(layer=layers), SIDE_HEIGHT, theme)


def _at_baseline(twins: TwinModels) -> np.ndarray:
    """Return the point with feature 1 set to the baseline."""
    return np.concatenate([twins.baseline[:1], twins.point[1:]])


def example_twins() -> TwinModels:
    """Return the pair of constructed models that the page draws."""
    return build_twins(np.random.default_rng(0), FEATURES)


def attribution_table(twins: TwinModels) -> pd.DataFrame:
    """Return the attributions of both models of a pair, one row per feature."""
    columns: dict[str, object] = {"Feature": [str(number) for number in range(1, len(twins.point) + 1)]}
    for name, attribute in CONSTRUCTED_METHODS.items():
        for model, behavior in ((twins.rising, "rises"), (twins.falling, "falls")):
            columns[f"{TITLES[name]}, {behavior}"] = attribute(model, twins.point, twins.baseline).round(4).tolist()
    return pd.DataFrame(columns)
