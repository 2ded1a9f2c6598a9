"""The parameters of an attack, and the declaration of the experiment `attack`."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, dataclass, field

from engine.data.sources import SourceExample
from engine.errors import UsageError, not_allowed, unknown
from engine.experiments import options
from engine.experiments.base import Experiment, register
from engine.experiments.options import RANDOM, ExperimentPlan
from engine.models.classifier import EMBEDDING
from engine.params import LOGIT, PROBABILITY, Plain, from_mapping, option
from engine.registry import ENSEMBLE_MEMBERS, explainer
from engine.request import DTYPES, Input

PIXELS = "pixels"
PLACES = (EMBEDDING, PIXELS)
OBJECTIVES = ("unconstrained", "constrained")
METHODS = ("gradient", "gradient_l2", "gradient_x_input", "integrated_gradients")
"""Methods with a differentiable map."""
MIXED = "mixed"
QUANTITIES = (LOGIT, PROBABILITY, MIXED)
"""The quantity of map and penalty: the same for both, or a map of the logit with a penalty on the probability.
Only with the logit do constrained attacks keep the probability, as in the thesis (docs/attacks.md).
"""
TOLERANCE = 0.05
"""The largest change in the predicted class's probability (for regression, in the score) that meets the constraint."""
STARTS = 3
EPSILON = {EMBEDDING: 2.0, PIXELS: 8 / 255}
"""Largest change of each number: of an embedding, or of a pixel's color (0 to 1)."""
PATH_STEPS = 9
"""Default number of integrated-gradients nodes during an attack. Each costs one pass per step."""
EXAMPLES = 16


@dataclass(frozen=True)
class AttackParams:
    """The top-k attack. Constrained: maximize `alpha D - beta (m(x) - m(x + delta))^2`, else D while the class stays.

    D is minus the sum of the attacked map over the k features that had the highest scores. `quantity` is both m and the
    quantity that the map explains: the probability or the logit of the predicted class; for regression the score. With
    `mixed` the map explains the logit (often in the tens) and m is the probability (at most 1), so at alpha = beta
    the penalty has little effect. All `starts` run as one batch and the best one is used. Defaults: the thesis,
    section 3.5.
    """

    objective: str = option(OBJECTIVES[0], "Keep the class, or its probability as well", choices=OBJECTIVES)
    place: str = option(EMBEDDING, "What to perturb: embeddings, or the pixels of a picture", choices=PLACES)
    epsilon: float | None = option(None, "Largest change of each number. Default: 2; 8/255 for pixels", low=0)
    top_k: float = option(0.15, "Number of top features to attack; below 1, a share of all features", low=0)
    quantity: str = option(
        LOGIT,
        "The quantity that the map explains and the penalty holds: the class logit, its probability, or mixed (map of "
        "the logit, often in the tens; penalty on the probability, at most 1, with little effect at α = β)",
        choices=QUANTITIES,
    )
    alpha: float = option(1.0, "Weight of the map in the constrained objective", low=0)
    beta: float = option(1.0, "Weight of the penalty in the constrained objective", low=0)
    starts: int = option(
        STARTS, "Random starts, run as one batch; the best is used. Live curves show the first", low=1, high=100
    )
    steps: int = option(500, "Steps of gradient ascent", low=1, high=100_000)
    learning_rate: float = option(0.1, "Step size at the start; halved every 200 steps", low=0)
    sign_steps: bool = option(False, "Use only the sign of the gradient, so every number changes by the same amount")
    specials: bool = option(False, "Perturb the embeddings of special tokens too")

    def __post_init__(self) -> None:
        if self.top_k <= 0 or (self.top_k >= 1 and not float(self.top_k).is_integer()):
            raise not_allowed("top_k", "a share above 0 and below 1, or a whole number of features", self.top_k)

    @property
    def bound(self) -> float:
        """Epsilon; by default that of the place."""
        return EPSILON[self.place] if self.epsilon is None else self.epsilon

    def k_of(self, n: int) -> int:
        """Number of attacked features out of n: the share rounded down, at least 1 and at most n."""
        # 0.29 * 100 is 28.999999999999996.
        wanted = math.floor(self.top_k * n + 1e-9) if self.top_k < 1 else int(self.top_k)
        return min(n, max(1, wanted))


