"""What is drawn of a flow: the steps, rows, nodes and paths that the browser is told, and the words about them."""

from __future__ import annotations

import dataclasses
import json

import numpy as np
import pytest

from components.flow.told import (
    ALL_ROWS,
    READABLE,
    STEPS,
    FlowGraph,
    begin_words,
    carried_words,
    flow_graph_of,
    path_words,
    share_words,
    special_words,
    told,
    usual_threshold,
)
from engine.heads.flow import PrunedFlow, attention_flow, prune, strongest_path
from engine.heads.readings import HeadReading
from tests.unit.components.flows import picture_reading, text_reading

LONG = " ".join(f"w{at}" for at in range(40))
FIRST = [[0.9, 0.1, 0.0], [0.5, 0.0, 0.5], [0.2, 0.2, 0.6]]
SECOND = [[0.0, 0.75, 0.25], [0.3, 0.3, 0.4], [0.0, 0.5, 0.5]]


def by_hand() -> HeadReading:
    """[CLS] a [SEP], two layers of one head."""
    reading = text_reading("a", layers=2)
    return dataclasses.replace(reading, attention=np.array([[FIRST], [SECOND]]), slope=np.zeros((2, 1)))


def drawn(reading: HeadReading, threshold: float | None = None, start: int = 0, **more: object) -> FlowGraph:
    return flow_graph_of(reading, attention_flow(reading, start_layer=start, **more), start, threshold)  # type: ignore[arg-type]


def test_two_layers_by_hand() -> None:
    graph = drawn(by_hand(), 0.3, residual=0.0)
    said = told(graph)
    assert json.loads(json.dumps(said)) == said
    assert said["rows"] == [["0 [CLS]", True, None, 0], ["1 a", False, None, 1], ["2 [SEP]", True, None, 2]]
    assert said["edges"] == [[1, 1, 0, 0.75, 0.75], [0, 0, 1, 0.5, 0.375], [0, 2, 1, 0.5, 0.375]]
    assert said["reads"] == [[0, 1.0]]
    assert said["best"] == [[1, 2, 0], 0.05]
    nodes = {(depth, row): (share, path) for depth, row, share, path in said["nodes"]}  # type: ignore[attr-defined]
    assert set(nodes) == {(0, 0), (0, 1), (0, 2), (1, 1), (1, 2), (2, 0)}
    assert nodes[1, 2] == (0.25, [[1, 2, 0], 0.05])
    assert nodes[0, 0] == (0.425, [[0, 1, 0], 0.375])
    assert (said["label"], said["sure"], said["grid"]) == ("positive", "50.0\u00a0%", None)


def test_what_comes_from_special_tokens_is_counted_by_hand() -> None:
    graph = drawn(by_hand(), 0.3, residual=0.0)  # [CLS] 0.425, [SEP] 0.525
    assert begin_words(graph, graph.best) == " from a token"
    chosen = "the path that is chosen first begins at a token."
    assert special_words(graph) == f"95\u00a0% of the prediction comes from special tokens; {chosen}"
    cls = next(node for node in graph.nodes if node.spot == (0, 0))
    assert begin_words(graph, cls.path) == ""
    later = drawn(by_hand(), 0.2, start=1, residual=0.0)  # [SEP] 0.25
    before = "special tokens as they are before layer 1"
    assert special_words(later) == f"25\u00a0% of the prediction comes from {before}; {chosen}"
    patches = drawn(picture_reading())
    assert begin_words(patches, patches.best) == " from a patch"
    assert special_words(dataclasses.replace(graph, special=0.0)) == ""


def test_layers_that_do_not_count_are_not_drawn() -> None:
    graph = drawn(by_hand(), 0.2, start=1, residual=0.0)
    said = told(graph)
    assert (said["start"], said["layers"]) == (1, 2)
    assert said["edges"] == [[0, 1, 0, 0.75, 0.75], [0, 2, 0, 0.25, 0.25]]
    assert said["best"] == [[1, 0], 0.75]
    assert path_words(graph, graph.best) == (
        "“1 a” → “0 [CLS]” (layer 1) → positive: 75\u00a0% of the prediction takes just this way."
    )


