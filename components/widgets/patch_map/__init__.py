"""Maps of pictures: a score for each patch over the picture, in words and in colors, with pins that clicks set.

Colors are transparent where the score is small; over the background of the theme they are exactly those of the palette.
On the page, a map is two small PNG files with one pixel per patch, one for each theme, drawn without smoothing. A veil
in the color of the background between picture and map (patch_map.css) makes the map opaque as its opacity approaches 1.

Pins are set by a strip above the cards, which receives clicks, strokes and keys on any of them. The strip also has the
controls that only act in the browser: the opacity of the maps, and the flip to the picture and back.
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
"""Selector of the container on the Images page whose cards highlight the same patch together."""
CRISP = 128
"""A picture with at most this many pixels a side is enlarged without smoothing, as the model sees it."""
LAYERS = '<i class="xg-seen"></i><i class="xg-truth"></i>'
"""The picture and the outline of the labeled object, below a map."""
TOP = 3
"""Number of patches named in the sentence about a map."""
DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"
MOST_CLASSES = 5
"""Number of classes with a bar next to cards."""


PICKER = "exegesis_patch_pick"
OPACITY = 70
"""Default opacity of a map over the picture, in percent."""
MOST_OPACITY = 100


def use_picture_styles() -> None:
    """Add the style sheet to the page; it takes no space. Colors come with `styles.use_styles`."""
    st.html(picture_sheet())


def picture_sheet() -> str:
    """Return the style sheet of cards and maps: layout, layers of a map, and lines that are visible on any picture."""
    return f"<style>{asset_sheet(LAYOUT)}</style>"


def picture_style(
    pixels: UInt8[np.ndarray, "h w 3"], truth: Bool[np.ndarray, "rows columns"] | None = None, scope: str = ":root"
) -> str:
    """Return a `<style>` element that adds the picture to the page once, with the outline of the object, if known.

    `pixels`: the picture as the model sees it, cropped and resized by its preprocessing. `truth`: a mask of pixels or
    patches. `scope`: selector of the elements that show the picture.
    """
    height, width = pixels.shape[:2]
    crisp = "pixelated" if max(height, width) <= CRISP else "auto"
    picture = f"--xg-picture:url({data_url(pixels)});--xg-crisp:{crisp};--xg-aspect:{width}/{height}"
    # The outline is drawn twice; the wider line has the color that contrasts with the other.
    lines = () if truth is None else (("truth", line_mask(truth, 1.5)), ("truth-halo", line_mask(truth, 4)))
    return f"<style>{scope}{{{picture}{''.join(f';--xg-{name}:{line}' for name, line in lines)}}}</style>"


def data_url(pixels: UInt8[np.ndarray, "h w 3"]) -> str:
    """Return the unchanged picture as a PNG `data:` URL."""
    return png_url(Image.fromarray(pixels))


def png_url(image: Image.Image, **more: bytes) -> str:
    """Return a PNG file as a `data:` URL."""
    return f"data:image/png;base64,{b64encode(png_file(image, **more)).decode()}"


def png_file(image: Image.Image, **more: bytes) -> bytes:
    """Return the picture as a small PNG file, without loss. `more`: options of Pillow."""
    file = io.BytesIO()
    image.save(file, "PNG", optimize=True, **more)
    return file.getvalue()


def outline_path(mask: Bool[np.ndarray, "h w"]) -> str:
    """Return an SVG path along the edges of the mask, where each cell is 1 x 1."""
    framed = np.pad(mask, 1)
    across, down = framed[1:, 1:-1] ^ framed[:-1, 1:-1], (framed[1:-1, 1:] ^ framed[1:-1, :-1]).T
    flat = "".join(f"M{start} {y}h{end - start}" for y, start, end in _runs(across))
    return flat + "".join(f"M{x} {start}v{end - start}" for x, start, end in _runs(down))


def line_mask(mask: Bool[np.ndarray, "h w"], width: int | float) -> str:
    """Return the outline as an SVG that stretches with its box. `width`: line width in screen pixels."""
    rows, columns = mask.shape
    svg = (
        f"<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {columns} {rows}' preserveAspectRatio='none'>"
        f"<path d='{outline_path(mask)}' stroke='#000' stroke-width='{width}' stroke-linecap='square'"
        " vector-effect='non-scaling-stroke'/></svg>"
    )
    return f'url("data:image/svg+xml,{svg.replace("#", "%23").replace("<", "%3C").replace(">", "%3E")}")'


def _runs(lines: Bool[np.ndarray, "lines cells"]) -> list[tuple[int, int, int]]:
    """Return line, start and end of each run of edges."""
    steps = np.diff(np.pad(lines, ((0, 0), (1, 1))).astype(np.int8), axis=1)
    starts, ends = np.argwhere(steps == 1), np.argwhere(steps == -1)
    return [(line, start, end) for (line, start), (_, end) in zip(starts.tolist(), ends.tolist(), strict=True)]


@dataclass(frozen=True, eq=False)
class PatchMap:
    """The content of a map: a score for each patch. `target`: the explained class.

    `end`: end of a scale shared with the maps that `sharing` names; None for the map's own scale.
    """

    scores: Float[np.ndarray, "gh gw"]
    signed: bool
    target: str
    look: ViewOptions = DEFAULT_VIEW
    end: float | None = None
    sharing: str = ""

    @property
    def grid(self) -> tuple[int, int]:
        """Number of rows and columns of patches."""
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
        """Ranks row by row, 1 for the largest absolute score; equal scores share the better rank."""
        sizes = np.abs(self.scores).ravel()
        return tuple((1 + sizes.size - np.searchsorted(np.sort(sizes), sizes, side="right")).tolist())


def layers_html(view: PatchMap) -> str:
    """HTML of the picture with the map of each theme over it, in colors only."""
    light, dark = (overlay_url(view, theme) for theme in THEMES)
    return f'{LAYERS}<i class="xg-over" style="--l:url({light});--d:url({dark})"></i>'


def legend_html(view: PatchMap) -> str:
    """HTML of the scale in colors and words, or a note that there is nothing to color."""
    if view.largest == 0:
        return "<p>All scores are zero: nothing to color.</p>"
    low, high = sides(view)
    words = f'<span>{low}</span><span title="{escape(high)}">{escape(high)}</span>'
    scale = f'<i class="xg-scale xg-{"signed" if view.signed else "amount"}"></i>'
    more = "".join(f"<p>{line}</p>" for line in more_lines(view))
    return f'<p class="xg-ends">{scale}{"".join(f"<b>{end}</b>" for end in ends(view))}{words}</p>{more}'


def overlay_url(view: PatchMap, theme: Theme) -> str:
    """Return the overlay as a PNG with one pixel per patch and a palette of the colors in use."""
    used, places = np.unique(color_places(view), return_inverse=True)
    table = color_table(theme)[used]
    image = Image.fromarray(places.reshape(view.grid).astype(np.uint8))
    image.putpalette(table[:, :3].tobytes())
    return png_url(image, transparency=table[:, 3].tobytes())


def sentence(view: PatchMap) -> str:
    """Describe the map: its grid, and where its largest scores are."""
    rows, columns = view.grid
    size = f"{rows} rows, {columns} columns."
    if view.largest == 0:
        return f"{size} All scores are zero."
    order = np.argsort(-np.abs(view.scores), axis=None, kind="stable")[:TOP]
    return f"{size} Largest: {', '.join(f'{place(at, columns)} {score(view, at)}' for at in order.tolist())}."


def tip(view: PatchMap, at: int) -> str:
    """Return the tooltip of a patch: its value, rank and place."""
    rank = f"rank {view.ranks[at]} of {view.scores.size}"
    return f"{score(view, at)} · {rank} · {place(at, view.grid[1])}"


def place(at: int, columns: int) -> str:
    """Format a patch as row and column, both from 1, as `Explanation.tokens` names it."""
    return f"row {at // columns + 1}, column {at % columns + 1}"


def score(view: PatchMap, at: int) -> str:
    value = float(view.scores.flat[at])
    return signed(value) if view.signed else plain(value)


def more_lines(view: PatchMap) -> list[str]:
    """Return notes on gamma and on the maps that share the scale, one line each; escaped."""
    return [line.removeprefix(" · ") for line in (gamma_note(view), sharing_note(view)) if line]


def ends(view: PatchMap) -> tuple[str, str]:
    """Return the numbers at both ends of the scale."""
    return (signed(-view.scale), signed(view.scale)) if view.signed else ("0", plain(view.scale))


def sides(view: PatchMap) -> tuple[str, str]:
    """Return the meaning of both ends of the scale."""
    return ("against", f"for {view.target}") if view.signed else ("", "without sign")


def scale_colors(view: PatchMap, theme: Theme) -> list[str]:
    """Return the colors of the scale from one end to the other, as #rrggbb."""
    up: Side = "for" if view.signed else "amount"
    down = [color(theme, "against", step) for step in range(STEPS, 0, -1)] if view.signed else []
    return [*down, *(color(theme, up, step) for step in range(STEPS + 1))]