@dataclass(frozen=True)
class AttackRequest:
    """An attack on one example's map. `attack`: fields of `AttackParams`; `params`: parameters of the method."""

    model: str
    method: str
    example: Input
    attack: Mapping[str, Plain] = field(default_factory=dict)
    params: Mapping[str, Plain] = field(default_factory=dict)
    seed: int = 0
    dtype: str = DTYPES[0]


@dataclass(frozen=True)
class AttackPlan(ExperimentPlan):
    """Attacks on many examples.

    `attack`: non-default fields of `AttackParams`, without the objective. `params`: parameters of the methods.
    `transfer`: other methods, whose maps of the attacked inputs are measured too.
    """

    models: tuple[str, ...] = options.models()
    dataset: str = options.dataset()
    methods: tuple[str, ...] = options.methods(MISSING, "Comma-separated methods to attack.")
    objectives: tuple[str, ...] = option(
        OBJECTIVES, choices=OBJECTIVES, link="objective", allowed=f"one or more of {', '.join(OBJECTIVES)}, each once"
    )
    examples: int = options.examples(EXAMPLES)
    seed: int = options.seed("Seed of the examples and of the random starts.")
    split: str | None = options.split()
    dtype: str = options.dtype()
    attack: Mapping[str, Plain] = field(default_factory=dict)
    params: Mapping[str, Mapping[str, Plain]] = options.params()
    transfer: tuple[str, ...] = option((), "Other methods to measure on attacked inputs, or 'all'.", metavar="A,B")

    @property
    def measured_methods(self) -> tuple[str, ...]:
        """The attacked methods, then those of `transfer`."""
        return tuple(dict.fromkeys((*self.methods, *self.transfer)))

    @property
    def methods_with_baselines(self) -> tuple[str, ...]:
        members = (member for method in self.measured_methods for member in ENSEMBLE_MEMBERS.get(method, ()))
        return tuple(dict.fromkeys((*self.measured_methods, *members, RANDOM)))

    @property
    def pairs(self) -> Iterator[tuple[str, str]]:
        """All pairs of objective and method."""
        return ((objective, method) for objective in self.objectives for method in self.methods)

    def transfer_methods(self, attacked: str) -> tuple[str, ...]:
        """The methods of `transfer` without the attacked one."""
        return tuple(method for method in self.transfer if method != attacked)

    def request(self, model: str, objective: str, method: str, example: SourceExample) -> AttackRequest:
        """The attack on one example."""
        attack = {**self.attack, "objective": objective}
        return AttackRequest(model, method, example.input, attack, self.params_of(method), self.seed, self.dtype)

    def attack_params(self, objective: str) -> AttackParams:
        """All parameters of the attack."""
        params: AttackParams = from_mapping(AttackParams, {**self.attack, "objective": objective}, "attack")
        return params


ATTACK = register(
    Experiment(
        id="attack",
        plan=AttackPlan,
        module="engine.attacks.experiment",
        title="Attack {methods} on {dataset} with {models}",
        noun="attacks",
        participle="attacked",
        summary="Attack explanations of many examples. Run it again to resume.",
        doing="attacking",
        json_help="Print the scores as JSON.",
        opens_with={},
        joint=True,
    )
)


def check_method(method: str, kind: str) -> None:
    """Refuse a method that is unknown or not differentiable."""
    explainer(method, kind)
    if method not in METHODS:
        raise UsageError(
            f"methods: {method} cannot be attacked, because its map is not differentiable here. "
            f"Methods that can be attacked: {', '.join(METHODS)}. To measure {method} on attacked inputs, add it to "
            "transfer."
        )


def check_place(params: AttackParams, kind: str) -> None:
    """Refuse pixels for texts, and special tokens for pixels."""
    if params.place not in PLACES:
        raise unknown("place", params.place, PLACES)
    if params.place == PIXELS and kind != "image":
        raise UsageError("place: texts have no pixels. Set place to embedding, or choose an image model.")
    if params.place == PIXELS and params.specials:
        raise UsageError("specials: special tokens have no pixels. Set place to embedding, or remove specials.")


def check_objective(params: AttackParams, regression: bool) -> None:
    """Refuse an objective that needs a class for a model without classes."""
    if regression and params.objective != "constrained":
        raise UsageError("objective: this model predicts a score, so there is no class to keep. Use constrained.")
