"""The flow graph as files: the drawing as SVG, its steps as CSV."""

from __future__ import annotations

import csv
import io
from html import escape

from components.export import citation
from components.numbers import plain
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
from components.widgets.flow_graph.graph import (
    FlowGraph,
    describe_carried_share,
    describe_path,
    describe_path_start,
    describe_special_share,
    format_share,
)
from engine.heads.flow import FlowPath
from engine.result import Explanation
from engine.table_io import escape_cell

_BOLD = ' font-weight="bold"'
_INK, _GROUND = PALETTES["light"].text, PALETTES["light"].ground
_TEAL = color("light", "amount", STEPS)
_PATH = ((_GROUND, 5.5), (_INK, 2.5))
"""Ground under the most important path, and the path."""
CSV_HEADER = ("layer", "from_position", "from", "to_position", "to", "weight", "flow")
ROW = 22.0
MAX_NAME_CELLS = 18
"""Cells that a name takes at most."""
MAX_WIDTH, MIN_OPACITY, MAX_RADIUS = 10.0, 0.35, 8.0
"""As in the browser: the line of the step that carries most, how opaque the least is, a node that all runs through."""
KIND_NAMES = {"rollout": "Attention rollout", "gradient": "Gradient-weighted attention"}
CITATIONS = {
    "rollout": "Abnar and Zuidema (2020), Quantifying attention flow in transformers.",
    "gradient": "Chefer et al. (2021), Generic attention-model explainability, eq. 5, 6; rows divided by their sums.",
}
PRUNED = "Pruned as Ferrando and Voita (2024), Information flow routes, do."


def flow_svg(graph: FlowGraph, explanation: Explanation, settings: str = "") -> str:
    """The drawing as SVG, its most important path on top, with its words; light. `settings`: the flow's parameters."""
    sheet = SvgSheet()
    sheet.parts.append(text_element(f"Flow of attention to {graph.label} {graph.value}", EDGE, sheet.y + 18, _BOLD))
    sheet.y += LINE
    for line in (
        f"{KIND_NAMES[graph.kind]}{settings}.",
        describe_carried_share(graph),
        f"Black, the most important path{describe_path_start(graph, graph.best)}: {describe_path(graph, graph.best)}",
        *filter(None, (describe_special_share(graph),)),
    ):
        add_sentence(sheet, line)
    _FlowDrawing(graph, sheet.y + LINE).draw(sheet)
    for line in (citation(explanation), CITATIONS[graph.kind], PRUNED):
        add_sentence(sheet, line)
    return svg_document(sheet, dark=False)


def flow_csv(graph: FlowGraph) -> str:
    """The drawn steps as CSV, the largest flow first; weight and flow in full."""
    names = {row.position: escape_cell(row.name) for row in graph.rows}
    file = io.StringIO()
    table = csv.writer(file, lineterminator="\n")
    table.writerow(CSV_HEADER)
    for edge in graph.edges:
        ends = (edge.source, names[edge.source], edge.target, names[edge.target])
        table.writerow([graph.start + edge.layer, *ends, repr(edge.weight), repr(edge.flow)])
    return file.getvalue()


class _FlowDrawing:
    """The graph on a sheet: coordinates, then each part."""

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
        """The row of the prediction: among the positions that it reads."""
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
