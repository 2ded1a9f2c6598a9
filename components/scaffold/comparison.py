"""One test example: the learned and the static explanations of it, on one scale, with what is known to matter."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from html import escape

import pandas as pd
import streamlit as st

from components.compute import run_cached
from components.errors import escape_label
from components.export import file_button
from components.numbers import plain, signed
from components.progress import run_with_progress
from components.scaffold.controls import key, view_number, view_switch
from components.scaffold.head_weights import show_median_student
from components.scaffold.page_texts import MAPS, TITLES, TRUTH
from components.scaffold.runs import cached_sample
from components.scaffold.state import SCALES
from components.widgets.patch_map import PatchMap, layers_html
from components.widgets.patch_map import legend_html as patch_legend
from components.widgets.patch_map.html import picture_style, sentence, use_picture_styles
from components.widgets.token_map import TokenMap, legend_html, token_map_html
from components.widgets.token_map.rows import RATIONALE, mark_units
from engine.data.examples import ImageExample, LabeledExample
from engine.data.sources import SourceExample
from engine.scaffold.comparison import ExplainerComparison, compare_explainers, comparison_key
from engine.scaffold.result import ScaffoldResult, coefficients_of
from engine.vision.view import read_view
from engine.word_units import units

EXAMPLES = 100
"""Of the test split, to choose from."""
UNIT = "word"


def maps_area(result: ScaffoldResult, train_size: int) -> None:
    """The choice of an example, and its maps."""
    learned = coefficients_of(result.plan, show_median_student(result, train_size))
    sample, kind = cached_sample(result.plan, EXAMPLES), result.plan.kind
    st.caption(MAPS.format("patches" if kind == "image" else "tokens, drawn by word with their sums"))
    with st.container(horizontal=True, gap="small", vertical_alignment="bottom"):
        chosen = view_number(kind, f"Test example, 1 to {len(sample.indices)}", "example", len(sample.indices))
        shared = view_switch(kind, "Colours", "scale", SCALES) == "shared"
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
        "A row a token or patch, a column an explainer; special tokens have 0.", key(kind, f"maps_csv.{index}"),
    )  # fmt: skip


def example_words(comparison: ExplainerComparison, candidate: SourceExample, dataset: str) -> str:
    """The example, the teacher's prediction and the label, as Markdown."""
    prediction = (
        f"score {signed(comparison.score)}"
        if comparison.predicted_label is None
        else escape_label(comparison.predicted_label)
    )
    label = "" if candidate.label is None else f" The data set says: {escape_label(str(candidate.label))}."
    return f"Example {candidate.index} of {escape_label(dataset)}. The teacher says: {prediction}.{label}"


def maps_table(comparison: ExplainerComparison) -> pd.DataFrame:
    """A row a position: its token or patch, and the score of each explainer."""
    names = {"Feature": [token.text for token in comparison.tokens]}
    return pd.DataFrame(names | {TITLES[id]: scores for id, scores in comparison.maps.items()})


def texts_html(comparison: ExplainerComparison, given: LabeledExample, shared: bool) -> str:
    """A row an explainer below what is marked, and the common scale. Everything that is not ours is escaped."""
    views = {id: _token_map(comparison, given, id) for id in comparison.maps}
    end = max(view.largest for view in views.values()) if shared else None
    views = {id: replace(view, end=end) for id, view in views.items()}
    rows = "".join(_row(TITLES[id], view, f"largest {plain(view.largest)}") for id, view in views.items())
    return f'<div class="xg">{_marks(comparison, given)}{rows}{_scale(views, shared)}</div>'


def pictures_html(comparison: ExplainerComparison, shared: bool) -> str:
    """The maps over the picture, side by side, each with its scale."""
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
    """The legend once for all, or that each has its own."""
    first = next(iter(views.values()))
    text = legend_html(first) if shared else "Each map has a scale of its own, from 0 to its largest score."
    return f'<p class="xg-small">{text}</p>'


def _card(title: str, view: PatchMap) -> str:
    text = escape(f"{title}. {sentence(view)}")
    return (
        f'<div><p class="xg-title">{escape(title)}</p><div class="xg-patches" role="img" aria-label="{text}">'
        f'{layers_html(view)}</div><div class="xg-small">{patch_legend(view)}</div></div>'
    )
