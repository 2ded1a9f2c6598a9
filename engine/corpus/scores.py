"""The scores of the words of a text, or of the patches of a picture: by removing each, and by attribution methods."""

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
from engine.request import Example, Request
from engine.result import Explanation
from engine.store import result_store

if TYPE_CHECKING:
    from engine import substitution
    from engine.substitution import Word
else:  # it loads torch, which cached results are opened without
    substitution = LazyModule("engine.substitution")

VERSION = 1
REMOVAL = "removal"
"""In place of a method: the fall of the probability of the predicted class without the word or patch."""
OCCLUSION = "occlusion"


@dataclass(frozen=True, eq=False)
class ExampleScores:
    """`words`: in lower case, or patches as "row 1, column 2". `scores`: for the predicted class, in the unit of each
    method; the first row is by removal. `predicted`: index of the class in `labels`.
    """

    words: tuple[str, ...]
    labels: tuple[str, ...]
    predicted: int
    regression: bool
    scores: Float[np.ndarray, "method word"]


def methods_of(plan: CorpusPlan) -> tuple[str, ...]:
    """Removal, the methods, and a random order."""
    return (REMOVAL, *plan.methods_with_baselines)


def score_key(plan: CorpusPlan, one: SourceExample) -> str:
    """The cache key of the scores of an example. Reads the model's files, never loads it."""
    [model] = plan.models
    methods = [(id, explainer(id, plan.kind), plan.params_of(id)) for id in plan.methods_with_baselines]
    return key_for(
        {
            "kind": "scores of words in a corpus",
            "version": [VERSION, PREDICTION_VERSION],
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
    removal = _removal_of_words if plan.kind == Example.kind else _removal_of_patches
    removed = removal(plan, [one.input for one in examples], first)
    for at, one in enumerate(examples):
        prediction = first[at].prediction
        if isinstance(one.input, Example):
            words = substitution.words_of(one.input)
            names = tuple(word.text.lower() for word in words)
            scores = [word_scores(own[at], words, first_token=method == RANDOM) for method, own in maps.items()]
        else:
            rows, columns = first[at].on_grid.shape
            names = tuple(f"row {row + 1}, column {column + 1}" for row, column in np.ndindex(rows, columns))
            scores = [own[at].on_grid.ravel() for own in maps.values()]
        yield ExampleScores(
            names, prediction.labels, prediction.index, prediction.regression, np.array([removed[at], *scores])
        )


def word_scores(
    explanation: Explanation, words: Sequence[Word], first_token: bool = False
) -> Float[np.ndarray, "word"]:
    """The sum of the scores of the tokens inside each word; 0 for a word that the model did not read.

    `first_token`: the score of its first token instead. A random order stays one then, while sums of random scores
    would be larger for words of several tokens.
    """
    scored = list(zip(explanation.tokens, explanation.scores.tolist(), strict=True))
    inside = [
        [
            score
            for token, score in scored
            if token.segment == word.segment and word.start <= token.start < token.end <= word.end
        ]
        for word in words
    ]
    return np.array([sum(own[:1] if first_token else own) for own in inside], dtype=np.float64)


def _removal_of_words(
    plan: CorpusPlan, examples: Sequence[Any], first: Sequence[Explanation]
) -> list[Float[np.ndarray, "word"]]:
    """Delete each word from the text. All texts are predicted together."""
    texts = [
        [substitution.edited(one, [substitution.Edit(word)]) for word in substitution.words_of(one)] for one in examples
    ]
    flat = iter(predictions(plan.models[0], [text for own in texts for text in own], plan.dtype))
    found = []
    for own, explanation in zip(texts, first, strict=True):
        index = explanation.prediction.index
        values = np.array([next(flat).probabilities[index] for _ in own])
        found.append(explanation.prediction.probabilities[index] - values)
    return found


def _removal_of_patches(
    plan: CorpusPlan, examples: Sequence[Any], first: Sequence[Explanation]
) -> list[Float[np.ndarray, "word"]]:
    """Put the mean color in place of each patch: what `occlusion` does at its defaults."""
    requests = [
        Request(plan.models[0], OCCLUSION, one, target=explanation.prediction.index, seed=plan.seed, dtype=plan.dtype)
        for one, explanation in zip(examples, first, strict=True)
    ]
    return [one.on_grid.ravel() for one in explain_many(requests)]


def _packed(one: ExampleScores) -> tuple[Meta, Arrays]:
    meta = {name: value for name, value in vars(one).items() if name != "scores"}
    return {**meta, "words": list(one.words), "labels": list(one.labels)}, {"scores": one.scores}


def _unpacked(meta: Meta, arrays: Arrays) -> ExampleScores:
    plain: dict[str, Any] = {**meta, "words": tuple(meta["words"]), "labels": tuple(meta["labels"])}
    return ExampleScores(**plain, scores=arrays["scores"])
