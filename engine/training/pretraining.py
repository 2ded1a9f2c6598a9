"""Pre-training of new text models on plain text, with a new tokenizer and the objective of the family.

Objectives: masked words, masked spans, or the next word. Random choices use torch's generator, whose state is part of
a checkpoint.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, cast

import torch
import transformers
from jaxtyping import Int
from safetensors.torch import load_file
from torch.nn import functional

from engine.data.datasets import load
from engine.data.examples import Dataset, LabeledExample
from engine.data.registry import parse_names
from engine.errors import ExegesisError, UsageError
from engine.models.loading import silence_libraries
from engine.models.text_classifier import tokenize
from engine.progress import CancelToken, Report, silent
from engine.training.config import SHAPES, ModelShape, PretrainConfig
from engine.training.loop import (
    EVALUATION_BATCH,
    LOSS,
    SplitScore,
    TrainingLoop,
    copy_weights,
    evaluation_mode,
    sorted_batches,
)
from engine.training.recipe import (
    NEW_BASE,
    PRETRAINING,
    TrainingRecipe,
    TrainResult,
    describe_training,
    prepare_output_folder,
)
from engine.training.text_data import (
    TokenizedTexts,
    load_train_split,
    pad_rows,
    sample_rows,
    split_held_out,
    text_source,
)
from engine.training.tokenizer_training import SENTINELS, train_tokenizer

SEPARATOR = "+"
"""Separator of data set names, whose options contain commas."""
HELD_OUT_SEED = 0
"""Seed of the masked tokens in held-out texts, so that they are always the same."""
INITIAL_STD = 0.05
"""Standard deviation of new weights: about a third of 1 / sqrt(width), for which these widths are small."""
DECODER_BLOCKS = 2
"""Blocks of T5's decoder, which is only used in pre-training."""
NOT_STORED = ("decoder.", "lm_head.")
"""Prefixes of T5's weights that are not stored."""
HIDDEN_SHARE = 0.15
"""Share of masked tokens (Devlin et al., 2019; Raffel et al., 2020)."""
SPAN_LENGTH = 3
"""Mean number of tokens of a masked span (Raffel et al., 2020)."""
IGNORED = -100
"""Target at positions that are not predicted."""

Rows = Sequence[Sequence[int]]
InputsAndAnswers = tuple[dict[str, torch.Tensor], Int[torch.Tensor, "batch seq"]]
"""Inputs of the model, and the token to predict at each of its outputs, or `IGNORED`."""


@dataclass(frozen=True)
class PretrainingObjective:
    """A pre-training objective: its name with its source, and the function from token ids to inputs and answers."""

    title: str
    make: Callable[[Rows, Any], InputsAndAnswers]


def mask_words(rows: Rows, tokenizer: Any) -> InputsAndAnswers:
    """Select 15% of the tokens; replace 80% of them by the mask token, 10% by a random token, none of the rest."""
    ids, attention = _pad_inputs(rows, tokenizer.pad_token_id)
    special = torch.isin(ids, torch.tensor(tokenizer.all_special_ids))
    chosen = _choose(~special)
    answers = torch.where(chosen, ids, IGNORED)
    fate = torch.rand(ids.shape)
    anything = torch.randint(len(tokenizer), ids.shape)
    inputs = torch.where(chosen & (fate < 0.8), tokenizer.mask_token_id, ids)
    inputs = torch.where(chosen & (fate >= 0.9), anything, inputs)
    return {"input_ids": inputs, "attention_mask": attention}, answers


def next_words(rows: Rows, tokenizer: Any) -> InputsAndAnswers:
    """Predict the next token at each position."""
    ids, attention = _pad_inputs(rows, tokenizer.pad_token_id)
    answers = torch.full_like(ids, IGNORED)
    answers[:, :-1] = torch.where(attention[:, 1:] == 1, ids[:, 1:], IGNORED)
    return {"input_ids": ids, "attention_mask": attention}, answers


