"""What the states of all pages with maps hold alike, as plain values: read from the link and written back to it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from components.browse.listing import DEFAULT_LISTING, Listing, read_listing, write_listing
from components.inputs.link import Query
from components.link_choice import choice
from components.question_words import MEASURES, QUESTIONS
from components.request_link import (
    Params,
    read_methods,
    read_opened,
    read_params,
    read_pins,
    read_seed,
    write_methods,
    write_places,
    write_unusual,
)
from engine.registry import Explainer


@dataclass(frozen=True)
class Offered:
    """What a page lets one choose from.

    `start`: the methods that it begins with; `sections`: what is open only when asked for; `operators`: how parts are
    removed, the usual one first; `parts`: what is pinned, in the plural.
    """

    start: tuple[str, ...]
    sections: tuple[str, ...]
    operators: tuple[str, ...]
    parts: str


@dataclass(frozen=True, kw_only=True)
class PageState:
    """`pins`: numbers of the selected parts, rising from 0. `params`: what was changed.

    `opened`: which of the page's sections are open; `question`: which one is asked; `removal` and `measure`: by what
    it is answered.
    """

    methods: tuple[str, ...]
    target: str | None = None
    seed: int = 0
    pins: tuple[int, ...] = ()
    browse: Listing = DEFAULT_LISTING
    opened: tuple[str, ...] = ()
    question: str = QUESTIONS[0]
    removal: str
    measure: str = MEASURES[0]
    params: Params = field(default_factory=dict)


def read_shared(
    query: Query, last: Mapping[str, str], methods: Mapping[str, Explainer], offered: Offered, said: list[str]
) -> dict[str, Any]:
    """The fields of `PageState` that a link asks for; a sentence is added to `said` for what is not known."""
    return {
        "methods": read_methods(query.get("method", []), methods, offered.start, said),
        "target": last.get("target"),
        "seed": read_seed(last, said),
        "pins": read_pins(last, offered.parts, said),
        "browse": read_listing(last, said),
        "opened": read_opened(last, offered.sections, said),
        "question": choice("question", last, QUESTIONS, said),
        "removal": choice("removal", last, offered.operators, said),
        "measure": choice("measure", last, MEASURES, said),
        "params": read_params(last, methods, said),
    }


def write_shared(state: PageState, offered: Offered) -> Query:
    """Those fields in a link: only what differs from the usual is written."""
    query = write_methods(state.methods, state.params)
    query |= write_unusual(
        (
            ("target", state.target, None),
            ("seed", state.seed, 0),
            ("pin", write_places(state.pins), ""),
            ("open", write_places(state.opened), ""),
            ("question", state.question, QUESTIONS[0]),
            ("removal", state.removal, offered.operators[0]),
            ("measure", state.measure, MEASURES[0]),
        )
    )
    return query | write_listing(state.browse)
