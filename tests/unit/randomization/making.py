"""What the tests of randomization share: a small data set, and a model whose head reads its first block alone."""

from __future__ import annotations

import functools
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
import transformers

from engine.models.classifier import AnyClassifier
from engine.models.text_classifier import TextClassifier
from tests.explaining import checkpoint, classifier
from tests.unit.evaluation.making import REVIEWS, written

TEXTS = tuple(str(row["text"]) for row in REVIEWS)


def reviews(folder: Path) -> str:
    return written(folder / "reviews.jsonl", REVIEWS)


class ReadsFirstBlock(transformers.BertForSequenceClassification):
    """What later blocks do reaches nothing."""

    def forward(self, **inputs: Any) -> Any:
        _, first, *_, last = self.bert(**inputs, output_hidden_states=True).hidden_states
        return SimpleNamespace(logits=self.classifier(self.bert.pooler(first + 0 * last)))


@functools.cache
def reads_first_block() -> TextClassifier:
    usual = classifier("bert", dtype="float32")
    module = ReadsFirstBlock.from_pretrained(str(checkpoint("bert")), attn_implementation="sdpa")  # type: ignore[misc]
    module = module.eval().requires_grad_(False)
    labels = usual.labels
    return TextClassifier(
        "first", "1", module, usual.tokenizer, usual.adapter, labels, False, torch.float32, usual.device
    )


def serve(patch: pytest.MonkeyPatch, model: AnyClassifier) -> None:
    """Whatever model is asked for, it is this one."""
    patch.setattr("engine.randomization.chunks.load_classifier", lambda *asked: model)
