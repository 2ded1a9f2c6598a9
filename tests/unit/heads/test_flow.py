"""The flow of attention as a graph: by hand, against every path there is, and from a later layer."""

from __future__ import annotations

import dataclasses
import itertools
import math

import numpy as np
import pytest
import torch

from engine.errors import UsageError
from engine.explain import explain
from engine.explainers.attention import rollout
from engine.heads.flow import (
    AttentionFlow,
    StrongestPaths,
    attention_flow,
    drop_layers_below,
    finest_threshold,
    gradient_flow,
    mean_over_heads,
    prune,
    rollout_flow,
)
from engine.heads.readings import HeadReading, read_heads
from engine.params import Plain
from engine.request import Example, HeadScales, Input, Request
from tests.explaining import checkpoint
from tests.head_readings import strongest_path
from tests.unit.vision.tiny_vit import blobs, vit_folder

FIRST = [[0.9, 0.1, 0.0], [0.5, 0.0, 0.5], [0.2, 0.2, 0.6]]
SECOND = [[0.0, 0.75, 0.25], [0.3, 0.3, 0.4], [0.0, 0.5, 0.5]]
TOP = np.array([1.0, 0.0, 0.0])


def by_hand(residual: float = 0.0) -> AttentionFlow:
    return rollout_flow(np.array([[FIRST], [SECOND]]), TOP, residual)


def noisy(layers: int, n: int, causal: bool = False) -> AttentionFlow:
    raw = np.random.default_rng(n).exponential(size=(layers, 3, n, n)) ** 3
    raw[..., ~np.tri(n, dtype=bool) & causal] = np.nan
    attention = raw / np.nansum(raw, -1, keepdims=True)
    return rollout_flow(attention, np.eye(n)[-1] if causal else np.full(n, 1 / n))


def ways(flow: AttentionFlow) -> dict[tuple[int, ...], float]:
    """The share of every path there is."""
    n, depths = len(flow.reads), len(flow.weights) + 1
    return {
        way: flow.reads[way[-1]] * math.prod(flow.weights[i, way[i + 1], way[i]] for i in range(depths - 1))
        for way in itertools.product(range(n), repeat=depths)
    }


def test_the_flow_of_two_layers_by_hand() -> None:
    flow = by_hand()
    np.testing.assert_allclose(flow.nodes[2], TOP)
    np.testing.assert_allclose(flow.nodes[1], [0.0, 0.75, 0.25])
    np.testing.assert_allclose(flow.nodes[0], [0.75 * 0.5 + 0.25 * 0.2, 0.25 * 0.2, 0.75 * 0.5 + 0.25 * 0.6])
    assert flow.edges[0, 1, 2] == pytest.approx(0.75 * 0.5)
    found = prune(flow, 0.3)
    assert [(e.layer, e.source, e.target) for e in found.edges] == [(1, 1, 0), (0, 0, 1), (0, 2, 1)]
    assert [(e.weight, e.flow) for e in found.edges] == [(0.75, 0.75), (0.5, 0.375), (0.5, 0.375)]
    assert found.carried == pytest.approx(0.75)
    assert found.left_out == 0
    assert strongest_path(flow).positions == (0, 1, 0)
    assert strongest_path(flow).share == pytest.approx(0.375)
    assert strongest_path(flow, [1]).positions == (1, 2, 0)


def test_the_residual_stream_keeps_a_share_where_it_was() -> None:
    flow = by_hand(0.5)
    assert flow.weights[1, 0, 0] == pytest.approx(0.5)
    assert flow.weights[1, 0, 1] == pytest.approx(0.375)
    assert strongest_path(by_hand(1.0)).positions == (0, 0, 0)
    assert strongest_path(by_hand(1.0)).share == 1


def test_heads_count_by_their_scales_by_hand() -> None:
    heads = np.array([[FIRST, SECOND], [SECOND, FIRST]])
    np.testing.assert_allclose(mean_over_heads(heads, np.array([[1.0, 0.0], [2.0, 0.0]])), [FIRST, SECOND])
    mixed = mean_over_heads(heads, np.array([[0.5, 1.5], [0.0, 0.0]]))
    np.testing.assert_allclose(mixed[0], 0.25 * np.array(FIRST) + 0.75 * np.array(SECOND))
    np.testing.assert_allclose(mixed[1], np.eye(3))
    np.testing.assert_array_equal(mean_over_heads(heads, np.ones((2, 2))), mean_over_heads(heads))
    causal = np.where(np.tri(3, dtype=bool), heads, np.nan)
    assert not np.triu(mean_over_heads(causal, np.array([[1.0, 0.0], [1.0, 0.5]])), 1).any()


