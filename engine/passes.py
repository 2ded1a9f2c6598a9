"""Passes over many changed versions (rows) of a few texts: similar lengths share a pass, common prefixes are read once.

In a causal model, the tokens before the first change of a row have the same states as in the text itself, and two rows
that begin with the same changes have the same states up to the position at which they differ. If that saves work, the
text or each such prefix is read once, its keys and values are held while the passes run, and only the positions after
it are computed.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Int

from engine import runtime
from engine.lazy import torch
from engine.models.classifier import AnyClassifier, EncodedInput
from engine.models.past import GrowingPast, KeysValues, SharedPrefix
from engine.runtime import in_chunks

CPU_PASS_TOKENS = 128
"""The fixed cost of a pass in tokens, for reading weights and starting kernels."""
GPU_PASS_TOKENS = 2_048
PREFIX_SHARE = 0.5
"""The largest share of the memory budget that the keys and values of prefixes may take."""
VARYING_POSITIONS = ("dynamic", "longrope")
"""Kinds of rotary positions that depend on the length of the whole input."""

Rows = Int[np.ndarray, "row"]
Compute = Callable[[Rows, SharedPrefix | None], np.ndarray]
"""Takes the rows of a pass and the prefixes read before (None if rows are read whole); returns the rows' values."""
Begin = Callable[[Rows, int], tuple[Any, "torch.Tensor"]]
"""Takes rows and a number of positions; returns a batch of each row's first positions, and their embeddings."""


@dataclass(frozen=True, eq=False)
class ChangedRows:
    """Rows, each a changed version of a text. `texts`: index of the text of each row.

    `starts`: number of first positions that are unchanged, so that at least one position follows. `lengths`: number of
    positions of each row, which may be shorter than its text. `kept`: mask of unchanged positions; only given if rows
    of a text with the same mask up to a position have the same prefix.
    """

    texts: Int[np.ndarray, "row"]
    starts: Int[np.ndarray, "row"]
    lengths: Int[np.ndarray, "row"]
    kept: Bool[np.ndarray, "row position"] | None = None

    def __len__(self) -> int:
        return len(self.texts)

    @property
    def rest(self) -> Int[np.ndarray, "row"]:
        """Number of positions that remain to be computed if those before are held."""
        return self.lengths - self.starts


@dataclass(frozen=True, eq=False)
class Sharing:
    """How the rows of a block share prefixes. `read`: returns the keys and values of all prefixes, by layer.

    `prefixes`: number of prefixes, each of which is read once. `longest`: length of the longest one. `of_row`: index of
    each row's prefix. `starts`: number of positions of it that the row uses. `ends`: ends of the groups of rows that
    share passes, with rows in ascending order of their remaining positions. `tokens`: cost of all passes, in tokens.
    """

    read: Callable[[], list[KeysValues]]
    prefixes: int
    longest: int
    of_row: Int[np.ndarray, "row"]
    starts: Int[np.ndarray, "row"]
    ends: Int[np.ndarray, "group"]
    tokens: int


def in_passes(
    model: AnyClassifier,
    texts: Sequence[EncodedInput],
    rows: ChangedRows,
    compute: Compute,
    begin: Begin | None = None,
) -> np.ndarray:
    """Run `compute` on all rows, one pass at a time, and return the values in the order of the rows.

    `begin`: needed to share prefixes of rows with `kept`. The caller must hold the device.
    """
    size = _texts_held(model, max(map(len, texts))) if shares_prefixes(model) else 0
    if 0 < size < len(texts):
        numbers = rows.texts // size
        blocks = [np.flatnonzero(numbers == number) for number in np.unique(numbers)]
    else:
        blocks = [np.arange(len(rows))]
    parts = [
        _run_block(model, rows, block, compute, _cheapest(model, texts, rows, block, begin) if size else None)
        for block in blocks
    ]
    values = np.concatenate([part for _, part in parts])
    ordered = np.empty_like(values)
    ordered[np.concatenate([order for order, _ in parts])] = values
    return ordered


def shares_prefixes(model: AnyClassifier) -> bool:
    """Whether the keys and values of a position are independent of what follows it."""
    if model.adapter is None or not model.adapter.causal or not model.reads_parts:
        return False
    rotary = getattr(model.module.config, "rope_parameters", None) or {}
    kinds = [rotary, *(part for part in rotary.values() if isinstance(part, dict))]  # Gemma 3 has one per type of layer
    return not any(kind.get("rope_type") in VARYING_POSITIONS for kind in kinds)


