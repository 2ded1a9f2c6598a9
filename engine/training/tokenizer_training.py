"""Tokenizers of new models: WordPiece for BERT, byte BPE for RoBERTa, GPT-2 and Llama, Unigram for T5.

Byte-pair merging breaks ties by the letters themselves, so that it is reproducible across processes; the library's
trainers of WordPiece and Unigram are not.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import transformers
from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

from engine.errors import ExegesisError

MARKS = ("positive", "negative")
"""Words that are single tokens in every tokenizer: the marks of `reviews-marked`."""
WORD_START = "▁"
"""The character before the first piece of a word, as in SentencePiece."""
SENTINELS = tuple(f"<extra_id_{number}>" for number in range(64))
"""Sentinels of the masked spans in T5's pre-training."""
UNIGRAM_ROUNDS = 3
"""Rounds of segmenting words into the most likely pieces and dropping the rarest pieces."""
_ROBERTA_ROLES = {
    "bos": "<s>", "cls": "<s>", "pad": "<pad>", "eos": "</s>", "sep": "</s>", "unk": "<unk>", "mask": "<mask>",
}  # fmt: skip


def train_tokenizer(family: str, texts: Sequence[str], size: int, length: int) -> Any:
    """Train a tokenizer of at most `size` pieces for inputs of `length` tokens. The marks are single tokens."""
    # Repeat the marks often enough to become pieces, both at the start of a text and after a space.
    repeats = 20 + len(texts) // 20
    with_marks = [*texts, *(f"{mark} {mark}" for mark in MARKS for _ in range(repeats))]
    tokenizer = _TRAINERS[family](with_marks, size, length)
    for mark in MARKS:
        if any(len(tokenizer(text, add_special_tokens=False)["input_ids"]) != 1 for text in (mark, f" {mark}")):
            raise ExegesisError(
                f"vocabulary: {size} pieces are too few for the word {mark!r} to be one token. Use a larger vocabulary."
            )
    return tokenizer


def _train_wordpiece(texts: list[str], size: int, length: int) -> Any:
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    normalizer = normalizers.BertNormalizer()
    splitter = pre_tokenizers.Sequence([pre_tokenizers.BertPreTokenizer(), pre_tokenizers.Metaspace()])
    merged = _merge_pieces(texts, normalizer, splitter, size)
    letters = [piece for piece in merged if len(piece) == 1 and piece != WORD_START]
    named = [p[1:] if p.startswith(WORD_START) else f"##{p}" for p in merged if len(p) > 1]
    pieces = list(dict.fromkeys([*special, *letters, *(f"##{letter}" for letter in letters), *named]))[:size]
    tokenizer = Tokenizer(models.WordPiece({p: i for i, p in enumerate(pieces)}, unk_token="[UNK]"))
    tokenizer.add_special_tokens(special)
    tokenizer.normalizer, tokenizer.pre_tokenizer = normalizer, pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    single, pair = "[CLS] $A [SEP]", "[CLS] $A [SEP] $B:1 [SEP]:1"
    tokenizer.post_processor = _template(tokenizer, single, pair, ["[CLS]", "[SEP]"])
    return _wrap(tokenizer, {name.strip("[]").lower(): name for name in special}, length)


def _train_roberta(texts: list[str], size: int, length: int) -> Any:
    tokenizer = _train_byte_bpe(texts, size, ["<s>", "<pad>", "</s>", "<unk>", "<mask>"])
    numbers = tokenizer.get_vocab()
    last, first = (("</s>", numbers["</s>"]), ("<s>", numbers["<s>"]))
    tokenizer.post_processor = processors.RobertaProcessing(last, first, trim_offsets=True, add_prefix_space=False)
    return _wrap(tokenizer, _ROBERTA_ROLES, length)


def _train_gpt2(texts: list[str], size: int, length: int) -> Any:
    end = "<|endoftext|>"
    tokenizer = _train_byte_bpe(texts, size, [end])
    tokenizer.post_processor = processors.ByteLevel(trim_offsets=False)
    return _wrap(tokenizer, {"eos": end, "bos": end, "unk": end, "pad": end}, length)


def _train_llama(texts: list[str], size: int, length: int) -> Any:
    # As in Llama's own tokenizer, a text starts with a space, so that its first word is the same token as elsewhere.
    tokenizer = _train_byte_bpe(texts, size, ["<s>", "</s>", "<pad>"], first_space=True)
    start = _template(tokenizer, "<s> $A", "<s> $A $B", ["<s>"])
    tokenizer.post_processor = processors.Sequence([processors.ByteLevel(trim_offsets=False), start])
    return _wrap(tokenizer, {"bos": "<s>", "eos": "</s>", "pad": "<pad>"}, length)