@pytest.mark.usefixtures("home")
@pytest.mark.parametrize("residual", [0.0, 0.5])
def test_under_scaled_heads_the_flow_is_that_of_the_method(residual: float) -> None:
    heads = HeadScales(((0, 1, 0.0), (1, 0, 0.0), (1, 1, 0.0), (1, 2, 0.0), (1, 3, 0.0), (2, 0, 2.0)))
    asked = Request(
        str(checkpoint("t5", 3)), "attention_rollout", Example("the ending is warm"), {"residual": residual}
    )
    scaled = dataclasses.replace(asked, dtype="float64", heads=heads)
    reading = read_heads(scaled)
    found = attention_flow(reading, residual=residual)
    np.testing.assert_allclose(found.nodes[0], explain(scaled).scores, atol=1e-3)
    for flow in (found, attention_flow(reading, "gradient")):
        np.testing.assert_allclose(flow.weights[1], np.eye(len(flow.reads)))  # all heads of that layer are off


@pytest.mark.parametrize("causal", [False, True])
def test_flows_and_the_strongest_path_against_every_path(causal: bool) -> None:
    flow = noisy(3, 5, causal)
    all_ways = ways(flow)
    best = max(all_ways, key=lambda way: all_ways[way])
    found = strongest_path(flow)
    assert found.positions == best
    assert found.share == pytest.approx(all_ways[best])
    for source in range(5):
        starting = {way: share for way, share in all_ways.items() if way[0] == source}
        assert flow.nodes[0, source] == pytest.approx(sum(starting.values()))
        assert strongest_path(flow, [source]).share == pytest.approx(max(starting.values()))
    some = {way: share for way, share in all_ways.items() if way[0] in (1, 3)}
    assert strongest_path(flow, np.array([1, 3])).positions == max(some, key=lambda way: some[way])
    through = StrongestPaths(flow, [1, 3])
    for depth, position in itertools.product(range(4), range(5)):
        crossing = {way: share for way, share in some.items() if way[depth] == position and share}
        assert through.shares[depth, position] == pytest.approx(max(crossing.values(), default=0.0))
        if crossing:
            assert through.through(depth, position).positions == max(crossing, key=lambda way: crossing[way])
    step = sum(share for way, share in all_ways.items() if way[1:3] == (1, 4 if causal else 2))
    assert flow.edges[1, 4 if causal else 2, 1] == pytest.approx(step)
    np.testing.assert_allclose(flow.edges.sum((1, 2)), 1)


@pytest.mark.parametrize("threshold", [0.0, 0.005, 0.02, 0.05, 0.2, 2.0])
def test_pruning_against_every_path(threshold: float) -> None:
    flow = noisy(3, 5)
    found = prune(flow, threshold)
    strong = flow.edges >= threshold
    kept: set[tuple[int, int, int]] = set()
    carried = 0.0
    for way, share in ways(flow).items():
        hanging = True
        for layer in (2, 1, 0):
            hanging = hanging and bool(strong[layer, way[layer + 1], way[layer]])
            if hanging:
                kept.add((layer, way[layer], way[layer + 1]))
        carried += share if hanging else 0
    assert {(e.layer, e.source, e.target) for e in found.edges} == kept
    assert found.carried == pytest.approx(carried)
    assert [e.flow for e in found.edges] == sorted((e.flow for e in found.edges), reverse=True)


def test_too_many_edges_are_cut_and_counted() -> None:
    flow = noisy(2, 6)
    found = prune(flow, 0.0, most=10)
    assert (len(found.edges), found.left_out) == (10, 62)
    assert min(e.flow for e in found.edges) == pytest.approx(np.sort(flow.edges.ravel())[-10])


def test_gradient_flow_is_a_share_by_hand() -> None:
    flow = gradient_flow(np.array([[[0.5, 0.5], [0.0, 1.0]]]), np.array([1.0, 0.0]))
    np.testing.assert_allclose(flow.weights, [[[0.75, 0.25], [0.0, 1.0]]])
    np.testing.assert_allclose(flow.nodes, [[0.75, 0.25], [1.0, 0.0]])


def test_nothing_that_is_masked_flows() -> None:
    flow = noisy(3, 5, causal=True)
    assert all(edge.source <= edge.target for edge in prune(flow, 0.0).edges)


def test_one_token() -> None:
    flow = rollout_flow(np.ones((2, 3, 1, 1)), np.ones(1))
    assert strongest_path(flow).positions == (0, 0, 0)
    assert prune(flow, 0.5).carried == 1


@pytest.mark.usefixtures("home")
@pytest.mark.parametrize("family", ["bert", "gpt2", "t5"])
def test_the_flow_of_a_reading_ends_in_its_rollout(family: str) -> None:
    asked = Request(str(checkpoint(family, 3)), "random", Example("the ending is warm"), dtype="float64")
    reading = read_heads(asked)
    layers = torch.from_numpy(np.nan_to_num(reading.attention)).double().mean(1)
    expected = reading.reads @ rollout(layers, 0.5).numpy()
    np.testing.assert_allclose(attention_flow(reading).nodes[0], expected, atol=1e-3)
    gradient = attention_flow(reading, "gradient")
    assert gradient.nodes[0].sum() == pytest.approx(1)
    longer = dataclasses.replace(reading, weighted=np.zeros_like(reading.weighted))
    np.testing.assert_allclose(attention_flow(longer, "gradient").nodes[0], reading.reads)


