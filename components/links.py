"""Reading and writing of links: option records, methods with parameters, pins, open sections, texts or their hashes.

A record is a frozen dataclass whose fields are options (`engine.experiments.options`). The declaration of a field also
defines its form in the link; `read_record` and `write_record` are the only functions that need it.

Every reader takes a list `said`, to which it appends a sentence for each value that it rejects. If a link repeats the
name of a single value, the last one counts (`last_values`).
"""

from __future__ import annotations

import hashlib
import json
import re
import typing
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import is_dataclass, replace
from difflib import get_close_matches
from functools import partial
from typing import Any, TypeVar

from engine.errors import ExegesisError, not_allowed, unknown
from engine.experiments.options import Option, options_of
from engine.params import as_plain, from_mapping, option
from engine.registry import KINDS, Explainer, all_explainers
from engine.request import Example
from engine.store import load_text, store_text

Query = dict[str, list[str]]
"""Query parameters of an address: all values, by name."""
Link = Mapping[str, Sequence[str]]
"""A read-only `Query`."""
Params = dict[str, dict[str, str]]
"""Parameters that differ from their defaults, as strings, by method."""
Methods = Mapping[str, Explainer]
Record = TypeVar("Record")
SWITCH = ("off", "on")
"""Spelling of false and true in a link."""
MOST_SEED = 2**31 - 1
MOST_PINS = 1024
MOST_PLACE = 999_999
PARAMETER = re.compile(r"(\w+)\.(\w+)")

LONGEST_IN_LINK = 1500
DIGEST_CHARACTERS = 8


def read_record(
    start: Record, query: Link, said: list[str], kind: str = "", names: Iterable[str] | None = None
) -> Record:
    """Return `start` with the values that a link gives. `kind`: the kind of input of the page.

    `names`: the fields to read, in this order; all by default. A field may itself be a record.
    """
    record: type = type(start)
    options, values = options_of(record), dict[str, Any]()
    for name in options if names is None else names:
        usual = getattr(start, name)
        if is_dataclass(usual) and not options[name].get("read"):
            values[name] = read_record(usual, query, said, kind)
        else:
            values[name] = read_option(options[name], usual, query, said, kind)
    return replace(start, **values)  # type: ignore[type-var]


def write_record(record: Any, start: Any = None, names: Iterable[str] | None = None) -> Query:
    """Return the link of a record: only the values that differ from `start`, or without it from the defaults."""
    kind: type = type(record)
    options, query = options_of(kind), Query()
    for name in options if names is None else names:
        now, usual = getattr(record, name), options[name].default if start is None else getattr(start, name)
        if is_dataclass(now) and not options[name].get("write"):
            query |= write_record(now, usual)
        elif now != usual:
            query[options[name].link] = write_option(options[name], now)
    return query


def link_fields(record: Any) -> set[str]:
    """Return the names of a record's fields in a link, including those of nested records."""
    kind: type = type(record)
    inner = [value for value in vars(record).values() if is_dataclass(value)]
    return {one.link for one in options_of(kind).values()}.union(*map(link_fields, inner))


def unknown_fields(link: Link, record: Any, more: Iterable[str] = ()) -> dict[str, str]:
    """Return the names in a link that neither the record nor `more` has, each with the most similar known name, or "".

    Parameters of methods (`method.name`) are left out, since errors in them are reported where they are read.
    """
    methods = {id for kind in KINDS for id in all_explainers(kind)}
    known = link_fields(record).union(more, ALWAYS_KNOWN)
    strange = [name for name in link if name not in known and name.partition(".")[0] not in methods]
    return {name: next(iter(get_close_matches(name, known, 1, NEAR)), "") for name in strange}


NEAR = 0.7
"""Minimum similarity of a name to the one that was meant, just reached by dataset and data."""
ALWAYS_KNOWN = ("input", "method", "embed", "embed_options")
"""Names that every page accepts: the kind of input, the methods, and Streamlit's own."""


