"""Links of pages: choices, numbers, methods with their parameters, pins and open sections.

Every reader takes the last value of each name (`last_values`) and a list `said`, to which it adds a sentence for each
value that it does not accept.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from engine.errors import ExegesisError, unknown
from engine.params import as_plain, from_mapping
from engine.registry import Explainer

Query = dict[str, list[str]]
"""The parameters of an address: by name, all values."""
Params = dict[str, dict[str, str]]
"""By method, the parameters that differ from its defaults, as texts."""
Methods = Mapping[str, Explainer]
MOST_SEED = 2**31 - 1
MOST_PINS = 1024
MOST_PLACE = 999_999
PARAMETER = re.compile(r"(\w+)\.(\w+)")


def read_choice(name: str, last: Mapping[str, str], known: Sequence[str], said: list[str]) -> str:
    """The value of a link that must be one of `known`; the first of them where it is missing or another."""
    given = last.get(name, known[0])
    if given in known:
        return given
    said.append(str(unknown(name, given[:40], known)))
    return known[0]


def whole_number(given: str, most: int) -> int | None:
    """The number from 0 to `most` in these digits; None for a larger one, or where they are no digits."""
    digits = given.lstrip("0") or given[:1]
    # Python reads no more than 4,300 digits.
    fits = digits.isascii() and digits.isdigit() and len(digits) <= len(str(most)) and int(digits) <= most
    return int(digits) if fits else None


def non_default_params(method: Explainer, values: Mapping[str, object]) -> dict[str, str]:
    """The parameters that differ from the method's defaults, as texts."""
    chosen = as_plain(from_mapping(method.params, values, method.id))
    defaults = as_plain(method.params())
    return {name: str(value) for name, value in chosen.items() if value != defaults[name]}


def last_values(query: Mapping[str, Sequence[str]]) -> dict[str, str]:
    """The last value of each name: a link may repeat a name."""
    return {name: values[-1] for name, values in query.items() if values}


def read_methods(given: Sequence[str], known: Methods, usual: Sequence[str], said: list[str]) -> tuple[str, ...]:
    """The methods that a link names, without unknown ones; the usual ones where it names none."""
    if list(given) == ["none"]:
        return ()
    said += [str(unknown("method", name[:40], known)) for name in given if name not in known]
    return tuple(dict.fromkeys(name for name in given or usual if name in known))


def read_params(last: Mapping[str, str], known: Methods, said: list[str]) -> Params:
    """The parameters that a link sets, as `method.name`. One that is not allowed stays at its default."""
    given: Params = {}
    for name, value in last.items():
        match = PARAMETER.fullmatch(name)
        if match and match[1] in known:
            given.setdefault(match[1], {})[match[2]] = value
    return {method: _valid_params(known[method], values, said) for method, values in given.items()}


def read_seed(last: Mapping[str, str], said: list[str]) -> int:
    """The seed of a link, 0 where it has none."""
    given = last.get("seed", "0")
    seed = whole_number(given, MOST_SEED)
    if seed is not None:
        return seed
    said.append(f"seed: must be a whole number from 0 to {MOST_SEED}, got {given[:40]!r}. 0 is used.")
    return 0


def read_pins(last: Mapping[str, str], parts: str, said: list[str]) -> tuple[int, ...]:
    """The pinned places of a link, rising. `parts`: the noun for what is pinned, in the plural."""
    given = last.get("pin", "")
    numbers = [whole_number(number, MOST_PLACE) for number in given.split(",")] if given else []
    places = {number for number in numbers if number is not None}
    if len(numbers) <= MOST_PINS and None not in numbers:
        return tuple(sorted(places))
    said.append(f"pin: must be places of {parts} such as 3,4, got {given[:40]!r}. Nothing is pinned.")
    return ()


def read_opened(last: Mapping[str, str], sections: Sequence[str], said: list[str]) -> tuple[str, ...]:
    """The open sections of a link, in the order of the page."""
    given = last["open"].split(",") if last.get("open") else []
    said += [str(unknown("open", name[:40], sections)) for name in given if name not in sections]
    return tuple(name for name in sections if name in given)


def write_changed(values: Iterable[tuple[str, object, object]]) -> Query:
    """A link of the values that differ from their defaults: (name, value, default) of each."""
    return {name: [str(value)] for name, value, default in values if value != default}


def write_methods(methods: Sequence[str], params: Params) -> Query:
    """A link of the methods in their order and their changed parameters."""
    query: Query = {"method": list(methods) or ["none"]}
    for method in methods:
        query |= {f"{method}.{name}": [value] for name, value in params.get(method, {}).items()}
    return query


def join_values(values: Iterable[int | str]) -> str:
    """Pins or names in one value of a link."""
    return ",".join(map(str, values))


def _valid_params(method: Explainer, values: Mapping[str, str], said: list[str]) -> dict[str, str]:
    valid: dict[str, str] = {}
    for name, value in values.items():
        try:
            valid |= non_default_params(method, {name: value})
        except ExegesisError as error:
            said.append(f"{error} The default is used.")
    return valid
