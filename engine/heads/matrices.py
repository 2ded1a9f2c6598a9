"""Attention matrices for a browser: selection of the positions to show, and a compact encoding of all heads.

A selection may be the attention from one text to the other, with or without special tokens, so a matrix need not be
square. Values are quantized to one byte per cell; large matrices are shrunk, and the note says so. The format: `EXH1`,
the length of a JSON header in 4 bytes (little-endian), the header, the scale of each head as 4-byte floats, then the
cells, compressed by zlib. A cell is `level / 254` of its scale; 255 means that the query may not attend. Cells run over
layer, head, query and key, the last fastest.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Int, UInt8, UInt16

from engine.errors import ExegesisError, UsageError, unknown
from engine.heads.readings import HeadReading
from engine.heads.scores import Attention, PerHead

BETWEEN = ("all", "a_to_b", "b_to_a")
"""Attention between all positions, or from the queries of one text of a pair to the keys of the other."""
TEXT_NAMES = ("the first text", "the second text")
WITHOUT_SPECIAL = "Special tokens are left out; the rest is as the model has it, so rows sum to less than 1."
OTHER_TEXT = "Only attention from {} to {} is shown, so rows sum to less than 1."
UNSEEN = "This model reads from left to right: no token of the first text may attend to the second."
MAGIC = b"EXH1"
LEVELS = 254
MASKED = 255
SCALES = ("own", "shared")
SIDE = 256
"""Maximum number of cells per side: a thumbnail has fewer pixels, and a head that is enlarged is sent whole."""
LIMIT = 5_000_000
"""Maximum number of bytes, whatever the attention."""
_FAST = 1
_PIECE = 1 << 20
"""Number of bytes per piece; pieces are compressed in parallel."""
_INFINITE = 0x7C00
"""Infinity's bits in half precision. Without the sign, bits are ordered like the values; larger ones are NaN."""


@dataclass(frozen=True)
class MatrixSelection:
    """Positions of the queries and of the keys that are shown, both ascending, and a note for the reader."""

    rows: tuple[int, ...]
    columns: tuple[int, ...]
    note: str = ""


def select_positions(reading: HeadReading, between: str = BETWEEN[0], special: bool = True) -> MatrixSelection:
    """Select the part of a reading to show. `special`: whether to include special tokens; nothing is renormalized.

    A special token of a pair belongs to the text that it opens or closes: those before the second text to the first.
    """
    if between not in BETWEEN:
        raise unknown("between", between, BETWEEN)
    visible = ~reading.special | special
    if between == BETWEEN[0]:
        positions = _positions(visible)
        return MatrixSelection(positions, positions, "" if special or not reading.special.any() else WITHOUT_SPECIAL)
    sides = _sides(reading)
    queries, keys = (0, 1) if between == "a_to_b" else (1, 0)
    notes = [OTHER_TEXT.format(TEXT_NAMES[queries], TEXT_NAMES[keys])]
    if reading.causal and queries == 0:
        notes.append(UNSEEN)
    return MatrixSelection(
        _positions(visible & (sides == queries)), _positions(visible & (sides == keys)), " ".join(notes)
    )


def select(attention: Attention, selection: MatrixSelection) -> Float[np.ndarray, "layer head row column"]:
    """Return the selected rows and columns of attention: the array itself if all are selected, else a copy."""
    n = attention.shape[-1]
    if len(selection.rows) == len(selection.columns) == n:
        return attention
    return attention[:, :, list(selection.rows)][..., list(selection.columns)]


def _sides(reading: HeadReading) -> Int[np.ndarray, "seq"]:
    """Return 0 for positions of the first text and 1 for those of the second."""
    segments = np.array([token.segment for token in reading.explanation.tokens])
    if reading.explanation.grid is not None:
        raise UsageError("between: must be 'all' for a picture, which has no second text.")
    missing = [name for number, name in enumerate(TEXT_NAMES) if not (segments == number).any()]
    if missing == [TEXT_NAMES[1]]:
        raise UsageError(
            "between: must be 'all' if there is no second text or none of its tokens fits the model. "
            "Give a pair, or choose 'all'."
        )
    if missing:
        raise ExegesisError(f"between: {missing[0]} has no tokens. Write one, or choose 'all'.")
    return (np.arange(len(segments)) >= int((segments == 1).argmax())).astype(int)