def hide_spans(rows: Rows, tokenizer: Any) -> InputsAndAnswers:
    """Replace random spans by sentinels; the decoder predicts each sentinel followed by its span."""
    sentinels = tokenizer.convert_tokens_to_ids(list(SENTINELS))
    end, start = tokenizer.eos_token_id, tokenizer.pad_token_id
    cut = [_cut_spans([i for i in row if i != end], sentinels) for row in rows]
    ids, attention = _pad_inputs([[*left, end] for left, _ in cut], start)
    answers = pad_rows([[*hidden, end] for _, hidden in cut], IGNORED)
    before = pad_rows([[start, *hidden] for _, hidden in cut], start)
    return {"input_ids": ids, "attention_mask": attention, "decoder_input_ids": before}, answers


def _pad_inputs(rows: Rows, pad: int) -> tuple[torch.Tensor, torch.Tensor]:
    return pad_rows(rows, pad), pad_rows([[1] * len(row) for row in rows], 0)


def _choose(free: torch.Tensor) -> torch.Tensor:
    """Choose 15% of the free positions of each row, and at least one if there is any."""
    order = torch.rand(free.shape).masked_fill(~free, 2.0)
    count = (free.sum(1, keepdim=True) * HIDDEN_SHARE).round().clamp(min=1)
    return (order.argsort(1).argsort(1) < count) & free


def _cut_spans(row: list[int], sentinels: list[int]) -> tuple[list[int], list[int]]:
    """Cut random spans: (visible tokens, masked tokens), both with sentinels."""
    count = max(1, round(len(row) * HIDDEN_SHARE))
    spans = min(max(1, round(count / SPAN_LENGTH)), len(sentinels))
    hidden_sizes = _random_parts(count, spans)
    # Unlike in T5's code, both outer gaps may be empty, so that the first word can be masked as the last one can.
    gaps = _random_parts(len(row) - count + 2, spans + 1)
    left: list[int] = []
    hidden: list[int] = []
    at = 0
    for number, size in enumerate(hidden_sizes):
        gap = gaps[number] - (number == 0)
        left += [*row[at : at + gap], sentinels[number]]
        hidden += [sentinels[number], *row[at + gap : at + gap + size]]
        at += gap + size
    return [*left, *row[at:]], hidden


def _random_parts(total: int, count: int) -> list[int]:
    """Random composition of `total` into `count` positive integers, uniformly distributed."""
    cuts = sorted((torch.randperm(total - 1)[: count - 1] + 1).tolist())
    ends = [0, *cuts, total]
    return [b - a for a, b in pairwise(ends)]


_MASKED_WORDS = PretrainingObjective("masked language modeling (Devlin et al., 2019)", mask_words)
OBJECTIVES: dict[str, PretrainingObjective] = {
    "bert": _MASKED_WORDS,
    "roberta": _MASKED_WORDS,
    "gpt2": PretrainingObjective("next-token prediction (Radford et al., 2019)", next_words),
    "t5": PretrainingObjective("span corruption with a discarded decoder (Raffel et al., 2020)", hide_spans),
}


def pretrain(config: PretrainConfig, report: Report = silent, cancel: CancelToken | None = None) -> TrainResult:
    """Train from new weights, store the best epoch by held-out loss, and evaluate the stored model."""
    return Pretraining(config, report, cancel).run()


class PretrainingLoop(TrainingLoop):
    """Training loop over unlabeled texts: predicts masked or next tokens; the score is the negative loss."""

    objective: PretrainingObjective
    tokenizer: Any

    def _loss(self, indices: list[int]) -> torch.Tensor:
        with self._arithmetic():
            logits, answers = self._predict(cast(TokenizedTexts, self.data), indices)
        return functional.cross_entropy(
            logits.float(), answers, ignore_index=IGNORED, label_smoothing=self.config.label_smoothing
        )

    def _score(self) -> float:
        return -self.mean_loss(cast(TokenizedTexts, self.held_out))

    def mean_loss(self, texts: TokenizedTexts) -> float:
        """Mean cross-entropy of the masked (or next) tokens in nats, in eval mode."""
        total, count = 0.0, 0
        with torch.random.fork_rng(devices=[]), evaluation_mode(self.module):
            torch.default_generator.manual_seed(HELD_OUT_SEED)  # of the CPU only, which masks the tokens
            for indices in sorted_batches(texts.lengths, EVALUATION_BATCH):
                logits, answers = self._predict(texts, indices)
                total += functional.cross_entropy(logits.float(), answers, ignore_index=IGNORED, reduction="sum").item()
                count += int((answers != IGNORED).sum())
        return total / count

    def _predict(self, texts: TokenizedTexts, indices: Sequence[int]) -> tuple[torch.Tensor, torch.Tensor]:
        """Return logits (tokens, vocabulary) and the correct token of each."""
        inputs, answers = self.objective.make([texts.inputs[i]["input_ids"] for i in indices], self.tokenizer)
        logits = self.module(**{name: tensor.to(self.device) for name, tensor in inputs.items()}).logits
        return logits.flatten(0, 1), answers.flatten().to(self.device)


