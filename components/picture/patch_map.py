"""One method's map of a picture: a score for each patch, in words and in colours.

Colours are transparent where the score is small, and over the ground of the theme exactly those of the palette.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, cached_property

import numpy as np
from jaxtyping import Float, UInt8

from components.legend import bent, shared
from components.numbers import plain, signed
from components.palette import SIDES, STEPS, Side, Theme, colour, see_through, step_of
from components.text.look import PLAIN, Look

TOP = 3
"""Patches that the sentence about a map names."""


@dataclass(frozen=True, eq=False)
class PatchMap:
    """What a map shows: a score for each patch; `target` is the explained class.

    `end`: where a scale shared with other maps ends, and `sharing` names those maps; None for the map's own scale.
    """

    scores: Float[np.ndarray, "gh gw"]
    signed: bool
    target: str
    look: Look = PLAIN
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


def sentence(view: PatchMap) -> str:
    """The map in words: its grid and where its largest scores are."""
    rows, columns = view.grid
    told = f"{rows} rows, {columns} columns."
    if view.largest == 0:
        return f"{told} All scores are zero."
    order = np.argsort(-np.abs(view.scores), axis=None, kind="stable")[:TOP]
    return f"{told} Largest: {', '.join(f'{place(at, columns)} {score(view, at)}' for at in order.tolist())}."


def tip(view: PatchMap, at: int) -> str:
    """What hovering a patch says: its value, its rank, where it stands."""
    rank = f"rank {view.ranks[at]} of {view.scores.size}"
    return f"{score(view, at)} · {rank} · {place(at, view.grid[1])}"


def place(at: int, columns: int) -> str:
    """A patch by row and column, both from 1, as `Explanation.tokens` names it."""
    return f"row {at // columns + 1}, column {at % columns + 1}"


def score(view: PatchMap, at: int) -> str:
    value = float(view.scores.flat[at])
    return signed(value) if view.signed else plain(value)


def more_lines(view: PatchMap) -> list[str]:
    """How the colours bend and which maps share the scale, a line each; escaped."""
    return [said.removeprefix(" · ") for said in (bent(view), shared(view)) if said]


def ends(view: PatchMap) -> tuple[str, str]:
    """The numbers at both ends of the scale."""
    return (signed(-view.scale), signed(view.scale)) if view.signed else ("0", plain(view.scale))


def sides(view: PatchMap) -> tuple[str, str]:
    """What the two ends mean."""
    return ("against", f"for {view.target}") if view.signed else ("", "without sign")


def scale_colours(view: PatchMap, theme: Theme) -> list[str]:
    """The colours of the scale from its one end to the other, as #rrggbb."""
    up: Side = "for" if view.signed else "amount"
    down = [colour(theme, "against", step) for step in range(STEPS, 0, -1)] if view.signed else []
    return [*down, *(colour(theme, up, step) for step in range(STEPS + 1))]


def overlay(view: PatchMap, theme: Theme) -> UInt8[np.ndarray, "gh gw 4"]:
    """Red, green, blue and alpha of each patch: over the theme's ground the colours of the palette."""
    return colour_table(theme)[colour_places(view)]


def colour_places(view: PatchMap) -> np.ndarray:
    """The place of each patch's colour in `colour_table`."""
    steps = [_row(side_of(view, value)) + step_of(value, view.scale, view.look.gamma) for value in view.scores.flat]
    return np.array(steps).reshape(view.grid)


@cache
def colour_table(theme: Theme) -> UInt8[np.ndarray, "colours 4"]:
    return np.array([see_through(theme, side, step) for side in SIDES for step in range(STEPS + 1)], np.uint8)


def side_of(view: PatchMap, value: float) -> Side:
    if not view.signed:
        return "amount"
    return "for" if value > 0 else "against"


def _row(side: Side) -> int:
    return SIDES.index(side) * (STEPS + 1)