def test_what_is_not_allowed_is_told() -> None:
    with pytest.raises(UsageError, match=r"residual: must be from 0 to 1, got 1\.5"):
        by_hand(1.5)
    with pytest.raises(UsageError, match=r"sources: must be at least one position from 0 to 2, got \[3\]"):
        strongest_path(by_hand(), [3])


ONE = [[0.9, 0.1], [0.5, 0.5]]
TWO = [[0.25, 0.75], [0.0, 1.0]]
LAST = np.array([1.0, 0.0])
SETTINGS = [(0.0, 0), (0.0, 1), (0.5, 0), (0.5, 2), (0.3, 1), (1.0, 2)]
KINDS = ("bert", "gpt2", "t5", "vit")


def asked(kind: str, method: str = "random", **params: Plain) -> Request:
    folder, example = checkpoint(kind, 3) if kind != "vit" else vit_folder(), given(kind)
    return Request(str(folder), method, example, params, dtype="float64")


def given(kind: str) -> Input:
    return blobs() if kind == "vit" else Example("the ending is warm")


def rows_read(reading: HeadReading, residual: float, start_layer: int) -> np.ndarray:
    """Rollout of the layers that count, read where the model reads."""
    layers = torch.from_numpy(np.nan_to_num(reading.attention)).double().mean(1)
    return np.asarray(reading.reads @ rollout(layers[start_layer:], residual).numpy())


def test_a_layer_below_the_first_passes_what_it_gets_by_hand() -> None:
    flow = rollout_flow(np.array([[ONE], [TWO]]), LAST, 0.0, 1)
    np.testing.assert_allclose(flow.weights[0], np.eye(2))
    np.testing.assert_allclose(flow.nodes, [[0.25, 0.75], [0.25, 0.75], [1.0, 0.0]])
    assert strongest_path(flow).positions == (1, 1, 0)
    assert StrongestPaths(flow).through(0, 0).positions == (0, 0, 0)
    assert {(edge.source, edge.target) for edge in prune(flow, 0.0).edges if edge.layer == 0} == {(0, 0), (1, 1)}


def test_gradient_flow_begins_there_too_by_hand() -> None:
    flow = gradient_flow(np.array([ONE, [[0.5, 0.5], [0.0, 1.0]]]), LAST, 1)
    np.testing.assert_allclose(flow.nodes, [[0.75, 0.25], [0.75, 0.25], [1.0, 0.0]])


def test_what_begins_at_a_layer_is_the_flow_of_the_layers_that_count() -> None:
    whole = rollout_flow(np.array([[ONE], [TWO]]), LAST, 0.0, 1)
    alone = rollout_flow(np.array([[TWO]]), LAST, 0.0)
    np.testing.assert_allclose(drop_layers_below(whole, 1).weights, alone.weights)
    np.testing.assert_allclose(drop_layers_below(whole, 1).nodes, alone.nodes)
    assert prune(drop_layers_below(whole, 1), 0.0) == prune(alone, 0.0)


@pytest.mark.parametrize(("most", "expected"), [(5, 0.1), (4, 0.3), (3, 0.3), (2, 0.6), (1, 0.6), (0, 0.6)])
def test_the_finest_threshold_that_keeps_as_many_steps_as_can_be_read_by_hand(most: int, expected: float) -> None:
    flow = rollout_flow(np.array([[ONE], [TWO]]), LAST, 0.0)  # flows 0.75, 0.25 above; 0.225, 0.025, 0.375, 0.375 below
    counts = {threshold: len(prune(flow, threshold).edges) for threshold in (0.9, 0.6, 0.3, 0.1)}
    assert counts == {0.9: 0, 0.6: 1, 0.3: 3, 0.1: 5}
    assert finest_threshold(flow, list(counts), most) == expected


def test_where_no_threshold_keeps_a_step_it_is_the_least() -> None:
    assert finest_threshold(rollout_flow(np.array([[ONE], [TWO]]), LAST, 0.0), [0.9, 0.8], 60) == 0.8


@pytest.mark.usefixtures("home")
@pytest.mark.parametrize("kind", KINDS)
def test_the_flow_ends_in_the_rollout_of_the_layers_that_count(kind: str) -> None:
    reading = read_heads(asked(kind))
    for residual, start in SETTINGS:
        found = attention_flow(reading, "rollout", residual, start).nodes[0]
        np.testing.assert_allclose(found, rows_read(reading, residual, start), atol=1e-3)


@pytest.mark.usefixtures("home")
@pytest.mark.parametrize(("residual", "start"), SETTINGS)
def test_where_the_model_reads_the_mean_the_flow_ends_in_the_method_itself(residual: float, start: int) -> None:
    made = explain(asked("t5", "attention_rollout", residual=residual, start_layer=start))
    found = attention_flow(read_heads(asked("t5")), "rollout", residual, start)
    np.testing.assert_allclose(found.nodes[0], made.scores, atol=1e-3)


@pytest.mark.parametrize("start", [-1, 2])
def test_a_first_layer_that_there_is_not_is_told(start: int) -> None:
    with pytest.raises(UsageError, match=rf"start_layer: must be from 0 to 1 for this model, got {start}"):
        rollout_flow(np.array([[ONE], [TWO]]), LAST, 0.5, start)
