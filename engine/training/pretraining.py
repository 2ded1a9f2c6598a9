"""Pre-training of new text models on plain text, with a new tokenizer and the objective of the model family.

Objectives: masked tokens, masked spans, or the next token. A causal model also learns the answers of prompts, and is
evaluated on them. Random choices use torch's generator, whose state is part of a checkpoint.
"""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, cast

import torch
import transformers
from jaxtyping import Float, Int
from safetensors.torch import load_file
from torch.nn import functional

from engine.data.datasets import load, registered_name
from engine.data.examples import Dataset, LabeledExample
from engine.data.prompts import PROMPT_GRAMMARS
from engine.data.registry import parse_names
from engine.errors import ExegesisError, UsageError, not_allowed
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
    PROMPTS,
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
    text_sources,
)
from engine.training.tokenizer_training import SENTINELS, train_tokenizer

SEPARATOR = "+"
"""Separator of data set names. It is not a comma, because options of a data set contain commas."""
HELD_OUT_SEED = 0
"""Seed of the masked tokens in held-out texts, so that they are always the same."""
INITIAL_STD = 0.05
"""Standard deviation of new weights: 0.3 to 0.6 times 1 / sqrt(width) at the small widths of `SHAPES`."""
DECODER_BLOCKS = 2
"""Number of blocks of T5's decoder, which is only used in pre-training."""
NOT_STORED = ("decoder.", "lm_head.")
"""Prefixes of T5's weights that are not stored."""
HIDDEN_SHARE = 0.15
"""Share of tokens that are masked (Devlin et al., 2019; Raffel et al., 2020)."""
SPAN_LENGTH = 3
"""Mean number of tokens of a masked span (Raffel et al., 2020)."""
IGNORED = -100
"""Target at positions that are not predicted."""
CAUSAL = ("gpt2", "llama")
"""Families that predict the next token. Their texts get an end token, which their tokenizers do not add."""
ENDS_IN_ANSWER = 1.0
"""Label of a tokenized text whose last token before the end token is the answer of a prompt; others have 0."""

Rows = Sequence[Sequence[int]]
InputsAndAnswers = tuple[dict[str, torch.Tensor], Int[torch.Tensor, "batch seq"]]
"""Inputs of the model, and the token to predict at each output position, or `IGNORED`."""


@dataclass(frozen=True)
class PretrainingObjective:
    """A pre-training objective: its name with its source, and the function from token ids to inputs and answers."""

    title: str
    make: Callable[[Rows, Any], InputsAndAnswers]


def mask_words(rows: Rows, tokenizer: Any) -> InputsAndAnswers:
    """Select 15% of the tokens to predict: 80% become the mask token, 10% a random token, and 10% stay unchanged."""
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
    # Unlike in T5's code, both outer gaps may be empty, so that the first word can be masked as well as the last.
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
    """Draw a random composition of `total` into `count` positive integers, uniformly distributed."""
    cuts = sorted((torch.randperm(total - 1)[: count - 1] + 1).tolist())
    ends = [0, *cuts, total]
    return [b - a for a, b in pairwise(ends)]


_MASKED_WORDS = PretrainingObjective("masked language modeling (Devlin et al., 2019)", mask_words)
OBJECTIVES: dict[str, PretrainingObjective] = {
    "bert": _MASKED_WORDS,
    "roberta": _MASKED_WORDS,
    "gpt2": PretrainingObjective("next-token prediction (Radford et al., 2019)", next_words),
    "t5": PretrainingObjective("span corruption with a discarded decoder (Raffel et al., 2020)", hide_spans),
    "llama": PretrainingObjective("next-token prediction (Touvron et al., 2023)", next_words),
}


def pretrain(config: PretrainConfig, report: Report = silent, cancel: CancelToken | None = None) -> TrainResult:
    """Train from new weights, store the best epoch by held-out loss, and evaluate the stored model."""
    return Pretraining(config, report, cancel).run()


class PretrainingLoop(TrainingLoop):
    """Training loop over unlabeled texts: predicts masked or next tokens; the score is the negative loss."""

    objective: PretrainingObjective
    tokenizer: Any

    def _loss(self, indices: list[int]) -> torch.Tensor:
        texts, config = cast(TokenizedTexts, self.data), cast(PretrainConfig, self.config)
        with self._arithmetic():
            logits, answers = self._predict(texts, indices)
        weighted = config.answer_weight != 1
        losses = functional.cross_entropy(
            logits.float(), answers, ignore_index=IGNORED, label_smoothing=config.label_smoothing,
            reduction="none" if weighted else "mean",
        )  # fmt: skip
        if not weighted:
            return losses
        weights = token_weights(texts, indices, config.answer_weight).flatten().to(self.device) * (answers != IGNORED)
        return (losses * weights).sum() / weights.sum()

    def _score(self) -> float:
        return -self.mean_loss(cast(TokenizedTexts, self.held_out))

    def mean_loss(self, texts: TokenizedTexts) -> float:
        """Return the mean cross-entropy of the masked (or next) tokens in nats, in eval mode."""
        total, count = 0.0, 0
        with torch.random.fork_rng(devices=[]), evaluation_mode(self.module):
            torch.default_generator.manual_seed(HELD_OUT_SEED)  # CPU only: tokens are masked there
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


