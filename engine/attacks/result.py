"""The result of an attack on one example: its trajectory, the measures of the thesis, and how the cache stores it."""

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
from engine.result import Prediction, Provenance, Token
from engine.serialization import unpack_prediction

FOOLED, ROBUST, CLASS_CHANGED, BROKEN, FAILED = OUTCOMES = (
    "fooled", "robust", "class changed", "constraint broken", "failed"
)  # fmt: skip
"""The outcomes of an attack: see `AttackResult.outcome`."""
MOST_POINTS = 101
"""About how many steps of a trajectory are kept."""
NearestWords = tuple[tuple[str, float], ...]
"""Words with their distances, the nearest first."""


@dataclass(frozen=True, eq=False)
class Trajectory:
    """One example's attack. `step` 0 is the seeded start; `objective` is what is maximized, in the unit of the map.

    `rank_change` from 0 to 1; `probability` of the class that was predicted (a score, for a regression head).
    """

    step: Int[np.ndarray, "point"]
    objective: Float[np.ndarray, "point"]
    rank_change: Float[np.ndarray, "point"]
    probability: Float[np.ndarray, "point"]
    class_kept: Bool[np.ndarray, "point"]

    def thin(self, always: Sequence[int], most: int = MOST_POINTS) -> Trajectory:
        """At most about so many points, evenly; the last one and the steps named always."""
        every = -(-len(self.step) // most)
        keep = (self.step % every == 0) | np.isin(self.step, [*always, self.step[-1]])
        return Trajectory(**{name: values[keep] for name, values in vars(self).items()})


@dataclass(frozen=True, eq=False)
class PictureChange:
    """The picture before and after, as the model sees it; `difference` in colors from 0 to 1, exact.

    `after` is rounded to 8 bits to be looked at and saved; the model was given the exact one.
    """

    before: UInt8[np.ndarray, "height width 3"]
    after: UInt8[np.ndarray, "height width 3"]
    difference: Float[np.ndarray, "height width 3"]


@dataclass(frozen=True, eq=False)
class AttackResult:
    """One example before and after. Scores are one a token; `top` are the positions that were attacked, in order.

    `largest` and `length` are the size of each position's change, its largest number and its Euclidean length (of
    pixels in colors from 0 to 1). `nearest`: of texts, the words nearest to each moved embedding. `best`: the step
    that is kept, None where none was better than to change nothing. `delta` is what is added, in the attack's unit.
    `start`: the random start that is kept, from 0; `best`, `steps` and `trajectory` are its own. `failed`: the ascent
    left the class for good, or met what was no finite number, before it found anything. `relative_epsilon`: the longest
    change of a position that epsilon allows, `sqrt(d) epsilon`, over the median Euclidean length of the embeddings that
    may move, None where that is 0; of pixels epsilon over the range of a color.
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
                raise ValueError(f"{name}: must be one finite number a token, got shape {values.shape}")
            values.setflags(write=False)

    @property
    def features(self) -> Int[np.ndarray, "feature"]:
        """Positions that are ranked: all but the special tokens."""
        return np.flatnonzero([not token.special for token in self.tokens])

    @property
    def top(self) -> tuple[int, ...]:
        """The positions that were attacked, the highest score first."""
        return tuple(self.features[self.order_before[: self.k]].tolist())

    @property
    def rank_change(self) -> float:
        """The share of the first k places that another feature holds now."""
        return rank_change(self.order_before, self.order_after, self.k)

    @property
    def top_k_sum_change(self) -> float:
        """The fall of the scores of the top together, in the unit of the map."""
        return sum_change(self.before, self.after, self.top)

    @property
    def top_k_sum_change_normalised(self) -> float | None:
        """The fall of maps divided by their sums of absolute values; None where one is all zero."""
        features = self.features
        return normalized_sum_change(self.before[features], self.after[features], self.order_before[: self.k].tolist())

    @property
    def probability_change(self) -> float:
        """m(x) - m(x + delta) of the class that was predicted; of the score, for a regression head."""
        return self._target_value(self.prediction) - self._target_value(self.prediction_after)

    @property
    def probability_distance(self) -> float:
        """The size of that change."""
        return abs(self.probability_change)

    @property
    def class_kept(self) -> bool | None:
        """Whether the same class is predicted; None for a regression head, which has none."""
        if self.prediction.regression:
            return None
        return self.prediction.index == self.prediction_after.index

    @property
    def constraint_kept(self) -> bool:
        """Whether the class stayed and, constrained, the probability or score changed by at most `TOLERANCE`."""
        near = self.attack["objective"] == "unconstrained" or self.probability_distance <= TOLERANCE
        return near and self.class_kept is not False

    @property
    def outcome(self) -> str:
        """One of `OUTCOMES`, the first of these that applies: failed, class changed, constraint broken.

        Else robust, where the first k places are as they were, or fooled.
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
        """Whether the first k places changed while the constraint was kept."""
        return self.outcome == FOOLED

    def _target_value(self, prediction: Prediction) -> float:
        values = prediction.logits if prediction.regression else prediction.probabilities
        return values[self.provenance.target]


ARRAYS = ("before", "after", "order_before", "order_after", "largest", "length", "delta")
PLAIN = (
    "attack", "k", "best", "steps", "start", "failed", "relative_epsilon", "seconds", "notes", "nearest", "grid"
)  # fmt: skip


def pack(result: AttackResult) -> tuple[Meta, Arrays]:
    """Plain metadata and arrays."""
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
    """The attack that `pack` took apart, marked as cached."""
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
    """The share of the first k places that another feature holds now, from 0 to 1.

    The thesis's formula counts the places that stay; its text and its example those that change, as we do.
    """
    return float((before[:k] != after[:k]).mean())


def sum_change(before: Float[np.ndarray, "feature"], after: Float[np.ndarray, "feature"], top: Sequence[int]) -> float:
    """The fall of the sum of the scores at the features that were the top, in the unit of the map."""
    return float((before[list(top)] - after[list(top)]).sum())


def normalized_sum_change(
    before: Float[np.ndarray, "feature"], after: Float[np.ndarray, "feature"], top: Sequence[int]
) -> float | None:
    """The fall of maps divided by their sums of absolute values, from -2 to 2; None where a map is all zero."""
    sizes = np.abs(before).sum(), np.abs(after).sum()
    return None if 0 in sizes else sum_change(before / sizes[0], after / sizes[1], top)
