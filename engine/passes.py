"""Passes over many rows of a few texts: rows of like length together, and what a row shares with its text read once.

A causal model reads the tokens before the first change of a row as it reads them in the text itself. Where that saves
work, the text is read once, its keys and values are held while the passes run, and only what follows is computed.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Int

from engine import runtime
from engine.lazy import torch
from engine.models.classifier import AnyClassifier, EncodedInput
from engine.models.past import GrowingPast, KeysValues, SharedPrefix
from engine.runtime import in_chunks

CPU_PASS_TOKENS = 128
"""The cost of a pass besides its tokens, in tokens: weights are read, kernels are started."""
GPU_PASS_TOKENS = 2_048
PREFIX_SHARE = 0.5
"""Of the memory budget: the most that the keys and values of texts may take."""
VARYING_POSITIONS = ("dynamic", "longrope")
"""Kinds of rotary positions that depend on the length of the whole input."""

Rows = Int[np.ndarray, "row"]
Compute = Callable[[Rows, SharedPrefix | None], np.ndarray]
"""Takes the rows of a pass, and the positions that were read before, None where the rows are read whole."""


@dataclass(frozen=True, eq=False)
class ChangedRows:
    """Rows that each change one of some texts. `starts`: how many first positions are as in the text, so that at least
    one follows. `lengths`: the positions of the row; a row may be shorter than its text."""

    texts: Int[np.ndarray, "row"]
    starts: Int[np.ndarray, "row"]
    lengths: Int[np.ndarray, "row"]

    def __len__(self) -> int:
        return len(self.texts)

    @property
    def rest(self) -> Int[np.ndarray, "row"]:
        """Positions that are computed where those before are held."""
        return self.lengths - self.starts


def in_passes(model: AnyClassifier, texts: Sequence[EncodedInput], rows: ChangedRows, compute: Compute) -> np.ndarray:
    """Run `compute` on all rows, a pass at a time; its values in the order of the rows.

    The caller must hold the device.
    """
    size = _texts_held(model, max(map(len, texts))) if shares_prefixes(model) else 0
    if 0 < size < len(texts):
        numbers = rows.texts // size
        blocks = [np.flatnonzero(numbers == number) for number in np.unique(numbers)]
    else:
        blocks = [np.arange(len(rows))]
    parts = [_run_block(model, texts, rows, block, compute, share=size > 0) for block in blocks]
    values = np.concatenate([part for _, part in parts])
    ordered = np.empty_like(values)
    ordered[np.concatenate([order for order, _ in parts])] = values
    return ordered


def shares_prefixes(model: AnyClassifier) -> bool:
    """Whether a position's keys and values are the same whatever follows."""
    if model.adapter is None or not model.adapter.causal:
        return False
    rotary = getattr(model.module.config, "rope_parameters", None) or {}
    kinds = [rotary, *(part for part in rotary.values() if isinstance(part, dict))]  # Gemma 3 has one by type of layer
    return not any(kind.get("rope_type") in VARYING_POSITIONS for kind in kinds)


def _texts_held(model: AnyClassifier, longest: int) -> int:
    """How many texts of that length can be read in a pass, and their keys and values held."""
    held = int(runtime.memory_budget() * PREFIX_SHARE)
    return min(held // runtime.past_bytes(model, longest), runtime.rows_at_once(model, longest))


def _run_block(
    model: AnyClassifier, texts: Sequence[EncodedInput], rows: ChangedRows, block: Rows, compute: Compute, share: bool
) -> tuple[Rows, np.ndarray]:
    """The rows of a block in the order of the passes, and their values. `share`: whether prefixes may be read once."""
    ends = _group_ends(model, texts, rows, block) if share else None
    used, places = np.unique(rows.texts[block], return_inverse=True)
    prefixes = None if ends is None else runtime.attempt(lambda: _read(model, [texts[text] for text in used]))
    if ends is None or prefixes is None:
        order = block[np.argsort(rows.lengths[block], kind="stable")]
        size = runtime.rows_at_once(model, int(rows.lengths[block].max()))
        return order, np.concatenate(in_chunks(lambda part: compute(order[part], None), len(order), size))

    by_rest = np.argsort(rows.rest[block], kind="stable")
    order, places = block[by_rest], places[by_rest]
    held = len(used) * runtime.past_bytes(model, max(len(texts[text]) for text in used))

    def run(part: slice) -> np.ndarray:
        starts = rows.starts[order[part]]
        own, before = (torch.from_numpy(values).to(model.device) for values in (places[part], starts))
        return compute(order[part], SharedPrefix(prefixes[0], own, before, int(starts.max())))

    def fit(first: int) -> int:
        end = int(ends[np.searchsorted(ends, first, side="right")])
        width, past = int(rows.rest[order[end - 1]]), int(rows.starts[order[first:end]].max())
        return min(end - first, runtime.rows_at_once(model, width, past=past, held=held))

    return order, np.concatenate(in_chunks(run, len(order), fit))


def _read(model: AnyClassifier, texts: Sequence[EncodedInput]) -> list[KeysValues]:
    """Keys and values of each layer, of all texts."""
    past = GrowingPast(len(texts), model.device)
    with torch.inference_mode():
        model.hidden(dataclasses.replace(model.collate(texts), past=past))
    return past.layers


def _group_ends(
    model: AnyClassifier, texts: Sequence[EncodedInput], rows: ChangedRows, block: Rows
) -> Int[np.ndarray, "group"] | None:
    """Where each group of rows ends that shares passes, in rising order of `rest`: the fewest tokens in all.

    None where reading the rows whole takes no more.
    """
    cost = CPU_PASS_TOKENS if model.device.type == "cpu" else GPU_PASS_TOKENS
    read = cost + sum(len(texts[text]) for text in np.unique(rows.texts[block]))
    widths, counts = np.unique(rows.rest[block], return_counts=True)
    total = np.concatenate([[0], np.cumsum(counts)])
    fewest, before = np.zeros(len(total)), np.zeros(len(total), dtype=int)
    for end, width in enumerate(widths, 1):
        tokens = fewest[:end] + cost + (total[end] - total[:end]) * width
        before[end] = tokens.argmin()
        fewest[end] = tokens[before[end]]
    if fewest[-1] + read >= cost + rows.lengths[block].sum():
        return None
    ends = [len(widths)]
    while before[ends[-1]]:
        ends.append(int(before[ends[-1]]))
    return total[ends[::-1]]
