"""What is to be randomized, and what is explained meanwhile: plain values, checked before anything is run."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from engine.errors import UsageError, not_allowed, unknown
from engine.models import catalog
from engine.params import Plain, from_mapping
from engine.registry import explainer
from engine.request import DTYPES
from engine.words import BASELINE

MODES = ("cascading", "independent")
"""From the last part down, each stage with all before it; or one part at a time, the others as they were trained."""
EXAMPLES = 50
SEEDS = 3
RANDOM = "random"
THESIS = ("gradient", "gradient_x_input", "integrated_gradients", "attention_mean", "attention_rollout")
USUAL: Mapping[str, Mapping[str, Plain]] = {"integrated_gradients": {"steps": "fixed", "n_steps": 33}}
"""Where a method's own defaults do not suit: steps until the gap is small would not end on random models, where the
logit hardly moves along the path."""
WHY_NOT = {
    "perturbation": "it looks at the model's answers alone, not at its parameters",
    "ensemble": "it has members that look at the model's answers alone",
}


@dataclass(frozen=True)
class Plan:
    """`seeds`: how many times a part is randomized, from `seed` on: seed, seed + 1, ... `head`, `embeddings`: whether
    these are randomized too, first and last. `params`: of methods, where not as in `USUAL` or at their defaults.
    """

    models: tuple[str, ...]
    dataset: str
    methods: tuple[str, ...] = THESIS
    examples: int = EXAMPLES
    seed: int = 0
    modes: tuple[str, ...] = MODES
    seeds: int = SEEDS
    head: bool = False
    embeddings: bool = False
    split: str | None = None
    dtype: str = DTYPES[0]
    params: Mapping[str, Mapping[str, Plain]] = field(default_factory=dict)

    @cached_property
    def kind(self) -> str:
        """What the models read, "text" or "image"."""
        return "image" if catalog.is_image_model(self.models[0]) else "text"

    @property
    def company(self) -> tuple[str, ...]:
        """The methods, and a random order beside them."""
        return tuple(dict.fromkeys((*self.methods, RANDOM)))

    @property
    def draws(self) -> tuple[int, ...]:
        """The seeds of the randomizations."""
        return tuple(range(self.seed, self.seed + self.seeds))

    def params_of(self, method: str) -> Mapping[str, Plain]:
        return {**USUAL.get(method, {}), **self.params.get(method, {})}

    def as_plain(self) -> dict[str, object]:
        return dataclasses.asdict(self)


def not_applicable(method: str, kind: str = "text") -> str:
    """Why the thesis (section 4) leaves such a method out; empty where the check is meant for it."""
    return WHY_NOT.get(explainer(method, kind).family, "")


def is_baseline(method: str, kind: str = "text") -> bool:
    """Whether it knows nothing of the model: then it is drawn anew at each stage, and shows what chance gives."""
    return explainer(method, kind).family == BASELINE


def check(plan: Plan) -> None:
    """Refuses a plan that cannot be carried out. A hub's model may be downloaded for it; no model is loaded."""
    _check_lists(plan)
    kind = plan.kind
    for model in plan.models:
        if catalog.is_image_model(model) != (kind == "image"):
            raise UsageError(f"models: {plan.models[0]} and {model} must both read texts or both read pictures.")
    for method in {*plan.methods, *plan.params}:
        known = explainer(method, kind)
        from_mapping(known.params, plan.params_of(method), method)
        for model in plan.models:
            known.settled(plan.params_of(method), model)
    if all(is_baseline(method, kind) for method in plan.methods):
        raise UsageError(
            f"methods: {', '.join(plan.methods)} does not depend on the model, so that randomizing it tells nothing. "
            f"Name one that does, such as {THESIS[1]}."
        )
    _check_numbers(plan)


def _check_lists(plan: Plan) -> None:
    for name, values in (("models", plan.models), ("methods", plan.methods), ("modes", plan.modes)):
        _check_distinct(name, values)
    for mode in plan.modes:
        if mode not in MODES:
            raise unknown("mode", mode, MODES)
    for method in plan.params:
        if method not in plan.company:
            raise unknown("params: method", method, plan.company)


def _check_distinct(name: str, values: Sequence[str]) -> None:
    if not values:
        raise UsageError(f"{name}: must name at least one, got none.")
    if len(set(values)) < len(values):
        raise not_allowed(name, "different names", list(values))


def _check_numbers(plan: Plan) -> None:
    for name in ("examples", "seeds"):
        if type(getattr(plan, name)) is not int or getattr(plan, name) < 1:
            raise not_allowed(name, "a whole number of at least 1", getattr(plan, name))
    if type(plan.seed) is not int or plan.seed < 0:
        raise not_allowed("seed", "a whole number of at least 0", plan.seed)
    for name in ("head", "embeddings"):
        if type(getattr(plan, name)) is not bool:
            raise not_allowed(name, "true or false", getattr(plan, name))
    if plan.dtype not in DTYPES:
        raise unknown("dtype", plan.dtype, DTYPES)
