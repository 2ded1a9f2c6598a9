"""The flow graph: its steps, rows, nodes and paths, the words about them, and its files."""

from __future__ import annotations

import csv
import dataclasses
import io
import json
import re
from xml.etree import ElementTree

import numpy as np
import pytest

from components.widgets.flow_graph import (
    CSV_HEADER,
    MAX_FULL_ROWS,
    READABLE,
    THRESHOLDS,
    FlowGraph,
    build_flow_graph,
    default_threshold,
    describe_carried_share,
    describe_path,
    describe_path_start,
    describe_special_share,
    flow_csv,
    flow_svg,
    format_share,
    graph_data,
)
from engine.heads.flow import PrunedFlow, attention_flow, prune
from engine.heads.readings import HeadReading
from tests.head_readings import strongest_path
from tests.unit.components.flow_readings import picture_reading, text_reading

LONG = " ".join(f"w{at}" for at in range(40))
FIRST = [[0.9, 0.1, 0.0], [0.5, 0.0, 0.5], [0.2, 0.2, 0.6]]
SECOND = [[0.0, 0.75, 0.25], [0.3, 0.3, 0.4], [0.0, 0.5, 0.5]]


def by_hand() -> HeadReading:
    """[CLS] a [SEP], two layers of one head."""
    reading = text_reading("a", layers=2)
    return dataclasses.replace(reading, attention=np.array([[FIRST], [SECOND]]), slope=np.zeros((2, 1)))


def graph_of(reading: HeadReading, threshold: float | None = None, start: int = 0, **more: object) -> FlowGraph:
    return build_flow_graph(reading.explanation, attention_flow(reading, start_layer=start, **more), start, threshold)  # type: ignore[arg-type]


def test_two_layers_by_hand() -> None:
    graph = graph_of(by_hand(), 0.3, residual=0.0)
    said = graph_data(graph)
    assert json.loads(json.dumps(said)) == said
    assert said["rows"] == [["0 [CLS]", True, None, 0], ["1 a", False, None, 1], ["2 [SEP]", True, None, 2]]
    assert said["edges"] == [[1, 1, 0, 0.75, 0.75], [0, 0, 1, 0.5, 0.375], [0, 2, 1, 0.5, 0.375]]
    assert said["reads"] == [[0, 1.0]]
    assert said["best"] == [[1, 2, 0], 0.05]
    nodes = {(depth, row): (share, path) for depth, row, share, path in said["nodes"]}  # type: ignore[attr-defined]
    assert set(nodes) == {(0, 0), (0, 1), (0, 2), (1, 1), (1, 2), (2, 0)}
    assert nodes[1, 2] == (0.25, [[1, 2, 0], 0.05])
    assert nodes[0, 0] == (0.425, [[0, 1, 0], 0.375])
    assert (said["label"], said["sure"], said["grid"]) == ("positive", "50.0%", None)


def test_what_comes_from_special_tokens_is_counted_by_hand() -> None:
    graph = graph_of(by_hand(), 0.3, residual=0.0)  # [CLS] 0.425, [SEP] 0.525
    assert describe_path_start(graph, graph.best) == " from a token"
    chosen = "the most important path shown starts at a token."
    assert describe_special_share(graph) == f"95% of the prediction comes from special tokens; {chosen}"
    cls = next(node for node in graph.nodes if node.id == (0, 0))
    assert describe_path_start(graph, cls.path) == ""
    later = graph_of(by_hand(), 0.2, start=1, residual=0.0)  # [SEP] 0.25
    before = "special tokens as they are before layer 1"
    assert describe_special_share(later) == f"25% of the prediction comes from {before}; {chosen}"
    patches = graph_of(picture_reading())
    assert describe_path_start(patches, patches.best) == " from a patch"
    assert describe_special_share(dataclasses.replace(graph, special=0.0)) == ""


def test_layers_that_do_not_count_are_not_drawn() -> None:
    graph = graph_of(by_hand(), 0.2, start=1, residual=0.0)
    said = graph_data(graph)
    assert (said["start"], said["layers"]) == (1, 2)
    assert said["edges"] == [[0, 1, 0, 0.75, 0.75], [0, 2, 0, 0.25, 0.25]]
    assert said["best"] == [[1, 0], 0.75]
    assert describe_path(graph, graph.best) == (
        "“1 a” → “0 [CLS]” (layer 1) → positive: 75% of the prediction takes exactly this path."
    )


