"""Maps of a picture as PNG, drawn without a browser: one map over the picture, or a sheet of cards side by side."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from html import unescape

import numpy as np
from jaxtyping import Bool, UInt8
from PIL import Image, ImageDraw, ImageFont

from components.numbers import MINUS, plain, small
from components.palette import PALETTES, Theme
from components.widgets.base import Pins
from components.widgets.patch_map import PatchCard, PatchMap, ends, more_lines, overlay, png_file, scale_colors, sides
from engine.result import Check

EDGE, GAP, BAR, LINE = 24, 20, 9, 1.4
"""Margin of a sheet, space between its cards and height of a scale, in pixels; and line height as a factor of font
size."""
TITLE, TEXT, SMALL = 20, 15, 12
LEAST_SIDE, MOST_COLUMNS = 256, 4
"""Approximate side to which smaller pictures are enlarged, by an integer and without smoothing; and cards in a row."""
OPACITY = 0.7
LUMINANCE = np.array([0.213, 0.715, 0.072])
"""Weights of red, green and blue with which CSS desaturates a picture (Filter Effects, 11.2)."""
FONTS = {False: "DejaVuSans.ttf", True: "DejaVuSans-Bold.ttf"}
SPELT = {MINUS: "-", "×": "x", "✓": "good:", "✗": "not good:", "\u00a0": " "}
"""Replacements for characters that the font lacks."""
Font = ImageFont.FreeTypeFont | ImageFont.ImageFont


@dataclass(frozen=True, eq=False)
class Sheet:
    """The content of a file. `head`: lines above the cards, the first one as title. `foot`: lines below the cards.

    `truth`: a mask of pixels or patches. `pins`: indices of patches. `opacity`: from 0 (the picture) to 1.
    """

    picture: UInt8[np.ndarray, "h w 3"]
    cards: tuple[PatchCard, ...]
    head: tuple[str, ...]
    foot: tuple[str, ...] = ()
    truth: Bool[np.ndarray, "rows columns"] | None = None
    pins: Pins = ()
    opacity: int | float = OPACITY


@dataclass(frozen=True)
class _Words:
    text: str
    size: int = SMALL
    bold: bool = False
    muted: bool = False


def sheet_png(sheet: Sheet, theme: Theme) -> bytes:
    """Return the picture and the cards side by side, each with its scale, check and agreement with the truth."""
    cards = (None, *sheet.cards)
    rows = [_row(sheet, cards[at : at + MOST_COLUMNS], theme) for at in range(0, len(cards), MOST_COLUMNS)]
    width = max(row.width for row in rows)
    title, *lines = (_Words(line, TEXT) for line in sheet.head)
    head = _block([_Words(title.text, TITLE, bold=True), *lines], width, theme)
    foot = _block([_Words(line, muted=True) for line in sheet.foot], width, theme)
    page = _stacked([head, *rows, foot], GAP, theme)
    framed = Image.new("RGB", (page.width + 2 * EDGE, page.height + 2 * EDGE), PALETTES[theme].ground)
    framed.paste(page, (EDGE, EDGE))
    return png_file(framed)


def overlay_png(
    picture: UInt8[np.ndarray, "h w 3"], view: PatchMap, theme: Theme, opacity: int | float = OPACITY
) -> bytes:
    """Return only the map over the picture."""
    return png_file(Image.fromarray(blended(picture, view, theme, opacity)))


def blended(
    picture: UInt8[np.ndarray, "h w 3"], view: PatchMap, theme: Theme, opacity: int | float = OPACITY
) -> UInt8[np.ndarray, "H W 3"]:
    """Return the enlarged picture under the map, layer by layer as in patch_map.css."""
    large = enlarged(picture).astype(float)
    gray = (large @ LUMINANCE)[..., None]
    faded = np.clip(gray + max(0.0, 1 - 1.4 * opacity) * (large - gray), 0, 255)
    veiled = faded + opacity**3 * (np.array(_rgb(PALETTES[theme].ground)) - faded)
    colors = _stretched(overlay(view, theme), *veiled.shape[:2]).astype(float)
    return np.rint(veiled + opacity * colors[..., 3:] / 255 * (colors[..., :3] - veiled)).astype(np.uint8)


def enlarged(picture: UInt8[np.ndarray, "h w 3"]) -> UInt8[np.ndarray, "H W 3"]:
    """Enlarge each pixel to a square of pixels, so that small pictures are visible."""
    times = max(1, round(LEAST_SIDE / max(picture.shape[:2])))
    return picture.repeat(times, axis=0).repeat(times, axis=1)


def outlined(
    pixels: UInt8[np.ndarray, "h w 3"], mask: Bool[np.ndarray, "rows columns"], line: str, halo: str
) -> UInt8[np.ndarray, "h w 3"]:
    """Draw a line of two pixels along the edges of the mask, in the color `line` within `halo`."""
    inside, result = _stretched(mask, *pixels.shape[:2]), pixels.copy()
    result[_near_edges(inside, 2)] = _rgb(halo)
    result[_near_edges(inside, 1)] = _rgb(line)
    return result


def _row(sheet: Sheet, cards: Sequence[PatchCard | None], theme: Theme) -> Image.Image:
    """Return cards side by side with their parts aligned; None stands for the picture alone."""
    pictures = [Image.fromarray(_picture(sheet, card, theme)) for card in cards]
    width = pictures[0].width
    heads = [_block(_head(card), width, theme) for card in cards]
    feet = [_stacked([*_scale(card, width, theme), _block(_foot(card), width, theme)], 3, theme) for card in cards]
    return _stacked(
        [_join_columns(heads, theme, low=True), _join_columns(pictures, theme), _join_columns(feet, theme)], 6, theme
    )


def _picture(sheet: Sheet, card: PatchCard | None, theme: Theme) -> UInt8[np.ndarray, "H W 3"]:
    pixels = enlarged(sheet.picture) if card is None else blended(sheet.picture, card.view, theme, sheet.opacity)
    ground, text = PALETTES[theme].ground, PALETTES[theme].text
    if sheet.truth is not None:
        pixels = outlined(pixels, sheet.truth, ground, text)
    if card is not None and sheet.pins:
        pinned = np.isin(np.arange(card.view.scores.size), sheet.pins).reshape(card.view.grid)
        pixels = outlined(pixels, pinned, text, ground)
    return pixels


def _head(card: PatchCard | None) -> list[_Words]:
    if card is None:
        return [_Words("Picture", TEXT, bold=True)]
    parts = () if card.check is None else card.check.parts
    checks = [_Words(_check(part), muted=part.ok, bold=not part.ok) for part in parts]
    return [_Words(card.title, TEXT, bold=True), _Words(card.cost, muted=True), *checks]


def _check(check: Check) -> str:
    if check.ok:
        return f"✓ {check.name}: {small(check.value)}"
    return f"✗ {check.name}: {small(check.value)}, above {plain(check.limit)}"


def _foot(card: PatchCard | None) -> list[_Words]:
    if card is None:
        return []
    if card.view.largest == 0:
        return [_Words("All scores are zero: nothing to color.", muted=True)]
    return [*(_Words(unescape(line), muted=True) for line in more_lines(card.view)), *map(_Words, card.truth)]


def _scale(card: PatchCard | None, width: int, theme: Theme) -> list[Image.Image]:
    """Return the colors of a card's scale and the text at its ends."""
    if card is None or card.view.largest == 0:
        return []
    colors = np.array([_rgb(color) for color in scale_colors(card.view, theme)], np.uint8)
    bar = Image.fromarray(_stretched(colors[None], BAR, width))
    return [bar, _apart(ends(card.view), width, theme), _apart(sides(card.view), width, theme)]


