"""Small copies of pictures: a few of a data set, in a row, each with what it shows."""

from __future__ import annotations

import base64
import io
from collections.abc import Iterable
from dataclasses import dataclass
from html import escape
from pathlib import Path

import numpy as np
import streamlit as st
from jaxtyping import UInt8
from PIL import Image

from components.compact import compact_css
from engine.data.examples import ImageDataset

LAYOUT = Path(__file__).resolve().parent.parent / "assets" / "thumbnails.css"
SIDE = 128
"""Pixels of the longer side at most; drawn at half of that, so that they are sharp on dense screens too."""
QUALITY = 80


@dataclass(frozen=True)
class Thumbnail:
    """A small picture as a data URL, and what it is called: its label, else its name."""

    url: str
    name: str


def thumbnail_url(pixels: UInt8[np.ndarray, "height width 3"], side: int = SIDE, quality: int = QUALITY) -> str:
    """A `data:` URL of the picture, made smaller where it is larger than `side`."""
    image = Image.fromarray(pixels)
    image.thumbnail((side, side))
    buffer = io.BytesIO()
    image.save(buffer, "WEBP", quality=quality)
    return f"data:image/webp;base64,{base64.b64encode(buffer.getvalue()).decode()}"


def first_thumbnails(data: ImageDataset) -> list[Thumbnail]:
    """All pictures of a data set that was read with a limit."""
    examples = ((example, example.label) for example in data)
    return [
        Thumbnail(thumbnail_url(example.pixels), example.name if label is None else data.label_names[label])
        for example, label in examples
    ]


def thumbnails_html(pictures: Iterable[Thumbnail]) -> str:
    """Pictures side by side, each with its name below."""
    shown = "".join(
        f'<figure><img src="{escape(picture.url)}" alt=""><figcaption>{escape(picture.name)}</figcaption></figure>'
        for picture in pictures
    )
    return f'<div class="xg"><div class="xg-thumbnails">{shown}</div></div>'


def use_thumbnails() -> None:
    """Puts their layout into the page; it takes no room."""
    st.html(f"<style>{compact_css(LAYOUT.read_text(encoding='utf-8'))}</style>")
