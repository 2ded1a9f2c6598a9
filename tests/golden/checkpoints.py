"""Two tiny checkpoints whose weights depend on nothing but NumPy: the same on every machine and version."""

from __future__ import annotations

import math
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import torch
import transformers

from engine.models.t5 import T5EncoderForSequenceClassification
from tests.linear import word_tokenizer

TEXT = "although the plot drags the ending is warm"
TARGET = 1
SEED = 7


def build(family: str, folder: Path) -> Path:
    """A classifier of three classes over whole words, saved in `folder`."""
    tokenizer = word_tokenizer()
    module = _MODULES[family](len(tokenizer))
    with torch.no_grad():
        for name, parameter in module.named_parameters():
            parameter.copy_(_values(name, tuple(parameter.shape)))
    module.save_pretrained(str(folder))
    tokenizer.save_pretrained(str(folder))
    return folder


def _values(name: str, shape: tuple[int, ...]) -> torch.Tensor:
    """Integers from a seeded generator, scaled: no transcendental function, whose last bit could differ."""
    drawn = np.random.default_rng(zlib.crc32(name.encode())).integers(-1000, 1001, size=math.prod(shape))
    values = drawn.reshape(shape) / 1000
    if len(shape) == 1:
        return torch.from_numpy(0.1 * values + ("norm" in name.lower() and name.endswith("weight")))
    return torch.from_numpy(0.6 * values)


def _bert(words: int) -> Any:
    return transformers.BertForSequenceClassification(
        transformers.BertConfig(
            vocab_size=words, hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=24,
            max_position_embeddings=32, num_labels=3,
        )
    )  # fmt: skip


def _t5(words: int) -> Any:
    return T5EncoderForSequenceClassification(
        transformers.T5Config(
            vocab_size=words, d_model=16, d_kv=8, d_ff=24, num_layers=2, num_heads=2, num_labels=3, pad_token_id=0,
            is_encoder_decoder=False,
        )
    )  # fmt: skip


_MODULES = {"bert": _bert, "t5": _t5}
FAMILIES = tuple(_MODULES)
