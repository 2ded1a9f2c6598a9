"""What the Scaffold page shows, as plain values: read from the link and written back to it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from components.inputs.link import Query
from components.link_choice import whole
from components.request_link import last_values, write_unusual
from components.scaffold.look import MOST_SIZE, Look, read_look, write_look
from engine.errors import ExegesisError, not_allowed, unknown
from engine.params import from_mapping
from engine.scaffold.opening import OPENING
from engine.scaffold.plan import NONE, SETTINGS, SMAT, Plan, Recipe, recipe_values

EXPLAINER = (NONE, "attention_logits", SMAT)
"""The settings that train an explainer, with what it must be better than."""
PREFIX = "recipe."
"""Before the names of a recipe's fields, in a link and in keys."""
USUAL_RECIPE = recipe_values(Recipe())


@dataclass(frozen=True, kw_only=True)
class ScaffoldState:
    """The fields of a plan. `sizes`, `seeds`: whole numbers between commas. `base`, `split`: empty for the usual.

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
    look: Look = field(default_factory=Look)


def usual(kind: str) -> ScaffoldState:
    """What the page opens with."""
    return of_plan(OPENING[kind], kind)


def read(kind: str, query: Query) -> tuple[ScaffoldState, list[str]]:
    """The state that a link asks for, and a sentence for everything in it that is not known."""
    said: list[str] = []
    last, start = last_values(query), usual(kind)
    state = ScaffoldState(
        kind=kind,
        teacher=last.get("model") or start.teacher,
        data=last.get("data") or start.data,
        settings=_settings(query.get("setting", []), start.settings, said),
        sizes=last.get("sizes", start.sizes),
        seeds=last.get("seeds", start.seeds),
        base=last.get("base", start.base),
        split=last.get("split", start.split),
        recipe=_recipe(last, start.recipe, said),
        look=read_look(query, said),
    )
    return state, said


def write(state: ScaffoldState) -> Query:
    """The link that reopens the state: only what differs from the usual is written, and always the kind."""
    start = usual(state.kind)
    query: Query = {"input": [state.kind]}
    names = {"model": "teacher", "data": "data", "sizes": "sizes", "seeds": "seeds", "base": "base", "split": "split"}
    query |= write_unusual((name, getattr(state, of), getattr(start, of)) for name, of in names.items())
    query |= {} if state.settings == start.settings else {"setting": list(state.settings) or [""]}
    mine, theirs = ({**USUAL_RECIPE, **one.recipe} for one in (state, start))
    query |= write_unusual((f"{PREFIX}{name}", str(mine[name]), str(theirs[name])) for name in mine)
    return query | write_look(state.look)


def plan_of(state: ScaffoldState) -> Plan:
    """What is asked of the engine, the same as `exegesis scaffold` asks. Errors: numbers and values not allowed."""
    return Plan(
        teacher=state.teacher,
        dataset=state.data,
        settings=state.settings,
        train_sizes=numbers("train_sizes", state.sizes, 1),
        seeds=numbers("seeds", state.seeds, 0),
        base=state.base or None,
        split=state.split or None,
        recipe=from_mapping(Recipe, state.recipe, "recipe"),
    )


def of_plan(plan: Plan, kind: str = "") -> ScaffoldState:
    """The state that shows what was taught before. `kind`: spares asking the teacher's files."""
    return ScaffoldState(
        kind=kind or plan.kind,
        teacher=plan.teacher,
        data=plan.dataset,
        settings=plan.settings,
        sizes=written(plan.train_sizes),
        seeds=written(plan.seeds),
        base=plan.base or "",
        split=plan.split or "",
        recipe=differing(recipe_values(plan.recipe)),
    )


def train_link(kind: str, teacher: str, data: str) -> Query:
    """The link with which a page offers to train an explainer for its model: this very form, filled."""
    start = usual(kind)
    state = ScaffoldState(
        kind=kind, teacher=teacher, data=data, settings=EXPLAINER, sizes=start.sizes, seeds=start.seeds,
        recipe=start.recipe,
    )  # fmt: skip
    return write(state)


def differing(values: Mapping[str, object]) -> dict[str, str]:
    """Those values of a recipe that differ from its defaults, as texts. Errors: what is not allowed."""
    chosen = recipe_values(from_mapping(Recipe, values, "recipe"))
    return {name: str(value) for name, value in chosen.items() if value != USUAL_RECIPE[name]}


def numbers(name: str, given: str, low: int) -> tuple[int, ...]:
    """Whole numbers between commas. Errors say what is allowed."""
    parts = [whole(part.strip(), MOST_SIZE) for part in given.split(",")]
    found = tuple(part for part in parts if part is not None and part >= low)
    if len(found) < len(parts) or len(set(found)) < len(found):
        raise not_allowed(name, f"different whole numbers of at least {low} between commas", given)
    return found


def written(values: Sequence[int]) -> str:
    """Numbers between commas."""
    return ",".join(map(str, values))


def _settings(given: Sequence[str], start: tuple[str, ...], said: list[str]) -> tuple[str, ...]:
    said += [str(unknown("setting", name[:40], SETTINGS)) for name in given if name and name not in SETTINGS]
    return tuple(name for name in SETTINGS if name in given) if given else start


def _recipe(last: Mapping[str, str], start: Mapping[str, str], said: list[str]) -> dict[str, str]:
    """Those of the start, and over them what the link says; what is not allowed is said and left as it was."""
    made = {**USUAL_RECIPE, **start}
    for name, value in last.items():
        if not name.startswith(PREFIX):
            continue
        try:
            from_mapping(Recipe, {name.removeprefix(PREFIX): value}, "recipe")
        except ExegesisError as error:
            said.append(f"{error} It is left as it was.")
            continue
        made[name.removeprefix(PREFIX)] = value
    return differing(made)
