"""The weights of the learned explainer by layer and head, each a way to the Attention page."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import streamlit as st
from jaxtyping import Float

from components.errors import show_note
from components.export import file_button
from components.inputs.link import LONGEST_IN_LINK
from components.links import Query
from components.navigation import ATTENTION
from components.numbers import count, fixed, plain, signed
from components.palette import PALETTES, Theme, browser_theme
from components.scaffold.controls import key
from components.scaffold.page_texts import EVEN, HEADS, NO_STUDENT, WHOSE
from components.scaffold.runs import cached_sample
from components.tables import draw_table
from engine.request import Example
from engine.scaffold.plan import ScaffoldPlan
from engine.scaffold.result import ScaffoldResult, StudentResult

if TYPE_CHECKING:
    import plotly.graph_objects as go


DECIMALS = 3


def show_median_student(result: ScaffoldResult, train_size: int) -> StudentResult | None:
    """Say which student's explainer is shown, and return it; None after saying that there is none."""
    student = result.median_student(train_size)
    if student is None or student.phi is None:
        show_note(NO_STUDENT.format(count(train_size, "example")))
        return None
    st.caption(student_words(student))
    return student


def student_words(student: StudentResult) -> str:
    """Which student, in one sentence."""
    score = "not defined" if student.simulability is None else fixed(student.simulability, DECIMALS, False)
    return WHOSE.format(count(student.run.train_size, "example"), student.run.seed, score)


Weights = Float[np.ndarray, "layer head"]
EXAMPLES = 100
"""As the other sections ask for, so that they are read once."""
LINKED = 6
"""The heaviest heads, which have a link of their own."""
LEFT, TOP, BOTTOM, SCALE = 48, 14, 44, 80
"""Pixels around the cells: layers, nothing, heads, the scale."""
CELL, LOWEST, WIDEST = 34, 220, 900
EVEN_TO = 1e-9


def heads_area(result: ScaffoldResult, train_size: int) -> None:
    """The map, what it says in words, ways to its heads, and its numbers."""
    student = show_median_student(result, train_size)
    weights = None if student is None else result.weights(student)
    if weights is None:
        return
    st.caption(HEADS)
    st.markdown(active_words(weights))
    name, kind = key(result.plan.kind, "heads_map"), result.plan.kind
    width = min(WIDEST, LEFT + SCALE + CELL * weights.shape[1])
    st.plotly_chart(
        heads_figure(weights, browser_theme()), key=name, width=max(width, LOWEST), theme="streamlit",
        on_select=partial(_select, name), selection_mode="points",
    )  # fmt: skip
    query = example_query(result.plan)
    if (selected := st.session_state.pop(SELECTED, None)) is not None:
        _open_head(query, selected)
    _links(weights, query, kind)
    _numbers(weights, kind)


def heads_figure(weights: Weights, theme: Theme) -> go.Figure:
    """Layers down and heads across; a point in each cell answers the mouse, which a heatmap alone does not."""
    # Here and not above: charts take long to import.
    import plotly.graph_objects as go

    from components.charts.comparisons import scale

    rows, columns = np.indices(weights.shape)
    both_signs, end = bool((weights < 0).any()), float(np.abs(weights).max()) or 1.0
    texts = [head_words(weights, layer, head) for layer, head in np.ndindex(*weights.shape)]
    cells = go.Heatmap(
        z=weights.tolist(), zmin=-end if both_signs else 0.0, zmax=end, colorscale=scale(theme, both_signs),
        hoverinfo="skip", colorbar={"thickness": 12, "title": {"text": "λ"}},
    )  # fmt: skip
    invisible = {"marker": {"opacity": 0}}
    points = go.Scatter(
        x=columns.ravel().tolist(), y=rows.ravel().tolist(), mode="markers", text=texts, hoverinfo="text",
        marker={"size": CELL, "symbol": "square", "opacity": 0}, selected=invisible, unselected=invisible,
        showlegend=False,
    )  # fmt: skip
    figure = go.Figure([cells, points])
    axis: dict[str, Any] = {"showgrid": False, "zeroline": False, "dtick": 1, "ticks": ""}
    figure.update_xaxes(title="head", range=[-0.5, weights.shape[1] - 0.5], **axis)
    figure.update_yaxes(title="layer", range=[weights.shape[0] - 0.5, -0.5], **axis)
    _grid(figure, weights.shape, PALETTES[theme].line)
    margin = {"l": LEFT, "r": 10, "t": TOP, "b": BOTTOM}
    figure.update_layout(height=max(LOWEST, TOP + BOTTOM + CELL * len(weights)), margin=margin)
    return figure


