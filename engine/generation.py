"""Generated text: how a causal language model continues a prompt, and what each generated token depends on.

A given continuation can be explained in place of a generated text; its tokens are then treated as generated ones.

Each generated token is explained as the next token after the prompt and the tokens before it, which gives one row of a
matrix of steps x tokens. Context use: the probability of the whole generated text when one sentence of the prompt is
deleted. PECoRe asks the same question of contexts (Sarti et al., 2024, Quantifying the plausibility of context reliance
in neural machine translation).
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from cache import key_for, single_flight
from cache.codec import Arrays, Meta
from engine import runtime
from engine.errors import ExegesisError, UsageError, excerpt, not_allowed
from engine.explain import explain_many, key_of
from engine.lazy import torch
from engine.models.causal import CausalModel, EncodedPrompt
from engine.models.loading import load_model
from engine.models.past import GrowingPast, SharedPrefix
from engine.next_token import MOST_GENERATED, is_causal
from engine.passes import ChangedRows, in_passes
from engine.progress import check_cancelled
from engine.request import DTYPES, Prompt, Request
from engine.result import Explanation, Token, check_to_json, pack, unpack
from engine.store import result_store
from engine.word_units import Unit, units

VERSION = 1
"""Raised whenever the numbers change."""
HOTTEST = 10.0
"""The highest temperature of sampling."""


@dataclass(frozen=True)
class GenerationQuery:
    """A prompt to continue, and the method that explains each generated token.

    tokens: maximum number of generated tokens. seed: seed of sampling from the model's distribution; None decodes
    greedily. temperature: divisor of the logits before sampling. chat: whether the model responds to the prompt in its
    chat template. continuation: a text that is explained as if the model had generated it; tokens, seed and temperature
    then have no effect.
    """

    model: str
    prompt: str
    tokens: int = 8
    seed: int | None = None
    temperature: float = 1.0
    method: str = "attn_lrp"
    chat: bool = False
    continuation: str | None = None

    def __post_init__(self) -> None:
        if not 1 <= self.tokens <= MOST_GENERATED:
            raise not_allowed("tokens", f"a whole number from 1 to {MOST_GENERATED}", self.tokens)
        if self.seed is not None and self.seed < 0:
            raise not_allowed("seed", "a whole number of at least 0", self.seed)
        if not 0 < self.temperature <= HOTTEST:
            raise not_allowed("temperature", f"a number above 0 and up to {HOTTEST:g}", self.temperature)
        if self.continuation == "":
            raise UsageError("continuation: must have at least one token, got an empty text. Leave it out to generate.")
        if not is_causal(self.model):
            raise UsageError(
                f"model: {excerpt(self.model)} is no language model on this machine, so it continues no text. Choose "
                "one, such as tiny-llama."
            )

    @property
    def key(self) -> str:
        """The cache key of the generated text. Reads the model's files, never loads it."""
        explained = key_of(Request(self.model, self.method, self.step("")))
        own: dict[str, Any] = {"continuation": self.continuation}
        if self.continuation is None:
            own = {} if self.seed is None else {"seed": self.seed, "temperature": self.temperature}
            own["tokens"] = self.tokens
        return key_for({"kind": "generation", "version": VERSION, "explained": explained, **own})

    def step(self, generated: str, target: str | None = None) -> Prompt:
        """Return the prompt followed by the text generated so far; its next token is explained."""
        if self.chat:
            return Prompt(self.prompt, target=target, chat=True, response=generated)
        return Prompt(self.prompt + generated, target=target)


@dataclass(frozen=True)
class SentenceUse:
    """A sentence of the prompt, with its character offsets.

    log_probability: log-probability of the whole generated text if the sentence is deleted, in nats.
    """

    text: str
    start: int
    end: int
    log_probability: float

    @property
    def probability(self) -> float:
        """Probability of the generated text without the sentence, from 0 to 1."""
        return math.exp(self.log_probability)