def overlay(view: PatchMap, theme: Theme) -> UInt8[np.ndarray, "gh gw 4"]:
    """Return red, green, blue and alpha of each patch, which over the theme's ground give the colors of the palette."""
    return color_table(theme)[color_places(view)]


def color_places(view: PatchMap) -> np.ndarray:
    """Return the index of each patch's color in `color_table`."""
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
    """The content of a card, as plain values. `truth`: agreement of the map with the known truth, one line each."""

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
    """Return the card of an explanation. `omitted`: notes shown elsewhere on the page. `truth`: as in `PatchCard`.

    `ends`: ends of the scales that maps share (`shared_ends`); None as long as they are unknown.
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
    """Return the map of an explanation, on its own scale."""
    origin = explanation.provenance
    return PatchMap(explanation.on_grid, method.is_signed(origin.params), origin.target_label)


def extent(method: Explainer, explanation: Explanation) -> float:
    """Return the map's largest absolute score."""
    return patch_map(method, explanation).largest


def patch_card_html(card: PatchCard) -> str:
    """HTML of a card; external text is escaped."""
    notes = "".join(f'<p class="xg-note">{escape(note)}</p>' for note in card.notes)
    truth = "".join(f'<p class="xg-fact">{escape(line)}</p>' for line in card.truth)
    caution = f'<p class="xg-caution">{escape(card.caution)}</p>' if card.caution else ""
    cost = escape(card.cost).replace(" · ", "\u00a0· ")  # no line begins with the separator
    return (
        f'<div class="xg xg-card"><p class="xg-title">{escape(card.title)}</p>'
        f"{patches_html(card.title, card.view)}"
        f'<div class="xg-small">{legend_html(card.view)}{check_mark(card.check)}{truth}{notes}{caution}<p>{cost}</p>'
        f"{details_html(check_facts(card.check) + card.facts)}</div></div>"
    )


