"""Scoring many maps against the bare model work: `python -m benchmarks.evaluation_work [--rounds 5] [--json]`.

Comprehensiveness and sufficiency at ten steps of several maps on texts of different lengths. Bare: every different row
once, as ids, by the plain transformers module in passes of like length. Beside it what loops do: the rows of one map
on one text at a time, none shared.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from benchmarks.timing import in_turn, ratio, show
from engine import runtime
from engine.data.datasets import load
from engine.metrics.faithfulness import PERCENTS, RowCounts, SharedRows, masks_without_top
from engine.metrics.ranking import count_of_percent
from engine.models.loading import load_model
from engine.models.text_classifier import EncodedText, TextClassifier

TEXTS = 24
MAPS = 8
LIMIT = 1.2

Asked = list[tuple[EncodedText, list[np.ndarray]]]
"""Each text with the kept features of each map, a row a step, of both ways."""


def asked(model: TextClassifier) -> Asked:
    """Orders by chance stand for maps: what is shared by maps that agree comes on top."""
    draw = np.random.default_rng(0)
    encoded = [model.encode(example.example) for example in load("reviews").examples[:TEXTS]]
    return [(one, [_kept(draw.permutation(len(one.features))) for _ in range(MAPS)]) for one in encoded]


def _kept(order: np.ndarray) -> np.ndarray:
    fewer = masks_without_top(order, [count_of_percent(percent, len(order)) for percent in PERCENTS])
    return np.concatenate([fewer, ~fewer])


def ours(model: TextClassifier, given: Asked, tally: RowCounts | None = None) -> None:
    rows = SharedRows(tally)
    for encoded, maps in given:
        for kept in maps:
            rows.add(encoded, 0, kept)
    rows.values(model, "mask")


def bare(model: TextClassifier, given: Asked) -> Callable[[], None]:
    """The same rows, made beforehand."""
    passes = _passes(model, given)

    def run() -> None:
        with torch.inference_mode():
            for ids, mask in passes:
                model.module(input_ids=ids, attention_mask=mask).logits.cpu()

    return run


def _passes(model: TextClassifier, given: Asked) -> list[tuple[torch.Tensor, torch.Tensor]]:
    rows = [row for encoded, maps in given for row in _different(model, encoded, np.concatenate(maps))]
    rows.sort(key=len, reverse=True)
    made, start = [], 0
    while start < len(rows):
        size = runtime.rows_at_once(model, len(rows[start]))
        made.append(_padded(model, rows[start : start + size]))
        start += size
    return made


def _different(model: TextClassifier, encoded: EncodedText, kept: np.ndarray) -> list[np.ndarray]:
    return [_ids(model, encoded, row) for row in np.unique(kept, axis=0)]


def _ids(model: TextClassifier, encoded: EncodedText, kept: np.ndarray) -> np.ndarray:
    ids = encoded.ids.copy()
    ids[encoded.features[~kept]] = model.mask_id
    return ids


def _padded(model: TextClassifier, rows: list[np.ndarray]) -> tuple[torch.Tensor, torch.Tensor]:
    ids = np.full((len(rows), max(map(len, rows))), model.pad_id)
    for place, row in enumerate(rows):
        ids[place, : len(row)] = row
    seen = np.arange(ids.shape[1]) < np.array([len(row) for row in rows])[:, None]
    return torch.from_numpy(ids).to(model.device), torch.from_numpy(seen).to(model.device, torch.int64)


def one_by_one(model: TextClassifier, given: Asked) -> None:
    """A map on a text at a time, its rows in one pass."""
    with torch.inference_mode():
        for encoded, maps in given:
            for kept in maps:
                ids, mask = _padded(model, [_ids(model, encoded, row) for row in kept])
                model.module(input_ids=ids, attention_mask=mask).logits.cpu()


def measure(model: TextClassifier, rounds: int) -> list[dict[str, Any]]:
    given, tally = asked(model), RowCounts()
    ours(model, given, tally)
    work: dict[str, Callable[[], object]] = {
        "bare": bare(model, given),
        "exegesis": lambda: ours(model, given),
        "one map at a time": lambda: one_by_one(model, given),
    }
    times = in_turn(work, rounds)
    rows = {"bare": tally.evaluated, "exegesis": tally.evaluated, "one map at a time": tally.requested}
    return [
        {
            "by": name,
            "ms": float(np.median(times[name])) * 1e3,
            "rows": rows[name],
            "examples a second": TEXTS * MAPS / float(np.median(times[name])),
            **ratio(times, name, "bare"),
            "at most": LIMIT if name == "exegesis" else "",
        }
        for name in times
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    model = load_model("reviews-minilm", device=runtime.device())
    with runtime.turn():
        show("Scoring maps", measure(model, given.rounds), given.json)


if __name__ == "__main__":
    main()
