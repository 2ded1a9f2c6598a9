"""Files of the Attention page: scores of all heads, one head's matrix, all attention; and the commands for them."""

from __future__ import annotations

import json
import math
from base64 import b64encode
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from html import escape

import numpy as np
import safetensors.numpy
from jaxtyping import Float
from PIL import Image

from components.attention.state import AttentionState
from components.export import (
    citation,
    citation_html,
    command_html,
    command_line,
    input_arguments,
    run_arguments,
    standalone_page,
    target_arguments,
)
from components.method_row import explained_name
from components.numbers import percent, plain, signed
from components.palette import PALETTES, STEPS, Side, color, step_of
from components.prediction import PROBE, prediction_html
from components.svg import (
    CELL,
    EDGE,
    LINE,
    SMALL,
    SMALLER,
    WIDTH,
    SvgSheet,
    add_scale_bar,
    add_sentence,
    clean_xml,
    count_cells,
    svg_document,
    text_element,
)
from components.widgets.attention_board import (
    Head,
    HeadScoreMap,
    describe_view,
    feature_maps,
    head_name,
    query_position,
    select_matrix,
    selected_head,
)
from components.widgets.patch_map import PatchMap, png_file
from components.widgets.patch_map.png import overlay_png
from engine.format import visible_token
from engine.heads.matrices import MatrixSelection
from engine.heads.readings import (
    CAUTION,
    DEFAULT_SCORES,
    HeadReading,
    HeadTable,
    HeadTableQuery,
    head_table,
    head_table_to_json,
)
from engine.heads.scores import AGREEMENT, OFF
from engine.registry import explainer
from engine.request import Picture, Prompt
from engine.result import Explanation
from engine.table_io import to_csv
from engine.vision.picture import read_view

AXES = "layer head query key"
ABOUT = "Probabilities in half precision, layers and heads from 0; NaN where a query may not attend."
CONTENT_WIDTH = WIDTH - 2 * EDGE
MAX_SCORE_SIDE, MAX_CELL_SIDE, MAP_SIDE = 34.0, 26.0, 448.0
"""Sides in pixels: maximum of a cell of the score map and of a matrix, and that of a picture under its map."""
MAX_NAME_CELLS = 22
"""Maximum width of a token's name, in character cells."""
MIN_LABEL_DISTANCE = 12.0
"""Smallest distance between two names, in pixels."""
MATRIX_PIXELS = 900
"""Approximate side of a matrix in pixels, so that viewers do not enlarge it, which may blur it."""


@dataclass(frozen=True, eq=False)
class HeadsExport:
    """The content of the files: the page's state, its reading, and the score shown (None if there is none)."""

    state: AttentionState
    reading: HeadReading
    scores: HeadScoreMap | None

    @property
    def explanation(self) -> Explanation:
        """The explanation with the tokens, the prediction and the provenance."""
        return self.reading.explanation

    @property
    def head(self) -> Head:
        """The selected head."""
        return selected_head(self.state.board, self.scores, self.reading)

    @cached_property
    def selection(self) -> MatrixSelection:
        """The positions that matrices show. If they differ from the chosen ones, the page says so next to the board."""
        return select_matrix(self.reading, self.state.board)[0]

    @property
    def query(self) -> HeadTableQuery:
        """The scores of the table: the score shown, then those of the reading.

        A costlier score is included only if it is shown.
        """
        options, first = self.state.board, () if self.scores is None else (self.scores.id,)
        names = tuple(dict.fromkeys((*first, *(name for name in DEFAULT_SCORES if name != OFF))))
        if AGREEMENT not in names:
            return HeadTableQuery(names)
        position = query_position(self.reading, options) if options.view == "query" else None
        return HeadTableQuery(names, options.against, position)

    @cached_property
    def table(self) -> HeadTable:
        """The scores of all heads."""
        return head_table(self.state.request(PROBE), self.query, reading=self.reading)

    @property
    def matrix(self) -> np.ndarray:
        """The selected head's visible matrix: `[row column]`, NaN where a query may not attend."""
        layer, head = self.head
        return self.reading.attention[layer, head][np.ix_(self.selection.rows, self.selection.columns)].astype(float)


def scores_csv(export: HeadsExport) -> str:
    """Return the scores as CSV: one row per head, one column per score; a score that a head does not have is empty.

    `scale`: the factor of the head's output.
    """
    table, scales = export.table, export.state.switched.grid(*export.reading.slope.shape)
    rows = (
        {
            "layer": head[0],
            "head": head[1],
            "scale": float(scales[head]),
            **{name: _number(column[head]) for name, column in table.columns.items()},
            **({} if table.flipped is None else {"flipped": "true" if table.flipped[head] else "false"}),
        }
        for head in table.heads
    )
    return to_csv(rows, "\r\n")


