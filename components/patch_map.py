"""One method's map of a picture: a colour for each patch over the picture, with its scale, its check and its cost.

The picture and the outline of its truth stand in the page once, as variables of its style (`picture_style`). A map is
two small PNG files of a pixel for each patch, one for each theme, drawn without smoothing. Their colours are
transparent where the score is small, and over the ground of the theme exactly those of the palette; a veil of the
ground between picture and map (assets/picture_cards.css) makes the map opaque as its opacity comes to 1.

`data-v` has the scores row by row as they are printed, `data-r` their ranks in base 36, all of one length.
"""

from __future__ import annotations

import io
from base64 import b64encode
from dataclasses import dataclass
from functools import cache, cached_property
from html import escape

import numpy as np
from jaxtyping import Bool, Float, UInt8
from PIL import Image

from components.legend import bent, shared
from components.look import PLAIN, Look
from components.method_row import Facts, Quiet, check_html, details_html
from components.numbers import plain, signed, small
from components.palette import SIDES, STEPS, THEMES, Side, Theme, colour, see_through, step_of
from engine.result import Check

DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"
TOP = 3
"""Patches that the sentence about a map names."""
CRISP = 128
"""A picture of at most so many pixels a side is enlarged without smoothing: as the model sees it."""


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


@dataclass(frozen=True, eq=False)
class PatchCard:
    """What a card shows, in plain values. `truth`: what the known truth says of the map, a line each."""

    title: str
    view: PatchMap
    check: Check | None
    cost: str
    notes: tuple[str, ...] = ()
    caution: str = ""
    facts: Facts = ()
    truth: tuple[str, ...] = ()


def picture_style(seen: UInt8[np.ndarray, "h w 3"], truth: Bool[np.ndarray, "rows columns"] | None = None) -> str:
    """A `<style>` element that puts the picture into the page once, and the outline of its truth if it is to be seen.

    `seen` is what the model sees after its preprocessing has cropped and resized; `truth` is a mask of those pixels,
    or of patches.
    """
    height, width = seen.shape[:2]
    crisp = "pixelated" if max(height, width) <= CRISP else "auto"
    picture = f"--xg-picture:url({data_url(seen)});--xg-crisp:{crisp};--xg-aspect:{width}/{height}"
    return f"<style>:root{{{picture}{'' if truth is None else _outline(truth)}}}</style>"


def patch_card_html(card: PatchCard) -> str:
    """The card. Everything that is not ours is escaped."""
    notes = "".join(f'<p class="xg-note">{escape(note)}</p>' for note in card.notes)
    truth = "".join(f'<p class="xg-fact">{escape(line)}</p>' for line in card.truth)
    caution = f'<p class="xg-caution">{escape(card.caution)}</p>' if card.caution else ""
    return (
        f'<div class="xg xg-card"><p class="xg-title">{escape(card.title)}</p>'
        f'<div><p class="xg-small">{_unbroken(card.cost)}</p>{check_mark(card.check)}</div>'
        f"{patches_html(card.title, card.view)}"
        f'<div class="xg-small">{legend_html(card.view)}{truth}{notes}{caution}'
        f"{details_html(check_facts(card.check) + card.facts)}</div></div>"
    )


def check_mark(check: Check | None) -> str:
    """The method's own check in one line; what it measured stands in the details, and here if it is not good."""
    if check is None or not check.ok:
        return check_html(check)
    return f'<p class="xg-small" title="{escape(check.name)}: {small(check.value)}">✓ checked</p>'


def check_facts(check: Check | None) -> Facts:
    """The method's own check as a detail."""
    if check is None:
        return ()
    judged = "good: at most" if check.ok else "not good: above"
    return (("check", f"{check.name}: {small(check.value)}, {judged} {plain(check.limit)}"),)


def picture_card_html(title: str, lines: tuple[str, ...] = ()) -> str:
    """The picture alone, as the model sees it, with what is to be said of it."""
    said = "".join(f"<p>{escape(line)}</p>" for line in lines)
    return (
        f'<div class="xg xg-card"><p class="xg-title">{escape(title)}</p><div></div>'
        f'<div class="xg-patches xg-alone" role="img" aria-label="{escape(title)}">{_LAYERS}</div>'
        f'<div class="xg-small">{said}</div></div>'
    )


def quiet_card_html(card: Quiet) -> str:
    """The card of a method without a map: its numbers are still to come, or an error stands in their place."""
    title, said, kind = escape(card.title), escape(card.sentence), " xg-error" if card.failed else ""
    return (
        f'<div class="xg xg-card xg-quiet"><p class="xg-title">{title}</p><div></div>'
        f'<div class="xg-patches xg-empty"></div><p class="xg-small xg-sentence{kind}">{said}</p></div>'
    )


def patches_html(title: str, view: PatchMap) -> str:
    """The picture with the map over it; the browser reads its scores from it (assets/patch_pick.js)."""
    light, dark = (data_url_of_overlay(view, theme) for theme in THEMES)
    rows, columns = view.grid
    return (
        f'<div class="xg-patches" tabindex="0" role="application" aria-roledescription="map of patches"'
        f' aria-label="{escape(title)}" aria-description="{escape(sentence(view))}"'
        f' data-g={rows}x{columns}{" data-s" * view.signed} data-r={_ranks(view)} data-v="{_scores(view)}">'
        f'{_LAYERS}<i class="xg-over" style="--l:url({light});--d:url({dark})"></i><i class="xg-lit"></i></div>'
    )


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


