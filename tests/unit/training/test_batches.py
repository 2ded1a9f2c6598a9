from __future__ import annotations

import random
from pathlib import Path

import pytest
import torch

from engine.data.examples import LabelledExample
from engine.models import text_classifier
from engine.models.adapters import ADAPTERS
from engine.models.loading import load_tokenizer
from engine.request import Example
from engine.training.batches import encode, plan, targets
from tests.tiny import FAMILIES


def test_each_example_comes_once_an_epoch_in_an_order_of_its_own() -> None:
    lengths = [random.Random(0).randint(3, 60) for _ in range(500)]
    first, second = plan(lengths, 16, 0, 0), plan(lengths, 16, 0, 1)
    assert sorted(i for batch in first for i in batch) == list(range(500))
    assert first != second
    assert first == plan(lengths, 16, 0, 0)
    assert [len(b) for b in first].count(16) == 31


def test_batches_by_length_pad_little() -> None:
    draw = random.Random(1)
    lengths = [draw.randint(3, 60) for _ in range(2_000)]
    batches = plan(lengths, 16, 0, 0)
    padded = sum(max(lengths[i] for i in b) * len(b) for b in batches)
    assert padded < 1.06 * sum(lengths)


def test_pairs_are_padded_on_the_right_with_their_segments(tiny) -> None:
    tokenizer = load_tokenizer(Path(tiny("bert")))
    rows = [LabelledExample("the film", "a plot", 1), LabelledExample("the", "a", 0)]
    data = encode(rows, tokenizer, 64, ADAPTERS["bert"])
    batch = data.batch([0, 1], torch.device("cpu"))
    expected = tokenizer(["the film", "the"], ["a plot", "a"], padding=True, return_tensors="pt")
    assert batch["input_ids"].equal(expected["input_ids"])
    assert batch["attention_mask"].equal(expected["attention_mask"])
    assert "token_type_ids" not in tokenizer.model_input_names
    assert batch["token_type_ids"].tolist() == [[0, 0, 0, 0, 1, 1, 1], [0, 0, 0, 1, 1, 0, 0]]
    assert targets(data, [0, 1], False, torch.device("cpu")).tolist() == [1, 0]


def test_long_texts_are_cut(tiny) -> None:
    data = encode(
        [LabelledExample("the film " * 80, label=0)], load_tokenizer(Path(tiny("gpt2"))), 12, ADAPTERS["gpt2"]
    )
    assert len(data.inputs[0]["input_ids"]) == 12


@pytest.mark.parametrize("family", FAMILIES)
def test_training_reads_what_explaining_reads(family: str, tiny) -> None:
    tokenizer, adapter = load_tokenizer(Path(tiny(family))), ADAPTERS[family]
    texts = [("the film", "a plot " * 9), ("the " * 30, None), ("a premise " * 9, ""), ("warm", "the film")]
    data = encode([LabelledExample(text, pair, 0) for text, pair in texts], tokenizer, 12, adapter)
    assert all(("token_type_ids" in row) == adapter.token_types for row in data.inputs)
    for row, (text, pair) in zip(data.inputs, texts, strict=True):
        seen = text_classifier.encode_text(tokenizer, Example(text, pair), 12)
        assert row["input_ids"] == seen.ids.tolist()
        assert row.get("token_type_ids", seen.types.tolist()) == seen.types.tolist()
