"""The logit lens: what a model would predict from its residual stream after each block.

Each vector of the stream replaces the last block's output and is read by the model's own last layers (final norm, head
or unembedding). Source: nostalgebraist (2020), interpreting GPT: the logit lens; Belrose et al. (2023),
Eliciting latent predictions from transformers with the tuned lens, section 2 (arXiv:2303.08112).

A causal model is read at every position, whose next token it predicts. A classifier reads one sentence vector: at its
first or its last position, or the mean over positions. In a cell, the vector of that position alone stands for the
sentence vector; `reading` is the model's own reading of the whole stream, which at the last depth is its prediction.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from jaxtyping import Float

from cache.codec import Arrays, Meta
from engine import runtime
from engine.explain import require_finite
from engine.explainers.attention import pooled_rows
from engine.inside.outputs import chosen_output, first_token, load_text_model, output_label, outputs
from engine.inside.query import InsideQuery
from engine.inside.sites import RESIDUAL, recording, rewriting, taps
from engine.lazy import torch
from engine.models.classifier import as_float64
from engine.models.text_classifier import EncodedText, TextClassifier
from engine.result import Check, Token
from engine.store import result_store

VERSION = 2
CHECK = "difference between the last layer of the lens and the model's own output"
CHECK_LIMITS = {"float64": 1e-6, "float32": 1e-4, "bfloat16": 5e-2, "float16": 1e-2}
READINGS = {
    "module": "The model's head reads its first position; in a cell it reads the position of the column instead.",
    "last": "The model's head reads its last position; in a cell it reads the position of the column instead.",
    "mean": "The model's head reads the mean over positions; in a cell it reads the position of the column alone.",
    "causal": "Each position predicts the next token; the prompt's prediction is read at the last position.",
}

Depths = Float[np.ndarray, "depth"]
Grid = Float[np.ndarray, "depth position"]


@dataclass(frozen=True)
class LensQuery(InsideQuery):
    """A query for the lens of one input. target: a class or token; None for the predicted one."""

    target: int | str | None = None

    @property
    def key(self) -> str:
        """The cache key."""
        return self.cache_key("logit lens", VERSION, target=self.target)


@dataclass(frozen=True, eq=False)
class LensResult:
    """The lens of one input. Depth 0 is the embedding, depth `l + 1` the output of block `l`.

    top, top_value: the most probable output of each cell and its probability. value: the probability of the target. For
    a regression head, values are scores. reading, reading_top, reading_top_value: the same for the model's own reading
    of each depth. read_position: the position that it reads; None for the mean over positions. truncated: number of
    tokens that the model does not read.
    """

    model: str
    revision: str
    tokens: tuple[Token, ...]
    target: str
    regression: bool
    explanation: str
    read_position: int | None
    top: tuple[tuple[str, ...], ...]
    top_value: Grid
    value: Grid
    reading_top: tuple[str, ...]
    reading: Depths
    reading_top_value: Depths
    check: Check
    truncated: int

    @property
    def decided(self) -> int:
        """The first depth from which the model's own reading is always its final prediction."""
        final, depth = self.reading_top[-1], len(self.reading_top)
        while depth and self.reading_top[depth - 1] == final:
            depth -= 1
        return depth


def logit_lens(query: LensQuery) -> LensResult:
    """Read every depth at every position. Errors: those of loading and encoding; an unknown target."""
    query.example.check_length()
    if (entry := result_store().get(query.key)) is not None:
        return _unpack(*entry)
    with runtime.turn():
        computed = _lens(query)
    result_store().put(query.key, *_pack(computed))
    return computed


def _lens(query: LensQuery) -> LensResult:
    model = load_text_model(query.model, query.dtype)
    encoded = model.encode(query.example)
    with torch.inference_mode(), recording(taps(model, RESIDUAL)) as stream:
        logits = outputs(model, model.collate([encoded]))
    require_finite(model, "logits", as_float64(logits).sum())
    target = chosen_output(model, encoded, query.target, logits)
    values, best, best_values = _read_cells(model, encoded, torch.cat(stream), target)
    weights = pooled_rows(model.adapter, model.collate([encoded]))[0]
    place = int(weights.argmax()) if float(weights.max()) == 1 else None
    own = (values[:, place], best[:, place], best_values[:, place]) if place is not None else _read_whole(
        model, encoded, torch.cat(stream), target
    )  # fmt: skip
    expected = float(_probabilities(model, logits)[0, target])
    distance = abs(float(own[0][-1]) - expected) / (max(1.0, abs(expected)) if model.regression else 1.0)
    label = {int(output): output_label(model, int(output)) for output in np.unique([*best.ravel(), *own[1]])}
    causal = "causal" if hasattr(model, "next_logits") else model.adapter.reading
    return LensResult(
        query.model, model.revision, encoded.tokens, output_label(model, target), model.regression, READINGS[causal],
        place, tuple(tuple(label[int(one)] for one in row) for row in best), best_values, values,
        tuple(label[int(one)] for one in own[1]), own[0], own[2],
        Check(CHECK, distance, CHECK_LIMITS[query.dtype]), encoded.truncated,
    )  # fmt: skip


