"""The plan of the experiment `compare`: pairs of model and method, and the examples on which they are compared."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, unquote

from engine.errors import UsageError, excerpt, not_allowed, unknown
from engine.params import Plain, from_mapping
from engine.registry import KINDS, explainer
from engine.request import Input, Request

FEWEST, MOST = 2, 8
"""Limits of the number of pairs that are compared at once."""
SHAPE = "method@model or method,name=value@model, such as occlusion,window=2@reviews-minilm"
CODE = re.compile(r"(\w+)((?:,\w+=[^,@=]*)*)@(.+)", re.DOTALL)
EXAMPLES = 50
NEEDED_FIELDS = {"dataset", "pairs"}
FIELDS = NEEDED_FIELDS | {"kind", "split", "examples", "seed", "target"}


@dataclass(frozen=True)
class ModelMethodPair:
    """A model with a method and its parameters: a column of a comparison.

    `params`: names and values of the parameters that differ from the method's defaults.
    """

    model: str
    method: str
    params: tuple[tuple[str, str], ...] = ()

    @property
    def code(self) -> str:
        """The pair as a string, as in links and commands; `read_pair` parses it."""
        params = "".join(f",{name}={quote(value, safe='')}" for name, value in self.params)
        return f"{self.method}{params}@{self.model}"

    def request(self, example: Input, target: str | None, seed: int, dtype: str = "float32") -> Request:
        """Return the request for this pair's map; without `target`, for the class that the model predicts."""
        params: dict[str, Plain] = dict(self.params)
        return Request(self.model, self.method, example, params, target, seed, dtype)


def read_pair(code: str, kind: str = "text") -> ModelMethodPair:
    """Parse the code of a pair in a link or command. Errors: a malformed code, an unknown method or parameter."""
    match = CODE.fullmatch(code)
    if match is None or not match[3].strip():
        raise not_allowed("column", SHAPE, code)
    params = [part.partition("=") for part in match[2].split(",") if part]
    pair = ModelMethodPair(match[3].strip(), match[1], tuple((name, unquote(value)) for name, _, value in params))
    from_mapping(explainer(pair.method, kind).params, dict(pair.params), pair.method)
    return pair


def check_pairs(pairs: Sequence[ModelMethodPair], fewest: int = FEWEST) -> None:
    """Refuse too few or too many pairs, and duplicates."""
    if not fewest <= len(pairs) <= MOST:
        raise not_allowed("columns", f"{fewest} to {MOST} pairs of model and method", [pair.code for pair in pairs])
    if len(set(pairs)) < len(pairs):
        raise UsageError("columns: lists the same model, method and parameters twice. Remove one.")


def sorted_params(params: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    """Return parameters sorted by name, so that equal pairs compare equal."""
    return tuple(sorted(params.items()))


@dataclass(frozen=True)
class ComparisonPlan:
    """The plan of a comparison: `pairs` are explained on `examples` of the data set, drawn with the seed.

    `target`: label of the class that all pairs explain; None for the class that each model predicts.
    """

    dataset: str
    pairs: tuple[ModelMethodPair, ...]
    kind: str = "text"
    split: str | None = None
    examples: int = EXAMPLES
    seed: int = 0
    target: str | None = None

    def __post_init__(self) -> None:
        check_pairs(self.pairs)
        if self.kind not in KINDS:
            raise unknown("kind", self.kind, KINDS)
        if type(self.examples) is not int or self.examples < 1:
            raise not_allowed("examples", "a whole number of at least 1", self.examples)

    def as_plain(self) -> dict[str, Any]:
        """Return the specification of a compare job."""
        plain: dict[str, Any] = {"dataset": self.dataset, "pairs": [pair.code for pair in self.pairs]}
        plain |= {"kind": self.kind, "examples": self.examples, "seed": self.seed}
        others = {"split": self.split, "target": self.target}
        return plain | {name: value for name, value in others.items() if value is not None}

    def requests(self, example: Input) -> list[Request]:
        """Return the requests for one example, one per map."""
        return [pair.request(example, self.target, self.seed) for pair in self.pairs]


def plan_of(spec: Mapping[str, Any]) -> ComparisonPlan:
    """Return the plan of a job's specification. Errors: a field that is missing, unknown or malformed."""
    if spec.keys() - FIELDS or NEEDED_FIELDS - spec.keys():
        raise UsageError(
            "spec of a compare job: must have dataset and pairs, and may have kind, split, examples, seed and target, "
            f"got {excerpt(sorted(spec))}."
        )
    if not isinstance(spec["pairs"], list) or not all(isinstance(code, str) for code in spec["pairs"]):
        raise not_allowed("pairs of a compare job", "a list of method@model", spec["pairs"])
    for name in ("dataset", "split", "target"):
        if not isinstance(spec.get(name, ""), str):
            raise not_allowed(f"{name} of a compare job", "a text", spec[name])
    if type(spec.get("seed", 0)) is not int or spec.get("seed", 0) < 0:
        raise not_allowed("seed of a compare job", "a whole number of at least 0", spec["seed"])
    kind = spec.get("kind", KINDS[0])
    if kind not in KINDS:
        raise unknown("kind", kind, KINDS)
    return ComparisonPlan(**{**spec, "pairs": tuple(read_pair(code, kind) for code in spec["pairs"])})