def _train_byte_bpe(texts: list[str], size: int, special: list[str], first_space: bool = False) -> Tokenizer:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=first_space)
    tokenizer.decoder = decoders.ByteLevel()
    letters = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=size, special_tokens=special, initial_alphabet=letters, show_progress=False
    )
    tokenizer.train_from_iterator(texts, trainer)
    return tokenizer


def _train_t5(texts: list[str], size: int, length: int) -> Any:
    special = ["<pad>", "</s>", "<unk>", *SENTINELS]
    normalizer = normalizers.Sequence([normalizers.NFKC(), normalizers.Replace(Regex(r"\s+"), " ")])
    splitter = pre_tokenizers.Metaspace()
    tokenizer = Tokenizer(_train_unigram(texts, normalizer, splitter, size, special))
    tokenizer.normalizer, tokenizer.pre_tokenizer = normalizer, splitter
    tokenizer.decoder = decoders.Metaspace()
    tokenizer.add_special_tokens(special)
    tokenizer.post_processor = _template(tokenizer, "$A </s>", "$A </s> $B </s>", ["</s>"])
    return _wrap(tokenizer, {"pad": "<pad>", "eos": "</s>", "unk": "<unk>"}, length)


def _template(tokenizer: Tokenizer, single: str, pair: str, names: list[str]) -> Any:
    ids = [(name, tokenizer.token_to_id(name)) for name in names]
    return processors.TemplateProcessing(single=single, pair=pair, special_tokens=ids)


def _wrap(tokenizer: Tokenizer, names: dict[str, str], length: int) -> Any:
    special = {f"{role}_token": name for role, name in names.items()}
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        model_max_length=length,
        model_input_names=["input_ids", "attention_mask"],
        **special,
    )


_TRAINERS: dict[str, Callable[[list[str], int, int], Any]] = {
    "bert": _train_wordpiece,
    "roberta": _train_roberta,
    "gpt2": _train_gpt2,
    "t5": _train_t5,
    "llama": _train_llama,
}


def _merge_pieces(texts: Iterable[str], normalizer: Any, splitter: Any, size: int) -> list[str]:
    """Train byte-pair merges and return at most `size` pieces: letters, then merges in order of frequency.

    `splitter` puts `WORD_START` before each word.
    """
    tokenizer = Tokenizer(models.BPE())
    tokenizer.normalizer, tokenizer.pre_tokenizer = normalizer, splitter
    trainer = trainers.BpeTrainer(vocab_size=size, show_progress=False)
    tokenizer.train_from_iterator(texts, trainer)
    numbers = tokenizer.get_vocab()
    return sorted(numbers, key=lambda piece: numbers[piece])


def _train_unigram(texts: list[str], normalizer: Any, splitter: Any, size: int, special: list[str]) -> models.Unigram:
    """Train a Unigram language model over pieces (Kudo, 2018) by hard expectation-maximization.

    The model has the `special` tokens (including `<unk>`), then pieces with log-probabilities, most likely first. The
    library's trainer sums floats in the order of a hash map; this one counts integers, so its result is reproducible.
    """
    words: Counter[str] = Counter()
    for text in texts:
        words.update(word for word, _ in splitter.pre_tokenize_str(normalizer.normalize_str(text)))
    wanted = size - len(special)
    pieces = _merge_pieces(texts, normalizer, splitter, 2 * wanted)
    needed = {WORD_START, *(p for p in pieces if len(p) == 1), *(WORD_START + mark for mark in MARKS)}
    scores = {p: -10.0 + 0.001 * len(p) for p in {*pieces, *needed} - set(special)}
    for left in range(UNIGRAM_ROUNDS - 1, -1, -1):
        model = _unigram(scores, special)
        counts: Counter[str] = Counter()
        for word, count in words.items():
            for token in model.tokenize(word):
                counts[token.value] += count
        order = sorted(scores, key=lambda piece: (piece not in needed, -counts[piece], piece))
        remaining = wanted + (len(scores) - wanted) * left // UNIGRAM_ROUNDS
        scores = _log_probabilities({p: counts[p] for p in order[: max(remaining, len(needed))]})
    return _unigram(scores, special)


def _unigram(scores: Mapping[str, float], special: list[str]) -> models.Unigram:
    rest = sorted(scores.items(), key=lambda row: (-row[1], row[0]))
    return models.Unigram([*((p, 0.0) for p in special), *rest], unk_id=special.index("<unk>"))


def _log_probabilities(counts: Mapping[str, int]) -> dict[str, float]:
    """Return log-probabilities in nats, with add-one smoothing, rounded to six decimals."""
    total = sum(counts.values()) + len(counts)
    return {piece: round(math.log((count + 1) / total), 6) for piece, count in counts.items()}
