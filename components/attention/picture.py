"""The score map and the head that is looked at as one picture: SVG, and a page that stands alone."""

from __future__ import annotations

import io
import math
from base64 import b64encode
from collections.abc import Sequence
from html import escape

import numpy as np
from jaxtyping import Float

from components.attention.export import (
    KeptHeads,
    explain_command,
    heads_command,
    position_name,
    references,
)
from components.attention.look import head_name
from components.attention.scores import HeadMap, of_view, shown_maps
from components.citing import cited_html, origin_of
from components.export_page import command_html, standing_page
from components.numbers import percent, plain, signed
from components.palette import PALETTES, STEPS, Side, colour, step_of
from components.prediction import prediction_html
from components.svg_sheet import (
    CELL,
    EDGE,
    LINE,
    SMALL,
    SMALLER,
    WIDTH,
    Sheet,
    cells,
    clean,
    scale_bar,
    sentence,
    whole,
    words,
)
from components.widgets.patch_map import PatchMap
from components.widgets.patch_map.png import overlay_png
from engine.heads.readings import CAUTION
from engine.request import Picture
from engine.vision.view import read_view

ROOM = WIDTH - 2 * EDGE
SCORE_SIDE, CELL_SIDE, MAP_SIDE = 34.0, 26.0, 448.0
"""Of a cell of the score map, of a cell of a matrix, and of a picture under its map: at most, in pixels."""
LONGEST = 22
"""Cells that a token's name takes at most."""
LABEL_LINE = 12.0
"""Pixels between two names at least."""
DOTS = 900
"""Pixels of a matrix a side, about: no viewer then has to enlarge it, which some do with a blur."""


def svg(kept: KeptHeads) -> str:
    """The score of every head, then the shown head closely, with scales and references; in the light theme."""
    sheet = Sheet()
    _title(sheet, f"Attention heads of {kept.made.provenance.model}", *_prediction(kept))
    if kept.scores is not None:
        _score_map(sheet, kept, kept.scores)
    _shown_head(sheet, kept)
    for said in cited(kept):
        sentence(sheet, said)
    return whole(sheet, dark=False)


def html(kept: KeptHeads) -> str:
    """The prediction and the picture as one file, light: no script, nothing fetched."""
    made = kept.made
    _, _, picture = svg(kept).partition("?>\n")
    commands = [heads_command(kept), *([explain_command(kept)] if kept.state.switched else [])]
    given = "" if kept.state.input is None else command_html(kept.state.input, *commands)
    sections = (
        prediction_html(made.prediction, made.provenance.target),
        picture,
        f"<h2>Cite this</h2>{cite_html(kept)}{given}",
    )
    return standing_page(
        f"Attention heads of {made.provenance.model}", sections, "svg{max-width:100%;height:auto}", "light"
    )


def cite_html(kept: KeptHeads) -> str:
    """How to cite what is shown."""
    first, *rest = cited(kept)
    return cited_html(first, rest)


def cited(kept: KeptHeads) -> list[str]:
    """What made it, where the score is from, and the caution."""
    return [origin_of(kept.made), *references(kept), CAUTION]


def _title(sheet: Sheet, title: str, *lines: str) -> None:
    sheet.parts.append(words(title, EDGE, sheet.y + 18, ' font-weight="bold"'))
    sheet.y += LINE
    for line in lines:
        sentence(sheet, line)
    sheet.y += 6


def _prediction(kept: KeptHeads) -> list[str]:
    made, origin = kept.made.prediction, kept.made.provenance
    if made.regression:
        return [f"Score: {signed(made.logits[0])}."]
    told = f"Predicted: {made.label}, {percent(made.probabilities[made.index])}."
    return [told if origin.target == made.index else f"{told} Looked at: {origin.target_label}."]


def _score_map(sheet: Sheet, kept: KeptHeads, scores: HeadMap) -> None:
    """A row a layer, a column a head; the head that is shown has a frame."""
    _title(sheet, f"{scores.title} ({scores.unit})", scores.words)
    (layers, heads), left = scores.values.shape, EDGE + 4 * CELL
    side = min(SCORE_SIDE, (ROOM - 4 * CELL) / heads)
    end = float(np.nan_to_num(np.abs(scores.values)).max())
    for head in range(heads):
        sheet.parts.append(
            words(str(head), left + (head + 0.5) * side, sheet.y + 12, f'{SMALLER} text-anchor="middle"', "muted")
        )
    sheet.y += 18
    for layer in range(layers):
        sheet.parts.append(
            words(str(layer), left - CELL, sheet.y + side / 2 + 4, f'{SMALLER} text-anchor="end"', "muted")
        )
        sheet.parts += [_score(scores, (layer, head), left + head * side, sheet.y, side, end) for head in range(heads)]
        if kept.head[0] == layer:
            sheet.parts.append(_frame(left + kept.head[1] * side, sheet.y, side, side, "text", 2))
        sheet.y += side
    ends = f"{signed(-end)} to {signed(end)}" if scores.signed else f"0 to {plain(end)}"
    told = f"{ends} {scores.unit}; down: layers, across: heads" if end else "All scores are zero"
    scale_bar(sheet, told, None if not end else "signed" if scores.signed else "amount")


def _score(scores: HeadMap, head: tuple[int, int], x: float, y: float, side: float, end: float) -> str:
    value = float(scores.values[head])
    missing = math.isnan(value)
    kind: Side = "amount" if not scores.signed else "for" if value > 0 else "against"
    fill = PALETTES["light"].special if missing else colour("light", kind, step_of(value, end))
    said = "no value" if missing else signed(value) if scores.signed else plain(value)
    box = f'<rect x="{x + 1:g}" y="{y + 1:g}" width="{side - 2:g}" height="{side - 2:g}" fill="{fill}"/>'
    return f"<g><title>{escape(f'{head_name(head)}: {said}')}</title>{box}</g>"


