"""The fields of an experiment's plan. One line declares a field for the command line, the page, the link and the job.

A plan is a frozen dataclass whose fields are created by `option` (see `engine.params`). Optional metadata adapts a
field to the command, the page and the link:

* `flag`, `metavar`: name and placeholder of the command-line option; by default the names of the field and its type.
* `link`: name in links and in errors about single values; by default the field's name.
* `label`, `about`: title and help of the page's control; by default derived from the name, and `help`.
* `place`: where the page draws the control: "top", "line" (below the methods) or "more" (behind a button), the default.
  A control at "lead" is drawn by the page itself, before all others.
  `page=False`: the page has no control for the field.
* `titles`: titles of the choices for display. `by_kind`: a function from the kind of input to its choices.
* `most`: largest number that the page and its link accept.
* `fallback`: message about an invalid value in a link, with {} for the value that is used instead.
* `allowed`: the allowed values of a list, in words.
* `exact`: a list keeps its order and its empty names; a string keeps the spaces around it. `digits`: number of decimals
  in links.
* `read`: a function of the field's strings in a link and of a list to which it adds messages; returns the value.
  `write`: a function of the value; returns its string in a link.
* `parse`: for a list that the page's control and the link hold as one comma-separated string: parses it, or raises.
* `first`: the option comes right after the methods in the command that repeats a plan.
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
else:  # it loads numpy, which is not needed to declare a plan
    input_kinds = LazyModule("engine.input_kinds")

RANDOM = "random"
"""The baseline method that is added to all others."""
MOST_EXAMPLES = 100_000
MOST_SEED = 2**31 - 1
Spec = Mapping[str, Any]


class ExperimentPlan:
    """Base class of all plans. Each declares these fields and its own ones, in any order."""

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
        """The methods, and the random baseline."""
        return tuple(dict.fromkeys((*self.methods, RANDOM)))

    def params_of(self, method: str) -> Mapping[str, Plain]:
        """Return the parameters of a method that are not at their defaults."""
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
    """Return the field of an experiment without explainers: neither the command nor the page asks for methods."""
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
    """A field of a plan, for the command, the page, the link and the job. `default`: `MISSING` if it is required."""

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
        """Return the choices for a kind of input; empty if any value is allowed."""
        by_kind = self.get("by_kind")
        return (by_kind and by_kind(kind)) or self.get("choices") or ()

    def get(self, name: str, default: Any = None) -> Any:
        """Return an entry of the metadata."""
        return self.field.metadata.get(name, default)


@functools.cache
def options_of(plan: type) -> Mapping[str, Option]:
    """Return the options of a plan, or of another dataclass, by name."""
    hints = typing.get_type_hints(plan)
    return {field.name: Option(field, hints[field.name]) for field in dataclasses.fields(plan)}


@functools.cache
def page_options(plan: type) -> Mapping[str, Option]:
    """Return the options in the order of the page's controls, in which links are read too; no `dtype` and `params`."""
    hidden = ("dtype", "params")
    drawn = [one for one in options_of(plan).values() if one.name not in hidden and one.get("page", True)]
    first = ("models", "dataset", "methods")

    def place(one: Option) -> int:
        if one.name in first:
            return first.index(one.name)
        return 3 + ("lead", "top", "line", "more").index(one.get("place", "more"))

    def within(one: Option) -> int:
        """Order behind the button: full-width controls, the split, the seed, the rest, then lists entered as text."""
        if one.get("place", "more") != "more":
            return 0
        if one.get("parse"):
            return 4
        return 1 if one.name == "split" else 2 if one.name == "seed" else 0 if is_wide(one) else 3

    return {one.name: one for one in sorted(drawn, key=lambda one: (place(one), within(one)))}


def is_wide(one: Option) -> bool:
    """Whether the option's control takes a whole row."""
    return one.hint is bool or one.is_list


def plan_from(spec: Spec, plan: type, job: str) -> Any:
    """Return the plan of a job's specification. Errors: a field that is missing, unknown or malformed."""
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
