"""The attention flow as a layered graph: its steps, positions and most important path, as data and in words.

The browser draws it, so hovering and selecting a path cost no run.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from html import escape
from pathlib import Path

from components.export import citation
from components.numbers import percent, plain, signed
from components.palette import PALETTES, STEPS, color
from components.svg import (
    CELL,
    EDGE,
    LINE,
    SMALL,
    SMALLER,
    WIDTH,
    SvgSheet,
    add_sentence,
    clean_xml,
    count_cells,
    svg_document,
    text_element,
)
from components.widgets import base
from components.widgets.base import Component
from engine.format import visible_token
from engine.heads.flow import (
    AttentionFlow,
    FlowEdge,
    FlowPath,
    PrunedFlow,
    StrongestPaths,
    drop_layers_below,
    finest_threshold,
    prune,
)
from engine.result import Explanation
from engine.table_io import escape_cell

NAME = "exegesis_flow_graph"
THRESHOLDS = tuple(round(digit / scale, 4) for scale in (10, 100, 1_000, 10_000) for digit in (7, 5, 3, 2, 1))
"""Choices of the slider for the minimum share of the prediction that a step must carry."""
SMALLEST_SHARE = THRESHOLDS[-1]
"""Smaller shares are displayed as less than this."""
READABLE = 60
"""Number of steps that a person can still follow. The default threshold draws at most this many, if possible."""
MAX_STEPS = 400
MAX_FULL_ROWS = 20
"""An input with at most this many positions has a row for each, so that the slider does not move rows."""
_BOLD = ' font-weight="bold"'
_INK, _GROUND = PALETTES["light"].text, PALETTES["light"].ground
_TEAL = color("light", "amount", STEPS)
_PATH = ((_GROUND, 5.5), (_INK, 2.5))
"""Color and width of the halo under the most important path, and of the path."""
CSV_HEADER = ("layer", "from_position", "from", "to_position", "to", "weight", "flow")
ROW = 22.0
MAX_NAME_CELLS = 18
"""Maximum number of cells of a name."""
MAX_WIDTH, MIN_OPACITY, MAX_RADIUS = 10.0, 0.35, 8.0
"""Width of the largest step, opacity of the smallest, and radius of a node that carries everything; as in the
browser."""
KIND_NAMES = {
    "routes": "Information flow routes",
    "rollout": "Attention rollout",
    "gradient": "Gradient-weighted attention",
}
CITATIONS = {
    "routes": "Ferrando and Voita (2024), Information flow routes: interpreting language models at scale.",
    "rollout": "Abnar and Zuidema (2020), Quantifying attention flow in transformers.",
    "gradient": "Chefer et al. (2021), Generic attention-model explainability, eq. 5, 6; rows divided by their sums.",
}
PRUNED = "Pruned as in Ferrando and Voita (2024), Information flow routes."
FlowNodeId = tuple[int, int]
"""Depth, counted from the start of the flow, and position."""


@dataclass(frozen=True)
class FlowRow:
    """A row of the drawing. `patch`: index of the patch, row by row from 0; None for a token."""

    position: int
    name: str
    special: bool
    patch: int | None


@dataclass(frozen=True)
class FlowNode:
    """A position at a depth, with its share of the prediction and the most important path through it."""

    id: FlowNodeId
    share: float
    path: FlowPath


@dataclass(frozen=True, eq=False)
class FlowGraph:
    """The content of the drawing. Depths and layers are counted from `start`, the first layer of the flow."""

    kind: str
    start: int
    layers: int
    threshold: float
    pruned: PrunedFlow
    rows: tuple[FlowRow, ...]
    nodes: tuple[FlowNode, ...]
    reads: tuple[tuple[int, float], ...]
    """Positions drawn at the top, each with its share of the prediction."""
    best: FlowPath
    special: float
    """Share of the prediction from special tokens. `best` starts at none of them if there are other tokens."""
    label: str
    value: str
    """The probability of the class, or the score of a regression head."""
    grid: tuple[int, int] | None

    @property
    def edges(self) -> tuple[FlowEdge, ...]:
        return self.pruned.edges

    @cached_property
    def row_numbers(self) -> dict[int, int]:
        """The row index of each position that has a row."""
        return {row.position: number for number, row in enumerate(self.rows)}


def flow_graph(graph: FlowGraph, key: str) -> None:
    """Draw the graph, with its most important path selected."""
    _component()(key=key, data={**graph_data(graph), "turn": 0})


@cache
def _component() -> Component:
    return base.build_component(NAME, "flow_graph", folder=Path(__file__).parent)


def default_threshold(flow: AttentionFlow, start: int) -> float:
    """Return the smallest threshold at which the drawing is still readable."""
    return finest_threshold(drop_layers_below(flow, start), THRESHOLDS, READABLE)


def build_flow_graph(
    explanation: Explanation, flow: AttentionFlow, start: int, threshold: float | None, edges: PrunedFlow | None = None
) -> FlowGraph:
    """Build the graph.

    `threshold`: minimum share of the prediction that a step must carry; None for a readable default. `edges`: the edges
    to draw, if they were pruned by another rule.
    """
    visible, features = drop_layers_below(flow, start), explanation.features
    least = default_threshold(flow, start) if threshold is None else threshold
    pruned = edges or prune(visible, least, READABLE if threshold is None else MAX_STEPS)
    paths = StrongestPaths(visible, features if features.size else None)
    best = paths.through(len(visible.weights), int(paths.shares[-1].argmax()))
    ids = sorted({*_edge_ends(pruned.edges), *enumerate(best.positions)})
    nodes = tuple(_build_nodes(visible, paths, ids))
    prediction, origin = explanation.prediction, explanation.provenance
    return FlowGraph(
        kind=flow.kind,
        start=start,
        layers=len(flow.weights),
        threshold=least,
        pruned=pruned,
        rows=tuple(_build_row(explanation, position) for position in _row_positions(explanation, nodes)),
        nodes=nodes,
        reads=tuple((at, float(flow.reads[at])) for depth, at in ids if depth == len(visible.weights)),
        best=best,
        special=float(visible.nodes[0, [token.special for token in explanation.tokens]].sum()),
        label=visible_token(origin.target_label),
        value=(
            signed(prediction.logits[0]) if prediction.regression else percent(prediction.probabilities[origin.target])
        ),
        grid=explanation.grid,
    )


def graph_data(graph: FlowGraph) -> dict[str, object]:
    """Return the graph as JSON values for the browser. Positions are row indices."""
    row = graph.row_numbers
    return {
        "start": graph.start,
        "layers": graph.layers,
        "rows": [[one.name, one.special, one.patch, one.position] for one in graph.rows],
        "nodes": [
            [node.id[0], row[node.id[1]], _round(node.share), _path_data(graph, node.path)] for node in graph.nodes
        ],
        "edges": [
            [edge.layer, row[edge.source], row[edge.target], _round(edge.weight), _round(edge.flow)]
            for edge in graph.edges
        ],
        "reads": [[row[position], _round(share)] for position, share in graph.reads],
        "best": _path_data(graph, graph.best),
        "label": graph.label,
        "sure": graph.value,
        "grid": list(graph.grid) if graph.grid else None,
    }


def describe_carried_share(graph: FlowGraph) -> str:
    """Describe in one or two sentences the share of the prediction that the drawing shows."""
    count, more = len(graph.edges), graph.pruned.left_out
    least = format_share(graph.threshold)
    if graph.kind == "routes":
        if not count:
            return f"No edge from the prediction has an importance of {least}. Lower the threshold to see more."
        left = f" {more:,} more have as much but are not drawn." if more else ""
        each = "The edge drawn has" if count == 1 else f"Each of the {count:,} edges drawn has"
        along = f"paths of such edges carry {percent(graph.pruned.carried)} of the prediction from the input."
        return f"{each} an importance of at least {least} in the sum at its end; {along}{left}"
    if not count:
        return (
            f"No step carries {least} of the prediction, so only the most important path is "
            "drawn. Lower the threshold to see more."
        )
    each = "The step drawn carries" if count == 1 else f"Each of the {count:,} steps drawn carries"
    left = f" {more:,} more carry as much but are not drawn." if more else ""
    along = f"paths of such steps carry {percent(graph.pruned.carried)} of it from the input."
    return f"{each} at least {least} of the prediction; {along}{left}"


def describe_path(graph: FlowGraph, path: FlowPath) -> str:
    """Describe the path from the input to the prediction, and its share."""
    names = {row.position: row.name for row in graph.rows}
    first, *later = path.positions
    steps = [f"“{names[first]}”"]
    for layer, (before, after) in enumerate(zip(path.positions, later, strict=False), start=graph.start):
        steps += [f"“{names[after]}” (layer {layer})"] * (after != before)
    return f"{' → '.join([*steps, graph.label])}: {format_share(path.share)} of the prediction takes exactly this path."


def describe_path_start(graph: FlowGraph, path: FlowPath) -> str:
    """Describe where a path starts, to be appended to its name: at a token or patch; empty for a special token."""
    return "" if _starts_special(graph, path) else f" from a {_unit(graph)}"


def describe_special_share(graph: FlowGraph) -> str:
    """Describe the share of special tokens: paths from them are often larger, and say nothing about the input."""
    if not graph.special:
        return ""
    layer = f" as they are before layer {graph.start}" if graph.start else ""
    choice = "" if _starts_special(graph, graph.best) else f"; the most important path shown starts at a {_unit(graph)}"
    return f"{format_share(graph.special)} of the prediction comes from special tokens{layer}{choice}."


def format_share(share: float) -> str:
    """Format a share in percent: 12.3%, 0.02%, < 0.01%."""
    if share >= SMALLEST_SHARE or share == 0:
        return f"{plain(100 * share)}%"
    return f"<\u00a0{plain(100 * SMALLEST_SHARE)}%"


def _starts_special(graph: FlowGraph, path: FlowPath) -> bool:
    return graph.rows[graph.row_numbers[path.positions[0]]].special


def _unit(graph: FlowGraph) -> str:
    return "patch" if graph.grid else "token"


def _edge_ends(edges: Iterable[FlowEdge]) -> Iterator[FlowNodeId]:
    for edge in edges:
        yield edge.layer, edge.source
        yield edge.layer + 1, edge.target


def _build_nodes(flow: AttentionFlow, paths: StrongestPaths, ids: Iterable[FlowNodeId]) -> Iterator[FlowNode]:
    """Yield the nodes. No path from a token or patch leads to a special token of the input; its path starts there."""
    unrestricted = None
    for depth, position in ids:
        path = paths.through(depth, position)
        if not path.share:
            unrestricted = unrestricted or StrongestPaths(flow)
            path = unrestricted.through(depth, position)
        yield FlowNode((depth, position), float(flow.nodes[depth, position]), path)


def _row_positions(explanation: Explanation, nodes: Iterable[FlowNode]) -> list[int]:
    """Return the positions that have a row: all of a short input, else those that any path passes through."""
    count = len(explanation.tokens)
    if count <= MAX_FULL_ROWS and explanation.grid is None:
        return list(range(count))
    return sorted({position for node in nodes for position in node.path.positions})


def _build_row(explanation: Explanation, position: int) -> FlowRow:
    token, features = explanation.tokens[position], explanation.features.tolist()
    if explanation.grid is None:
        return FlowRow(position, f"{position} {token.text}", token.special, None)
    return FlowRow(position, token.text, token.special, None if token.special else features.index(position))


def _path_data(graph: FlowGraph, path: FlowPath) -> list[object]:
    return [[graph.row_numbers[position] for position in path.positions], _round(path.share)]


def _round(share: float) -> float:
    """Round to six digits; three are displayed, so this avoids rounding twice."""
    return float(f"{share:.6g}")


def flow_svg(graph: FlowGraph, explanation: Explanation, settings: str = "") -> str:
    """Return the drawing as SVG, in the light theme, with text and the most important path on top.

    `settings`: the flow's parameters.
    """
    sheet = SvgSheet()
    sheet.parts.append(text_element(f"Attention flow to {graph.label} {graph.value}", EDGE, sheet.y + 18, _BOLD))
    sheet.y += LINE
    for line in (
        f"{KIND_NAMES[graph.kind]}{settings}.",
        describe_carried_share(graph),
        f"Black: the most important path{describe_path_start(graph, graph.best)}: {describe_path(graph, graph.best)}",
        *filter(None, (describe_special_share(graph),)),
    ):
        add_sentence(sheet, line)
    _FlowDrawing(graph, sheet.y + LINE).draw(sheet)
    for line in (citation(explanation, None), CITATIONS[graph.kind], PRUNED):
        add_sentence(sheet, line)
    return svg_document(sheet, dark=False)


def flow_csv(graph: FlowGraph) -> str:
    """Return the drawn steps as CSV, the largest flow first, with weight and flow in full precision."""
    names = {row.position: escape_cell(row.name) for row in graph.rows}
    file = io.StringIO()
    table = csv.writer(file, lineterminator="\n")
    table.writerow(CSV_HEADER)
    for edge in graph.edges:
        ends = (edge.source, names[edge.source], edge.target, names[edge.target])
        table.writerow([graph.start + edge.layer, *ends, repr(edge.weight), repr(edge.flow)])
    return file.getvalue()


class _FlowDrawing:
    """The drawing of the graph on a sheet: its coordinates and its parts."""

    def __init__(self, graph: FlowGraph, top: float) -> None:
        self.graph, self.top, self.depths = graph, top, graph.layers - graph.start
        self.names = [_cut(row.name) for row in graph.rows]
        self.left = EDGE + SMALL * CELL * max(map(count_cells, self.names)) + 2 * MAX_RADIUS
        self.gap = min(120.0, (WIDTH - EDGE - MAX_RADIUS - self.left) / (self.depths + 1))
        self.most = max([*(edge.flow for edge in graph.edges), *(share for _, share in graph.reads)])

    def draw(self, sheet: SvgSheet) -> None:
        sheet.parts += [self._layer(at) for at in range(self.depths)]
        sheet.parts += [text_element(name, EDGE, self.y(at) + 4, SMALLER) for at, name in enumerate(self.names)]
        sheet.parts += [*self._steps(), *self._path_lines(self.graph.best), *self._nodes()]
        sheet.y = self.top + ROW * len(self.names) + LINE / 2

    def x(self, depth: int | float) -> float:
        return self.left + depth * self.gap

    def y(self, row: int | float) -> float:
        return self.top + (row + 0.5) * ROW

    @property
    def end(self) -> int | float:
        """The row of the prediction: the mean row of the positions that it reads, weighted by their shares."""
        total = sum(share for _, share in self.graph.reads)
        return sum(self.graph.row_numbers[at] * share / total for at, share in self.graph.reads)

    def _layer(self, at: int) -> str:
        middle = f'{SMALLER} text-anchor="middle"'
        return text_element(f"{self.graph.start + at}", self.x(at + 0.5), self.top - 4, middle, "muted")

    def _steps(self) -> list[str]:
        row = self.graph.row_numbers
        steps = [
            self._step(edge.layer, row[edge.source], row[edge.target], edge.flow, f", weight {plain(edge.weight)}")
            for edge in reversed(self.graph.edges)
        ]
        return steps + [self._step(self.depths, row[at], self.end, share) for at, share in self.graph.reads]

    def _step(self, depth: int, source: int | float, target: int | float, flow: float, more: str = "") -> str:
        share = (flow / self.most) ** 0.5
        width, opacity = max(1.0, MAX_WIDTH * share), MIN_OPACITY + (1 - MIN_OPACITY) * share
        style = f'stroke-width="{width:.3g}" stroke-opacity="{opacity:.3g}"'
        title = escape(f"{format_share(flow)} of the prediction{more}")
        line = f'<path d="{self._curve(depth, source, target)}" fill="none" stroke="{_TEAL}" {style}/>'
        return f"<g><title>{title}</title>{line}</g>"

    def _curve(self, depth: int, source: int | float, target: int | float) -> str:
        middle = self.x(depth + 0.5)
        ends = f"{middle:g} {self.y(target):g} {self.x(depth + 1):g} {self.y(target):g}"
        return f"M{self.x(depth):g} {self.y(source):g}C{middle:g} {self.y(source):g} {ends}"

    def _path_lines(self, path: FlowPath) -> list[str]:
        rows = [*(self.graph.row_numbers[at] for at in path.positions), self.end]
        curve = "".join(self._curve(depth, *rows[depth : depth + 2]) for depth in range(len(path.positions)))
        return [f'<path d="{curve}" fill="none" stroke="{ink}" stroke-width="{wide}"/>' for ink, wide in _PATH]

    def _nodes(self) -> list[str]:
        on = set(enumerate(self.graph.best.positions))
        return [
            self._node(node.id[0], self.graph.row_numbers[node.id[1]], node.share, node.id in on)
            for node in self.graph.nodes
        ] + [self._node(self.depths + 1, self.end, 1.0, True)]

    def _node(self, depth: int, row: int | float, share: float, on: bool) -> str:
        size = 2.5 + (MAX_RADIUS - 2.5) * share**0.5
        fill, line = (_INK, _INK) if on else (_GROUND, _TEAL)
        place = f'cx="{self.x(depth):g}" cy="{self.y(row):g}" r="{size:.3g}"'
        title = f"<title>{escape(format_share(share))} of the prediction</title>"
        return f'<circle {place} fill="{fill}" stroke="{line}" stroke-width="2">{title}</circle>'


def _cut(name: str) -> str:
    cleaned = clean_xml(name)
    return cleaned if count_cells(cleaned) <= MAX_NAME_CELLS else f"{cleaned[: MAX_NAME_CELLS - 1]}…"
