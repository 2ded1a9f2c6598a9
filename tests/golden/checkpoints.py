"""Three tiny checkpoints whose weights depend on nothing but NumPy: the same on every machine and version."""

from __future__ import annotations

import json
import math
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import torch
import transformers

from engine.models.loading import T5EncoderForSequenceClassification
from engine.request import Picture
from tests.linear import word_tokenizer

TEXT = "although the plot drags the ending is warm"
TARGET = 1
SEED = 7
PATCH, GRID = 8, (3, 4)
SIZE = (GRID[0] * PATCH, GRID[1] * PATCH)


def picture() -> Picture:
    """A color for each patch, with a little noise, of the size that the model reads: nothing is resampled."""
    chance = np.random.default_rng(SEED)
    colors = chance.integers(0, 256, size=(*GRID, 3)).repeat(PATCH, axis=0).repeat(PATCH, axis=1)
    return Picture((colors + chance.integers(-9, 10, size=colors.shape)).clip(0, 255).astype(np.uint8))


def build(family: str, folder: Path) -> Path:
    """A classifier of three classes over whole words, saved in `folder`."""
    tokenizer = word_tokenizer()
    _save(_MODULES[family](len(tokenizer)), folder)
    tokenizer.save_pretrained(str(folder))
    return folder


def build_vit(folder: Path) -> Path:
    """A classifier of pictures of three classes, saved in `folder`."""
    _save(_vit(), folder)
    size = {"height": SIZE[0], "width": SIZE[1]}
    stated = {"size": size, "resample": 2, "image_mean": [0.4, 0.5, 0.6], "image_std": [0.2, 0.25, 0.3]}
    (folder / "preprocessor_config.json").write_text(json.dumps(stated), encoding="utf-8")
    return folder


def _save(module: Any, folder: Path) -> None:
    with torch.no_grad():
        for name, parameter in module.named_parameters():
            parameter.copy_(_values(name, tuple(parameter.shape)))
    module.save_pretrained(str(folder))


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


def _vit() -> Any:
    return transformers.ViTForImageClassification(
        transformers.ViTConfig(
            image_size=SIZE, patch_size=PATCH, hidden_size=16, num_hidden_layers=2, num_attention_heads=2,
            intermediate_size=24, num_labels=3,
        )
    )  # fmt: skip


_MODULES = {"bert": _bert, "t5": _t5}
FAMILIES = tuple(_MODULES)
