"""Attention as a layered graph, which traces the prediction back through the layers to the input.

A node is a position at a depth: depth 0 is the input, depth `l + 1` is the output of layer `l`. An edge of layer `l`
runs from `source` at depth `l` to `target` at depth `l + 1`; its weight is the share of the target that comes from the
source, so the weights into a node sum to 1. The prediction reads the positions that the model pools. A flow is a share
of the prediction: the flows of a layer sum to 1, and those at depth 0 are the rows of rollout that it reads.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int

from engine.errors import not_allowed, unknown
from engine.heads.readings import HeadReading
from engine.heads.scores import Attention, PerHead

FLOW_KINDS = ("rollout", "gradient")
RESIDUAL = 0.5
"""Share of a position that passes a layer unchanged: one half, as in Abnar and Zuidema (2020)."""
MAX_EDGES = 2_000
"""Maximum number of edges in a drawing; more cannot be distinguished."""

Layers = Float[np.ndarray, "layer query key"]


@dataclass(frozen=True, eq=False)
class AttentionFlow:
    """The attention graph of a prediction."""

    kind: str
    weights: Layers
    """`[layer target source]`, rows sum to 1."""
    reads: Float[np.ndarray, "position"]
    """Share of each top position in the prediction."""
    nodes: Float[np.ndarray, "depth position"]
    """The flow through each node, from the input (depth 0) to the top."""

    @property
    def edges(self) -> Layers:
        """The flow along each edge `[layer target source]`: the target's flow times the weight."""
        return self.nodes[1:, :, None] * self.weights


@dataclass(frozen=True)
class FlowEdge:
    """An edge of the flow."""

    layer: int
    source: int
    target: int
    weight: float
    flow: float


@dataclass(frozen=True)
class PrunedFlow:
    """The edges that passed the threshold, largest flow first, and the share of the prediction that they carry."""

    edges: tuple[FlowEdge, ...]
    carried: float
    """Share of the prediction that reaches the input along edges that passed, drawn or not."""
    left_out: int
    """Edges that passed the threshold but were too many to draw."""


@dataclass(frozen=True)
class FlowPath:
    """The most important path from an input to the prediction."""

    positions: tuple[int, ...]
    """From the input to the top, one per depth."""
    share: float
    """Share of the prediction along exactly this path: the product of its weights and of the share read at its end."""


def attention_flow(
    reading: HeadReading, kind: str = FLOW_KINDS[0], residual: int | float = RESIDUAL, start_layer: int = 0
) -> AttentionFlow:
    """Return the graph of a reading. `gradient` follows attention that speaks for the class, `rollout` all attention.

    Layers below `start_layer` pass positions unchanged, as in the method `attention_rollout`.
    """
    if kind not in FLOW_KINDS:
        raise unknown("flow", kind, FLOW_KINDS)
    if kind == "gradient":
        return gradient_flow(reading.weighted, reading.reads, start_layer)
    return rollout_flow(reading.attention, reading.reads, residual, start_layer, reading.scales)


def rollout_flow(
    attention: Attention,
    reads: Float[np.ndarray, "position"],
    residual: int | float = RESIDUAL,
    start_layer: int = 0,
    scales: PerHead | None = None,
) -> AttentionFlow:
    """Return the flow of averaged heads with a residual: `(1 - residual) A + residual I` (Abnar and Zuidema, 2020)."""
    return flow_of_mean(mean_over_heads(attention, scales), reads, residual, start_layer)


def mean_over_heads(attention: Attention, scales: PerHead | None = None) -> Layers:
    """Return the mean over heads, 0 where a query may not attend.

    Heads are weighted by their scales, `sum_h s_h A_h / sum_h s_h`, as in the methods that read attention: a head that
    is switched off writes nothing. A layer whose heads are all off is the identity.
    """
    factors = np.ones(attention.shape[:2]) if scales is None else scales
    layers = zip(attention, factors, strict=True)
    return np.nan_to_num(np.stack([_mean_of_layer(layer, own) for layer, own in layers]))


def flow_of_mean(
    mean: Layers, reads: Float[np.ndarray, "position"], residual: int | float = RESIDUAL, start_layer: int = 0
) -> AttentionFlow:
    """Return the flow of rollout from the mean over heads."""
    if not 0 <= residual <= 1:
        raise not_allowed("residual", "from 0 to 1", residual)
    return _graph(FLOW_KINDS[0], (1 - residual) * mean + residual * np.eye(mean.shape[-1]), reads, start_layer)


def gradient_flow(weighted: Layers, reads: Float[np.ndarray, "position"], start_layer: int = 0) -> AttentionFlow:
    """Return the flow of `I + mean_h((dA * A)+)` (Chefer et al., 2021, eq. 5, 6), with each row divided by its sum.

    Theirs grows from layer to layer; ours remains a share of the prediction, so that edges of different layers can be
    compared.
    """
    return _graph(FLOW_KINDS[1], weighted.astype(np.float64) + np.eye(weighted.shape[-1]), reads, start_layer)


def drop_layers_below(flow: AttentionFlow, start_layer: int) -> AttentionFlow:
    """Return the flow from `start_layer` on, without the layers below it, which pass positions unchanged."""
    return dataclasses.replace(flow, weights=flow.weights[start_layer:], nodes=flow.nodes[start_layer:])


