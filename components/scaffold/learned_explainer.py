"""The learned explainer: its weights by layer and head, and its maps of a test example next to static ones."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import streamlit as st
from jaxtyping import Float

from components.compute import run_cached
from components.errors import escape_label, show_note
from components.export import file_button
from components.links import LONGEST_IN_LINK, Query
from components.method_row import RATIONALE, mark_units
from components.navigation import ATTENTION
from components.numbers import count, fixed, plain, signed
from components.palette import PALETTES, Theme, browser_theme
from components.progress import run_with_progress
from components.scaffold.charts import DECIMALS
from components.scaffold.controls import key, view_number, view_switch
from components.scaffold.runs import cached_sample
from components.scaffold.state import SCALES, SETTING_TITLES
from components.tables import draw_table
from components.widgets.patch_map import PatchMap, layers_html, picture_style, sentence, use_picture_styles
from components.widgets.patch_map import legend_html as patch_legend
from components.widgets.token_map import TokenMap, legend_html, token_map_html
from engine.data.examples import ImageExample, LabeledExample
from engine.data.sources import SourceExample
from engine.lazy import LazyModule
from engine.request import Example
from engine.scaffold.explainer_checks import (
    HEAD,
    LAYER,
    UNIFORM,
    ExplainerComparison,
    compare_explainers,
    comparison_key,
)
from engine.scaffold.plan import ScaffoldPlan
from engine.scaffold.result import ScaffoldResult, StudentResult, coefficients_of
from engine.vision.picture import read_view
from engine.word_units import units

if TYPE_CHECKING:
    import plotly.graph_objects as go

    from components.charts import comparisons
else:
    go = LazyModule("plotly.graph_objects")
    comparisons = LazyModule("components.charts.comparisons")
"""Plotly is slow to import and not needed by every section."""

TITLES: Mapping[str, str] = {
    **SETTING_TITLES,
    LAYER: "Best layer",
    HEAD: "Best head",
    UNIFORM: "Uniform map",
}
"""Titles of explainers."""
NO_STUDENT = (
    "No student of the setting “SMaT, learned” is finished with {}, so there is no learned explainer to show. Select "
    "this setting above and press Teach."
)
STUDENT = "The explainer of the median student with {}: seed {}, simulability {}."
HEADS = (
    "Weight λ of each of the teacher's attention heads in the learned explainer. Layers and heads count from 0 (SMaT, "
    "figure 5). Click a cell to open that head on the Attention page."
)
EVEN = "All heads have the same weight: training did not change the explainer."
MAPS = (
    "The learned explanation and the static ones of one test example. The values of each sum to 1 over the {}; special "
    "tokens get 0 (SMaT, figures 3 and 4)."
)
TRUTH = "The outline marks what is known to matter."
EXAMPLES = 100
"""Number of test examples, the same in all sections, so that they are read only once."""
LINKED = 6
"""Number of heads that get a link: those with the largest weights."""
LEFT, TOP, BOTTOM, SCALE = 48, 14, 44, 80
"""Pixels around the cells: left for the layers, top, bottom for the heads, right for the color scale."""
CELL, LOWEST, WIDEST = 34, 220, 900
EVEN_TO = 1e-9

Weights = Float[np.ndarray, "layer head"]


def show_median_student(result: ScaffoldResult, train_size: int) -> StudentResult | None:
    """Draw a caption on the median student and return the student; if there is none, draw a note and return None."""
    student = result.median_student(train_size)
    if student is None or student.phi is None:
        show_note(NO_STUDENT.format(count(train_size, "example")))
        return None
    st.caption(student_words(student))
    return student


def student_words(student: StudentResult) -> str:
    """Describe the student in one sentence."""
    score = "not defined" if student.simulability is None else fixed(student.simulability, DECIMALS, False)
    return STUDENT.format(count(student.run.train_size, "example"), student.run.seed, score)


def heads_area(result: ScaffoldResult, train_size: int) -> None:
    """Draw the map of weights, its description, links to the largest heads, and its numbers."""
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
    """Draw layers as rows and heads as columns. Invisible points receive the clicks that heatmap cells cannot."""
    rows, columns = np.indices(weights.shape)
    both_signs, end = bool((weights < 0).any()), float(np.abs(weights).max()) or 1.0
    texts = [head_words(weights, layer, head) for layer, head in np.ndindex(*weights.shape)]
    cells = go.Heatmap(
        z=weights.tolist(), zmin=-end if both_signs else 0.0, zmax=end, colorscale=comparisons.scale(theme, both_signs),
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
    """Draw lines between the cells, because cells without weight have the background color."""
    layers, heads = shape
    line = {"color": color, "width": 1}
    for at in range(heads + 1):
        figure.add_shape(type="line", x0=at - 0.5, x1=at - 0.5, y0=-0.5, y1=layers - 0.5, line=line)
    for at in range(layers + 1):
        figure.add_shape(type="line", x0=-0.5, x1=heads - 0.5, y0=at - 0.5, y1=at - 0.5, line=line)


def head_words(weights: Weights, layer: int, head: int) -> str:
    """Describe one head."""
    value = float(weights[layer, head])
    number = signed(value) if (weights < 0).any() else plain(value)
    return f"layer {layer}, head {head}: λ = {number}, {'active' if value > 0 else 'inactive'}"


def active_words(weights: Weights) -> str:
    """Describe how many heads are active and which layer has the most weight."""
    if np.ptp(weights) < EVEN_TO:
        return f"**{weights.size} of {weights.size} heads are active.** {EVEN}"
    active, sums = int((weights > 0).sum()), weights.clip(min=0).sum(1)
    layer = int(sums.argmax())
    share = float(sums[layer] / sums.sum()) if sums.sum() else 0.0
    text = f"**{active} of {weights.size} heads {'is' if active == 1 else 'are'} active** (λ > 0)."
    return f"{text} Layer {layer} has the most weight ({share:.1%})." if active else text


def heaviest(weights: Weights, most: int = LINKED) -> list[tuple[int, int]]:
    """Return at most `most` active heads as (layer, head), the largest weight first."""
    order = np.argsort(-weights, axis=None, kind="stable")[:most]
    indices = [divmod(int(at), weights.shape[1]) for at in order]
    return [place for place in indices if weights[place] > 0]


def example_query(plan: ScaffoldPlan) -> Query:
    """Return the link to the Attention page with the teacher and, unless it is too long, the first test example."""
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
    """One row per head, the largest weight first."""
    order = np.argsort(-weights, axis=None, kind="stable")
    indices = [divmod(int(at), weights.shape[1]) for at in order]
    return pd.DataFrame(
        [{"Layer": layer, "Head": head, "λ": round(float(weights[layer, head]), 6)} for layer, head in indices]
    )


SELECTED = "scaffold_picked_head"
"""Session key: the clicked head, until the page has switched to it."""


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
                "λ of each head. Save the map with the camera icon above it.", key(kind, "heads_csv"),
            )  # fmt: skip


UNIT = "word"


def maps_area(result: ScaffoldResult, train_size: int) -> None:
    """Draw the choice of an example and its maps."""
    learned = coefficients_of(result.plan, show_median_student(result, train_size))
    sample, kind = cached_sample(result.plan, EXAMPLES), result.plan.kind
    st.caption(MAPS.format("patches" if kind == "image" else "tokens; a word shows the sum of its tokens"))
    with st.container(horizontal=True, gap="small", vertical_alignment="bottom"):
        chosen = view_number(kind, f"Test example, 1 to {len(sample.indices)}", "example", len(sample.indices))
        shared = view_switch(kind, "Colors", "scale", SCALES) == "shared"
    index = sample.indices[chosen - 1]
    candidate, name = sample.source.read(index), comparison_key(sample, index, learned)
    comparison = run_with_progress(
        st.empty(), lambda: name, "Explaining the example", "Stopped.",
        lambda tick: run_cached(name, lambda token: compare_explainers(sample, index, learned, token), tick),
    )  # fmt: skip
    if comparison is None:
        return
    st.caption(example_words(comparison, candidate, sample.dataset))
    if isinstance(candidate.example, ImageExample):
        _pictures(comparison, candidate.example, sample.teacher, shared)
    else:
        st.html(texts_html(comparison, candidate.example, shared))
    file_button(
        "Maps, CSV", f"exegesis-scaffold-maps-{index}.csv", "text/csv",
        lambda: maps_table(comparison).to_csv(index=False),
        "One row per token or patch, one column per explainer. Special tokens have 0.", key(kind, f"maps_csv.{index}"),
    )  # fmt: skip


def example_words(comparison: ExplainerComparison, candidate: SourceExample, dataset: str) -> str:
    """Describe the example, the teacher's prediction and the label, as Markdown."""
    prediction = (
        f"score {signed(comparison.score)}"
        if comparison.predicted_label is None
        else escape_label(comparison.predicted_label)
    )
    label = "" if candidate.label is None else f" Label: {escape_label(str(candidate.label))}."
    return f"Example {candidate.index} of {escape_label(dataset)}. Teacher's prediction: {prediction}.{label}"


