"""What is to be attacked: plain values, checked before anything is run."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from engine.attacks.attack import AttackRequest, check_request
from engine.attacks.params import OBJECTIVES, AttackParams
from engine.data.sources import SourceExample
from engine.errors import UsageError, not_allowed, unknown
from engine.evaluation.plan import Plan
from engine.evaluation.plan import check as check_evaluation
from engine.params import Plain, from_mapping
from engine.registry import explainer
from engine.request import DTYPES

EXAMPLES = 16


@dataclass(frozen=True)
class AttackPlan:
    """`attack`: fields of `AttackParams` but the objective, where not at their defaults. `params`: of methods.

    `transfer`: other methods, whose maps of the attacked inputs are looked at too.
    """

    models: tuple[str, ...]
    dataset: str
    methods: tuple[str, ...]
    objectives: tuple[str, ...] = OBJECTIVES
    examples: int = EXAMPLES
    seed: int = 0
    split: str | None = None
    dtype: str = DTYPES[0]
    attack: Mapping[str, Plain] = field(default_factory=dict)
    params: Mapping[str, Mapping[str, Plain]] = field(default_factory=dict)
    transfer: tuple[str, ...] = ()

    @property
    def sampled(self) -> Plan:
        """An evaluation of the same models on the same examples."""
        methods = tuple(dict.fromkeys((*self.methods, *self.transfer)))
        return Plan(self.models, self.dataset, methods, (), self.examples, self.seed, self.split, dtype=self.dtype,
                    params=self.params)  # fmt: skip

    @property
    def kind(self) -> str:
        """What the models read, "text" or "image"."""
        return self.sampled.kind

    @property
    def pairs(self) -> Iterator[tuple[str, str]]:
        """Each objective with each method."""
        return ((objective, method) for objective in self.objectives for method in self.methods)

    def others(self, attacked: str) -> tuple[str, ...]:
        """Of what is looked at too, those that are not the attacked method itself, whose maps are there anyway."""
        return tuple(method for method in self.transfer if method != attacked)

    def params_of(self, method: str) -> Mapping[str, Plain]:
        return self.params.get(method, {})

    def request(self, model: str, objective: str, method: str, one: SourceExample) -> AttackRequest:
        """The attack on one example."""
        given = {**self.attack, "objective": objective}
        return AttackRequest(model, method, one.input, given, self.params_of(method), self.seed, self.dtype)

    def chosen(self, objective: str) -> AttackParams:
        """The attack's parameters, defaults filled in."""
        return from_mapping(AttackParams, {**self.attack, "objective": objective}, "attack")

    def as_plain(self) -> dict[str, object]:
        return dataclasses.asdict(self)


def check(plan: AttackPlan) -> None:
    """Refuses a plan that cannot be carried out. A hub's model may be downloaded for it; no model is loaded."""
    if not plan.objectives or len(set(plan.objectives)) < len(plan.objectives):
        raise not_allowed("objectives", f"some of {', '.join(OBJECTIVES)}, each once", list(plan.objectives))
    for objective in plan.objectives:
        if objective not in OBJECTIVES:
            raise unknown("objective", objective, OBJECTIVES)
    if "objective" in plan.attack:
        raise UsageError("attack: the objective stands in objectives. Leave it out here.")
    kind = plan.kind
    for method in plan.transfer:
        explainer(method, kind)
    if len(set(plan.transfer)) < len(plan.transfer):
        raise not_allowed("transfer", "different names", list(plan.transfer))
    for objective, method in plan.pairs:
        check_request(method, kind, {**plan.attack, "objective": objective}, plan.params_of(method))
    check_evaluation(plan.sampled)
