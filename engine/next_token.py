"""The next token of a prompt: its distribution, and which models and prompts have one."""

from __future__ import annotations

import dataclasses
import functools
import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from cache import key_for, single_flight
from cache.codec import Arrays, Meta
from engine import runtime
from engine.errors import ExegesisError
from engine.heads.scaling import scaled_model
from engine.lazy import LazyModule, torch
from engine.models import catalog
from engine.progress import check_cancelled
from engine.request import DTYPES, PLAIN, HeadScales, Prompt
from engine.result import OTHERS, Prediction
from engine.store import result_store

if TYPE_CHECKING:
    from engine.models import causal, loading
else:  # they load transformers, which lists and links do not need
    causal, loading = LazyModule("engine.models.causal"), LazyModule("engine.models.loading")

VERSION = 1
"""Raised whenever the numbers change."""
MOST_TIMES = 100_000
"""The largest ratio of probabilities that is written as a number."""
MOST_GENERATED = 64
"""Maximum number of tokens of a generated text."""
TEMPLATE_FILE = "chat_template.jinja"


@dataclass(frozen=True)
class NamedToken:
    """A token that the prompt names. log_probability: in nats. rank: 1 for the most probable token.

    The difference of two log-probabilities of one prompt is that of the logits.
    """

    label: str
    log_probability: float
    rank: int

    @property
    def probability(self) -> float:
        """Probability of the token, from 0 to 1."""
        return math.exp(self.log_probability)


@dataclass(frozen=True)
class NextTokens:
    """The distribution of the token that follows a prompt.

    labels, probabilities: those of the most probable tokens in descending order, then one for all other tokens;
    probabilities sum to 1. entropy: that of the whole distribution in bits, from 0 to log2 of the vocabulary.
    vocabulary: number of tokens. target, contrast: tokens that the prompt names; target defaults to the most probable.
    """

    labels: tuple[str, ...]
    probabilities: tuple[float, ...]
    entropy: float
    vocabulary: int
    target: NamedToken
    contrast: NamedToken | None = None


def is_causal(model: str) -> bool:
    """Whether a model is a causal language model, by its config.json; False if that file is not on this machine."""
    try:
        return not catalog.queries_hub(model) and catalog.is_causal(model)
    except (ExegesisError, OSError, RuntimeError, TypeError, ValueError):
        return False  # reported once the model is used


def has_chat_template(model: str) -> bool:
    """Whether the tokenizer of a causal model has a chat template, by its files."""
    if not is_causal(model):
        return False
    folder = catalog.locate(model).tokenizer
    return (folder / TEMPLATE_FILE).is_file() or _config_has_template(folder / "tokenizer_config.json")


def _config_has_template(file: Path) -> bool:
    try:
        return _read_has_template(file, file.stat().st_mtime_ns)
    except (OSError, ValueError, RecursionError):
        return False


@functools.lru_cache(maxsize=64)
def _read_has_template(file: Path, changed: int) -> bool:
    content = json.loads(file.read_text(encoding="utf-8"))
    return isinstance(content, dict) and bool(content.get("chat_template"))


def token_count(model: str, text: str) -> int:
    """Return the number of tokens of a text on its own, for a causal language model. Loads the model."""
    with runtime.turn(lends=True):
        loaded = loading.load_model(model, DTYPES[0], runtime.device())
    assert isinstance(loaded, causal.CausalModel)
    return loaded.token_count(text)


def next_tokens_key(model: str, prompt: Prompt, heads: HeadScales = PLAIN) -> str:
    """Return the cache key of a distribution. Reads the model's files, never loads it."""
    prompt.check_length()
    return key_for(
        {
            "kind": "next_tokens",
            "version": VERSION,
            "model": model,
            "revision": catalog.revision(model),
            "device": runtime.device_type(),
            "example": prompt.as_plain(),
            **heads.keyed(),
        }
    )


