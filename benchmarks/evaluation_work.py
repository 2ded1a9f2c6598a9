"""Scoring many maps against the bare model work: `python -m benchmarks.evaluation_work [--rounds 5] [--json]`.

Comprehensiveness and sufficiency at ten steps of several maps on texts of different lengths. Bare: every different row
once, as ids, by the plain transformers module in passes of like length. Beside it what loops do: the rows of one map
on one text at a time, none shared.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from benchmarks.harness import benchmark_parser, ratio_to, show, time_in_turn
from engine import runtime
from engine.data.datasets import load
from engine.metrics.catalog import PERCENTS
from engine.metrics.faithfulness import RowCounts, SharedRows, masks_without_top
from engine.metrics.ranking import count_of_percent
from engine.models.loading import load_model
from engine.models.text_classifier import EncodedText, TextClassifier

TEXTS = 24
MAPS = 8
LIMIT = 1.2

TextMasks = list[tuple[EncodedText, list[np.ndarray]]]
"""Each text with the features that each map keeps, a row a step, of both ways."""


def draw_masks(model: TextClassifier) -> TextMasks:
    """Orders by chance stand for maps: what is shared by maps that agree comes on top."""
    draw = np.random.default_rng(0)
    encoded = [model.encode(example.example) for example in load("reviews").examples[:TEXTS]]
    return [(one, [_removal_steps(draw.permutation(len(one.features))) for _ in range(MAPS)]) for one in encoded]


def _removal_steps(order: np.ndarray) -> np.ndarray:
    fewer = masks_without_top(order, [count_of_percent(percent, len(order)) for percent in PERCENTS])
    return np.concatenate([fewer, ~fewer])


def run_shared(model: TextClassifier, masks: TextMasks, counts: RowCounts | None = None) -> None:
    rows = SharedRows(counts)
    for encoded, maps in masks:
        for keep in maps:
            rows.add(encoded, 0, keep)
    rows.values(model, "mask")


def run_bare(model: TextClassifier, masks: TextMasks) -> Callable[[], None]:
    """The same rows, prepared beforehand."""
    passes = _passes(model, masks)

    def run() -> None:
        with torch.inference_mode():
            for ids, mask in passes:
                model.module(input_ids=ids, attention_mask=mask).logits.cpu()

    return run


def _passes(model: TextClassifier, masks: TextMasks) -> list[tuple[torch.Tensor, torch.Tensor]]:
    rows = [row for encoded, maps in masks for row in _distinct_rows(model, encoded, np.concatenate(maps))]
    rows.sort(key=len, reverse=True)
    passes, start = [], 0
    while start < len(rows):
        size = runtime.rows_at_once(model, len(rows[start]))
        passes.append(_padded(model, rows[start : start + size]))
        start += size
    return passes


def _distinct_rows(model: TextClassifier, encoded: EncodedText, keep: np.ndarray) -> list[np.ndarray]:
    return [_ids(model, encoded, row) for row in np.unique(keep, axis=0)]


def _ids(model: TextClassifier, encoded: EncodedText, keep: np.ndarray) -> np.ndarray:
    ids = encoded.ids.copy()
    ids[encoded.features[~keep]] = model.mask_id
    return ids


def _padded(model: TextClassifier, rows: list[np.ndarray]) -> tuple[torch.Tensor, torch.Tensor]:
    ids = np.full((len(rows), max(map(len, rows))), model.pad_id)
    for place, row in enumerate(rows):
        ids[place, : len(row)] = row
    seen = np.arange(ids.shape[1]) < np.array([len(row) for row in rows])[:, None]
    return torch.from_numpy(ids).to(model.device), torch.from_numpy(seen).to(model.device, torch.int64)


def run_one_by_one(model: TextClassifier, masks: TextMasks) -> None:
    """A map on a text at a time, its rows in one pass."""
    with torch.inference_mode():
        for encoded, maps in masks:
            for keep in maps:
                ids, mask = _padded(model, [_ids(model, encoded, row) for row in keep])
                model.module(input_ids=ids, attention_mask=mask).logits.cpu()


def measure(model: TextClassifier, rounds: int) -> list[dict[str, Any]]:
    masks, counts = draw_masks(model), RowCounts()
    run_shared(model, masks, counts)
    work: dict[str, Callable[[], object]] = {
        "bare": run_bare(model, masks),
        "exegesis": lambda: run_shared(model, masks),
        "one map at a time": lambda: run_one_by_one(model, masks),
    }
    times = time_in_turn(work, rounds)
    rows = {"bare": counts.evaluated, "exegesis": counts.evaluated, "one map at a time": counts.requested}
    return [
        {
            "by": name,
            "ms": float(np.median(times[name])) * 1e3,
            "rows": rows[name],
            "examples a second": TEXTS * MAPS / float(np.median(times[name])),
            **ratio_to(times, name, "bare"),
            "at most": LIMIT if name == "exegesis" else "",
        }
        for name in times
    ]


def main() -> None:
    options = benchmark_parser(__doc__, rounds=5).parse_args()
    model = load_model("reviews-minilm", device=runtime.device())
    with runtime.turn():
        show("Scoring maps", measure(model, options.rounds), options.json)


if __name__ == "__main__":
    main()
