"""Causal language models as classifiers whose classes are tokens.

A prompt fixes its *candidates*, the tokens that are its classes. Without a contrast, these are the most probable next
tokens, with one more class for all others, so the softmax over the classes equals that over the vocabulary. With a
contrast, they are the target and the contrast, with the logits (logit of the target - logit of the contrast, 0): the
difference of the logits is explained (Yin and Neubig, 2022, Interpreting language models with contrastive explanations,
section 3).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from engine.errors import ExegesisError, UsageError, excerpt
from engine.lazy import torch
from engine.models import sandbox
from engine.models.attention import unscaled_heads
from engine.models.classifier import NO_CLASS, select_class
from engine.models.text_classifier import (
    EncodedText,
    TextBatch,
    TextClassifier,
    collate_texts,
    encode_text,
    pad_rows,
    render_chat,
    tokenize,
)
from engine.request import Example, Prompt
from engine.result import OTHERS, Prediction, Token

CANDIDATES = 20
"""Number of tokens that are classes of a prompt without a contrast."""
REMEMBERED = 4096
"""Number of prompts whose most probable tokens are memoized."""
MARK = "\N{OBJECT REPLACEMENT CHARACTER}"
"""Placeholder for the text, used to split a rendered chat template."""


@dataclass(frozen=True, eq=False)
class EncodedPrompt(EncodedText):
    """A tokenized prompt with its classes.

    candidates: the token of each class; with a contrast, the target and the contrast. target: the index of the class
    that the prompt names, None for the predicted one. labels: names of the classes, the unmodified token texts.
    """

    candidates: Int[np.ndarray, "candidate"]
    contrast: bool
    target: int | None
    labels: tuple[str, ...]

    @property
    def cut_before(self) -> int:
        """Character offset at which the part that the model reads begins; a long prompt loses its first tokens."""
        return min(token.start for token in self.tokens if not token.special) if self.truncated else 0

    @cached_property
    def key(self) -> bytes:
        return b"|".join((self.ids.tobytes(), self.candidates.tobytes(), bytes([self.contrast])))


@dataclass(frozen=True, eq=False)
class PromptBatch(TextBatch):
    """Padded prompts. `prompts`: the encoded prompts, with the classes of each row."""

    prompts: Sequence[EncodedPrompt]


@dataclass(eq=False)
class CausalModel(TextClassifier):
    """A causal language model. `labels` is empty: the classes are those of the prompt (`EncodedPrompt.labels`).

    reference: the module whose most probable tokens are a prompt's candidates. A copy with other weights keeps it, so
    that the classes of a prompt are those of the original model.
    """

    reference: torch.nn.Module | None = None

    def __post_init__(self) -> None:
        self.reference = self.module if self.reference is None else self.reference

    @property
    def vocabulary(self) -> int:
        """Number of tokens that the model can predict."""
        head: Any = self.module.get_submodule(self.adapter.head[-1])
        return int(head.weight.shape[0])

    def encode(self, example: Example, max_length: int | None = None) -> EncodedPrompt:
        """Tokenize a prompt and fix its classes. A plain example is a prompt without target and contrast.

        A prompt longer than `max_length` (None for the model's context) loses its first tokens. Errors: as
        `TextClassifier.encode`; a target or contrast that is not one token; a chat template that is missing or fails.
        """
        prompt = example if isinstance(example, Prompt) else Prompt(example.text, example.text_pair)
        limit = max_length or self.max_length
        encoded = self._tokenize(prompt, limit)
        self._check_ids(encoded)
        original = encoded if prompt.of is None else self._tokenize(dataclasses.replace(prompt, text=prompt.of), limit)
        ids, target = self._candidates(prompt, original)
        contrast = prompt.contrast is not None
        labels = self.token_labels(ids, target) if contrast else (*self.token_labels(ids, target), OTHERS)
        return EncodedPrompt(
            encoded.ids, encoded.types, encoded.tokens, encoded.truncated, np.array(ids), contrast, target, labels
        )

    def collate(self, examples: Sequence[EncodedText]) -> PromptBatch:
        plain = collate_texts(examples, self.pad_id, self.device)
        return PromptBatch(**vars(plain), prompts=[_as_prompt(example) for example in examples])

    def logits(
        self, batch: TextBatch, embeds: Float[torch.Tensor, "batch seq d_model"] | None = None
    ) -> Float[torch.Tensor, "batch label"]:
        """Logits of the prompts' classes, at least in single precision.

        A prompt with a contrast has two classes; its row is padded if prompts without a contrast share the batch.
        """
        assert isinstance(batch, PromptBatch)
        return reduce_logits(self.next_logits(batch, embeds), batch.prompts)

    def target_logits(
        self,
        batch: TextBatch,
        targets: Sequence[int],
        embeds: Float[torch.Tensor, "batch seq d_model"] | None = None,
    ) -> Float[torch.Tensor, "batch"]:
        assert isinstance(batch, PromptBatch)
        return select_logits(self.next_logits(batch, embeds), batch.prompts, targets)

    def next_logits(
        self, batch: TextBatch, embeds: Float[torch.Tensor, "batch seq d_model"] | None = None
    ) -> Float[torch.Tensor, "batch vocabulary"]:
        """Logits of the token that follows each row, over the whole vocabulary."""
        return self._capped(super().logits(batch, embeds))

    def next_logits_within(
        self, hidden: Float[torch.Tensor, "batch seq d_model"], batch: PromptBatch
    ) -> Float[torch.Tensor, "batch vocabulary"]:
        """As `next_logits`, for prompts that equal or are prefixes of the rows of a pass. `hidden`: of those rows."""
        last = hidden[torch.arange(len(hidden), device=self.device), batch.lengths - 1]
        return self._capped(self._head(last))

    def continuation_log_probabilities(self, batch: TextBatch, count: int) -> Float[torch.Tensor, "batch {count}"]:
        """Log-probability of each of the last `count` tokens of each row, given all tokens before it, in nats."""
        places = batch.lengths[:, None] - count + torch.arange(count, device=self.device)
        rows = torch.arange(len(places), device=self.device)[:, None]
        logits = self._capped(self._head(self.hidden(batch)[rows, places - 1]))
        wide = logits.to(torch.promote_types(logits.dtype, torch.float32))
        return torch.log_softmax(wide, dim=-1).gather(-1, batch.ids[rows, places][..., None])[..., 0]

    def _capped(self, logits: torch.Tensor) -> torch.Tensor:
        cap = getattr(self.module.config, "final_logit_softcapping", None)
        return logits if cap is None else torch.tanh(logits / cap) * cap

    def labels_of(self, encoded: EncodedText) -> tuple[str, ...]:
        return _as_prompt(encoded).labels

    def target_index(self, target: int | str | None, prediction: Prediction, encoded: EncodedText) -> int:
        """Return the class to explain, by default the prompt's target. Errors: the contrast, whose logit is 0."""
        prompt = _as_prompt(encoded)
        if target is None and prompt.target is not None:
            return prompt.target
        index = super().target_index(target, prediction, encoded)
        if prompt.contrast and index == 1:
            raise UsageError(
                f"target: {prediction.labels[1]!r} is the contrast, which the target is compared with. Swap the two to "
                "explain it."
            )
        return index

    def token_text(self, token: int) -> str:
        """Return a token's text with its leading space, or its vocabulary name if it is only part of a character."""
        name = self.tokenizer.convert_ids_to_tokens(token)
        if name is None:
            return f"token {token}"
        if "\N{LOWER ONE EIGHTH BLOCK}" in name:  # SentencePiece's space, which decoding drops from a first token
            return str(name.replace("\N{LOWER ONE EIGHTH BLOCK}", " "))
        text = self.tokenizer.decode([token], clean_up_tokenization_spaces=False)
        return str(name if not text or "\N{REPLACEMENT CHARACTER}" in text else text)

    def token_labels(self, tokens: Sequence[int], first: int | None = None) -> tuple[str, ...]:
        """Return distinct names of tokens: their texts, followed by the token's id if the name is taken.

        `OTHERS` is taken from the start. `first`: index of the token that gets its text before all others.
        """
        texts = [self.token_text(token) for token in tokens]
        owner = {text: at for at, text in reversed(list(enumerate(texts)))} | {OTHERS: None}
        if first is not None:
            owner[texts[first]] = first
        return tuple(
            text if owner[text] == at else f"{text} ({token})"
            for at, (text, token) in enumerate(zip(texts, tokens, strict=True))
        )

    def token_id(self, text: str, argument: str = "target") -> int:
        """Return the id of the token with this text, or else with a space before it ("are" may name " are").

        `argument`: its name in errors. Errors: the text is not exactly one token.
        """
        for name in (text, f" {text}"):
            if (token := self._token_of(name)) is not None:
                return token
        written = tokenize(self.tokenizer, text, None, add_special_tokens=False)["input_ids"]
        raise UsageError(self._no_token(argument, text, [int(i) for i in written]))

    def token_count(self, text: str) -> int:
        """Return the number of tokens of a text, without special tokens."""
        return len(tokenize(self.tokenizer, text, None, add_special_tokens=False)["input_ids"])

    def _token_of(self, text: str) -> int | None:
        """Return the id of the token with exactly this text, or None."""
        names = (text.replace(" ", "\N{LOWER ONE EIGHTH BLOCK}"), text)
        known = [self.tokenizer.convert_tokens_to_ids(name) for name in names]
        written = [int(i) for i in tokenize(self.tokenizer, text, None, add_special_tokens=False)["input_ids"]]
        single = [written[0]] if len(written) == 1 else []
        for token in (*known, *single):
            if token is not None and self.token_text(token) == text:
                return int(token)
        return None

    def _no_token(self, argument: str, text: str, written: Sequence[int]) -> str:
        parts = [self.token_text(token) for token in written]
        what = f"{argument}: must be one token of {self.id}, got {excerpt(text)}"
        if len(parts) == 1:
            return f"{what}, which it reads as {parts[0]!r}. Name that."
        if not parts:
            return f"{what}, which it cannot read. Name one of its most probable next tokens."
        pieces = ", ".join(map(repr, parts))
        later = "To explain a later one, put those before it at the end of the prompt."
        if argument == "target":
            later = "To explain them all: exegesis generate --continuation."
        return f"{what}, which is {len(parts)} tokens ({pieces}). Name the first, {parts[0]!r}. {later}"

    def _tokenize(self, prompt: Prompt, max_length: int) -> EncodedText:
        """Tokenize a prompt, in its chat template if requested, without the first tokens that exceed the context."""
        prompt.check_length()
        before, text, after = self._in_template(prompt.text) if prompt.chat else ("", prompt.text, "")
        rendered = before + text + after
        full = encode_text(self.tokenizer, Example(rendered + prompt.response), None, special=not prompt.chat)
        tokens = full.tokens
        if prompt.chat:
            tokens = tuple(
                _without_template(token, prompt.text, text, len(before))
                if token.special or token.end <= len(rendered)
                else Token(token.text, max(0, token.start - len(rendered)), token.end - len(rendered), 1, False)
                for token in tokens
            )
        features = [at for at, token in enumerate(tokens) if not token.special]
        if not features:
            raise UsageError("text: nothing to explain: it has no token that the model can read. Give a prompt.")
        cut = max(0, len(tokens) - max_length)
        if cut >= len(features):
            raise UsageError(
                f"text: the chat template of {self.id} alone has {len(tokens) - len(features)} tokens, but at most "
                f"{max_length} are read. Explain it without the template."
            )
        stays = np.ones(len(tokens), dtype=bool)
        stays[features[:cut]] = False
        left = tuple(token for token, stay in zip(tokens, stays, strict=True) if stay)
        return EncodedText(full.ids[stays], full.types[stays], left, cut)

    def _in_template(self, text: str) -> tuple[str, str, str]:
        """Split the rendered chat template into the part before the user's text, the text, and the part after it."""
        if not getattr(self.tokenizer, "chat_template", None):
            raise UsageError(f"chat: {self.id} has no chat template. Explain the prompt as it is.")
        before, found, after = self._render(MARK).partition(MARK)
        rendered = self._render(text)
        inside = rendered[len(before) : len(rendered) - len(after)]
        if not found or rendered != before + inside + after or inside not in text:
            raise ExegesisError(
                f"model {self.id}: its chat template changes the text, so that its tokens are not those of the "
                "text. Explain the prompt without it."
            )
        return before, inside, after

    def _render(self, text: str) -> str:
        sandbox.check_rendering(self.tokenizer.name_or_path, text)
        try:
            return render_chat(self.tokenizer, text)
        except Exception as error:  # whatever a template raises
            raise ExegesisError(
                f"model {self.id}: its chat template fails ({type(error).__name__}: {excerpt(str(error), 200)}). "
                "Explain the prompt without it."
            ) from error

    def _candidates(self, prompt: Prompt, encoded: EncodedText) -> tuple[list[int], int | None]:
        """Return the tokens of the classes, and the index of the target among them (None for the predicted one)."""
        target = None if prompt.target is None else self.token_id(prompt.target)
        if prompt.contrast is not None:
            contrast = self.token_id(prompt.contrast, "contrast")
            target = self.most_probable(encoded)[0] if target is None else target
            if target == contrast:
                raise UsageError(
                    f"contrast: {prompt.contrast!r} is the target itself, the most probable next token. Name a target, "
                    "or another contrast."
                )
            return [target, contrast], 0
        likely = self.most_probable(encoded)
        if target is None:
            return likely, None
        if target not in likely:
            likely = [*likely[:-1], target]
        return likely, likely.index(target)

    def most_probable(self, encoded: EncodedText) -> list[int]:
        """Return the original model's most probable next tokens, in descending order; at least one is left out."""
        memo: dict[bytes, list[int]] = self.memo.setdefault("most probable", {})
        key = encoded.ids.tobytes()
        if key not in memo:
            if len(memo) >= REMEMBERED:
                memo.clear()
            assert self.reference is not None
            original = dataclasses.replace(self, module=self.reference, memo={})
            with torch.inference_mode(), unscaled_heads():
                logits = original.next_logits(collate_texts([encoded], self.pad_id, self.device))[0]
            falling = np.argsort(-logits.double().cpu().numpy(), kind="stable")  # ties in the order of the vocabulary
            memo[key] = falling[: min(CANDIDATES, len(falling) - 1)].tolist()
        return list(memo[key])


def reduce_logits(
    logits: Float[torch.Tensor, "batch vocabulary"], prompts: Sequence[EncodedPrompt]
) -> Float[torch.Tensor, "batch label"]:
    """Return the logits of the classes: the candidates and all other tokens, or (difference, 0) for a contrast."""
    wide = logits.to(torch.promote_types(logits.dtype, torch.float32))
    candidates = torch.from_numpy(pad_rows([prompt.candidates for prompt in prompts], -1)).to(logits.device)
    contrast = [prompt.contrast for prompt in prompts]
    if not any(contrast):
        return torch.cat([wide.gather(1, candidates), _others(wide, candidates)], dim=1)
    first, second = wide.gather(1, candidates[:, :2]).unbind(1)
    difference = torch.stack([first - second, torch.zeros_like(first)], dim=1)
    if all(contrast):
        return difference
    # Padding, which only rows with a contrast have, is replaced by the first candidate.
    present = torch.where(candidates >= 0, candidates, candidates[:, :1])
    reduced = torch.cat([wide.gather(1, present), _others(wide, present)], dim=1)
    padded = torch.nn.functional.pad(difference, (0, reduced.shape[1] - 2), value=NO_CLASS)
    return torch.where(torch.tensor(contrast, device=logits.device)[:, None], padded, reduced)


def select_logits(
    logits: Float[torch.Tensor, "batch vocabulary"], prompts: Sequence[EncodedPrompt], targets: Sequence[int]
) -> Float[torch.Tensor, "batch"]:
    """Return one class's logit of each row, as in `reduce_logits`, reading only its token if all are candidates."""
    if any(prompt.contrast or at == len(prompt.candidates) for prompt, at in zip(prompts, targets, strict=True)):
        return select_class(reduce_logits(logits, prompts), targets)
    own = select_class(logits, [int(prompt.candidates[at]) for prompt, at in zip(prompts, targets, strict=True)])
    return own.to(torch.promote_types(own.dtype, torch.float32))


def _others(
    logits: Float[torch.Tensor, "batch vocabulary"], candidates: Int[torch.Tensor, "batch candidate"]
) -> Float[torch.Tensor, "batch 1"]:
    """Return the joint logit of all other tokens."""
    return torch.logsumexp(logits.scatter(1, candidates, -torch.inf), dim=1, keepdim=True)


def _as_prompt(encoded: EncodedText) -> EncodedPrompt:
    assert isinstance(encoded, EncodedPrompt), "a causal model's inputs are encoded by the model itself"
    return encoded


def _without_template(token: Token, text: str, inside: str, before: int) -> Token:
    """Convert a token of a rendered prompt to a token of the text, or to a special one if it is of the template.

    `inside`: the text as the template renders it, which starts at the offset `before`.
    """
    end = before + len(inside)
    # A token of white space has been stripped to zero width, at the offset where it ended.
    if token.special or token.end <= before or (token.start >= end and not token.start == token.end == end):
        return Token(token.text, 0, 0, -1, True)
    offset = text.find(inside) - before
    start, stop = max(token.start, before) + offset, min(token.end, end) + offset
    return Token(text[start:stop] or token.text, start, stop, 0, False)
