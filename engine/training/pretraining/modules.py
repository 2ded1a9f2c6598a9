"""New models with the head that their pre-training needs, and how they are stored without what is thrown away."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import transformers
from safetensors.torch import load_file

from engine.models.loading import silence_libraries
from engine.training.pretraining.shapes import Shape

SPREAD = 0.05
"""Of new weights (standard deviation): about a third of 1 / sqrt(width), for which these widths are small."""
DECODER_BLOCKS = 2
"""Of T5's decoder, which only helps the encoder to learn."""
THROWN = ("decoder.", "lm_head.")
"""Parts of T5 that are not stored."""


def new_module(shape: Shape, tokenizer: Any, length: int) -> Any:
    """New float32 weights, drawn from torch's generator. Without dropout: these models are too small to overfit."""
    return _MADE[shape.family](shape, tokenizer, length)


def store(module: Any, family: str, tokenizer: Any, out: Path) -> None:
    """Writes float16 safetensors, config and tokenizer; of T5 the encoder alone."""
    with silence_libraries():
        kept = _encoder(module) if family == "t5" else copy.deepcopy(module)
        kept.half().save_pretrained(str(out))
        tokenizer.save_pretrained(str(out))


def read_back(module: torch.nn.Module, out: Path) -> None:
    """Puts the stored weights into the module that they came from; thrown-away parts stay."""
    weights = module.state_dict()
    with torch.no_grad():
        for name, tensor in load_file(out / "model.safetensors").items():
            weights[name].copy_(tensor)


def _encoder(module: Any) -> Any:
    config = transformers.T5Config(**{**module.config.to_dict(), "is_encoder_decoder": False, "use_cache": False})
    encoder = transformers.T5EncoderModel(config)
    kept = {name: t for name, t in module.state_dict().items() if not name.startswith(THROWN)}
    encoder.load_state_dict(kept)
    return encoder


def _ids(tokenizer: Any) -> dict[str, Any]:
    """Vocabulary and the special tokens that every config names."""
    return {
        "vocab_size": len(tokenizer),
        "pad_token_id": tokenizer.pad_token_id,
        "bos_token_id": tokenizer.bos_token_id,
        "eos_token_id": tokenizer.eos_token_id,
    }


def _masked(kind: str, token_types: int, places_before: int) -> Callable[[Shape, Any, int], Any]:
    """BERT and RoBERTa, whose positions begin after `places_before`."""

    def build(shape: Shape, tokenizer: Any, length: int) -> Any:
        config = getattr(transformers, f"{kind}Config")(
            hidden_size=shape.width, num_hidden_layers=shape.blocks, num_attention_heads=shape.heads,
            intermediate_size=shape.inner, max_position_embeddings=length + places_before,
            type_vocab_size=token_types, initializer_range=SPREAD,
            hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0, **_ids(tokenizer),
        )  # fmt: skip
        return getattr(transformers, f"{kind}ForMaskedLM")(config)

    return build


def _gpt2(shape: Shape, tokenizer: Any, length: int) -> Any:
    config = transformers.GPT2Config(
        n_embd=shape.width, n_layer=shape.blocks, n_head=shape.heads, n_inner=shape.inner, n_positions=length,
        initializer_range=SPREAD, resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0, use_cache=False,
        **_ids(tokenizer),
    )  # fmt: skip
    return transformers.GPT2LMHeadModel(config)


def _t5(shape: Shape, tokenizer: Any, length: int) -> Any:
    config = transformers.T5Config(  # type: ignore[call-arg]
        d_model=shape.width, d_kv=shape.width // shape.heads, d_ff=shape.inner, num_heads=shape.heads,
        num_layers=shape.blocks, num_decoder_layers=DECODER_BLOCKS, dropout_rate=0.0, use_cache=False,
        decoder_start_token_id=tokenizer.pad_token_id, **_ids(tokenizer),
    )  # fmt: skip
    return transformers.T5ForConditionalGeneration(config)


_MADE: dict[str, Callable[[Shape, Any, int], Any]] = {
    "bert": _masked("Bert", 2, 0),
    "roberta": _masked("Roberta", 1, 2),
    "gpt2": _gpt2,
    "t5": _t5,
}