def token_weights(
    texts: TokenizedTexts, indices: Sequence[int], answer_weight: float
) -> Float[torch.Tensor, "batch seq"]:
    """Return the weights of the next tokens: `answer_weight` for a prompt's answer (before the end token), else 1."""
    lengths = [len(texts.inputs[i]["input_ids"]) for i in indices]
    weights = torch.ones(len(indices), max(lengths))
    for row, (index, length) in enumerate(zip(indices, lengths, strict=True)):
        if texts.labels[index] == ENDS_IN_ANSWER:
            weights[row, length - 3] = answer_weight
    return weights


def measure_prompts(module: Any, tokenizer: Any, prompts: Sequence[LabeledExample], length: int) -> SplitScore:
    """Return the accuracy on prompts: the share whose answer has a larger logit than the foil, in eval mode.

    Errors: an answer or foil is not one token, or a prompt has more tokens than the model reads.
    """
    rows = tokenize(tokenizer, [prompt.text for prompt in prompts], None)["input_ids"]
    if max(map(len, rows)) > length:
        raise ExegesisError(f"max_length: {length} tokens are too few for the longest prompt, {max(map(len, rows))}.")
    pairs = torch.tensor([[_token_id(tokenizer, w) for w in (one.answer, one.foil)] for one in prompts])
    right = 0
    with evaluation_mode(module):
        for indices in sorted_batches([len(row) for row in rows], EVALUATION_BATCH):
            inputs, _ = next_words([rows[i] for i in indices], tokenizer)
            logits = module(**{name: tensor.to(module.device) for name, tensor in inputs.items()}).logits.cpu()
            last = logits[torch.arange(len(indices)), [len(rows[i]) - 1 for i in indices]].float()
            answer, foil = last.gather(1, pairs[indices]).unbind(1)
            right += int((answer > foil).sum())
    return SplitScore("accuracy", right / len(prompts), len(prompts))


@functools.cache
def _token_id(tokenizer: Any, word: str) -> int:
    ids: list[int] = tokenizer(word, add_special_tokens=False)["input_ids"]
    if len(ids) != 1:
        raise ExegesisError(
            f"vocabulary: {len(tokenizer)} pieces are too few for the answer {word!r} to be one token. "
            "Use a larger vocabulary."
        )
    return ids[0]


class Pretraining(TrainingRecipe[PretrainConfig]):
    """Pre-training of a new text model."""

    metric = LOSS
    score_sign = -1

    def __init__(self, config: PretrainConfig, report: Report, cancel: CancelToken | None) -> None:
        super().__init__(config, report, cancel)
        self.shape = SHAPES[config.base]
        self.objective = OBJECTIVES[self.shape.family]
        self.kind = f"Pretraining by {self.objective.title}"
        if config.answer_weight != 1 and self.shape.family not in CAUSAL:
            allowed = f"1 for {config.base}, which does not predict the next token"
            raise not_allowed("answer_weight", allowed, config.answer_weight)
        self.out = prepare_output_folder(Path(config.out))
        self.texts = read_plain_corpus(config)
        self.further = {name: plain_texts(load(name)) for name in parse_names(config.measure)}
        self.prompts = _load_test_prompts(config.dataset) if self.shape.family in CAUSAL else {}
        whole = [whole_text(row) for row in self.texts.train]
        self.tokenizer = train_tokenizer(self.shape.family, whole, config.vocabulary, config.max_length)
        for word in {word for rows in self.prompts.values() for row in rows for word in (row.answer, row.foil)}:
            _token_id(self.tokenizer, word)

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
        # Load the stored weights back into the module; parts that are not stored keep their values.
        copy_weights(loop.module.state_dict(), load_file(self.out / "model.safetensors"))
        sets, measure = {"held-out": self.texts.held_out, **self.further}, cast(PretrainingLoop, loop).mean_loss
        losses = {name: SplitScore(LOSS, measure(self._tokenize(rows)), len(rows)) for name, rows in sets.items()}
        length = self.config.max_length
        return losses | {
            name: measure_prompts(loop.module, self.tokenizer, rows, length) for name, rows in self.prompts.items()
        }

    def facts(self, module: Any) -> dict[str, Any]:
        sources = text_sources(_dataset_names(self.config.dataset))
        shape = f"{self.shape}; {len(self.tokenizer):,} pieces, {self.config.max_length} tokens"
        use = PROMPTS if self.prompts else PRETRAINING
        return describe_training(NEW_BASE, use, sources) | {"shape": shape, "next_token": bool(self.prompts)}

    def sizes(self) -> dict[str, int]:
        return {"train": len(self.train), "held_out": len(self.held_out), "dropped": self.texts.dropped}

    def _tokenize(self, rows: Sequence[LabeledExample]) -> TokenizedTexts:
        """Tokenize whole texts and drop those of one token. For a causal model, append the end token."""
        length, causal = self.config.max_length, self.shape.family in CAUSAL
        ids = tokenize(self.tokenizer, [whole_text(row) for row in rows], None, length)["input_ids"]
        if causal:
            ids = [[*row[: length - 1], self.tokenizer.eos_token_id] for row in ids]
        answered = [causal and row.answer is not None and len(one) < length for row, one in zip(rows, ids, strict=True)]
        long = [at for at, one in enumerate(ids) if len(one) > 1]
        labels = [ENDS_IN_ANSWER * answered[at] for at in long]
        return TokenizedTexts([{"input_ids": ids[at]} for at in long], labels, {"input_ids": 0})


