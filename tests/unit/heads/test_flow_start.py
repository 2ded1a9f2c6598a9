"""A flow that begins at a later layer: by hand, and against the method `attention_rollout` with the same parameters."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from engine.errors import UsageError
from engine.explain import explain
from engine.explainers.attention import rollout
from engine.heads.flow import Ways, above, finest, flow_of, gradient_flow, pruned, rollout_flow, strongest_path
from engine.heads.reading import HeadReading, read_heads
from engine.params import Plain
from engine.request import Example, Input, Request
from tests.explaining import checkpoint
from tests.unit.images.making import blobs, vit_folder

ONE = [[0.9, 0.1], [0.5, 0.5]]
TWO = [[0.25, 0.75], [0.0, 1.0]]
TOP = np.array([1.0, 0.0])
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
    flow = rollout_flow(np.array([[ONE], [TWO]]), TOP, 0.0, 1)
    np.testing.assert_allclose(flow.weights[0], np.eye(2))
    np.testing.assert_allclose(flow.nodes, [[0.25, 0.75], [0.25, 0.75], [1.0, 0.0]])
    assert strongest_path(flow).positions == (1, 1, 0)
    assert Ways(flow).through(0, 0).positions == (0, 0, 0)
    assert {(edge.source, edge.target) for edge in pruned(flow, 0.0).edges if edge.layer == 0} == {(0, 0), (1, 1)}


def test_gradient_flow_begins_there_too_by_hand() -> None:
    flow = gradient_flow(np.array([ONE, [[0.5, 0.5], [0.0, 1.0]]]), TOP, 1)
    np.testing.assert_allclose(flow.nodes, [[0.75, 0.25], [0.75, 0.25], [1.0, 0.0]])


def test_what_begins_at_a_layer_is_the_flow_of_the_layers_that_count() -> None:
    whole = rollout_flow(np.array([[ONE], [TWO]]), TOP, 0.0, 1)
    alone = rollout_flow(np.array([[TWO]]), TOP, 0.0)
    np.testing.assert_allclose(above(whole, 1).weights, alone.weights)
    np.testing.assert_allclose(above(whole, 1).nodes, alone.nodes)
    assert pruned(above(whole, 1), 0.0) == pruned(alone, 0.0)


@pytest.mark.parametrize(("most", "expected"), [(5, 0.1), (4, 0.3), (3, 0.3), (2, 0.6), (1, 0.6), (0, 0.6)])
def test_the_finest_threshold_that_keeps_as_many_steps_as_can_be_read_by_hand(most: int, expected: float) -> None:
    flow = rollout_flow(np.array([[ONE], [TWO]]), TOP, 0.0)  # flows 0.75, 0.25 above; 0.225, 0.025, 0.375, 0.375 below
    counts = {threshold: len(pruned(flow, threshold).edges) for threshold in (0.9, 0.6, 0.3, 0.1)}
    assert counts == {0.9: 0, 0.6: 1, 0.3: 3, 0.1: 5}
    assert finest(flow, list(counts), most) == expected


def test_where_no_threshold_keeps_a_step_it_is_the_least() -> None:
    assert finest(rollout_flow(np.array([[ONE], [TWO]]), TOP, 0.0), [0.9, 0.8], 60) == 0.8


@pytest.mark.usefixtures("home")
@pytest.mark.parametrize("kind", KINDS)
def test_the_flow_ends_in_the_rollout_of_the_layers_that_count(kind: str) -> None:
    reading = read_heads(asked(kind))
    for residual, start in SETTINGS:
        found = flow_of(reading, "rollout", residual, start).nodes[0]
        np.testing.assert_allclose(found, rows_read(reading, residual, start), atol=1e-3)


@pytest.mark.usefixtures("home")
@pytest.mark.parametrize(("residual", "start"), SETTINGS)
def test_where_the_model_reads_the_mean_the_flow_ends_in_the_method_itself(residual: float, start: int) -> None:
    made = explain(asked("t5", "attention_rollout", residual=residual, start_layer=start))
    found = flow_of(read_heads(asked("t5")), "rollout", residual, start)
    np.testing.assert_allclose(found.nodes[0], made.scores, atol=1e-3)


@pytest.mark.parametrize("start", [-1, 2])
def test_a_first_layer_that_there_is_not_is_told(start: int) -> None:
    with pytest.raises(UsageError, match=rf"start_layer: must be from 0 to 1 for this model, got {start}"):
        rollout_flow(np.array([[ONE], [TWO]]), TOP, 0.5, start)
