"""The job kind `compare`: the maps of several models and methods on the same examples of a data set.

What it leaves in the cache is what `engine.comparison.search.disputed` then reads without running a model.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from engine.errors import ExegesisError, UsageError, not_allowed, shown
from engine.experiments import explain_many
from engine.jobs.kinds import Spec, Unit, job_kind, unreadable_key

if TYPE_CHECKING:
    from engine.comparison.pairs import Pair
    from engine.comparison.search import Search
    from engine.data.sources import ExampleSource

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
    `examples`?, `seed`?, `target`?. A unit a map, pair by pair; a row that is no example is a unit that fails.
    """
    from engine.comparison.search import sample

    search = search_of(spec)
    source, indices = sample(search)
    if search.kind == "image":
        split = {"split": search.split} if search.split else {}
        examples: list[dict[str, Any]] = [{"dataset": search.dataset, "index": index, **split} for index in indices]
    else:
        faults = {index: why for index in indices if (why := _fault(source, index)) is not None}
        yield from (_failing(search, source, index, why) for index, why in faults.items())
        examples = [source.read(index).input.as_plain() for index in indices if index not in faults]
    for pair in search.pairs if examples else ():
        yield from explain_many.plan(_of_pair(search, pair, examples))


def _fault(source: ExampleSource, index: int) -> ExegesisError | None:
    """Why a row cannot be explained."""
    try:
        source.read(index).input.check_length()
    except ExegesisError as error:
        return error
    return None


def _failing(search: Search, source: ExampleSource, index: int, why: ExegesisError) -> Unit:
    """One failed unit a row, not one a map: it is the row's fault."""
    key = unreadable_key("compare", {"dataset": search.dataset, "index": index}, why)
    return Unit(key, f"example {index}", lambda: source.read(index).input.check_length(), stores_itself=True)


def _of_pair(search: Search, pair: Pair, examples: list[dict[str, Any]]) -> dict[str, Any]:
    """What an explain job would be asked for."""
    spec: dict[str, Any] = {"model": pair.model, "methods": [pair.method], "examples": examples, "seed": search.seed}
    spec |= {"params": {pair.method: dict(pair.params)}} if pair.params else {}
    return spec | ({} if search.target is None else {"target": search.target})