@dataclass(frozen=True)
class PlainCorpus:
    """Training and held-out texts. `dropped`: number of training texts contained in a held-out text."""

    train: tuple[LabeledExample, ...]
    held_out: tuple[LabeledExample, ...]
    dropped: int
    revisions: tuple[str, ...]


def read_plain_corpus(config: PretrainConfig) -> PlainCorpus:
    """Read the distinct texts of the training splits, including both texts of pairs, and split them by seed."""
    sets = [load_train_split(name) for name in _dataset_names(config.dataset)]
    distinct: dict[str, LabeledExample] = {}
    for row in (row for data in sets for row in plain_texts(data)):
        distinct.setdefault(whole_text(row), row)
    rows = list(distinct.values())
    if len(rows) < 10:
        raise ExegesisError(f"dataset: {config.dataset} has {len(rows)} texts; at least 10 are needed.")
    rest, held_out = split_held_out(rows, config.held_out, config.seed)
    train = sample_rows(rest, config.train_size, config.seed)
    dropped = len(rows) - len(rest) - len(held_out)
    return PlainCorpus(tuple(train), tuple(held_out), dropped, tuple(data.revision for data in sets))


def plain_texts(data: Dataset) -> list[LabeledExample]:
    """Return all non-blank texts, with each text of a pair as its own example. Prompts keep their answer and foil."""
    return [
        LabeledExample(text, answer=example.answer, foil=example.foil)
        for example in data.examples
        for text in (example.text, example.text_pair)
        if text and text.strip()
    ]


def whole_text(row: LabeledExample) -> str:
    """Return the text, followed by the answer if it is a prompt."""
    return row.text + (row.answer or "")


def _load_test_prompts(dataset: str) -> dict[str, tuple[LabeledExample, ...]]:
    """Load the test splits of the data sets that contain prompts, in their default size, by name."""
    names = [registered_name(name) or "" for name in _dataset_names(dataset)]
    return {name: tuple(load(name, split="test").examples) for name in names if name in PROMPT_GRAMMARS}


def _dataset_names(dataset: str) -> list[str]:
    """Split a string such as `reviews-generated+sst2` into names."""
    names = [part.strip() for part in dataset.split(SEPARATOR)]
    if not all(names):
        raise UsageError(f"dataset: must be names of data sets joined by {SEPARATOR}, got {dataset!r}.")
    return names


def new_module(shape: ModelShape, tokenizer: Any, length: int) -> Any:
    """Create a module with random float32 weights. It has no dropout, because these models are too small to overfit."""
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
    """Return the vocabulary size and special token ids, which every config has."""
    return {
        "vocab_size": len(tokenizer),
        "pad_token_id": tokenizer.pad_token_id,
        "bos_token_id": tokenizer.bos_token_id,
        "eos_token_id": tokenizer.eos_token_id,
    }


def _masked(kind: str, token_types: int, places_before: int) -> Callable[[ModelShape, Any, int], Any]:
    """Return a builder of BERT or RoBERTa, whose position ids start at `places_before`."""

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


def _llama(shape: ModelShape, tokenizer: Any, length: int) -> Any:
    config = transformers.LlamaConfig(
        hidden_size=shape.width, num_hidden_layers=shape.blocks, num_attention_heads=shape.heads,
        num_key_value_heads=shape.key_value_heads, intermediate_size=shape.inner, max_position_embeddings=length,
        initializer_range=INITIAL_STD, tie_word_embeddings=True, use_cache=False, **_token_ids(tokenizer),
    )  # fmt: skip
    return transformers.LlamaForCausalLM(config)


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
    "llama": _llama,
}