def _read_cells(
    model: TextClassifier, encoded: EncodedText, stream: Float[torch.Tensor, "depth seq d_model"], target: int
) -> tuple[Grid, np.ndarray, Grid]:
    """Return each vector's target value, best output and its value, as the only input of the model's last layers.

    Inputs of one position minimize the work of the blocks, whose output is replaced.
    """
    short, vectors = first_token(encoded), stream.flatten(0, 1)[:, None]
    parts = runtime.in_chunks(
        lambda part: _read(model, [short] * len(vectors[part]), vectors[part], target), len(vectors),
        runtime.rows_at_once(model, 1) if model.labels else CELLS_AT_ONCE,
    )  # fmt: skip
    shape = stream.shape[:2]
    values, best, best_values = (np.concatenate(column).reshape(shape) for column in zip(*parts, strict=True))
    return values, best, best_values


CELLS_AT_ONCE = 256
"""Number of cells of a causal model in one pass; each has the logits of a whole vocabulary."""


def _read_whole(
    model: TextClassifier, encoded: EncodedText, stream: Float[torch.Tensor, "depth seq d_model"], target: int
) -> tuple[Depths, np.ndarray, Depths]:
    """As `_read_cells`, for each depth with all its positions, as the model reads them."""
    parts = runtime.in_chunks(
        lambda part: _read(model, [encoded] * len(stream[part]), stream[part], target), len(stream),
        runtime.rows_at_once(model, len(encoded)),
    )  # fmt: skip
    values, best, best_values = (np.concatenate(column) for column in zip(*parts, strict=True))
    return values, best, best_values


def _read(
    model: TextClassifier, rows: list[EncodedText], vectors: Float[torch.Tensor, "row seq d_model"], target: int
) -> tuple[Depths, np.ndarray, Depths]:
    last = taps(model, RESIDUAL)[-1:]
    with torch.inference_mode(), rewriting(last, lambda _, now: vectors.to(now.dtype)):
        values = _probabilities(model, outputs(model, model.collate(rows)))
    best = values.argmax(1)
    return values[:, target], best, values[np.arange(len(values)), best]


def _probabilities(model: TextClassifier, logits: Float[torch.Tensor, "row output"]) -> Float[np.ndarray, "row output"]:
    wide = logits.double()
    return as_float64(wide if model.regression else torch.softmax(wide, -1))


def lens_to_json(one: LensResult) -> dict[str, Any]:
    """Return the whole result as JSON values."""
    plain = _pack(one)[0]
    return plain | {
        "value": one.value.tolist(), "top_value": one.top_value.tolist(), "reading": one.reading.tolist(),
        "reading_top_value": one.reading_top_value.tolist(), "decided_layer": one.decided - 1,
    }  # fmt: skip


def lens_rows(one: LensResult) -> Iterator[dict[str, Any]]:
    """Yield a row per cell, for files. Layer -1 is the embedding; position None is the model's own reading."""
    for depth in range(len(one.reading)):
        for position, token in enumerate(one.tokens):
            yield {
                "layer": depth - 1, "position": position, "token": token.text, "top": one.top[depth][position],
                "top_value": float(one.top_value[depth, position]), "target": one.target,
                "target_value": float(one.value[depth, position]),
            }  # fmt: skip
        yield {
            "layer": depth - 1, "position": None, "token": None, "top": one.reading_top[depth],
            "top_value": float(one.reading_top_value[depth]), "target": one.target,
            "target_value": float(one.reading[depth]),
        }  # fmt: skip


def _pack(one: LensResult) -> tuple[Meta, Arrays]:
    meta = {name: value for name, value in vars(one).items() if not isinstance(value, np.ndarray)}
    meta |= {"tokens": [asdict(token) for token in one.tokens], "check": asdict(one.check)}
    meta |= {"top": [list(row) for row in one.top], "reading_top": list(one.reading_top)}
    arrays = {name: value for name, value in vars(one).items() if isinstance(value, np.ndarray)}
    return meta, arrays


def _unpack(meta: Meta, arrays: Arrays) -> LensResult:
    plain: dict[str, Any] = dict(meta)
    plain["tokens"] = tuple(Token(**token) for token in plain["tokens"])
    plain |= {"top": tuple(map(tuple, plain["top"])), "reading_top": tuple(plain["reading_top"])}
    return LensResult(
        **{**plain, "check": Check(**plain["check"]), **{name: np.array(own) for name, own in arrays.items()}}
    )
