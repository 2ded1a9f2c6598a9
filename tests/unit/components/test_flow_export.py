"""The flow as files: a picture that is well formed and shows the steps, and a table of them."""

from __future__ import annotations

import csv
import dataclasses
import io
import re
from xml.etree import ElementTree

import pytest

from components.flow.export import HEAD, flow_csv, flow_svg
from components.flow.told import FlowGraph, carried_words, flow_graph_of, path_words, special_words
from engine.heads.flow import attention_flow
from engine.heads.readings import HeadReading
from tests.unit.components.flows import picture_reading, text_reading

SVG = "{http://www.w3.org/2000/svg}"
READINGS = {"text": text_reading(), "picture": picture_reading()}


def graph_of(reading: HeadReading, start: int = 0, threshold: float | None = None) -> FlowGraph:
    return flow_graph_of(reading, attention_flow(reading, start_layer=start), start, threshold)


def drawn(graph: FlowGraph, reading: HeadReading) -> ElementTree.Element:
    return ElementTree.fromstring(flow_svg(graph, reading.of, ", residual 0.5, from layer 0"))


def words_of(picture: ElementTree.Element) -> str:
    """All that is written, on one line."""
    return " ".join(" ".join(text.itertext()) for text in picture.iter(f"{SVG}text"))


@pytest.mark.parametrize("kind", READINGS)
@pytest.mark.parametrize("start", [0, 2])
def test_the_picture_has_every_step_every_node_and_the_words(kind: str, start: int) -> None:
    reading = READINGS[kind]
    graph = graph_of(reading, start)
    picture = drawn(graph, reading)
    lines, circles = list(picture.iter(f"{SVG}path")), list(picture.iter(f"{SVG}circle"))
    assert len(lines) == len(graph.edges) + len(graph.reads) + 2
    assert len(circles) == len(graph.nodes) + 1
    said = words_of(picture)
    for words in (
        carried_words(graph),
        path_words(graph, graph.best),
        special_words(graph),
        "Attention rollout, residual 0.5, from layer 0.",
    ):
        assert " ".join(words.split()) in " ".join(said.split())
    assert all(row.name in said for row in graph.rows)


def test_the_nodes_of_the_path_are_filled_and_the_prediction_is() -> None:
    reading = READINGS["text"]
    graph = graph_of(reading)
    inks = [(one.attrib["fill"], one.attrib["stroke"]) for one in drawn(graph, reading).iter(f"{SVG}circle")]
    path = set(enumerate(graph.best.positions))
    assert [fill == stroke for fill, stroke in inks] == [*(node.spot in path for node in graph.nodes), True]
    assert 0 < len(path) < len(graph.nodes)


def test_nothing_is_drawn_beside_the_sheet() -> None:
    reading = text_reading(" ".join(f"w{at}" for at in range(200)), layers=12)
    picture = drawn(graph_of(reading, threshold=0.001), reading)
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
    lines = [line for line in drawn(graph, reading).iter(f"{SVG}path") if "stroke-opacity" in line.attrib]
    widths = [float(line.attrib["stroke-width"]) for line in lines[: len(graph.edges)]]
    assert widths == sorted(widths)


def test_names_are_escaped_and_cut() -> None:
    reading = text_reading("a <script> " + "x" * 60)
    graph = graph_of(reading, threshold=0.5)
    picture = flow_svg(graph, reading.of)
    assert "<script" not in picture
    assert "…" in words_of(ElementTree.fromstring(picture))


@pytest.mark.parametrize("start", [0, 2])
def test_the_table_has_the_steps_in_full(start: int) -> None:
    reading = text_reading()
    graph = graph_of(reading, start)
    head, *rows = csv.reader(io.StringIO(flow_csv(graph)))
    assert tuple(head) == HEAD
    assert len(rows) == len(graph.edges)
    for row, edge in zip(rows, graph.edges, strict=True):
        assert [int(row[at]) for at in (0, 1, 3)] == [start + edge.layer, edge.source, edge.target]
        assert row[2] == f"{edge.source} {reading.of.tokens[edge.source].text}"
        assert (float(row[5]), float(row[6])) == (edge.weight, edge.flow)


def test_a_name_that_acts_in_a_sheet_is_defused() -> None:
    reading = text_reading()
    graph = graph_of(reading)
    rows = tuple(dataclasses.replace(row, name="=1+1") for row in graph.rows)
    assert "'=1+1" in flow_csv(dataclasses.replace(graph, rows=rows))
