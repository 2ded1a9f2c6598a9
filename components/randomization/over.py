"""Several models over each other: one method, a line a model, the modes side by side, and the verdict on each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import streamlit as st

from components.randomization.charted import Charted, draw
from components.randomization.entries import Entry
from components.randomization.judged import judged_html
from components.randomization.lines import frame_of
from components.randomization.words import NO_VERDICT
from components.trouble import literal, say_note
from engine.randomization.plan import MODES

if TYPE_CHECKING:
    import altair as alt
    import pandas as pd

    from components.evaluate.charts.frame import Span
    from components.palette import Theme
    from components.randomization.state import RandomizationState
    from engine.randomization.curves import Curve, Verdict
    from engine.randomization.plan import RandomizationPlan


@dataclass(frozen=True)
class Over(Charted):
    """A method on several models in one mode."""

    method: str
    entries: Sequence[Entry]

    @property
    def name(self) -> str:
        return f"{self.frame.title(self.method)}, {', '.join(one.name for one in self.entries)}"

    @property
    def plans(self) -> list[RandomizationPlan]:
        return [one.plan for one in {id(entry.held): entry.held for entry in self.entries}.values()]

    @property
    def likeness(self) -> list[Curve]:
        return [one for one in self.measured if one.method == self.method]

    @property
    def prediction(self) -> list[Curve]:
        return [one for one in self.curves if one.metric == "probability" and one.mode == self.mode]

    @property
    def table(self) -> pd.DataFrame:
        from components.randomization.charts import numbers_table

        return numbers_table([*self.likeness, *self.prediction], self.frame.titles, models=True)

    def chart(self, theme: Theme | None = None) -> alt.LayerChart:
        from components.randomization.charts_over import models_chart

        frame = replace(self.frame, theme=theme) if theme else self.frame
        return models_chart(self.likeness, frame, self.span)

    def answers(self) -> alt.LayerChart | None:
        """None where one is a regression: a score is no probability."""
        from components.randomization.charts_over import answers_chart

        regression = any(one.found.regression for one in self.entries)
        return None if regression else answers_chart(self.prediction, self.frame)


def over_area(
    state: RandomizationState, method: str, entries: Sequence[Entry], curves: Mapping[str, Sequence[Curve]],
    titles: Mapping[str, str], span: Span,
) -> None:  # fmt: skip
    """The modes that there are, then the verdicts. `curves`: of each entry by its name."""
    st.markdown(f"**{literal(titles.get(method, method))}**, a line a model")
    all = [one for entry in entries for one in curves[entry.name]]
    modes = [mode for mode in MODES if any(one.mode == mode for one in all)]
    frame = frame_of(state, titles, (method,))
    for place, mode in zip(st.columns(len(modes), gap="medium"), modes, strict=True):
        with place:
            draw(Over(state, mode, all, frame, span, method, entries))
    judged = verdicts_on(method, entries, state.kind)
    if judged:
        st.html(judged_html(judged, state.kind, f"Verdicts on {titles.get(method, method)}"))
    else:
        say_note(NO_VERDICT)


def verdicts_on(method: str, entries: Sequence[Entry], kind: str) -> list[tuple[str, Verdict]]:
    """By the name of each model; none of those without the cascading mode or the method."""
    from engine.randomization.curves import verdicts_of

    judged = ((one.name, verdicts_of(one.found, kind, one.held.plan.seed)) for one in entries)
    return [(name, verdict) for name, each in judged for verdict in each if verdict.method == method]
