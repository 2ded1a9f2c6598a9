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
"""Methods whose map can be differentiated once more."""
MIXED = "mixed"
QUANTITIES = (LOGIT, PROBABILITY, MIXED)
"""The quantity of the map and of the penalty: one of both, or a map of the logit with a penalty on the probability.
By the logit constrained attacks keep the probability, as in the thesis, and else they do not (docs/attacks.md).
"""
TOLERANCE = 0.05
"""The largest change of the predicted class's probability, or of a regression head's score, within the constraint."""
STARTS = 3
EPSILON = {EMBEDDING: 2.0, PIXELS: 8 / 255}
"""The largest change of each number: of an embedding, or of a pixel's color from 0 to 1."""
PATH_STEPS = 9
"""Nodes of integrated gradients during an attack, where none are named: each is a pass in each step."""
EXAMPLES = 16


@dataclass(frozen=True)
class AttackParams:
    """The top-k attack. Constrained: maximize `alpha D - beta (m(x) - m(x + delta))^2`, else D while the class stays.

    D is minus the sum of the attacked map at the k features that were the highest. `quantity` is m and what the map is
    of: the probability or the logit of the predicted class, of a regression head always the score. Of `mixed` the map
    is of the logit, often tens, and m the probability, at most 1, so that at alpha = beta the penalty hardly counts.
    The attack is made from `starts` draws at once, and the best is kept. Defaults: the thesis, section 3.5.
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
        """The number of attacked features of n: the share rounded down, at least one and at most all."""
        # 0.29 * 100 is 28.999999999999996.
        wanted = math.floor(self.top_k * n + 1e-9) if self.top_k < 1 else int(self.top_k)
        return min(n, max(1, wanted))


@dataclass(frozen=True)
class AttackRequest:
    """One attack on one example's map by one method. `attack`: fields of `AttackParams`; `params`: of the method."""

    model: str
    method: str
    example: Input
    attack: Mapping[str, Plain] = field(default_factory=dict)
    params: Mapping[str, Plain] = field(default_factory=dict)
    seed: int = 0
    dtype: str = DTYPES[0]


@dataclass(frozen=True)
class AttackPlan(ExperimentPlan):
    """`attack`: fields of `AttackParams` but the objective, where not at their defaults. `params`: of methods.

    `transfer`: other methods, whose maps of the attacked inputs are measured too.
    """

    models: tuple[str, ...] = options.models()
    dataset: str = options.dataset()
    methods: tuple[str, ...] = options.methods(MISSING, "Methods to attack, between commas.")
    objectives: tuple[str, ...] = option(
        OBJECTIVES, choices=OBJECTIVES, link="objective", allowed=f"some of {', '.join(OBJECTIVES)}, each once"
    )
    examples: int = options.examples(EXAMPLES)
    seed: int = options.seed("Draws where attacks start, and the examples.")
    split: str | None = options.split()
    dtype: str = options.dtype()
    attack: Mapping[str, Plain] = field(default_factory=dict)
    params: Mapping[str, Mapping[str, Plain]] = options.params()
    transfer: tuple[str, ...] = option((), "Other methods to measure, or 'all'.", metavar="A,B")

    @property
    def measured_methods(self) -> tuple[str, ...]:
        """The attacked methods, then those that are measured too."""
        return tuple(dict.fromkeys((*self.methods, *self.transfer)))

    @property
    def methods_with_baselines(self) -> tuple[str, ...]:
        members = (member for method in self.measured_methods for member in ENSEMBLE_MEMBERS.get(method, ()))
        return tuple(dict.fromkeys((*self.measured_methods, *members, RANDOM)))

    @property
    def pairs(self) -> Iterator[tuple[str, str]]:
        """Each objective with each method."""
        return ((objective, method) for objective in self.objectives for method in self.methods)

    def transfer_methods(self, attacked: str) -> tuple[str, ...]:
        """The methods of `transfer` without the attacked one, whose maps are there anyway."""
        return tuple(method for method in self.transfer if method != attacked)

    def request(self, model: str, objective: str, method: str, example: SourceExample) -> AttackRequest:
        """The attack on one example."""
        attack = {**self.attack, "objective": objective}
        return AttackRequest(model, method, example.input, attack, self.params_of(method), self.seed, self.dtype)

    def attack_params(self, objective: str) -> AttackParams:
        """The attack's parameters, defaults filled in."""
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
    """Refuse a method that does not exist, or whose map cannot be differentiated; says which can."""
    explainer(method, kind)
    if method not in METHODS:
        raise UsageError(
            f"methods: {method} cannot be attacked, for its map has no derivative here. "
            f"Can be attacked: {', '.join(METHODS)}. The map of {method} on the attacked input can be asked for: "
            "name it among transfer."
        )


def check_place(params: AttackParams, kind: str) -> None:
    """Refuse pixels of a text, and special tokens of pixels."""
    if params.place not in PLACES:
        raise unknown("place", params.place, PLACES)
    if params.place == PIXELS and kind != "image":
        raise UsageError("place: a text has no pixels. Set place to embedding, or name a model that reads pictures.")
    if params.place == PIXELS and params.specials:
        raise UsageError("specials: special tokens have no pixels. Set place to embedding, or leave specials out.")


def check_objective(params: AttackParams, regression: bool) -> None:
    """Refuse to keep the class of a model that has none."""
    if regression and params.objective != "constrained":
        raise UsageError(
            "objective: this model gives a score and no class, so that there is no class to keep. Use constrained."
        )