def _positions(visible: Bool[np.ndarray, "seq"]) -> tuple[int, ...]:
    positions = tuple(np.flatnonzero(visible).tolist())
    if not positions:
        raise ExegesisError(
            "special: this input has special tokens only, so nothing is left without them. Show them, or give "
            "another input."
        )
    return positions


@dataclass(frozen=True, eq=False)
class QuantizedAttention:
    """Attention quantized to one byte per cell. `scale`: the value of level 254; errors are at most `scale / 508`."""

    levels: UInt8[np.ndarray, "layer head row column"]
    scale: Float[np.ndarray, "layer head"]
    length: tuple[int, int]
    """Numbers of queries and keys before cells were merged."""
    factor: int
    """Positions per side that a cell represents by the largest of their values; 1 if nothing was shrunk."""

    @property
    def note(self) -> str:
        """A warning for the reader, or an empty string."""
        return _note(self.levels.shape, self.length, self.factor)


def quantize(attention: Attention, scale: str = "own", side: int = SIDE) -> QuantizedAttention:
    """Quantize attention to at most `side` cells per side.

    `scale`: the value of the top level is the largest value of each head (`own`) or of all heads (`shared`).
    """
    if scale not in SCALES:
        raise unknown("scale", scale, SCALES)
    if not attention.size:
        raise ExegesisError(
            f"attention: must have at least one value, got shape {attention.shape}. Show more positions."
        )
    return _quantize(attention, scale, -(-max(attention.shape[2:]) // side))


def pack_heads(attention: Attention, scale: str = "own", side: int = SIDE, limit: int = LIMIT) -> bytes:
    """Return the bytes of quantized attention, shrunk further until they are at most `limit`."""
    quantized = quantize(attention, scale, side)
    while len(body := to_bytes(quantized)) > limit and max(quantized.levels.shape[2:]) > 1:
        quantized = _quantize(attention, scale, quantized.factor + 1)
    return body


def largest_values(attention: Attention) -> PerHead:
    """Return the largest value of each head, or 1 if it has none above 0."""
    own = _halves(_largest(_bits(attention)))
    return np.where(own > 0, own, np.float32(1))


def to_bytes(quantized: QuantizedAttention) -> bytes:
    """Encode quantized attention in the format that this module describes."""
    header = json.dumps(
        {"shape": quantized.levels.shape, "length": quantized.length, "factor": quantized.factor}
    ).encode()
    header += b" " * (-len(header) % 4)  # so that the floats lie where a browser can read them in place
    scale = quantized.scale.astype("<f4").tobytes()
    return MAGIC + len(header).to_bytes(4, "little") + header + scale + _deflate(quantized.levels.tobytes())


def from_bytes(body: bytes) -> QuantizedAttention:
    """Decode the result of `to_bytes`."""
    header, start = _header(body)
    layers, heads = header["shape"][:2]
    scale = np.frombuffer(body, "<f4", layers * heads, start).reshape(layers, heads)
    cells = np.frombuffer(zlib.decompress(body[start + scale.nbytes :]), np.uint8)
    queries, keys = header["length"]
    return QuantizedAttention(cells.reshape(header["shape"]), scale, (queries, keys), header["factor"])


def read_note(body: bytes) -> str:
    """Return the note of encoded attention without decompressing it."""
    header, _ = _header(body)
    return _note(**header)


def shrink(attention: Attention, factor: int) -> Float[np.ndarray, "layer head row column"]:
    """Return the largest value of each `factor` x `factor` block, in half precision; NaN only if a block has none."""
    return _shrink(_bits(attention), factor).view(np.float16)


def _header(body: bytes) -> tuple[dict[str, Any], int]:
    """Return the header and the offset of the scales after it."""
    if body[:4] != MAGIC:
        raise ExegesisError("grids: the bytes are not encoded grids. Encode the attention again.")
    start = 8 + int.from_bytes(body[4:8], "little")
    return json.loads(body[8:start]), start


def _note(shape: Sequence[int], length: Sequence[int], factor: int) -> str:
    if factor == 1:
        return ""
    queries, keys = length
    size = f"{keys} positions" if queries == keys else f"{queries} queries and {keys} keys"
    return f"{size} are drawn as {shape[2]} x {shape[3]} cells; each shows the largest of {factor} x {factor} values."


def _deflate(raw: bytes) -> bytes:
    """Compress to one stream (RFC 1950), in pieces that run in parallel: zlib releases the GIL."""
    pieces = [raw[at : at + _PIECE] for at in range(0, len(raw), _PIECE)]
    with ThreadPoolExecutor() as pool:
        streams = list(pool.map(_deflate_piece, pieces, [zlib.Z_SYNC_FLUSH] * (len(pieces) - 1) + [zlib.Z_FINISH]))
    return b"\x78\x01" + b"".join(streams) + zlib.adler32(raw).to_bytes(4, "big")


def _deflate_piece(raw: bytes, end: int) -> bytes:
    """Compress runs and frequent levels; other repetitions in attention are not worth searching for."""
    deflate = zlib.compressobj(_FAST, wbits=-zlib.MAX_WBITS, strategy=zlib.Z_RLE)
    return deflate.compress(raw) + deflate.flush(end)


def _quantize(attention: Attention, scale: str, factor: int) -> QuantizedAttention:
    bits = _shrink(_bits(attention), factor)
    largest = _largest(bits)
    own = _halves(largest)
    ends = own if scale == "own" else np.full_like(own, own.max())
    ends = np.where(ends > 0, ends, np.float32(1))
    levels = np.empty(bits.shape, np.uint8)
    for head in np.ndindex(ends.shape):
        _level_table(int(largest[head]), float(ends[head])).take(bits[head], mode="clip", out=levels[head])
    return QuantizedAttention(levels, ends, (attention.shape[2], attention.shape[3]), factor)


def _bits(attention: Attention) -> UInt16[np.ndarray, "layer head row column"]:
    return np.ascontiguousarray(attention, np.float16).view(np.uint16) & 0x7FFF


def _shrink(bits: UInt16[np.ndarray, "layer head row column"], factor: int) -> UInt16[np.ndarray, "layer head y x"]:
    if factor == 1:
        return bits
    raised = np.where(bits > _INFINITE, np.uint16(0), bits + np.uint16(1))  # NaN is less than any value
    beyond = [(0, -size % factor) for size in raised.shape[2:]]
    raised = np.pad(raised, [(0, 0), (0, 0), *beyond])
    raised = np.maximum.reduce([raised[:, :, at::factor] for at in range(factor)])
    return np.maximum.reduce([raised[..., at::factor] for at in range(factor)]) - np.uint16(1)


def _largest(bits: UInt16[np.ndarray, "layer head row column"]) -> UInt16[np.ndarray, "layer head"]:
    return np.where(bits > _INFINITE, np.uint16(0), bits).max((2, 3))


def _halves(bits: UInt16[np.ndarray, "*shape"]) -> Float[np.ndarray, "*shape"]:
    return bits.view(np.float16).astype(np.float32)


def _level_table(top: int, end: float) -> UInt8[np.ndarray, "half"]:
    """Return the level of every half up to `top`, then that of NaN: looking levels up is faster than computing them."""
    halves = _halves(np.arange(top + 1, dtype=np.uint16))
    return np.append(np.rint(halves * np.float32(LEVELS / end)).astype(np.uint8), np.uint8(MASKED))
