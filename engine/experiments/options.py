"""The fields of an experiment's plan. One line declares a field for the command line, the page, the link and the job.

A plan is a frozen dataclass whose fields are made by `option` (see `engine.params`), with more metadata where a face
of the experiment needs it, all of it optional:

* `flag`, `metavar`: of the option on the command line; the field's name and the type's if left out.
* `link`: the name in a link and in errors about single values; the field's name if left out.
* `label`, `about`: the title of the page's control and its help; made of the name, and `help`, if left out.
* `place`: where the page draws it: "top", "line" (below the methods) or "more" (behind a button), the default. One
  at "lead" is drawn by the page itself, before all others.
  `page=False`: the page has no control for it.
* `titles`: of the choices, for people. `by_kind`: a function from the kind of input to its choices.
* `most`: the largest number that the page and its link take.
* `fallback`: what is said of a wrong value in a link, with {} for the value that is used instead.
* `allowed`: of a list, what it may hold, in words.
* `exact`: a list is in its own order, and an empty name is a name; a text keeps the spaces around it. `digits`: of a
  number with decimals, how many a link has.
* `read`: a function of the field's texts in a link and of a list to which sentences are added; returns its value.
  `write`: a function of its value; returns its text in a link.
* `parse`: of a list that the page's control and the link hold as one text between commas: reads it, or raises.
* `first`: it comes right after the methods in the command that repeats a plan.
"""

from __future__ import annotations

import dataclasses
import functools
import typing
from collections.abc import Mapping
from dataclasses import MISSING, dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from engine.errors import UsageError, excerpt, not_allowed
from engine.lazy import LazyModule
from engine.params import Plain, option

if TYPE_CHECKING:
    from engine import input_kinds
else:  # it loads numpy: a plan is declared long before its models are known
    input_kinds = LazyModule("engine.input_kinds")

RANDOM = "random"
"""The method that is beside all others."""
MOST_EXAMPLES = 100_000
MOST_SEED = 2**31 - 1
Spec = Mapping[str, Any]


class ExperimentPlan:
    """The base of all plans; each declares these fields and its own, in an order of its own."""

    models: tuple[str, ...]
    dataset: str
    methods: tuple[str, ...]
    examples: int
    seed: int
    split: str | None
    dtype: str
    params: Mapping[str, Mapping[str, Plain]]

    @cached_property
    def kind(self) -> str:
        """The kind of input that the models read, "text" or "image"."""
        return input_kinds.kind_of_model(self.models[0])

    @property
    def methods_with_baselines(self) -> tuple[str, ...]:
        """The methods, and a random order beside them."""
        return tuple(dict.fromkeys((*self.methods, RANDOM)))

    def params_of(self, method: str) -> Mapping[str, Plain]:
        """The parameters of a method that are not at their defaults."""
        return self.params.get(method, {})

    def as_plain(self) -> dict[str, object]:
        return dataclasses.asdict(self)  # type: ignore[call-overload]


DATASET_HELP = "Name, file, folder or hub:owner/name. [required]"


def models() -> Any:
    return option(MISSING, "Comma-separated models.", metavar="A,B", link="model")


def dataset() -> Any:
    return option(MISSING, DATASET_HELP, metavar="D", link="data")


def methods(default: Any, help: str) -> Any:
    return option(default, help, metavar="A,B", link="method")


def no_methods() -> Any:
    """Of an experiment that uses no explainers: neither the command nor the page asks for methods."""
    return option((), page=False)


def has_methods(plan: type) -> bool:
    """Whether the experiment of this plan uses explainers."""
    return bool(options_of(plan)["methods"].get("page", True))


def examples(default: int) -> Any:
    about = "Number of examples, sampled with the seed. A smaller data set is used whole."
    help = "Number of examples, sampled with the seed."
    return option(default, help, low=1, most=MOST_EXAMPLES, metavar="N", place="top", about=about)


def seed(about: str) -> Any:
    return option(0, "Random seed.", low=0, most=MOST_SEED, metavar="N", about=about)


