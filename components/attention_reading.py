"""The reading of all heads as a page reaches it: from memory, from the cache, or computed with progress and Stop."""

from __future__ import annotations

import threading
from collections import OrderedDict

import streamlit as st

from components.attention_state import AttentionState
from components.computing import Tick, shared
from components.engine_room import key_of
from components.prediction_area import PROBE
from components.stopping import ProgressLine, go_on_button, refuse_stopped
from components.trouble import say_error, sentence
from engine.errors import Cancelled
from engine.heads.reading import HeadReading, read_heads
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
    progress, request = st.empty(), state.request(PROBE)
    key = reading_key(request)
    line = ProgressLine(progress, [key], "Reading the heads")
    try:
        reading = reading_of(request, line.tick)
        line.clear()
        return reading
    except Cancelled:
        go_on_button(progress, key, "Stopped before the heads were read.")
    except Exception as error:
        say_error(sentence(error), progress)
    return None


def reading_of(request: Request, tick: Tick) -> HeadReading:
    """The reading; `Cancelled` if the person stopped it. `tick` is told how far it is."""
    key = reading_key(request)
    kept = recent().get(key)
    if kept is None:
        refuse_stopped(key)
        kept = shared(key, lambda token: read_heads(request, token), tick)
        recent().put(key, kept)
    return kept


def reading_key(request: Request) -> str:
    """By what a reading is known while it is made and kept."""
    return f"heads.{key_of(request)}"


@st.cache_resource(show_spinner=False)
def recent() -> Recent:
    """The one memory of the server."""
    return Recent()