def read_option(one: Option, usual: Any, query: Link, said: list[str], kind: str = "") -> Any:
    """Return the value of an option in a link, or the usual one if it is missing or not allowed."""
    given, known, types = query.get(one.link, []), one.choices(kind), typing.get_args(one.hint) or (one.hint,)
    if read := one.get("read"):
        return read(given, said)
    if one.is_list:
        return _read_list(one, usual, known, given, said)
    if not given:
        return usual
    text = given[-1]
    if one.hint is bool:
        return read_choice(one.link, {one.link: text}, SWITCH if not usual else SWITCH[::-1], said) == SWITCH[1]
    if int in types or float in types:
        return _read_number(one, int if int in types else float, usual, known, text, said)
    if known and (text or one.default in known):
        said += [] if text in known else [str(unknown(one.link, text[:40], known))]
        return text if text in known else usual
    if text and one.get("high") is not None and whole_number(text, one.get("high")) is None:
        said.append(str(not_allowed(one.link, one.get("allowed"), text[:40], one.get("fallback"))))
        return usual
    return text or usual


def write_option(one: Option, value: Any) -> list[str]:
    """Return the values of an option for a link; a single empty string stands for an empty list."""
    if write := one.get("write"):
        return [write(value)]
    if isinstance(value, tuple):
        return list(value) or [""]
    return [SWITCH[value] if isinstance(value, bool) else "" if value is None else str(value)]


def read_choice(name: str, last: Mapping[str, str], known: Sequence[str], said: list[str]) -> str:
    """Return a value of a link that must be one of `known`, or the first of these if it is missing or not allowed."""
    given = last.get(name, known[0])
    if given in known:
        return given
    said.append(str(unknown(name, given[:40], known)))
    return known[0]


def whole_number(given: str, most: int) -> int | None:
    """Return the integer from 0 to `most` with these digits, or None if it is larger or not all are digits."""
    digits = given.lstrip("0") or given[:1]
    # Python converts at most 4,300 digits.
    fits = digits.isascii() and digits.isdigit() and len(digits) <= len(str(most)) and int(digits) <= most
    return int(digits) if fits else None


def non_default_params(method: Explainer, values: Mapping[str, object]) -> dict[str, str]:
    """Return the parameters that differ from the method's defaults, as strings."""
    chosen = as_plain(from_mapping(method.params, values, method.id))
    defaults = as_plain(method.params())
    return {name: str(value) for name, value in chosen.items() if value != defaults[name]}


def last_values(query: Mapping[str, Sequence[str]]) -> dict[str, str]:
    """Return the last value of each name, since a link may repeat a name."""
    return {name: values[-1] for name, values in query.items() if values}


def read_methods(given: Sequence[str], known: Methods, usual: Sequence[str], said: list[str]) -> tuple[str, ...]:
    """Return the known methods that a link names, the usual ones if it names none, or no method for "none"."""
    if list(given) == ["none"]:
        return ()
    said += [str(unknown("method", name[:40], known)) for name in given if name not in known]
    return tuple(dict.fromkeys(name for name in given or usual if name in known))


def read_params(last: Mapping[str, str], known: Methods, said: list[str]) -> Params:
    """Return the parameters that a link sets, as `method.name`. A parameter that is not allowed keeps its default."""
    given: Params = {}
    for name, value in last.items():
        match = PARAMETER.fullmatch(name)
        if match and match[1] in known:
            given.setdefault(match[1], {})[match[2]] = value
    return {method: _valid_params(known[method], values, said) for method, values in given.items()}


def target_option() -> Any:
    """Option for the explained class, None for the predicted one. An empty string in a link is a class name."""
    return option(None, exact=True, read=lambda given, said: given[-1] if given else None)


def seed_option() -> Any:
    """Option for the seed."""
    return option(0, high=MOST_SEED)


def pins_option(parts: str) -> Any:
    """Option for the pinned positions, in ascending order. `parts`: plural noun for what is pinned."""
    return option((), link="pin", read=partial(_read_pins, parts), write=join_values)


def opened_option(*sections: str, default: tuple[str, ...] = ()) -> Any:
    """Option for the open sections of a page, in the page's order."""
    return option(
        default, link="open", sections=sections, read=partial(_read_opened, sections, default), write=join_values
    )


def write_changed(values: Iterable[tuple[str, object, object]]) -> Query:
    """Return a link of the values that differ from their defaults. `values`: (name, value, default) triples."""
    return {name: [str(value)] for name, value, default in values if value != default}