@dataclass(frozen=True)
class GeneratedText:
    """A generated text. labels, log_probabilities: one for each token; the latter in nats, without temperature.

    ended: whether the model ended the text before the maximum number of tokens. explanations: one for each token.
    sentences: those of the prompt except the last one, which the generated text continues; in a chat, all of them.
    is_given: whether the text was given by the user, not generated by the model.
    """

    prompt: str
    text: str
    labels: tuple[str, ...]
    log_probabilities: tuple[float, ...]
    ended: bool
    sentences: tuple[SentenceUse, ...]
    explanations: tuple[Explanation, ...]
    chat: bool = False
    is_given: bool = False

    @property
    def log_probability(self) -> float:
        """Log-probability of the whole generated text given the prompt, in nats."""
        return math.fsum(self.log_probabilities)

    @property
    def probability(self) -> float:
        """Probability of the whole generated text, from 0 to 1."""
        return math.exp(self.log_probability)

    @property
    def probabilities(self) -> tuple[float, ...]:
        """Probability of each token, from 0 to 1."""
        return tuple(map(math.exp, self.log_probabilities))

    @property
    def tokens(self) -> tuple[Token, ...]:
        """Tokens of the prompt and all generated tokens except the last, on which no other token depends."""
        return self.explanations[-1].tokens

    @property
    def names(self) -> tuple[str, ...]:
        """Texts of `tokens`, the generated ones with their leading spaces."""
        prompt = self.explanations[0].tokens
        return (*(token.text for token in prompt), *self.labels[:-1])

    @property
    def relevance(self) -> Float[np.ndarray, "step token"]:
        """Scores of all tokens at each step; 0 for tokens that were not yet generated."""
        matrix = np.zeros((len(self.explanations), len(self.tokens)))
        for row, explanation in zip(matrix, self.explanations, strict=True):
            row[: len(explanation.scores)] = explanation.scores
        return matrix

    def links(self, count: int | None = None) -> list[tuple[int, int, float]]:
        """Return step, token and score of the links to tokens that are not special, largest first."""
        found = [
            (step, int(place), float(explanation.scores[place]))
            for step, explanation in enumerate(self.explanations)
            for place in explanation.features
        ]
        return sorted(found, key=lambda link: -abs(link[2]))[:count]

    @property
    def deciding(self) -> SentenceUse | None:
        """The sentence without which the generated text is least probable; None if no sentence can be deleted."""
        return min(self.sentences, key=lambda sentence: sentence.log_probability, default=None)

    def as_json(self) -> dict[str, Any]:
        """Return the whole result as JSON values."""
        origin = self.explanations[0].provenance
        return {
            "model": origin.model,
            "revision": origin.revision,
            "method": origin.method,
            "prompt": self.prompt,
            "chat": self.chat,
            "continuation" if self.is_given else "generated": self.text,
            "ended": self.ended,
            "log_probability": self.log_probability,
            "probability": self.probability,
            "tokens": list(self.names),
            "steps": [
                {
                    "token": label,
                    "log_probability": value,
                    "evaluations": one.evaluations,
                    "check": None if one.check is None else check_to_json(one.check),
                    "notes": list(one.remarks),
                    "scores": one.scores.tolist(),
                }
                for label, value, one in zip(self.labels, self.log_probabilities, self.explanations, strict=True)
            ],
            "sentences": [{**asdict(one), "probability": one.probability} for one in self.sentences],
        }


def generate_text(query: GenerationQuery) -> GeneratedText:
    """Continue a prompt, or take the query's continuation, and explain each of its tokens. Cached.

    Errors: as in `explain`; a prompt that leaves no room in the model's context; a model that ends the text at once; a
    text that is tokenized differently from the generated tokens; a continuation of too many tokens.
    """

    def compute() -> tuple[Meta, Arrays]:
        with runtime.turn(lends=True):
            meta, requests = _generate(query)
        packed = [pack(one) for one in explain_many(requests)]
        arrays = {str(step): own["scores"] for step, (_, own) in enumerate(packed)}
        return {**meta, "explanations": [own for own, _ in packed]}, arrays

    meta, arrays, _ = single_flight(result_store(), query.key, compute, check=check_cancelled)
    return GeneratedText(
        query.prompt, meta["text"], tuple(meta["labels"]), tuple(meta["log_probabilities"]), meta["ended"],
        tuple(SentenceUse(**one) for one in meta["sentences"]),
        tuple(unpack(one, {"scores": arrays[str(step)]}) for step, one in enumerate(meta["explanations"])),
        query.chat, query.continuation is not None,
    )  # fmt: skip


