"""Result of an attack on one example: trajectory, measures, and how it is stored in the cache."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Int, UInt8

from cache.codec import Arrays, Meta
from engine.attacks.plan import TOLERANCE
from engine.params import Plain
from engine.result import Prediction, Provenance, Token, unpack_prediction

FOOLED, ROBUST, CLASS_CHANGED, BROKEN, FAILED = OUTCOMES = (
    "fooled", "robust", "class changed", "constraint broken", "failed"
)  # fmt: skip
"""The outcomes of an attack: see `AttackResult.outcome`."""
MOST_POINTS = 101
"""Approximate number of trajectory points that are stored."""
NearestWords = tuple[tuple[str, float], ...]
"""Words with their distances, nearest first."""


@dataclass(frozen=True, eq=False)
class Trajectory:
    """The steps of one attack. `step` 0 is the random start; `objective` is maximized and in the unit of the map.

    `rank_change`: from 0 to 1. `probability`: of the originally predicted class (for regression, the score).
    """

    step: Int[np.ndarray, "point"]
    objective: Float[np.ndarray, "point"]
    rank_change: Float[np.ndarray, "point"]
    probability: Float[np.ndarray, "point"]
    class_kept: Bool[np.ndarray, "point"]

    def thin(self, always: Sequence[int], most: int = MOST_POINTS) -> Trajectory:
        """Keep about `most` evenly spaced points, the last one and the steps in `always`."""
        every = -(-len(self.step) // most)
        keep = (self.step % every == 0) | np.isin(self.step, [*always, self.step[-1]])
        return Trajectory(**{name: values[keep] for name, values in vars(self).items()})


@dataclass(frozen=True, eq=False)
class PictureChange:
    """The picture before and after, as the model sees it. `difference`: exact color change (0 to 1).

    `after` is rounded to 8 bits for display; the model read the exact values.
    """

    before: UInt8[np.ndarray, "height width 3"]
    after: UInt8[np.ndarray, "height width 3"]
    difference: Float[np.ndarray, "height width 3"]


@dataclass(frozen=True, eq=False)
class AttackResult:
    """One example before and after an attack. Scores are one per token; `top` are the attacked positions in order.

    `largest` and `length` are the maximum norm and the Euclidean norm of each position's change (for pixels in colors
    from 0 to 1). `nearest`: for texts, the words nearest to each perturbed embedding. `best`: the best step, None if no
    step improved on the original input. `delta`: the change, in the attack's unit. `start`: index of the best random
    start; `best`, `steps` and `trajectory` belong to it. `failed`: the search found no solution and ended in another
    class or at a non-finite value. `relative_epsilon`: the largest change of a position that epsilon allows,
    `sqrt(d) epsilon`, divided by the median norm of the embeddings that may change, None if that is 0; for pixels
    epsilon divided by the color range.
    """

    tokens: tuple[Token, ...]
    before: Float[np.ndarray, "seq"]
    after: Float[np.ndarray, "seq"]
    order_before: Int[np.ndarray, "feature"]
    order_after: Int[np.ndarray, "feature"]
    prediction: Prediction
    prediction_after: Prediction
    provenance: Provenance
    attack: Mapping[str, Plain]
    k: int
    largest: Float[np.ndarray, "seq"]
    length: Float[np.ndarray, "seq"]
    delta: Float[np.ndarray, "seq width"]
    trajectory: Trajectory
    best: int | None
    steps: int
    seconds: float
    start: int = 0
    failed: bool = False
    relative_epsilon: float | None = None
    notes: tuple[str, ...] = ()
    nearest: tuple[NearestWords, ...] = ()
    picture: PictureChange | None = None
    grid: tuple[int, int] | None = None
    cached: bool = False

    def __post_init__(self) -> None:
        for name in ("before", "after", "largest", "length"):
            values = getattr(self, name)
            if values.shape != (len(self.tokens),) or not np.isfinite(values).all():
                raise ValueError(f"{name}: must be one finite number per token, got shape {values.shape}")
            values.setflags(write=False)

    @property
    def features(self) -> Int[np.ndarray, "feature"]:
        """Ranked positions: all except special tokens."""
        return np.flatnonzero([not token.special for token in self.tokens])

    @property
    def top(self) -> tuple[int, ...]:
        """The attacked positions, highest score first."""
        return tuple(self.features[self.order_before[: self.k]].tolist())

    @property
    def rank_change(self) -> float:
        """Share of the top k ranks that another feature holds after the attack."""
        return rank_change(self.order_before, self.order_after, self.k)

    @property
    def top_k_sum_change(self) -> float:
        """Total drop in the scores of the top k, in the unit of the map."""
        return sum_change(self.before, self.after, self.top)

    @property
    def top_k_sum_change_normalised(self) -> float | None:
        """Total drop for maps divided by their sums of absolute values; None if one is all zero."""
        features = self.features
        return normalized_sum_change(self.before[features], self.after[features], self.order_before[: self.k].tolist())

    @property
    def probability_change(self) -> float:
        """m(x) - m(x + delta) of the originally predicted class; for regression, of the score."""
        return self._target_value(self.prediction) - self._target_value(self.prediction_after)

    @property
    def probability_distance(self) -> float:
        """Absolute value of the probability change."""
        return abs(self.probability_change)

    @property
    def class_kept(self) -> bool | None:
        """Whether the predicted class is unchanged; None for regression."""
        if self.prediction.regression:
            return None
        return self.prediction.index == self.prediction_after.index

    @property
    def constraint_kept(self) -> bool:
        """Whether the class and, if constrained, the probability or score (to within `TOLERANCE`) are unchanged."""
        near = self.attack["objective"] == "unconstrained" or self.probability_distance <= TOLERANCE
        return near and self.class_kept is not False

    @property
    def outcome(self) -> str:
        """The first of failed, class changed and constraint broken that applies.

        Otherwise robust if the top k ranks are unchanged, else fooled.
        """
        if self.failed:
            return FAILED
        if self.class_kept is False:
            return CLASS_CHANGED
        if not self.constraint_kept:
            return BROKEN
        return FOOLED if self.rank_change > 0 else ROBUST

    @property
    def fooled(self) -> bool:
        """Whether the top k ranks changed while the constraint was met."""
        return self.outcome == FOOLED

    def _target_value(self, prediction: Prediction) -> float:
        values = prediction.logits if prediction.regression else prediction.probabilities
        return values[self.provenance.target]


ARRAYS = ("before", "after", "order_before", "order_after", "largest", "length", "delta")
PLAIN = (
    "attack", "k", "best", "steps", "start", "failed", "relative_epsilon", "seconds", "notes", "nearest", "grid"
)  # fmt: skip


def pack(result: AttackResult) -> tuple[Meta, Arrays]:
    """Pack the result into plain metadata and arrays."""
    meta: dict[str, Any] = {name: getattr(result, name) for name in PLAIN}
    meta |= {
        "tokens": [dataclasses.astuple(token) for token in result.tokens],
        "notes": list(result.notes),
        "nearest": [[list(pair) for pair in near] for near in result.nearest],
        "grid": None if result.grid is None else list(result.grid),
        "attack": dict(result.attack),
        "prediction": dataclasses.asdict(result.prediction),
        "prediction_after": dataclasses.asdict(result.prediction_after),
        "provenance": dataclasses.asdict(result.provenance),
    }
    arrays = {name: getattr(result, name) for name in ARRAYS}
    arrays |= {f"trail_{name}": values for name, values in vars(result.trajectory).items()}
    if result.picture is not None:
        arrays |= {f"picture_{name}": values for name, values in vars(result.picture).items()}
    return meta, arrays


def unpack(meta: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> AttackResult:
    """Restore a packed result, marked as cached."""
    own: dict[str, Any] = {name: meta[name] for name in PLAIN} | {name: np.array(arrays[name]) for name in ARRAYS}
    own |= {
        "tokens": tuple(Token(*token) for token in meta["tokens"]),
        "notes": tuple(meta["notes"]),
        "nearest": tuple(tuple((word, far) for word, far in near) for near in meta["nearest"]),
        "grid": tuple(meta["grid"]) if meta["grid"] else None,
        "prediction": unpack_prediction(meta["prediction"]),
        "prediction_after": unpack_prediction(meta["prediction_after"]),
        "provenance": Provenance(**{**meta["provenance"], "heads": ()}),
        "trajectory": Trajectory(**_arrays_with(arrays, "trail_")),
        "picture": PictureChange(**_arrays_with(arrays, "picture_")) if "picture_after" in arrays else None,
    }
    return AttackResult(**own, cached=True)


def _arrays_with(arrays: Mapping[str, np.ndarray], prefix: str) -> dict[str, np.ndarray]:
    return {name.removeprefix(prefix): np.array(own) for name, own in arrays.items() if name.startswith(prefix)}


def rank_change(before: Int[np.ndarray, "feature"], after: Int[np.ndarray, "feature"], k: int) -> float:
    """Share of the top k ranks that another feature holds after the attack, from 0 to 1.

    The thesis's formula counts unchanged ranks; its text and example count changed ranks, as this function does.
    """
    return float((before[:k] != after[:k]).mean())


def sum_change(before: Float[np.ndarray, "feature"], after: Float[np.ndarray, "feature"], top: Sequence[int]) -> float:
    """Total drop in the scores of the features `top`, in the unit of the map."""
    return float((before[list(top)] - after[list(top)]).sum())


def normalized_sum_change(
    before: Float[np.ndarray, "feature"], after: Float[np.ndarray, "feature"], top: Sequence[int]
) -> float | None:
    """Total drop for maps divided by their sums of absolute values, from -2 to 2; None if a map is all zero."""
    sizes = np.abs(before).sum(), np.abs(after).sum()
    return None if 0 in sizes else sum_change(before / sizes[0], after / sizes[1], top)
