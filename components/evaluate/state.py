"""What the Evaluate page shows, as plain values: read from the link and written back to it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from components.evaluate.look import Look, read_look, read_metrics, write_look
from components.experiment.state import read_models, typed_params
from components.links import (
    Params,
    Query,
    last_values,
    read_methods,
    read_params,
    read_seed,
    whole_number,
    write_changed,
    write_methods,
)
from engine.errors import not_allowed, unknown
from engine.input_kinds import input_kind
from engine.registry import Explainer

if TYPE_CHECKING:
    from engine.evaluation.plan import Plan

MODELS = {"text": ("reviews-minilm",), "image": ("scenes-marked-vit",)}
DATA = {"text": "reviews", "image": "scenes-marked"}
QUICK = ("gradient_x_input", "integrated_gradients", "attention_rollout", "attn_lrp", "random")
SEVEN = (
    "lime", "kernel_shap", "integrated_gradients", "gradient", "gradient_x_input", "attention_mean",
    "attention_rollout",
)  # fmt: skip
ENSEMBLES = ("ensemble_all", "ensemble_top3")
METHODS = {"text": (*SEVEN, *ENSEMBLES, "random"), "image": QUICK}
"""What each kind opens with; that of texts comes evaluated."""
EXAMPLES = {"text": 40, "image": 20}
SHARES = "5,10,20,50"
MOST_EXAMPLES = 100_000


@dataclass(frozen=True, kw_only=True)
class EvaluateState:
    """`metrics`: none for all that suit. `split`, `unit`, `removal`: empty for the usual. `shares`: as typed."""

    kind: str
    models: tuple[str, ...]
    data: str
    methods: tuple[str, ...]
    examples: int
    split: str = ""
    metrics: tuple[str, ...] = ()
    seed: int = 0
    unit: str = ""
    removal: str = ""
    shares: str = SHARES
    params: Params = field(default_factory=dict)
    look: Look = field(default_factory=Look)


def usual(kind: str) -> EvaluateState:
    """What the page opens with."""
    return EvaluateState(
        kind=kind, models=MODELS[kind], data=DATA[kind], methods=METHODS[kind], examples=EXAMPLES[kind]
    )


def read(kind: str, query: Query, methods: Mapping[str, Explainer]) -> tuple[EvaluateState, list[str]]:
    """The state that a link asks for, and a sentence for everything in it that is not known."""
    said: list[str] = []
    last, start = last_values(query), usual(kind)
    state = EvaluateState(
        kind=kind,
        models=read_models(query.get("model", []), start.models, said),
        data=last.get("data") or start.data,
        methods=read_methods(query.get("method", []), methods, start.methods, said),
        examples=read_examples(last, start.examples, said),
        split=last.get("split", ""),
        metrics=read_metrics("metric", query, said),
        seed=read_seed(last, said),
        unit=_one_of("unit", last, input_kind(kind).units, said),
        removal=_one_of("removal", last, input_kind(kind).removals, said),
        shares=last.get("shares", SHARES),
        params=read_params(last, methods, said),
        look=read_look(query, said),
    )
    return state, said


def write(state: EvaluateState) -> Query:
    """The link that reopens the state: only what differs from the usual is written, and always the kind."""
    start = usual(state.kind)
    query: Query = {"input": [state.kind]}
    query |= {} if state.models == start.models else {"model": list(state.models) or [""]}
    query |= {} if state.methods == start.methods else write_methods(state.methods, {})
    query |= {"metric": list(state.metrics)} if state.metrics else {}
    query |= {f"{id}.{name}": [value] for id, own in state.params.items() for name, value in own.items()}
    names = ("data", "examples", "split", "seed", "unit", "removal", "shares")
    query |= write_changed((name, getattr(state, name), getattr(start, name)) for name in names)
    return query | write_look(state.look)


def plan_of(state: EvaluateState, methods: Mapping[str, Explainer]) -> Plan:
    """What is asked of the engine, the same as `exegesis evaluate` asks. Errors: shares that are no numbers."""
    from engine.evaluation.plan import Plan

    typed = typed_params({id: own for id, own in state.params.items() if id in state.methods}, methods)
    return Plan(
        models=state.models,
        dataset=state.data,
        methods=state.methods,
        metrics=state.metrics,
        examples=state.examples,
        seed=state.seed,
        split=state.split or None,
        unit=state.unit or None,
        removal=state.removal or None,
        shares=read_shares(state.shares),
        params=typed,
    )


def of_plan(plan: Plan, look: Look | None = None) -> EvaluateState:
    """The state that shows what was evaluated before."""
    return EvaluateState(
        kind=plan.kind,
        models=plan.models,
        data=plan.dataset,
        methods=plan.methods,
        examples=plan.examples,
        split=plan.split or "",
        metrics=plan.metrics,
        seed=plan.seed,
        unit=plan.unit or "",
        removal=plan.removal or "",
        shares=",".join(map(str, plan.shares)),
        params={id: {name: str(value) for name, value in own.items()} for id, own in plan.params.items()},
        look=look or Look(),
    )


def read_shares(given: str) -> tuple[int, ...]:
    """Percentages between commas. Errors say what is allowed."""
    parts = [whole_number(part.strip(), 100) for part in given.split(",")]
    found = tuple(part for part in parts if part is not None)
    if len(found) < len(parts) or 0 in found or len(set(found)) < len(found):
        allowed = "different whole percentages from 1 to 100 between commas"
        raise not_allowed("shares", allowed, given, f"Example: {SHARES}.")
    return found


def read_examples(last: Mapping[str, str], start: int, said: list[str]) -> int:
    """How many examples a link asks for, else those of the start."""
    given = last.get("examples", str(start))
    found = whole_number(given, MOST_EXAMPLES)
    if found:
        return found
    said.append(
        str(not_allowed("examples", f"a whole number from 1 to {MOST_EXAMPLES}", given[:40], f"{start} is used."))
    )
    return start


def _one_of(name: str, last: Mapping[str, str], known: Sequence[str], said: list[str]) -> str:
    given = last.get(name, "")
    if not given or given in known:
        return given
    said.append(str(unknown(name, given[:40], known)))
    return ""
