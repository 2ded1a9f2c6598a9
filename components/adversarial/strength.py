"""How hard the attack tries: the fields of `AttackParams` as controls hold them, as a link says them, as values."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from engine.attacks.params import PIXELS, PLACES, AttackParams
from engine.errors import ExegesisError, not_allowed
from engine.params import Plain, from_mapping

NAMES = tuple(field.name for field in dataclasses.fields(AttackParams) if field.name != "objective")
HELP = {field.name: field.metadata["help"] for field in dataclasses.fields(AttackParams)}
USUAL_PLACE = {"text": PLACES[0], "image": PIXELS}
"""Of pictures the pixels: the attacked one can be looked at."""
USUAL_STEPS = 100
"""So many change most maps, and take a fifth of the time of the thesis's 500."""
SAID_EPSILON = {PLACES[0]: "2", PIXELS: "8/255"}
Strength = dict[str, str]
"""The fields that are not as usual, as texts."""


def usual(kind: str) -> dict[str, object]:
    """What the controls hold at first; `epsilon` as text, since it may be a fraction or nothing."""
    plain = dataclasses.asdict(AttackParams(place=USUAL_PLACE[kind], steps=USUAL_STEPS))
    return {name: "" if name == "epsilon" else plain[name] for name in NAMES}


def as_texts(kind: str, held: Mapping[str, object]) -> Strength:
    """What differs from the usual."""
    start = usual(kind)
    told = {name: value.strip() if isinstance(value, str) else value for name, value in held.items()}
    return {name: _written(told[name]) for name in NAMES if name in told and told[name] != start[name]}


def as_held(kind: str, strength: Strength) -> dict[str, object]:
    """What the controls hold. The texts are known to be allowed (`read_strength`)."""
    made = chosen(kind, strength)
    values = {**usual(kind), **{name: getattr(made, name) for name in strength}}
    return values | {"epsilon": strength.get("epsilon", "")}


def chosen(kind: str, strength: Strength, objective: str | None = None) -> AttackParams:
    """The parameters of the attack. Errors: those of what is not allowed, in words."""
    given: dict[str, object] = {"place": USUAL_PLACE[kind], "steps": USUAL_STEPS, **strength}
    given |= {"epsilon": number("epsilon", strength["epsilon"])} if "epsilon" in strength else {}
    given |= {"objective": objective} if objective else {}
    made: AttackParams = from_mapping(AttackParams, given, "attack")
    return made


def given_of(params: AttackParams) -> dict[str, Plain]:
    """As `exegesis attack` gives them, so that what the command has computed is found."""
    plain = {name: getattr(params, name) for name in NAMES}
    return {name: value for name, value in plain.items() if name != "epsilon" or value is not None}


def read_strength(kind: str, last: Mapping[str, str], said: list[str]) -> Strength:
    """What a link says of it; what is not allowed is said and stays as usual."""
    found: Strength = {}
    for name in NAMES:
        if name in last:
            try:
                chosen(kind, {name: last[name]})
                found[name] = last[name]
            except ExegesisError as error:
                said.append(f"{error} The usual one is used.")
    return as_texts(kind, as_held(kind, found))


def number(name: str, given: str) -> float:
    """A number, or a fraction such as 8/255."""
    over, _, under = given.partition("/")
    try:
        return float(over) / float(under or 1)
    except (ValueError, ZeroDivisionError):
        raise not_allowed(name, "a number, or a fraction such as 8/255", given[:40]) from None


def _written(value: object) -> str:
    return f"{value:.12g}" if isinstance(value, float) else str(value)
