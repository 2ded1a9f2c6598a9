"""How finished students are looked at, as plain values: which train size, which curves."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields

from components.inputs.link import Query
from components.link_choice import choice, whole
from components.request_link import last_values
from components.scaffold.words import MEASURES
from engine.errors import not_allowed, unknown
from engine.scaffold.plan import SETTINGS

LOOK = "look."
"""Keys of its controls start so."""
MOST_SIZE = 9_999_999
SECTIONS: Mapping[str, str] = {
    "heads": "Heads",
    "maps": "One example",
    "plausibility": "Plausibility",
    "protocols": "Trivial protocols",
    "normalisations": "Normalisations",
}
"""What can be looked at below the tables."""
SCALES: Mapping[str, str] = {"shared": "One scale", "own": "Each its own"}
"""Of the colours of maps beside each other."""


@dataclass(frozen=True)
class Look:
    """`size`: the train size of the curves and of what is below the tables, 0 for the largest. `curve`: of which
    setting the curves are, empty for the learned one. `measure`: one of `MEASURES`.

    Below the tables: which `section`; of which test `example`, from 1, the maps are and on which `scale` their colours;
    against which data set's `marks` explanations are held, empty for the plan's own, on how many `examples`."""

    size: int = 0
    curve: str = ""
    measure: str = "validation"
    section: str = "heads"
    example: int = 1
    scale: str = "shared"
    marks: str = ""
    examples: int = 50


PLAIN_LOOK = Look()


def read_look(query: Query, said: list[str]) -> Look:
    """What a link says of it; a sentence is added to `said` for what is not known."""
    last = last_values(query)
    curve = last.get("curve", "")
    if curve and curve not in SETTINGS:
        said.append(str(unknown("curve", curve[:40], SETTINGS)))
        curve = ""
    return Look(
        _size(last.get("size", "0"), said),
        curve,
        choice("measure", last, tuple(MEASURES), said),
        section=choice("section", last, tuple(SECTIONS), said),
        example=_from_one("example", last, said),
        scale=choice("scale", last, tuple(SCALES), said),
        marks=last.get("marks", ""),
        examples=_from_one("examples", last, said),
    )


def write_look(look: Look) -> Query:
    """Those fields in a link: only what differs from the usual."""
    given = {one.name: getattr(look, one.name) for one in fields(look)}
    return {name: [str(value)] for name, value in given.items() if value != getattr(PLAIN_LOOK, name)}


def _size(given: str, said: list[str]) -> int:
    found = whole(given, MOST_SIZE)
    if found is not None:
        return found
    said.append(str(not_allowed("size", "a train size of the plan", given[:40], "The largest is shown.")))
    return 0


def _from_one(name: str, last: Mapping[str, str], said: list[str]) -> int:
    usual = int(getattr(PLAIN_LOOK, name))
    found = whole(last.get(name, str(usual)), MOST_SIZE)
    if found:
        return found
    said.append(str(not_allowed(name, "a whole number of at least 1", last[name][:40], f"{usual} is used.")))
    return usual
