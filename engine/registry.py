"""The registry of explanation methods, with their parameters and descriptions."""

from __future__ import annotations

import dataclasses
import functools
import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from cache.codec import plain
from engine import plugins
from engine.errors import ExegesisError, UsageError, unknown
from engine.lazy import LazyModule
from engine.params import NoParams, as_plain, from_mapping

if TYPE_CHECKING:
    from engine.maps import imported as imported_maps
    from engine.task import Attribution, Task
else:  # a circular import: it declares methods of this registry
    imported_maps = LazyModule("engine.maps.imported")


@dataclass(frozen=True)
class Axes:
    """The three choices that define a method (Covert et al., 2021)."""

    removal: str
    behaviour: str
    summary: str


@dataclass(frozen=True)
class Explainer:
    """A registered method for inputs of a kind. `function` maps a batch of examples to one attribution each."""

    id: str
    title: str
    family: str
    function: Callable[[Task, Any], list[Attribution]]
    params: type
    version: int
    kind: str
    differentiable: bool
    signed: bool | Callable[[Any], bool]
    cheap: bool
    axes: Axes
    citation: str
    caution: str
    resolver: Callable[[Any, str], Any] | None = None
    """Resolves parameters whose meaning depends on the model, such as the name of a learned explainer."""
    tuned_on: Callable[[Any], str] | None = None
    """Returns the metric by which its maps are chosen, given its parameters."""
    members: tuple[str, ...] = ()
    """Methods that it calls, whose versions are part of its cache key; empty for an ensemble."""
    package: str = ""
    """Name and version of the package that adds it; empty for a method of the project."""
    digest: str = ""
    """Digest of the file that holds its maps; empty for a method that computes them."""

    @property
    def keyed_version(self) -> int | str:
        """The version in cache keys, with its package or the digest of its file if it has one."""
        source = self.package or self.digest
        return f"{self.version} of {source}" if source else self.version

    def resolve(self, given: Mapping[str, object], model: str) -> Any:
        """Return the parameters from plain values, resolved for the model, as used in cache keys.

        Errors: an invalid parameter, or the method cannot be used on the model.
        """
        params = from_mapping(self.params, given, self.id)
        return params if self.resolver is None else self.resolver(params, model)

    def why_not(self, model: str) -> str:
        """Return the reason why the method cannot be used on a model at its defaults, else "". Loads no model."""
        if self.resolver is None:
            return ""
        try:
            self.resolve({}, model)
        except ExegesisError as error:
            return str(error)
        return ""

    def axes_at(self, params: Mapping[str, object]) -> Axes:
        """Return the three choices at these parameters (defaults filled in)."""
        quantity = params.get("quantity")
        return self.axes if quantity is None else replace(self.axes, behaviour=f"{quantity} of the class")

    def is_signed(self, params: Mapping[str, object]) -> bool:
        """Whether scores are signed (evidence for and against) at these parameters (defaults filled in)."""
        if isinstance(self.signed, bool):
            return self.signed
        return self.signed(from_mapping(self.params, params, self.id))

    def tuned_metric(self, params: Mapping[str, object]) -> str:
        """Return the metric by which its maps are chosen at these parameters, or "" if there is none."""
        return "" if self.tuned_on is None else self.tuned_on(from_mapping(self.params, params, self.id))


TYPICAL_LENGTH = 24
"""Number of units of a typical example, for methods whose cost grows with it."""
EXHAUSTIVE = 2048
A_PASS, WITH_GRADIENTS = 1, 2
KINDS = ("text", "image")
"""The kinds of input that most methods support: those of `engine.input_kinds`."""
TOP_THREE = ("lime", "kernel_shap", "integrated_gradients")
SEVEN = (*TOP_THREE, "gradient", "gradient_x_input", "attention_mean", "attention_rollout")
ENSEMBLES = ("ensemble_all", "ensemble_top3")
"""The ensembles of the thesis."""
ENSEMBLE_MEMBERS = {"ensemble_all": SEVEN, "ensemble_top3": TOP_THREE, "least_complex": TOP_THREE}
"""The members of each ensemble, listed here so that they are known without loading any method."""
TUNED_METHODS = ("bee", "least_complex")
"""The methods whose maps are chosen by a metric."""
IMPORTED_PREFIX = "maps:"
"""Prefix of the ids of imported maps, which are methods too (`engine.maps.imported`)."""
EXPLAINERS: dict[str, dict[str, Explainer]] = defaultdict(dict)
"""The methods by kind of input and by id. A method may support several kinds, with different settings."""


def register(
    id: str,
    *,
    title: str,
    family: str,
    axes: Axes,
    citation: str,
    caution: str,
    params: type = NoParams,
    version: int = 1,
    inputs: tuple[str, ...] = KINDS,
    differentiable: bool = False,
    signed: bool | Callable[[Any], bool] = True,
    cheap: bool = True,
    resolver: Callable[[Any, str], Any] | None = None,
    tuned_on: Callable[[Any], str] | None = None,
    members: tuple[str, ...] = (),
    variants: Mapping[str, Mapping[str, Any]] = MappingProxyType({}),
) -> Callable[[Any], Any]:
    """Register a method for each kind of `inputs`. `version` is raised whenever its numbers change.

    `members`: methods that it calls, whose versions become part of its cache key (an ensemble names none).
    `variants`: arguments that differ for a kind, such as `params`; all others apply to every kind.
    """

    def enter(function: Any) -> Any:
        for kind in inputs:
            if id in EXPLAINERS[kind]:
                raise ValueError(f"explainer {id!r} is registered twice for {kind}")
            plugin = plugins.registering("explainers", id, functools.partial(EXPLAINERS[kind].pop, id, None))
            method = Explainer(
                id=id,
                title=title,
                family=family,
                function=function if plugin is None else _checked(function, plugin, id),
                params=params,
                version=version,
                kind=kind,
                differentiable=differentiable,
                signed=signed,
                cheap=cheap,
                axes=axes,
                citation=citation,
                caution=caution,
                resolver=resolver,
                tuned_on=tuned_on,
                members=members,
                package="" if plugin is None else plugin.source,
            )
            method = replace(method, **variants.get(kind, {}))
            if plugin is not None:
                _check_declaration(method)
            EXPLAINERS[kind][id] = method
        return function

    return enter


