"""Compute the shipped results: `python -m engine.shipped.make`.

They are the explanations of the gallery, a similarity, and the experiments that pages open with. Results that are
current are reused.
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
else:  # it imports torch, which the keys of the other results do not need
    similarity = LazyModule("engine.similarity")

EVALUATION_PLANS: Mapping[str, EvaluationPlan] = EVALUATE.opens_with
"""Plans of the evaluations by kind of input: methods on hand-written reviews, and on marked pictures."""


def evaluation_keys(plan: EvaluationPlan) -> tuple[str, ...]:
    """Return the keys of an evaluation's results; empty if any is missing or outdated."""
    plan, sample = experiments.prepare(plan)
    keys = [experiments.entry_key(part, sample) for part in experiments.parts_of(plan)]
    return tuple(key for key in keys if key is not None) if None not in keys else ()


def compute_evaluations() -> list[str]:
    """Compute the missing evaluations. Returns the keys of all."""
    for plan in EVALUATION_PLANS.values():
        experiments.carry_out(plan)
    return [key for plan in EVALUATION_PLANS.values() for key in evaluation_keys(plan)]


RANDOMIZATION_PLANS: Mapping[str, RandomizationPlan] = RANDOMIZE.opens_with
"""Plans of the randomizations by kind of input: a few reviews on a text model, a few scenes on an image model."""


def randomization_keys() -> tuple[str, ...]:
    """Return the keys of the results, and of the maps that the page opens with: those of the cascade and first seed."""
    return tuple(key for plan in RANDOMIZATION_PLANS.values() for key in _randomization_keys(plan))


def compute_randomizations() -> tuple[str, ...]:
    """Compute the missing randomizations. Returns the keys of all."""
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
    """Return the keys of the behavior results, one for each task and model."""
    samples = [(plan, experiments.sample_of(plan)) for plan in INCLUDED]
    return tuple(experiments.key_of(part, sample) for plan, sample in samples for part in experiments.parts_of(plan))


def compute_behaviors() -> tuple[str, ...]:
    """Compute the missing behavior results. Returns the keys of all."""
    for plan in INCLUDED:
        experiments.carry_out(plan)
    return behavior_keys()


ATTACK_METHOD = "gradient_x_input"
ATTACK_STEPS = 100
"""Number of steps that the page opens with."""
ATTACK_PLACES = {"text": PLACES[0], "image": PIXELS}
"""What the attacks perturb, by kind of input."""
ATTACK_OTHERS = {
    "text": ("gradient_l2", "attention_rollout", "occlusion"),
    "image": ("gradient_l2", "attention_rollout"),
}
"""Other methods whose maps of the attacked example are shown, by kind of input."""
ATTACK_EXAMPLES = 50
"""Number of examples that the page opens with. `reviews-minilm` is correct on 38 of them, `scenes-vit` on all."""


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
"""Plans of the attacks on several examples, by kind of input."""


def attack_requests(kind: str) -> list[AttackRequest]:
    """Return the attacks on one example, the first review or scene, one for each objective."""
    plan = ATTACK_PLANS[kind]
    first = load_source(kind, plan.dataset, plan.split).read(0)
    return [plan.request(plan.models[0], objective, ATTACK_METHOD, first) for objective in OBJECTIVES]


def attack_keys() -> tuple[str, ...]:
    """Return the keys of the attacks on one example, of their transfer to other methods, and of those on several."""
    keys: list[str] = []
    for kind, plan in ATTACK_PLANS.items():
        requests = attack_requests(kind)
        keys += [attack.attack_key(request) for request in requests]
        keys += [attack.transfer_key(request, other, {}) for request in requests for other in ATTACK_OTHERS[kind]]
        keys.append(experiments.key_of(plan, experiments.sample_of(plan)))
    return tuple(keys)


def compute_attacks() -> tuple[str, ...]:
    """Compute the missing attacks. Returns the keys of all."""
    for kind, plan in ATTACK_PLANS.items():
        requests = attack_requests(kind)
        for request, result in zip(requests, attack.attack_many(requests), strict=True):
            for other in ATTACK_OTHERS[kind]:
                attack.measure_transfer(request, result, other, {})
        experiments.carry_out(plan)
    return attack_keys()


def opening_keys(experiment: Experiment) -> tuple[str, ...]:
    """Return the keys of the results that an experiment's page opens with, for all kinds of input."""
    samples = [(plan, experiments.sample_of(plan)) for plan in experiment.opens_with.values()]
    return tuple(experiments.key_of(part, sample) for plan, sample in samples for part in experiments.parts_of(plan))


def compute_opening(experiment: Experiment) -> tuple[str, ...]:
    """Compute the missing results that an experiment's page opens with. Returns the keys of all."""
    for plan in experiment.opens_with.values():
        experiments.carry_out(plan)
    return opening_keys(experiment)


BITS, DEFAULT_BITS = {"scores": 12}, 24
"""Number of binary digits that rounded floats keep: by the name of their array, and by default."""
CHANGES, CHANGE_BITS = ("delta", "picture_difference"), 12
"""Arrays of an attack's changes, with one value for each value of the input: most of its bytes."""


def explanation_lines() -> list[str]:
    """Return a line for each explanation of the gallery, encoded under its key."""
    requests = gallery_requests()
    explanations = explain_many(requests)
    keyed = [(key_of(request), made) for request, made in zip(requests, explanations, strict=True)]
    return [_line(key, encode(*pack(explanation), key)) for key, explanation in keyed]


def similar_texts() -> tuple[str, str]:
    """Return the pair of texts whose similarity is shipped: the first pair of `nli`."""
    first = load_source("text", "nli", None).read(0).input.as_plain()
    return str(first["text"]), str(first["text_pair"])


def similarity_lines() -> list[str]:
    """Return a line with the similarity of `similar_texts`, encoded under its key."""
    similarity.text_similarity(*similar_texts())
    key = similarity.similarity_key(*similar_texts())
    entry = result_store().get(key)
    if entry is None:
        raise RuntimeError("the similarity was computed but not stored")
    return [_line(key, encode(*entry, key))]


def experiment_lines(
    compute: Callable[[], Iterable[str]], change: Callable[[Arrays], Arrays] = lambda arrays: arrays
) -> list[str]:
    """Return lines with the results of `compute`, which returns their keys. `change`: transforms their arrays."""
    entries = [(key, result_store().get(key)) for key in compute()]
    return pack_lines((key, entry[0], change(entry[1])) for key, entry in entries if entry is not None)


def round_floats(arrays: Arrays) -> Arrays:
    """Round floats to fewer binary digits for compression: maps, which are only displayed, to 2e-4, others to 1e-7.

    These are relative errors.
    """
    return {
        name: _reduce_digits(values, BITS.get(name, DEFAULT_BITS)) if values.dtype.kind == "f" else values
        for name, values in arrays.items()
    }


def truncate_changes(arrays: Arrays) -> Arrays:
    """Round the changes toward zero, to a relative 5e-4, so that they stay within epsilon. Other arrays are exact."""
    return {
        name: _reduce_digits(values, CHANGE_BITS, np.trunc) if name in CHANGES else values
        for name, values in arrays.items()
    }


def _reduce_digits(values: np.ndarray, bits: int, to_whole: np.ufunc = np.rint) -> np.ndarray:
    mantissa, exponent = np.frexp(values)
    return np.ldexp(to_whole(np.ldexp(mantissa, bits)), exponent - bits).astype(values.dtype)


def pack_lines(entries: Iterable[tuple[str, Meta, Arrays]]) -> list[str]:
    """Return a line for each entry, encoded under its key and compressed."""
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