def _texts_held(model: AnyClassifier, longest: int) -> int:
    """Return the number of texts of that length that fit in one pass, and whose keys and values can be held."""
    held = int(runtime.memory_budget() * PREFIX_SHARE)
    return min(held // runtime.past_bytes(model, longest), runtime.rows_at_once(model, longest))


def _run_block(
    model: AnyClassifier, rows: ChangedRows, block: Rows, compute: Compute, sharing: Sharing | None
) -> tuple[Rows, np.ndarray]:
    """Return the rows of a block in the order of the passes, and their values."""
    held_layers = None if sharing is None else runtime.attempt(sharing.read)
    if sharing is None or held_layers is None:
        order = block[np.argsort(rows.lengths[block], kind="stable")]
        size = runtime.rows_at_once(model, int(rows.lengths[block].max()))
        return order, np.concatenate(in_chunks(lambda part: compute(order[part], None), len(order), size))

    rest = rows.lengths[block] - sharing.starts
    by_rest = np.argsort(rest, kind="stable")
    order, rest, of_row, starts = block[by_rest], rest[by_rest], sharing.of_row[by_rest], sharing.starts[by_rest]
    held = sharing.prefixes * runtime.past_bytes(model, sharing.longest)

    def run(part: slice) -> np.ndarray:
        own, before = (torch.from_numpy(values[part]).to(model.device) for values in (of_row, starts))
        return compute(order[part], SharedPrefix(held_layers[0], own, before, int(starts[part].max())))

    def fit(first: int) -> int:
        end = int(sharing.ends[np.searchsorted(sharing.ends, first, side="right")])
        width, past = int(rest[end - 1]), int(starts[first:end].max())
        return min(end - first, runtime.rows_at_once(model, width, past=past, held=held))

    return order, np.concatenate(in_chunks(run, len(order), fit))


def _read(
    model: AnyClassifier, batch: Any, embeds: Float[torch.Tensor, "batch seq d_model"] | None
) -> list[KeysValues]:
    """Return the keys and values of each layer for all rows of a batch. `embeds`: replaces the word embeddings."""
    past = GrowingPast(len(batch.lengths), model.device)
    with torch.inference_mode():
        model.hidden(dataclasses.replace(batch, past=past), embeds)
    return past.layers


def _cheapest(
    model: AnyClassifier, texts: Sequence[EncodedInput], rows: ChangedRows, block: Rows, begin: Begin | None
) -> Sharing | None:
    """Return the sharing with the lowest cost in tokens, or None if reading the rows whole costs no more."""
    cost = CPU_PASS_TOKENS if model.device.type == "cpu" else GPU_PASS_TOKENS
    found: list[Sharing | None] = [_text_prefixes(model, texts, rows, block, cost)]
    if begin is not None and rows.kept is not None:
        found.append(_common_beginnings(model, rows, block, cost, begin))
    whole = cost + int(rows.lengths[block].sum())
    return min(
        (one for one in found if one is not None and one.tokens < whole), key=lambda one: one.tokens, default=None
    )


def _text_prefixes(
    model: AnyClassifier, texts: Sequence[EncodedInput], rows: ChangedRows, block: Rows, cost: int
) -> Sharing:
    """Use whole texts as prefixes: each row continues at the first position at which it differs from its text."""
    used, of_row = np.unique(rows.texts[block], return_inverse=True)
    own = [texts[text] for text in used]
    tokens, ends = _group_ends(rows.rest[block], cost)
    lengths = [len(text) for text in own]

    def read() -> list[KeysValues]:
        return _read(model, model.collate(own), None)

    return Sharing(read, len(own), max(lengths), of_row, rows.starts[block], ends, tokens + cost + sum(lengths))


def _group_ends(rest: Int[np.ndarray, "row"], cost: int) -> tuple[int, Int[np.ndarray, "group"]]:
    """Return the minimal total cost of passes over rows in ascending order of `rest`, and the ends of groups of rows.

    The rows of a group share passes. `cost`: fixed cost of a pass, in tokens.
    """
    widths, counts = np.unique(rest, return_counts=True)
    total = np.concatenate([[0], np.cumsum(counts)])
    fewest, before = np.zeros(len(total)), np.zeros(len(total), dtype=int)
    for end, width in enumerate(widths, 1):
        tokens = fewest[:end] + cost + (total[end] - total[:end]) * width
        before[end] = tokens.argmin()
        fewest[end] = tokens[before[end]]
    ends = [len(widths)]
    while before[ends[-1]]:
        ends.append(int(before[ends[-1]]))
    return int(fewest[-1]), total[ends[::-1]]


def _common_beginnings(model: AnyClassifier, rows: ChangedRows, block: Rows, cost: int, begin: Begin) -> Sharing | None:
    """Use prefixes of equal length: each distinct prefix is read once, and all rows continue after it.

    Returns None if no length saves anything, or the prefixes do not fit into one pass or into their share of memory.
    """
    assert rows.kept is not None
    shortest = int(rows.lengths[block].min())
    alike = np.concatenate([rows.texts[block, None], rows.kept[block, : shortest - 1]], axis=1)
    order = np.lexsort(alike.T[::-1])
    differs = alike[order[1:]] != alike[order[:-1]]
    parts = np.where(differs.any(1), differs.argmax(1), shortest)  # the column at which a row differs from the last
    counts = 1 + np.cumsum(np.bincount(parts, minlength=shortest + 1))[:shortest]  # by number of first positions
    saved = len(block) - counts
    count = int((saved * np.arange(shortest)).argmax())
    prefixes = int(counts[count])
    held = prefixes * runtime.past_bytes(model, count)
    if not count or prefixes > runtime.rows_at_once(model, count) or held > runtime.memory_budget() * PREFIX_SHARE:
        return None
    new = np.concatenate([[True], parts <= count])
    of_row = np.empty(len(block), dtype=np.int64)
    of_row[order] = np.cumsum(new) - 1
    firsts = block[order[new]]
    starts = np.full(len(block), count)
    tokens = 2 * cost + int(rows.lengths[block].sum()) - count * int(saved[count])
    ends = np.array([len(block)])
    return Sharing(lambda: _read(model, *begin(firsts, count)), prefixes, count, of_row, starts, ends, tokens)
