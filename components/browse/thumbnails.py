"""Thumbnails of pictures: a few in a row, or a page of a data set as buttons that choose the picture."""

from __future__ import annotations

import base64
import io
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache, partial
from html import escape
from pathlib import Path

import numpy as np
import streamlit as st
from jaxtyping import UInt8
from PIL import Image

from components.browse.examples import ExampleRow
from components.numbers import percent
from components.styles import use_sheet
from components.widgets.base import Component, build_component
from engine.data.examples import ImageDataset

NAME = "exegesis_picture_grid"
Cell = dict[str, object]
"""A button of the grid as plain values."""
SIDE = 128
"""Maximum length of the longer side in pixels; drawn at half that size, to be sharp on dense screens."""
QUALITY = 80


@dataclass(frozen=True)
class Thumbnail:
    """A thumbnail as a data URL. `name`: its label, or else its name."""

    url: str
    name: str


def thumbnail_url(pixels: UInt8[np.ndarray, "height width 3"], side: int = SIDE, quality: int = QUALITY) -> str:
    """Return a `data:` URL of the picture, scaled down if it is larger than `side`."""
    image = Image.fromarray(pixels)
    image.thumbnail((side, side))
    buffer = io.BytesIO()
    image.save(buffer, "WEBP", quality=quality)
    return f"data:image/webp;base64,{base64.b64encode(buffer.getvalue()).decode()}"


def first_thumbnails(data: ImageDataset) -> list[Thumbnail]:
    """Return thumbnails of all pictures of a data set that was read with a limit."""
    examples = ((example, example.label) for example in data)
    return [
        Thumbnail(thumbnail_url(example.pixels), example.name if label is None else data.label_names[label])
        for example, label in examples
    ]


def thumbnails_html(pictures: Iterable[Thumbnail]) -> str:
    """HTML of pictures side by side, each with its name below."""
    figures = "".join(
        f'<figure><img src="{escape(picture.url)}" alt=""><figcaption>{escape(picture.name)}</figcaption></figure>'
        for picture in pictures
    )
    return f'<div class="xg"><div class="xg-thumbnails">{figures}</div></div>'


def use_thumbnails() -> None:
    """Add the style sheet of thumbnails to the page; it takes no space."""
    use_sheet(Path(__file__).with_suffix(".css"))


def draw_picture_grid(
    rows: Sequence[ExampleRow], urls: Sequence[str], current: int | None, key: str, show: Callable[[int], object]
) -> None:
    """Draw the rows as picture buttons, in their order.

    `urls`: the thumbnails, empty for a picture that cannot be read. `show`: receives the index of a clicked picture
    before the script reruns.
    """
    cells = [grid_cell(row, url) for row, url in zip(rows, urls, strict=True)]
    data = {"cells": cells, "current": -1 if current is None else current}
    chosen = partial(take_click, key, frozenset(row.index for row in rows), show)
    _component()(key=key, data=data, on_chosen_change=chosen)


def grid_cell(row: ExampleRow, url: str) -> Cell:
    """Return one picture as plain values, which the browser inserts as text."""
    label = row.label or f"#{row.index}"
    return {
        "index": row.index,
        "url": url,
        "name": describe_row(row),
        "label": label,
        "verdict": _verdict(row),
        "wrong": row.right is False,
    }


def describe_row(row: ExampleRow) -> str:
    """Describe the label and the prediction of a picture."""
    parts = [f"label {row.label}"] if row.label else []
    if row.predicted is not None and row.confidence is not None:
        verdict = {True: ": right", False: ": wrong", None: ""}[row.right]
        parts.append(f"predicted {row.predicted} with {percent(row.confidence)}{verdict}")
    return ", ".join([f"Picture {row.index}", *parts])


def take_click(key: str, places: frozenset[int], show: Callable[[int], object]) -> None:
    """Show the picture that was clicked; an index that is not drawn is ignored."""
    chosen = st.session_state[key].get("chosen")
    if type(chosen) is int and chosen in places:
        show(chosen)


def _verdict(row: ExampleRow) -> str:
    """Describe the verdict by sign, predicted class (unless it is the label) and confidence, so not by color alone."""
    if row.predicted is None or row.confidence is None:
        return ""
    sure = f"{100 * row.confidence:.0f}%"
    return f"✓ {sure}" if row.right else f"{'✗ ' if row.right is False else ''}{row.predicted} {sure}"


@cache
def _component() -> Component:
    html = '<div class="xg"><div class="xg-thumbs" role="group" aria-label="Pictures"></div></div>'
    return build_component(NAME, "thumbnails", folder=Path(__file__).parent, html=html)
