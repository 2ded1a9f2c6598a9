"""What an experiment's page shows, as plain values: read from the link and written back to it.

The fields of the plan and of the view (how its results are looked at) are options: see `engine.experiments.options`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from components.links import (
    Params,
    Query,
    last_values,
    read_choice,
    read_methods,
    read_params,
    whole_number,
    write_methods,
)
from engine.errors import not_allowed, unknown
from engine.experiments.base import Experiment, experiment_of
from engine.experiments.options import Option, options_of, page_options
from engine.params import Plain, from_mapping
from engine.registry import Explainer

Methods = Mapping[str, Explainer]
MOST_MODELS = 40
SWITCH = ("off", "on")


@dataclass(frozen=True, kw_only=True)
class ExperimentState:
    """`plan`: as the controls show it, with parameters of methods that are not chosen, too; see `plan_of`."""

    kind: str
    plan: Any
    view: Any


def read_state(
    own: Experiment, view: type, kind: str, query: Query, methods: Methods
) -> tuple[ExperimentState, list[str]]:
    """The state that a link asks for, and a sentence for everything in it that is not known."""
    wrong: list[str] = []
    start, last = own.opens_with[kind], last_values(query)
    values: dict[str, Any] = {}
    for name, one in page_options(own.plan).items():
        usual = getattr(start, name)
        if name == "models":
            values[name] = read_models(query.get(one.link, []), usual, wrong)
        elif name == "methods":
            values[name] = read_methods(query.get(one.link, []), methods, usual, wrong)
        else:
            values[name] = _read(one, usual, kind, query, wrong)
    params = typed_params(read_params(last, methods, wrong), methods)
    plan = replace(start, **values, params=params)
    shown = {name: _read(one, one.default, kind, query, wrong) for name, one in options_of(view).items()}
    return ExperimentState(kind=kind, plan=plan, view=view(**shown)), wrong


def write_state(state: ExperimentState) -> Query:
    """The link that reopens the state: only what differs from the usual is written, and always the kind."""
    own = experiment_of(state.plan)
    start, query = own.opens_with[state.kind], {"input": [state.kind]}
    for name, one in page_options(own.plan).items():
        value = getattr(state.plan, name)
        if name == "methods":
            query |= {} if value == start.methods else write_methods(value, {})
        elif value != getattr(start, name):
            query[one.link] = _texts(value)
    for method, given in state.plan.params.items():
        query |= {f"{method}.{name}": [str(value)] for name, value in given.items()}
    view: type = type(state.view)
    for name, one in options_of(view).items():
        if getattr(state.view, name) != one.default:
            query[one.link] = _texts(getattr(state.view, name))
    return query


def plan_of(state: ExperimentState) -> Any:
    """What is asked of the engine, the same as the command asks."""
    params = {method: given for method, given in state.plan.params.items() if method in state.plan.methods}
    return replace(state.plan, params=params)


def state_of(plan: Any, view: type) -> ExperimentState:
    """The state that shows what was carried out before."""
    return ExperimentState(kind=plan.kind, plan=plan, view=view())


def choices_of(one: Option, kind: str) -> tuple[str, ...]:
    """Those of an option that there are for a kind of input. `only`: choices that there are for one kind alone."""
    only = one.get("only", {})
    return tuple(name for name in one.get("choices") or () if only.get(name, kind) == kind)


def typed_params(params: Params, methods: Methods) -> dict[str, dict[str, Plain]]:
    """Parameters of methods as they are computed with, from texts."""
    kinds = {method: from_mapping(methods[method].params, given, method) for method, given in params.items()}
    return {method: {name: getattr(kinds[method], name) for name in given} for method, given in params.items()}


def read_models(given: Sequence[str], start: tuple[str, ...], wrong: list[str]) -> tuple[str, ...]:
    """The models that a link names, else those of the start."""
    named = tuple(dict.fromkeys(name.strip() for name in given if name.strip()))
    if len(named) > MOST_MODELS:
        wrong.append(f"model: at most {MOST_MODELS} at once, got {len(named)}. The first ones are taken.")
    return named[:MOST_MODELS] if given else start


def _read(one: Option, usual: Any, kind: str, query: Query, wrong: list[str]) -> Any:
    """The value of an option that a link asks for, else the usual one; a sentence is added for what is not allowed."""
    last, given, known = last_values(query), query.get(one.link, []), choices_of(one, kind)
    if one.is_list:
        if not known:
            return tuple(dict.fromkeys(given)) or usual
        wrong += [str(unknown(one.link, name[:40], known)) for name in given if name and name not in known]
        return tuple(name for name in known if name in given) if given else usual
    if one.hint is bool:
        return read_choice(one.link, last, SWITCH if not usual else SWITCH[::-1], wrong) == SWITCH[1]
    if one.hint is int:
        return _number(one, usual, last.get(one.link, str(usual)), wrong)
    if known:
        return read_choice(one.link, last, sorted(known, key=lambda name: name != usual), wrong)
    text = last.get(one.link) or usual
    if text and one.get("high") is not None and whole_number(text, one.get("high")) is None:
        wrong.append(str(not_allowed(one.link, one.get("allowed"), text[:40], one.get("fallback"))))
        return usual
    return text


def _number(one: Option, usual: int, given: str, wrong: list[str]) -> int:
    low, most = one.get("low") or 0, one.get("most") or one.get("high")
    number = whole_number(given, most)
    if number is not None and number >= low:
        return number
    fallback = one.get("fallback", "{} is used.").format(usual)
    wrong.append(str(not_allowed(one.link, f"a whole number from {low} to {most}", given[:40], fallback)))
    return usual


def _texts(value: Any) -> list[str]:
    """As a link holds it: an empty list says that there are none."""
    if isinstance(value, tuple):
        return list(value) or [""]
    return [SWITCH[value] if isinstance(value, bool) else "" if value is None else str(value)]
