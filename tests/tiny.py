"""Tiny random checkpoints of every family, written to a folder by save_pretrained as users have them."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import transformers
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

from engine.models.loading import T5EncoderForSequenceClassification

CORPUS = [
    "the film is a quiet triumph and the acting never falters",
    "although the plot drags, the ending is warm and funny",
    "not worth the price: the battery died after two days",
    "good food, bad service, lovely view over the harbour",
    "a premise is here, and a hypothesis follows from it or contradicts it",
]
configs: Any = transformers
"""The configurations: their signatures leave out what all of them take, such as `num_labels`."""
FAMILIES = ("bert", "roberta", "electra", "distilbert", "xlm-roberta", "gpt2", "t5")
MORE_FAMILIES = (
    "camembert", "modernbert", "modernbert-mean", "albert", "mpnet", "deberta-v3", "bart", "t5-decoder",
    "llama-classifier", "mistral-classifier", "qwen2-classifier", "qwen3-classifier",
)  # fmt: skip
"""Families that the gate and every explainer's conditions run on, and that are not fine-tuned in the tests."""
WINDOW = 4
SIZE = {"hidden_size": 24, "num_hidden_layers": 3, "num_attention_heads": 4, "intermediate_size": 40}


def save_checkpoint(family: str, folder: Path, labels: int = 2, seed: int = 0) -> Path:
    """A random classifier with its tokenizer in `folder`. Weights are scaled up so that predictions differ."""
    torch.manual_seed(seed)
    tokenizer = _TOKENIZERS[family]()
    module = _MODULES[family](tokenizer, labels)
    with torch.no_grad():
        for parameter in module.parameters():
            if parameter.dim() > 1:
                parameter.normal_(0.0, 0.25)
    module.save_pretrained(str(folder))
    tokenizer.save_pretrained(str(folder))
    return folder


def _wordpiece() -> Any:
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    tokenizer = Tokenizer(models.WordPiece(_ids([*special, *_pieces()]), unk_token="[UNK]"))
    tokenizer.add_special_tokens(special)
    tokenizer.normalizer = normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    ids = {name: tokenizer.token_to_id(name) for name in special}
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", ids["[CLS]"]), ("[SEP]", ids["[SEP]"])],
    )
    names = {"pad": "[PAD]", "unk": "[UNK]", "cls": "[CLS]", "sep": "[SEP]", "mask": "[MASK]"}
    return _wrapped(tokenizer, names, 64)


def _pieces() -> list[str]:
    """Letters, pairs of them, short words, and long ones in two pieces.

    The library's own trainer numbers its pieces anew in each run, and so would make another model of the same weights.
    """
    words = sorted(set(re.findall(r"\w+", " ".join(CORPUS))))
    letters = sorted(set("".join(CORPUS)) - {" "})
    pairs = sorted({word[at : at + 2] for word in words for at in range(len(word) - 1)})
    halves = [half for word in words for half in ((word,) if len(word) < 8 else (word[:4], f"##{word[4:]}"))]
    return [*letters, *pairs, *halves, *(f"##{piece}" for piece in [*letters, *pairs])]


def _ids(pieces: list[str]) -> dict[str, int]:
    return {piece: number for number, piece in enumerate(dict.fromkeys(pieces))}


def _byte_bpe(bos: bool) -> Any:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    special = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"] if bos else ["<|endoftext|>"]
    trainer = trainers.BpeTrainer(
        vocab_size=400, special_tokens=special, initial_alphabet=pre_tokenizers.ByteLevel.alphabet()
    )
    tokenizer.train_from_iterator(CORPUS, trainer)
    if not bos:
        tokenizer.post_processor = processors.ByteLevel(trim_offsets=False)
        return _wrapped(tokenizer, {"eos": "<|endoftext|>", "bos": "<|endoftext|>", "unk": "<|endoftext|>"}, 64)
    id_of: Any = tokenizer.token_to_id
    tokenizer.post_processor = processors.RobertaProcessing(
        ("</s>", id_of("</s>")), ("<s>", id_of("<s>")), trim_offsets=True
    )
    return _wrapped(tokenizer, _SENTENCE_NAMES, 64)


