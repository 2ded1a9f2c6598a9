"""The flow of attention as files: the picture of what is drawn as SVG, its steps as CSV."""

from __future__ import annotations

import csv
import io
from html import escape

from components.citing import origin_of
from components.flow.told import FlowGraph, begin_words, carried_words, path_words, share_words, special_words
from components.numbers import plain
from components.palette import PALETTES, STEPS, colour
from components.svg_sheet import CELL, EDGE, LINE, SMALL, SMALLER, WIDTH, Sheet, cells, clean, sentence, whole, words
from engine.heads.flow import FlowPath
from engine.result import Explanation
from engine.table_io import escape_cell

_BOLD = ' font-weight="bold"'
_INK, _GROUND = PALETTES["light"].text, PALETTES["light"].ground
_TEAL = colour("light", "amount", STEPS)
_PATH = ((_GROUND, 5.5), (_INK, 2.5))
"""Ground under the most important path, and the path."""
HEAD = ("layer", "from_position", "from", "to_position", "to", "weight", "flow")
ROW = 22.0
LONGEST = 18
"""Cells that a name takes at most."""
WIDEST, FAINTEST, LARGEST = 10.0, 0.35, 8.0
"""As in the browser: the line of the step that carries most, how opaque the least is, a node that all runs through."""
KIND_NAMES = {"rollout": "Attention rollout", "gradient": "Gradient-weighted attention"}
CITATIONS = {
    "rollout": "Abnar and Zuidema (2020), Quantifying attention flow in transformers.",
    "gradient": "Chefer et al. (2021), Generic attention-model explainability, eq. 5, 6; rows divided by their sums.",
}
PRUNED = "Pruned as Ferrando and Voita (2024), Information flow routes, do."


def flow_svg(graph: FlowGraph, made: Explanation, settings: str = "") -> str:
    """What is drawn, its most important path on top, with its words; light. `settings`: how the flow was made."""
    sheet = Sheet()
    sheet.parts.append(words(f"Flow of attention to {graph.label} {graph.sure}", EDGE, sheet.y + 18, _BOLD))
    sheet.y += LINE
    for said in (
        f"{KIND_NAMES[graph.kind]}{settings}.",
        carried_words(graph),
        f"Black, the most important path{begin_words(graph, graph.best)}: {path_words(graph, graph.best)}",
        *filter(None, (special_words(graph),)),
    ):
        sentence(sheet, said)
    _Drawing(graph, sheet.y + LINE).draw(sheet)
    for said in (origin_of(made), CITATIONS[graph.kind], PRUNED):
        sentence(sheet, said)
    return whole(sheet, dark=False)


def flow_csv(graph: FlowGraph) -> str:
    """The steps that are drawn, the largest flow first; weight and flow in full."""
    names = {row.at: escape_cell(row.name) for row in graph.rows}
    file = io.StringIO()
    table = csv.writer(file, lineterminator="\n")
    table.writerow(HEAD)
    for edge in graph.edges:
        ends = (edge.source, names[edge.source], edge.target, names[edge.target])
        table.writerow([graph.start + edge.layer, *ends, repr(edge.weight), repr(edge.flow)])
    return file.getvalue()


class _Drawing:
    """The graph on a sheet: where everything stands, then each part."""

    def __init__(self, graph: FlowGraph, top: float) -> None:
        self.graph, self.top, self.depths = graph, top, graph.layers - graph.start
        self.names = [_cut(row.name) for row in graph.rows]
        self.left = EDGE + SMALL * CELL * max(map(cells, self.names)) + 2 * LARGEST
        self.gap = min(120.0, (WIDTH - EDGE - LARGEST - self.left) / (self.depths + 1))
        self.most = max([*(edge.flow for edge in graph.edges), *(share for _, share in graph.reads)])

    def draw(self, sheet: Sheet) -> None:
        sheet.parts += [self._layer(at) for at in range(self.depths)]
        sheet.parts += [words(name, EDGE, self.y(at) + 4, SMALLER) for at, name in enumerate(self.names)]
        sheet.parts += [*self._steps(), *self._way(self.graph.best), *self._nodes()]
        sheet.y = self.top + ROW * len(self.names) + LINE / 2

    def x(self, depth: int | float) -> float:
        return self.left + depth * self.gap

    def y(self, row: int | float) -> float:
        return self.top + (row + 0.5) * ROW

    @property
    def end(self) -> int | float:
        """The row of the prediction: among the positions that it reads."""
        total = sum(share for _, share in self.graph.reads)
        return sum(self.graph.places[at] * share / total for at, share in self.graph.reads)

    def _layer(self, at: int) -> str:
        middle = f'{SMALLER} text-anchor="middle"'
        return words(f"{self.graph.start + at}", self.x(at + 0.5), self.top - 4, middle, "muted")

    def _steps(self) -> list[str]:
        place = self.graph.places
        drawn = [
            self._step(edge.layer, place[edge.source], place[edge.target], edge.flow, f", weight {plain(edge.weight)}")
            for edge in reversed(self.graph.edges)
        ]
        return drawn + [self._step(self.depths, place[at], self.end, share) for at, share in self.graph.reads]

    def _step(self, depth: int, source: int | float, target: int | float, flow: float, more: str = "") -> str:
        share = (flow / self.most) ** 0.5
        look = f'stroke-width="{max(1.0, WIDEST * share):.3g}" stroke-opacity="{FAINTEST + (1 - FAINTEST) * share:.3g}"'
        said = escape(f"{share_words(flow)} of the prediction{more}")
        line = f'<path d="{self._curve(depth, source, target)}" fill="none" stroke="{_TEAL}" {look}/>'
        return f"<g><title>{said}</title>{line}</g>"

    def _curve(self, depth: int, source: int | float, target: int | float) -> str:
        middle = self.x(depth + 0.5)
        ends = f"{middle:g} {self.y(target):g} {self.x(depth + 1):g} {self.y(target):g}"
        return f"M{self.x(depth):g} {self.y(source):g}C{middle:g} {self.y(source):g} {ends}"

    def _way(self, path: FlowPath) -> list[str]:
        rows = [*(self.graph.places[at] for at in path.positions), self.end]
        way = "".join(self._curve(depth, *rows[depth : depth + 2]) for depth in range(len(path.positions)))
        return [f'<path d="{way}" fill="none" stroke="{ink}" stroke-width="{wide}"/>' for ink, wide in _PATH]

    def _nodes(self) -> list[str]:
        on = set(enumerate(self.graph.best.positions))
        return [
            self._node(node.spot[0], self.graph.places[node.spot[1]], node.share, node.spot in on)
            for node in self.graph.nodes
        ] + [self._node(self.depths + 1, self.end, 1.0, True)]

    def _node(self, depth: int, row: int | float, share: float, on: bool) -> str:
        size = 2.5 + (LARGEST - 2.5) * share**0.5
        fill, line = (_INK, _INK) if on else (_GROUND, _TEAL)
        place = f'cx="{self.x(depth):g}" cy="{self.y(row):g}" r="{size:.3g}"'
        said = f"<title>{escape(share_words(share))} of the prediction</title>"
        return f'<circle {place} fill="{fill}" stroke="{line}" stroke-width="2">{said}</circle>'


def _cut(name: str) -> str:
    cleaned = clean(name)
    return cleaned if cells(cleaned) <= LONGEST else f"{cleaned[: LONGEST - 1]}…"