class Pretraining(TrainingRecipe[PretrainConfig]):
    """Pre-training of a new text model."""

    metric = LOSS
    score_sign = -1

    def __init__(self, config: PretrainConfig, report: Report, cancel: CancelToken | None) -> None:
        super().__init__(config, report, cancel)
        self.shape = SHAPES[config.base]
        self.objective = OBJECTIVES[self.shape.family]
        self.kind = f"Pretraining by {self.objective.title}"
        self.out = prepare_output_folder(Path(config.out))
        self.texts = read_plain_corpus(config)
        self.further = {name: plain_texts(load(name)) for name in parse_names(config.measure)}
        self.tokenizer = train_tokenizer(self.shape.family, self.texts.train, config.vocabulary, config.max_length)

    def new_loop(self) -> PretrainingLoop:
        module = new_module(self.shape, self.tokenizer, self.config.max_length).to(self.device)
        self.train, self.held_out = self._tokenize(self.texts.train), self._tokenize(self.texts.held_out)
        identity = self.config.identity() | {"data sets' content": list(self.texts.revisions)}
        loop = PretrainingLoop(module, self.train, self.held_out, self.config, False, identity)
        loop.objective, loop.tokenizer = self.objective, self.tokenizer
        return loop

    def store(self, module: Any) -> None:
        store_module(module, self.shape.family, self.tokenizer, self.out)

    def measure(self, loop: TrainingLoop) -> dict[str, SplitScore]:
        # The stored weights are loaded into the module they came from; parts that are not stored stay as they are.
        copy_weights(loop.module.state_dict(), load_file(self.out / "model.safetensors"))
        sets, measure = {"held-out": self.texts.held_out, **self.further}, cast(PretrainingLoop, loop).mean_loss
        return {name: SplitScore(LOSS, measure(self._tokenize(texts)), len(texts)) for name, texts in sets.items()}

    def facts(self, module: Any) -> dict[str, Any]:
        sources = [text_source(name) for name in _dataset_names(self.config.dataset)]
        joined = {key: "; ".join(dict.fromkeys(s[key].rstrip(".") for s in sources)) for key in sources[0]}
        shape = f"{self.shape}; {len(self.tokenizer):,} pieces, {self.config.max_length} tokens"
        return describe_training(NEW_BASE, PRETRAINING, joined) | {"shape": shape}

    def sizes(self) -> dict[str, int]:
        return {"train": len(self.train), "held_out": len(self.held_out), "dropped": self.texts.dropped}

    def _tokenize(self, texts: Sequence[str]) -> TokenizedTexts:
        """Tokenize texts and drop those of one token. GPT-2's tokenizer adds no end token, so it is added here."""
        length = self.config.max_length
        ids = tokenize(self.tokenizer, list(texts), None, length)["input_ids"]
        if self.shape.family == "gpt2":
            ids = [[*row[: length - 1], self.tokenizer.eos_token_id] for row in ids]
        rows = [{"input_ids": row} for row in ids if len(row) > 1]
        return TokenizedTexts(rows, [0.0] * len(rows), {"input_ids": 0})


@dataclass(frozen=True)
class PlainCorpus:
    """Training and held-out texts. `dropped`: number of training texts contained in a held-out text."""

    train: tuple[str, ...]
    held_out: tuple[str, ...]
    dropped: int
    revisions: tuple[str, ...]


def read_plain_corpus(config: PretrainConfig) -> PlainCorpus:
    """Read the distinct texts of the training splits, including both texts of pairs, and split them by seed."""
    sets = [load_train_split(name) for name in _dataset_names(config.dataset)]
    rows = [LabeledExample(text) for text in dict.fromkeys(text for data in sets for text in plain_texts(data))]
    if len(rows) < 10:
        raise ExegesisError(f"dataset: {config.dataset} has {len(rows)} texts; at least 10 are needed.")
    rest, held_out = split_held_out(rows, config.held_out, config.seed)
    train = sample_rows(rest, config.train_size, config.seed)
    return PlainCorpus(
        tuple(row.text for row in train),
        tuple(row.text for row in held_out),
        len(rows) - len(rest) - len(held_out),
        tuple(data.revision for data in sets),
    )


