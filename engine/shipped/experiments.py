"""The experiments that pages open with: their plans, their cache keys, and computing those that are missing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from engine.attacks import attack, transfer
from engine.attacks.plan import OBJECTIVES, PIXELS, PLACES, AttackParams, AttackPlan, AttackRequest
from engine.data.sources import load_source
from engine.evaluation.plan import EVALUATE, EvaluationPlan
from engine.experiments import run as experiments
from engine.params import Plain, as_plain
from engine.randomization.plan import MODES, RANDOMIZE, RandomizationPlan

EVALUATION_PLANS: Mapping[str, EvaluationPlan] = EVALUATE.opens_with
"""The evaluations by the kind of input: methods on hand-written reviews, and on marked pictures."""


def evaluation_keys(plan: EvaluationPlan) -> tuple[str, ...]:
    """The keys of an evaluation; empty where it is missing or not current."""
    plan, sample = experiments.prepare(plan)
    keys = [experiments.entry_key(part, sample) for part in experiments.parts_of(plan)]
    return tuple(key for key in keys if key is not None) if None not in keys else ()


def compute_evaluations() -> list[str]:
    """Compute the evaluations that are missing. Returns the keys of all."""
    for plan in EVALUATION_PLANS.values():
        experiments.carry_out(plan)
    return [key for plan in EVALUATION_PLANS.values() for key in evaluation_keys(plan)]


RANDOMIZATION_PLANS: Mapping[str, RandomizationPlan] = RANDOMIZE.opens_with
"""The randomizations by the kind of input: a few reviews on a text model, a few scenes on an image model."""


def randomization_keys() -> tuple[str, ...]:
    """The keys of the results, and of the maps those that the page opens with: of the cascade, by the first seed."""
    return tuple(key for plan in RANDOMIZATION_PLANS.values() for key in _randomization_keys(plan))


def compute_randomizations() -> tuple[str, ...]:
    """Compute the randomizations that are missing. Returns the keys of all."""
    for plan in RANDOMIZATION_PLANS.values():
        experiments.carry_out(plan)
    return randomization_keys()


def _randomization_keys(plan: RandomizationPlan) -> Iterator[str]:
    from engine.randomization.chunks import ModelWork

    sample = experiments.sample_of(plan)
    for part in experiments.parts_of(plan):
        yield experiments.key_of(part, sample)
        work = ModelWork(part, part.models[0], sample)
        cascade = {(stage.parts, plan.seed) for stage in work.stages if stage.mode == MODES[0]}
        chunks = work.all_chunks()
        yield from (chunk.key for chunk in chunks if not chunk.parts or (chunk.parts, chunk.seed) in cascade)


ATTACK_METHOD = "gradient_x_input"
ATTACK_STEPS = 100
"""The number of steps that the page opens with."""
ATTACK_PLACES = {"text": PLACES[0], "image": PIXELS}
"""The place of the attacked numbers, by the kind of input."""
ATTACK_OTHERS = {
    "text": ("gradient_l2", "attention_rollout", "occlusion"),
    "image": ("gradient_l2", "attention_rollout"),
}
"""Other methods whose maps of the attacked example are shown, by the kind of input."""
ATTACK_EXAMPLES = 50
"""The number of examples that the page opens with. `reviews-minilm` is right on 33 of them, `scenes-vit` on all."""


def _attack_options(kind: str) -> dict[str, Plain]:
    options = as_plain(AttackParams(place=ATTACK_PLACES[kind], steps=ATTACK_STEPS))
    return {name: value for name, value in options.items() if name not in ("objective", "epsilon")}


ATTACK_PLANS: Mapping[str, AttackPlan] = {
    kind: AttackPlan(
        (model,), dataset, ("gradient_l2",), OBJECTIVES, examples=ATTACK_EXAMPLES, attack=_attack_options(kind),
        transfer=(ATTACK_METHOD, "attention_rollout"),
    )
    for kind, model, dataset in (("text", "reviews-minilm", "reviews"), ("image", "scenes-vit", "scenes"))
}  # fmt: skip
"""The attacks on several examples, by the kind of input."""


def attack_requests(kind: str) -> list[AttackRequest]:
    """The attacks on one example, the first review or the first scene, by both objectives."""
    plan = ATTACK_PLANS[kind]
    first = load_source(kind, plan.dataset, plan.split).read(0)
    return [plan.request(plan.models[0], objective, ATTACK_METHOD, first) for objective in OBJECTIVES]


def attack_keys() -> tuple[str, ...]:
    """The keys of the attacks on one example, of other methods' maps after them, and of the attacks on several."""
    keys: list[str] = []
    for kind, plan in ATTACK_PLANS.items():
        requests = attack_requests(kind)
        keys += [attack.attack_key(request) for request in requests]
        keys += [transfer.transfer_key(request, other, {}) for request in requests for other in ATTACK_OTHERS[kind]]
        keys.append(experiments.key_of(plan, experiments.sample_of(plan)))
    return tuple(keys)


def compute_attacks() -> tuple[str, ...]:
    """Compute the attacks that are missing. Returns the keys of all."""
    for kind, plan in ATTACK_PLANS.items():
        requests = attack_requests(kind)
        for request, result in zip(requests, attack.attack_many(requests), strict=True):
            for other in ATTACK_OTHERS[kind]:
                transfer.measure_transfer(request, result, other, {})
        experiments.carry_out(plan)
    return attack_keys()
