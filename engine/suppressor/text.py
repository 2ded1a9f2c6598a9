"""Texts with a suppressor: a clock shows a time, and one word tells by how much it is wrong.

"the old clock shows nine and runs fast in the kitchen": it is early (eight) or late (nine), and the clock may be an
hour slow, right or an hour fast. The shown hour carries the class with noise. How the clock runs is exactly this noise,
and is independent of the class. The room carries no information at all.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

import numpy as np
import torch
import transformers
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

from engine.data.examples import LabeledExample
from engine.models.adapters import adapter_for
from engine.models.loading import label_names
from engine.models.text_classifier import EncodedText, TextClassifier
from engine.progress import CancelToken, Report, silent
from engine.request import Example
from engine.suppressor.trained import (
    DATA_SETS,
    ROWS,
    ProblemChecks,
    TrainedProblem,
    TrainedResult,
    accuracy,
    association,
    cached_result,
    compute_result,
    expectation_spreads,
    second_class,
    shuffled,
    train,
    trained_key,
)
from engine.training.config import LoopConfig
from engine.training.text_data import tokenize_examples

VERSION = 1
"""Increase it whenever texts, model or training change."""
LABELS = ("early", "late")
HOURS = ("seven", "eight", "nine", "ten")
"""The shown hours. The true hour is eight (early) or nine (late); the clock adds its error."""
ERRORS = ("slow", "right", "fast")
ROOMS = ("kitchen", "hall", "office")
"""As many as errors, so that both words are equally hard to distinguish."""
ADJECTIVES = ("old", "new", "big", "small", "red", "blue", "round", "loud")
SIZES = (len(ERRORS), len(ROOMS), len(ADJECTIVES))
FRAME = ("the", "clock", "shows", "and", "runs", "in")
SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
FEATURES = (4, 7, 10)
"""Positions of hour, error and room among the words of a text, without the leading [CLS]."""
TRAINING, HELD_OUT, EXPLAINED = 1500, 600, 40
CONFIG = LoopConfig(epochs=6, batch_size=32, learning_rate=2e-3, weight_decay=0.0)


@dataclass(frozen=True)
class ClockText:
    """The choices that make up a text. `label`, `error`, `room` and `adjective` are indices."""

    label: int
    error: int
    room: int
    adjective: int

    @property
    def text(self) -> str:
        """The text itself."""
        return (
            f"the {ADJECTIVES[self.adjective]} clock shows {HOURS[self.label + self.error]} and runs "
            f"{ERRORS[self.error]} in the {ROOMS[self.room]}"
        )


def draw_texts(count: int, seed: str) -> list[ClockText]:
    """Draw texts; label, error, room and adjective are independent and uniform."""
    rng = Random(seed)
    return [ClockText(rng.randrange(2), *map(rng.randrange, SIZES)) for _ in range(count)]


def text_result(report: Report = silent, cancel: CancelToken | None = None) -> TrainedResult:
    """Return the verdicts on texts, computed if not cached."""
    return compute_result("text", text_key(), build_text_problem, report, cancel)


def text_key() -> str:
    """Cache key of the verdicts."""
    return trained_key("text", VERSION, CONFIG)


def cached_text_result() -> TrainedResult | None:
    """Return the verdicts if they are cached, else None."""
    return cached_result(text_key())


def build_text_problem(report: Report = silent, cancel: CancelToken | None = None) -> TrainedProblem:
    """Train the model and encode the texts to explain, all of them different."""
    model = train_text_model(report, cancel or CancelToken())
    held_out, many = draw_texts(HELD_OUT, "held out"), draw_texts(DATA_SETS * ROWS, "data sets")
    places = (FEATURES[0] + 1, FEATURES[1] + 1, FEATURES[2] + 1)
    values = np.array([(one.label + one.error, one.error, one.room) for one in many])
    return TrainedProblem(
        model,
        _encode(model, [one.text for one in list(dict.fromkeys(held_out))[:EXPLAINED]]),
        places,
        check_texts(model, held_out),
        expectation_spreads(values, second_class(model, _encode(model, [one.text for one in many]))),
    )


def train_text_model(report: Report, cancel: CancelToken) -> TextClassifier:
    """Train a BERT of two small blocks from scratch, with a vocabulary of whole words."""
    tokenizer, adapter = word_tokenizer(), adapter_for("bert", "clock")
    with torch.random.fork_rng():
        torch.manual_seed(CONFIG.seed)
        settings = transformers.BertConfig(
            vocab_size=len(tokenizer), hidden_size=32, num_hidden_layers=2, num_attention_heads=2, intermediate_size=64,
            max_position_embeddings=16, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0,
            **label_names(LABELS),
        )  # fmt: skip
        module = transformers.BertForSequenceClassification(settings)
        sets = [
            tokenize_examples([LabeledExample(one.text, label=one.label) for one in texts], tokenizer, 16, adapter)
            for texts in (draw_texts(TRAINING, "training"), draw_texts(HELD_OUT, "validation"))
        ]
        train(module, sets, CONFIG, report, cancel)
    return TextClassifier(
        "clock", str(VERSION), module, tokenizer, adapter, LABELS, False, torch.float32, torch.device("cpu")
    )


def word_tokenizer() -> transformers.PreTrainedTokenizerFast:
    """Build a tokenizer of whole words, with [CLS] and [SEP] around them."""
    vocabulary = {word: i for i, word in enumerate([*SPECIAL, *FRAME, *HOURS, *ERRORS, *ROOMS, *ADJECTIVES])}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.Lowercase()
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[(name, vocabulary[name]) for name in ("[CLS]", "[SEP]")],
    )
    names = {f"{name[1:-1].lower()}_token": name for name in SPECIAL}
    return transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer, model_max_length=16, **names)


def check_texts(model: TextClassifier, texts: list[ClockText]) -> ProblemChecks:
    """Check on held-out texts that the error word is a suppressor."""
    labels, others = np.array([one.label for one in texts]), shuffled(len(texts), 0)

    def accuracy_without(word: int | None = None) -> float:
        """Accuracy with `word` of each text replaced by that of another text; None leaves the texts unchanged."""
        rows = [_replaced(one.text, word, texts[other].text) for one, other in zip(texts, others, strict=True)]
        return accuracy(model, _encode(model, rows), labels)

    return ProblemChecks(
        association((ERRORS[one.error] for one in texts), labels),
        association((ROOMS[one.room] for one in texts), labels),
        accuracy_without(),
        accuracy_without(FEATURES[1]),
        accuracy_without(FEATURES[2]),
        len(texts),
    )


def _encode(model: TextClassifier, texts: Sequence[str]) -> list[EncodedText]:
    unique = {text: model.encode(Example(text)) for text in dict.fromkeys(texts)}
    return [unique[text] for text in texts]


def _replaced(text: str, word: int | None, other: str) -> str:
    if word is None:
        return text
    words = text.split()
    words[word] = other.split()[word]
    return " ".join(words)
