"""How an attack is made: plain values, with the defaults of the thesis (section 3.5)."""

from __future__ import annotations

import math
from dataclasses import dataclass

from engine.errors import UsageError, not_allowed, unknown
from engine.models.classifier import EMBEDDING
from engine.params import LOGIT, PROBABILITY, option

PIXELS = "pixels"
PLACES = (EMBEDDING, PIXELS)
OBJECTIVES = ("unconstrained", "constrained")
METHODS = ("gradient", "gradient_l2", "gradient_x_input", "integrated_gradients")
"""Those whose map can be differentiated once more."""
MIXED = "mixed"
QUANTITIES = (LOGIT, PROBABILITY, MIXED)
"""What the map is of, and what the penalty keeps: one of both, or a map of the logit with a penalty on the probability.
By the logit constrained attacks keep the probability, as in the thesis, and else they do not (docs/attacks.md).
"""
TOLERANCE = 0.05
"""By how much a constrained attack may change the probability of the predicted class and still keep its constraint; by
how much the score, of a regression head."""
STARTS = 3
EPSILON = {EMBEDDING: 2.0, PIXELS: 8 / 255}
"""How far each number may move: of an embedding, or of a pixel's colour from 0 to 1."""
PATH_STEPS = 9
"""Nodes of integrated gradients during an attack, where none are named: each is a pass in each step."""


@dataclass(frozen=True)
class AttackParams:
    """The top-k attack. Constrained: maximise `alpha D - beta (m(x) - m(x + delta))^2`, else D while the class stays.

    D is minus the sum of the attacked map at the k features that were the highest. `quantity` is m and what the map is
    of: the probability or the logit of the predicted class, of a regression head always the score. Of `mixed` the map
    is of the logit, often tens, and m the probability, at most 1, so that at alpha = beta the penalty hardly counts.
    The attack is made from `starts` draws at once, and the best is kept.
    """

    objective: str = option(OBJECTIVES[0], "Keep the class, or keep its probability too", choices=OBJECTIVES)
    place: str = option(EMBEDDING, "What is moved: embeddings, or the pixels of a picture", choices=PLACES)
    epsilon: float | None = option(None, "How far each number may move; none: 2, pixels 8/255", low=0)
    top_k: float = option(0.15, "Features attacked: a share below 1, or how many from 1 on", low=0)
    quantity: str = option(
        LOGIT,
        "Of which the map is and which the penalty keeps: the logit of the class, its probability, or mixed: a map of "
        "the logit (often tens) against a penalty on the probability (at most 1), which hardly counts at α = β",
        choices=QUANTITIES,
    )
    alpha: float = option(1.0, "Weight of the map in the constrained objective", low=0)
    beta: float = option(1.0, "Weight of the penalty in the constrained objective", low=0)
    starts: int = option(
        STARTS, "Random starts, made at once; the best is kept. Curves of a run are of the first", low=1, high=100
    )
    steps: int = option(500, "Steps of gradient ascent", low=1, high=100_000)
    learning_rate: float = option(0.1, "Of the first step; halved every 200", low=0)
    sign_steps: bool = option(False, "Step by the sign of the gradient, so all numbers alike")
    specials: bool = option(False, "Move the embeddings of special tokens too")

    def __post_init__(self) -> None:
        if self.top_k <= 0 or (self.top_k >= 1 and not float(self.top_k).is_integer()):
            raise not_allowed("top_k", "a share above 0 and below 1, or a whole number of features", self.top_k)

    @property
    def bound(self) -> float:
        """Epsilon, where none is named that of the place."""
        return EPSILON[self.place] if self.epsilon is None else self.epsilon

    def k_of(self, n: int) -> int:
        """How many of n features are attacked: the share rounded down, at least one and at most all."""
        # 0.29 * 100 is 28.999999999999996.
        wanted = math.floor(self.top_k * n + 1e-9) if self.top_k < 1 else int(self.top_k)
        return min(n, max(1, wanted))


def check_method(method: str, kind: str) -> None:
    """Refuses a method that does not exist, or whose map cannot be differentiated; says which can."""
    from engine.registry import explainer

    explainer(method, kind)
    if method not in METHODS:
        raise UsageError(
            f"methods: {method} cannot be attacked, for its map has no derivative here. "
            f"Can be attacked: {', '.join(METHODS)}. The map of {method} on the attacked input can be asked for: "
            "name it among transfer."
        )


def check_place(params: AttackParams, kind: str) -> None:
    """Refuses pixels of a text, and special tokens of pixels."""
    if params.place not in PLACES:
        raise unknown("place", params.place, PLACES)
    if params.place == PIXELS and kind != "image":
        raise UsageError("place: a text has no pixels. Set place to embedding, or name a model that reads pictures.")
    if params.place == PIXELS and params.specials:
        raise UsageError("specials: special tokens have no pixels. Set place to embedding, or leave specials out.")


def check_objective(params: AttackParams, regression: bool) -> None:
    """Refuses to keep the class of a model that has none."""
    if regression and params.objective != "constrained":
        raise UsageError(
            "objective: this model gives a score and no class, so that there is no class to keep. Use constrained."
        )
