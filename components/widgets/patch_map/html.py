"""One method's map of a picture: a score for each patch, in words and in colors.

Colors are transparent where the score is small, and over the ground of the theme exactly those of the palette. In the
page a map is two small PNG files of a pixel for each patch, one for each theme, drawn without smoothing; a veil of the
ground between picture and map (patch_map.css) makes the map opaque as its opacity comes to 1.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, cached_property
from html import escape

import numpy as np
from jaxtyping import Float, UInt8
from PIL import Image

from components.numbers import plain, signed
from components.palette import (
    SIDES,
    STEPS,
    THEMES,
    Side,
    Theme,
    color,
    gamma_note,
    sharing_note,
    step_of,
    translucent_color,
)
from components.widgets.patch_map.picture import png_url
from components.widgets.view_options import DEFAULT_VIEW, ViewOptions

LAYERS = '<i class="xg-seen"></i><i class="xg-truth"></i>'
"""The picture and the outline of its truth, below a map."""
TOP = 3
"""Patches that the sentence about a map names."""


@dataclass(frozen=True, eq=False)
class PatchMap:
    """The content of a map: a score for each patch; `target` is the explained class.

    `end`: where a scale shared with other maps ends, and `sharing` names those maps; None for the map's own scale.
    """

    scores: Float[np.ndarray, "gh gw"]
    signed: bool
    target: str
    look: ViewOptions = DEFAULT_VIEW
    end: float | None = None
    sharing: str = ""

    @property
    def grid(self) -> tuple[int, int]:
        """Rows and columns of patches."""
        height, width = self.scores.shape
        return height, width

    @cached_property
    def largest(self) -> float:
        """The largest absolute score."""
        return float(np.abs(self.scores).max())

    @property
    def scale(self) -> float:
        """The end of the scale."""
        return self.largest if self.end is None else self.end

    @cached_property
    def ranks(self) -> tuple[int, ...]:
        """1 for the largest absolute score, row by row; equal scores share the better rank."""
        sizes = np.abs(self.scores).ravel()
        return tuple((1 + sizes.size - np.searchsorted(np.sort(sizes), sizes, side="right")).tolist())


def layers_html(view: PatchMap) -> str:
    """The picture with the map of each theme over it, in colors alone."""
    light, dark = (overlay_url(view, theme) for theme in THEMES)
    return f'{LAYERS}<i class="xg-over" style="--l:url({light});--d:url({dark})"></i>'


def legend_html(view: PatchMap) -> str:
    """The scale in colors and words, or that there is nothing to color."""
    if view.largest == 0:
        return "<p>All scores are zero: nothing to colour.</p>"
    low, high = sides(view)
    words = f'<span>{low}</span><span title="{escape(high)}">{escape(high)}</span>'
    scale = f'<i class="xg-scale xg-{"signed" if view.signed else "amount"}"></i>'
    more = "".join(f"<p>{line}</p>" for line in more_lines(view))
    return f'<p class="xg-ends">{scale}{"".join(f"<b>{end}</b>" for end in ends(view))}{words}</p>{more}'


def overlay_url(view: PatchMap, theme: Theme) -> str:
    """The overlay as a PNG of a pixel for each patch, with a palette of the colors that it has."""
    used, places = np.unique(color_places(view), return_inverse=True)
    table = color_table(theme)[used]
    image = Image.fromarray(places.reshape(view.grid).astype(np.uint8))
    image.putpalette(table[:, :3].tobytes())
    return png_url(image, transparency=table[:, 3].tobytes())


def sentence(view: PatchMap) -> str:
    """The map in words: its grid and where its largest scores are."""
    rows, columns = view.grid
    size = f"{rows} rows, {columns} columns."
    if view.largest == 0:
        return f"{size} All scores are zero."
    order = np.argsort(-np.abs(view.scores), axis=None, kind="stable")[:TOP]
    return f"{size} Largest: {', '.join(f'{place(at, columns)} {score(view, at)}' for at in order.tolist())}."


def tip(view: PatchMap, at: int) -> str:
    """The hover text of a patch: its value, its rank, its place."""
    rank = f"rank {view.ranks[at]} of {view.scores.size}"
    return f"{score(view, at)} · {rank} · {place(at, view.grid[1])}"


def place(at: int, columns: int) -> str:
    """A patch by row and column, both from 1, as `Explanation.tokens` names it."""
    return f"row {at // columns + 1}, column {at % columns + 1}"


def score(view: PatchMap, at: int) -> str:
    value = float(view.scores.flat[at])
    return signed(value) if view.signed else plain(value)


def more_lines(view: PatchMap) -> list[str]:
    """How the colors bend and which maps share the scale, a line each; escaped."""
    return [line.removeprefix(" · ") for line in (gamma_note(view), sharing_note(view)) if line]


def ends(view: PatchMap) -> tuple[str, str]:
    """The numbers at both ends of the scale."""
    return (signed(-view.scale), signed(view.scale)) if view.signed else ("0", plain(view.scale))


def sides(view: PatchMap) -> tuple[str, str]:
    """The meaning of the two ends."""
    return ("against", f"for {view.target}") if view.signed else ("", "without sign")


def scale_colors(view: PatchMap, theme: Theme) -> list[str]:
    """The colors of the scale from its one end to the other, as #rrggbb."""
    up: Side = "for" if view.signed else "amount"
    down = [color(theme, "against", step) for step in range(STEPS, 0, -1)] if view.signed else []
    return [*down, *(color(theme, up, step) for step in range(STEPS + 1))]


def overlay(view: PatchMap, theme: Theme) -> UInt8[np.ndarray, "gh gw 4"]:
    """Red, green, blue and alpha of each patch: over the theme's ground the colors of the palette."""
    return color_table(theme)[color_places(view)]


def color_places(view: PatchMap) -> np.ndarray:
    """The place of each patch's color in `color_table`."""
    steps = [_row(side_of(view, value)) + step_of(value, view.scale, view.look.gamma) for value in view.scores.flat]
    return np.array(steps).reshape(view.grid)


@cache
def color_table(theme: Theme) -> UInt8[np.ndarray, "colors 4"]:
    return np.array([translucent_color(theme, side, step) for side in SIDES for step in range(STEPS + 1)], np.uint8)


def side_of(view: PatchMap, value: float) -> Side:
    if not view.signed:
        return "amount"
    return "for" if value > 0 else "against"


def _row(side: Side) -> int:
    return SIDES.index(side) * (STEPS + 1)
