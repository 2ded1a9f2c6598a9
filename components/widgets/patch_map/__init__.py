"""Maps of pictures: a score for each patch over the picture, in words and in colors, with pins that clicks set.

Colors are transparent where the score is small, and over the ground of the theme exactly those of the palette. In the
page a map is two small PNG files of a pixel for each patch, one for each theme, drawn without smoothing; a veil of the
ground between picture and map (patch_map.css) makes the map opaque as its opacity comes to 1.

Pins are set by a strip above the cards, fed by clicks, strokes and keys on any of them. It also has what acts in the
browser alone: the opacity of the maps, and the flip to the picture and back.
"""

from __future__ import annotations

import io
from base64 import b64encode
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cache, cached_property, partial
from html import escape
from pathlib import Path

import numpy as np
from jaxtyping import Bool, Float, UInt8
from PIL import Image

from components.lazy import st
from components.method_row import Facts, Placeholder, check_html, cost_line, details_html, facts
from components.numbers import plain, signed, small
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
from components.styles import asset_sheet
from components.widgets import base
from components.widgets.base import Component, PinEvent, Pins
from components.widgets.view_options import DEFAULT_VIEW, SCALES, ViewOptions, scale_group
from engine.registry import Explainer
from engine.result import Check, Explanation

LAYOUT = Path(__file__).parent / "patch_map.css"
CARDS_KEY = "picture_cards"
CARDS = f".st-key-{CARDS_KEY}"
"""Around the cards that light each other: the key of their container on the Images page."""
CRISP = 128
"""A picture of at most so many pixels a side is enlarged without smoothing: as the model sees it."""
LAYERS = '<i class="xg-seen"></i><i class="xg-truth"></i>'
"""The picture and the outline of its truth, below a map."""
TOP = 3
"""Patches that the sentence about a map names."""
DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"
MOST_CLASSES = 5
"""Classes of a prediction that have a bar beside cards."""


PICKER = "exegesis_patch_pick"
OPACITY = 70
"""Percent of the map's color over the picture, by default."""
MOST_OPACITY = 100


def use_picture_styles() -> None:
    """Put the style sheet into the page; it takes no room. Colors come with `styles.use_styles`."""
    st.html(picture_sheet())


def picture_sheet() -> str:
    """The style sheet of cards and maps: layout, the layers of a map, and lines that show on any picture."""
    return f"<style>{asset_sheet(LAYOUT)}</style>"


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
    # The outline twice, the wider line in the color that the other needs around it.
    lines = () if truth is None else (("truth", line_mask(truth, 1.5)), ("truth-halo", line_mask(truth, 4)))
    return f"<style>{scope}{{{picture}{''.join(f';--xg-{name}:{line}' for name, line in lines)}}}</style>"


def data_url(pixels: UInt8[np.ndarray, "h w 3"]) -> str:
    """The picture as it is, as a PNG."""
    return png_url(Image.fromarray(pixels))


def png_url(image: Image.Image, **more: bytes) -> str:
    """A PNG file as an address."""
    return f"data:image/png;base64,{b64encode(png_file(image, **more)).decode()}"


def png_file(image: Image.Image, **more: bytes) -> bytes:
    """The picture without loss, in few bytes. `more`: options of Pillow."""
    file = io.BytesIO()
    image.save(file, "PNG", optimize=True, **more)
    return file.getvalue()


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


def _runs(lines: Bool[np.ndarray, "lines cells"]) -> list[tuple[int, int, int]]:
    """Line, start and end of each run of edges."""
    steps = np.diff(np.pad(lines, ((0, 0), (1, 1))).astype(np.int8), axis=1)
    starts, ends = np.argwhere(steps == 1), np.argwhere(steps == -1)
    return [(line, start, end) for (line, start), (_, end) in zip(starts.tolist(), ends.tolist(), strict=True)]


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
        return "<p>All scores are zero: nothing to color.</p>"
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
    """The gamma of the colors and the maps that share the scale, a line each; escaped."""
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
    steps = [
        SIDES.index(side_of(view, value)) * (STEPS + 1) + step_of(value, view.scale, view.look.gamma)
        for value in view.scores.flat
    ]
    return np.array(steps).reshape(view.grid)