def prune(flow: AttentionFlow, threshold: int | float, most: int = MAX_EDGES) -> PrunedFlow:
    """Return the edges whose flow is at least `threshold` and that are connected to the prediction.

    Edges are pruned from the top down, as in Ferrando and Voita (2024): an edge is kept only if a kept edge leads on
    from it, or the prediction reads its target.
    """
    edges = flow.edges
    passing = _passing(flow, edges, threshold)
    places = np.argwhere(passing)
    order = np.argsort(-edges[passing], kind="stable")[:most]
    rows = [(int(layer), int(source), int(target)) for layer, target, source in places[order]]
    largest = tuple(
        FlowEdge(layer, source, target, float(flow.weights[layer, target, source]), float(edges[layer, target, source]))
        for layer, source, target in rows
    )
    return PrunedFlow(largest, _carried_share(flow, passing), len(places) - len(largest))


def finest_threshold(flow: AttentionFlow, thresholds: Sequence[float], most: int) -> float:
    """Return the smallest threshold that keeps 1 to `most` edges, or else the largest that keeps any."""
    edges, chosen = flow.edges, None
    for threshold in sorted(thresholds, reverse=True):
        count = int(_passing(flow, edges, threshold).sum())
        if chosen is not None and count > most:
            return chosen
        chosen = threshold if count else chosen
    return min(thresholds) if chosen is None else chosen


Sources = Sequence[int] | np.ndarray | None


class StrongestPaths:
    """The most important path through each node of a flow, from anywhere in the input or from given `sources`.

    From anywhere, it is often the special token that the model reads, which stays in place, so pass the features.
    Computed by dynamic programming from the input up and from the top down; ties go to the first position. A share of 0
    means that no path exists.
    """

    shares: Float[np.ndarray, "depth position"]
    """Share of the prediction along the most important path through each node."""

    def __init__(self, flow: AttentionFlow, sources: Sources = None) -> None:
        layers = _logs(flow.weights)
        below, self._came = _best_sums(_start_logs(len(flow.reads), sources), layers)
        above, went = _best_sums(_logs(flow.reads), layers[::-1].swapaxes(1, 2))
        self._went = went[::-1]
        self.shares = np.exp(np.stack(below) + np.stack(above[::-1]))

    def through(self, depth: int, position: int) -> FlowPath:
        """Return the most important path through a position at a depth."""
        before = _follow(self._came[:depth][::-1], position)[::-1]
        after = _follow(self._went[depth:], position)
        return FlowPath((*before, *after[1:]), float(self.shares[depth, position]))


def _start_logs(n: int, sources: Sources) -> Float[np.ndarray, "position"]:
    """Return the logarithm of 1 where a path may start, and of 0 elsewhere."""
    chosen = range(n) if sources is None else sources
    if not len(chosen) or not all(0 <= source < n for source in chosen):
        raise not_allowed("sources", f"at least one position from 0 to {n - 1}", list(chosen))
    return _logs(np.isin(np.arange(n), chosen).astype(float))


def _best_sums(
    best: Float[np.ndarray, "position"], layers: Float[np.ndarray, "layer to from"]
) -> tuple[list[Float[np.ndarray, "position"]], list[Int[np.ndarray, "position"]]]:
    """Return the best sum of logarithms at each depth, layer by layer, and the position that each came from."""
    bests, came = [best], []
    for layer in layers:
        ways = layer + bests[-1]
        came.append(ways.argmax(1))
        bests.append(ways.max(1))
    return bests, came


def _follow(steps: Sequence[Int[np.ndarray, "position"]], position: int) -> tuple[int, ...]:
    way = [position]
    for step in steps:
        way.append(int(step[way[-1]]))
    return tuple(way)


def _graph(kind: str, raw: Layers, reads: Float[np.ndarray, "position"], start_layer: int) -> AttentionFlow:
    if not 0 <= start_layer < len(raw):
        raise not_allowed("start_layer", f"from 0 to {len(raw) - 1} for this model", start_layer)
    weights = raw / raw.sum(-1, keepdims=True)  # attention is stored in half precision: its rows sum to almost 1
    weights[:start_layer] = np.eye(raw.shape[-1])
    nodes = [reads.astype(np.float64)]
    for layer in reversed(weights):
        nodes.append(nodes[-1] @ layer)
    return AttentionFlow(kind, weights, nodes[0], np.stack(nodes[::-1]))


def _mean_of_layer(
    layer: Float[np.ndarray, "head query key"], scales: Float[np.ndarray, "head"]
) -> Float[np.ndarray, "query key"]:
    if not scales.any():
        return np.eye(layer.shape[-1])
    wide = layer.astype(np.float32)  # before the sum: half precision is slow
    alike = bool((scales == scales[0]).all())
    return wide.mean(0, dtype=np.float64) if alike else np.average(wide, 0, scales)  # takes twice as long


def _passing(flow: AttentionFlow, edges: Layers, threshold: int | float) -> Bool[np.ndarray, "layer query key"]:
    passing, reached = np.zeros(edges.shape, dtype=bool), flow.reads > 0
    for layer in reversed(range(len(edges))):
        passing[layer] = (edges[layer] >= threshold) & (edges[layer] > 0) & reached[:, None]
        reached = passing[layer].any(0)
    return passing


def _carried_share(flow: AttentionFlow, passing: Bool[np.ndarray, "layer query key"]) -> float:
    share = flow.reads
    for layer, own in zip(flow.weights[::-1], passing[::-1], strict=True):
        share = share @ np.where(own, layer, 0)
    return float(share.sum())


def _logs(values: Float[np.ndarray, "..."]) -> Float[np.ndarray, "..."]:
    return np.log(values, where=values > 0, out=np.full(values.shape, -np.inf))