@pytest.mark.parametrize("kind", ["rollout", "gradient"])
@pytest.mark.parametrize(
    "reading", [text_reading(), text_reading(LONG), picture_reading()], ids=["text", "long", "picture"]
)
def test_the_usual_threshold_leaves_what_can_be_read(reading: HeadReading, kind: str) -> None:
    flow = attention_flow(reading, kind)
    least = default_threshold(flow, 0)
    graph = build_flow_graph(reading.explanation, flow, 0, None)
    assert graph.threshold == least
    assert 0 < len(graph.edges) <= READABLE
    assert graph.edges == prune(flow, least).edges
    finer = max((step for step in THRESHOLDS if step < least), default=None)
    assert finer is None or len(prune(flow, finer).edges) > READABLE


def test_rows_are_those_that_a_path_goes_through_but_all_of_a_short_text() -> None:
    short, long = text_reading(), text_reading(LONG)
    assert len(short.explanation.tokens) <= MAX_FULL_ROWS < len(long.explanation.tokens)
    assert [row.position for row in graph_of(short, 0.5).rows] == list(range(len(short.explanation.tokens)))
    graph = graph_of(long)
    wanted = {at for node in graph.nodes for at in node.path.positions}
    assert [row.position for row in graph.rows] == sorted(wanted)
    assert len(graph.rows) < len(long.explanation.tokens)


@pytest.mark.parametrize("reading", [text_reading(LONG), picture_reading()], ids=["text", "picture"])
def test_every_step_and_path_ends_at_nodes_and_rows_that_are_there(reading: HeadReading) -> None:
    graph = graph_of(reading)
    ids, rows = {node.id for node in graph.nodes}, {row.position for row in graph.rows}
    assert {(edge.layer, edge.source) for edge in graph.edges} <= ids
    assert {(edge.layer + 1, edge.target) for edge in graph.edges} <= ids
    assert set(enumerate(graph.best.positions)) <= ids
    for node in graph.nodes:
        assert node.path.positions[node.id[0]] == node.id[1]
        assert set(node.path.positions) <= rows


def test_the_path_that_is_chosen_first_begins_at_a_token_and_no_special_one() -> None:
    reading = text_reading()
    flow = attention_flow(reading)
    graph = build_flow_graph(reading.explanation, flow, 0, None)
    assert graph.best == strongest_path(flow, reading.explanation.features)
    assert not reading.explanation.tokens[graph.best.positions[0]].special
    cls = next(node for node in graph.nodes if node.id == (0, 0))
    assert cls.path.positions[0] == 0
    assert cls.path.share > 0


def test_patches_are_numbered_row_by_row_and_special_tokens_are_none() -> None:
    graph = graph_of(picture_reading((4, 6)))
    for row in graph.rows:
        assert row.patch == (None if row.position == 0 else row.position - 1)
        if row.patch is not None:
            assert row.name == f"row {1 + row.patch // 6}, column {1 + row.patch % 6}"
    assert graph_data(graph)["grid"] == [4, 6]


def test_a_text_of_special_tokens_alone_has_a_path_too() -> None:
    graph = graph_of(text_reading("", layers=2))
    assert graph.best.share > 0
    assert {row.name for row in graph.rows} == {"0 [CLS]", "1 [SEP]"}


def test_where_the_model_reads_the_mean_of_all_some_of_the_largest_steps_are_drawn() -> None:
    reading = text_reading(LONG)
    n = len(reading.explanation.tokens)
    graph = graph_of(dataclasses.replace(reading, reads=np.full(n, 1 / n)))
    assert 0 < len(graph.edges) <= READABLE
    assert graph.pruned.left_out > 0
    flows = [edge.flow for edge in graph.edges]
    assert flows == sorted(flows, reverse=True)


def test_how_much_is_shown_is_said() -> None:
    graph = graph_of(by_hand(), 0.3, residual=0.0)
    assert describe_carried_share(graph) == (
        "Each of the 3 steps drawn carries at least 30% of the prediction; paths of such steps carry "
        "75.0% of it from the input."
    )
    cut = dataclasses.replace(graph, pruned=PrunedFlow(graph.edges[:1], 0.75, 1_200))
    assert describe_carried_share(cut).startswith("The step drawn carries at least 30%")
    assert describe_carried_share(cut).endswith("1,200 more carry as much but are not drawn.")
    none = graph_of(by_hand(), 0.9, residual=0.0)
    assert "only the most important path is drawn" in describe_carried_share(none)
    assert graph_data(none)["best"] == [[1, 2, 0], 0.05]


@pytest.mark.parametrize(
    ("share", "said"), [(0.1234, "12.3"), (0.0002, "0.02"), (1.0, "100"), (0.0, "0"), (3e-5, "<\u00a00.01")]
)
def test_shares_are_percent(share: float, said: str) -> None:
    assert format_share(share) == f"{said}%"


