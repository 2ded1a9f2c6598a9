"""A linear bag-of-embeddings classifier: logits = sum_i W x_i + b, so every attribution has a closed form."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import torch
import transformers
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
from torch import Tensor, nn

from engine.models.text_adapter import LrpParts, TextAdapter
from engine.models.text_classifier import TextClassifier

WORDS = (
    "a",
    "quiet",
    "triumph",
    "and",
    "the",
    "acting",
    "never",
    "falters",
    "although",
    "plot",
    "drags",
    "ending",
    "is",
    "warm",
    "funny",
    "not",
    "worth",
    "it",
)
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
WIDTH = 6


class BagOfEmbeddings(nn.Module):
    """No attention, no positions. Positions that the mask hides do not count."""

    def __init__(self, labels: int, seed: int) -> None:
        super().__init__()
        generator = torch.Generator().manual_seed(seed)
        self.embedding = nn.Embedding.from_pretrained(
            torch.randn(len(SPECIAL) + len(WORDS), WIDTH, generator=generator)
        )
        self.head = nn.Linear(WIDTH, labels)
        self.head.weight.data = torch.randn(labels, WIDTH, generator=generator)
        self.head.bias.data = torch.randn(labels, generator=generator)
        self.blocks = nn.ModuleList()
        self.config = SimpleNamespace(hidden_size=WIDTH, num_hidden_layers=1, num_attention_heads=1)

    def forward(self, inputs_embeds: Tensor, attention_mask: Tensor | None = None) -> Any:
        if attention_mask is not None:
            inputs_embeds = inputs_embeds * (attention_mask[:, 0, 0, :, None] == 0)
        return SimpleNamespace(logits=self.head(inputs_embeds.sum(1)))


ADAPTER = TextAdapter(
    family="bag of embeddings",
    architecture="BagOfEmbeddings",
    backbone="",
    embeddings="embedding",
    blocks="blocks",
    head=("head",),
    lrp=LrpParts(norms=(), activations=()),
    position_start=None,
)


def bag_of_embeddings(labels: int = 1, seed: int = 0) -> TextClassifier:
    """In double precision; a regression head by default, so that m = f and closed forms hold for both."""
    module = BagOfEmbeddings(labels, seed).double().eval().requires_grad_(False)
    names = tuple(f"LABEL_{i}" for i in range(labels))
    return TextClassifier(
        "bag", f"seed-{seed}", module, word_tokenizer(), ADAPTER, names, labels == 1, torch.float64, torch.device("cpu")
    )


def word_tokenizer() -> Any:
    """Whole words, with [CLS] and [SEP] around a text and a [MASK]."""
    vocabulary = {word: i for i, word in enumerate([*SPECIAL, *WORDS])}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.Lowercase()
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", vocabulary["[CLS]"]), ("[SEP]", vocabulary["[SEP]"])],
    )
    names = {"pad": "[PAD]", "unk": "[UNK]", "cls": "[CLS]", "sep": "[SEP]", "mask": "[MASK]"}
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, model_max_length=128, **{f"{role}_token": name for role, name in names.items()}
    )
