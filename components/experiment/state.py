"""What an experiment's page shows, as plain values: read from the link and written back to it.

The fields of the plan and of the view (how its results are looked at) are options: see `engine.experiments.options`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from components.links import (
    Params,
    Query,
    last_values,
    read_methods,
    read_option,
    read_params,
    read_record,
    write_methods,
    write_option,
    write_record,
)
from engine.experiments.base import Experiment, experiment_of
from engine.experiments.options import options_of, page_options
from engine.params import Plain, from_mapping
from engine.registry import Explainer

Methods = Mapping[str, Explainer]
MOST_MODELS = 40


@dataclass(frozen=True, kw_only=True)
class ExperimentState:
    """`plan`: as the controls show it, with parameters of methods that are not chosen, too; see `plan_of`.

    `texts`: as they were typed, the lists that a control holds as one text; the plan's own do not count.
    """

    kind: str
    plan: Any
    view: Any
    texts: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class NoView:
    """For experiments whose results are looked at in one way."""


def read_state(
    own: Experiment, view: type, kind: str, query: Query, methods: Methods
) -> tuple[ExperimentState, list[str]]:
    """The state that a link asks for, and a sentence for everything in it that is not known."""
    wrong: list[str] = []
    start, last = own.opens_with[kind], last_values(query)
    values: dict[str, Any] = {}
    texts: dict[str, str] = {}
    for name, one in page_options(own.plan).items():
        usual = getattr(start, name)
        if one.get("parse"):
            texts[name] = last.get(one.link, list_text(usual))
        elif name == "models":
            values[name] = read_models(query.get(one.link, []), usual, wrong)
        elif name == "methods":
            values[name] = read_methods(query.get(one.link, []), methods, usual, wrong)
        else:
            values[name] = read_option(one, usual, query, wrong, kind)
    params = typed_params(read_params(last, methods, wrong), methods)
    plan = replace(start, **values, params=params)
    return ExperimentState(kind=kind, plan=plan, view=read_record(view(), query, wrong, kind), texts=texts), wrong


def write_state(state: ExperimentState) -> Query:
    """The link that reopens the state: only what differs from the usual is written, and always the kind."""
    own = experiment_of(state.plan)
    start, query = own.opens_with[state.kind], {"input": [state.kind]}
    for name, one in page_options(own.plan).items():
        value = getattr(state.plan, name)
        if name in state.texts:
            query |= {one.link: [state.texts[name]]} if state.texts[name] != list_text(getattr(start, name)) else {}
        elif name == "methods":
            query |= {} if value == start.methods else write_methods(value, {})
        elif value != getattr(start, name):
            query[one.link] = write_option(one, value)
    for method, given in state.plan.params.items():
        query |= {f"{method}.{name}": [str(value)] for name, value in given.items()}
    return query | write_record(state.view, type(state.view)())


def plan_of(state: ExperimentState) -> Any:
    """What is asked of the engine, the same as the command asks. Errors: a text that is no list of what it must be."""
    params = {method: given for method, given in state.plan.params.items() if method in state.plan.methods}
    kind: type = type(state.plan)
    options = options_of(kind)
    lists = {name: options[name].get("parse")(text) for name, text in state.texts.items()}
    return replace(state.plan, params=params, **lists)


def state_of(plan: Any, view: type) -> ExperimentState:
    """The state that shows what was carried out before."""
    kind: type = type(plan)
    options = page_options(kind).values()
    texts = {one.name: list_text(getattr(plan, one.name)) for one in options if one.get("parse")}
    return ExperimentState(kind=plan.kind, plan=plan, view=view(), texts=texts)


def plan_link(plan: Any, **view: str) -> Query:
    """The link that opens a plan on its page. `view`: how its results are looked at, as the link names it."""
    return write_state(state_of(plan, NoView)) | {name: [value] for name, value in view.items()}


def list_text(values: Sequence[object]) -> str:
    """A list as one text."""
    return ",".join(map(str, values))


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
