"""A picture in the page, once for all its maps: style sheet, the picture and the outline of its truth as variables."""

from __future__ import annotations

import io
from base64 import b64encode
from functools import cache
from pathlib import Path

import numpy as np
import streamlit as st
from jaxtyping import Bool, UInt8
from PIL import Image

from components.styles import compact_css

LAYOUT = Path(__file__).parent / "patch_map.css"
CARDS_KEY = "picture_cards"
CARDS = f".st-key-{CARDS_KEY}"
"""Around the cards that light each other: the key of their container on the Images page."""
CRISP = 128
"""A picture of at most so many pixels a side is enlarged without smoothing: as the model sees it."""


def use_picture_styles() -> None:
    """Put the style sheet into the page; it takes no room. Colors come with `styles.use_styles`."""
    st.html(picture_sheet())


@cache
def picture_sheet() -> str:
    """The style sheet of cards and maps: layout, the layers of a map, and lines that show on any picture."""
    return f"<style>{compact_css(LAYOUT.read_text(encoding='utf-8'))}</style>"


def picture_style(
    pixels: UInt8[np.ndarray, "h w 3"], truth: Bool[np.ndarray, "rows columns"] | None = None, scope: str = ":root"
) -> str:
    """A `<style>` element that puts the picture into the page once, and the outline of its truth, if there is one.

    `pixels`: the picture as the model sees it, cropped and resized by its preprocessing. `truth`: a mask of those
    pixels, or of patches. `scope`: the selector of what shows it.
    """
    height, width = pixels.shape[:2]
    crisp = "pixelated" if max(height, width) <= CRISP else "auto"
    picture = f"--xg-picture:url({data_url(pixels)});--xg-crisp:{crisp};--xg-aspect:{width}/{height}"
    return f"<style>{scope}{{{picture}{'' if truth is None else _outline(truth)}}}</style>"


def data_url(pixels: UInt8[np.ndarray, "h w 3"]) -> str:
    """The picture as it is, as a PNG."""
    return png_url(Image.fromarray(pixels))


def png_url(image: Image.Image, **more: bytes) -> str:
    """A PNG file as an address."""
    file = io.BytesIO()
    image.save(file, "PNG", optimize=True, **more)
    return f"data:image/png;base64,{b64encode(file.getvalue()).decode()}"


def outline_path(mask: Bool[np.ndarray, "h w"]) -> str:
    """An SVG path along the edges between what is in the mask and what is not, a cell being 1 x 1."""
    framed = np.pad(mask, 1)
    across, down = framed[1:, 1:-1] ^ framed[:-1, 1:-1], (framed[1:-1, 1:] ^ framed[1:-1, :-1]).T
    flat = "".join(f"M{start} {y}h{end - start}" for y, start, end in _runs(across))
    return flat + "".join(f"M{x} {start}v{end - start}" for x, start, end in _runs(down))


def line_mask(mask: Bool[np.ndarray, "h w"], width: int | float) -> str:
    """The outline as an SVG that stretches with its box; `width` of the line in pixels of the screen."""
    rows, columns = mask.shape
    svg = (
        f"<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {columns} {rows}' preserveAspectRatio='none'>"
        f"<path d='{outline_path(mask)}' stroke='#000' stroke-width='{width}' stroke-linecap='square'"
        " vector-effect='non-scaling-stroke'/></svg>"
    )
    return f'url("data:image/svg+xml,{svg.replace("#", "%23").replace("<", "%3C").replace(">", "%3E")}")'


def _outline(mask: Bool[np.ndarray, "h w"]) -> str:
    """Two lines of the same path, the wider to be drawn in the color that the other needs around it."""
    return "".join(f";--xg-{name}:{line_mask(mask, width)}" for name, width in (("truth", 1.5), ("truth-halo", 4)))


def _runs(lines: Bool[np.ndarray, "lines cells"]) -> list[tuple[int, int, int]]:
    """Line, start and end of each run of edges."""
    steps = np.diff(np.pad(lines, ((0, 0), (1, 1))).astype(np.int8), axis=1)
    starts, ends = np.argwhere(steps == 1), np.argwhere(steps == -1)
    return [(line, start, end) for (line, start), (_, end) in zip(starts.tolist(), ends.tolist(), strict=True)]
