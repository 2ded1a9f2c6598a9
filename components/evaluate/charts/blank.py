"""A chart of nothing says so: no frame without words, and nothing that looks like zeros."""

from __future__ import annotations

import altair as alt
import pandas as pd

from components.charts import finished
from components.evaluate.charts.frame import Frame, picked
from components.palette import PALETTES

NOTHING = "Nothing to draw: no example has a value."
HEIGHT = 80


def blank_chart(frame: Frame) -> alt.LayerChart:
    """The words alone; it can be clicked as other charts can, and answers nothing."""
    words = alt.Chart(pd.DataFrame({"words": [NOTHING]})).mark_text(fontSize=14, color=PALETTES[frame.theme].muted)
    return finished(alt.LayerChart(layer=[words.encode(text="words:N").add_params(picked())]), HEIGHT, frame.theme)
