"""The flow of attention as a layered graph: its steps, positions and most important path, as data and in words.

The browser draws it: hovering and picking a path cost no run.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

from components.numbers import percent, plain, signed
from components.widgets import base
from components.widgets.base import Component
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
from engine.heads.readings import HeadReading

HERE = Path(__file__).resolve().parent
NAME = "exegesis_flow_graph"
THRESHOLDS = tuple(round(digit / scale, 4) for scale in (10, 100, 1_000, 10_000) for digit in (7, 5, 3, 2, 1))
"""Choices of the slider for the least share of the prediction that a step must carry."""
SMALLEST_SHARE = THRESHOLDS[-1]
"""Smaller shares are written as less than this."""
READABLE = 60
"""Steps that a person can still follow: the default threshold draws at most so many where there is a choice."""
MAX_STEPS = 400
MAX_FULL_ROWS = 20
"""An input of at most so many positions has a row for each, so that moving the slider moves no row."""
FlowNodeId = tuple[int, int]
"""Depth, counted from where the flow begins, and position."""


@dataclass(frozen=True)
class FlowRow:
    """A row of the drawing. `patch`: which patch of the picture, row by row from 0; None for a token."""

    position: int
    name: str
    special: bool
    patch: int | None


@dataclass(frozen=True)
class FlowNode:
    """A position at a depth: its share of the prediction, and the most important path through it."""

    id: FlowNodeId
    share: float
    path: FlowPath


@dataclass(frozen=True, eq=False)
class FlowGraph:
    """Everything that is drawn. Depths and layers are counted from `start`, the first layer that counts."""

    kind: str
    start: int
    layers: int
    threshold: float
    pruned: PrunedFlow
    rows: tuple[FlowRow, ...]
    nodes: tuple[FlowNode, ...]
    reads: tuple[tuple[int, float], ...]
    """Positions at the top that are drawn, and what share of the prediction each has."""
    best: FlowPath
    special: float
    """Share of the prediction that comes from special tokens, of which `best` begins at none where there are others."""
    label: str
    value: str
    """The probability of the class, or the score of a regression head."""
    grid: tuple[int, int] | None

    @property
    def edges(self) -> tuple[FlowEdge, ...]:
        return self.pruned.edges

    @cached_property
    def row_numbers(self) -> dict[int, int]:
        """The row of each position that has one."""
        return {row.position: number for number, row in enumerate(self.rows)}


def flow_graph(graph: FlowGraph, key: str) -> None:
    """Draw the graph; its most important path is selected first."""
    _component()(key=key, data={**graph_data(graph), "turn": 0})


@cache
def _component() -> Component:
    return base.build_component(NAME, "graph", folder=HERE)


def default_threshold(flow: AttentionFlow, start: int) -> float:
    """The least share at which the drawing can still be read."""
    return finest_threshold(drop_layers_below(flow, start), THRESHOLDS, READABLE)


def build_flow_graph(reading: HeadReading, flow: AttentionFlow, start: int, threshold: float | None) -> FlowGraph:
    """`threshold`: the least share of the prediction that a step must carry; None for one that reads well."""
    visible, features = drop_layers_below(flow, start), reading.explanation.features
    least = default_threshold(flow, start) if threshold is None else threshold
    pruned = prune(visible, least, READABLE if threshold is None else MAX_STEPS)
    paths = StrongestPaths(visible, features if features.size else None)
    best = paths.through(len(visible.weights), int(paths.shares[-1].argmax()))
    ids = sorted({*_edge_ends(pruned.edges), *enumerate(best.positions)})
    nodes = tuple(_build_nodes(visible, paths, ids))
    prediction, origin = reading.explanation.prediction, reading.explanation.provenance
    return FlowGraph(
        kind=flow.kind,
        start=start,
        layers=len(flow.weights),
        threshold=least,
        pruned=pruned,
        rows=tuple(_build_row(reading, position) for position in _row_positions(reading, nodes)),
        nodes=nodes,
        reads=tuple((at, float(flow.reads[at])) for depth, at in ids if depth == len(visible.weights)),
        best=best,
        special=float(visible.nodes[0, reading.special].sum()),
        label=origin.target_label,
        value=(
            signed(prediction.logits[0]) if prediction.regression else percent(prediction.probabilities[origin.target])
        ),
        grid=reading.explanation.grid,
    )


def graph_data(graph: FlowGraph) -> dict[str, object]:
    """The graph as JSON values for the browser. Positions are numbers of rows."""
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
    """The share of the prediction that the drawing shows, in one or two sentences."""
    count, more = len(graph.edges), graph.pruned.left_out
    if not count:
        return (
            f"No step carries {format_share(graph.threshold)} of the prediction: only the most important path is "
            "drawn. Show smaller steps."
        )
    each = "The step drawn carries" if count == 1 else f"The {count:,} steps drawn carry"
    left = f" {more:,} more carry as much but are not drawn." if more else ""
    along = f"along such steps {percent(graph.pruned.carried)} of it comes from the input."
    return f"{each} at least {format_share(graph.threshold)} of the prediction; {along}{left}"


def describe_path(graph: FlowGraph, path: FlowPath) -> str:
    """The path from the input to the prediction, and its share."""
    names = {row.position: row.name for row in graph.rows}
    first, *later = path.positions
    steps = [f"“{names[first]}”"]
    for layer, (before, after) in enumerate(zip(path.positions, later, strict=False), start=graph.start):
        steps += [f"“{names[after]}” (layer {layer})"] * (after != before)
    return f"{' → '.join([*steps, graph.label])}: {format_share(path.share)} of the prediction takes just this way."


def describe_path_start(graph: FlowGraph, path: FlowPath) -> str:
    """The start of a path, to follow its name: a token or patch, or nothing."""
    return "" if _starts_special(graph, path) else f" from a {_unit(graph)}"


def describe_special_share(graph: FlowGraph) -> str:
    """The share of special tokens: paths from them are often larger, and say nothing of the input."""
    if not graph.special:
        return ""
    layer = f" as they are before layer {graph.start}" if graph.start else ""
    choice = "" if _starts_special(graph, graph.best) else f"; the path that is chosen first begins at a {_unit(graph)}"
    return f"{format_share(graph.special)} of the prediction comes from special tokens{layer}{choice}."


def format_share(share: float) -> str:
    """A share in percent: 12.3 %, 0.02 %, < 0.01 %."""
    if share >= SMALLEST_SHARE or share == 0:
        return f"{plain(100 * share)}\u00a0%"
    return f"<\u00a0{plain(100 * SMALLEST_SHARE)}\u00a0%"


def _starts_special(graph: FlowGraph, path: FlowPath) -> bool:
    return graph.rows[graph.row_numbers[path.positions[0]]].special


def _unit(graph: FlowGraph) -> str:
    return "patch" if graph.grid else "token"


def _edge_ends(edges: Iterable[FlowEdge]) -> Iterator[FlowNodeId]:
    for edge in edges:
        yield edge.layer, edge.source
        yield edge.layer + 1, edge.target


def _build_nodes(flow: AttentionFlow, paths: StrongestPaths, ids: Iterable[FlowNodeId]) -> Iterator[FlowNode]:
    """No path from a token or patch leads to a special token of the input: its path begins where it is."""
    unrestricted = None
    for depth, position in ids:
        path = paths.through(depth, position)
        if not path.share:
            unrestricted = unrestricted or StrongestPaths(flow)
            path = unrestricted.through(depth, position)
        yield FlowNode((depth, position), float(flow.nodes[depth, position]), path)


def _row_positions(reading: HeadReading, nodes: Iterable[FlowNode]) -> list[int]:
    """The positions that have a row: all of a short input, else those that any path goes through."""
    count = len(reading.explanation.tokens)
    if count <= MAX_FULL_ROWS and reading.explanation.grid is None:
        return list(range(count))
    return sorted({position for node in nodes for position in node.path.positions})


def _build_row(reading: HeadReading, position: int) -> FlowRow:
    token, features = reading.explanation.tokens[position], reading.explanation.features.tolist()
    if reading.explanation.grid is None:
        return FlowRow(position, f"{position} {token.text}", token.special, None)
    return FlowRow(position, token.text, token.special, None if token.special else features.index(position))


def _path_data(graph: FlowGraph, path: FlowPath) -> list[object]:
    return [[graph.row_numbers[position] for position in path.positions], _round(path.share)]


def _round(share: float) -> float:
    """Three digits are drawn: six keep them from being rounded twice."""
    return float(f"{share:.6g}")
