"""The tokenizers of new models: WordPiece for BERT, byte BPE for RoBERTa and GPT-2, Unigram for T5."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import transformers
from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

from engine.errors import ExegesisError
from engine.training.pretraining.pieces import MARKS, START, merged_pieces, with_marks
from engine.training.pretraining.unigram import unigram_model

SENTINELS = tuple(f"<extra_id_{number}>" for number in range(64))
"""Each stands for one hidden span of T5's pre-training."""
_ROBERTA = {
    "bos": "<s>", "cls": "<s>", "pad": "<pad>", "eos": "</s>", "sep": "</s>", "unk": "<unk>", "mask": "<mask>",
}  # fmt: skip


def own_tokenizer(family: str, texts: Sequence[str], size: int, length: int) -> Any:
    """A tokenizer of at most `size` pieces, made from `texts`, that takes `length` tokens. The marks are one each."""
    tokenizer = _MADE[family](list(with_marks(texts)), size, length)
    for mark in MARKS:
        if any(len(tokenizer(text, add_special_tokens=False)["input_ids"]) != 1 for text in (mark, f" {mark}")):
            raise ExegesisError(f"vocabulary: {size} pieces are too few to hold the word {mark!r}. Give more.")
    return tokenizer


def _wordpiece(texts: list[str], size: int, length: int) -> Any:
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    normalizer = normalizers.BertNormalizer()
    splitter = pre_tokenizers.Sequence([pre_tokenizers.BertPreTokenizer(), pre_tokenizers.Metaspace()])
    merged = merged_pieces(texts, normalizer, splitter, size)
    letters = [piece for piece in merged if len(piece) == 1 and piece != START]
    named = [p[1:] if p.startswith(START) else f"##{p}" for p in merged if len(p) > 1]
    pieces = list(dict.fromkeys([*special, *letters, *(f"##{letter}" for letter in letters), *named]))[:size]
    tokenizer = Tokenizer(models.WordPiece({p: i for i, p in enumerate(pieces)}, unk_token="[UNK]"))
    tokenizer.add_special_tokens(special)
    tokenizer.normalizer, tokenizer.pre_tokenizer = normalizer, pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    single, pair = "[CLS] $A [SEP]", "[CLS] $A [SEP] $B:1 [SEP]:1"
    tokenizer.post_processor = _template(tokenizer, single, pair, ["[CLS]", "[SEP]"])
    return _wrapped(tokenizer, {name.strip("[]").lower(): name for name in special}, length)


def _roberta(texts: list[str], size: int, length: int) -> Any:
    tokenizer = _byte_bpe(texts, size, ["<s>", "<pad>", "</s>", "<unk>", "<mask>"])
    numbers = tokenizer.get_vocab()
    last, first = (("</s>", numbers["</s>"]), ("<s>", numbers["<s>"]))
    tokenizer.post_processor = processors.RobertaProcessing(last, first, trim_offsets=True, add_prefix_space=False)
    return _wrapped(tokenizer, _ROBERTA, length)


def _gpt2(texts: list[str], size: int, length: int) -> Any:
    end = "<|endoftext|>"
    tokenizer = _byte_bpe(texts, size, [end])
    tokenizer.post_processor = processors.ByteLevel(trim_offsets=False)
    return _wrapped(tokenizer, {"eos": end, "bos": end, "unk": end, "pad": end}, length)


def _byte_bpe(texts: list[str], size: int, special: list[str]) -> Tokenizer:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    letters = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=size, special_tokens=special, initial_alphabet=letters, show_progress=False
    )
    tokenizer.train_from_iterator(texts, trainer)
    return tokenizer


def _t5(texts: list[str], size: int, length: int) -> Any:
    special = ["<pad>", "</s>", "<unk>", *SENTINELS]
    normalizer = normalizers.Sequence([normalizers.NFKC(), normalizers.Replace(Regex(r"\s+"), " ")])
    splitter = pre_tokenizers.Metaspace()
    tokenizer = Tokenizer(unigram_model(texts, normalizer, splitter, size, special))
    tokenizer.normalizer, tokenizer.pre_tokenizer = normalizer, splitter
    tokenizer.decoder = decoders.Metaspace()
    tokenizer.add_special_tokens(special)
    tokenizer.post_processor = _template(tokenizer, "$A </s>", "$A </s> $B </s>", ["</s>"])
    return _wrapped(tokenizer, {"pad": "<pad>", "eos": "</s>", "unk": "<unk>"}, length)


def _template(tokenizer: Tokenizer, single: str, pair: str, names: list[str]) -> Any:
    ids = [(name, tokenizer.token_to_id(name)) for name in names]
    return processors.TemplateProcessing(single=single, pair=pair, special_tokens=ids)


def _wrapped(tokenizer: Tokenizer, names: dict[str, str], length: int) -> Any:
    special = {f"{role}_token": name for role, name in names.items()}
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        model_max_length=length,
        model_input_names=["input_ids", "attention_mask"],
        **special,
    )


_MADE: dict[str, Callable[[list[str], int, int], Any]] = {
    "bert": _wordpiece,
    "roberta": _roberta,
    "gpt2": _gpt2,
    "t5": _t5,
}
