"""What the links of all pages with maps say alike: methods and their parameters, the seed, pins, what is open."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from components.inputs.link import Query
from components.link_choice import whole
from engine.errors import ExegesisError, unknown
from engine.params import as_plain, from_mapping
from engine.registry import Explainer

Params = dict[str, dict[str, str]]
"""By method, the parameters that differ from its defaults, as texts."""
Known = Mapping[str, Explainer]
MOST_SEED = 2**31 - 1
MOST_PINS = 1024
MOST_PLACE = 999_999
PARAMETER = re.compile(r"(\w+)\.(\w+)")


def differing(method: Explainer, values: Mapping[str, object]) -> dict[str, str]:
    """The parameters that differ from the method's defaults, as texts."""
    chosen = as_plain(from_mapping(method.params, values, method.id))
    defaults = as_plain(method.params())
    return {name: str(value) for name, value in chosen.items() if value != defaults[name]}


def last_values(query: Mapping[str, Sequence[str]]) -> dict[str, str]:
    """What counts of names that a link may say more than once."""
    return {name: values[-1] for name, values in query.items() if values}


def read_methods(given: Sequence[str], known: Known, usual: Sequence[str], said: list[str]) -> tuple[str, ...]:
    """The methods that a link names, else the usual ones; a sentence is added to `said` for each unknown one."""
    if list(given) == ["none"]:
        return ()
    said += [str(unknown("method", name[:40], known)) for name in given if name not in known]
    return tuple(dict.fromkeys(name for name in given or usual if name in known))


def read_params(last: Mapping[str, str], known: Known, said: list[str]) -> Params:
    """The parameters that a link sets, as `method.name`; what is not allowed is said and left at its default."""
    given: Params = {}
    for name, value in last.items():
        match = PARAMETER.fullmatch(name)
        if match and match[1] in known:
            given.setdefault(match[1], {})[match[2]] = value
    return {method: _checked(known[method], values, said) for method, values in given.items()}


def read_seed(last: Mapping[str, str], said: list[str]) -> int:
    """The seed that a link names, else 0."""
    given = last.get("seed", "0")
    seed = whole(given, MOST_SEED)
    if seed is not None:
        return seed
    said.append(f"seed: must be a whole number from 0 to {MOST_SEED}, got {given[:40]!r}. 0 is used.")
    return 0


def read_pins(last: Mapping[str, str], of: str, said: list[str]) -> tuple[int, ...]:
    """The places that a link pins, rising. `of`: what is pinned, in the plural."""
    given = last.get("pin", "")
    parts = [whole(part, MOST_PLACE) for part in given.split(",")] if given else []
    places = {part for part in parts if part is not None}
    if len(parts) <= MOST_PINS and None not in parts:
        return tuple(sorted(places))
    said.append(f"pin: must be places of {of} such as 3,4, got {given[:40]!r}. Nothing is pinned.")
    return ()


def read_opened(last: Mapping[str, str], sections: Sequence[str], said: list[str]) -> tuple[str, ...]:
    """The sections that a link opens, in their own order."""
    given = last["open"].split(",") if last.get("open") else []
    said += [str(unknown("open", name[:40], sections)) for name in given if name not in sections]
    return tuple(name for name in sections if name in given)


def write_unusual(values: Iterable[tuple[str, object, object]]) -> Query:
    """Names with their values, where a value differs from the usual one that follows it."""
    return {name: [str(value)] for name, value, usual in values if value != usual}


def write_methods(methods: Sequence[str], params: Params) -> Query:
    """The methods in their order and the parameters that differ."""
    query: Query = {"method": list(methods) or ["none"]}
    for method in methods:
        query |= {f"{method}.{name}": [value] for name, value in params.get(method, {}).items()}
    return query


def write_places(places: Iterable[int | str]) -> str:
    """Pins or names in one value."""
    return ",".join(map(str, places))


def _checked(method: Explainer, values: Mapping[str, str], said: list[str]) -> dict[str, str]:
    good: dict[str, str] = {}
    for name, value in values.items():
        try:
            good |= differing(method, {name: value})
        except ExegesisError as error:
            said.append(f"{error} The default is used.")
    return good
