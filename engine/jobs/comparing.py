"""The job kind `compare`: the maps of several models and methods on the same examples of a data set.

What it leaves in the cache is what `engine.comparison.search.disputed` then reads without running a model.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from engine.errors import UsageError, not_allowed, shown
from engine.jobs import explaining
from engine.jobs.kinds import Spec, Unit, job_kind

if TYPE_CHECKING:
    from engine.comparison.pairs import Pair
    from engine.comparison.search import Search

_NEEDED = {"dataset", "pairs"}
_KNOWN = _NEEDED | {"kind", "split", "examples", "seed", "target"}


def _title(spec: Spec) -> str:
    return f"Compare {', '.join(map(str, spec.get('pairs', [])))} on {spec.get('dataset')}"


def search_of(spec: Spec) -> Search:
    """The search that a specification names. Errors: a field that is missing, unknown or of another shape."""
    from engine.comparison.search import read_search

    if spec.keys() - _KNOWN or _NEEDED - spec.keys():
        raise UsageError(
            "spec of a compare job: must have dataset and pairs, and may have kind, split, examples, seed and target, "
            f"got {shown(sorted(spec))}."
        )
    if not isinstance(spec["pairs"], list) or not all(isinstance(code, str) for code in spec["pairs"]):
        raise not_allowed("pairs of a compare job", "a list of method@model", spec["pairs"])
    for name in ("dataset", "split", "target"):
        if not isinstance(spec.get(name, ""), str):
            raise not_allowed(f"{name} of a compare job", "a text", spec[name])
    if type(spec.get("seed", 0)) is not int or spec.get("seed", 0) < 0:
        raise not_allowed("seed of a compare job", "a whole number of at least 0", spec["seed"])
    return read_search(dict(spec))


@job_kind("compare", title=_title, check=search_of)
def plan(spec: Spec) -> Iterator[Unit]:
    """`dataset`: a name, a path or `hub:owner/name`, `pairs`: [method@model], `kind`?: text or image, `split`?,
    `examples`?, `seed`?, `target`?. A unit a map, pair by pair.
    """
    from engine.comparison.search import sample

    search = search_of(spec)
    source, indices = sample(search)
    examples = [source.read(index).input.as_plain() for index in indices] if search.kind == "text" else [
        {"dataset": search.dataset, "index": index, **({"split": search.split} if search.split else {})}
        for index in indices
    ]  # fmt: skip
    for pair in search.pairs:
        yield from explaining.plan(_of_pair(search, pair, examples))


def _of_pair(search: Search, pair: Pair, examples: list[dict[str, Any]]) -> dict[str, Any]:
    """What an explain job would be asked for."""
    spec: dict[str, Any] = {"model": pair.model, "methods": [pair.method], "examples": examples, "seed": search.seed}
    spec |= {"params": {pair.method: dict(pair.params)}} if pair.params else {}
    return spec | ({} if search.target is None else {"target": search.target})
