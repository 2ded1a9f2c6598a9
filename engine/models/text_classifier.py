"""Text classifiers: tokens with character offsets, and padded batches with the same logits as single inputs."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from jaxtyping import Bool, Float, Int

from engine.errors import ExegesisError, UsageError, excerpt, panics_told, unknown
from engine.lazy import torch
from engine.models import sandbox
from engine.models.classifier import Classifier
from engine.models.past import Past
from engine.models.text_adapter import TextAdapter
from engine.removal_operators import OPERATORS
from engine.request import Example, Prompt
from engine.result import Token


@dataclass(frozen=True, eq=False)
class EncodedText:
    """One tokenized example. `truncated` counts the tokens that did not fit into the model."""

    kind: ClassVar[str] = "text"
    ids: Int[np.ndarray, "seq"]
    types: Int[np.ndarray, "seq"]
    tokens: tuple[Token, ...]
    truncated: int

    @cached_property
    def special(self) -> Bool[np.ndarray, "seq"]:
        return np.array([t.special for t in self.tokens], dtype=bool)

    @cached_property
    def features(self) -> Int[np.ndarray, "feature"]:
        """Positions of the tokens that may be removed and ranked."""
        return np.flatnonzero(~self.special)

    @cached_property
    def key(self) -> bytes:
        """Bytes that identify this input among all inputs of the same model."""
        return self.ids.tobytes() + self.types.tobytes()

    @property
    def cut_before(self) -> int:
        """Character offset at which the part that the model reads begins: 0, as a long text loses its end."""
        return 0

    @property
    def grid(self) -> None:
        """None: a text has no grid of patches."""
        return None

    def __len__(self) -> int:
        return len(self.ids)


@dataclass(frozen=True, eq=False)
class TextBatch:
    """Padded examples on a device. `visible` marks the positions that may be attended to.

    `whole`: every position of every row is visible, known without a transfer from the device. `past`: earlier positions
    that a causal model has read already; None if the rows begin with the batch.
    """

    ids: Int[torch.Tensor, "batch seq"]
    visible: Bool[torch.Tensor, "batch seq"]
    types: Int[torch.Tensor, "batch seq"]
    lengths: Int[torch.Tensor, "batch"]
    whole: bool
    past: Past | None = field(default=None, kw_only=True)

    def gather(self, places: Int[torch.Tensor, "batch place"]) -> TextBatch:
        """Return the positions at `places` of each row, in that order; lengths are unchanged."""
        return dataclasses.replace(self, **self._gathered(places))

    def _gathered(self, places: Int[torch.Tensor, "batch place"]) -> dict[str, Any]:
        """Return the fields that have one value per position, at those places."""
        return {name: getattr(self, name).gather(1, places) for name in ("ids", "visible", "types")}

    def first(self, count: int) -> TextBatch:
        """Return the first `count` positions of each row; every row must have as many."""
        places = torch.arange(count, device=self.ids.device).expand(len(self.ids), -1)
        return dataclasses.replace(self.gather(places), lengths=self.lengths.clamp(max=count), whole=True)

    def after(self, past: Past) -> TextBatch:
        """Return the positions of each row after the first `past.starts`."""
        places = past.following(self.lengths)
        rest = self.gather(places.clamp(max=self.ids.shape[1] - 1))
        visible = rest.visible & (places < self.lengths[:, None])
        return dataclasses.replace(rest, visible=visible, lengths=self.lengths - past.starts, whole=False, past=past)


def tokenize(
    tokenizer: Any, text: str | list[str], pair: str | list[str] | None, max_length: int | None = None, **options: Any
) -> Any:
    """Tokenize one or more texts, truncated to `max_length` from the longer text of a pair.

    Segments are always requested: not every checkpoint's tokenizer returns them by itself.
    """
    sandbox.check_tokenizing(tokenizer.name_or_path, text, pair)
    cut = {} if max_length is None else {"truncation": "longest_first", "max_length": max_length}
    with panics_told(f"tokenizer of {excerpt(tokenizer.name_or_path)}"):
        return tokenizer(text, pair, return_token_type_ids=True, verbose=False, **cut, **options)


def render_chat(tokenizer: Any, text: str) -> str:
    """Render a chat whose only turn is the text, up to the start of the model's answer.

    Transformers renders in Jinja's immutable sandbox, so a template cannot reach attributes that run code.
    """
    turns = [{"role": "user", "content": text}]
    return str(tokenizer.apply_chat_template(turns, tokenize=False, add_generation_prompt=True))


def encode_text(tokenizer: Any, example: Example, max_length: int | None, special: bool = True) -> EncodedText:
    """Tokenize one example, truncating the longer text first. Errors: nothing left to explain, or far too long.

    `max_length`: None to truncate nothing. `special`: whether the tokenizer adds its special tokens.
    """
    example.check_length()
    texts = (example.text, example.text_pair)
    options: dict[str, Any] = {"return_offsets_mapping": True, "add_special_tokens": special}
    full = out = tokenize(tokenizer, *texts, **options)
    if max_length is not None and len(full["input_ids"]) > max_length:
        out = tokenize(tokenizer, *texts, max_length, **options)
    tokens = _tokens(tokenizer, example, out)
    if all(t.special for t in tokens):
        raise UsageError("text: nothing to explain: it has no token that the model can read. Give at least one word.")
    ids = np.asarray(out["input_ids"], dtype=np.int64)
    types = np.asarray(out.get("token_type_ids") or [0] * len(ids), dtype=np.int64)
    return EncodedText(ids, types, tokens, len(full["input_ids"]) - len(ids))


def _tokens(tokenizer: Any, example: Example, out: Any) -> tuple[Token, ...]:
    names = tokenizer.convert_ids_to_tokens(out["input_ids"])
    texts = (example.text, example.text_pair or "")
    tokens = []
    for name, segment, (start, end) in zip(names, out.sequence_ids(0), out["offset_mapping"], strict=True):
        if segment is None:
            tokens.append(Token(name, 0, 0, -1, True))
            continue
        start, end = _strip_offsets(texts[segment], start, end)
        tokens.append(Token(texts[segment][start:end] or name, start, end, segment, False))
    return tuple(tokens)


def _strip_offsets(text: str, start: int, end: int) -> tuple[int, int]:
    """Strip white space from offsets: byte-level and Unigram tokenizers include the space before a word."""
    while start < end and text[start].isspace():
        start += 1
    while end > start and text[end - 1].isspace():
        end -= 1
    return start, end


def collate_texts(examples: Sequence[EncodedText], pad_id: int, device: torch.device) -> TextBatch:
    """Batch examples, padded on the right."""
    lengths = [len(example) for example in examples]
    widest = max(lengths)
    visible = np.arange(widest) < np.array(lengths)[:, None]
    return TextBatch(
        torch.from_numpy(pad_rows([example.ids for example in examples], pad_id)).to(device),
        torch.from_numpy(visible).to(device),
        torch.from_numpy(pad_rows([example.types for example in examples], 0)).to(device),
        torch.tensor(lengths, device=device),
        min(lengths) == widest,
    )


def pad_rows(rows: Sequence[Int[np.ndarray, "_"]], fill: int) -> Int[np.ndarray, "row width"]:
    """Stack rows, padded on the right with `fill`."""
    joined, lengths = np.concatenate(rows), [len(row) for row in rows]
    width = max(lengths)
    if len(joined) == len(rows) * width:
        return joined.reshape(len(rows), width)
    padded = np.full((len(rows), width), fill, dtype=joined.dtype)
    padded[np.arange(width) < np.array(lengths)[:, None]] = joined
    return padded


@dataclass(eq=False)
class TextClassifier(Classifier[Example, EncodedText, TextBatch]):
    """A loaded checkpoint, read-only and shared. Call it while holding the device."""

    kind: ClassVar[str] = "text"
    id: str
    revision: str
    module: torch.nn.Module
    tokenizer: Any
    adapter: TextAdapter
    labels: tuple[str, ...]
    regression: bool
    dtype: torch.dtype
    device: torch.device
    notes: tuple[str, ...] = ()
    memo: dict[Any, Any] = field(default_factory=dict)

    @cached_property
    def embedding(self) -> torch.nn.Embedding:
        return self.module.get_submodule(self.adapter.embeddings)  # type: ignore[return-value]

    @cached_property
    def blocks(self) -> torch.nn.ModuleList:
        return self.module.get_submodule(self.adapter.blocks)  # type: ignore[return-value]

    @cached_property
    def pad_id(self) -> int:
        for candidate in (self.tokenizer.pad_token_id, self.tokenizer.eos_token_id, 0):
            if candidate is not None:
                return int(candidate)
        raise AssertionError("unreachable: 0 is never None")

    @cached_property
    def mask_id(self) -> int:
        """Id of the token that represents removal: mask, else pad, else end of text."""
        mask = self.tokenizer.mask_token_id
        return self.pad_id if mask is None else int(mask)

    @cached_property
    def max_length(self) -> int:
        return self.adapter.longest_input(self.module.config, self.tokenizer)

    def encode(self, example: Example, max_length: int | None = None) -> EncodedText:
        """Tokenize one example. `max_length`: None for the model's maximum.

        Errors: as in `encode_text`; a token without an embedding; a prompt.
        """
        if isinstance(example, Prompt):
            raise UsageError(
                f"text: is a prompt, but {self.id} is a classifier and predicts no next token. Choose a causal "
                "language model, such as tiny-llama."
            )
        encoded = encode_text(self.tokenizer, example, max_length or self.max_length)
        self._check_ids(encoded)
        return encoded

    def _check_ids(self, encoded: EncodedText) -> None:
        largest = int(encoded.ids.max(initial=0))
        if largest >= self.embedding.num_embeddings:
            raise ExegesisError(
                f"model {self.id}: its tokenizer gives token {largest}, but it has {self.embedding.num_embeddings} "
                "embeddings. Save the matching tokenizer in its folder."
            )

    def collate(self, examples: Sequence[EncodedText]) -> TextBatch:
        return collate_texts(examples, self.pad_id, self.device)

    def embed(self, batch: TextBatch) -> Float[torch.Tensor, "batch seq d_model"]:
        """Word embeddings, before positions and segments are added."""
        return self.embedding(batch.ids)

    def removal_embedding(self, batch: TextBatch, operator: str) -> Float[torch.Tensor, "#batch #seq d_model"]:
        """Return the word embedding that represents removal. Errors: an unknown operator."""
        if operator in ("mask", "pad"):
            token = self.mask_id if operator == "mask" else self.pad_id
            return self.embedding(torch.tensor([[token]], device=self.device))
        if operator == "zero":
            return torch.zeros_like(self.embedding.weight[None, None, 0])
        if operator == "mean":
            return self._mean_embedding()[None, None]
        raise unknown("removal", operator, OPERATORS)

    def logits(
        self, batch: TextBatch, embeds: Float[torch.Tensor, "batch seq d_model"] | None = None
    ) -> Float[torch.Tensor, "batch label"]:
        """Logits of each row, equal to those of the row alone. `embeds`: replacements of the word embeddings."""
        inputs = self._inputs(batch, embeds)
        if self.adapter.reading == "module":
            return self.module(**inputs).logits
        hidden = self._hidden(inputs)
        if self.adapter.reading in ("last", "decoder"):
            if batch.whole:
                return self._head(hidden[:, -1])
            # By original length: the head of transformers would take the last id other than the pad id, or the last
            # column.
            return self._head(hidden[torch.arange(len(hidden), device=self.device), batch.lengths - 1])
        weights = batch.visible.to(hidden.dtype)[..., None]
        return self._head((hidden * weights).sum(1) / weights.sum(1).clamp(min=1))

    def hidden(
        self, batch: TextBatch, embeds: Float[torch.Tensor, "batch seq d_model"] | None = None
    ) -> Float[torch.Tensor, "batch seq d_model"]:
        return self._hidden(self._inputs(batch, embeds))

    def _inputs(self, batch: TextBatch, embeds: Float[torch.Tensor, "batch seq d_model"] | None) -> dict[str, Any]:
        inputs: dict[str, Any] = {
            "inputs_embeds": self.embed(batch) if embeds is None else embeds,
            "attention_mask": self._attention_mask(batch),
        }
        if self._needs_positions(batch):
            inputs["position_ids"] = self._positions(batch)
        if self.adapter.token_types:
            inputs["token_type_ids"] = batch.types
        if self.adapter.reading in ("last", "decoder"):
            inputs["use_cache"] = False
        if batch.past is not None:
            inputs["past_key_values"] = batch.past
        if self.adapter.reading == "decoder":
            inputs |= self._decoder_inputs(batch, inputs["inputs_embeds"])
        return inputs

    def _decoder_inputs(self, batch: TextBatch, embeds: Float[torch.Tensor, "batch seq d_model"]) -> dict[str, Any]:
        """Return the inputs of the decoder: its start token, then the encoder's tokens without the last."""
        config: Any = self.module.config
        start = self.embedding(torch.tensor([[config.decoder_start_token_id]], device=self.device))
        shifted = torch.cat([start.to(embeds.dtype).expand(len(embeds), 1, -1), embeds[:, :-1]], dim=1)
        if batch.whole:
            return {"decoder_inputs_embeds": shifted, "decoder_attention_mask": None}
        first = torch.ones_like(batch.visible[:, :1])
        mask = self._additive_mask(torch.cat([first, batch.visible[:, :-1]], dim=1), causal=True)
        return {"decoder_inputs_embeds": shifted, "decoder_attention_mask": mask}

    def _mean_embedding(self) -> Float[torch.Tensor, "d_model"]:
        weight = self.embedding.weight
        if "mean_embedding" not in self.memo:
            wide = torch.promote_types(weight.dtype, torch.float32)
            # Gemma's and BART's embeddings are scaled when they are looked up.
            scale = float(getattr(self.embedding, "scalar_embed_scale", getattr(self.embedding, "embed_scale", 1.0)))
            self.memo["mean_embedding"] = (weight.mean(0, dtype=wide) * scale).to(weight.dtype)
        return self.memo["mean_embedding"]

    def _needs_positions(self, batch: TextBatch) -> bool:
        """Whether to pass position ids. A causal model counts from 0 by itself, and would look for packed texts."""
        adapter = self.adapter
        if adapter.position_start is None or adapter.reading == "decoder":
            return False
        return not adapter.causal or adapter.position_start != 0 or batch.past is not None

    def _positions(self, batch: TextBatch) -> torch.Tensor:
        # Explicit, because RoBERTa would derive them from pad ids, which also represent removed tokens.
        first = self.adapter.first_position(self.module.config)
        count = torch.arange(batch.ids.shape[1], device=self.device)
        if batch.past is None:
            return (count + first)[None]  # shared by all rows, so that rotary embeddings are computed once
        # Padding repeats the last position: there may be no later one.
        return torch.minimum(count, batch.lengths[:, None] - 1) + batch.past.starts[:, None] + first

    def _attention_mask(self, batch: TextBatch) -> torch.Tensor | dict[str, torch.Tensor] | None:
        """Return an additive mask `[batch 1 query|1 key]`, or one per type of layer, or None if all is visible.

        A family with `plain_mask` gets a mask `[batch seq]` of 0 and 1.
        """
        if batch.whole and batch.past is None:
            return None
        if self.adapter.plain_mask:
            return batch.visible.long()
        config: Any = self.module.config
        causal, window = self.adapter.causal, getattr(config, "sliding_window", None)
        if self.adapter.masks_by_layer:
            return {
                "full_attention": self._additive_mask(batch.visible, causal, past=batch.past),
                "sliding_attention": self._additive_mask(batch.visible, causal, window, batch.past),
            }
        return self._additive_mask(batch.visible, causal, window if causal else None, batch.past)

    def _additive_mask(
        self, keys: Bool[torch.Tensor, "batch seq"], causal: bool, window: int | None = None, past: Past | None = None
    ) -> torch.Tensor:
        """Return an additive mask.

        `window`: in a causal model, the number of last positions that each position sees, including itself; in other
        models, the number to either side; None for all.
        """
        visible = keys[:, None, None, :]
        query = key = torch.arange(keys.shape[1], device=self.device)[None]
        if past is not None:
            query = key + past.starts[:, None]
            before = torch.arange(past.width, device=self.device).expand(len(query), -1)
            absent = before >= past.starts[:, None]
            key = torch.cat([before.masked_fill(absent, torch.iinfo(before.dtype).max), query], dim=1)
            visible = torch.cat([~absent, keys], dim=1)[:, None, None, :]
        query, key = query[:, None, :, None], key[:, None, None, :]
        if causal:
            visible = visible & ((key <= query) if window is None else (key <= query) & (key > query - window))
            # A position with nothing to attend to would attend uniformly, even to later ones, so it attends to itself.
            visible = visible | (~visible.any(-1, keepdim=True) & (key == query))
        elif window is not None:
            near = visible & ((query - key).abs() <= window)
            visible = near | (~near.any(-1, keepdim=True) & visible)  # padding far from the text, never read
        dtype = self.embedding.weight.dtype
        return torch.zeros(visible.shape, dtype=dtype, device=self.device).masked_fill(~visible, torch.finfo(dtype).min)

    def _head(self, vector: torch.Tensor) -> torch.Tensor:
        for name in self.adapter.head:
            vector = self.module.get_submodule(name)(vector)
        return vector

    def _hidden(self, inputs: dict[str, Any]) -> torch.Tensor:
        return self.module.get_submodule(self.adapter.backbone)(**inputs).last_hidden_state
