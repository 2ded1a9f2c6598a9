"""Adapters of families of text models: architecture differences as data, never as code."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

Reading = Literal["module", "last", "mean", "decoder"]
UNLIMITED = 10**6
"""Tokenizers without a limit have a larger maximum length."""


@dataclass(frozen=True)
class LrpParts:
    """Modules to which AttnLRP's rules apply, by the last part of their names. For ReLU, the gradient is the rule.

    added: modules whose output is added to the embeddings. between: pairs of modules with a functional activation
    between them. gated: a pair of names; in a module that has the first, the input of the second is a product.
    norm_shift: added to the weights of RMSNorms, which Gemma stores as their distance to 1.
    """

    norms: tuple[str, ...]
    activations: tuple[str, ...]
    added: tuple[str, ...] = ()
    between: tuple[tuple[str, str], ...] = ()
    gated: tuple[str, str] | None = None
    norm_shift: float = 0.0


@dataclass(frozen=True)
class TextAdapter:
    """A family of text models. Paths are dotted names inside the module.

    reading: how the sentence vector is computed. `module`: by the module's own head, from its first token; `last`: the
    last original position, then `head`; `mean`: the mean over visible positions, then `head`; `decoder`: the last
    position of a decoder that reads the encoder and the same tokens, shifted by one, then `head`.
    norm: a LayerNorm after the last block, if the family has one.
    position_start: the id of the first position, or None if positions are relative.
    lrp: None for a family that AttnLRP's rules do not cover; `lrp_missing` then names the part that has no rule.
    attention: transformers' name of an attention implementation that is correct for the family. masks_by_layer: whether
    layers with a sliding window get their own mask. plain_mask: whether the module takes only `[batch seq]` masks.
    pooling: the entry of config.json that says `cls` or `mean`, if checkpoints differ. shared_blocks: whether all
    blocks have the same weights.
    """

    family: str
    architecture: str
    backbone: str
    embeddings: str
    blocks: str
    head: tuple[str, ...]
    lrp: LrpParts | None
    norm: str | None = None
    reading: Reading = "module"
    causal: bool = False
    token_types: bool = False
    position_start: int | Literal["after_pad"] | None = 0
    attention: str = "sdpa"
    masks_by_layer: bool = False
    lora_targets: tuple[str, ...] = ()
    lrp_missing: str = ""
    plain_mask: bool = False
    pooling: str = ""
    shared_blocks: bool = False
    tokens_read: ClassVar[int] = 1
    """Number of first tokens that the head reads if `reading` is `module`."""

    @property
    def after_blocks(self) -> tuple[str, ...]:
        """Paths of the modules with weights after the last block."""
        return self.head if self.norm is None else (self.norm, *self.head)

    def configured(self, config: Mapping[str, Any]) -> TextAdapter:
        """Return the adapter of a checkpoint; its config.json may choose mean pooling instead of the first token."""
        return replace(self, reading="mean") if self.pooling and config.get(self.pooling) == "mean" else self

    def first_position(self, config: Any) -> int:
        """Return the id of the first position, given a checkpoint's config."""
        return int(config.pad_token_id) + 1 if self.position_start == "after_pad" else int(self.position_start or 0)

    def longest_input(self, config: Any, tokenizer: Any) -> int:
        """Return the maximum number of tokens, by the tokenizer and the absolute positions; 512 if unlimited."""
        limits = [tokenizer.model_max_length]
        if self.position_start is not None:
            limits.append(config.max_position_embeddings - self.first_position(config))
        return int(min(limits)) if min(limits) < UNLIMITED else 512