def _grid(figure: go.Figure, shape: tuple[int, ...], color: str) -> None:
    """Lines between the cells: one without weight has the colour of the ground."""
    layers, heads = shape
    line = {"color": color, "width": 1}
    for at in range(heads + 1):
        figure.add_shape(type="line", x0=at - 0.5, x1=at - 0.5, y0=-0.5, y1=layers - 0.5, line=line)
    for at in range(layers + 1):
        figure.add_shape(type="line", x0=-0.5, x1=heads - 0.5, y0=at - 0.5, y1=at - 0.5, line=line)


def head_words(weights: Weights, layer: int, head: int) -> str:
    """One head in words."""
    value = float(weights[layer, head])
    number = signed(value) if (weights < 0).any() else plain(value)
    return f"layer {layer}, head {head}: λ = {number}, {'active' if value > 0 else 'inactive'}"


def active_words(weights: Weights) -> str:
    """How many heads are active, and in which layers the weight lies."""
    if np.ptp(weights) < EVEN_TO:
        return f"**{weights.size} of {weights.size} heads are active.** {EVEN}"
    active, sums = int((weights > 0).sum()), weights.clip(min=0).sum(1)
    layer = int(sums.argmax())
    share = float(sums[layer] / sums.sum()) if sums.sum() else 0.0
    text = f"**{active} of {weights.size} heads are active** (λ > 0)."
    return f"{text} The most weight lies in layer {layer}: {100 * share:.0f} % of all." if active else text


def heaviest(weights: Weights, most: int = LINKED) -> list[tuple[int, int]]:
    """The active heads, the heaviest first, as (layer, head)."""
    order = np.argsort(-weights, axis=None, kind="stable")[:most]
    indices = [divmod(int(at), weights.shape[1]) for at in order]
    return [place for place in indices if weights[place] > 0]


def example_query(plan: ScaffoldPlan) -> Query:
    """The Attention page on the teacher and the first test example."""
    sample = cached_sample(plan, EXAMPLES)
    given = sample.source.read(sample.indices[0]).input
    query: Query = {"input": [plan.kind], "model": [plan.teacher]}
    if isinstance(given, Example):
        texts = {"text": given.text, "pair": given.text_pair or ""}
        if sum(map(len, texts.values())) > LONGEST_IN_LINK:
            return query
        return query | {name: [text] for name, text in texts.items() if text}
    split = {"split": [plan.split]} if plan.split else {}
    return query | {"data": [plan.dataset], "index": [str(sample.indices[0])]} | split


def heads_table(weights: Weights) -> pd.DataFrame:
    """A row a head, the heaviest first."""
    order = np.argsort(-weights, axis=None, kind="stable")
    indices = [divmod(int(at), weights.shape[1]) for at in order]
    return pd.DataFrame(
        [{"Layer": layer, "Head": head, "λ": round(float(weights[layer, head]), 6)} for layer, head in indices]
    )


SELECTED = "scaffold_picked_head"
"""In the session: the head that was clicked, until the page has gone there."""


def _select(name: str) -> None:
    points = st.session_state[name].selection.points
    if points:
        st.session_state[SELECTED] = f"{round(points[-1]['y'])}.{round(points[-1]['x'])}"


def _links(weights: Weights, query: Query, kind: str) -> None:
    with st.container(horizontal=True, gap="small"):
        for layer, head in heaviest(weights):
            value = plain(float(weights[layer, head]))
            name = f"{layer}.{head}"
            if st.button(
                f"Head {name}: λ {value}", key=key(kind, f"heads.{name}"), type="tertiary",
                icon=":material/arrow_forward:", help=ATTENTION.question,
            ):  # fmt: skip
                _open_head(query, name)


def _open_head(query: Query, head: str) -> None:
    st.switch_page(ATTENTION.path, query_params={**query, "head": [head]})


def _numbers(weights: Weights, kind: str) -> None:
    with st.expander("Numbers and files", key=key(kind, "heads_numbers"), on_change="rerun") as box:
        if box.open:
            table = heads_table(weights)
            draw_table(table, key(kind, "heads_table"))
            file_button(
                "Weights, CSV", "exegesis-scaffold-heads.csv", "text/csv", lambda: table.to_csv(index=False),
                "λ of each head. The map is saved with the camera above it.", key(kind, "heads_csv"),
            )  # fmt: skip