def _check_declaration(method: Explainer) -> None:
    """Refuse a plugin's method whose declaration pages and commands cannot use."""
    if method.kind not in KINDS:
        raise unknown("inputs", method.kind, KINDS)
    if not dataclasses.is_dataclass(method.params):
        raise UsageError(f"params of {method.id}: must be a frozen dataclass of options, got {method.params!r}")
    from_mapping(method.params, as_plain(method.params()), method.id)
    for name in ("title", "family", "citation", "caution"):
        if not isinstance(getattr(method, name), str):
            raise UsageError(f"{name} of {method.id}: must be a text, got {type(getattr(method, name)).__name__}")
    for name, kind in (("axes", Axes), ("version", int)):
        if not isinstance(got := getattr(method, name), kind):
            raise UsageError(f"{name} of {method.id}: must be of type {kind.__name__}, got {type(got).__name__}")


def _checked(function: Any, plugin: plugins.Plugin, id: str) -> Any:
    """Wrap a plugin's explainer so that its errors name the plugin and its invalid results are refused."""

    @functools.wraps(function)
    def explain(task: Task, params: Any) -> list[Attribution]:
        with plugins.failures_of(plugin, f"method {id}: failed"):
            attributions = list(function(task, params))
            scores = [np.asarray(one.scores) for one in attributions]
        if len(scores) != len(task.items):
            raise plugin.failure(f"method {id}: wrong result", f"{len(scores)} maps for {len(task.items)} examples")
        for own, item in zip(scores, task.items, strict=True):
            if own.shape != (len(item.encoded),):
                expected = f"one score for each of the {len(item.encoded)} positions"
                raise plugin.failure(f"method {id}: wrong result", f"{expected}, got shape {own.shape}")
            if own.dtype.kind not in "fiu" or not np.isfinite(own).all():
                raise plugin.failure(f"method {id}: wrong result", "scores must be finite numbers")
        for one in attributions:
            if not all(isinstance(note, str) for note in one.notes):
                raise plugin.failure(f"method {id}: wrong result", "notes must be texts")
            with plugins.failures_of(plugin, f"method {id}: wrong result: extras must be plain values"):
                plain(dict(one.extras))
        return attributions

    return explain


def serve(kind: str, ids: Iterable[str], like: str = KINDS[0], **differences: Any) -> None:
    """Register existing methods for another kind of input.

    `like`: a kind that they already support. `differences`: fields that differ for the new kind, such as `params`.
    Errors: a method does not support the kind `like`, or already supports the new one.
    """
    for id in ids:
        method = explainer(id, like)
        if id in EXPLAINERS[kind]:
            raise ValueError(f"explainer {id!r} is registered twice for {kind}")
        EXPLAINERS[kind][id] = replace(method, kind=kind, **differences)


def explainer(id: str, kind: str = "text") -> Explainer:
    """Return the method with that id for a kind of input. Errors: an unknown id, with the known ones."""
    methods = all_explainers(kind)
    if id not in methods:
        if id.startswith(IMPORTED_PREFIX):
            imported_maps.refuse_damaged(id.removeprefix(IMPORTED_PREFIX))
        raise unknown("method" if kind == KINDS[0] else f"method for {kind}s", id, methods)
    return methods[id]


def all_explainers(kind: str = "text") -> dict[str, Explainer]:
    """Return all methods for inputs of that kind, in display order; imported maps last."""
    import engine.explainers  # noqa: F401  (registers the methods; kept out of the import of this module)

    plugins.load("explainers")
    imported = imported_maps.methods(kind)
    return EXPLAINERS[kind] | imported if imported else EXPLAINERS[kind]


def load_plugins() -> None:
    """Run the entry points of all groups of plugins, after the project's own methods are registered."""
    all_explainers()
    for group in plugins.GROUPS:
        plugins.load(group)


def method_order() -> tuple[str, ...]:
    """Return the ids of all methods in one order for all kinds of input, which determines their colors."""
    return tuple(dict.fromkeys(id for kind in [*KINDS, *EXPLAINERS] for id in all_explainers(kind)))


def estimate_rows(method: Explainer, params: Mapping[str, object]) -> int:
    """Estimate the number of model rows for one map; 0 for an ensemble, whose members are counted separately."""
    filled = as_plain(from_mapping(method.params, params, method.id))
    counts = [int(str(filled[name])) for name in ("n_samples", "n_steps", "n_trials", "n_neighbors") if name in filled]
    if counts:
        return math.prod(counts)
    if method.family == "ensemble":
        return 0
    if method.cheap:
        return A_PASS if method.family == "attention" else WITH_GRADIENTS
    return TYPICAL_LENGTH if method.family == "perturbation" and "shapley" not in method.id else EXHAUSTIVE