def _unigram(start: bool) -> Any:
    tokenizer = Tokenizer(models.Unigram())
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.decoder = decoders.Metaspace()
    special = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"] if start else ["<pad>", "</s>", "<unk>"]
    trainer = trainers.UnigramTrainer(vocab_size=200, special_tokens=special, unk_token="<unk>")
    tokenizer.train_from_iterator(CORPUS, trainer)
    tokenizer.model = _sorted(tokenizer, special)
    ids = [(name, tokenizer.token_to_id(name)) for name in special]
    single, pair = ("<s> $A </s>", "<s> $A </s> </s> $B </s>") if start else ("$A </s>", "$A </s> $B </s>")
    tokenizer.post_processor = processors.TemplateProcessing(single=single, pair=pair, special_tokens=ids)
    names = _SENTENCE_NAMES if start else {"pad": "<pad>", "eos": "</s>", "unk": "<unk>"}
    return _wrapped(tokenizer, names, 64)


def _with_segments(tokenizer: Any) -> Any:
    """The tokenizer with other segments for a pair's second text."""
    ids = [(name, tokenizer.convert_tokens_to_ids(name)) for name in ("<s>", "</s>")]
    tokenizer.backend_tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>", pair="<s> $A </s> $B:1 </s>:1", special_tokens=ids
    )
    return tokenizer


def _mpnet_wordpiece() -> Any:
    special = ["<s>", "<pad>", "</s>", "[UNK]", "<mask>"]
    tokenizer = Tokenizer(models.WordPiece(_ids([*special, *_pieces()]), unk_token="[UNK]"))
    tokenizer.add_special_tokens(special)
    tokenizer.normalizer = normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>", pair="<s> $A </s> </s> $B </s>", special_tokens=[("<s>", 0), ("</s>", 2)]
    )
    return _wrapped(tokenizer, {**_SENTENCE_NAMES, "unk": "[UNK]"}, 64)


def _sorted(tokenizer: Tokenizer, special: list[str]) -> models.Unigram:
    """The trained model with its pieces in one order: training leaves equally likely ones in any."""
    vocab = {piece: round(score, 4) for piece, score in json.loads(tokenizer.to_str())["model"]["vocab"]}
    rest = sorted(
        ((piece, score) for piece, score in vocab.items() if piece not in special), key=lambda p: (-p[1], p[0])
    )
    return models.Unigram([*((piece, vocab[piece]) for piece in special), *rest], unk_id=special.index("<unk>"))


_SENTENCE_NAMES = {
    "bos": "<s>", "cls": "<s>", "pad": "<pad>", "eos": "</s>", "sep": "</s>", "unk": "<unk>", "mask": "<mask>",
}  # fmt: skip


def _wrapped(tokenizer: Tokenizer, names: dict[str, str], length: int) -> Any:
    special = {f"{role}_token": name for role, name in names.items()}
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        model_max_length=length,
        model_input_names=["input_ids", "attention_mask"],
        **special,
    )


def _bertlike(kind: str, extra: dict[str, Any]) -> Callable[[Any, int], Any]:
    def build(tokenizer: Any, labels: int) -> Any:
        config = getattr(transformers, f"{kind}Config")(
            vocab_size=len(tokenizer), max_position_embeddings=68, num_labels=labels,
            pad_token_id=tokenizer.pad_token_id, **{**SIZE, **extra},
        )  # fmt: skip
        return getattr(transformers, f"{kind}ForSequenceClassification")(config)

    return build


def _distilbert(tokenizer: Any, labels: int) -> Any:
    config = configs.DistilBertConfig(
        vocab_size=len(tokenizer), max_position_embeddings=64, dim=24, n_layers=3, n_heads=4, hidden_dim=40,
        num_labels=labels, pad_token_id=tokenizer.pad_token_id,
    )  # fmt: skip
    return transformers.DistilBertForSequenceClassification(config)


def _gpt2(tokenizer: Any, labels: int) -> Any:
    config = configs.GPT2Config(
        vocab_size=len(tokenizer), n_positions=64, n_embd=24, n_layer=3, n_head=4, num_labels=labels,
        pad_token_id=tokenizer.eos_token_id, eos_token_id=tokenizer.eos_token_id, bos_token_id=tokenizer.eos_token_id,
    )  # fmt: skip
    return transformers.GPT2ForSequenceClassification(config)


def _t5(tokenizer: Any, labels: int) -> Any:
    config = configs.T5Config(
        vocab_size=len(tokenizer), d_model=24, d_kv=6, d_ff=40, num_layers=3, num_heads=4, num_labels=labels,
        pad_token_id=tokenizer.pad_token_id, is_encoder_decoder=False,
    )  # fmt: skip
    return T5EncoderForSequenceClassification(config)


