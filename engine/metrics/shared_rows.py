"""Inputs with features removed that many maps and metrics ask for: each is run once, among others of like length."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int

from engine import runtime
from engine.classifiers import AnyClassifier, Coded
from engine.progress import Report, check_cancelled, silent
from engine.removal import coalition_quantities, token_masks

ALIKE = 0.8
"""A row shorter than this share of the longest goes into the next pass: the rest of it would be padding."""
FEW = 64
"""But so many rows make a pass in any case, for each pass has a cost of its own."""
COUNTED = {"text": "shortened texts", "image": "pictures with holes"}
"""What a row is called where progress is told."""


@dataclass
class Tally:
    """Model rows: how many maps and metrics asked for, and how many were run for them."""

    asked: int = 0
    run: int = 0


class SharedRows:
    """Rows of many examples: a set of kept features that is asked for again is the same row."""

    def __init__(self, tally: Tally | None = None) -> None:
        self._tally = tally or Tally()
        self._cases: dict[tuple[bytes, int], int] = {}
        self._examples: list[Coded] = []
        self._targets: list[int] = []
        self._places: dict[tuple[int, bytes], int] = {}
        self._kept: list[tuple[int, Bool[np.ndarray, "feature"]]] = []

    def ask(self, encoded: Coded, target: int, kept: Bool[np.ndarray, "row feature"]) -> Int[np.ndarray, "row"]:
        """The places of these rows in what `values` gives."""
        self._tally.asked += len(kept)
        case = self._case(encoded, target)
        return np.array([self._row(case, row) for row in kept])

    def values(self, model: AnyClassifier, removal: str, report: Report = silent) -> Float[np.ndarray, "row 2"]:
        """m and f of every row: the probability and the logit of its target, of a regression head the score twice.

        The caller holds the turn.
        """
        values = np.empty((len(self._kept), 2))
        done = 0
        for rows in self._passes(model):
            check_cancelled()
            report(done, len(values), COUNTED[model.kind])
            values[rows] = self._measured(model, rows, removal)
            done += len(rows)
        self._tally.run += done
        report(done, done, "")
        return values

    def _case(self, encoded: Coded, target: int) -> int:
        name = (encoded.key, target)
        if name not in self._cases:
            self._cases[name] = len(self._examples)
            self._examples.append(encoded)
            self._targets.append(target)
        return self._cases[name]

    def _row(self, case: int, kept: Bool[np.ndarray, "feature"]) -> int:
        name = (case, kept.tobytes())
        if name not in self._places:
            self._places[name] = len(self._kept)
            self._kept.append((case, kept))
        return self._places[name]

    def _passes(self, model: AnyClassifier) -> Iterator[list[int]]:
        """The long ones first, as many together as the longest of them allows, and none much shorter than it."""
        order = sorted(range(len(self._kept)), key=lambda row: -self._length(row))
        start = 0
        while start < len(order):
            longest = self._length(order[start])
            fit = order[start : start + runtime.rows_at_once(model, longest)]
            end = next((at for at in range(FEW, len(fit)) if self._length(fit[at]) < ALIKE * longest), len(fit))
            yield fit[:end]
            start += end

    def _length(self, row: int) -> int:
        return len(self._examples[self._kept[row][0]])

    def _measured(self, model: AnyClassifier, rows: list[int], removal: str) -> Float[np.ndarray, "row 2"]:
        cases, index = np.unique([self._kept[row][0] for row in rows], return_inverse=True)
        examples = [self._examples[case] for case in cases]
        width = max(len(example) for example in examples)
        masks = [token_masks(examples[i], self._kept[row][1][None], width) for i, row in zip(index, rows, strict=True)]
        targets = [self._targets[case] for case in cases]
        return coalition_quantities(model, examples, targets, index, np.concatenate(masks), removal)