SVG = "{http://www.w3.org/2000/svg}"
READINGS = {"text": text_reading(), "picture": picture_reading()}


def svg_root(graph: FlowGraph, reading: HeadReading) -> ElementTree.Element:
    return ElementTree.fromstring(flow_svg(graph, reading.explanation, ", residual 0.5, from layer 0"))


def words_of(picture: ElementTree.Element) -> str:
    """All that is written, on one line."""
    return " ".join(" ".join(text.itertext()) for text in picture.iter(f"{SVG}text"))


@pytest.mark.parametrize("kind", READINGS)
@pytest.mark.parametrize("start", [0, 2])
def test_the_picture_has_every_step_every_node_and_the_words(kind: str, start: int) -> None:
    reading = READINGS[kind]
    graph = graph_of(reading, start=start)
    picture = svg_root(graph, reading)
    lines, circles = list(picture.iter(f"{SVG}path")), list(picture.iter(f"{SVG}circle"))
    assert len(lines) == len(graph.edges) + len(graph.reads) + 2
    assert len(circles) == len(graph.nodes) + 1
    said = words_of(picture)
    for words in (
        describe_carried_share(graph),
        describe_path(graph, graph.best),
        describe_special_share(graph),
        "Attention rollout, residual 0.5, from layer 0.",
    ):
        assert " ".join(words.split()) in " ".join(said.split())
    assert all(row.name in said for row in graph.rows)


def test_the_nodes_of_the_path_are_filled_and_the_prediction_is() -> None:
    reading = READINGS["text"]
    graph = graph_of(reading)
    inks = [(one.attrib["fill"], one.attrib["stroke"]) for one in svg_root(graph, reading).iter(f"{SVG}circle")]
    path = set(enumerate(graph.best.positions))
    assert [fill == stroke for fill, stroke in inks] == [*(node.id in path for node in graph.nodes), True]
    assert 0 < len(path) < len(graph.nodes)


def test_nothing_is_drawn_beside_the_sheet() -> None:
    reading = text_reading(" ".join(f"w{at}" for at in range(200)), layers=12)
    picture = svg_root(graph_of(reading, 0.001), reading)
    width, height = (float(picture.attrib[name]) for name in ("width", "height"))
    for circle in picture.iter(f"{SVG}circle"):
        x, y, size = (float(circle.attrib[name]) for name in ("cx", "cy", "r"))
        assert size <= x <= width - size
        assert size <= y <= height - size
    for line in picture.iter(f"{SVG}path"):
        places = [float(number) for number in re.findall(r"-?[\d.]+", line.attrib["d"])]
        assert min(places) >= 0
        assert max(places[0::2]) <= width
        assert max(places[1::2]) <= height


def test_the_strongest_step_has_the_widest_line() -> None:
    reading = text_reading()
    graph = graph_of(reading)
    lines = [line for line in svg_root(graph, reading).iter(f"{SVG}path") if "stroke-opacity" in line.attrib]
    widths = [float(line.attrib["stroke-width"]) for line in lines[: len(graph.edges)]]
    assert widths == sorted(widths)


def test_names_are_escaped_and_cut() -> None:
    reading = text_reading("a <script> " + "x" * 60)
    graph = graph_of(reading, 0.5)
    picture = flow_svg(graph, reading.explanation)
    assert "<script" not in picture
    assert "…" in words_of(ElementTree.fromstring(picture))


@pytest.mark.parametrize("start", [0, 2])
def test_the_table_has_the_steps_in_full(start: int) -> None:
    reading = text_reading()
    graph = graph_of(reading, start=start)
    head, *rows = csv.reader(io.StringIO(flow_csv(graph)))
    assert tuple(head) == CSV_HEADER
    assert len(rows) == len(graph.edges)
    for row, edge in zip(rows, graph.edges, strict=True):
        assert [int(row[at]) for at in (0, 1, 3)] == [start + edge.layer, edge.source, edge.target]
        assert row[2] == f"{edge.source} {reading.explanation.tokens[edge.source].text}"
        assert (float(row[5]), float(row[6])) == (edge.weight, edge.flow)


def test_a_name_that_acts_in_a_sheet_is_defused() -> None:
    reading = text_reading()
    graph = graph_of(reading)
    rows = tuple(dataclasses.replace(row, name="=1+1") for row in graph.rows)
    assert "'=1+1" in flow_csv(dataclasses.replace(graph, rows=rows))