def legend_html(view: PatchMap) -> str:
    """The scale in colours and words, or that there is nothing to colour."""
    if view.largest == 0:
        return "<p>All scores are zero: nothing to colour.</p>"
    low, high = sides(view)
    words = f'<span>{low}</span><span title="{escape(high)}">{escape(high)}</span>'
    scale = f'<i class="xg-scale xg-{"signed" if view.signed else "amount"}"></i>'
    more = "".join(f"<p>{line}</p>" for line in more_lines(view))
    return f'<p class="xg-ends">{scale}{"".join(f"<b>{end}</b>" for end in ends(view))}{words}</p>{more}'


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
    return _table(theme)[_colours(view)]


def data_url_of_overlay(view: PatchMap, theme: Theme) -> str:
    """The overlay as a PNG of a pixel for each patch, with a palette of the colours that it has."""
    used, places = np.unique(_colours(view), return_inverse=True)
    table = _table(theme)[used]
    image = Image.fromarray(places.reshape(view.grid).astype(np.uint8))
    image.putpalette(table[:, :3].tobytes())
    return _url(image, transparency=table[:, 3].tobytes())


def data_url(pixels: UInt8[np.ndarray, "h w 3"]) -> str:
    """The picture as it is, as a PNG."""
    return _url(Image.fromarray(pixels))


def outline_path(mask: Bool[np.ndarray, "h w"]) -> str:
    """An SVG path along the edges between what is in the mask and what is not, a cell being 1 x 1."""
    framed = np.pad(mask, 1)
    across, down = framed[1:, 1:-1] ^ framed[:-1, 1:-1], (framed[1:-1, 1:] ^ framed[1:-1, :-1]).T
    flat = "".join(f"M{start} {y}h{end - start}" for y, start, end in _runs(across))
    return flat + "".join(f"M{x} {start}v{end - start}" for x, start, end in _runs(down))


_LAYERS = '<i class="xg-seen"></i><i class="xg-truth"></i>'


def _runs(lines: Bool[np.ndarray, "lines cells"]) -> list[tuple[int, int, int]]:
    """Line, start and end of each run of edges."""
    steps = np.diff(np.pad(lines, ((0, 0), (1, 1))).astype(np.int8), axis=1)
    starts, ends = np.argwhere(steps == 1), np.argwhere(steps == -1)
    return [(line, start, end) for (line, start), (_, end) in zip(starts.tolist(), ends.tolist(), strict=True)]


def _unbroken(said: str) -> str:
    """Escaped, and no line begins with a point between two parts."""
    return escape(said).replace(" · ", "\u00a0· ")


def _outline(mask: Bool[np.ndarray, "h w"]) -> str:
    """Two lines of the same path, the wider to be drawn in the colour that the other needs around it."""
    return "".join(f";--xg-{name}:{line_mask(mask, width)}" for name, width in (("truth", 1.5), ("truth-halo", 4)))


def line_mask(mask: Bool[np.ndarray, "h w"], width: int | float) -> str:
    """The outline as an SVG that stretches with its box; `width` of the line in pixels of the screen."""
    rows, columns = mask.shape
    svg = (
        f"<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {columns} {rows}' preserveAspectRatio='none'>"
        f"<path d='{outline_path(mask)}' stroke='#000' stroke-width='{width}' stroke-linecap='square'"
        " vector-effect='non-scaling-stroke'/></svg>"
    )
    return f'url("data:image/svg+xml,{svg.replace("#", "%23").replace("<", "%3C").replace(">", "%3E")}")'


def _colours(view: PatchMap) -> np.ndarray:
    """The place of each patch's colour in `_table`."""
    steps = [_row(side_of(view, value)) + step_of(value, view.scale, view.look.gamma) for value in view.scores.flat]
    return np.array(steps).reshape(view.grid)


def side_of(view: PatchMap, value: float) -> Side:
    if not view.signed:
        return "amount"
    return "for" if value > 0 else "against"


def _row(side: Side) -> int:
    return SIDES.index(side) * (STEPS + 1)


@cache
def _table(theme: Theme) -> UInt8[np.ndarray, "colours 4"]:
    return np.array([see_through(theme, side, step) for side in SIDES for step in range(STEPS + 1)], np.uint8)


def _ranks(view: PatchMap) -> str:
    length = len(_base36(view.scores.size))
    return "".join(_base36(rank).rjust(length, "0") for rank in view.ranks)


def _base36(number: int) -> str:
    high, low = divmod(number, len(DIGITS))
    return (_base36(high) if high else "") + DIGITS[low]


def _scores(view: PatchMap) -> str:
    """Three digits each, without the 0 before the point, the plus and the fine minus, which the browser puts back."""
    return " ".join(
        f"{value:.3g}".replace("0.", ".", 1) if abs(value) < 1 else f"{value:.3g}" for value in view.scores.flat
    )


def _url(image: Image.Image, **more: bytes) -> str:
    file = io.BytesIO()
    image.save(file, "PNG", optimize=True, **more)
    return f"data:image/png;base64,{b64encode(file.getvalue()).decode()}"
