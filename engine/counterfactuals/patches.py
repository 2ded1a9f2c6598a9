"""The fewest patches of a picture whose removal flips the prediction, searched by beam and verified."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from jaxtyping import Float

from cache import key_for
from engine import runtime
from engine.counterfactuals.search import Goal, SearchRound
from engine.errors import UsageError, not_allowed
from engine.explain import explain, key_of, require_finite
from engine.input_kinds import check_removal, load_classifier
from engine.lazy import torch
from engine.metrics.ablation import PROBE, ablated_predictions
from engine.models.classifier import AnyClassifier, as_float64
from engine.progress import check_cancelled
from engine.removal import removed, token_masks
from engine.removal_operators import PATCH_OPERATORS, keyed
from engine.request import Picture, Request
from engine.result import Prediction, unpack_prediction
from engine.store import result_store
from engine.table_io import TableRow, to_csv

SCHEMA = 1
MOST_PATCHES, BEAM, RESULTS = 16, 4, 3
"""Maximum number of removed patches, of sets in the beam, and of results."""
COLUMNS: Mapping[str, type] = {
    "rank": int, "flips": bool, "patches": int, "row": int, "column": int, "prediction": str, "value": float,
}  # fmt: skip
"""The columns of the rows of a result, and their types."""
Patches = tuple[int, ...]
"""Indices of patches, row by row from 0, in ascending order."""


@dataclass(frozen=True)
class PatchSet:
    """Removed patches, and the prediction without them, from a separate pass after the search."""

    patches: Patches
    prediction: Prediction


@dataclass(frozen=True)
class PatchCounterfactuals:
    """Sets of patches whose removal flips the prediction, the smallest first.

    `target`: the desired class, None for any other. `closest`: the set that came closest if nothing flips. `rounds`:
    the rounds of sets of 1, 2, ... patches. `evaluations`: number of pictures that the model ran on.
    """

    model: str
    revision: str
    removal: str
    grid: tuple[int, int]
    original: Prediction
    target: int | None
    results: tuple[PatchSet, ...]
    closest: PatchSet | None
    rounds: tuple[SearchRound, ...]
    evaluations: int

    @property
    def is_smallest(self) -> bool:
        """Whether every smaller set was tried, so that none of them flips."""
        fewest = len(self.results[0].patches) if self.results else math.inf
        return all(one.complete for one in self.rounds if one.changes < fewest)

    @property
    def statements(self) -> tuple[str, ...]:
        """Sentences that describe the search."""
        first, last = self.rounds[0], self.rounds[-1]
        single = f"{first.flipped or 'None'} of {first.tried} single patches flip{'s' * (first.flipped < 2)} it."
        tried = sum(one.tried for one in self.rounds)
        rest = "" if all(one.complete for one in self.rounds) else " Not all combinations were tried."
        sizes = "one patch" if last.changes == 1 else f"1 to {last.changes} patches"
        return (single, f"Sets tried: {tried:,}, of {sizes}.{rest}")

    def rows(self) -> Iterator[TableRow]:
        """Yield a row for each patch of each set, with row and column from 1; if nothing flips, of the closest set."""
        for rank, one in enumerate(self.results or filter(None, [self.closest]), 1):
            for patch in one.patches:
                value = one.prediction.probabilities[one.prediction.index]
                row, column = divmod(patch, self.grid[1])
                values = (rank, bool(self.results), len(one.patches), row + 1, column + 1, one.prediction.label, value)
                yield dict(zip(COLUMNS, values, strict=True))

    def as_csv(self) -> str:
        """Return the rows as CSV."""
        return to_csv(self.rows()) or ",".join(COLUMNS) + "\n"

    def as_json(self) -> dict[str, Any]:
        """Return the whole result as JSON values; patches by row and column, from 1, as on the pages."""
        plain = asdict(self)
        for one in filter(None, (*plain["results"], plain["closest"])):
            one["patches"] = [[at + 1 for at in divmod(patch, self.grid[1])] for patch in one["patches"]]
        return {**plain, "is_smallest": self.is_smallest, "statements": list(self.statements)}


def patch_counterfactuals(
    model: str, picture: Picture, removal: str = PATCH_OPERATORS[0], target: int | str | None = None
) -> PatchCounterfactuals:
    """Search for the fewest patches whose removal flips the prediction. Deterministic and cached.

    All single patches are tried; a beam of those closest to a flip is then extended by one patch at a time, until some
    flip. Each set is run again; patches that can be put back without losing the flip are put back, as in the backward
    selection of Carter et al. (2019), What made you do this? Understanding black-box decisions with sufficient input
    subsets. Every patch of a result is therefore necessary. Sets that share few patches are preferred.

    Errors: an unknown removal or class; the predicted class as target; a model with one label or one patch.
    """
    key = patch_counterfactuals_key(model, picture, removal, target)
    if (entry := result_store().get(key)) is not None:
        return _unpacked(entry[0])
    request = Request(model, PROBE, picture)
    probe = explain(request)
    original = probe.prediction
    if len(original.labels) < 2:
        raise UsageError(f"model: {model} predicts one score, which cannot flip. Choose a model with classes.")
    if len(probe.features) < 2:
        raise UsageError(f"model: {model} reads a picture as one patch. Choose a model with more patches.")
    with runtime.turn(lends=True):
        classifier = load_classifier("image", model, request.dtype, runtime.device())
        wanted = None if target is None else classifier.target_index(target, original, classifier.encode(picture))
        if wanted == original.index:
            raise not_allowed("target", "another class than the predicted one", original.label)
        goal = Goal(original.index, original.logits[0], wanted, None)
        flips, closest, rounds = _search(classifier, picture, goal, removal)
    verifier = _Verifier(request, int(probe.features[0]), removal, goal)
    results = verifier.select(flips)
    near = None if results or closest is None else PatchSet(closest, verifier.predict(closest))
    computed = PatchCounterfactuals(
        model, probe.provenance.revision, removal, probe.grid or (1, len(probe.features)), original, wanted, results,
        near, tuple(rounds), 1 + sum(one.tried for one in rounds) + len(verifier.predicted),
    )  # fmt: skip
    result_store().put(key, asdict(computed), {})
    return computed


def patch_counterfactuals_key(model: str, picture: Picture, removal: str, target: int | str | None) -> str:
    """Return the cache key. Reads the model's files, never loads it."""
    check_removal(removal, "image")
    named = {
        "schema": SCHEMA,
        "kind": "patch counterfactuals",
        "of": key_of(Request(model, PROBE, picture)),
        "removal": keyed(removal),
        "target": target,
        "limits": [MOST_PATCHES, BEAM, RESULTS],
    }
    return key_for(named)


