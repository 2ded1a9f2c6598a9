"""A toy task whose answer is one word, tiny random bases that can learn it, and pre-trainings of a second."""

from __future__ import annotations

import csv
import random
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
import transformers
from tokenizers import Tokenizer, models, pre_tokenizers, processors

from engine.data.datasets import load
from engine.training.config import PretrainConfig
from tests.tiny import save_checkpoint

FILLER = ["the", "film", "is", "a", "quiet", "plot", "and", "acting", "with", "two", "days", "over", "price"]
MARKERS = ["warm", "bad", "view"]
Write = Callable[..., str]
SHAPES_OF_FAMILIES = {"bert": "bert", "roberta": "roberta", "gpt2": "gpt2", "t5": "t5-mini"}
Configured = Callable[..., PretrainConfig]


@pytest.fixture(scope="session")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], str]:
    """The folder of a tiny random base of a family; each is written once."""
    root = tmp_path_factory.mktemp("bases")
    return lambda family: (
        str(root / family) if (root / family).exists() else str(save_checkpoint(family, root / family))
    )


@pytest.fixture(scope="session")
def learner(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A BERT of 2 layers x 32 that reads whole words: small and smooth enough to learn the toy task every time."""
    folder = tmp_path_factory.mktemp("learner")
    vocabulary = {word: i for i, word in enumerate(["[PAD]", "[UNK]", "[CLS]", "[SEP]", *FILLER, *MARKERS])}
    words = Tokenizer(models.WordLevel(vocabulary, unk_token="[UNK]"))
    words.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    words.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    tokenizer = transformers.PreTrainedTokenizerFast(
        tokenizer_object=words, pad_token="[PAD]", unk_token="[UNK]", cls_token="[CLS]", sep_token="[SEP]"
    )
    config = transformers.BertConfig(
        vocab_size=len(vocabulary), hidden_size=32, num_hidden_layers=2, num_attention_heads=2, intermediate_size=64,
        max_position_embeddings=32, hidden_dropout_prob=0.0, initializer_range=0.15,
    )  # fmt: skip
    torch.manual_seed(1)
    transformers.BertForSequenceClassification(config).save_pretrained(str(folder))
    tokenizer.save_pretrained(str(folder))
    return str(folder)


@pytest.fixture
def toy(tmp_path: Path) -> Write:
    """Writes a CSV of texts that hold one of `words`; the label is the word's value in the mapping."""

    def write(labels: dict[str, object], count: int = 120, pairs: bool = False, name: str = "toy.csv") -> str:
        draw = random.Random(3)
        path = tmp_path / name
        with open(path, "w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            writer.writerow(["text", "text_pair", "label"] if pairs else ["text", "label"])
            for i in range(count):
                word = list(labels)[i % len(labels)]
                words = [*draw.sample(FILLER, 6), word]
                draw.shuffle(words)
                text = " ".join(words)
                writer.writerow([*([" ".join(draw.sample(FILLER, 4)), text] if pairs else [text]), labels[word]])
        return str(path)

    return write


@pytest.fixture(scope="session")
def texts() -> tuple[str, ...]:
    """Generated reviews, which hold neither mark."""
    return tuple(example.text for example in load("reviews-generated:count=200", split="train").examples)


@pytest.fixture
def configured(tmp_path: Path) -> Configured:
    """A config whose folder is `name`, of a few steps."""

    def make(base: str, name: str = "base", **changes: object) -> PretrainConfig:
        quick = {"dataset": "reviews-generated:count=120", "epochs": 2, "batch_size": 16, "vocabulary": 500}
        quick |= {"max_length": 48, "held_out": 20, "device": "cpu", "out": str(tmp_path / name)}
        return PretrainConfig(base=base, **{**quick, **changes})

    return make
