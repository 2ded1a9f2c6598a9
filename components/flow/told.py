"""The flow of attention as it is drawn: which steps, which positions, which path, in plain values and in words."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

from components.numbers import percent, plain, signed
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

Told = dict[str, object]
STEPS = tuple(round(digit / scale, 4) for scale in (10, 100, 1_000, 10_000) for digit in (7, 5, 3, 2, 1))
"""Shares of the prediction of which the slider lets the least be chosen that a step must carry."""
LEAST = STEPS[-1]
"""Smaller shares are not told apart."""
READABLE = 60
"""Steps that a person can still follow: the usual threshold draws at most so many where there is a choice."""
MOST_DRAWN = 400
ALL_ROWS = 20
"""An input of at most so many positions has a row for each, so that moving the slider moves no row."""
Spot = tuple[int, int]
"""Depth, counted from where the flow begins, and position."""


@dataclass(frozen=True)
class Position:
    """A row of the drawing. `patch`: which patch of the picture, row by row from 0; None for a token."""

    at: int
    name: str
    special: bool
    patch: int | None


@dataclass(frozen=True)
class Node:
    """What stands at a depth and a position: its share of the prediction, and the most important path through it."""

    spot: Spot
    share: float
    path: FlowPath


@dataclass(frozen=True, eq=False)
class FlowGraph:
    """What is drawn. Depths and layers are counted from `start`, the first layer that counts."""

    kind: str
    start: int
    layers: int
    threshold: float
    found: PrunedFlow
    rows: tuple[Position, ...]
    nodes: tuple[Node, ...]
    reads: tuple[tuple[int, float], ...]
    """Positions at the top that are drawn, and what share of the prediction each has."""
    best: FlowPath
    special: float
    """Share of the prediction that comes from special tokens, of which `best` begins at none where there are others."""
    label: str
    sure: str
    """How likely the class is, or what a regression head's score is."""
    grid: tuple[int, int] | None

    @property
    def edges(self) -> tuple[FlowEdge, ...]:
        return self.found.edges

    @cached_property
    def places(self) -> dict[int, int]:
        """In which row a position stands."""
        return {row.at: place for place, row in enumerate(self.rows)}


def usual_threshold(flow: AttentionFlow, start: int) -> float:
    """The least share at which the drawing can still be read."""
    return finest_threshold(drop_layers_below(flow, start), STEPS, READABLE)


def flow_graph_of(reading: HeadReading, flow: AttentionFlow, start: int, threshold: float | None) -> FlowGraph:
    """`threshold`: the least share of the prediction that a step must carry; None for one that reads well."""
    shown, features = drop_layers_below(flow, start), reading.of.features
    least = usual_threshold(flow, start) if threshold is None else threshold
    found = prune(shown, least, READABLE if threshold is None else MOST_DRAWN)
    ways = StrongestPaths(shown, features if features.size else None)
    best = ways.through(len(shown.weights), int(ways.shares[-1].argmax()))
    spots = sorted({*_ends(found.edges), *enumerate(best.positions)})
    nodes = tuple(_nodes(shown, ways, spots))
    label, sure = _prediction(reading)
    return FlowGraph(
        kind=flow.kind,
        start=start,
        layers=len(flow.weights),
        threshold=least,
        found=found,
        rows=tuple(_position(reading, at) for at in _rows(reading, nodes)),
        nodes=nodes,
        reads=tuple((at, float(flow.reads[at])) for depth, at in spots if depth == len(shown.weights)),
        best=best,
        special=float(shown.nodes[0, reading.special].sum()),
        label=label,
        sure=sure,
        grid=reading.of.grid,
    )


def told(graph: FlowGraph) -> Told:
    """The graph as the browser draws it. Positions are told as rows of the drawing."""
    place = graph.places
    return {
        "start": graph.start,
        "layers": graph.layers,
        "rows": [[row.name, row.special, row.patch, row.at] for row in graph.rows],
        "nodes": [
            [node.spot[0], place[node.spot[1]], _short(node.share), _path(graph, node.path)] for node in graph.nodes
        ],
        "edges": [
            [edge.layer, place[edge.source], place[edge.target], _short(edge.weight), _short(edge.flow)]
            for edge in graph.edges
        ],
        "reads": [[place[at], _short(share)] for at, share in graph.reads],
        "best": _path(graph, graph.best),
        "label": graph.label,
        "sure": graph.sure,
        "grid": list(graph.grid) if graph.grid else None,
    }