def picture_card_html(title: str, lines: tuple[str, ...] = ()) -> str:
    """HTML of a card with only the picture, as the model sees it, and lines of text below it."""
    text = "".join(f"<p>{escape(line)}</p>" for line in lines)
    return (
        f'<div class="xg xg-card"><p class="xg-title">{escape(title)}</p>'
        f'<div class="xg-patches xg-alone" role="img" aria-label="{escape(title)}">{LAYERS}</div>'
        f'<div class="xg-small">{text}</div></div>'
    )


def quiet_card_html(card: Placeholder) -> str:
    """HTML of the card of a method without a map, which is still to be computed or has failed."""
    title, text, kind = escape(card.title), escape(card.sentence), " xg-error" if card.failed else ""
    return (
        f'<div class="xg xg-card xg-quiet"><p class="xg-title">{title}</p>'
        f'<div class="xg-patches xg-empty"></div><p class="xg-small xg-sentence{kind}">{text}</p></div>'
    )


def check_mark(check: Check | None) -> str:
    """HTML of the method's own check in one line. Its values are in the details, and here if they are not good."""
    if check is None or not check.ok:
        return check_html(check)
    measured = escape(", ".join(f"{part.name}: {small(part.value)}" for part in check.parts))
    return f'<p class="xg-small" title="{measured}">✓ checked</p>'


def check_facts(check: Check | None) -> Facts:
    """Return the method's own check as details, one for each value."""
    return () if check is None else tuple(("check", _describe(part)) for part in check.parts)


def _describe(part: Check) -> str:
    verdict = "good: at most" if part.ok else "not good: above"
    return f"{part.name}: {small(part.value)}, {verdict} {plain(part.limit)}"


def patches_html(title: str, view: PatchMap) -> str:
    """HTML of the picture with the map over it. The browser reads the scores from its attributes (picker.js)."""
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
    """Format scores with three digits, without leading 0, plus and typographic minus, which the browser restores."""
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
    """Draw the strip of pins, which people can change. `pins`: indices of patches, row by row from 0.

    `on_pick` receives new pins before the script runs again, like a widget's callback. `opacity`: initial value of the
    slider, in percent. Maps follow the slider without a run, and its value is remembered while the page lives.
    `on_opacity` receives that value.
    """
    data = picker_data(grid, pins, opacity) | {"asks": on_opacity is not None}
    events = {} if on_opacity is None else {"on_opacity_change": partial(_take_opacity, key, on_opacity)}
    base.draw_strip(_picker(), key, data, partial(read_pins, grid=grid), on_pick, **events)


def on_grid(grid: tuple[int, int], pins: Pins) -> Pins:
    """Return the pins on this grid, without those of another model's grid."""
    return tuple(at for at in sorted(set(pins)) if 0 <= at < grid[0] * grid[1])


def picker_data(grid: tuple[int, int], pins: Pins, opacity: int = OPACITY) -> dict[str, object]:
    """Return the component's data, as plain values."""
    rows, columns = grid
    pinned = list(on_grid(grid, pins))
    return {"rows": rows, "columns": columns, "opacity": opacity, "scope": CARDS, "pinned": pinned}


def read_pins(sent: object, grid: tuple[int, int]) -> PinEvent:
    """Parse and check the pins that the browser sent: they must fit this grid."""
    patches = grid[0] * grid[1]
    return base.parse_pins(sent, lambda at: 0 <= at < patches, f"numbers of patches from 0 to {patches - 1}")


def _take_opacity(key: str, on_opacity: Callable[[int], None]) -> None:
    """Pass on the opacity that the browser sent; a value that is not a percentage is ignored."""
    opacity = st.session_state[key].get("opacity")
    if type(opacity) is int and 0 <= opacity <= MOST_OPACITY:
        on_opacity(opacity)


@cache
def _picker() -> Component:
    return base.build_component(PICKER, "picker", folder=Path(__file__).parent)