def split() -> Any:
    return option(None, "Split of the data set.", metavar="S", about="", placeholder="default")


def dtype() -> Any:
    return option("float32", "Precision: float32, bfloat16, ...", metavar="D")


def params() -> Any:
    return dataclasses.field(default_factory=dict)


@dataclass(frozen=True)
class Option:
    """A field of a plan as the faces of the experiment take it. `default`: `MISSING` where it has to be given."""

    field: dataclasses.Field[Any]
    hint: Any

    @property
    def name(self) -> str:
        return self.field.name

    @property
    def default(self) -> Any:
        factory = self.field.default_factory
        return self.field.default if factory is MISSING else factory()

    @property
    def flag(self) -> str:
        return "--" + str(self.field.metadata.get("flag", self.name)).replace("_", "-")

    @property
    def link(self) -> str:
        return str(self.field.metadata.get("link", self.name))

    @property
    def is_list(self) -> bool:
        return typing.get_origin(self.hint) is tuple

    @property
    def is_number_list(self) -> bool:
        return self.is_list and typing.get_args(self.hint)[0] is int

    def choices(self, kind: str) -> tuple[Any, ...]:
        """The choices for a kind of input; none where any value is allowed."""
        by_kind = self.get("by_kind")
        return (by_kind and by_kind(kind)) or self.get("choices") or ()

    def get(self, name: str, default: Any = None) -> Any:
        """An entry of the metadata."""
        return self.field.metadata.get(name, default)


@functools.cache
def options_of(plan: type) -> Mapping[str, Option]:
    """The options of a plan, or of another dataclass, by their names."""
    hints = typing.get_type_hints(plan)
    return {field.name: Option(field, hints[field.name]) for field in dataclasses.fields(plan)}


@functools.cache
def page_options(plan: type) -> Mapping[str, Option]:
    """The options in the order of the page's controls: in it a link is read, too. Without `dtype` and `params`."""
    hidden = ("dtype", "params")
    drawn = [one for one in options_of(plan).values() if one.name not in hidden and one.get("page", True)]
    first = ("models", "dataset", "methods")

    def place(one: Option) -> int:
        if one.name in first:
            return first.index(one.name)
        return 3 + ("lead", "top", "line", "more").index(one.get("place", "more"))

    def within(one: Option) -> int:
        """Behind the button: what takes a whole row, the split and the seed, the rest, then lists as texts."""
        if one.get("place", "more") != "more":
            return 0
        if one.get("parse"):
            return 4
        return 1 if one.name == "split" else 2 if one.name == "seed" else 0 if is_wide(one) else 3

    return {one.name: one for one in sorted(drawn, key=lambda one: (place(one), within(one)))}


def is_wide(one: Option) -> bool:
    """Whether its control takes a whole row."""
    return one.hint is bool or one.is_list


def plan_from(spec: Spec, plan: type, job: str) -> Any:
    """The plan of a job's specification. Errors: a field that is missing, unknown or of another shape."""
    known = options_of(plan)
    needed = [name for name, one in known.items() if one.default is MISSING]
    of = f"of {'an' if job[0] in 'aeiou' else 'a'} {job} job"
    if spec.keys() - known.keys() or set(needed) - spec.keys():
        more = ", ".join(sorted(known.keys() - set(needed)))
        must = f"{', '.join(needed[:-1])} and {needed[-1]}"
        raise UsageError(f"spec {of}: must have {must}, and may have {more}, got {excerpt(sorted(spec))}.")
    for name in spec:
        if known[name].is_list and not isinstance(spec[name], list):
            raise not_allowed(f"{name} {of}", "a list", spec[name])
        if typing.get_origin(known[name].hint) is Mapping and not isinstance(spec[name], dict):
            raise not_allowed(f"{name} {of}", "names with their values", spec[name])
    if not isinstance(spec["dataset"], str):
        raise not_allowed(f"dataset {of}", "a data set's name, a path or hub:owner/name", spec["dataset"])
    return plan(**{name: tuple(value) if known[name].is_list else value for name, value in spec.items()})