def _number(number: int, x: float, y: float, anchor: str) -> str:
    return words(str(number), x, y, f'{SMALLER} text-anchor="{anchor}"', "muted")


def _frame(x: float, y: float, width: float, height: float, ink: str, stroke: int) -> str:
    place = f'x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}"'
    return f'<rect {place} fill="none" stroke="{getattr(PALETTES["light"], ink)}" stroke-width="{stroke}"/>'


def _shown_head(sheet: Sheet, kept: KeptHeads) -> None:
    """The map over the picture, or the matrix."""
    name, look, given = head_name(kept.head), kept.state.look, kept.state.input
    if isinstance(given, Picture) and look.detail == "overlay":
        _title(sheet, f"Head {name}", _sentence(of_view(kept.reading, look)))
        _over_picture(sheet, kept, given)
        return
    _title(sheet, f"Head {name}", " ".join(filter(None, ("Queries down, keys across.", kept.part.note))))
    _matrix(sheet, kept)


def _sentence(words: str) -> str:
    # Not `capitalize`, which would write «[cls]».
    return f"{words[:1].upper()}{words[1:]}."


def _over_picture(sheet: Sheet, kept: KeptHeads, given: Picture) -> None:
    maps = np.nan_to_num(shown_maps(kept.reading, kept.state.look))
    end = float(maps.max() if kept.state.look.scale == "shared" else maps[kept.head].max())
    view = PatchMap(maps[kept.head].reshape(kept.made.grid or ()), False, "", end=end)
    seen = read_view(kept.made.provenance.model).transform(given.pixels)
    height = MAP_SIDE * seen.shape[0] / seen.shape[1]
    sheet.parts.append(_image(overlay_png(seen, view, "light"), EDGE, sheet.y, MAP_SIDE, height))
    sheet.y += height
    scale_bar(sheet, f"0 to {plain(end)}", "amount")


def _matrix(sheet: Sheet, kept: KeptHeads) -> None:
    matrix, part = kept.matrix, kept.part
    end = _end(kept, matrix)
    rows, columns = ([_label(kept, at) for at in places] for places in (part.rows, part.columns))
    left, top = (SMALL * CELL * max(map(cells, names)) + 8 for names in (rows, columns))
    side = min(CELL_SIDE, (ROOM - left) / max(matrix.shape))
    x, y = EDGE + left, sheet.y + top
    sheet.parts += _names(rows, x - 6, y, side, upwards=False)
    sheet.parts += _names(columns, x, y - 6, side, upwards=True)
    sheet.parts.append(_image(_matrix_png(matrix, end), x, y, side * len(columns), side * len(rows)))
    sheet.parts.append(_frame(x, y, side * len(columns), side * len(rows), "line", 1))
    sheet.y = y + side * len(rows)
    masked = "; grey: may not attend" if np.isnan(matrix).any() else ""
    scale_bar(sheet, f"0 to {plain(end)}{masked}", "amount")


def _end(kept: KeptHeads, matrix: Float[np.ndarray, "row column"]) -> float:
    """Where the colours end: at the head's largest value, or at that of all heads."""
    if kept.state.look.scale == "own":
        return float(np.nan_to_num(matrix).max())
    rows, columns = np.ix_(kept.part.rows, kept.part.columns)
    return max(float(np.nan_to_num(layer[:, rows, columns]).max()) for layer in kept.reading.attention)


def _label(kept: KeptHeads, position: int) -> str:
    name = clean(position_name(kept.made, position))
    if cells(name) <= LONGEST:
        return name
    return next(f"{name[:end]}…" for end in range(LONGEST, 0, -1) if cells(name[:end]) < LONGEST)


def _names(names: Sequence[str], x: float, y: float, side: float, upwards: bool) -> list[str]:
    """As many as there is room for: down the left edge, or along the top, where they are read upwards."""
    found = []
    for at in range(0, len(names), math.ceil(LABEL_LINE / side)):
        middle = (at + 0.5) * side + 4
        right, down = (x + middle, y) if upwards else (x, y + middle)
        turned = f' transform="rotate(-90 {right:g} {down:g})"' if upwards else ' text-anchor="end"'
        length = f' textLength="{SMALL * CELL * cells(names[at]):g}" lengthAdjust="spacingAndGlyphs"'
        found.append(words(names[at], right, down, f"{SMALLER}{length}{turned}"))
    return found


def _matrix_png(matrix: Float[np.ndarray, "row column"], end: float) -> bytes:
    """Each cell as a square of pixels in its colour; grey where a query may not attend."""
    from PIL import Image

    colours = [PALETTES["light"].line, *(colour("light", "amount", step) for step in range(STEPS + 1))]
    share = np.nan_to_num(matrix) / end if end > 0 else np.zeros(matrix.shape)
    places = np.where(np.isnan(matrix), 0, 1 + np.rint(STEPS * np.clip(share, 0, 1))).astype(np.uint8)
    times = max(1, DOTS // max(matrix.shape))
    image = Image.fromarray(places.repeat(times, 0).repeat(times, 1), "P")
    image.putpalette(bytes.fromhex("".join(found.removeprefix("#") for found in colours)))
    file = io.BytesIO()
    image.save(file, "PNG", optimize=True)
    return file.getvalue()


def _image(png: bytes, x: float, y: float, width: float, height: float) -> str:
    place = f'x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" preserveAspectRatio="none"'
    return f'<image {place} href="data:image/png;base64,{b64encode(png).decode()}"/>'
