"""The embedding map of a list of examples: similar representations are close, and a box selects what is listed."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import streamlit as st

from components.browse.examples import ExampleTable
from components.compute import run_cached
from components.controls import Key, restore_controls
from components.errors import describe_error, show_error, show_note
from components.inputs.datasets import OpenPictures, OpenTexts
from components.numbers import count
from components.palette import browser_theme
from engine.data.examples import Dataset
from engine.lazy import LazyModule
from engine.progress import CancelToken, cancellable

if TYPE_CHECKING:
    from components.browse import scatter
    from components.charts import files
    from engine.data import embedding_map
    from engine.data.embedding_map import EmbeddingMap
else:  # slow to import, and most visits need none of them
    scatter, files = LazyModule("components.browse.scatter"), LazyModule("components.charts.files")
    embedding_map = LazyModule("engine.data.embedding_map")

TITLE = "Embedding map"
HELP = (
    "Each point is an example. Points lie close where the vectors that the model's head reads are similar. Drag a box "
    "to list its examples, or click on a point to show one. The list below is the same without a mouse."
)
PCA_NOTE = "PCA shows the two directions with the most variance; what lies in other directions is not visible."
UMAP_NOTE = "UMAP preserves neighbors. Its axes, distances between groups and their sizes mean nothing."
ALT = "Embedding map: a point for each example of the data set. The list below has the same examples."


def draw_embedding(
    opened: OpenTexts | OpenPictures, model: str, table: ExampleTable, show: Callable[[int], object], key: Key
) -> frozenset[int] | None:
    """Draw the map in a collapsible section. Returns the examples in the selected box; None without a box.

    `show`: receives the index of a clicked example before the script reruns.
    """
    with st.expander(TITLE, key=key("embedding"), on_change="rerun") as section:
        return _draw_map(opened, model, table, show, key) if section.open else None


def _draw_map(
    opened: OpenTexts | OpenPictures, model: str, table: ExampleTable, show: Callable[[int], object], key: Key
) -> frozenset[int] | None:
    st.caption(HELP)
    projection, color = _draw_controls(len(opened.data), table, key)
    try:
        name = embedding_map.map_key(model, opened.data, projection)
        embedding = run_cached(name, partial(_compute, opened, model, projection))
    except Exception as error:
        show_error(describe_error(error))
        return None
    # A box belongs to one chart. Another chart has another key, and starts without a box.
    cleared = int(st.session_state.get(key("embedding_cleared"), 0))
    widget = key(f"embedding_chart.{name[:16]}.{color}.{cleared}")
    is_score = isinstance(opened.data, Dataset) and opened.data.task == "regression"
    title = f"{model}, {opened.data.title}"
    chart = scatter.EmbeddingChart(embedding, table.rows, color, is_score, title, browser_theme(), key)
    receive = partial(_receive_click, widget, frozenset(embedding.places.tolist()), show)
    modes = [scatter.BOX, scatter.CLICK]
    st.altair_chart(chart.chart(), key=widget, on_select=receive, selection_mode=modes, alt=ALT)
    selected = selected_places(embedding, dict(st.session_state[widget].selection).get(scatter.BOX))
    if selected is not None:
        with st.container(horizontal=True, vertical_alignment="center", gap="small"):
            st.markdown(f"{count(len(selected), 'example').capitalize()} selected.")
            st.button(
                "Clear the selection", key=key("embedding_clear"),
                on_click=st.session_state.__setitem__, args=(key("embedding_cleared"), cleared + 1),
            )  # fmt: skip
    st.caption(describe_map(embedding, table))
    if embedding.unread:
        show_note(f"{count(embedding.unread, 'example').capitalize()} could not be read and have no point.")
    with st.popover("Export the map", key=key("embedding_files"), on_change="rerun") as panel:
        if panel.open:
            files.chart_file_buttons(chart)
    return selected


def _draw_controls(examples: int, table: ExampleTable, key: Key) -> tuple[str, str]:
    """Draw the available choices; return the projection and the field that colors the points."""
    offered = embedding_map.projections(examples)
    colors = {scatter.LABEL: bool(table.label_names) or table.judged, scatter.PREDICTED: bool(table.predicted)}
    choices: tuple[tuple[str, str, list[str], Mapping[str, str]], ...] = (
        ("Projection", "embedding_projection", offered, embedding_map.PROJECTION_TITLES),
        ("Color", "embedding_color", [name for name, known in colors.items() if known], scatter.COLOR_TITLES),
    )
    chosen: list[str] = []
    with st.container(horizontal=True, gap="medium"):
        for label, name, options, titles in choices:
            if st.session_state.get(key(name)) not in options:
                st.session_state.pop(key(name), None)
            if len(options) > 1:
                st.segmented_control(
                    label, options, key=key(name), default=options[0], required=True, format_func=titles.__getitem__
                )
            chosen.append(st.session_state.get(key(name)) or (options[0] if options else ""))
    return chosen[0], chosen[1]


def _compute(opened: OpenTexts | OpenPictures, model: str, projection: str, token: CancelToken) -> EmbeddingMap:
    with cancellable(token):
        return embedding_map.embedding_map(model, opened.data, projection)


def _receive_click(widget: str, places: Collection[int], show: Callable[[int], object]) -> None:
    """Show the example whose point was clicked, only once; a box alone shows none."""
    restore_controls()
    picked = st.session_state[widget].selection.get(scatter.CLICK) or [{}]
    place, seen = picked[-1].get("index"), f"{widget}.seen"
    if st.session_state.get(seen) != place:
        st.session_state[seen] = place
        if type(place) is int and place in places:
            show(place)


def selected_places(embedding: EmbeddingMap, box: object) -> frozenset[int] | None:
    """Return the examples in a box, which the browser sends as the bounds of both axes. None if there is no box."""
    if not isinstance(box, Mapping):
        return None
    inside = np.ones(len(embedding.places), dtype=bool)
    for values, axis in zip(embedding.coordinates.T, ("x", "y"), strict=True):
        bounds = box.get(axis)
        if not isinstance(bounds, list) or len(bounds) != 2 or not all(type(one) in (int, float) for one in bounds):
            return None
        inside &= (values >= min(bounds)) & (values <= max(bounds))
    return frozenset(embedding.places[inside].tolist())


def describe_map(embedding: EmbeddingMap, table: ExampleTable) -> str:
    """Describe the map: its numbers of examples and dimensions, what its projection shows, and what is missing."""
    points, total = len(embedding.places), len(table.rows)
    size = count(points, "example")
    if points + embedding.unread < total:
        size = f"{points:,} of {total:,} examples, evenly spaced"
    parts = [f"{size}, {embedding.dimensions:,} dimensions."]
    parts.append(PCA_NOTE if embedding.projection == embedding_map.PCA else UMAP_NOTE)
    if not table.predicted:
        parts.append("Predict the examples to color the points by class and mark mistakes.")
    elif any(row.right is False for row in table.rows):
        parts.append("Crosses are wrong predictions.")
    return " ".join(parts)