@cache
def color_table(theme: Theme) -> UInt8[np.ndarray, "colors 4"]:
    return np.array([translucent_color(theme, side, step) for side in SIDES for step in range(STEPS + 1)], np.uint8)


def side_of(view: PatchMap, value: float) -> Side:
    if not view.signed:
        return "amount"
    return "for" if value > 0 else "against"


@dataclass(frozen=True, eq=False)
class PatchCard:
    """The content of a card, in plain values. `truth`: how the map agrees with the known truth, a line each."""

    title: str
    view: PatchMap
    check: Check | None
    cost: str
    notes: tuple[str, ...] = ()
    caution: str = ""
    facts: Facts = ()
    truth: tuple[str, ...] = ()


def patch_card(
    method: Explainer,
    explanation: Explanation,
    omitted: Iterable[str] = (),
    look: ViewOptions = DEFAULT_VIEW,
    ends: Mapping[str, float] | None = None,
    truth: tuple[str, ...] = (),
) -> PatchCard:
    """The card of an explanation. `omitted`: notes that stand elsewhere on the page. `truth` as in `PatchCard`.

    `ends`: where the scales end that maps share (`shared_ends`); None as long as that is not known.
    """
    view = replace(patch_map(method, explanation), look=replace(look, scale=SCALES[0]) if ends is None else look)
    group = scale_group(method, explanation.provenance.params)
    if ends and group is not None and group in ends:
        view = replace(view, end=ends[group], sharing=group)
    notes = tuple(note for note in explanation.remarks if note not in set(omitted))
    return PatchCard(
        method.title,
        view,
        explanation.check,
        cost_line(explanation),
        notes,
        method.caution,
        facts(method, explanation),
        truth,
    )


def patch_map(method: Explainer, explanation: Explanation) -> PatchMap:
    """The map of an explanation, on its own scale."""
    origin = explanation.provenance
    return PatchMap(explanation.on_grid, method.is_signed(origin.params), origin.target_label)


def extent(method: Explainer, explanation: Explanation) -> float:
    """The map's largest score."""
    return patch_map(method, explanation).largest


def patch_card_html(card: PatchCard) -> str:
    """The card. Everything that is not ours is escaped."""
    notes = "".join(f'<p class="xg-note">{escape(note)}</p>' for note in card.notes)
    truth = "".join(f'<p class="xg-fact">{escape(line)}</p>' for line in card.truth)
    caution = f'<p class="xg-caution">{escape(card.caution)}</p>' if card.caution else ""
    cost = escape(card.cost).replace(" · ", "\u00a0· ")  # no line begins with a point between two parts
    return (
        f'<div class="xg xg-card"><p class="xg-title">{escape(card.title)}</p>'
        f"{patches_html(card.title, card.view)}"
        f'<div class="xg-small">{legend_html(card.view)}{check_mark(card.check)}{truth}{notes}{caution}<p>{cost}</p>'
        f"{details_html(check_facts(card.check) + card.facts)}</div></div>"
    )


def picture_card_html(title: str, lines: tuple[str, ...] = ()) -> str:
    """The picture alone, as the model sees it, with lines of text below it."""
    text = "".join(f"<p>{escape(line)}</p>" for line in lines)
    return (
        f'<div class="xg xg-card"><p class="xg-title">{escape(title)}</p>'
        f'<div class="xg-patches xg-alone" role="img" aria-label="{escape(title)}">{LAYERS}</div>'
        f'<div class="xg-small">{text}</div></div>'
    )