def _apart(words: tuple[str, str], width: int, theme: Theme) -> Image.Image:
    """Return text at the left, and text at the right that is wrapped to the remaining width."""
    low, high = (_Words(one, muted=True) for one in words)
    left = _block([low], max(1, _width(low)), theme)
    right = _block([high], width - _width(low) - GAP, theme, rightwards=True)
    row = Image.new("RGB", (width, max(left.height, right.height)), PALETTES[theme].ground)
    row.paste(left, (0, 0))
    row.paste(right, (width - right.width, 0))
    return row


def _block(words: Sequence[_Words], width: int, theme: Theme, rightwards: bool = False) -> Image.Image:
    """Return lines of text wrapped to the width. `rightwards`: whether they are aligned to the right."""
    lines = [_Words(line, one.size, one.bold, one.muted) for one in words for line in _broken(one, width)]
    image = Image.new("RGB", (width, round(sum(LINE * one.size for one in lines))), PALETTES[theme].ground)
    pen, y = ImageDraw.Draw(image), 0.0
    for one in lines:
        x = width - _width(one) if rightwards else 0
        ink = PALETTES[theme].muted if one.muted else PALETTES[theme].text
        pen.text((x, round(y)), one.text, fill=ink, font=_font(one.size, one.bold))
        y += LINE * one.size
    return image


