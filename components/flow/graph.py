"""The flow of attention as a layered graph, drawn by the browser: hovering and picking a path cost no run."""

from __future__ import annotations

from functools import cache

from components import pins
from components.flow.told import FlowGraph, told
from components.pins import Component

NAME = "exegesis_flow_graph"


def flow_graph(graph: FlowGraph, key: str) -> None:
    """Shows the graph; its most important path is chosen first."""
    _component()(key=key, data={**told(graph), "turn": 0})


@cache
def _component() -> Component:
    return pins.component(NAME, "flow_graph")