def _search(
    model: AnyClassifier, picture: Picture, goal: Goal, removal: str
) -> tuple[list[Patches], Patches | None, list[SearchRound]]:
    """Return the sets that flip, lowest margin first; the set with the lowest margin; and the rounds.

    The caller must hold the device.
    """
    encoded = model.encode(picture)
    count = len(encoded.features)

    def margins(sets: Sequence[Patches]) -> Float[np.ndarray, "set"]:
        kept = np.ones((len(sets), count), dtype=bool)
        for row, patches in enumerate(sets):
            kept[row, list(patches)] = False
        keep = torch.from_numpy(token_masks(encoded, kept, len(encoded))).to(model.device)

        def compute(rows: slice) -> Float[np.ndarray, "row"]:
            batch = model.collate([encoded] * len(keep[rows]))
            with torch.inference_mode():
                logits = as_float64(model.logits(*removed(model, batch, keep[rows], removal)))
            require_finite(model, "logits", logits)
            return goal.margins(logits)

        return np.concatenate(runtime.in_chunks(compute, len(sets), runtime.rows_at_once(model, len(encoded))))

    sets: list[Patches] = [(patch,) for patch in range(count)]
    rounds, closest, complete = list[SearchRound](), list[tuple[float, Patches]](), True
    for size in range(1, min(MOST_PATCHES, count - 1) + 1):
        check_cancelled()
        ranked = sorted(zip(margins(sets).tolist(), sets, strict=True))
        flips = [patches for margin, patches in ranked if margin < 0]
        rounds.append(SearchRound(size, len(sets), len(flips), complete))
        if flips:
            return flips, flips[0], rounds
        closest.append(ranked[0])
        complete = complete and len(ranked) <= BEAM
        extended = {
            tuple(sorted((*patches, patch)))
            for _, patches in ranked[:BEAM]
            for patch in range(count)
            if patch not in patches
        }
        sets = sorted(extended)
    return [], min(closest)[1], rounds


class _Verifier:
    """Predictions of the picture without some patches, one at a time and separate from the passes of the search."""

    def __init__(self, request: Request, first: int, removal: str, goal: Goal) -> None:
        self.request, self.first, self.removal, self.goal = request, first, removal, goal
        self.predicted: dict[Patches, Prediction] = {}

    def predict(self, patches: Patches) -> Prediction:
        """Return the prediction without these patches."""
        if patches not in self.predicted:
            positions = [self.first + patch for patch in patches]
            [one] = ablated_predictions(self.request, positions, (self.removal,))
            self.predicted[patches] = one.left
        return self.predicted[patches]

    def flips(self, patches: Patches) -> bool:
        """Whether the prediction without these patches has flipped."""
        return bool(patches) and self.goal.margin(self.predict(patches)) < 0

    def reduced(self, patches: Patches) -> Patches:
        """Put back, one at a time, patches that the flip does not need, and return the rest of the set."""
        for patch in patches:
            if self.flips(rest := tuple(one for one in patches if one != patch)):
                return self.reduced(rest)
        return patches

    def select(self, flips: Sequence[Patches]) -> tuple[PatchSet, ...]:
        """Choose sets that share few patches, and reduce each one; return the smallest first."""
        left, chosen = list(flips), list[Patches]()
        while left and len(chosen) < RESULTS:
            best = min(left, key=lambda one: sum(len({*one} & {*other}) for other in chosen))
            left.remove(best)
            if self.flips(best) and (smaller := self.reduced(best)) not in chosen:
                chosen.append(smaller)
        return tuple(PatchSet(one, self.predict(one)) for one in sorted(chosen, key=len))


def _unpacked(meta: dict[str, Any]) -> PatchCounterfactuals:
    return PatchCounterfactuals(
        **{
            **meta,
            "grid": tuple(meta["grid"]),
            "original": unpack_prediction(meta["original"]),
            "results": tuple(map(_unpacked_set, meta["results"])),
            "closest": None if meta["closest"] is None else _unpacked_set(meta["closest"]),
            "rounds": tuple(SearchRound(**each) for each in meta["rounds"]),
        }
    )


def _unpacked_set(plain: dict[str, Any]) -> PatchSet:
    return PatchSet(tuple(plain["patches"]), unpack_prediction(plain["prediction"]))
