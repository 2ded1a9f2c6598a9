"""The maps of a picture side by side: a card a column, each over the picture as its model sees it.

Where models see another part of the picture or cut it into other patches, all cards show the common patches.
"""

from __future__ import annotations

from collections.abc import Iterator
from html import escape

import numpy as np
from jaxtyping import UInt8

from components.compare.board import foot_html, head_html, small
from components.compare.compared import Column, Compared
from components.widgets.patch_map import PatchMap, layers_html
from components.widgets.patch_map.html import LAYERS, sentence
from components.widgets.patch_map.picture import picture_style
from engine.comparison.patches import Box, common_box, seen_box
from engine.request import Picture
from engine.vision.view import read_view as eyes_of

Pixels = UInt8[np.ndarray, "height width 3"]


def cards_html(compared: Compared) -> str:
    """The pictures once for each model, then the cards. Everything that is not ours is escaped."""
    named = {column.made.provenance.model: column.model for column in compared.there if column.made is not None}
    models = list(named)
    seen = list(_seen(compared, models))
    styles = "".join(picture_style(one, scope=f".xg-eyes{place}") for place, one in enumerate(seen))
    cards = _picture(list(named.values()), seen) + "".join(
        _card(compared, column, models) for column in compared.columns
    )
    return (
        f'<div class="xg">{styles}<div class="xg-beside-cards" style="--xg-opacity:{compared.look.opacity / 100:g}">'
        f"{cards}</div>{foot_html(compared)}</div>"
    )


def patch_map_of(compared: Compared, column: Column) -> PatchMap:
    """The column's map of the common patches; what has no order has no moves, and is drawn as none."""
    if compared.sheet is None or compared.sheet.grid is None:
        raise ValueError(f"column {column.letter}: has no map of patches")
    scores = np.nan_to_num(compared.scores(column)).reshape(compared.sheet.grid)
    return PatchMap(scores, column.signed or compared.relative, column.target, compared.map_look, compared.end)


def _card(compared: Compared, column: Column, models: list[str]) -> str:
    pinned = " xg-reference" if compared.reference is column else ""
    if column.made is None:
        body = '<div class="xg-patches xg-empty"></div>'
    else:
        view = patch_map_of(compared, column)
        told = escape(f"{column.letter} {column.title}. {sentence(view)}")
        eyes = models.index(column.made.provenance.model)
        body = f'<div class="xg-patches xg-eyes{eyes}" role="img" aria-label="{told}">{layers_html(view)}</div>'
    return f'<section class="xg-beside-card{pinned}"><div>{head_html(compared, column)}</div>{body}</section>'


def _picture(names: list[str], seen: list[Pixels]) -> str:
    """The picture itself, in its colours, as the model with the sharpest eyes sees it."""
    if not seen:
        return ""
    best = max(range(len(seen)), key=lambda place: seen[place].size)
    said = f"as {names[best]} sees it" if names else "as it is"
    return (
        f'<section class="xg-beside-card"><div><p class="xg-title">The picture</p>{small(said)}</div>'
        f'<div class="xg-patches xg-alone xg-eyes{best}" role="img" aria-label="The picture without a map">'
        f"{LAYERS}</div></section>"
    )


def _seen(compared: Compared, models: list[str]) -> Iterator[Pixels]:
    """The part of the picture that all models see, as each of them sees it; the whole before the first has a map."""
    picture = compared.state.input
    if not isinstance(picture, Picture):
        return
    if not models:
        yield picture.pixels
        return
    height, width, _ = picture.pixels.shape
    eyes = [eyes_of(model) for model in models]
    boxes = [seen_box(one, height, width) for one in eyes]
    for one, own in zip(eyes, boxes, strict=True):
        yield _cut(one.transform(picture.pixels), own, common_box(boxes))


def _cut(seen: Pixels, own: Box, box: Box) -> Pixels:
    rows, columns, _ = seen.shape
    top, bottom = (round(rows * (side - own.top) / (own.bottom - own.top)) for side in (box.top, box.bottom))
    left, right = (round(columns * (side - own.left) / (own.right - own.left)) for side in (box.left, box.right))
    return np.ascontiguousarray(seen[top : max(bottom, top + 1), left : max(right, left + 1)])