_TOKENIZERS: dict[str, Callable[[], Any]] = {
    "bert": _wordpiece,
    "electra": _wordpiece,
    "distilbert": _wordpiece,
    "roberta": lambda: _byte_bpe(bos=True),
    "gpt2": lambda: _byte_bpe(bos=False),
    "xlm-roberta": lambda: _unigram(start=True),
    "t5": lambda: _unigram(start=False),
}
_MODULES: dict[str, Callable[[Any, int], Any]] = {
    "bert": _bertlike("Bert", {"type_vocab_size": 2}),
    "roberta": _bertlike("Roberta", {"type_vocab_size": 1}),
    "xlm-roberta": _bertlike("XLMRoberta", {"type_vocab_size": 1}),
    "electra": _bertlike("Electra", {"type_vocab_size": 2, "embedding_size": 16}),
    "distilbert": _distilbert,
    "gpt2": _gpt2,
    "t5": _t5,
}


def _modernbert(pooling: str) -> Callable[[Any, int], Any]:
    def build(tokenizer: Any, labels: int) -> Any:
        config = configs.ModernBertConfig(
            vocab_size=len(tokenizer), max_position_embeddings=68, num_labels=labels, local_attention=2 * WINDOW,
            pad_token_id=tokenizer.pad_token_id, cls_token_id=tokenizer.cls_token_id, classifier_pooling=pooling,
            sep_token_id=tokenizer.sep_token_id, bos_token_id=0, eos_token_id=2, global_attn_every_n_layers=2, **SIZE,
        )  # fmt: skip
        return transformers.ModernBertForSequenceClassification(config)

    return build


def _deberta(tokenizer: Any, labels: int) -> Any:
    config = configs.DebertaV2Config(
        vocab_size=len(tokenizer), max_position_embeddings=64, num_labels=labels, pad_token_id=tokenizer.pad_token_id,
        relative_attention=True, position_buckets=6, pos_att_type=["p2c", "c2p"], share_att_key=True,
        norm_rel_ebd="layer_norm", position_biased_input=False, type_vocab_size=0, pooler_hidden_size=24, **SIZE,
    )  # fmt: skip
    return transformers.DebertaV2ForSequenceClassification(config)


def _bart(tokenizer: Any, labels: int) -> Any:
    config = configs.BartConfig(
        vocab_size=len(tokenizer), max_position_embeddings=64, d_model=24, encoder_layers=3, decoder_layers=2,
        encoder_attention_heads=4, decoder_attention_heads=4, encoder_ffn_dim=40, decoder_ffn_dim=40,
        num_labels=labels, pad_token_id=tokenizer.pad_token_id, bos_token_id=tokenizer.bos_token_id,
        eos_token_id=tokenizer.eos_token_id, decoder_start_token_id=tokenizer.eos_token_id, scale_embedding=True,
    )  # fmt: skip
    return transformers.BartForSequenceClassification(config)


def _t5_decoder(tokenizer: Any, labels: int) -> Any:
    config = configs.T5Config(
        vocab_size=len(tokenizer), d_model=24, d_kv=6, d_ff=40, num_layers=3, num_decoder_layers=2, num_heads=4,
        num_labels=labels, pad_token_id=tokenizer.pad_token_id, eos_token_id=tokenizer.eos_token_id,
        decoder_start_token_id=tokenizer.pad_token_id,
    )  # fmt: skip
    return transformers.T5ForSequenceClassification(config)


def _decoder_only(name: str) -> Callable[[Any, int], Any]:
    def build(tokenizer: Any, labels: int) -> Any:
        window = {"sliding_window": WINDOW} if name == "Mistral" else {}
        if name in ("Qwen2", "Qwen3"):
            layers = ["sliding_attention", "full_attention", "sliding_attention"]
            window = {"use_sliding_window": True, "sliding_window": WINDOW, "layer_types": layers}
        if name == "Qwen3":
            window["head_dim"] = 6
        config = getattr(transformers, f"{name}Config")(
            vocab_size=len(tokenizer), max_position_embeddings=64, num_key_value_heads=2, num_labels=labels,
            pad_token_id=tokenizer.eos_token_id, bos_token_id=0, eos_token_id=0, **SIZE, **window,
        )  # fmt: skip
        return getattr(transformers, f"{name}ForSequenceClassification")(config)

    return build