def maps_table(comparison: ExplainerComparison) -> pd.DataFrame:
    """One row per token or patch, with the score of each explainer."""
    names = {"Feature": [token.text for token in comparison.tokens]}
    return pd.DataFrame(names | {TITLES[id]: scores for id, scores in comparison.maps.items()})


def texts_html(comparison: ExplainerComparison, given: LabeledExample, shared: bool) -> str:
    """Build one row per explainer below the marks, and the scale, as HTML. Texts are escaped."""
    views = {id: _token_map(comparison, given, id) for id in comparison.maps}
    end = max(view.largest for view in views.values()) if shared else None
    views = {id: replace(view, end=end) for id, view in views.items()}
    rows = "".join(_row(TITLES[id], view, f"largest {plain(view.largest)}") for id, view in views.items())
    return f'<div class="xg">{_marks(comparison, given)}{rows}{_scale(views, shared)}</div>'


def pictures_html(comparison: ExplainerComparison, shared: bool) -> str:
    """Build the maps over the picture, side by side, each with its scale, as HTML."""
    end = max(float(grid.max()) for grid in map(comparison.on_grid, comparison.maps)) if shared else None
    cards = "".join(_card(TITLES[id], PatchMap(comparison.on_grid(id), False, "", end=end)) for id in comparison.maps)
    return f'<div class="xg"><div class="xg-beside">{cards}</div></div>'