def write_methods(methods: Sequence[str], params: Params) -> Query:
    """Return a link of the methods, in their order, and their changed parameters."""
    query: Query = {"method": list(methods) or ["none"]}
    for method in methods:
        query |= {f"{method}.{name}": [value] for name, value in params.get(method, {}).items()}
    return query


def join_values(values: Iterable[int | str]) -> str:
    """Join pins or names into one value of a link."""
    return ",".join(map(str, values))


def _read_list(
    one: Option, usual: tuple[str, ...], known: Sequence[str], given: Sequence[str], said: list[str]
) -> tuple[str, ...]:
    if not known:
        return tuple(dict.fromkeys(given)) or usual
    exact = bool(one.get("exact"))
    said += [str(unknown(one.link, name[:40], known)) for name in given if name not in known and (name or exact)]
    if not given:
        return usual
    return tuple(dict.fromkeys(name for name in (given if exact else known) if name in known and name in given))


def _read_number(one: Option, kind: type, usual: Any, known: Sequence[Any], text: str, said: list[str]) -> Any:
    number: float | int | None
    if known:
        allowed, number = f"one of {', '.join(map(str, known))}", {str(own): own for own in known}.get(text)
    else:
        low, high = one.get("low") or 0, one.get("most") or one.get("high")
        allowed = one.get("allowed") or f"a {'whole ' if kind is int else ''}number from {low} to {high}"
        number = whole_number(text, high) if kind is int else _decimal_number(text, one.get("digits"))
        number = number if number is not None and low <= number <= high else None
    if number is not None:
        return number
    said.append(str(not_allowed(one.link, allowed, text[:40], one.get("fallback", "{} is used.").format(usual))))
    return usual


def _decimal_number(text: str, digits: int | None) -> float | None:
    try:
        return float(text) if digits is None else round(float(text), digits)
    except (ValueError, OverflowError):
        return None


def _read_pins(parts: str, given: Sequence[str], said: list[str]) -> tuple[int, ...]:
    texts = given[-1].split(",") if given and given[-1] else []
    numbers = [whole_number(text, MOST_PLACE) for text in texts]
    if len(numbers) <= MOST_PINS and None not in numbers:
        return tuple(sorted({number for number in numbers if number is not None}))
    said.append(str(not_allowed("pin", f"places of {parts} such as 3,4", given[-1][:40], "Nothing is pinned.")))
    return ()


def _read_opened(
    sections: Sequence[str], default: tuple[str, ...], given: Sequence[str], said: list[str]
) -> tuple[str, ...]:
    if not given:
        return default
    names = given[-1].split(",") if given[-1] else []
    said += [str(unknown("open", name[:40], sections)) for name in names if name not in sections]
    return tuple(name for name in sections if name in names)


def _valid_params(method: Explainer, values: Mapping[str, str], said: list[str]) -> dict[str, str]:
    valid: dict[str, str] = {}
    for name, value in values.items():
        try:
            valid |= non_default_params(method, {name: value})
        except ExegesisError as error:
            said.append(f"{error} The default is used.")
    return valid


def write_text(name: str, text: str) -> Query:
    """Return the link of a text: the text itself, or the hash under which this machine stores a long one."""
    if len(text) <= LONGEST_IN_LINK:
        return {name: [text]}
    return {f"{name}_sha": [store_text(text)]}


def read_text(last: Mapping[str, str], name: str, notes: list[str]) -> str | None:
    """Return the text of that name in a link, or None if the link has none.

    If this machine does not have the text of a hash, the result is empty and a note is added.
    """
    sha = last.get(f"{name}_sha")
    if sha is None:
        return last.get(name)
    text = load_text(sha)
    if text is None:
        notes.append(
            f"{name}: the link refers to a long text by its hash, which this machine does not have. Paste it again."
        )
    return text or ""


def text_digest(example: Example) -> str:
    """Return a few hex digits that identify an example of a file even after rows were inserted before it."""
    content = json.dumps([example.text, example.text_pair])
    return hashlib.sha256(content.encode()).hexdigest()[:DIGEST_CHARACTERS]
