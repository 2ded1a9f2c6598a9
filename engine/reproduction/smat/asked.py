"""What a reproduction of SMaT is asked to do, and the plans that its claims need."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

from engine.errors import ExegesisError, not_allowed, unknown
from engine.reproduction.smat.claims import SPARSEMAX, Claim, Declared, Sizes, declared, sizes_named
from engine.reproduction.smat.naming import TASKS
from engine.scaffold import opening
from engine.scaffold.plan import ATTENTION, NORMALISATIONS, SMAT, Plan
from engine.scaffold.presets import PRESETS, Preset, preset

FILE = "places.json"
"""What a report calls the file of folders by name."""
SCALES = ("embedded", "full")
PRESET_OF = {"text": "imdb", "image": "cifar100", "regression": "mlqe"}
MIDDLE = "middle"

Key = tuple[str, str]
"""A task and a normalisation."""


@dataclass(frozen=True)
class Asked:
    """`examples`: on which plausibility is measured, None for as many as are declared. `claims`: none for all.
    `places`: folders of teachers, bases and data sets by name. `seed`: of the intervals over examples."""

    scale: str = "embedded"
    examples: int | None = None
    seed: int = 0
    claims: tuple[str, ...] = ()
    places: Mapping[str, str] = field(default_factory=dict)

    def as_plain(self) -> dict[str, object]:
        return {**dataclasses.asdict(self), "claims": list(self.claims)}

    def check(self) -> None:
        """Refuses an unknown scale or claim, and numbers that are none."""
        if self.scale not in SCALES:
            raise unknown("scale", self.scale, SCALES)
        self.declared.chosen({}, self.claims)
        if self.examples is not None and (type(self.examples) is not int or self.examples < 2):
            raise not_allowed("examples", "a whole number of at least 2", self.examples)
        if type(self.seed) is not int or self.seed < 0:
            raise not_allowed("seed", "a whole number of at least 0", self.seed)

    @property
    def declared(self) -> Declared:
        return declared()

    @property
    def count(self) -> int:
        """Examples for plausibility, where a data set has as many."""
        return self.declared.examples[self.scale] if self.examples is None else self.examples

    @cached_property
    def tasks(self) -> Mapping[str, Plan | str]:
        """The plan of each task; in the place of one that cannot be made, why."""
        return {task: self._task(task) for task in TASKS}

    def _task(self, task: str) -> Plan | str:
        try:
            return self._placed(opening.OPENING[task]) if self.scale == "embedded" else self._published(task)
        except ExegesisError as error:
            return " ".join(str(error).split())

    def _published(self, task: str) -> Plan:
        one: Preset = PRESETS[PRESET_OF[task]]
        plan = preset(one.name, self.places.get(one.out), self.places.get(one.name) or self.places.get(one.dataset))
        return replace(plan, base=self.places.get(one.base, one.base))

    def _placed(self, plan: Plan) -> Plan:
        teacher, dataset = (self.places.get(name, name) for name in (plan.teacher, plan.dataset))
        base = plan.base and self.places.get(plan.base, plan.base)
        return replace(plan, teacher=teacher, dataset=dataset, base=base)

    @property
    def sizes(self) -> Sizes:
        """The train sizes of each task by the names that claims give them."""
        # Where a plan cannot be made, claims are still told, with the sizes that they were declared for.
        usual = {"small": 0, "middle": 0, "large": 0}
        return {
            task: usual if isinstance(plan, str) else sizes_named(plan.train_sizes) for task, plan in self.tasks.items()
        }

    @property
    def chosen(self) -> tuple[Claim, ...]:
        return self.declared.chosen(self.sizes, self.claims)

    @property
    def needed(self) -> tuple[Key, ...]:
        """The tasks and normalisations that the chosen claims are about."""
        found = {key for claim in self.chosen for key in claim.needed}
        order = {one: place for place, one in enumerate(NORMALISATIONS)}
        return tuple(sorted(found, key=lambda key: (list(TASKS).index(key[0]), order[key[1]])))

    def plan(self, key: Key) -> Plan | str:
        """All students that are looked at, or why there is no plan."""
        task, normalisation = key
        plan = self.tasks[task]
        return plan if isinstance(plan, str) or normalisation == SPARSEMAX else self._normalised(plan, normalisation)

    def taught(self, key: Key) -> Plan | str:
        """The same with no more seeds than are declared, which are taught where they are missing."""
        plan = self.plan(key)
        if isinstance(plan, str) or key[1] == SPARSEMAX:
            return plan
        return replace(plan, seeds=plan.seeds[: self.declared.normalisation_seeds])

    def _normalised(self, plan: Plan, normalisation: str) -> Plan:
        """Attention alone and the middle train size, as in table 7. Baselines are those of sparsemax: they use none."""
        middle = sizes_named(plan.train_sizes).get(MIDDLE, max(plan.train_sizes))
        recipe = replace(plan.recipe, normalisation=normalisation)
        return replace(plan, settings=(*ATTENTION, SMAT), train_sizes=(middle,), recipe=recipe)

    def command(self) -> str:
        """What repeats it. `FILE` names the folders of `places`, which are those of this machine."""
        claims = f" --claims {','.join(self.claims)}" if self.claims else ""
        places = f" --places {FILE}" if self.places else ""
        return (
            f"exegesis reproduce smat --scale {self.scale} --examples {self.count} --seed {self.seed}{claims}{places}"
        )