def next_tokens(model: str, prompt: Prompt, heads: HeadScales = PLAIN) -> NextTokens:
    """Return the distribution of the token that follows a prompt, cached or computed. `heads`: scaled heads.

    Errors: those of the model and of `CausalModel.encode`; a target or contrast that is not a single token.
    """

    def compute() -> tuple[Meta, Arrays]:
        with runtime.turn(lends=True):
            return dataclasses.asdict(_compute(model, prompt, heads)), {}

    key = next_tokens_key(model, prompt, heads)
    meta, _, _ = single_flight(result_store(), key, compute, check=check_cancelled)
    contrast = meta["contrast"]
    return NextTokens(
        tuple(meta["labels"]), tuple(meta["probabilities"]), meta["entropy"], meta["vocabulary"],
        NamedToken(**meta["target"]), None if contrast is None else NamedToken(**contrast),
    )  # fmt: skip


def spacing_notes(model: str, prompt: Prompt, prediction: Prediction, heads: HeadScales = PLAIN) -> tuple[str, ...]:
    """Return a note for each token named without its leading space, if the token with the space is more probable.

    The probabilities are those of the prediction. With a contrast it has only two tokens; `next_tokens` is used then.
    """
    if not any(name and name[0].isalnum() for name in (prompt.target, prompt.contrast)):
        return ()
    if prediction.of_two_tokens:
        return spacing_notes_of(next_tokens(model, prompt, heads))
    assert prompt.target is not None
    shares = dict(zip(prediction.labels, prediction.probabilities, strict=True))
    if prompt.target not in shares:  # no token is the name alone, so it was read with the space
        return ()
    return tuple(_spacing_note("target", prompt.target, shares[prompt.target], shares))


def spacing_notes_of(tokens: NextTokens) -> tuple[str, ...]:
    """Return the notes of `spacing_notes` for a distribution."""
    named = {"target": tokens.target} | ({} if tokens.contrast is None else {"contrast": tokens.contrast})
    shares = dict(zip(tokens.labels, tokens.probabilities, strict=True))
    for other in (one.label for one in named.values()):
        shares.pop(other, None)  # a prompt that contrasts " are" with "are" means both
    return tuple(
        note
        for argument, one in named.items()
        for note in _spacing_note(argument, one.label, one.probability, shares)
    )  # fmt: skip


def _spacing_note(argument: str, name: str, share: float, shares: Mapping[str, float]) -> Iterator[str]:
    spaced = shares.get(f" {name}", 0.0)
    if name[:1].isalnum() and name != OTHERS and spaced > share:
        times = spaced / share if share else math.inf
        many = f"{float(f'{times:.2g}'):,g} times" if times < MOST_TIMES else f"more than {MOST_TIMES:,} times"
        yield (
            f"The {argument} {name!r} was read as the token without a space; {f' {name}'!r} is {many} as probable. Add "
            "a space if you mean the next word."
        )


def _compute(model: str, prompt: Prompt, heads: HeadScales) -> NextTokens:
    """Compute a distribution. The caller must hold the device."""
    loaded = loading.load_model(model, DTYPES[0], runtime.device())
    assert isinstance(loaded, causal.CausalModel)
    encoded = loaded.encode(dataclasses.replace(prompt, target=None, contrast=None))
    batch = loaded.collate([encoded])
    with scaled_model(loaded, heads), torch.inference_mode():
        logits = loaded.next_logits(batch)[0].double().cpu()
    log_shares = torch.log_softmax(logits, dim=-1)
    shares = log_shares.exp()
    # The classes of the prompt are those of the unscaled model; scaled heads may change their order.
    likely = sorted(encoded.candidates.tolist(), key=lambda token: -float(shares[token]))
    others = torch.ones_like(shares, dtype=torch.bool)
    others[likely] = False

    def named(token: int) -> NamedToken:
        [label] = loaded.token_labels([token])
        return NamedToken(label, float(log_shares[token]), int((log_shares > log_shares[token]).sum()) + 1)

    return NextTokens(
        labels=(*loaded.token_labels(likely), OTHERS),
        probabilities=(*shares[likely].tolist(), float(shares[others].sum())),
        entropy=max(0.0, -float((shares * log_shares).sum()) / math.log(2)),
        vocabulary=len(shares),
        target=named(likely[0] if prompt.target is None else loaded.token_id(prompt.target)),
        contrast=None if prompt.contrast is None else named(loaded.token_id(prompt.contrast, "contrast")),
    )