def _generate(query: GenerationQuery) -> tuple[dict[str, Any], list[Request]]:
    """Return the generated text with its probabilities, and a request per token. The caller must hold the device."""
    model = load_model(query.model, DTYPES[0], runtime.device())
    assert isinstance(model, CausalModel)
    encoded = model.encode(query.step(""))
    if query.continuation is None:
        _check_room(model, encoded, query.tokens)
        generated, ended = continue_tokens(model, encoded.ids, query)
    else:
        generated, ended = _continuation_tokens(model, encoded, query), False
    texts = _texts(model, query, encoded.ids, generated)
    labels = [model.token_text(token) for token in generated]
    sentences = removable_sentences(encoded, query)
    rows = [encoded.ids, *(np.delete(encoded.ids, sentence.tokens) for sentence in sentences)]
    whole, *without = log_probabilities(model, rows, generated)
    meta = {
        "text": texts[-1],
        "labels": labels,
        "log_probabilities": whole.tolist(),
        "ended": ended,
        "sentences": [
            {"text": one.text, "start": one.start, "end": one.end, "log_probability": math.fsum(row)}
            for one, row in zip(sentences, without, strict=True)
        ],
    }
    steps = zip(texts[:-1], labels, strict=True)
    return meta, [Request(query.model, query.method, query.step(text, label)) for text, label in steps]


def continue_tokens(model: CausalModel, ids: Int[np.ndarray, "seq"], query: GenerationQuery) -> tuple[list[int], bool]:
    """Return the generated tokens, and whether the model ended the text; the end token is left out.

    Each step after the first reads only the last token: keys and values of earlier tokens are cached. Errors: the model
    ends the text at once.
    """
    random = None if query.seed is None else np.random.default_rng(query.seed)
    ends = _end_tokens(model)
    generated: list[int] = []
    past = GrowingPast(1, model.device)
    while len(generated) < query.tokens:
        check_cancelled()
        unread = np.append(ids, generated).astype(np.int64)[past.width :]
        with torch.inference_mode():
            batch = dataclasses.replace(model.collate([_as_prompt(unread)]), past=past)
            logits = model.next_logits(batch)[0].double().cpu()
        if random is None:
            token = int(logits.argmax())
        else:
            token = int(random.choice(len(logits), p=torch.softmax(logits / query.temperature, 0).numpy()))
        if token in ends:
            break
        generated.append(token)
    if not generated:
        raise UsageError(f"prompt: {query.model} ends the text at once, so nothing is generated. Change the prompt.")
    return generated, len(generated) < query.tokens


def _check_room(model: CausalModel, encoded: EncodedPrompt, following: int) -> None:
    """Refuse a prompt that does not fit into the model's context together with the `following` tokens."""
    length = len(encoded) + encoded.truncated
    if length + following > model.max_length:
        raise UsageError(
            f"prompt: {model.id} reads at most {model.max_length} tokens, but the prompt has {length} and {following} "
            "are to follow. Shorten the prompt, or let fewer tokens follow."
        )


def _continuation_tokens(model: CausalModel, encoded: EncodedPrompt, query: GenerationQuery) -> list[int]:
    """Return the tokens of the continuation. Errors: too many; the first one merges with the prompt's last token."""
    whole = model.encode(query.step(str(query.continuation)))
    start = len(encoded)
    count = len(whole) + whole.truncated - start - encoded.truncated
    if count > MOST_GENERATED:
        raise UsageError(
            f"continuation: has {count:,} tokens of {model.id}, but at most {MOST_GENERATED} are explained. Shorten "
            "it, or put its start at the end of the prompt."
        )
    _check_room(model, encoded, count)
    if count < 1 or not np.array_equal(whole.ids[:start], encoded.ids):
        raise UsageError(
            f"continuation: {model.id} reads its start as part of the prompt's last token. Begin it where a token "
            "begins, as a rule with a space, and let the prompt end without one."
        )
    return [int(token) for token in whole.ids[start:]]


