"""Computes the shipped results: `python -m engine.shipped.make`.

They are the explanations of the gallery, a similarity, and the experiments that pages open with. Those that are current
are kept as they are.
"""

from __future__ import annotations

import base64
import json
import os
import tempfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from cache import encode
from cache.codec import Arrays, Meta
from engine import shipped
from engine.attacks import attack
from engine.attacks.plan import OBJECTIVES, PIXELS, PLACES, AttackParams, AttackPlan, AttackRequest
from engine.behavior.plan import INCLUDED
from engine.concepts.plan import CONCEPTS
from engine.corpus.plan import CORPUS
from engine.data.sources import load_source
from engine.evaluation.plan import EVALUATE, EvaluationPlan
from engine.experiments import run as experiments
from engine.experiments.base import Experiment
from engine.explain import explain_many, key_of
from engine.lazy import LazyModule
from engine.params import Plain, as_plain
from engine.randomization.plan import MODES, RANDOMIZE, RandomizationPlan
from engine.result import pack
from engine.rules.plan import RULES
from engine.shipped.gallery import gallery_requests
from engine.store import result_store

if TYPE_CHECKING:
    from engine import similarity
else:  # it loads torch, and the keys of the other results are read without
    similarity = LazyModule("engine.similarity")

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


def behavior_keys() -> tuple[str, ...]:
    """The keys of the behavior results, one of each task on each of its models."""
    samples = [(plan, experiments.sample_of(plan)) for plan in INCLUDED]
    return tuple(experiments.key_of(part, sample) for plan, sample in samples for part in experiments.parts_of(plan))


def compute_behaviors() -> tuple[str, ...]:
    """Compute the behavior results that are missing. Returns the keys of all."""
    for plan in INCLUDED:
        experiments.carry_out(plan)
    return behavior_keys()


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
"""The number of examples that the page opens with. `reviews-minilm` is right on 38 of them, `scenes-vit` on all."""


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
        keys += [attack.transfer_key(request, other, {}) for request in requests for other in ATTACK_OTHERS[kind]]
        keys.append(experiments.key_of(plan, experiments.sample_of(plan)))
    return tuple(keys)


def compute_attacks() -> tuple[str, ...]:
    """Compute the attacks that are missing. Returns the keys of all."""
    for kind, plan in ATTACK_PLANS.items():
        requests = attack_requests(kind)
        for request, result in zip(requests, attack.attack_many(requests), strict=True):
            for other in ATTACK_OTHERS[kind]:
                attack.measure_transfer(request, result, other, {})
        experiments.carry_out(plan)
    return attack_keys()


def opening_keys(experiment: Experiment) -> tuple[str, ...]:
    """The keys of the results that an experiment's page opens with, by the kind of input."""
    samples = [(plan, experiments.sample_of(plan)) for plan in experiment.opens_with.values()]
    return tuple(experiments.key_of(part, sample) for plan, sample in samples for part in experiments.parts_of(plan))


def compute_opening(experiment: Experiment) -> tuple[str, ...]:
    """Compute those of them that are missing. Returns the keys of all."""
    for plan in experiment.opens_with.values():
        experiments.carry_out(plan)
    return opening_keys(experiment)


BITS, DEFAULT_BITS = {"scores": 12}, 24
"""Binary digits of a number that is rounded, by the name of its array."""
CHANGES, CHANGE_BITS = ("delta", "picture_difference"), 12
"""The arrays of an attack's changes, a number for each number of the input: most of its bytes."""


def explanation_lines() -> list[str]:
    """Each explanation of the gallery, sealed under its key."""
    requests = gallery_requests()
    explanations = explain_many(requests)
    keyed = [(key_of(request), made) for request, made in zip(requests, explanations, strict=True)]
    return [_line(key, encode(*pack(explanation), key)) for key, explanation in keyed]


def similar_texts() -> tuple[str, str]:
    """The pair of texts whose similarity is shipped: the first of `nli`."""
    first = load_source("text", "nli", None).read(0).input.as_plain()
    return str(first["text"]), str(first["text_pair"])


def similarity_lines() -> list[str]:
    """The similarity of a pair of texts, sealed under its key."""
    similarity.text_similarity(*similar_texts())
    key = similarity.similarity_key(*similar_texts())
    entry = result_store().get(key)
    if entry is None:
        raise RuntimeError("the similarity was computed but not stored")
    return [_line(key, encode(*entry, key))]


def experiment_lines(
    compute: Callable[[], Iterable[str]], change: Callable[[Arrays], Arrays] = lambda arrays: arrays
) -> list[str]:
    """The results of `compute`, which returns their keys; their arrays changed."""
    entries = [(key, result_store().get(key)) for key in compute()]
    return pack_lines((key, entry[0], change(entry[1])) for key, entry in entries if entry is not None)


def round_floats(arrays: Arrays) -> Arrays:
    """Floats with fewer binary digits, so that they pack: maps, which are only looked at, to 2e-4, others to 1e-7."""
    return {
        name: _reduce_digits(values, BITS.get(name, DEFAULT_BITS)) if values.dtype.kind == "f" else values
        for name, values in arrays.items()
    }


def truncate_changes(arrays: Arrays) -> Arrays:
    """The changes to 5e-4, towards zero, so that they stay within the epsilon. The rest is exact."""
    return {
        name: _reduce_digits(values, CHANGE_BITS, np.trunc) if name in CHANGES else values
        for name, values in arrays.items()
    }


def _reduce_digits(values: np.ndarray, bits: int, to_whole: np.ufunc = np.rint) -> np.ndarray:
    mantissa, exponent = np.frexp(values)
    return np.ldexp(to_whole(np.ldexp(mantissa, bits)), exponent - bits).astype(values.dtype)


def pack_lines(entries: Iterable[tuple[str, Meta, Arrays]]) -> list[str]:
    """Entries under their keys, sealed and packed, a line each."""
    return [_line(key, zlib.compress(encode(meta, arrays, key), level=9)) for key, meta, arrays in entries]


def _line(key: str, body: bytes) -> str:
    return json.dumps({"key": key, "body": base64.b64encode(body).decode()})


def main() -> None:
    os.environ["EXEGESIS_DEVICE"] = "cpu"
    with tempfile.TemporaryDirectory(prefix="exegesis-shipped-") as home:
        os.environ["EXEGESIS_HOME"] = home
        lines = {
            shipped.EXPLANATIONS: explanation_lines() + similarity_lines(),
            shipped.EVALUATIONS: experiment_lines(compute_evaluations),
            shipped.RANDOMIZATIONS: experiment_lines(compute_randomizations, round_floats),
            shipped.BEHAVIORS: experiment_lines(compute_behaviors, round_floats),
            shipped.CORPORA: experiment_lines(partial(compute_opening, CORPUS), round_floats),
            shipped.CONCEPTS: experiment_lines(partial(compute_opening, CONCEPTS), round_floats),
            shipped.RULES: experiment_lines(partial(compute_opening, RULES)),
            shipped.ATTACKS: experiment_lines(compute_attacks, truncate_changes),
        }
    for file, entries in lines.items():
        file.write_text("\n".join(entries) + "\n", encoding="utf-8")
        print(f"{len(entries)} results, {file.stat().st_size:,} bytes in {file}")


if __name__ == "__main__":
    main()
