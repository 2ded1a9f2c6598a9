"""BiLRP: the pairs of tokens, one from each text, that make two texts similar for a sentence encoder."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Float

from cache import key_for
from cache.codec import Arrays, Meta
from engine import runtime
from engine.errors import ExegesisError, UsageError, excerpt
from engine.explainers.lrp import conservation_limit
from engine.models.adapters import adapter_for
from engine.models.catalog import locate_base
from engine.models.checkpoint_files import file_sha256, read_base_config
from engine.models.classifier import as_float64
from engine.models.loading import load_base, load_tokenizer
from engine.models.lrp import lrp_parts, lrp_rules
from engine.models.text_classifier import EncodedText, TextBatch, TextClassifier
from engine.progress import check_cancelled
from engine.registry import explainer
from engine.request import Example
from engine.result import Check, Token
from engine.store import result_store

SCHEMA = 1
DIMENSIONS_AT_ONCE = 64
LEAST_LENGTH = 1e-12
"""A shorter vector is divided by this, as in torch's `normalize`."""
CHECK = "share of the similarity that neither tokens nor biases, positions and softmax account for"
LAYOUT = "Give `minilm`, or a folder that sentence-transformers has saved."
POOLINGS = {"pooling_mode_mean_tokens": "mean", "pooling_mode_cls_token": "cls"}
MODULES = "modules.json"
KNOWN_MODULES = {"Transformer", "Pooling", "Normalize"}
JSON_NAMES: dict[type, str] = {list: "list", dict: "object"}


@dataclass(frozen=True)
class Encoder:
    """A sentence encoder. `model`: its transformer, whose classification head is not used.

    `pooling`: "mean" of the tokens' states, or "cls" for that of the first token. `normalized`: whether the vector is
    divided by its length.
    """

    model: TextClassifier
    pooling: str
    normalized: bool
    max_length: int

    def encode(self, text: str) -> EncodedText:
        """Tokenize a text, truncated to the encoder's maximum length. Errors: as in `TextClassifier.encode`."""
        return self.model.encode(Example(text), self.max_length)

    def vectors(
        self, batch: TextBatch, embeds: Float[torch.Tensor, "batch seq d_model"]
    ) -> Float[torch.Tensor, "batch d_model"]:
        """Return the vector of each row, before it is divided by its length."""
        hidden = self.model.hidden(batch, embeds)
        if self.pooling == "cls":
            return hidden[:, 0]
        weights = batch.visible.to(hidden.dtype)[..., None]
        return (hidden * weights).sum(1) / weights.sum(1)


@dataclass(frozen=True)
class TextSimilarity:
    """The similarity of two texts and its parts.

    `value`: the cosine of both vectors, or their dot product if the encoder does not normalize. `relevance`: relevance
    of each pair of tokens, signed, in units of `value`; special tokens included. `rest`: the share of biases, positions
    and the softmax, alone or with tokens. `relevance` and `rest` sum to `value`, which is the check. `truncated`:
    number of tokens of each text that the encoder did not read.
    """

    model: str
    revision: str
    first: tuple[Token, ...]
    second: tuple[Token, ...]
    value: float
    relevance: Float[np.ndarray, "first second"]
    rest: float
    check: Check
    truncated: tuple[int, int]

    def pairs(self, count: int | None = None) -> list[tuple[int, int, float]]:
        """Return positions in both texts and relevance of the pairs of tokens that are not special, largest first."""
        rows = [place for place, token in enumerate(self.first) if not token.special]
        columns = [place for place, token in enumerate(self.second) if not token.special]
        own = self.relevance[np.ix_(rows, columns)]
        order = np.argsort(-np.abs(own), axis=None, kind="stable")[:count]
        places = (divmod(int(at), len(columns)) for at in order)
        return [(rows[row], columns[column], float(own[row, column])) for row, column in places]

    def as_json(self) -> dict[str, Any]:
        """Return the whole result as JSON values."""
        return {**asdict(self), "relevance": self.relevance.tolist(), "check": asdict(self.check)}


@dataclass(frozen=True)
class VectorRelevance:
    """Relevance for each dimension of a text's vector. `rest`: what biases, positions and the softmax absorb."""

    vector: Float[np.ndarray, "d_model"]
    tokens: Float[np.ndarray, "d_model seq"]
    rest: Float[np.ndarray, "d_model"]


@dataclass(frozen=True)
class EncoderLayout:
    """The settings of a sentence encoder, read without loading its weights. `folder`: folder of its transformer.

    `max_length`: None if the settings do not state it. `revision`: hash of all files that determine the results.
    """

    folder: Path
    pooling: str
    normalized: bool
    max_length: int | None
    revision: str