def quiet_card_html(card: Placeholder) -> str:
    """The card of a method without a map: its numbers are still to come, or an error stands in their place."""
    title, text, kind = escape(card.title), escape(card.sentence), " xg-error" if card.failed else ""
    return (
        f'<div class="xg xg-card xg-quiet"><p class="xg-title">{title}</p>'
        f'<div class="xg-patches xg-empty"></div><p class="xg-small xg-sentence{kind}">{text}</p></div>'
    )


def check_mark(check: Check | None) -> str:
    """The method's own check in one line; its numbers are in the details, and here if they are not good."""
    if check is None or not check.ok:
        return check_html(check)
    measured = escape(", ".join(f"{part.name}: {small(part.value)}" for part in check.parts))
    return f'<p class="xg-small" title="{measured}">✓ checked</p>'


def check_facts(check: Check | None) -> Facts:
    """The method's own check as details, one for each number."""
    return () if check is None else tuple(("check", _describe(part)) for part in check.parts)


def _describe(part: Check) -> str:
    verdict = "good: at most" if part.ok else "not good: above"
    return f"{part.name}: {small(part.value)}, {verdict} {plain(part.limit)}"


def patches_html(title: str, view: PatchMap) -> str:
    """The picture with the map over it; the browser reads its scores from it (picker.js)."""
    rows, columns = view.grid
    return (
        f'<div class="xg-patches" tabindex="0" role="application" aria-roledescription="map of patches"'
        f' aria-label="{escape(title)}" aria-description="{escape(sentence(view))}"'
        f' data-g={rows}x{columns}{" data-s" * view.signed} data-r={_ranks(view)} data-v="{_scores(view)}">'
        f'{layers_html(view)}<i class="xg-lit"></i></div>'
    )


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


def draw_patch_picker(
    grid: tuple[int, int],
    pins: Pins,
    key: str,
    on_pick: Callable[[Pins], None],
    opacity: int = OPACITY,
    on_opacity: Callable[[int], None] | None = None,
) -> None:
    """Draw the pins and let people change them. `pins` are numbers of patches, row by row from 0.

    `on_pick` receives the new ones before the script runs again, as a widget's callback does. `opacity`, in percent,
    is where the slider starts. Maps follow it without a run, and where people leave it is remembered while the page
    lives; `on_opacity`, if there is one, receives it.
    """
    data = picker_data(grid, pins, opacity) | {"asks": on_opacity is not None}
    events = {} if on_opacity is None else {"on_opacity_change": partial(_take_opacity, key, on_opacity)}
    base.draw_strip(_picker(), key, data, partial(read_pins, grid=grid), on_pick, **events)


def on_grid(grid: tuple[int, int], pins: Pins) -> Pins:
    """The pins that this grid has: those of another model's grid are left out."""
    return tuple(at for at in sorted(set(pins)) if 0 <= at < grid[0] * grid[1])


def picker_data(grid: tuple[int, int], pins: Pins, opacity: int = OPACITY) -> dict[str, object]:
    """The component's data, in plain values."""
    rows, columns = grid
    pinned = list(on_grid(grid, pins))
    return {"rows": rows, "columns": columns, "opacity": opacity, "scope": CARDS, "pinned": pinned}


def read_pins(sent: object, grid: tuple[int, int]) -> PinEvent:
    """The pins that the browser sent, checked: they must fit this grid."""
    patches = grid[0] * grid[1]
    return base.parse_pins(sent, lambda at: 0 <= at < patches, f"numbers of patches from 0 to {patches - 1}")


def _take_opacity(key: str, on_opacity: Callable[[int], None]) -> None:
    """Hand over the opacity that the browser has just sent; what is no percent changes nothing."""
    opacity = st.session_state[key].get("opacity")
    if type(opacity) is int and 0 <= opacity <= MOST_OPACITY:
        on_opacity(opacity)


@cache
def _picker() -> Component:
    return base.build_component(PICKER, "picker", folder=Path(__file__).parent)
