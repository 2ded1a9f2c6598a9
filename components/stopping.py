"""What a person stopped stays stopped in their session until they go on; the line that offers both."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from engine.errors import Cancelled

STOPPED = "stopped_requests"
"""In the session: the cache keys of what is not to be computed."""


def is_stopped(key: str) -> bool:
    """Whether the person stopped the request of this cache key."""
    return key in st.session_state.get(STOPPED, [])


def refuse_stopped(key: str) -> None:
    """Raises `Cancelled` for what the person stopped."""
    if is_stopped(key):
        raise Cancelled("Stopped.")


def go_on_button(place: DeltaGenerator, key: str, sentence: str) -> None:
    """Says what was stopped, and offers to go on. `key`: the cache key of something stopped."""
    box = place.container(horizontal=True, vertical_alignment="center", gap="small")
    box.info(sentence)
    box.button("Go on", key=f"go_on.{key}", on_click=_go_on, help="Computes what was stopped.")


class ProgressLine:
    """How far the work is; as soon as the wait is felt, with a button that stops all of it."""

    def __init__(self, place: DeltaGenerator, keys: Sequence[str], head: str = "") -> None:
        """`place`: an empty element. `keys`: the cache keys of what is to be computed. `head`: what comes first."""
        self._place, self._keys = place, list(keys)
        self._box: DeltaGenerator | None = None
        self._bar: DeltaGenerator | None = None
        self._share, self._head, self._offered = 0.0, head, False

    def show(self, share: int | float, head: str) -> None:
        """`share` of the work is done, from 0 to 1; `head` names what comes now."""
        self._share, self._head = float(share), head
        self._draw(head)

    def tick(self, words: str) -> None:
        """How far that is."""
        self._draw(f"{self._head}: {words}")
        if self._box is not None and not self._offered:
            self._offered = True
            self._box.button("Stop", key=f"stop.{self._keys[0]}", on_click=_stop, args=(self._keys,))

    def clear(self) -> None:
        self._place.empty()

    def _draw(self, words: str) -> None:
        if self._bar is None:
            self._box = self._place.container(horizontal=True, vertical_alignment="center", gap="small")
            self._bar = self._box.empty()
        self._bar.progress(self._share, words)


def _stop(keys: Sequence[str]) -> None:
    st.session_state[STOPPED] = sorted({*st.session_state.get(STOPPED, []), *keys})


def _go_on() -> None:
    st.session_state[STOPPED] = []