def plain_texts(data: Dataset) -> list[str]:
    """List all texts that are not blank, including both texts of pairs."""
    texts = (text for example in data.examples for text in (example.text, example.text_pair))
    return [text for text in texts if text and text.strip()]


def _dataset_names(dataset: str) -> list[str]:
    """Split names such as `reviews-generated+sst2`."""
    names = [part.strip() for part in dataset.split(SEPARATOR)]
    if not all(names):
        raise UsageError(f"dataset: must be names of data sets joined by {SEPARATOR}, got {dataset!r}.")
    return names


def new_module(shape: ModelShape, tokenizer: Any, length: int) -> Any:
    """Create a module with random float32 weights, without dropout, as these models are too small to overfit."""
    return _MODULES[shape.family](shape, tokenizer, length)


def store_module(module: Any, family: str, tokenizer: Any, out: Path) -> None:
    """Write float16 safetensors, config and tokenizer; for T5 the encoder only."""
    with silence_libraries():
        stored = _encoder(module) if family == "t5" else copy.deepcopy(module)
        stored.half().save_pretrained(str(out))
        tokenizer.save_pretrained(str(out))


def _encoder(module: Any) -> Any:
    config = transformers.T5Config(**{**module.config.to_dict(), "is_encoder_decoder": False, "use_cache": False})
    encoder = transformers.T5EncoderModel(config)
    encoder.load_state_dict({n: t for n, t in module.state_dict().items() if not n.startswith(NOT_STORED)})
    return encoder


def _token_ids(tokenizer: Any) -> dict[str, Any]:
    """Vocabulary size and special tokens, as in every config."""
    return {
        "vocab_size": len(tokenizer),
        "pad_token_id": tokenizer.pad_token_id,
        "bos_token_id": tokenizer.bos_token_id,
        "eos_token_id": tokenizer.eos_token_id,
    }


def _masked(kind: str, token_types: int, places_before: int) -> Callable[[ModelShape, Any, int], Any]:
    """Builder of BERT or RoBERTa, whose positions start at `places_before`."""

    def build(shape: ModelShape, tokenizer: Any, length: int) -> Any:
        config = getattr(transformers, f"{kind}Config")(
            hidden_size=shape.width, num_hidden_layers=shape.blocks, num_attention_heads=shape.heads,
            intermediate_size=shape.inner, max_position_embeddings=length + places_before,
            type_vocab_size=token_types, initializer_range=INITIAL_STD,
            hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0, **_token_ids(tokenizer),
        )  # fmt: skip
        return getattr(transformers, f"{kind}ForMaskedLM")(config)

    return build


def _gpt2(shape: ModelShape, tokenizer: Any, length: int) -> Any:
    config = transformers.GPT2Config(
        n_embd=shape.width, n_layer=shape.blocks, n_head=shape.heads, n_inner=shape.inner, n_positions=length,
        initializer_range=INITIAL_STD, resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0, use_cache=False,
        **_token_ids(tokenizer),
    )  # fmt: skip
    return transformers.GPT2LMHeadModel(config)


def _t5(shape: ModelShape, tokenizer: Any, length: int) -> Any:
    config = transformers.T5Config(  # type: ignore[call-arg]
        d_model=shape.width, d_kv=shape.width // shape.heads, d_ff=shape.inner, num_heads=shape.heads,
        num_layers=shape.blocks, num_decoder_layers=DECODER_BLOCKS, dropout_rate=0.0, use_cache=False,
        decoder_start_token_id=tokenizer.pad_token_id, **_token_ids(tokenizer),
    )  # fmt: skip
    return transformers.T5ForConditionalGeneration(config)


_MODULES: dict[str, Callable[[ModelShape, Any, int], Any]] = {
    "bert": _masked("Bert", 2, 0),
    "roberta": _masked("Roberta", 1, 2),
    "gpt2": _gpt2,
    "t5": _t5,
}
