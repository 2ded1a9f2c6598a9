"""Attention on its way to the browser, of all heads or of one: packed once for a reading, sent once for a page.

The element shows nothing. It lays the bytes into the window under their digest, where the board waits for them; while
the script runs again with the same bytes, Streamlit only names them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from weakref import WeakKeyDictionary

import streamlit as st

from components.pins import component
from engine.heads.matrices import MatrixSelection, largest_values, pack_heads, read_note, select
from engine.heads.readings import HeadReading

NAME = "exegesis_attention_bytes"
DIGEST = 16
"""Characters of a digest, which stand before the bytes."""


@dataclass(frozen=True)
class Sent:
    """`body`: the digest, then what stands for attention. `note`: what was drawn together, or nothing."""

    body: bytes
    digest: str
    note: str = ""


@dataclass(frozen=True)
class Grid:
    """All heads by `engine.heads.matrices.pack_heads`, and the largest value of each whole head, shown or not."""

    sent: Sent
    ends: list[list[float]]


def attention_bytes(sent: Sent, key: str) -> None:
    """Hands the bytes to the browser."""
    _component()(key=key, data=sent.body)


def grid_of(reading: HeadReading, part: MatrixSelection) -> Grid:
    """What is sent of a reading. It is kept while the reading is in memory, for the part that was asked for last."""
    kept = _kept().get(reading)
    if kept is None or kept[0] != part:
        kept = _kept()[reading] = (part, pack(reading, part))
    return kept[1]


def pack(reading: HeadReading, part: MatrixSelection) -> Grid:
    """The same, made anew."""
    body = pack_heads(select(reading.attention, part))
    return Grid(named(body, read_note(body)), largest_values(reading.attention).tolist())


def named(body: bytes, note: str = "") -> Sent:
    """Bytes behind their digest."""
    digest = hashlib.blake2b(body, digest_size=DIGEST // 2).hexdigest()
    return Sent(digest.encode() + body, digest, note)


@st.cache_resource(show_spinner=False)
def _kept() -> WeakKeyDictionary[HeadReading, tuple[MatrixSelection, Grid]]:
    return WeakKeyDictionary()


@cache
def _component() -> Callable[..., object]:
    return component(NAME, "attention_cells", "attention_bytes")
