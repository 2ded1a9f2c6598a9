"""Scores of the words of a text or the patches of a picture, by removing each one and by attribution methods."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float

from cache import key_for
from cache.codec import Arrays, Meta
from engine import runtime
from engine.corpus.plan import CorpusPlan
from engine.data.sources import SourceExample
from engine.experiments.options import RANDOM
from engine.explain import explain_many, method_key
from engine.lazy import LazyModule
from engine.models import catalog
from engine.predictions import VERSION as PREDICTION_VERSION
from engine.predictions import predictions
from engine.registry import explainer
from engine.removal_operators import keyed_params
from engine.request import Example, Prompt, Request
from engine.result import Explanation
from engine.store import result_store

if TYPE_CHECKING:
    from engine import substitution
    from engine.substitution import Word
else:  # it imports torch, which cached results do not need
    substitution = LazyModule("engine.substitution")

VERSION = 2
PROMPT_VERSION = 2
"""Version of the scores of prompts, in addition to `VERSION`."""
REMOVAL = "removal"
"""Used like a method id: the drop in the explained class's probability when the word or patch is removed."""
OCCLUSION = "occlusion"


@dataclass(frozen=True, eq=False)
class ExampleScores:
    """Scores of the words or patches of an example.

    `words`: words in lower case, or patches as "row 1, column 2". `scores`: scores for the explained class, in the unit
    of each method; the first row is by removal. `predicted`, `target`: indices of the predicted and the explained class
    in `labels`; they differ only if a prompt names its target. `unread`: number of words that the model does not read;
    they are left out.
    """

    words: tuple[str, ...]
    labels: tuple[str, ...]
    predicted: int
    target: int
    regression: bool
    scores: Float[np.ndarray, "method word"]
    unread: int = 0


def methods_of(plan: CorpusPlan) -> tuple[str, ...]:
    """Return the ids of the rows of scores: removal, the methods of the plan, and the random baseline."""
    return (REMOVAL, *plan.methods_with_baselines)


def score_key(plan: CorpusPlan, one: SourceExample) -> str:
    """Return the cache key of an example's scores. Reads the model's files but does not load it."""
    [model] = plan.models
    used = [*plan.methods_with_baselines, *([] if plan.kind == Example.kind else [OCCLUSION])]  # which removes patches
    methods = [(id, explainer(id, plan.kind), plan.params_of(id)) for id in used]
    return key_for(
        {
            "kind": "scores of words in a corpus",
            "version": [VERSION, PREDICTION_VERSION, *([PROMPT_VERSION] if isinstance(one.input, Prompt) else [])],
            "model": [model, catalog.revision(model)],
            "methods": [[id, method_key(method, given, model), keyed_params(given)] for id, method, given in methods],
            "example": one.input.as_plain(),
            "seed": plan.seed,
            "dtype": plan.dtype,
            "device": runtime.device_type(),
        }
    )


def score_examples(plan: CorpusPlan, examples: Sequence[SourceExample]) -> list[ExampleScores]:
    """Score the words of examples, from the cache or computed together. Errors: those of the methods."""
    keys = [score_key(plan, one) for one in examples]
    store = result_store()
    known = {key: _unpacked(*entry) for key in keys if (entry := store.get(key)) is not None}
    missing = {key: one for key, one in zip(keys, examples, strict=True) if key not in known}
    for key, scores in zip(missing, _compute(plan, list(missing.values())), strict=True):
        store.put(key, *_packed(scores))
        known[key] = scores
    return [known[key] for key in keys]


def _compute(plan: CorpusPlan, examples: Sequence[SourceExample]) -> Iterator[ExampleScores]:
    if not examples:
        return
    [model] = plan.models
    maps = {
        method: explain_many(
            [Request(model, method, one.input, plan.params_of(method), None, plan.seed, plan.dtype) for one in examples]
        )
        for method in plan.methods_with_baselines
    }
    first = maps[RANDOM]
    inputs = [one.input for one in examples]
    words_read = [_words_read(one, own) for one, own in zip(inputs, first, strict=True)]
    if plan.kind == Example.kind:
        removed = _removal_of_words(plan, inputs, words_read, first)
    else:
        removed = _removal_of_patches(plan, inputs, first)
    for at, one in enumerate(examples):
        prediction, unread = first[at].prediction, 0
        if isinstance(one.input, Example):
            words = words_read[at]
            unread = len(substitution.words_of(one.input)) - len(words)
            names = tuple(word.text.lower() for word in words)
            scores = [
                substitution.word_scores(own[at], words, first_token=method == RANDOM) for method, own in maps.items()
            ]
        else:
            rows, columns = first[at].on_grid.shape
            names = tuple(f"row {row + 1}, column {column + 1}" for row, column in np.ndindex(rows, columns))
            scores = [own[at].on_grid.ravel() for own in maps.values()]
        yield ExampleScores(
            names,
            prediction.labels,
            prediction.index,
            first[at].provenance.target,
            prediction.regression,
            np.array([removed[at], *scores]),
            unread,
        )


def _words_read(one: Any, explanation: Explanation) -> tuple[Word, ...]:
    """Return the words of a text that the model reads; empty for a picture."""
    words = substitution.words_of(one) if isinstance(one, Example) else ()
    return tuple(word for word in words if any(substitution.overlaps(token, word) for token in explanation.tokens))


def _removal_of_words(
    plan: CorpusPlan, examples: Sequence[Any], words_read: Sequence[Sequence[Word]], first: Sequence[Explanation]
) -> list[Float[np.ndarray, "word"]]:
    """Return the drop in probability when each word is deleted. All texts are predicted together."""
    fixed_classes = [substitution.with_fixed_classes(plan.models[0], one) for one in examples]
    texts = [
        [substitution.edited(fixed, [substitution.Edit(word)]) for word in words]
        for fixed, words in zip(fixed_classes, words_read, strict=True)
    ]
    flat = iter(predictions(plan.models[0], [text for own in texts for text in own], plan.dtype))
    found = []
    for own, explanation in zip(texts, first, strict=True):
        index = explanation.provenance.target
        values = np.array([next(flat).probabilities[index] for _ in own])
        found.append(explanation.prediction.probabilities[index] - values)
    return found


def _removal_of_patches(
    plan: CorpusPlan, examples: Sequence[Any], first: Sequence[Explanation]
) -> list[Float[np.ndarray, "word"]]:
    """Return the scores of `occlusion` at its defaults, which replaces each patch by the mean color."""
    requests = [
        Request(plan.models[0], OCCLUSION, one, target=explanation.provenance.target, seed=plan.seed, dtype=plan.dtype)
        for one, explanation in zip(examples, first, strict=True)
    ]
    return [one.on_grid.ravel() for one in explain_many(requests)]


def _packed(one: ExampleScores) -> tuple[Meta, Arrays]:
    meta = {name: value for name, value in vars(one).items() if name != "scores"}
    return {**meta, "words": list(one.words), "labels": list(one.labels)}, {"scores": one.scores}


def _unpacked(meta: Meta, arrays: Arrays) -> ExampleScores:
    # Old entries of classifiers have no target: it is the predicted class.
    plain: dict[str, Any] = {
        "target": meta["predicted"],
        **meta,
        "words": tuple(meta["words"]),
        "labels": tuple(meta["labels"]),
    }
    return ExampleScores(**plain, scores=arrays["scores"])