def _broken(words: _Words, width: int) -> list[str]:
    """Wrap the text to the width, at spaces and inside words that are wider than a line."""
    lines = [""]
    for word in _legible(words).split():
        longer = f"{lines[-1]} {word}".strip()
        if _fits(longer, words, width):
            lines[-1] = longer
            continue
        lines += [""] * bool(lines[-1])
        for letter in word:
            lines += [""] * (not _fits(lines[-1] + letter, words, width))
            lines[-1] += letter
    return lines


def _fits(text: str, words: _Words, width: int) -> bool:
    return not text[1:] or _font(words.size, words.bold).getlength(text) <= width


def _width(words: _Words) -> int:
    return int(np.ceil(_font(words.size, words.bold).getlength(_legible(words))))


def _legible(words: _Words) -> str:
    """Return the text with a replacement or a question mark for each character that the font lacks."""
    font = _font(words.size, words.bold)
    return "".join(c if c.isspace() or _has(font, c) else SPELT.get(c, "?") for c in words.text)


@cache
def _has(font: Font, character: str) -> bool:
    return bytes(font.getmask(character)) != bytes(font.getmask("\uffff"))


@cache
def _font(size: int, bold: bool) -> Font:
    """Return a font with many scripts if the machine has it, else the one that comes with Pillow."""
    try:
        return ImageFont.truetype(FONTS[bold], size)
    except OSError:
        return ImageFont.load_default(size)


def _stacked(images: Sequence[Image.Image], gap: int, theme: Theme) -> Image.Image:
    parts = [image for image in images if image.height]
    height = sum(image.height for image in parts) + gap * max(0, len(parts) - 1)
    page = Image.new("RGB", (max((image.width for image in parts), default=1), height), PALETTES[theme].ground)
    y = 0
    for image in parts:
        page.paste(image, (0, y))
        y += image.height + gap
    return page


def _join_columns(images: Sequence[Image.Image], theme: Theme, low: bool = False) -> Image.Image:
    """Join images as columns of equal width. `low`: whether they are aligned at the bottom."""
    height, width = max(image.height for image in images), max(image.width for image in images)
    page = Image.new("RGB", (len(images) * (width + GAP) - GAP, height), PALETTES[theme].ground)
    for at, image in enumerate(images):
        page.paste(image, (at * (width + GAP), height - image.height if low else 0))
    return page


def _stretched(cells: np.ndarray, height: int, width: int) -> np.ndarray:
    """Enlarge each cell to its share of the pixels, with hard edges."""
    rows, columns = cells.shape[:2]
    return cells[np.arange(height) * rows // height][:, np.arange(width) * columns // width]


def _near_edges(inside: Bool[np.ndarray, "h w"], reach: int) -> Bool[np.ndarray, "h w"]:
    """Return the pixels within `reach` of a pixel of the other kind. Outside the picture counts as not in the mask."""
    padded = np.pad(inside, reach)
    height, width = inside.shape
    steps = range(2 * reach + 1)
    windows = np.stack([padded[top : top + height, left : left + width] for top in steps for left in steps])
    return np.asarray(windows.any(axis=0) & ~windows.all(axis=0))


def _rgb(color: str) -> tuple[int, int, int]:
    red, green, blue = (int(color[at : at + 2], 16) for at in (1, 3, 5))
    return red, green, blue
