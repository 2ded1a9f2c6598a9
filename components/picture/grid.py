"""Pictures of a set as small buttons, each with what it shows and what the model says; a click looks at it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, partial
from pathlib import Path

import streamlit as st

from components.browse.examples import ExampleRow
from components.compact import compact_css, compact_script
from components.numbers import percent

ASSETS = Path(__file__).resolve().parent.parent / "assets"
NAME = "exegesis_picture_grid"
Cell = dict[str, object]


def picture_grid(
    rows: Sequence[ExampleRow], urls: Sequence[str], current: int | None, key: str, show: Callable[[int], object]
) -> None:
    """Draws the rows in their order; `urls` are their small pictures, empty for one that cannot be read.

    `show` gets the place of a picture that was clicked, before the script runs again.
    """
    cells = [cell(row, url) for row, url in zip(rows, urls, strict=True)]
    data = {"cells": cells, "current": -1 if current is None else current}
    chosen = partial(receive, key, frozenset(row.index for row in rows), show)
    _component()(key=key, data=data, on_chosen_change=chosen)


def cell(row: ExampleRow, url: str) -> Cell:
    """One picture in plain values; the browser writes them as text."""
    label = row.label or f"#{row.index}"
    return {
        "index": row.index,
        "url": url,
        "name": name_of(row),
        "label": label,
        "said": _said(row),
        "wrong": row.right is False,
    }


def name_of(row: ExampleRow) -> str:
    """All that is known of it, in words."""
    known = [f"label {row.label}"] if row.label else []
    if row.predicted is not None and row.confidence is not None:
        verdict = {True: ": right", False: ": wrong", None: ""}[row.right]
        known.append(f"predicted {row.predicted} with {percent(row.confidence)}{verdict}")
    return ", ".join([f"Picture {row.index}", *known])


def receive(key: str, places: frozenset[int], show: Callable[[int], object]) -> None:
    """Takes what the browser just sent; a place that is not shown changes nothing."""
    chosen = st.session_state[key].get("chosen")
    if type(chosen) is int and chosen in places:
        show(chosen)


def _said(row: ExampleRow) -> str:
    """Sign, predicted class unless it is the label, and confidence: a sign is never told by a colour alone."""
    if row.predicted is None or row.confidence is None:
        return ""
    sure = f"{100 * row.confidence:.0f}\u00a0%"
    return f"✓ {sure}" if row.right else f"{'✗ ' if row.right is False else ''}{row.predicted} {sure}"


@cache
def _component() -> Callable[..., object]:
    css, js = ((ASSETS / f"picture_grid.{kind}").read_text(encoding="utf-8") for kind in ("css", "js"))
    css = compact_css(css).replace("}", "}\n")  # one line alone would be taken for the name of a file
    html = '<div class="xg"><div class="xg-thumbs" role="group" aria-label="Pictures"></div></div>'
    return st.components.v2.component(NAME, html=html, css=css, js=compact_script(js), isolate_styles=False)
