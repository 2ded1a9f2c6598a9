"""A picture in the page, once for all its maps, as variables of its style, with the outline of its truth."""

from __future__ import annotations

import io
from base64 import b64encode

import numpy as np
from jaxtyping import Bool, UInt8
from PIL import Image

CRISP = 128
"""A picture of at most so many pixels a side is enlarged without smoothing: as the model sees it."""


def picture_style(
    seen: UInt8[np.ndarray, "h w 3"], truth: Bool[np.ndarray, "rows columns"] | None = None, scope: str = ":root"
) -> str:
    """A `<style>` element that puts the picture into the page once, and the outline of its truth if it is to be seen.

    `seen` is what the model sees after its preprocessing has cropped and resized; `truth` is a mask of those pixels,
    or of patches. `scope`: the selector of what shows it.
    """
    height, width = seen.shape[:2]
    crisp = "pixelated" if max(height, width) <= CRISP else "auto"
    picture = f"--xg-picture:url({data_url(seen)});--xg-crisp:{crisp};--xg-aspect:{width}/{height}"
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
    """Two lines of the same path, the wider to be drawn in the colour that the other needs around it."""
    return "".join(f";--xg-{name}:{line_mask(mask, width)}" for name, width in (("truth", 1.5), ("truth-halo", 4)))


def _runs(lines: Bool[np.ndarray, "lines cells"]) -> list[tuple[int, int, int]]:
    """Line, start and end of each run of edges."""
    steps = np.diff(np.pad(lines, ((0, 0), (1, 1))).astype(np.int8), axis=1)
    starts, ends = np.argwhere(steps == 1), np.argwhere(steps == -1)
    return [(line, start, end) for (line, start), (_, end) in zip(starts.tolist(), ends.tolist(), strict=True)]
