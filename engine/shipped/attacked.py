"""The attacks that their page opens with: the first review and the first scene by both objectives, and some more."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from engine.attacks import attack
from engine.attacks.params import OBJECTIVES, PIXELS, PLACES, AttackParams
from engine.attacks.plan import AttackPlan
from engine.data.sources import source_of
from engine.params import Plain, as_plain

METHOD = "gradient_x_input"
STEPS = 100
"""As the page has them at first."""
PLACED = {"text": PLACES[0], "image": PIXELS}
"""What is moved, by what the models read."""


def _attack(kind: str) -> dict[str, Plain]:
    given = as_plain(AttackParams(place=PLACED[kind], steps=STEPS))
    return {name: value for name, value in given.items() if name not in ("objective", "epsilon")}


PLANS: Mapping[str, AttackPlan] = {
    kind: AttackPlan(
        (model,), dataset, ("gradient_l2",), OBJECTIVES, examples=4, attack=_attack(kind),
        transfer=(METHOD, "attention_rollout"),
    )
    for kind, model, dataset in (("text", "reviews-minilm", "reviews"), ("image", "scenes-vit", "scenes"))
}  # fmt: skip
"""What is attacked on many examples, by what the models read."""


def requests(kind: str) -> list[attack.AttackRequest]:
    """What is attacked on one example."""
    plan = PLANS[kind]
    first = source_of(kind, plan.dataset, plan.split).read(0)
    return [plan.request(plan.models[0], objective, METHOD, first) for objective in OBJECTIVES]


def keys() -> tuple[str, ...]:
    """Under which keys they are found."""
    return tuple(key for kind in PLANS for key in _keys(kind))


def made() -> tuple[str, ...]:
    """The same, after they were computed where they were not there."""
    # Here and not above: the page that lists the plans runs no model.
    from engine.attacks.experiment import carry_out

    for kind, plan in PLANS.items():
        attack.attack_many(requests(kind))
        carry_out(plan)
    return keys()


def _keys(kind: str) -> Iterator[str]:
    from engine.attacks.keeping import key_of
    from engine.evaluation.sample import sample_of

    yield from (attack.key_of(request) for request in requests(kind))
    yield key_of(PLANS[kind], sample_of(PLANS[kind].sampled))
