"""The definition of an experiment: a plan of options and a module of functions. All interfaces are derived from them.

    @dataclass(frozen=True)
    class ToyPlan(ExperimentPlan):          # one field per line: see `engine.experiments.options`
        models: tuple[str, ...] = options.models()
        ...

    TOY = register(Experiment(id="toy", plan=ToyPlan, module=__name__, ...))

    def check(plan): ...                    # checks that go beyond single fields
    def sample(plan): ...                   # the examples, drawn with the seed
    def units(plan, sample): ...            # cacheable work on one model, for job steps and cluster tasks alike
    def assemble(plan, sample, report): ... # the result of one model, from cached parts or computed
    def rows(found): ...                    # its tidy rows, for CSV, JSON and Parquet
    def to_json(result): ...                # the output of `--json`

Derived from these: the command (`engine.cli.experiments`), the job and the executors (`engine.experiments.run`), the
page, its link and its files (`components.experiment`).
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, cast, runtime_checkable

from engine.errors import unknown
from engine.experiments.options import Spec, options_of, plan_from

if TYPE_CHECKING:
    from cache.codec import Arrays, Meta
    from engine.experiments.sample import Sample
    from engine.jobs.kinds import WorkUnit
    from engine.progress import Report

MODULES = {
    "attack": "engine.attacks.plan",
    "behavior": "engine.behavior.plan",
    "concepts": "engine.concepts.plan",
    "corpus": "engine.corpus.plan",
    "evaluate": "engine.evaluation.plan",
    "randomize": "engine.randomization.plan",
    "rules": "engine.rules.plan",
}
"""Modules that declare the experiments, so that a job can be resumed in a process that has not imported them yet."""


@dataclass(frozen=True)
class Units:
    """The work units on one model, in order. `finish`: called once all of them, or a group of them, are done."""

    each: Iterable[WorkUnit]
    finish: Callable[[], object] = lambda: None


@dataclass(frozen=True)
class ExperimentResult:
    """The results of a plan, model by model. `query`: the plan before it was resolved, None if that is the same."""

    plan: Any
    models: tuple[Any, ...]
    query: Any = None

    @property
    def requested_plan(self) -> Any:
        """The plan as it was requested."""
        return self.plan if self.query is None else self.query


@runtime_checkable
class Steps(Protocol):
    """The functions of an experiment's module. Plans for `units` and `assemble` have one model, unless it is joint.

    `VERSIONS`: versions of the results, part of the cache key. `COLUMNS`: columns of the rows. `ModelResult`: a frozen
    dataclass, which is cached; it has `model`, `dataset`, `examples` (indices in the data set) and `complete`: whether
    nothing failed, so that nothing has to be tried again. `Result`: `ExperimentResult` or a subclass.
    """

    VERSIONS: list[int]
    COLUMNS: Mapping[str, type]
    ModelResult: type[Any]
    Result: type[Any]

    def check(self, plan: Any) -> None: ...

    def sample(self, plan: Any) -> Sample: ...

    def units(self, plan: Any, sample: Sample) -> Units: ...

    def assemble(self, plan: Any, sample: Sample, report: Report) -> Any: ...

    def rows(self, found: Any) -> Iterator[dict[str, Any]]: ...

    def to_json(self, result: Any) -> dict[str, Any]: ...


@runtime_checkable
class CustomStorage(Protocol):
    """Optional functions of an experiment's module, for results with their own cache key and storage format."""

    def result_key(self, plan: Any, sample: Sample) -> str: ...

    def pack(self, result: Any) -> tuple[Meta, Arrays]: ...

    def unpack(self, plan: Any, meta: Meta, arrays: Arrays) -> Any: ...


@runtime_checkable
class CustomTasks(Protocol):
    """An optional function of an experiment's module, which tells a cluster worker the plan and examples of its group.

    Without it the worker lists all units of the model, which is slow if there are many.
    """

    def narrow(self, plan: Any, sample: Sample, group: Any) -> tuple[Any, Sample]: ...


@runtime_checkable
class CustomGroups(Protocol):
    """Optional functions of an experiment's module, if its work on a cluster is not divided by units.

    `groups`: yields each group of work on one model, as plain values, and its number of examples. `compute_group`:
    does the work of a group and caches all parts.
    """

    def groups(self, plan: Any, sample: Sample) -> Iterator[tuple[Any, int]]: ...

    def compute_group(self, plan: Any, sample: Sample, group: Any) -> None: ...


@runtime_checkable
class ResolvedPlans(Protocol):
    """An optional function of an experiment's module, which fills in open fields of a plan from the data set."""

    def resolve(self, plan: Any, sample: Sample) -> Any: ...


@dataclass(frozen=True)
class Experiment:
    """An experiment. `id`: id of the command and the kind of job. `module`: holds its `Steps`, imported on first use.

    `title`: title of a job, with the plan's fields in braces. `noun`, `participle`: their names in the cache keys of
    results and of cluster tasks. `summary`, `doing`, `json_help`: help text of the command, label of its progress, and
    help text of `--json`. `opens_with`: initial plans of the page by kind of input. `method_sets`: named sets of
    methods that the page offers. `joint`: whether all models have one result together, cached as a whole: it has `plan`
    in place of `model`, and is what carrying out the plan returns.
    """

    id: str
    plan: type
    module: str
    title: str
    noun: str
    participle: str
    summary: str
    doing: str
    opens_with: Mapping[str, Any]
    json_help: str = "Print the numbers as JSON."
    method_sets: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    joint: bool = False

    @property
    def steps(self) -> Steps:
        """The module with its functions, imported."""
        return cast(Steps, importlib.import_module(self.module))

    def plan_of(self, spec: Spec) -> Any:
        """Return the plan of a job's specification. Errors: a field that is missing, unknown or malformed."""
        return plan_from(spec, self.plan, self.id)

    def title_of(self, spec: Spec) -> str:
        """Return the title of a job, whatever its specification holds."""
        lists = {name: one.is_list for name, one in options_of(self.plan).items()}
        given = {name: spec.get(name, [] if is_list else None) for name, is_list in lists.items()}
        return self.title.format(**{n: ", ".join(map(str, v)) if lists[n] else v for n, v in given.items()})


_experiments: dict[str, Experiment] = {}


def register(own: Experiment) -> Experiment:
    """Register an experiment. Errors: another experiment has the same id."""
    if own.id in _experiments and _experiments[own.id].module != own.module:
        raise ValueError(f"experiment {own.id!r} is registered twice")
    _experiments[own.id] = own
    return own


def known_ids() -> set[str]:
    """Return the ids of all experiments."""
    return {*_experiments, *MODULES}


def is_experiment(id: str) -> bool:
    """Whether an experiment with this id exists."""
    return id in known_ids()


def experiment(id: str) -> Experiment:
    """Return the experiment with this id. Errors: an unknown id, with the known ones."""
    if id not in _experiments and id in MODULES:
        importlib.import_module(MODULES[id])
    if id not in _experiments:
        raise unknown("experiment", id, known_ids())
    return _experiments[id]


def experiment_of(plan: Any) -> Experiment:
    """Return the experiment to which a plan belongs."""
    return next(own for own in _experiments.values() if own.plan is type(plan))