def matrix_csv(export: HeadsExport) -> str:
    """Return the selected head's matrix as CSV: queries in rows, keys in columns, named like `3 good`.

    A cell is empty if the query may not attend to the key.
    """
    selection = export.selection
    names = [position_name(export.explanation, at) for at in range(len(export.explanation.tokens))]
    keys = [names[at] for at in selection.columns]
    rows = (
        {"query": names[at], **dict(zip(keys, map(_number, row), strict=True))}
        for at, row in zip(selection.rows, export.matrix.tolist(), strict=True)
    )
    return to_csv(rows, "\r\n")


def scores_json(export: HeadsExport) -> str:
    """The output of `exegesis heads --json`."""
    return json.dumps(head_table_to_json(export.table), indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def attention_file(export: HeadsExport) -> bytes:
    """Return the attention of all heads as safetensors, by layer, head, query and key, with its provenance."""
    explanation, origin = export.explanation, export.explanation.provenance
    metadata = {
        "about": ABOUT, "axes": AXES, "model": origin.model, "revision": origin.revision,
        "target": origin.target_label, "tokens": json.dumps([token.text for token in explanation.tokens]),
        "grid": json.dumps(explanation.grid), "heads": json.dumps([list(head) for head in origin.heads]),
    }  # fmt: skip
    if isinstance(export.state.input, Prompt) and export.state.input.contrast is not None:
        metadata["contrast"] = export.state.input.contrast
    return safetensors.numpy.save(
        {"attention": np.ascontiguousarray(export.reading.attention, dtype="<f2")}, metadata=metadata
    )


def heads_command(export: HeadsExport) -> str:
    """Return the command that computes the same scores."""
    query = export.query
    against = ["--against", query.against] if query.against else []
    against += [] if query.query is None else ["--query", str(query.query)]
    seed = export.state.seed if query.against else 0
    return _command(export, ["heads"], ["--score", ",".join(query.scores), *against], seed)


def explain_command(export: HeadsExport) -> str:
    """Return the command that computes the attribution with the switched heads."""
    return _command(export, ["explain", "--method", export.state.method], [], export.state.seed)


def _command(export: HeadsExport, name: list[str], options: list[str], seed: int) -> str:
    explanation, focus = export.explanation, export.state.focus
    command, *method = name
    arguments = [command, "--model", explanation.provenance.model, *method, *input_arguments(focus)]
    arguments += [
        *target_arguments(explanation, focus.input),
        *options,
        *run_arguments(explanation.provenance, seed),
        "--json",
    ]
    return command_line(arguments, focus.input)


def position_name(explanation: Explanation, position: int) -> str:
    """Return a token preceded by its position, as the page names it: `3 good`."""
    return f"{position} {explanation.tokens[position].text}"


def references(export: HeadsExport) -> Iterator[str]:
    """Yield the references of the score shown and of the attribution that it is compared with, without the caution."""
    if export.scores is not None:
        yield f"{export.scores.title}: {export.scores.citation.rstrip('.')}."
    if export.query.against:
        method = explainer(export.query.against, export.state.kind)
        yield f"{method.title} ({method.id}, version {method.version}): {method.citation.rstrip('.')}."


def _number(value: float) -> float | None:
    """Return the value, or None for NaN."""
    return None if np.isnan(value) else float(value)


def svg(export: HeadsExport) -> str:
    """Return an SVG of all heads' scores and the selected head, with scales and references, in the light theme."""
    sheet = SvgSheet()
    _title(sheet, f"Attention heads of {export.explanation.provenance.model}", _describe_prediction(export))
    if export.scores is not None:
        _score_map(sheet, export, export.scores)
    _selected_head(sheet, export)
    for line in _citations(export):
        add_sentence(sheet, line)
    return svg_document(sheet, dark=False)


def html(export: HeadsExport) -> str:
    """Return the prediction and the figure as one HTML file without scripts or external resources, light theme."""
    explanation = export.explanation
    _, _, figure = svg(export).partition("?>\n")
    commands = [heads_command(export), *([explain_command(export)] if export.state.switched else [])]
    repeat = "" if export.state.input is None else command_html(export.state.input, *commands)
    sections = (
        prediction_html(explanation.prediction, explanation.provenance.target),
        figure,
        f"<h2>Cite this</h2>{cite_html(export)}{repeat}",
    )
    return standalone_page(
        f"Attention heads of {explanation.provenance.model}", sections, "svg{max-width:100%;height:auto}", "light"
    )


def cite_html(export: HeadsExport) -> str:
    """The citation as HTML."""
    first, *rest = _citations(export)
    return citation_html(first, rest)


def _citations(export: HeadsExport) -> list[str]:
    """Product and model, the source of the score, and the caution."""
    return [citation(export.explanation, export.state.input), *references(export), CAUTION]


def _title(sheet: SvgSheet, title: str, *lines: str) -> None:
    sheet.parts.append(text_element(title, EDGE, sheet.y + 18, ' font-weight="bold"'))
    sheet.y += LINE
    for line in lines:
        add_sentence(sheet, line)
    sheet.y += 6


def _describe_prediction(export: HeadsExport) -> str:
    prediction = export.explanation.prediction
    if prediction.regression:
        return f"Score: {signed(prediction.logits[0])}."
    predicted, explained = visible_token(prediction.label), explained_name(export.explanation, export.state.input)
    text = f"Predicted: {predicted}, {percent(prediction.probabilities[prediction.index])}."
    return text if explained == predicted else f"{text} Explained: {explained}."


def _score_map(sheet: SvgSheet, export: HeadsExport, scores: HeadScoreMap) -> None:
    """Draw the score map: layers in rows, heads in columns, and a frame around the selected head."""
    _title(sheet, f"{scores.title} ({scores.unit})", scores.words)
    (layers, heads), left = scores.values.shape, EDGE + 4 * CELL
    side = min(MAX_SCORE_SIDE, (CONTENT_WIDTH - 4 * CELL) / heads)
    end = float(np.nan_to_num(np.abs(scores.values)).max())
    for head in range(heads):
        sheet.parts.append(
            text_element(
                str(head), left + (head + 0.5) * side, sheet.y + 12, f'{SMALLER} text-anchor="middle"', "muted"
            )
        )
    sheet.y += 18
    for layer in range(layers):
        sheet.parts.append(
            text_element(str(layer), left - CELL, sheet.y + side / 2 + 4, f'{SMALLER} text-anchor="end"', "muted")
        )
        sheet.parts += [
            _score_cell(scores, (layer, head), left + head * side, sheet.y, side, end) for head in range(heads)
        ]
        if export.head[0] == layer:
            sheet.parts.append(_frame(left + export.head[1] * side, sheet.y, side, side, "text", 2))
        sheet.y += side
    ends = f"{signed(-end)} to {signed(end)}" if scores.signed else f"0 to {plain(end)}"
    legend = f"{ends} {scores.unit}; rows: layers, columns: heads" if end else "All scores are zero"
    add_scale_bar(sheet, legend, None if not end else "signed" if scores.signed else "amount")


def _score_cell(scores: HeadScoreMap, head: tuple[int, int], x: float, y: float, side: float, end: float) -> str:
    value = float(scores.values[head])
    missing = math.isnan(value)
    kind: Side = "amount" if not scores.signed else "for" if value > 0 else "against"
    fill = PALETTES["light"].special if missing else color("light", kind, step_of(value, end))
    number = "no value" if missing else signed(value) if scores.signed else plain(value)
    box = f'<rect x="{x + 1:g}" y="{y + 1:g}" width="{side - 2:g}" height="{side - 2:g}" fill="{fill}"/>'
    return f"<g><title>{escape(f'{head_name(head)}: {number}')}</title>{box}</g>"


def _frame(x: float, y: float, width: float, height: float, ink: str, stroke: int) -> str:
    place = f'x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}"'
    return f'<rect {place} fill="none" stroke="{getattr(PALETTES["light"], ink)}" stroke-width="{stroke}"/>'


def _selected_head(sheet: SvgSheet, export: HeadsExport) -> None:
    """Draw the selected head as a map over the picture or as a matrix."""
    name, options, example = head_name(export.head), export.state.board, export.state.input
    if isinstance(example, Picture) and options.detail == "overlay":
        view = describe_view(export.reading, options)
        _title(sheet, f"Head {name}", f"{view[:1].upper()}{view[1:]}.")  # not `capitalize`: it would write “[cls]”
        _overlay(sheet, export, example)
        return
    _title(
        sheet, f"Head {name}", " ".join(filter(None, ("Rows are queries, columns are keys.", export.selection.note)))
    )
    _matrix(sheet, export)


def _overlay(sheet: SvgSheet, export: HeadsExport, picture: Picture) -> None:
    maps = np.nan_to_num(feature_maps(export.reading, export.state.board))
    end = float(maps.max() if export.state.board.scale == "shared" else maps[export.head].max())
    view = PatchMap(maps[export.head].reshape(export.explanation.grid or ()), False, "", end=end)
    pixels = read_view(export.explanation.provenance.model).transform(picture.pixels)
    height = MAP_SIDE * pixels.shape[0] / pixels.shape[1]
    sheet.parts.append(_image(overlay_png(pixels, view, "light"), EDGE, sheet.y, MAP_SIDE, height))
    sheet.y += height
    add_scale_bar(sheet, f"0 to {plain(end)}", "amount")


def _matrix(sheet: SvgSheet, export: HeadsExport) -> None:
    matrix, part = export.matrix, export.selection
    end = _end(export, matrix)
    rows, columns = ([_label(export, at) for at in places] for places in (part.rows, part.columns))
    left, top = (SMALL * CELL * max(map(count_cells, names)) + 8 for names in (rows, columns))
    side = min(MAX_CELL_SIDE, (CONTENT_WIDTH - left) / max(matrix.shape))
    x, y = EDGE + left, sheet.y + top
    sheet.parts += _names(rows, x - 6, y, side, upwards=False)
    sheet.parts += _names(columns, x, y - 6, side, upwards=True)
    sheet.parts.append(_image(_matrix_png(matrix, end), x, y, side * len(columns), side * len(rows)))
    sheet.parts.append(_frame(x, y, side * len(columns), side * len(rows), "line", 1))
    sheet.y = y + side * len(rows)
    masked = "; gray: masked" if np.isnan(matrix).any() else ""
    add_scale_bar(sheet, f"0 to {plain(end)}{masked}", "amount")


def _end(export: HeadsExport, matrix: Float[np.ndarray, "row column"]) -> float:
    """Return the end of the color scale: the largest value of the head, or of all heads."""
    if export.state.board.scale == "own":
        return float(np.nan_to_num(matrix).max())
    rows, columns = np.ix_(export.selection.rows, export.selection.columns)
    return max(float(np.nan_to_num(layer[:, rows, columns]).max()) for layer in export.reading.attention)


def _label(export: HeadsExport, position: int) -> str:
    name = clean_xml(position_name(export.explanation, position))
    if count_cells(name) <= MAX_NAME_CELLS:
        return name
    return next(f"{name[:end]}…" for end in range(MAX_NAME_CELLS, 0, -1) if count_cells(name[:end]) < MAX_NAME_CELLS)


def _names(names: Sequence[str], x: float, y: float, side: float, upwards: bool) -> list[str]:
    """Draw as many labels as fit, down the left edge or, turned upward, along the top."""
    labels = []
    for at in range(0, len(names), math.ceil(MIN_LABEL_DISTANCE / side)):
        middle = (at + 0.5) * side + 4
        right, down = (x + middle, y) if upwards else (x, y + middle)
        turned = f' transform="rotate(-90 {right:g} {down:g})"' if upwards else ' text-anchor="end"'
        length = f' textLength="{SMALL * CELL * count_cells(names[at]):g}" lengthAdjust="spacingAndGlyphs"'
        labels.append(text_element(names[at], right, down, f"{SMALLER}{length}{turned}"))
    return labels


def _matrix_png(matrix: Float[np.ndarray, "row column"], end: float) -> bytes:
    """Draw each cell as a square of pixels in its color, gray if the query may not attend to the key."""
    colors = [PALETTES["light"].line, *(color("light", "amount", step) for step in range(STEPS + 1))]
    share = np.nan_to_num(matrix) / end if end > 0 else np.zeros(matrix.shape)
    places = np.where(np.isnan(matrix), 0, 1 + np.rint(STEPS * np.clip(share, 0, 1))).astype(np.uint8)
    times = max(1, MATRIX_PIXELS // max(matrix.shape))
    image = Image.fromarray(places.repeat(times, 0).repeat(times, 1), "P")
    image.putpalette(bytes.fromhex("".join(one.removeprefix("#") for one in colors)))
    return png_file(image)


def _image(png: bytes, x: float, y: float, width: float, height: float) -> str:
    place = f'x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" preserveAspectRatio="none"'
    return f'<image {place} href="data:image/png;base64,{b64encode(png).decode()}"/>'