def carried_words(graph: FlowGraph) -> str:
    """How much of the prediction the drawing shows, in one or two sentences."""
    drawn, more = len(graph.edges), graph.found.left_out
    if not drawn:
        return (
            f"No step carries {share_words(graph.threshold)} of the prediction: only the most important path is drawn. "
            "Show smaller steps."
        )
    each = "The step drawn carries" if drawn == 1 else f"The {drawn:,} steps drawn carry"
    left = f" {more:,} more carry as much but are not drawn." if more else ""
    along = f"along such steps {percent(graph.found.carried)} of it comes from the input."
    return f"{each} at least {share_words(graph.threshold)} of the prediction; {along}{left}"


def path_words(graph: FlowGraph, path: FlowPath) -> str:
    """The path from the input to the prediction, and its share."""
    names = {row.at: row.name for row in graph.rows}
    first, *later = path.positions
    steps = [f"“{names[first]}”"]
    for layer, (before, after) in enumerate(zip(path.positions, later, strict=False), start=graph.start):
        steps += [f"“{names[after]}” (layer {layer})"] * (after != before)
    return f"{' → '.join([*steps, graph.label])}: {share_words(path.share)} of the prediction takes just this way."


def begin_words(graph: FlowGraph, path: FlowPath) -> str:
    """Where a path begins, to be said behind its name: at a token or patch, or nothing."""
    return "" if _begins_special(graph, path) else f" from a {_unit(graph)}"


def special_words(graph: FlowGraph) -> str:
    """How much comes from special tokens: paths from them are often larger, and say nothing of the input."""
    if not graph.special:
        return ""
    held = f" as they are before layer {graph.start}" if graph.start else ""
    chosen = "" if _begins_special(graph, graph.best) else f"; the path that is chosen first begins at a {_unit(graph)}"
    return f"{share_words(graph.special)} of the prediction comes from special tokens{held}{chosen}."


def share_words(share: float) -> str:
    """A share as people read it: 12.3 %, 0.02 %, < 0.01 %."""
    return f"{plain(100 * share)}\u00a0%" if share >= LEAST or share == 0 else f"<\u00a0{plain(100 * LEAST)}\u00a0%"


def _begins_special(graph: FlowGraph, path: FlowPath) -> bool:
    return graph.rows[graph.places[path.positions[0]]].special


def _unit(graph: FlowGraph) -> str:
    return "patch" if graph.grid else "token"


def _ends(edges: Iterable[FlowEdge]) -> Iterator[Spot]:
    for edge in edges:
        yield edge.layer, edge.source
        yield edge.layer + 1, edge.target


def _nodes(flow: AttentionFlow, ways: StrongestPaths, spots: Iterable[Spot]) -> Iterator[Node]:
    """No way from a token or patch leads to a special token of the input: its path begins where it is."""
    anywhere = None
    for depth, at in spots:
        path = ways.through(depth, at)
        if not path.share:
            anywhere = anywhere or StrongestPaths(flow)
            path = anywhere.through(depth, at)
        yield Node((depth, at), float(flow.nodes[depth, at]), path)


def _rows(reading: HeadReading, nodes: Iterable[Node]) -> list[int]:
    """The positions that have a row: all of a short input, else those that any path goes through."""
    count = len(reading.of.tokens)
    if count <= ALL_ROWS and reading.of.grid is None:
        return list(range(count))
    return sorted({at for node in nodes for at in node.path.positions})


def _position(reading: HeadReading, at: int) -> Position:
    token, features = reading.of.tokens[at], reading.of.features.tolist()
    if reading.of.grid is None:
        return Position(at, f"{at} {token.text}", token.special, None)
    return Position(at, token.text, token.special, None if token.special else features.index(at))


def _prediction(reading: HeadReading) -> tuple[str, str]:
    """The explained class, and how likely it is."""
    made, origin = reading.of.prediction, reading.of.provenance
    value = made.logits[0] if made.regression else made.probabilities[origin.target]
    return origin.target_label, signed(value) if made.regression else percent(value)


def _path(graph: FlowGraph, path: FlowPath) -> list[object]:
    return [[graph.places[at] for at in path.positions], _short(path.share)]


def _short(share: float) -> float:
    """Three digits are seen: six keep them from being rounded twice."""
    return float(f"{share:.6g}")