def read_layout(model: str) -> EncoderLayout:
    """Read the settings of a sentence encoder: `minilm`, a hub ID, or a folder that sentence-transformers has saved.

    Errors: a missing folder, an unsupported layout or pooling, settings that change the text before it is read.
    """
    folder = locate_base(model, "model")
    if not (folder / MODULES).is_file():
        raise UsageError(f"model: {excerpt(model)} has no {MODULES}, so it is no sentence encoder. {LAYOUT}")
    listed = _read(folder / MODULES, list)
    if not all(isinstance(one, dict) for one in listed):
        raise ExegesisError(f"model: {MODULES} must be a list of objects. {LAYOUT}")
    modules = {str(one.get("type", "")).rpartition(".")[2]: str(one.get("path", "")) for one in listed}
    if {"Transformer", "Pooling"} - modules.keys() or modules.keys() - KNOWN_MODULES:
        names = ", ".join(modules)
        raise ExegesisError(
            f"model: {MODULES} must name Transformer, Pooling and at most Normalize, got {names[:80]}. {LAYOUT}"
        )
    transformer = _inside(folder, modules["Transformer"])
    files = [folder / MODULES, _inside(folder, modules["Pooling"]) / "config.json", transformer / "config.json"]
    pooling = _read(files[1], dict)
    named = [name for name, used in pooling.items() if name.startswith("pooling_mode_") and used]
    chosen = [POOLINGS.get(name, name) for name in named] or [str(pooling.get("pooling_mode"))]
    if chosen not in (["mean"], ["cls"]):
        raise ExegesisError(f"model: must pool by the mean or the first token, got {excerpt(chosen)}. {LAYOUT}")
    limits = next(iter(sorted(transformer.glob("sentence_*_config.json"))), None)
    settings = {} if limits is None else _read(limits, dict)
    prompts = folder / "config_sentence_transformers.json"
    if settings.get("do_lower_case") or (prompts.is_file() and _read(prompts, dict).get("default_prompt_name")):
        raise ExegesisError(f"model: {excerpt(model)} changes texts before it reads them, which is not supported.")
    longest = settings.get("max_seq_length")
    if longest is not None and (type(longest) is not int or longest < 1):
        raise ExegesisError(f"model: max_seq_length must be a whole number of at least 1, got {excerpt(longest)}.")
    weights = sorted(transformer.glob("*.safetensors"))
    if not weights:
        raise ExegesisError(f"model: {excerpt(model)} holds no safetensors (pickle checkpoints are refused). {LAYOUT}")
    files += [*filter(None, [limits]), *sorted(transformer.glob("tokenizer*.json")), *weights]
    revision = hashlib.sha256("".join(map(file_sha256, files)).encode()).hexdigest()
    return EncoderLayout(transformer, chosen[0], "Normalize" in modules, longest, revision)


def load_encoder(model: str) -> Encoder:
    """Load a sentence encoder. Errors: those of `read_layout`; a family without an adapter."""
    layout = read_layout(model)
    adapter = adapter_for(read_base_config(layout.folder).get("model_type", ""), model)
    module = load_base(layout.folder, (), regression=True).eval().requires_grad_(False)
    device = runtime.device()
    classifier = TextClassifier(
        model, layout.revision, module.to(device), load_tokenizer(layout.folder), adapter, ("score",), True,
        torch.float32, device,
    )  # fmt: skip
    longest = min(filter(None, (layout.max_length, classifier.max_length)))
    return Encoder(classifier, layout.pooling, layout.normalized, longest)


def _inside(folder: Path, name: str) -> Path:
    path = (folder / name).resolve()
    if not path.is_relative_to(folder.resolve()):
        raise ExegesisError(f"model: {MODULES} names {excerpt(name)}, which is outside its folder. {LAYOUT}")
    return path


def _read(file: Path, kind: type) -> Any:
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise ExegesisError(f"model: {file.name} cannot be read ({type(error).__name__}). {LAYOUT}") from None
    if not isinstance(content, kind):
        raise ExegesisError(f"model: {file.name} must hold a JSON {JSON_NAMES[kind]}. {LAYOUT}")
    return content


