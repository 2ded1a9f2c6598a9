"""Random models of published sizes for the benchmark of a GPU, their arithmetic, and the peak of the card."""

from __future__ import annotations

import dataclasses
import re
from typing import Any

import torch
import transformers

from benchmarks.causal import random_causal
from benchmarks.explainers import load_text_model
from engine import runtime
from engine.models.classifier import AnyClassifier
from engine.models.text_classifier import TextClassifier

READER = "reviews-minilm"
"""The model whose tokenizer random encoders read with."""
ENCODERS: dict[str, dict[str, int]] = {
    "22M": {"hidden_size": 384, "intermediate_size": 1_536, "num_hidden_layers": 6, "num_attention_heads": 12},
    "110M": {"hidden_size": 768, "intermediate_size": 3_072, "num_hidden_layers": 12, "num_attention_heads": 12},
    "340M": {"hidden_size": 1_024, "intermediate_size": 4_096, "num_hidden_layers": 24, "num_attention_heads": 16},
    "tiny": {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 2},
}
"""The shapes of MiniLM-L6, BERT-base and BERT-large, and one that any machine runs."""
SIZES = {
    "22M": "22M encoder", "110M": "110M encoder", "135M": "135M decoder", "340M": "340M encoder",
    "1.5B": "1.5B decoder",
}  # fmt: skip
REHEARSED_SIZES = {"tiny": "tiny encoder", "rehearsal": "tiny decoder"}
PRECISIONS = ("bfloat16", "float32")

PEAKS: dict[str, float] = {
    r"GB200|GB300": 2_500, r"B200|B300": 2_250, r"H200|GH200": 989, r"H100 NVL": 835, r"H100 PCIe": 756,
    r"H100|H800": 989, r"H20": 148, r"A100|A800": 312, r"A40": 150, r"A30": 165, r"A10G": 70, r"A10": 125,
    r"L40S": 362, r"L40": 181, r"L4": 121, r"RTX 6000 Ada": 364, r"RTX A6000": 155, r"RTX 5090": 210,
    r"RTX 4090": 165, r"RTX 4080": 97, r"RTX 3090": 71,
}  # fmt: skip
"""Dense bfloat16 TFLOP/s with sums in float32, from the makers' data sheets, by a part of the device's name."""


def random_model(size: str, precision: str) -> TextClassifier:
    """A model of that size with random weights on the engine's device: its time is that of a trained one."""
    dtype = getattr(torch, precision)
    return random_encoder(size, dtype) if size in ENCODERS else random_causal(size, dtype)


def random_encoder(size: str, dtype: torch.dtype) -> TextClassifier:
    """A BERT of that shape, which reads with the tokenizer of `reviews-minilm`."""
    reader, device = load_text_model(READER), runtime.device()
    torch.manual_seed(0)
    shape: dict[str, Any] = {**ENCODERS[size], "num_labels": 2}
    config = transformers.BertConfig(**shape)
    with device:
        module = transformers.BertForSequenceClassification._from_config(config, attn_implementation="sdpa")
    module = module.to(device=device, dtype=dtype).eval().requires_grad_(False)
    return dataclasses.replace(reader, id=size, module=module, dtype=dtype, device=device, memo={})


def pass_flops(model: AnyClassifier, rows: int, length: int, back: bool = False) -> float:
    """Floating-point operations of rows of `length` tokens: two for each weight of the blocks and token.

    Attention adds `4 layers length^2 width` a row (products of queries and keys, and with values), a decoder's head two
    for each weight and row, since it reads the last position alone. A pass back to the embeddings takes as many again:
    no gradient of a weight is computed.
    """
    config: Any = model.module.config
    weights = sum(weight.numel() for weight in model.blocks.parameters())
    heads = config.num_attention_heads
    width = heads * (getattr(config, "head_dim", None) or config.hidden_size // heads)
    attention = 4 * config.num_hidden_layers * length**2 * width
    head = 2 * config.hidden_size * config.vocab_size if config.model_type == "llama" else 0
    return float(rows * (2 * weights * length + attention + head) * (2 if back else 1))


def published_peak(device: str) -> float | None:
    """Dense bfloat16 TFLOP/s of a device by its name; None for one that the table lacks, or for a part of one (MIG)."""
    if "MIG" in device:
        return None
    return next((peak for name, peak in PEAKS.items() if re.search(rf"\b(?:{name})\b", device)), None)
