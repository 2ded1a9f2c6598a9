"""The reading of all heads as a page reaches it: from memory, from the cache, or computed with progress and Stop."""

from __future__ import annotations

import threading
from collections import OrderedDict

import streamlit as st

from components.attention.state import AttentionState
from components.awaiting import awaited
from components.computing import Tick
from components.engine_room import computed
from components.prediction_area import PROBE
from engine.heads.readings import HeadReading, read_heads, reading_key
from engine.request import Request

KEPT = 3
"""Readings in memory: one of a long text has some 100 MB, and a page draws the same one again and again."""


class Recent:
    """The readings that were asked for last, for all sessions."""

    def __init__(self, most: int = KEPT) -> None:
        self._most, self._lock = most, threading.Lock()
        self._kept: OrderedDict[str, HeadReading] = OrderedDict()

    def get(self, key: str) -> HeadReading | None:
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
            return self._kept.get(key)

    def put(self, key: str, reading: HeadReading) -> None:
        with self._lock:
            self._kept[key] = reading
            self._kept.move_to_end(key)
            while len(self._kept) > self._most:
                self._kept.popitem(last=False)


def reading_area(state: AttentionState) -> HeadReading | None:
    """The reading of what the page looks at; None after saying why there is none."""
    request = state.request(PROBE)
    return awaited(
        st.empty(), lambda: reading_key(request), "Reading the heads", "Stopped before the heads were read.",
        lambda tick: reading_of(request, tick),
    )  # fmt: skip


def reading_of(request: Request, tick: Tick) -> HeadReading:
    """The reading; `Cancelled` if the person stopped it. `tick` is told how far it is."""
    key = reading_key(request)
    kept = recent().get(key)
    if kept is None:
        kept = computed(key, lambda token: read_heads(request, token), tick)
        recent().put(key, kept)
    return kept


@st.cache_resource(show_spinner=False)
def recent() -> Recent:
    """The one memory of the server."""
    return Recent()
