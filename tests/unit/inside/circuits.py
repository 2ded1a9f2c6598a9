"""Models whose circuits are known: an induction circuit set by hand, and a linear transformer."""

from __future__ import annotations

import math
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch
import transformers
from tokenizers import Tokenizer, models, pre_tokenizers
from torch import Tensor, nn

from engine.models.text_classifier import TextClassifier
from tests.linear import ADAPTER, SPECIAL, WORDS, word_tokenizer
from tests.tiny import configs

LETTERS = ("x", "a", "b", "c", "d", "e")
POSITIONS = 8
SIZE = POSITIONS + 3 * len(LETTERS)
"""Coordinates: position, token, previous token, output. Each has a twin of opposite sign, so that the mean is 0 and a
LayerNorm only scales."""
TOKEN, PREVIOUS, OUTPUT = (POSITIONS + part * len(LETTERS) for part in range(3))
SCORE = 40.0


def save_induction_model(folder: Path) -> Path:
    """A GPT-2 of two layers with two heads each. Head 0 of layer 0 attends to the previous position and writes its
    token. Head 1 of layer 1 attends to where that is the present token, and writes the token there to the output."""
    config = configs.GPT2Config(
        vocab_size=len(LETTERS), n_positions=POSITIONS, n_embd=2 * SIZE, n_layer=2, n_head=2, bos_token_id=0,
        eos_token_id=0, tie_word_embeddings=False, layer_norm_epsilon=1e-12,
    )  # fmt: skip
    module: Any = transformers.GPT2LMHeadModel(config)
    with torch.no_grad():
        for name, parameter in module.named_parameters():
            parameter.fill_(1.0 if "ln_" in name and name.endswith("weight") else 0.0)
        letters = torch.arange(len(LETTERS))
        module.transformer.wte.weight[letters, TOKEN + letters] = 1
        module.transformer.wpe.weight[torch.arange(POSITIONS), torch.arange(POSITIONS)] = 1
        for weight in (module.transformer.wte.weight, module.transformer.wpe.weight):
            weight[:, SIZE:] = -weight[:, :SIZE]
        places = torch.arange(POSITIONS)
        _set_head(module, 0, 0, 2, query=(places[1:], places[:-1]), key=(places, places), write=PREVIOUS)
        own = torch.arange(len(LETTERS))
        _set_head(module, 1, 1, 3, query=(TOKEN + own, own), key=(PREVIOUS + own, own), write=OUTPUT)
        module.lm_head.weight[letters, OUTPUT + letters] = 1
    module.save_pretrained(str(folder))
    tokenizer = Tokenizer(models.WordLevel({letter: at for at, letter in enumerate(LETTERS)}, unk_token="x"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    wrapped = transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, model_max_length=POSITIONS, unk_token="x", eos_token="x", bos_token="x"
    )
    wrapped.save_pretrained(str(folder))
    return folder


def _set_head(module: Any, layer: int, head: int, parts: int, query: Any, key: Any, write: int) -> None:
    """`parts`: one-hot parts of the stream before the layer, which give its norm. Values are the tokens."""
    attention = module.transformer.h[layer].attn
    gain = math.sqrt(2 * SIZE / (2 * parts))  # of the LayerNorm
    scale = math.sqrt(SCORE * math.sqrt(SIZE)) / gain
    for part, (rows, columns) in enumerate((query, key)):
        attention.c_attn.weight[rows, part * 2 * SIZE + head * SIZE + columns] = scale
    letters = torch.arange(len(LETTERS))
    attention.c_attn.weight[TOKEN + letters, 4 * SIZE + head * SIZE + letters] = 1 / gain
    attention.c_proj.weight[head * SIZE + letters, write + letters] = 1
    attention.c_proj.weight[head * SIZE + letters, SIZE + write + letters] = -1


class LinearBlock(nn.Module):
    """Heads that mix positions by fixed matrices, then a linear MLP, both added to the stream."""

    def __init__(self, width: int, heads: int, generator: torch.Generator) -> None:
        super().__init__()
        self.mix = torch.randn(heads, 16, 16, generator=generator, dtype=torch.float64) / 4
        self.projection, self.mlp = (nn.Linear(width, width) for _ in range(2))
        for part in (self.projection, self.mlp):
            part.weight.data = torch.randn(width, width, generator=generator) / width

    def forward(self, stream: Tensor) -> Tensor:
        length, heads = stream.shape[1], len(self.mix)
        split = stream.unflatten(-1, (heads, -1))
        mixed = torch.einsum("hqk,bkhd->bqhd", self.mix[:, :length, :length], split).flatten(2)
        stream = stream + self.projection(mixed)
        return stream + self.mlp(stream)


class LinearTransformer(nn.Module):
    """The logits are a linear map of the last position."""

    def __init__(self) -> None:
        super().__init__()
        generator = torch.Generator().manual_seed(0)
        self.embedding = nn.Embedding.from_pretrained(torch.randn(len(SPECIAL) + len(WORDS), 6, generator=generator))
        self.blocks = nn.ModuleList(LinearBlock(6, 3, generator) for _ in range(3))
        self.head = nn.Linear(6, 3)
        self.head.weight.data = torch.randn(3, 6, generator=generator)
        self.config = SimpleNamespace(model_type="linear", hidden_size=6, num_hidden_layers=3, num_attention_heads=3)

    def forward(self, inputs_embeds: Tensor, attention_mask: Tensor | None = None) -> Any:
        for block in self.blocks:
            inputs_embeds = block(inputs_embeds)
        return SimpleNamespace(logits=self.head(inputs_embeds[:, -1]))


def linear_transformer() -> TextClassifier:
    """In double precision, with three classes."""
    module = LinearTransformer().double().eval().requires_grad_(False)
    labels = ("one", "two", "three")
    return TextClassifier(
        "linear", "0", module, word_tokenizer(), ADAPTER, labels, False, torch.float64, torch.device("cpu")
    )