@pytest.mark.parametrize("kind", ["rollout", "gradient"])
@pytest.mark.parametrize(
    "reading", [text_reading(), text_reading(LONG), picture_reading()], ids=["text", "long", "picture"]
)
def test_the_usual_threshold_leaves_what_can_be_read(reading: HeadReading, kind: str) -> None:
    flow = attention_flow(reading, kind)
    least = usual_threshold(flow, 0)
    graph = flow_graph_of(reading, flow, 0, None)
    assert graph.threshold == least
    assert 0 < len(graph.edges) <= READABLE
    assert graph.edges == prune(flow, least).edges
    finer = max((step for step in STEPS if step < least), default=None)
    assert finer is None or len(prune(flow, finer).edges) > READABLE


def test_rows_are_those_that_a_path_goes_through_but_all_of_a_short_text() -> None:
    short, long = text_reading(), text_reading(LONG)
    assert len(short.of.tokens) <= ALL_ROWS < len(long.of.tokens)
    assert [row.at for row in drawn(short, 0.5).rows] == list(range(len(short.of.tokens)))
    graph = drawn(long)
    wanted = {at for node in graph.nodes for at in node.path.positions}
    assert [row.at for row in graph.rows] == sorted(wanted)
    assert len(graph.rows) < len(long.of.tokens)


@pytest.mark.parametrize("reading", [text_reading(LONG), picture_reading()], ids=["text", "picture"])
def test_every_step_and_path_ends_at_nodes_and_rows_that_are_there(reading: HeadReading) -> None:
    graph = drawn(reading)
    spots, rows = {node.spot for node in graph.nodes}, {row.at for row in graph.rows}
    assert {(edge.layer, edge.source) for edge in graph.edges} <= spots
    assert {(edge.layer + 1, edge.target) for edge in graph.edges} <= spots
    assert set(enumerate(graph.best.positions)) <= spots
    for node in graph.nodes:
        assert node.path.positions[node.spot[0]] == node.spot[1]
        assert set(node.path.positions) <= rows


def test_the_path_that_is_chosen_first_begins_at_a_token_and_no_special_one() -> None:
    reading = text_reading()
    flow = attention_flow(reading)
    graph = flow_graph_of(reading, flow, 0, None)
    assert graph.best == strongest_path(flow, reading.of.features)
    assert not reading.of.tokens[graph.best.positions[0]].special
    cls = next(node for node in graph.nodes if node.spot == (0, 0))
    assert cls.path.positions[0] == 0
    assert cls.path.share > 0


def test_patches_are_numbered_row_by_row_and_special_tokens_are_none() -> None:
    graph = drawn(picture_reading((4, 6)))
    for row in graph.rows:
        assert row.patch == (None if row.at == 0 else row.at - 1)
        if row.patch is not None:
            assert row.name == f"row {1 + row.patch // 6}, column {1 + row.patch % 6}"
    assert told(graph)["grid"] == [4, 6]


def test_a_text_of_special_tokens_alone_has_a_path_too() -> None:
    graph = drawn(text_reading("", layers=2))
    assert graph.best.share > 0
    assert {row.name for row in graph.rows} == {"0 [CLS]", "1 [SEP]"}


def test_where_the_model_reads_the_mean_of_all_some_of_the_largest_steps_are_drawn() -> None:
    reading = text_reading(LONG)
    n = len(reading.of.tokens)
    graph = drawn(dataclasses.replace(reading, reads=np.full(n, 1 / n)))
    assert 0 < len(graph.edges) <= READABLE
    assert graph.found.left_out > 0
    flows = [edge.flow for edge in graph.edges]
    assert flows == sorted(flows, reverse=True)


def test_how_much_is_shown_is_said() -> None:
    graph = drawn(by_hand(), 0.3, residual=0.0)
    assert carried_words(graph) == (
        "The 3 steps drawn carry at least 30\u00a0% of the prediction; along such steps 75.0\u00a0% of it comes from "
        "the input."
    )
    cut = dataclasses.replace(graph, found=PrunedFlow(graph.edges[:1], 0.75, 1_200))
    assert carried_words(cut).startswith("The step drawn carries at least 30\u00a0%")
    assert carried_words(cut).endswith("1,200 more carry as much but are not drawn.")
    none = drawn(by_hand(), 0.9, residual=0.0)
    assert "only the most important path is drawn" in carried_words(none)
    assert told(none)["best"] == [[1, 2, 0], 0.05]


@pytest.mark.parametrize(
    ("share", "said"), [(0.1234, "12.3"), (0.0002, "0.02"), (1.0, "100"), (0.0, "0"), (3e-5, "<\u00a00.01")]
)
def test_shares_are_percent(share: float, said: str) -> None:
    assert share_words(share) == f"{said}\u00a0%"
