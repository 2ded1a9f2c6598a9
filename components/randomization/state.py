"""What the Randomization page shows, as plain values: read from the link and written back to it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from components.evaluate.state import read_examples, read_models, typed_params
from components.link_choice import choice, whole
from components.randomization.look import Look, read_look, write_look
from components.request_link import (
    Params,
    last_values,
    read_methods,
    read_params,
    read_seed,
    write_methods,
    write_unusual,
)
from components.text.focus import Query
from engine.errors import not_allowed, unknown
from engine.randomization.plan import MODES, THESIS_METHODS, RandomizationPlan
from engine.registry import Explainer

MODELS = {"text": ("reviews-minilm",), "image": ("scenes-vit",)}
DATA = {"text": "reviews", "image": "scenes"}
EXAMPLES = {"text": 16, "image": 12}
"""What each kind opens with comes randomized: engine/shipped/experiments.py."""
SEEDS = RandomizationPlan.seeds
MOST_SEEDS = 100
SWITCH = ("off", "on")


@dataclass(frozen=True, kw_only=True)
class RandomizationState:
    """The fields of a plan. `split`: empty for the usual."""

    kind: str
    models: tuple[str, ...]
    data: str
    methods: tuple[str, ...]
    examples: int
    seeds: int = SEEDS
    modes: tuple[str, ...] = MODES
    head: bool = False
    embeddings: bool = False
    split: str = ""
    seed: int = 0
    params: Params = field(default_factory=dict)
    look: Look = field(default_factory=Look)


def usual(kind: str) -> RandomizationState:
    """What the page opens with."""
    return RandomizationState(
        kind=kind, models=MODELS[kind], data=DATA[kind], methods=THESIS_METHODS, examples=EXAMPLES[kind]
    )


def read(kind: str, query: Query, methods: Mapping[str, Explainer]) -> tuple[RandomizationState, list[str]]:
    """The state that a link asks for, and a sentence for everything in it that is not known."""
    said: list[str] = []
    last, start = last_values(query), usual(kind)
    state = RandomizationState(
        kind=kind,
        models=read_models(query.get("model", []), start.models, said),
        data=last.get("data") or start.data,
        methods=read_methods(query.get("method", []), methods, start.methods, said),
        examples=read_examples(last, start.examples, said),
        seeds=_seeds(last.get("seeds", str(SEEDS)), said),
        modes=_modes(query.get("mode", []), said),
        head=choice("head", last, SWITCH, said) == "on",
        embeddings=choice("embeddings", last, SWITCH, said) == "on",
        split=last.get("split", ""),
        seed=read_seed(last, said),
        params=read_params(last, methods, said),
        look=read_look(kind, query, said),
    )
    return state, said


def write(state: RandomizationState) -> Query:
    """The link that reopens the state: only what differs from the usual is written, and always the kind."""
    start = usual(state.kind)
    query: Query = {"input": [state.kind]}
    query |= {} if state.models == start.models else {"model": list(state.models) or [""]}
    query |= {} if state.methods == start.methods else write_methods(state.methods, {})
    query |= {} if state.modes == start.modes else {"mode": list(state.modes) or [""]}
    query |= {name: [SWITCH[1]] for name in ("head", "embeddings") if getattr(state, name)}
    query |= {f"{id}.{name}": [value] for id, own in state.params.items() for name, value in own.items()}
    names = ("data", "examples", "seeds", "split", "seed")
    query |= write_unusual((name, getattr(state, name), getattr(start, name)) for name in names)
    return query | write_look(state.look)


def plan_of(state: RandomizationState, methods: Mapping[str, Explainer]) -> RandomizationPlan:
    """What is asked of the engine, the same as `exegesis randomize` asks. Errors: parameters that are not allowed."""
    return RandomizationPlan(
        models=state.models,
        dataset=state.data,
        methods=state.methods,
        examples=state.examples,
        seed=state.seed,
        modes=state.modes,
        seeds=state.seeds,
        head=state.head,
        embeddings=state.embeddings,
        split=state.split or None,
        params=typed_params(state.params, state.methods, methods),
    )


def of_plan(plan: RandomizationPlan) -> RandomizationState:
    """The state that shows what was randomized before."""
    return RandomizationState(
        kind=plan.kind,
        models=plan.models,
        data=plan.dataset,
        methods=plan.methods,
        examples=plan.examples,
        seeds=plan.seeds,
        modes=plan.modes,
        head=plan.head,
        embeddings=plan.embeddings,
        split=plan.split or "",
        seed=plan.seed,
        params={id: {name: str(value) for name, value in own.items()} for id, own in plan.params.items()},
    )


def _seeds(given: str, said: list[str]) -> int:
    found = whole(given, MOST_SEEDS)
    if found:
        return found
    said.append(str(not_allowed("seeds", f"a whole number from 1 to {MOST_SEEDS}", given[:40], f"{SEEDS} are used.")))
    return SEEDS


def _modes(given: list[str], said: list[str]) -> tuple[str, ...]:
    said += [str(unknown("mode", name[:40], MODES)) for name in given if name and name not in MODES]
    return tuple(mode for mode in MODES if mode in given) if given else MODES
