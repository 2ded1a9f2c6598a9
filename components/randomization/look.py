"""How a randomization is looked at, as plain values: which measure, whose maps of which example at which stage."""

from __future__ import annotations

from dataclasses import dataclass, fields

from components.link_choice import choice, whole
from components.request_link import MOST_PLACE, last_values
from components.text.focus import Query
from engine.errors import not_allowed
from engine.randomization.plan import MODES

LOOK = "look."
"""Keys of its controls start so."""
MEASURES = {
    "spearman": "Rank correlation",
    "spearman_abs": "Rank correlation of sizes",
    "top_k": "Shared top 15 %",
    "ssim": "Structural similarity",
}
SIGNS = {"spearman": "ρ", "spearman_abs": "ρ of sizes", "top_k": "top shared", "ssim": "SSIM"}
"""What stands before the number beside a map."""
ORDERS = {"index": "As in the data set", "most": "Most changed first", "least": "Least changed first"}
SCALES = {"own": "Each its own", "shared": "One a method"}
MOST_STAGE = 9_999
SEVERAL = ("only", "beside")


@dataclass(frozen=True)
class Look:
    """`model`: the one drawn, empty for all. `only`: the methods drawn, none for all. `beside`: other checks, by their
    marks. `lines`: the method of which each model has a line; empty where each method has one.

    The maps: `of` which model, empty for the first; in which mode, its `way`; at which `stage` of it, 0 for all; of
    which `example`, its place in the data set, empty for the first of the `order`, which is `by` a method; by which
    randomization, `draw`, from 1; and on which `scale` their colours are.
    """

    measure: str = "spearman"
    model: str = ""
    only: tuple[str, ...] = ()
    beside: tuple[str, ...] = ()
    lines: str = ""
    of: str = ""
    way: str = MODES[0]
    stage: int = 0
    example: str = ""
    order: str = "index"
    by: str = ""
    draw: int = 1
    scale: str = "own"


PLAIN_LOOK = Look()
NAMES = {"model": "drawn"}
"""In a link, where they differ from those of `Look`."""


def measures_of(kind: str) -> tuple[str, ...]:
    """Those that there are of texts or of pictures."""
    return tuple(one for one in MEASURES if kind == "image" or one != "ssim")


def read_look(kind: str, query: Query, said: list[str]) -> Look:
    """What a link says of it; a sentence is added to `said` for what is not known."""
    last = last_values(query)
    return Look(
        measure=choice("measure", last, measures_of(kind), said),
        model=last.get("drawn", ""),
        **{name: tuple(dict.fromkeys(query.get(name, []))) for name in SEVERAL},
        lines=last.get("lines", ""),
        of=last.get("of", ""),
        way=choice("way", last, MODES, said),
        stage=_number("stage", last.get("stage", "0"), MOST_STAGE, 0, said),
        example=_example(last.get("example", ""), said),
        order=choice("order", last, tuple(ORDERS), said),
        by=last.get("by", ""),
        draw=_number("draw", last.get("draw", "1"), MOST_STAGE, 1, said),
        scale=choice("scale", last, tuple(SCALES), said),
    )


def write_look(look: Look) -> Query:
    """Those fields in a link: only what differs from the usual."""
    given = {one.name: getattr(look, one.name) for one in fields(look) if one.name not in SEVERAL}
    unusual = {name: value for name, value in given.items() if value != getattr(PLAIN_LOOK, name)}
    query = {NAMES.get(name, name): [str(value)] for name, value in unusual.items()}
    return query | {name: list(getattr(look, name)) for name in SEVERAL if getattr(look, name)}


def _number(name: str, given: str, most: int, usual: int, said: list[str]) -> int:
    found = whole(given, most)
    if found is not None and found >= usual:
        return found
    said.append(str(not_allowed(name, f"a whole number from {usual} to {most}", given[:40], f"{usual} is used.")))
    return usual


def _example(given: str, said: list[str]) -> str:
    if not given or whole(given, MOST_PLACE) is not None:
        return given
    said.append(str(not_allowed("example", "a place in the data set", given[:40], "The first one is shown.")))
    return ""