_TOKENIZERS |= {
    "camembert": lambda: _unigram(start=True),
    "modernbert": lambda: _byte_bpe(bos=True),
    "modernbert-mean": lambda: _byte_bpe(bos=True),
    "albert": lambda: _with_segments(_unigram(start=True)),
    "mpnet": _mpnet_wordpiece,
    "deberta-v3": lambda: _with_segments(_unigram(start=True)),
    "bart": lambda: _byte_bpe(bos=True),
    "t5-decoder": lambda: _unigram(start=False),
    **dict.fromkeys(
        (f"{name}-classifier" for name in ("llama", "mistral", "qwen2", "qwen3")), lambda: _byte_bpe(False)
    ),
}
_MODULES |= {
    "camembert": _bertlike("Camembert", {"type_vocab_size": 1}),
    "modernbert": _modernbert("cls"),
    "modernbert-mean": _modernbert("mean"),
    "albert": _bertlike("Albert", {"type_vocab_size": 2, "embedding_size": 16}),
    "mpnet": _bertlike("MPNet", {}),
    "deberta-v3": _deberta,
    "bart": _bart,
    "t5-decoder": _t5_decoder,
    **{f"{name.lower()}-classifier": _decoder_only(name) for name in ("Llama", "Mistral", "Qwen2", "Qwen3")},
}

CAUSAL_FAMILIES = ("llama", "mistral", "qwen2", "qwen3", "gemma2", "gemma3", "gpt2-lm", "gpt-neox")
CHAT_TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message.role }}\n{{ message.content | trim }}<|im_end|>\n"
    "{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


def save_causal(family: str, folder: Path, seed: int = 0) -> Path:
    """A random causal language model with its tokenizer in `folder`: byte-level BPE, or SentencePiece for Gemma."""
    torch.manual_seed(seed)
    tokenizer = _sentencepiece() if family.startswith("gemma") else _byte_bpe(bos=False)
    if family == "smollm":
        digits = [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)]
        tokenizer.backend_tokenizer.pre_tokenizer = pre_tokenizers.Sequence(digits)
    if family in ("llama", "smollm"):
        tokenizer.add_special_tokens({"additional_special_tokens": ["<|im_start|>", "<|im_end|>"]})
        tokenizer.chat_template = CHAT_TEMPLATE
    module = _causal(family, len(tokenizer))
    with torch.no_grad():
        for parameter in module.parameters():
            if parameter.dim() > 1:
                parameter.normal_(0.0, 0.25)
            else:
                parameter.add_(torch.randn_like(parameter), alpha=0.1)  # norms and biases must count as well
    module.save_pretrained(str(folder))
    tokenizer.save_pretrained(str(folder))
    return folder


def _causal(family: str, vocabulary: int) -> Any:
    common = {**SIZE, "vocab_size": vocabulary, "max_position_embeddings": 64, "bos_token_id": 0, "eos_token_id": 0}
    grouped = {**common, "num_key_value_heads": 2}
    layers = ["sliding_attention", "full_attention", "sliding_attention"]
    if family in ("llama", "smollm"):
        tied = {"tie_word_embeddings": family == "smollm"}
        return transformers.LlamaForCausalLM(configs.LlamaConfig(**grouped, **tied))
    if family == "mistral":
        return transformers.MistralForCausalLM(configs.MistralConfig(**grouped, sliding_window=WINDOW))
    if family in ("qwen2", "qwen3"):
        name, sizes = family.capitalize(), {"head_dim": 6} if family == "qwen3" else {}
        config = getattr(transformers, f"{name}Config")(
            **grouped, **sizes, use_sliding_window=True, sliding_window=WINDOW, layer_types=layers
        )
        return getattr(transformers, f"{name}ForCausalLM")(config)
    if family in ("gemma2", "gemma3"):
        gemma = {**grouped, "head_dim": 6, "sliding_window": WINDOW, "layer_types": layers, "query_pre_attn_scalar": 6}
        if family == "gemma2":
            soft = {"attn_logit_softcapping": 5.0, "final_logit_softcapping": 8.0}
            return transformers.Gemma2ForCausalLM(configs.Gemma2Config(**gemma, **soft))
        return transformers.Gemma3ForCausalLM(configs.Gemma3TextConfig(**gemma))
    if family == "gpt2-lm":
        return transformers.GPT2LMHeadModel(
            configs.GPT2Config(
                vocab_size=vocabulary, n_positions=64, n_embd=24, n_layer=3, n_head=4, bos_token_id=0, eos_token_id=0
            )
        )
    return transformers.GPTNeoXForCausalLM(configs.GPTNeoXConfig(**common))


def _sentencepiece() -> Any:
    tokenizer = _unigram(start=False)
    ids = [(name, tokenizer.convert_tokens_to_ids(name)) for name in ("<pad>", "</s>")]
    tokenizer.backend_tokenizer.post_processor = processors.TemplateProcessing(single="</s> $A", special_tokens=ids)
    return tokenizer
