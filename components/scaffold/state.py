"""What the Scaffold page shows, as plain values: read from the link and written back to it."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from components.links import Query, last_values, read_record, whole_number, write_changed, write_record
from components.scaffold.page_texts import MEASURES
from engine.errors import ExegesisError, not_allowed, unknown
from engine.params import from_mapping, option
from engine.scaffold.plan import SETTINGS, Recipe, ScaffoldPlan
from engine.scaffold.presets import OPENING_PLANS

VIEW = "look."
"""Prefix of the keys of the view's controls."""
MOST_SIZE = 9_999_999
SECTIONS: Mapping[str, str] = {
    "heads": "Heads",
    "maps": "One example",
    "plausibility": "Plausibility",
    "protocols": "Trivial protocols",
    "normalisations": "Normalisations",
}
"""The sections below the tables."""
SCALES: Mapping[str, str] = {"shared": "One scale", "own": "Each its own"}
"""Of the colors of maps side by side."""


def _positive(default: int) -> Any:
    return option(default, low=1, high=MOST_SIZE, allowed="a whole number of at least 1")


@dataclass(frozen=True)
class ScaffoldView:
    """How finished students are displayed.

    `size`: the train size of the curves and of what is below the tables, 0 for the largest. `curve`: the setting of the
    curves, empty for the learned one. `measure`: one of `MEASURES`.

    Below the tables: the `section`; the test `example` of the maps, from 1, and the `scale` of their colors; the data
    set whose `marks` explanations are judged by, empty for the plan's own, and the number of `examples`.
    """

    curve: str = option("", choices=SETTINGS)
    size: int = option(0, high=MOST_SIZE, allowed="a train size of the plan", fallback="The largest is shown.")
    measure: str = option("validation", choices=tuple(MEASURES))
    section: str = option("heads", choices=tuple(SECTIONS))
    example: int = _positive(1)
    scale: str = option("shared", choices=tuple(SCALES))
    marks: str = ""
    examples: int = _positive(50)


DEFAULT_VIEW = ScaffoldView()
GUIDE = "guide"
"""The parameter of a link that opens the form to train an explainer."""
PREFIX = "recipe."
"""Prefix of the names of a recipe's fields, in a link and in keys."""
DEFAULT_RECIPE = dataclasses.asdict(Recipe())


@dataclass(frozen=True, kw_only=True)
class ScaffoldState:
    """The fields of a plan. `sizes`, `seeds`: whole numbers between commas. `base`, `split`: empty for the default.

    `recipe`: what differs from the defaults, as texts.
    """

    kind: str
    teacher: str
    data: str
    settings: tuple[str, ...]
    sizes: str
    seeds: str
    base: str = ""
    split: str = ""
    recipe: dict[str, str] = field(default_factory=dict)
    view: ScaffoldView = field(default_factory=ScaffoldView)


def opening_state(kind: str) -> ScaffoldState:
    """The state that the page opens with."""
    return state_of(OPENING_PLANS[kind], kind)


def read_state(kind: str, query: Query) -> tuple[ScaffoldState, list[str]]:
    """The state that a link asks for, and a sentence for everything in it that is not known."""
    wrong: list[str] = []
    last, start = last_values(query), opening_state(kind)
    state = ScaffoldState(
        kind=kind,
        teacher=last.get("model") or start.teacher,
        data=last.get("data") or start.data,
        settings=_settings(query.get("setting", []), start.settings, wrong),
        sizes=last.get("sizes", start.sizes),
        seeds=last.get("seeds", start.seeds),
        base=last.get("base", start.base),
        split=last.get("split", start.split),
        recipe=_recipe(last, start.recipe, wrong),
        view=read_record(DEFAULT_VIEW, query, wrong),
    )
    return state, wrong


def write_state(state: ScaffoldState) -> Query:
    """The link that reopens the state: only what differs from the opening state, and always the kind."""
    start = opening_state(state.kind)
    query: Query = {"input": [state.kind]}
    names = {"model": "teacher", "data": "data", "sizes": "sizes", "seeds": "seeds", "base": "base", "split": "split"}
    query |= write_changed((name, getattr(state, attr), getattr(start, attr)) for name, attr in names.items())
    query |= {} if state.settings == start.settings else {"setting": list(state.settings) or [""]}
    recipe, default = ({**DEFAULT_RECIPE, **one.recipe} for one in (state, start))
    query |= write_changed((f"{PREFIX}{name}", str(recipe[name]), str(default[name])) for name in recipe)
    return query | write_record(state.view, DEFAULT_VIEW)


def plan_of(state: ScaffoldState) -> ScaffoldPlan:
    """The plan, the same as that of `exegesis scaffold`. Errors: numbers and values not allowed."""
    return ScaffoldPlan(
        teacher=state.teacher,
        dataset=state.data,
        settings=state.settings,
        train_sizes=parse_numbers("train_sizes", state.sizes, 1),
        seeds=parse_numbers("seeds", state.seeds, 0),
        base=state.base or None,
        split=state.split or None,
        recipe=from_mapping(Recipe, state.recipe, "recipe"),
    )


def state_of(plan: ScaffoldPlan, kind: str = "") -> ScaffoldState:
    """The state that shows a plan. `kind`: spares reading the teacher's files."""
    return ScaffoldState(
        kind=kind or plan.kind,
        teacher=plan.teacher,
        data=plan.dataset,
        settings=plan.settings,
        sizes=",".join(map(str, plan.train_sizes)),
        seeds=",".join(map(str, plan.seeds)),
        base=plan.base or "",
        split=plan.split or "",
        recipe=changed_recipe(dataclasses.asdict(plan.recipe)),
    )


def guide_link(kind: str, teacher: str) -> Query:
    """The link that opens the form to train an explainer for a model."""
    return write_state(dataclasses.replace(opening_state(kind), teacher=teacher)) | {GUIDE: ["1"]}


def changed_recipe(values: Mapping[str, object]) -> dict[str, str]:
    """Those values of a recipe that differ from its defaults, as texts. Errors: what is not allowed."""
    recipe = dataclasses.asdict(from_mapping(Recipe, values, "recipe"))
    return {name: str(value) for name, value in recipe.items() if value != DEFAULT_RECIPE[name]}


def parse_numbers(name: str, given: str, low: int) -> tuple[int, ...]:
    """Whole numbers between commas. Errors say what is allowed."""
    parts = [whole_number(part.strip(), MOST_SIZE) for part in given.split(",")]
    numbers = tuple(part for part in parts if part is not None and part >= low)
    if len(numbers) < len(parts) or len(set(numbers)) < len(numbers):
        raise not_allowed(name, f"different whole numbers of at least {low} between commas", given)
    return numbers


def _settings(given: Sequence[str], start: tuple[str, ...], wrong: list[str]) -> tuple[str, ...]:
    wrong += [str(unknown("setting", name[:40], SETTINGS)) for name in given if name and name not in SETTINGS]
    return tuple(name for name in SETTINGS if name in given) if given else start


def _recipe(last: Mapping[str, str], start: Mapping[str, str], wrong: list[str]) -> dict[str, str]:
    """Those of the start, overridden by the link's; a value that is not allowed is reported and left as it was."""
    recipe = {**DEFAULT_RECIPE, **start}
    for name, value in last.items():
        if not name.startswith(PREFIX):
            continue
        try:
            from_mapping(Recipe, {name.removeprefix(PREFIX): value}, "recipe")
        except ExegesisError as error:
            wrong.append(f"{error} It is left as it was.")
            continue
        recipe[name.removeprefix(PREFIX)] = value
    return changed_recipe(recipe)