def _pictures(comparison: ExplainerComparison, given: ImageExample, teacher: str, shared: bool) -> None:
    use_picture_styles()
    view = read_view(teacher)
    truth = None if given.mask is None else view.transform_mask(given.mask)
    st.html(picture_style(view.transform(given.pixels), truth))
    st.html(pictures_html(comparison, shared))
    if truth is not None:
        st.caption(TRUTH)


def _token_map(comparison: ExplainerComparison, given: LabeledExample, explainer: str) -> TokenMap:
    words = units(comparison.tokens, comparison.maps[explainer], given.example, UNIT)
    return TokenMap(words, _texts(given), False, "", comparison.truncated)


def _marks(comparison: ExplainerComparison, given: LabeledExample) -> str:
    if not (given.rationale or given.rationale_pair):
        return ""
    view = TokenMap(
        mark_units(comparison.tokens, given, UNIT), _texts(given), False, "", comparison.truncated, marks=True
    )
    return _row(RATIONALE, view, "") + f'<p class="xg-small">{legend_html(view)}</p>'


def _texts(given: LabeledExample) -> tuple[str, ...]:
    return tuple(text for text in (given.text, given.text_pair) if text is not None)


def _row(title: str, view: TokenMap, text: str) -> str:
    return (
        f'<div class="xg-row"><div class="xg-side"><p class="xg-title">{escape(title)}</p>'
        f'<p class="xg-small">{escape(text)}</p></div><div>{token_map_html(view)}</div></div>'
    )


def _scale(views: Mapping[str, TokenMap], shared: bool) -> str:
    """Return the shared legend as HTML, or a note that each map has its own scale."""
    first = next(iter(views.values()))
    text = legend_html(first) if shared else "Each map has its own scale, from 0 to its largest score."
    return f'<p class="xg-small">{text}</p>'


def _card(title: str, view: PatchMap) -> str:
    text = escape(f"{title}. {sentence(view)}")
    return (
        f'<div><p class="xg-title">{escape(title)}</p><div class="xg-patches" role="img" aria-label="{text}">'
        f'{layers_html(view)}</div><div class="xg-small">{patch_legend(view)}</div></div>'
    )
