"""The state of the Scaffold page as plain values, read from and written to its link."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from components.links import Query, last_values, read_record, whole_number, write_changed, write_record
from engine.errors import ExegesisError, UsageError, unknown
from engine.format import join_names
from engine.params import from_mapping, option
from engine.scaffold.plan import HELD_OUT, NONE, SETTINGS, SMAT, Recipe, ScaffoldPlan
from engine.scaffold.presets import OPENING_PLANS

SETTING_TITLES: Mapping[str, str] = {
    NONE: "No explainer",
    HELD_OUT: "No explainer, more examples",
    "gradient_l2": "Gradient L2 norm",
    "gradient_x_input": "Gradient x input",
    "integrated_gradients": "Integrated gradients",
    "attention_logits": "Attention logits, all layers",
    "attention_logits_last": "Attention logits, last layer",
    SMAT: "SMaT, learned",
}
"""Titles of the settings: what students see."""
MEASURES = {
    "validation": "Simulability on validation",
    "loss": "Student's loss",
    "outer": "Explainer's outer loss",
}
MOST_NUMBER = 9_999_999
"""The largest train size and seed that the page accepts."""
MOST_ENTRIES, LONGEST_ENTRY = 3, 20
"""Number of invalid entries of a list that an error names, and maximum characters of each."""
NUMBER_LISTS: Mapping[str, tuple[str, int]] = {"sizes": ("Train sizes", 1), "seeds": ("Seeds", 0)}
"""Comma-separated lists of numbers: the label and the smallest allowed number of each."""
SECTIONS: Mapping[str, str] = {
    "heads": "Heads",
    "maps": "One example",
    "plausibility": "Plausibility",
    "protocols": "Trivial protocols",
    "normalisations": "Normalizations",
}
"""The sections below the tables."""
SCALES: Mapping[str, str] = {"shared": "Shared scale", "own": "Own scales"}
"""Color scales of maps side by side."""


def _positive(default: int) -> Any:
    return option(default, low=1, high=MOST_NUMBER, allowed="a whole number of at least 1")


@dataclass(frozen=True)
class ScaffoldView:
    """View options of finished students.

    `size`: train size of the curves and sections, 0 for the largest. `curve`: setting of the curves, empty for the
    learned one. `measure`: one of `MEASURES`. `section`: the open section. `example`: test example of the maps, from 1.
    `scale`: color scale of the maps. `marks`: data set whose marks explanations are judged by, empty for the plan's
    own. `examples`: number of examples from it.
    """

    curve: str = option("", choices=SETTINGS)
    size: int = option(0, high=MOST_NUMBER, allowed="a train size of the plan", fallback="The largest is shown.")
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
LINK_FIELDS = ("model", "setting", GUIDE, *(f"{PREFIX}{name}" for name in DEFAULT_RECIPE))
"""Names of fields in a link that are not fields of the state."""


@dataclass(frozen=True, kw_only=True)
class ScaffoldState:
    """The fields of a plan, as the controls and the link hold them.

    `sizes`, `seeds`: whole numbers separated by commas. `base`, `split`: empty for the default. `recipe`: values that
    differ from the defaults, as strings.
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
    """The state in a link, and an error for each value that is not accepted."""
    wrong: list[str] = []
    last, start = last_values(query), opening_state(kind)
    state = ScaffoldState(
        kind=kind,
        teacher=last.get("model") or start.teacher,
        data=last.get("data") or start.data,
        settings=_settings(query.get("setting", []), start.settings, wrong),
        sizes=_number_list("sizes", last, start.sizes, wrong),
        seeds=_number_list("seeds", last, start.seeds, wrong),
        base=last.get("base", start.base),
        split=last.get("split", start.split),
        recipe=_recipe(last, start.recipe, wrong),
        view=read_record(DEFAULT_VIEW, query, wrong),
    )
    return state, wrong


def write_state(state: ScaffoldState) -> Query:
    """Return the link that reopens the state: the kind, and the values that differ from the opening state."""
    start = opening_state(state.kind)
    query: Query = {"input": [state.kind]}
    names = {"model": "teacher", "data": "data", "sizes": "sizes", "seeds": "seeds", "base": "base", "split": "split"}
    query |= write_changed((name, getattr(state, attr), getattr(start, attr)) for name, attr in names.items())
    query |= {} if state.settings == start.settings else {"setting": list(state.settings) or [""]}
    recipe, default = ({**DEFAULT_RECIPE, **one.recipe} for one in (state, start))
    query |= write_changed((f"{PREFIX}{name}", str(recipe[name]), str(default[name])) for name in recipe)
    return query | write_record(state.view, DEFAULT_VIEW)


