"""What methods put on a mark against what the mark is worth, beside what there is to be reached."""

from __future__ import annotations

from collections.abc import Sequence

import altair as alt
import pandas as pd

from components.evaluate.charts.axes import Axis, evenly
from components.evaluate.charts.blank import blank_chart
from components.evaluate.charts.frame import Frame
from components.evaluate.charts.lines import AT, line_chart
from components.evaluate.charts.words import BETTER, from_zero, record, short, table_row
from components.numbers import percent
from components.palette import PALETTES
from engine.evaluation.views.strength import Graded

DATA = ("share of the examples that carry the mark", "share of all scores that is on the mark")
TRAINING = ("share of the training examples that carried the mark", "share of an example's scores that is on its mark")
"""The words of both axes, over data and over training."""
IDEAL = {DATA: "everything on the mark", TRAINING: "what the mark decides"}
LOOSE = [6, 4]
"""The dashes of the line that no method drew."""


def strength_chart(
    graded: Sequence[Graded], company: Sequence[str], frame: Frame, words: tuple[str, str] = DATA, bands: bool = True
) -> alt.LayerChart:
    """A line a method over the strength of the mark, and a grey one of what there is to be reached.

    `graded`: of `over_data` with the words `DATA`, or of `over_training` with `TRAINING`.
    """
    shown = frame.drawn(company)
    drawn = [one for one in graded if one.score.value is not None and one.score.method in shown]
    if not drawn:
        return blank_chart(frame)
    table = pd.DataFrame([{**record(one.score, frame), **_of_strength(one)} for one in drawn])
    low, high = from_zero([one.score for one in drawn], frame)
    x = Axis([words[0]], alt.Scale(domain=[0, 1]), alt.Axis(format="%", tickCount=5))
    y = evenly([words[1], BETTER["high"]], (low, max(1.0, high)))
    chart = line_chart(table, company, frame, (x, y), {"carried": "The mark", "ideal": IDEAL[words]}, bands)
    chart.layer = [*_ideal(drawn, frame, (x, y), IDEAL[words]), *chart.layer]
    return chart


def strength_table(graded: Sequence[Graded], frame: Frame, words: tuple[str, str] = DATA) -> pd.DataFrame:
    """A row a strength and method."""
    return pd.DataFrame(
        [
            table_row(one.score, frame, {"Strength": short(one.strength), IDEAL[words].capitalize(): short(one.ideal)})
            for one in graded
        ]
    )


def together_words(places: Sequence[Sequence[float]]) -> str:
    """A sentence about strengths that stand at one place, empty where there are none such."""
    named = "; ".join(" and ".join(f"{one:g}" for one in strengths) for strengths in places)
    if not named:
        return ""
    return (
        f"Strengths {named}: of the examples drawn equally many carry the mark, so that their points lie on each "
        "other. More examples set them apart."
    )


def _of_strength(one: Graded) -> dict[str, object]:
    ideal = "not known" if one.ideal is None else percent(one.ideal)
    return {AT: one.strength, "carried": f"in {percent(one.strength)} of the examples", "ideal": ideal}


def _ideal(drawn: Sequence[Graded], frame: Frame, axes: tuple[Axis, Axis], name: str) -> list[alt.Chart]:
    """As far as it is known; its name stands at its last point."""
    known = sorted({(one.strength, one.ideal) for one in drawn if one.ideal is not None})
    if not known:
        return []
    x, y = axes
    grey = PALETTES[frame.theme].muted
    base = alt.Chart(pd.DataFrame(known, columns=[AT, "value"])).encode(x=x.x(AT), y=y.y("value"))
    end = alt.Chart(pd.DataFrame([{AT: known[-1][0], "value": known[-1][1], "words": name}]))
    words = end.mark_text(align="right", baseline="bottom", dx=-8, dy=-4, fontSize=13, color=grey)
    return [
        base.mark_line(strokeDash=LOOSE, strokeWidth=2, color=grey, point={"color": grey, "size": 30}),
        words.encode(x=x.x(AT), y=y.y("value"), text="words:N"),
    ]
