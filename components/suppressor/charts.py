"""Charts of the Gaussian problem: both classes with the decision line, and shares as the correlation varies."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import altair as alt
import numpy as np
import pandas as pd

from components.charts.frame import FOOT, LEGEND_ROW, line_legend, style_chart
from components.palette import CHART_COLORS, PALETTES, Theme
from engine.suppressor.gaussian import CLOSED_FORMS, MOST_CORRELATION, GaussianProblem
from engine.suppressor.measurement import GaussianResult, measure_gaussian, theory_shares

PLOT = 300
SHOWN = 200
"""Number of examples in the scatter plot."""
CLASSES = ("−1", "+1")
REACH = 3.5
"""Distance of the ends of the scatter plot from the class means, in standard deviations of the noise."""
STEPS = 77
"""Number of correlations at which the closed forms are drawn."""
MEASURED_AT = (-0.9, -0.6, -0.3, 0.0, 0.3, 0.6, 0.9)
"""Correlations at which all methods are measured for the chart."""
TITLES = tuple(dict.fromkeys(form.title for form in CLOSED_FORMS.values()))
X1, X2 = "Informative feature x₁", "Suppressor x₂"
SHARE = "Share given to the suppressor"
USUAL = 0.5
"""End of the axis of shares, unless a share is larger."""


def scatter_chart(problem: GaussianProblem, seed: int, theme: Theme) -> alt.LayerChart:
    """Scatter plot of examples, with a color and shape for each class, and the decision line of the classifier."""
    x, classes = problem.sample(SHOWN, seed, balanced=True)
    ends = (1 + REACH * problem.scale, REACH * problem.suppressor_scale)
    table = pd.DataFrame({"x1": x[:, 0], "x2": x[:, 1], "class": [CLASSES[int(one > 0)] for one in classes]})
    colors = alt.Scale(domain=list(CLASSES), range=[CHART_COLORS[theme][1], CHART_COLORS[theme][0]])
    shapes = alt.Scale(domain=list(CLASSES), range=["triangle-up", "circle"])
    legend = alt.Legend(orient="bottom", title="Class")
    across, up = (
        alt.X("x1:Q", title=X1, scale=alt.Scale(domain=[-ends[0], ends[0]])),
        alt.Y("x2:Q", title=X2, scale=alt.Scale(domain=[-ends[1], ends[1]])),
    )
    points = (
        alt.Chart(table)
        .mark_point(filled=True, opacity=0.65, size=36, clip=True)
        .encode(
            x=across,
            y=up,
            color=alt.Color("class:N", scale=colors, legend=legend),
            shape=alt.Shape("class:N", scale=shapes, legend=legend),
        )
    )
    line = (
        alt.Chart(decision_line(problem, ends))
        .mark_line(strokeWidth=2.5, color=PALETTES[theme].text, clip=True)
        .encode(x=across, y=up, order="at:Q")
    )
    return style_chart(alt.LayerChart(layer=[points, line]), PLOT + FOOT, theme)


def decision_line(problem: GaussianProblem, ends: tuple[float, float]) -> pd.DataFrame:
    """Return two points on the line f(x) = 0, at the lower and the upper end of x2."""
    w = problem.weights
    x2 = np.array([-ends[1], ends[1]])
    return pd.DataFrame({"x1": -w[1] / w[0] * x2, "x2": x2, "at": [0, 1]})


def share_chart(problem: GaussianProblem, curves: ShareCurves, theme: Theme) -> alt.LayerChart:
    """Line for each closed form, points for each measured method, and a vertical rule at the chosen correlation."""
    colors = alt.Color(
        "form:N",
        title=None,
        scale=alt.Scale(domain=list(TITLES), range=list(CHART_COLORS[theme][: len(TITLES)])),
        legend=line_legend(1, 320),
    )
    across = alt.X(
        "correlation:Q", title="Correlation of the noise", scale=alt.Scale(domain=[-1, 1]), axis=alt.Axis(tickCount=9)
    )
    largest = max(curves.theory["share"].max(), curves.measured["share"].max())
    ends = alt.Scale(domain=[0, max(USUAL, float(np.ceil(10 * largest) / 10))])
    up = alt.Y("share:Q", title=SHARE, scale=ends, axis=alt.Axis(format="%", tickCount=6))
    lines = alt.Chart(curves.theory).mark_line(strokeWidth=2.5).encode(x=across, y=up, color=colors)
    points = (
        alt.Chart(curves.measured)
        .mark_point(filled=True, opacity=1, size=50)
        .encode(
            x=across,
            y=up,
            color=colors,
            tooltip=[
                alt.Tooltip("method:N", title="Method"),
                alt.Tooltip("correlation:Q", title="Correlation"),
                alt.Tooltip("share:Q", title="Measured share", format=".2%"),
            ],
        )
    )
    here = pd.DataFrame({"correlation": [problem.correlation]})
    rule = alt.Chart(here).mark_rule(strokeDash=[4, 4], color=PALETTES[theme].muted, strokeWidth=1.5).encode(x=across)
    chart = alt.LayerChart(layer=[rule, lines, points])
    return style_chart(chart, PLOT + FOOT + LEGEND_ROW * len(TITLES), theme)


class ShareCurves(NamedTuple):
    """Shares of the suppressor by correlation, in theory and as measured, for one pair of scales."""

    theory: pd.DataFrame
    measured: pd.DataFrame


def share_curves(scale: float, suppressor_scale: float, seed: int) -> ShareCurves:
    """Compute the closed forms at all correlations, and measure all methods at `MEASURED_AT`."""
    problems = (GaussianProblem(correlation, scale, suppressor_scale) for correlation in MEASURED_AT)
    measured = measured_table([measure_gaussian(problem, seed) for problem in problems])
    return ShareCurves(theory_table(scale, suppressor_scale, seed), measured)


def theory_table(scale: float, suppressor_scale: float, seed: int) -> pd.DataFrame:
    """Return the share of the suppressor by each closed form, at all correlations."""
    rows = []
    for correlation in np.linspace(-MOST_CORRELATION, MOST_CORRELATION, STEPS):
        own = GaussianProblem(float(correlation), scale, suppressor_scale)
        rows += [
            {"form": title, "correlation": correlation, "share": share}
            for title, share in theory_shares(own, seed).items()
        ]
    return pd.DataFrame(rows)


def measured_table(sweep: Sequence[GaussianResult]) -> pd.DataFrame:
    """Return the measured share of each method that has a closed form, at each measured correlation."""
    return pd.DataFrame(
        [
            {
                "form": one.method.closed_form.title,
                "method": one.method.name,
                "correlation": result.problem.correlation,
                "share": one.measured.share,
            }
            for result in sweep
            for one in result.methods
            if one.method.closed_form is not None
        ]
    )