def plan_of(state: ScaffoldState) -> ScaffoldPlan:
    """Return the plan, which equals that of `exegesis scaffold`. Errors: values that are not allowed."""
    return ScaffoldPlan(
        teacher=state.teacher,
        dataset=state.data,
        settings=state.settings,
        train_sizes=parse_numbers("sizes", state.sizes),
        seeds=parse_numbers("seeds", state.seeds),
        base=state.base or None,
        split=state.split or None,
        recipe=from_mapping(Recipe, state.recipe, "recipe"),
    )


def state_of(plan: ScaffoldPlan, kind: str = "") -> ScaffoldState:
    """Return the state that shows a plan. `kind`: kind of input; if given, the teacher's files are not read."""
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
    """Return the values of a recipe that differ from the defaults, as strings. Errors: values that are not allowed."""
    recipe = dataclasses.asdict(from_mapping(Recipe, values, "recipe"))
    return {name: str(value) for name, value in recipe.items() if value != DEFAULT_RECIPE[name]}


def parse_numbers(name: str, typed: str) -> tuple[int, ...]:
    """Parse a comma-separated list of whole numbers. `name`: one of `NUMBER_LISTS`.

    Errors: an empty list; entries that are empty, repeated, or not whole numbers in the range. The message names them.
    """
    label, low = NUMBER_LISTS[name]
    entries = [entry.strip() for entry in typed.split(",")]
    numbers = [whole_number(entry, MOST_NUMBER) for entry in entries]
    allowed = [number for number in numbers if number is not None and number >= low]
    if len(set(allowed)) == len(entries):
        return tuple(allowed)
    if not typed.strip():
        raise UsageError(f"{label}: the list is empty.")
    problems = []
    if empty := [str(at) for at, entry in enumerate(entries, 1) if not entry]:
        problems.append(_problem(empty, "entry {} is empty", "entries {} are empty"))
    if wrong := [_quote(e) for e, n in zip(entries, numbers, strict=True) if e and (n is None or n < low)]:
        bounds = f"from {low} to {MOST_NUMBER:,}"
        problems.append(_problem(wrong, f"{{}} is not a whole number {bounds}", f"{{}} are not whole numbers {bounds}"))
    if repeated := [str(number) for number in dict.fromkeys(allowed) if allowed.count(number) > 1]:
        problems.append(_problem(repeated, "{} appears more than once", "{} appear more than once"))
    raise UsageError(f"{label}: {'; '.join(problems)}.")


def _quote(entry: str) -> str:
    return repr(entry if len(entry) <= LONGEST_ENTRY else f"{entry[:LONGEST_ENTRY]}…")


def _problem(entries: Sequence[str], one: str, several: str) -> str:
    """Return a clause about invalid entries that names the first `MOST_ENTRIES`."""
    more = len(entries) - MOST_ENTRIES
    names = [*entries[:MOST_ENTRIES], *([f"{more:,} more"] if more > 0 else [])]
    return (one if len(entries) == 1 else several).format(join_names(names))


def read_numbers(name: str, typed: str, valid: str, errors: list[str]) -> str:
    """Return the typed list; if it is invalid, return `valid`, the last valid list, and add an error to `errors`."""
    try:
        return ",".join(map(str, parse_numbers(name, typed)))
    except UsageError as error:
        errors.append(f"{error} Still using {valid}.")
        return valid


def _number_list(name: str, last: Mapping[str, str], start: str, errors: list[str]) -> str:
    return read_numbers(name, last[name], start, errors) if name in last else start


def _settings(given: Sequence[str], start: tuple[str, ...], wrong: list[str]) -> tuple[str, ...]:
    wrong += [str(unknown("setting", name[:40], SETTINGS)) for name in given if name and name not in SETTINGS]
    return tuple(name for name in SETTINGS if name in given) if given else start


def _recipe(last: Mapping[str, str], start: Mapping[str, str], wrong: list[str]) -> dict[str, str]:
    """The recipe of the opening plan with the values of the link; values that are not allowed are reported."""
    recipe = {**DEFAULT_RECIPE, **start}
    for name, value in last.items():
        if not name.startswith(PREFIX):
            continue
        try:
            from_mapping(Recipe, {name.removeprefix(PREFIX): value}, "recipe")
        except ExegesisError as error:
            wrong.append(f"{error} Its earlier value is kept.")
            continue
        recipe[name.removeprefix(PREFIX)] = value
    return changed_recipe(recipe)
