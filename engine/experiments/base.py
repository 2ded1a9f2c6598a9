"""The definition of an experiment: a plan of options and a module of functions, from which its faces are made.

    @dataclass(frozen=True)
    class ToyPlan(ExperimentPlan):          # a field a line: see `engine.experiments.options`
        models: tuple[str, ...] = options.models()
        ...

    TOY = register(Experiment(id="toy", plan=ToyPlan, module=__name__, ...))

    def check(plan): ...                    # what fields alone cannot say
    def sample(plan): ...                   # the examples, by the seed
    def units(plan, sample): ...            # cacheable work on one model: job steps and tasks of a cluster alike
    def assemble(plan, sample, report): ... # the result of one model: cached, or computed where it is missing
    def rows(found): ...                    # tidy rows of it, for CSV, JSON and Parquet
    def to_json(result): ...                # what `--json` prints

What follows: the command (`engine.cli.experiments`), the job and the executors (`engine.experiments.run`), the page,
its link and its files (`components.experiment`).
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
"""Where experiments are declared, so that a job can be resumed in a process that has not imported it yet."""


@dataclass(frozen=True)
class Units:
    """The work on one model in its order. `finish`: what is to be done once all of it, or a group of it, is done."""

    each: Iterable[WorkUnit]
    finish: Callable[[], object] = lambda: None


@dataclass(frozen=True)
class ExperimentResult:
    """The results of a plan, model by model. `query`: the plan before it was resolved, None where that is the same."""

    plan: Any
    models: tuple[Any, ...]
    query: Any = None

    @property
    def requested_plan(self) -> Any:
        """The plan as it was asked for."""
        return self.plan if self.query is None else self.query


@runtime_checkable
class Steps(Protocol):
    """The functions of the module of an experiment. Plans of `units` and `assemble` are of one model, unless joint.

    `VERSIONS`: of the numbers, in the cache key. `COLUMNS`: of the rows. `ModelResult`: a frozen dataclass, which the
    cache holds; it has `model`, `dataset`, `examples` (their places in the data set) and `complete`: whether nothing
    failed, so that nothing need be tried again. `Result`: `ExperimentResult` or a subclass.
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
    """Functions of the module of an experiment whose results have a cache key and a stored form of their own."""

    def result_key(self, plan: Any, sample: Sample) -> str: ...

    def pack(self, result: Any) -> tuple[Meta, Arrays]: ...

    def unpack(self, plan: Any, meta: Meta, arrays: Arrays) -> Any: ...


@runtime_checkable
class CustomTasks(Protocol):
    """A function of the module of an experiment that tells a worker of a cluster which plan and examples its group is.

    Without it the worker lists all units of the model, which is slow where they are many.
    """

    def narrow(self, plan: Any, sample: Sample, group: Any) -> tuple[Any, Sample]: ...


@runtime_checkable
class CustomGroups(Protocol):
    """Functions of the module of an experiment whose work on a cluster is not cut by its units.

    `groups`: each group of work on one model, plain values, with how many examples it has. `compute_group`: does it,
    and leaves all parts in the cache.
    """

    def groups(self, plan: Any, sample: Sample) -> Iterator[tuple[Any, int]]: ...

    def compute_group(self, plan: Any, sample: Sample, group: Any) -> None: ...


@runtime_checkable
class ResolvedPlans(Protocol):
    """A function of the module of an experiment that fills in what the data set decides where a plan leaves it open."""

    def resolve(self, plan: Any, sample: Sample) -> Any: ...


@dataclass(frozen=True)
class Experiment:
    """`id`: of the command and the kind of job. `module`: holds its `Steps`, and is imported when it is first run.

    `title`: of a job, with the plan's fields in braces. `noun`, `participle`: what stands in the cache keys of results
    and of a cluster's tasks. `summary`, `doing`, `json_help`: what the command says of itself, while it works, and of
    `--json`. `opens_with`: the plans that the page begins with, by what the models read. `method_sets`: sets of methods
    that the page offers, by their names. `joint`: all models have one result together, cached as a whole: it has
    `plan` in place of `model`, and is what carrying out the plan returns.
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
        """The plan that a job's specification names. Errors: a field that is missing, unknown or of another shape."""
        return plan_from(spec, self.plan, self.id)

    def title_of(self, spec: Spec) -> str:
        """The title of a job, whatever its specification holds."""
        lists = {name: one.is_list for name, one in options_of(self.plan).items()}
        given = {name: spec.get(name, [] if is_list else None) for name, is_list in lists.items()}
        return self.title.format(**{n: ", ".join(map(str, v)) if lists[n] else v for n, v in given.items()})


_experiments: dict[str, Experiment] = {}


def register(own: Experiment) -> Experiment:
    """Enter an experiment into the list. Errors: another has that name."""
    if own.id in _experiments and _experiments[own.id].module != own.module:
        raise ValueError(f"experiment {own.id!r} is registered twice")
    _experiments[own.id] = own
    return own


def known_ids() -> set[str]:
    """The names of all experiments."""
    return {*_experiments, *MODULES}


def is_experiment(id: str) -> bool:
    """Whether there is one of this name."""
    return id in known_ids()


def experiment(id: str) -> Experiment:
    """The experiment of this name. An unknown one lists the known."""
    if id not in _experiments and id in MODULES:
        importlib.import_module(MODULES[id])
    if id not in _experiments:
        raise unknown("experiment", id, known_ids())
    return _experiments[id]


def experiment_of(plan: Any) -> Experiment:
    """The experiment whose plan this is."""
    return next(own for own in _experiments.values() if own.plan is type(plan))
