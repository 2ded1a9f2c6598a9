"""A model with a method and its parameters: what stands in one column of a comparison, and how a link names it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import quote, unquote

from engine.errors import UsageError, not_allowed
from engine.params import Plain, from_mapping
from engine.registry import explainer
from engine.request import Input, Request

FEWEST, MOST = 2, 8
"""How many pairs are compared at once."""
SHAPE = "method@model or method,name=value@model, such as occlusion,window=2@reviews-minilm"
CODE = re.compile(r"(\w+)((?:,\w+=[^,@=]*)*)@(.+)", re.DOTALL)


@dataclass(frozen=True)
class Pair:
    """`params`: names and values of the parameters that differ from the method's defaults."""

    model: str
    method: str
    params: tuple[tuple[str, str], ...] = ()

    @property
    def code(self) -> str:
        """The pair as one text; `read_pair` reads it."""
        given = "".join(f",{name}={quote(value, safe='')}" for name, value in self.params)
        return f"{self.method}{given}@{self.model}"

    def request(self, example: Input, target: str | None, seed: int, dtype: str = "float32") -> Request:
        """What is asked of the engine for this pair's map. Without `target`: of the model's own predicted class."""
        params: dict[str, Plain] = dict(self.params)
        return Request(self.model, self.method, example, params, target, seed, dtype)


def read_pair(code: str, kind: str = "text") -> Pair:
    """The pair that a link or a command names. Errors: its shape, a method or a parameter that is not known."""
    match = CODE.fullmatch(code)
    if match is None or not match[3].strip():
        raise not_allowed("column", SHAPE, code)
    given = [part.partition("=") for part in match[2].split(",") if part]
    pair = Pair(match[3].strip(), match[1], tuple((name, unquote(value)) for name, _, value in given))
    from_mapping(explainer(pair.method, kind).params, dict(pair.params), pair.method)
    return pair


def check_pairs(pairs: Sequence[Pair]) -> None:
    """Refuses fewer or more pairs than are compared, and the same one twice."""
    if not FEWEST <= len(pairs) <= MOST:
        raise not_allowed("columns", f"{FEWEST} to {MOST} pairs of model and method", [pair.code for pair in pairs])
    if len(set(pairs)) < len(pairs):
        raise UsageError("columns: the same model and method with the same parameters stands there twice. Drop one.")


def plain_params(params: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    """Parameters in the one order in which two pairs are the same."""
    return tuple(sorted(params.items()))
