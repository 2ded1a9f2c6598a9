"""What is to be evaluated: plain values, checked before anything is run."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from engine.errors import UsageError, not_allowed, unknown
from engine.explainers.ensemble import SEVEN, TOP_THREE
from engine.input_kinds import check_removal, check_unit, input_kind, kind_of_model
from engine.metrics.catalog import FALL_OF_LOGIT, METRICS, Needs, metric
from engine.metrics.faithfulness import PERCENTS, SHARES, check_percents
from engine.metrics.plausibility import K
from engine.metrics.sensitivity import SAMPLES
from engine.params import Plain, from_mapping
from engine.registry import explainer
from engine.request import DTYPES

EXAMPLES = 500
RANDOM = "random"
MEMBERS = {"ensemble_all": SEVEN, "ensemble_top3": TOP_THREE}


@dataclass(frozen=True)
class Plan:
    """`metrics`: none for all that suit the data set (only where they are named: sensitivity, for it costs most, and
    falls of the logit).

    `unit`, `removal`: the first of the input's kind where they are None. `shares`: the percentages over which
    comprehensiveness and sufficiency are means. `k`: of `recall_at_k`. `samples`: of sensitivity. `params`: of methods,
    where not at their defaults.
    """

    models: tuple[str, ...]
    dataset: str
    methods: tuple[str, ...]
    metrics: tuple[str, ...] = ()
    examples: int = EXAMPLES
    seed: int = 0
    split: str | None = None
    unit: str | None = None
    removal: str | None = None
    dtype: str = DTYPES[0]
    shares: tuple[int, ...] = SHARES
    k: int = K
    samples: int = SAMPLES
    params: Mapping[str, Mapping[str, Plain]] = field(default_factory=dict)

    @cached_property
    def kind(self) -> str:
        """What the models read, "text" or "image"."""
        return kind_of_model(self.models[0])

    @property
    def company(self) -> tuple[str, ...]:
        """The methods with what each evaluation shows beside them: an ensemble's members, and a random order."""
        members = (member for method in self.methods for member in MEMBERS.get(method, ()))
        return tuple(dict.fromkeys((*self.methods, *members, RANDOM)))

    @property
    def units(self) -> str:
        """What is ranked and removed: "token", "word" or "patch"."""
        return self.unit or input_kind(self.kind).units[0]

    @property
    def percents(self) -> tuple[int, ...]:
        """Those that the means need, and of the full curves where they are asked for."""
        curves = not self.metrics or any(METRICS[id].by_percent for id in self.metrics)
        return tuple(sorted({0, 100, *self.shares, *(PERCENTS if curves else ())}))

    @property
    def logits(self) -> bool:
        """Whether a metric is of the class's logit."""
        return any(METRICS[id].unit == FALL_OF_LOGIT for id in self.metrics)

    def needs(self, what: Needs) -> list[str]:
        """The metrics asked for that need it."""
        return [id for id in self.metrics if METRICS[id].needs == what]

    def params_of(self, method: str) -> Mapping[str, Plain]:
        return self.params.get(method, {})

    def as_plain(self) -> dict[str, object]:
        return dataclasses.asdict(self)


def check(plan: Plan) -> None:
    """Refuses a plan that cannot be carried out. A hub's model may be downloaded for it; no model is loaded."""
    _check_lists(plan)
    kind = plan.kind
    for model in plan.models:
        if kind_of_model(model) != kind:
            raise UsageError(f"models: {plan.models[0]} and {model} must both read texts or both read pictures.")
    for method in {*plan.methods, *plan.params}:
        known = explainer(method, kind)
        from_mapping(known.params, plan.params_of(method), method)
        for model in plan.models:
            known.settled(plan.params_of(method), model)
    for id in plan.metrics:
        metric(id)
    if plan.removal is not None:
        check_removal(plan.removal, kind)
    if plan.unit is not None:
        check_unit(plan.unit, kind)
    _check_numbers(plan)


def _check_lists(plan: Plan) -> None:
    for name, values in (("models", plan.models), ("methods", plan.methods)):
        _check_distinct(name, values)
        if not values:
            raise UsageError(f"{name}: must name at least one, got none.")
    _check_distinct("metrics", plan.metrics)
    for method in plan.params:
        if method not in plan.company:
            raise unknown("params: method", method, plan.company)


def _check_distinct(name: str, values: Sequence[str]) -> None:
    if len(set(values)) < len(values):
        raise not_allowed(name, "different names", list(values))


def _check_numbers(plan: Plan) -> None:
    for name in ("examples", "k", "samples"):
        if type(getattr(plan, name)) is not int or getattr(plan, name) < 1:
            raise not_allowed(name, "a whole number of at least 1", getattr(plan, name))
    if type(plan.seed) is not int or plan.seed < 0:
        raise not_allowed("seed", "a whole number of at least 0", plan.seed)
    if plan.dtype not in DTYPES:
        raise unknown("dtype", plan.dtype, DTYPES)
    if not plan.shares or 0 in plan.shares:
        raise not_allowed("shares", "at least one percentage above 0", list(plan.shares))
    check_percents(plan.percents)


def removal_of(plan: Plan) -> str:
    """The operator by which units are removed."""
    return plan.removal or input_kind(plan.kind).removals[0]