def _end_tokens(model: CausalModel) -> set[int]:
    settings: Any = model.module.generation_config
    ends = settings.eos_token_id
    return set() if ends is None else {ends} if isinstance(ends, int) else set(ends)


def _as_prompt(ids: Int[np.ndarray, "seq"]) -> EncodedPrompt:
    """Wrap tokens as an encoded prompt without classes."""
    return EncodedPrompt(ids, np.zeros_like(ids), (), 0, np.zeros(1, dtype=np.int64), False, None, ())


def _texts(
    model: CausalModel, query: GenerationQuery, ids: Int[np.ndarray, "seq"], generated: Sequence[int]
) -> list[str]:
    """Return the generated text after each step, from no token to all tokens.

    Errors: a text is tokenized differently from the generated tokens, or a token has the same text as another one.
    """

    def decoded(tokens: Sequence[int]) -> str:
        return str(model.tokenizer.decode([*ids.tolist(), *tokens], clean_up_tokenization_spaces=False))

    start = len(decoded([]))
    texts = [decoded(generated[:count])[start:] for count in range(len(generated) + 1)]
    for step, token in enumerate(generated):
        same = np.array_equal(model.encode(query.step(texts[step])).ids, [*ids, *generated[:step]])
        if not same or not _is_named(model, token):
            fewer = f"Generate at most {step} tokens, or sample" if step else "Sample"
            remedy = f"{fewer} with another seed." if query.continuation is None else "Change the continuation there."
            raise ExegesisError(
                f"model {model.id}: reads the text with other tokens than those after the prompt, from token "
                f"{step + 1} on ({excerpt(model.token_text(token))}), so they cannot be explained. {remedy}"
            )
    return texts


def _is_named(model: CausalModel, token: int) -> bool:
    """Whether the text of a token identifies it, as needed for the target of an explanation."""
    try:
        return model.token_id(model.token_text(token)) == token
    except UsageError:
        return False


def removable_sentences(encoded: EncodedPrompt, query: GenerationQuery) -> list[Unit]:
    """Return the sentences of a prompt but the last one, which a generated text continues; in a chat, all of them."""
    drawn = units(encoded.tokens, np.zeros(len(encoded)), query.step(""), "sentence")
    sentences = [unit for unit in drawn if not unit.special and not unit.blank]
    return sentences if query.chat else sentences[:-1]


def log_probabilities(
    model: CausalModel, prompts: Sequence[Int[np.ndarray, "_"]], generated: Sequence[int]
) -> Float[np.ndarray, "prompt generated"]:
    """Return the log-probability of each generated token after each prompt and the tokens before it, in nats.

    Each prompt is one row of a pass, regardless of the number of generated tokens. A prefix that a prompt shares with
    the first one is read once. The caller must hold the device.
    """
    rows = [_as_prompt(np.append(prompt, generated).astype(np.int64)) for prompt in prompts]
    lengths = np.array([len(row) for row in rows])
    shared = np.array([_shared_start(rows[0].ids, row.ids) for row in rows])
    # The first generated token is predicted at the position before it.
    changed = ChangedRows(np.zeros_like(lengths), np.minimum(shared, lengths - len(generated) - 1), lengths)

    def compute(part: Int[np.ndarray, "_"], past: SharedPrefix | None) -> np.ndarray:
        whole = model.collate([rows[at] for at in part])
        with torch.inference_mode():
            batch = whole if past is None else whole.after(past)
            return np.asarray(model.continuation_log_probabilities(batch, len(generated)).double().cpu())

    return in_passes(model, rows[:1], changed, compute)


def _shared_start(one: Int[np.ndarray, "_"], other: Int[np.ndarray, "_"]) -> int:
    """Return the length of the common prefix."""
    size = min(len(one), len(other))
    differ = one[:size] != other[:size]
    return int(differ.argmax()) if differ.any() else size
