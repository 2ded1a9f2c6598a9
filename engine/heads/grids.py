"""All heads' attention as few bytes for a browser: a byte a cell, shrunk where that is needed, and said so.

Of all queries to all keys or of some to some (`engine.heads.part`), so that it need not be square.

The form: `EXH1`, the length of a JSON header in 4 bytes (little end first), the header, the largest value of each head
in 4-byte floats, then the cells, deflated (zlib). A cell is `level / 254` of its scale; 255 is where a query may not
attend. Cells run over layer, head, query and key, the last fastest.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float, UInt8, UInt16

from engine.errors import ExegesisError, unknown
from engine.heads.scores import Attention, PerHead

MAGIC = b"EXH1"
LEVELS = 254
MASKED = 255
SCALES = ("own", "shared")
SIDE = 256
"""Cells a side at most: a thumbnail has fewer pixels, and one head is sent whole when a person looks closer."""
LIMIT = 5_000_000
"""Bytes at most, whatever the attention."""
_FAST = 1
_PIECE = 1 << 20
"""Bytes that are deflated at once, each on a core of its own."""
_INFINITE = 0x7C00
"""Halves, read as whole numbers without their sign, rise as what they stand for; those above are NaN."""


@dataclass(frozen=True, eq=False)
class Grids:
    """Attention in levels of a byte. `scale`: what level 254 stands for; an error is at most `scale / 508`."""

    levels: UInt8[np.ndarray, "layer head row column"]
    scale: Float[np.ndarray, "layer head"]
    length: tuple[int, int]
    """Queries and keys that were given, before any were drawn together."""
    factor: int
    """Positions a side that a cell stands for, by the largest of their values; 1 where nothing was shrunk."""

    @property
    def note(self) -> str:
        """What a person must be told, or nothing."""
        return _note(self.levels.shape, self.length, self.factor)


def grids(attention: Attention, scale: str = "own", side: int = SIDE) -> Grids:
    """Quantised, at most `side` cells a side. `own`: each head's largest value is the top; `shared`: that of all."""
    if scale not in SCALES:
        raise unknown("scale", scale, SCALES)
    if not attention.size:
        raise ExegesisError(f"attention: must have a value at least, got shape {attention.shape}. Show more positions.")
    return _quantised(attention, scale, -(-max(attention.shape[2:]) // side))


def packed(attention: Attention, scale: str = "own", side: int = SIDE, limit: int = LIMIT) -> bytes:
    """The bytes of such grids, shrunk further until they are at most `limit`."""
    made = grids(attention, scale, side)
    while len(body := to_bytes(made)) > limit and max(made.levels.shape[2:]) > 1:
        made = _quantised(attention, scale, made.factor + 1)
    return body


def tops(attention: Attention) -> PerHead:
    """The largest value of each head; 1 where it has none."""
    own = _halves(_tops(_bits(attention)))
    return np.where(own > 0, own, np.float32(1))


def values(made: Grids) -> Attention:
    """The attention that the levels stand for; NaN where a query may not attend."""
    found = made.levels * (made.scale[..., None, None] / LEVELS)
    return np.where(made.levels == MASKED, np.nan, found).astype(np.float32)


def to_bytes(made: Grids) -> bytes:
    """The form that this module describes."""
    header = json.dumps({"shape": made.levels.shape, "length": made.length, "factor": made.factor}).encode()
    header += b" " * (-len(header) % 4)  # so that the floats lie where a browser can read them in place
    scale = made.scale.astype("<f4").tobytes()
    return MAGIC + len(header).to_bytes(4, "little") + header + scale + _deflated(made.levels.tobytes())


def from_bytes(body: bytes) -> Grids:
    """What `to_bytes` was given."""
    header, start = _header(body)
    layers, heads = header["shape"][:2]
    scale = np.frombuffer(body, "<f4", layers * heads, start).reshape(layers, heads)
    cells = np.frombuffer(zlib.decompress(body[start + scale.nbytes :]), np.uint8)
    queries, keys = header["length"]
    return Grids(cells.reshape(header["shape"]), scale, (queries, keys), header["factor"])


def note_of(body: bytes) -> str:
    """The note of the grids in these bytes, which are not inflated for it."""
    header, _ = _header(body)
    return _note(**header)


def shrunk(attention: Attention, factor: int) -> Float[np.ndarray, "layer head row column"]:
    """The largest value of each `factor` x `factor` block, in half precision; NaN only where a block has none."""
    return _shrunk(_bits(attention), factor).view(np.float16)


def _header(body: bytes) -> tuple[dict[str, Any], int]:
    """What stands before the numbers, and where they start."""
    if body[:4] != MAGIC:
        raise ExegesisError("grids: these bytes are none. Make them again from the attention.")
    start = 8 + int.from_bytes(body[4:8], "little")
    return json.loads(body[8:start]), start


def _note(shape: Sequence[int], length: Sequence[int], factor: int) -> str:
    if factor == 1:
        return ""
    queries, keys = length
    given = f"{keys} positions" if queries == keys else f"{queries} queries and {keys} keys"
    return f"{given} are drawn as {shape[2]} x {shape[3]} cells; each shows the largest of {factor} x {factor} values."


def _deflated(raw: bytes) -> bytes:
    """One stream (RFC 1950) of pieces made side by side: zlib lets other threads run meanwhile."""
    pieces = [raw[at : at + _PIECE] for at in range(0, len(raw), _PIECE)]
    with ThreadPoolExecutor() as pool:
        made = list(pool.map(_piece, pieces, [zlib.Z_SYNC_FLUSH] * (len(pieces) - 1) + [zlib.Z_FINISH]))
    return b"\x78\x01" + b"".join(made) + zlib.adler32(raw).to_bytes(4, "big")


def _piece(raw: bytes, end: int) -> bytes:
    """Runs and frequent levels take less; anything else that repeats in attention is not worth looking for."""
    deflate = zlib.compressobj(_FAST, wbits=-zlib.MAX_WBITS, strategy=zlib.Z_RLE)
    return deflate.compress(raw) + deflate.flush(end)


def _quantised(attention: Attention, scale: str, factor: int) -> Grids:
    bits = _shrunk(_bits(attention), factor)
    largest = _tops(bits)
    own = _halves(largest)
    ends = own if scale == "own" else np.full_like(own, own.max())
    ends = np.where(ends > 0, ends, np.float32(1))
    levels = np.empty(bits.shape, np.uint8)
    for head in np.ndindex(ends.shape):
        _levels(int(largest[head]), float(ends[head])).take(bits[head], mode="clip", out=levels[head])
    return Grids(levels, ends, (attention.shape[2], attention.shape[3]), factor)


def _bits(attention: Attention) -> UInt16[np.ndarray, "layer head row column"]:
    return np.ascontiguousarray(attention, np.float16).view(np.uint16) & 0x7FFF


def _shrunk(bits: UInt16[np.ndarray, "layer head row column"], factor: int) -> UInt16[np.ndarray, "layer head y x"]:
    if factor == 1:
        return bits
    raised = np.where(bits > _INFINITE, np.uint16(0), bits + np.uint16(1))  # NaN is less than any value
    beyond = [(0, -size % factor) for size in raised.shape[2:]]
    raised = np.pad(raised, [(0, 0), (0, 0), *beyond])
    raised = np.maximum.reduce([raised[:, :, at::factor] for at in range(factor)])
    return np.maximum.reduce([raised[..., at::factor] for at in range(factor)]) - np.uint16(1)


def _tops(bits: UInt16[np.ndarray, "layer head row column"]) -> UInt16[np.ndarray, "layer head"]:
    return np.where(bits > _INFINITE, np.uint16(0), bits).max((2, 3))


def _halves(bits: UInt16[np.ndarray, "*shape"]) -> Float[np.ndarray, "*shape"]:
    return bits.view(np.float16).astype(np.float32)


def _levels(top: int, end: float) -> UInt8[np.ndarray, "half"]:
    """The level of every half up to `top`, then that of NaN: to look levels up is quicker than to work each out."""
    halves = _halves(np.arange(top + 1, dtype=np.uint16))
    return np.append(np.rint(halves * np.float32(LEVELS / end)).astype(np.uint8), np.uint8(MASKED))
