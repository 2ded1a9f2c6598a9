"""The job kind `attack`: methods attacked on examples of a data set, each attack kept as it ends.

What it leaves in the cache is what `engine.attacks.experiment.carry_out` then reads without running a model.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields
from functools import partial
from typing import TYPE_CHECKING, Any

from engine.errors import ExegesisError, UsageError, not_allowed, shown
from engine.jobs.kinds import Batch, Spec, Step, Unit, job_kind, unreadable_key

if TYPE_CHECKING:
    from engine.attacks.plan import AttackPlan
    from engine.evaluation.sample import Sample

LISTS = ("models", "methods", "objectives", "transfer")
NEEDED = {"models", "dataset", "methods"}


def _title(spec: Spec) -> str:
    methods, models = (", ".join(map(str, spec.get(name, []))) for name in ("methods", "models"))
    return f"Attack {methods} on {spec.get('dataset')} with {models}"


def plan_of(spec: Spec) -> AttackPlan:
    """The plan that a specification names. Errors: a field that is missing, unknown or of another shape."""
    from engine.attacks.plan import AttackPlan

    known = {field.name for field in fields(AttackPlan)}
    if spec.keys() - known or NEEDED - spec.keys():
        raise UsageError(
            f"spec of an attack job: must have models, dataset and methods, and may have "
            f"{', '.join(sorted(known - NEEDED))}, got {shown(sorted(spec))}."
        )
    for name in LISTS:
        if not isinstance(spec.get(name, []), list):
            raise not_allowed(f"{name} of an attack job", "a list", spec[name])
    for name in ("attack", "params"):
        if not isinstance(spec.get(name, {}), dict):
            raise not_allowed(f"{name} of an attack job", "names with their values", spec[name])
    if not isinstance(spec["dataset"], str):
        raise not_allowed("dataset of an attack job", "a data set's name, a path or hub:owner/name", spec["dataset"])
    given: dict[str, Any] = {name: tuple(value) if name in LISTS else value for name, value in spec.items()}
    return AttackPlan(**given)


def check(spec: Spec) -> None:
    """Refuses what cannot be attacked. The data set is read when the job runs."""
    from engine.attacks.plan import check as check_plan

    check_plan(plan_of(spec))


@job_kind("attack", title=_title, check=check)
def plan(spec: Spec) -> Iterator[Unit]:
    """The fields of `engine.attacks.plan.AttackPlan`. Model by model, objective by objective, method by method: a unit
    an example, then a unit an example for each method that the attack may transfer to; at the end the whole.
    """
    from engine.attacks.experiment import carry_out
    from engine.attacks.keeping import key_of
    from engine.attacks.plan import check as check_plan
    from engine.evaluation.sample import sample_of

    asked = plan_of(spec)
    check_plan(asked)
    sample = sample_of(asked.sampled)
    for model in asked.models:
        for objective, method in asked.pairs:
            yield from _Attacks(asked, sample, model, objective, method).units()
    yield Unit(key_of(asked, sample), "all together", lambda: carry_out(asked), stores_itself=True)


class _Attacks:
    """The attacks on one method by one objective. Examples are read when their turn comes."""

    def __init__(self, plan: AttackPlan, sample: Sample, model: str, objective: str, method: str) -> None:
        self.plan, self.sample = plan, sample
        self.model, self.objective, self.method = model, objective, method

    @property
    def _steps(self) -> int:
        """At most; an attack that stands still ends sooner."""
        return self.plan.chosen(self.objective).steps

    def units(self) -> Iterator[Unit]:
        keys = {index: self._key(index) for index in self.sample.indices}
        batch = self._together({key: index for index, key in keys.items()})
        said = f"{self.method}, {self.objective}"
        for place, (index, key) in enumerate(keys.items(), 1):
            label = f"attack on {said}, example {index}, {self.model}"
            step = Step(f"Attack on {said}, {self.model}", place, len(keys), self._steps, "steps")
            yield Unit(key, label, partial(self._attack, [index]), stores_itself=True, batch=batch, step=step)
        for other in self.plan.others(self.method):
            for index in self.sample.indices:
                label = f"{other} on what fooled {said}, example {index}, {self.model}"
                yield Unit(self._key(index, other), label, partial(self._transfer, index, other), stores_itself=True)

    def _together(self, of: Mapping[str, int]) -> Batch:
        return lambda units: self._attack([of[unit.key] for unit in units])

    def _key(self, index: int, other: str = "") -> str:
        from engine.attacks import attack, transfer

        try:
            request = self._request(index)
            if other:
                return transfer.key_of(request, other, self.plan.params_of(other))
            return attack.key_of(request)
        except ExegesisError as error:
            return unreadable_key(f"{other or self.method}, {self.objective}", self._named(index), error)

    def _named(self, index: int) -> dict[str, Any]:
        return {"dataset": self.plan.dataset, "index": index}

    def _request(self, index: int) -> Any:
        return self.plan.request(self.model, self.objective, self.method, self.sample.source.read(index))

    def _attack(self, indices: Sequence[int]) -> None:
        from engine.attacks.attack import attack_many

        attack_many([self._request(index) for index in indices])

    def _transfer(self, index: int, other: str) -> None:
        from engine.attacks.attack import attack
        from engine.attacks.transfer import transferred

        request = self._request(index)
        transferred(request, attack(request), other, self.plan.params_of(other))
