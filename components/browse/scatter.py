"""The points of an embedding map as a chart: colored by class or score, mistakes as crosses, a box that selects."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import altair as alt
import pandas as pd

from components.browse.examples import ExampleRow
from components.browse.thumbnails import describe_row
from components.charts.files import CaptionedChart, ChartCaption
from components.charts.frame import style_chart
from components.controls import Key
from components.numbers import plain
from components.palette import CHART_COLORS, PALETTES, STEPS, Theme, color
from engine.data.embedding_map import PCA, PROJECTION_TITLES, EmbeddingMap
from engine.format import shorten
from engine.table_io import escape_cell

BOX, CLICK = "box", "click"
"""The names of the selections of an area and of a point."""
LABEL, PREDICTED = "label", "predicted"
COLOR_TITLES = {LABEL: "Label", PREDICTED: "Prediction"}
NONE, OTHERS = "None", "Other classes"
"""Legend labels of points without a value, and of classes without a color of their own."""
VERDICTS = {False: "Wrong", True: "Right", None: "Not judged"}
SHAPES = {"Right": "circle", "Not judged": "circle", "Wrong": "cross"}
HEIGHT = 460
MOST_CHARACTERS = 160
"""Maximum characters of a text in a tooltip and in the file."""
MANY = 400
"""Number of points above which they are drawn smaller."""


@dataclass(frozen=True)
class EmbeddingChart(CaptionedChart):
    """An embedding map on a page.

    `rows`: all examples of the data set. `color`: field that colors the points: `LABEL`, `PREDICTED` or empty.
    `has_scores`: whether the labels are scores. `title`: names of the model and the data set.
    """

    embedding: EmbeddingMap
    rows: Sequence[ExampleRow]
    color: str
    has_scores: bool
    title: str
    theme: Theme
    widget: Key

    @property
    def file(self) -> str:
        return f"exegesis-embedding-map-{self.embedding.projection}"

    @property
    def table(self) -> pd.DataFrame:
        """One row per point, with its index in the data set and its coordinates."""
        axes = [f"{PROJECTION_TITLES[self.embedding.projection]} {axis}" for axis in (1, 2)]
        return pd.DataFrame(
            {
                "Example": row.index,
                axes[0]: x,
                axes[1]: y,
                "Label": escape_cell(row.label or ""),
                "Prediction": escape_cell(_predicted(row) or ""),
                "Verdict": "" if row.right is None else VERDICTS[row.right],
                "Text": escape_cell(_text(row)),
            }
            for row, (x, y) in self._points()
        )

    def key(self, kind: str) -> str:
        return self.widget(f"embedding_file.{kind}")

    def caption(self) -> ChartCaption:
        title = f"Embedding map, {PROJECTION_TITLES[self.embedding.projection]}: {self.title}"
        notes = [f"{len(self.embedding.places):,} examples, {self.embedding.dimensions:,} dimensions."]
        return ChartCaption(title, notes, [])

    def chart(self, theme: Theme | None = None) -> alt.LayerChart:
        own = self if theme is None else replace(self, theme=theme)
        frame = own._frame()
        box = alt.selection_interval(name=BOX)
        click = alt.selection_point(name=CLICK, fields=["index"], empty=False)
        titles = axis_titles(self.embedding)
        axes = [
            channel(f"{name}:Q", title=title, scale=alt.Scale(zero=False))
            for channel, name, title in ((alt.X, "x", titles[0]), (alt.Y, "y", titles[1]))
        ]
        is_judged = any(row.right is not None for row, _ in self._points())
        ink, is_wrong = PALETTES[own.theme], alt.when(f"datum.verdict === '{VERDICTS[False]}'")
        legend = alt.Legend(orient="bottom", symbolFillColor=ink.muted, symbolStrokeWidth=0) if is_judged else None
        domain = [name for name in SHAPES if name in set(frame["verdict"])]
        shapes = alt.Scale(type="ordinal", domain=domain, range=[SHAPES[name] for name in domain])
        names = {"text": "text", "label": "label", "predicted": "prediction", "verdict": "verdict"}
        tips = [alt.Tooltip(f"{field}:N", title=title) for field, title in names.items() if (frame[field] != "").any()]
        points = (
            alt.Chart(frame)
            .mark_point(filled=True, strokeWidth=1)
            .encode(
                *axes,
                color=own._color(frame),
                shape=alt.Shape("verdict:N", title="Verdict", scale=shapes, legend=legend),
                size=is_wrong.then(alt.value(150)).otherwise(alt.value(28 if len(frame) > MANY else 60)),
                stroke=is_wrong.then(alt.value(ink.text)).otherwise(alt.value(ink.ground)),
                opacity=alt.when(box).then(alt.value(0.85)).otherwise(alt.value(0.2)),
                tooltip=tips,
            )
            .add_params(box, click)
        )
        return style_chart(alt.LayerChart(layer=[points]), HEIGHT, own.theme)

    def _points(self) -> list[tuple[ExampleRow, tuple[float, float]]]:
        pairs = zip(self.embedding.places, self.embedding.coordinates, strict=True)
        return [(self.rows[int(place)], (float(x), float(y))) for place, (x, y) in pairs]

    def _frame(self) -> pd.DataFrame:
        """Return the data of the points and their tooltips. Mistakes are last, so that they are drawn on top."""
        rows: list[dict[str, object]] = [
            {
                "index": row.index,
                "x": x,
                "y": y,
                "color": self._value(row),
                "verdict": VERDICTS[row.right],
                "text": _text(row),
                "label": row.label or "",
                "predicted": _predicted(row) or "",
            }
            for row, (x, y) in self._points()
        ]
        rows.sort(key=lambda row: row["verdict"] == VERDICTS[False])
        frame = pd.DataFrame(rows)
        if not self._is_score:
            names = [str(name) for name in frame["color"]]
            colored = named_colors(names, self.theme)
            frame["color"] = [name if name in colored else OTHERS for name in names]
        return frame

    @property
    def _is_score(self) -> bool:
        """Whether the color shows a number, the score of a regression."""
        if self.color == PREDICTED:
            return any(row.score is not None for row in self.rows)
        return self.color == LABEL and self.has_scores

    def _value(self, row: ExampleRow) -> str | float | None:
        if not self.color:
            return NONE
        if self._is_score:
            return row.score if self.color == PREDICTED else None if row.label is None else float(row.label)
        return (row.label if self.color == LABEL else row.predicted) or NONE

    def _color(self, frame: pd.DataFrame) -> alt.Color:
        if not self.color:
            return alt.Color("color:N", legend=None, scale=alt.Scale(range=[CHART_COLORS[self.theme][0]]))
        title = COLOR_TITLES[self.color]
        if self._is_score:
            ends = [color(self.theme, "amount", step) for step in (STEPS // 4, STEPS)]
            return alt.Color("color:Q", title=title, scale=alt.Scale(range=ends), legend=alt.Legend(orient="bottom"))
        colors = named_colors(frame["color"], self.theme)
        legend = alt.Legend(orient="bottom", columns=4, labelLimit=160, symbolOpacity=1)
        scale = alt.Scale(type="ordinal", domain=list(colors), range=list(colors.values()))
        return alt.Color("color:N", title=title, scale=scale, legend=legend)


def axis_titles(embedding: EmbeddingMap) -> tuple[str, str]:
    """Return the titles of the axes, for PCA with the explained variance."""
    if embedding.projection != PCA:
        title = PROJECTION_TITLES[embedding.projection]
        return f"{title} 1", f"{title} 2"
    first, second = (
        f"PC {axis} ({100 * share:.1f}% of the variance)" for axis, share in enumerate(embedding.explained, 1)
    )
    return first, second


def named_colors(names: Sequence[str] | pd.Series[Any], theme: Theme) -> Mapping[str, str]:
    """Return a color for each name: the most frequent have their own, all others share the gray of `OTHERS`."""
    *own, gray = CHART_COLORS[theme]
    counts = Counter(name for name in names if name not in (NONE, OTHERS))
    frequent = sorted(counts, key=lambda name: (-counts[name], name))[: len(own)]
    colors = dict(zip(sorted(frequent), own, strict=False))
    if len(counts) > len(own) or OTHERS in set(names):
        colors[OTHERS] = gray
    if NONE in set(names):
        colors[NONE] = PALETTES[theme].line
    return colors


def _predicted(row: ExampleRow) -> str | None:
    return row.predicted if row.score is None else plain(row.score)


def _text(row: ExampleRow) -> str:
    """Shorten a text to one line; for a picture, describe its label and prediction."""
    if not row.text:
        return describe_row(row)
    return shorten(row.text if row.pair is None else f"{row.text} / {row.pair}", MOST_CHARACTERS)