def text_similarity(text: str, other: str, model: str = "minilm") -> TextSimilarity:
    """Return the similarity of two texts, with the relevance of each pair of their tokens.

    The similarity of vectors a and b is the sum over dimensions of a_h b_h. LRP (the rules of `attn_lrp`) distributes
    each a_h over the tokens of the first text, and each b_h over those of the second; the relevance of a pair is the
    sum over dimensions of the product of its shares. The lengths of the vectors are treated as constants, as in the
    source. For a model without nonlinearities, it is the second derivative times both inputs. Source: Eberle et al.
    (2022), Building and interpreting deep similarity models; Vasileiou and Eberle (2024), Explaining text similarity in
    transformer models.

    Errors: those of `load_encoder`; a text without a token.
    """
    for name, given in (("text", text), ("text_pair", other)):
        Example(given).check_length()
        if not given.strip():
            raise UsageError(f"{name}: must have at least one word, got none.")
    key = similarity_key(text, other, model)
    if (entry := result_store().get(key)) is not None:
        return _unpacked(*entry)
    with runtime.turn():
        encoder = load_encoder(model)
        computed = similarity_of(encoder, encoder.encode(text), encoder.encode(other))
    result_store().put(key, *_packed(computed))
    return computed


def similarity_key(text: str, other: str, model: str = "minilm") -> str:
    """Return the cache key of a similarity. Reads the model's files, never loads it."""
    return key_for(
        {
            "schema": SCHEMA,
            "kind": "similarity",
            "model": model,
            "revision": read_layout(model).revision,
            "rules": explainer("attn_lrp", "text").version,
            "device": runtime.device_type(),
            "texts": [text, other],
        }
    )


def similarity_of(encoder: Encoder, first: EncodedText, second: EncodedText) -> TextSimilarity:
    """Return the similarity of two tokenized texts. The caller must hold the device."""
    one, two = vector_relevance(encoder, first), vector_relevance(encoder, second)
    lengths = (max(float(np.linalg.norm(part.vector)), LEAST_LENGTH) for part in (one, two))
    scale = math.prod(lengths) if encoder.normalized else 1.0
    value = float(one.vector @ two.vector) / scale
    relevance = one.tokens.T @ two.tokens / scale
    tokens = one.tokens.sum(1), two.tokens.sum(1)
    rest = float(tokens[0] @ two.rest + one.rest @ tokens[1] + one.rest @ two.rest) / scale
    whole = max(abs(value), float(np.abs(relevance).sum()), abs(rest), 1e-3)
    gap = abs(value - float(relevance.sum()) - rest) / whole
    model = encoder.model
    return TextSimilarity(
        model.id, model.revision, first.tokens, second.tokens, value, relevance, rest,
        Check(CHECK, gap, conservation_limit(model.dtype)), (first.truncated, second.truncated),
    )  # fmt: skip


def vector_relevance(encoder: Encoder, encoded: EncodedText) -> VectorRelevance:
    """Distribute each dimension of a text's vector over its tokens, by the rules of AttnLRP."""
    parts = list(_relevance_in_parts(encoder, encoded))
    return VectorRelevance(*(np.concatenate(own) for own in zip(*parts, strict=True)))


def _relevance_in_parts(encoder: Encoder, encoded: EncodedText) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Yield vector, tokens and rest for a few dimensions at a time; each dimension is a row of a batch."""
    model = encoder.model
    for start in range(0, model.embedding.embedding_dim, DIMENSIONS_AT_ONCE):
        check_cancelled()
        dimensions = torch.arange(start, min(start + DIMENSIONS_AT_ONCE, model.embedding.embedding_dim))
        dimensions = dimensions.to(model.device)
        batch = model.collate([encoded] * len(dimensions))
        point = model.embed(batch).detach().requires_grad_()
        with lrp_rules(model.module, lrp_parts(model.adapter), len(dimensions)) as absorbed:
            chosen = encoder.vectors(batch, point).gather(1, dimensions[:, None])[:, 0]
            (slope,) = torch.autograd.grad(chosen.sum(), point)
            positions = sum(
                (as_float64((slope * added).sum((1, 2))) for added in absorbed.added), np.zeros(len(chosen))
            )
            rest = as_float64(absorbed.biases()) + as_float64(absorbed.softmax()) + positions
        yield as_float64(chosen), as_float64((point.detach() * slope).sum(-1)), rest


def _packed(one: TextSimilarity) -> tuple[Meta, Arrays]:
    plain = one.as_json()
    return {name: value for name, value in plain.items() if name != "relevance"}, {"relevance": one.relevance}


def _unpacked(meta: Meta, arrays: Arrays) -> TextSimilarity:
    plain: dict[str, Any] = dict(meta)
    for name in ("first", "second"):
        plain[name] = tuple(Token(**token) for token in plain[name])
    return TextSimilarity(
        **{
            **plain,
            "check": Check(**plain["check"]),
            "truncated": tuple(plain["truncated"]),
            "relevance": arrays["relevance"],
        }
    )
