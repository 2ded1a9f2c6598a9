"""Where the parts of each model family are: architecture differences as data, never as code."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from engine.errors import ExegesisError

Reading = Literal["module", "last", "mean"]
UNLIMITED = 10**6
"""A tokenizer that knows no limit states a huge one."""


@dataclass(frozen=True)
class LrpParts:
    """Where AttnLRP's rules apply, as last names of modules. A ReLU needs none: its gradient is its rule.

    added: what is added to the embeddings. between: modules with an activation between them that is none itself.
    gated: where a module has the first, what goes into the second is a product.
    """

    norms: tuple[str, ...]
    activations: tuple[str, ...]
    added: tuple[str, ...] = ()
    between: tuple[tuple[str, str], ...] = ()
    gated: tuple[str, str] | None = None


@dataclass(frozen=True)
class Adapter:
    """One family. Paths are dotted names inside the module.

    reading: how the sentence vector is read. `module`: the module's own head on its first token; `last`: the last
    original position, then `head`; `mean`: the mean over kept positions, then `head`.
    norm: a LayerNorm after the last block, where the family has one.
    position_start: the id of the first position, or None where positions are relative.
    """

    family: str
    architecture: str
    backbone: str
    embeddings: str
    blocks: str
    head: tuple[str, ...]
    lrp: LrpParts
    norm: str | None = None
    reading: Reading = "module"
    causal: bool = False
    token_types: bool = False
    position_start: int | Literal["after_pad"] | None = 0
    lora_targets: tuple[str, ...] = ()
    tokens_read: ClassVar[int] = 1
    """First tokens that the head reads where `reading` is `module`."""

    @property
    def after_blocks(self) -> tuple[str, ...]:
        """All that has weights after the last block."""
        return self.head if self.norm is None else (self.norm, *self.head)

    def first_position(self, config: Any) -> int:
        """The id of the first position for a checkpoint's config."""
        return int(config.pad_token_id) + 1 if self.position_start == "after_pad" else int(self.position_start or 0)

    def longest_input(self, config: Any, tokenizer: Any) -> int:
        """Tokens that fit: what the tokenizer says and, where positions are absolute, has a place; else 512."""
        limits = [tokenizer.model_max_length]
        if self.position_start is not None:
            limits.append(config.max_position_embeddings - self.first_position(config))
        return int(min(limits)) if min(limits) < UNLIMITED else 512


_BERT_LORA = ("query", "key", "value", "attention.output.dense", "intermediate.dense", "output.dense")
_ADDED = ("position_embeddings", "token_type_embeddings")
_BERT_LRP = LrpParts(("LayerNorm",), ("intermediate_act_fn", "activation"), _ADDED)
_ROBERTA_LRP = LrpParts(
    ("LayerNorm",), ("intermediate_act_fn",), _ADDED, between=(("classifier.dense", "classifier.out_proj"),)
)

ADAPTERS: dict[str, Adapter] = {
    "bert": Adapter(
        family="BERT",
        architecture="BertForSequenceClassification",
        backbone="bert",
        embeddings="bert.embeddings.word_embeddings",
        blocks="bert.encoder.layer",
        head=("bert.pooler", "classifier"),
        lrp=_BERT_LRP,
        token_types=True,
        lora_targets=_BERT_LORA,
    ),
    "roberta": Adapter(
        family="RoBERTa",
        architecture="RobertaForSequenceClassification",
        backbone="roberta",
        embeddings="roberta.embeddings.word_embeddings",
        blocks="roberta.encoder.layer",
        head=("classifier",),
        lrp=_ROBERTA_LRP,
        position_start="after_pad",
        lora_targets=_BERT_LORA,
    ),
    "xlm-roberta": Adapter(
        family="XLM-R",
        architecture="XLMRobertaForSequenceClassification",
        backbone="roberta",
        embeddings="roberta.embeddings.word_embeddings",
        blocks="roberta.encoder.layer",
        head=("classifier",),
        lrp=_ROBERTA_LRP,
        position_start="after_pad",
        lora_targets=_BERT_LORA,
    ),
    "electra": Adapter(
        family="ELECTRA",
        architecture="ElectraForSequenceClassification",
        backbone="electra",
        embeddings="electra.embeddings.word_embeddings",
        blocks="electra.encoder.layer",
        head=("classifier",),
        lrp=_BERT_LRP,
        token_types=True,
        lora_targets=_BERT_LORA,
    ),
    "distilbert": Adapter(
        family="DistilBERT",
        architecture="DistilBertForSequenceClassification",
        backbone="distilbert",
        embeddings="distilbert.embeddings.word_embeddings",
        blocks="distilbert.transformer.layer",
        head=("pre_classifier", "classifier"),
        lrp=LrpParts(("LayerNorm", "sa_layer_norm", "output_layer_norm"), ("activation",), ("position_embeddings",)),
        lora_targets=("q_lin", "k_lin", "v_lin", "out_lin", "lin1", "lin2"),
    ),
    "gpt2": Adapter(
        family="GPT-2",
        architecture="GPT2ForSequenceClassification",
        backbone="transformer",
        embeddings="transformer.wte",
        blocks="transformer.h",
        head=("score",),
        norm="transformer.ln_f",
        lrp=LrpParts(("ln_1", "ln_2", "ln_f"), ("act",), ("wpe",)),
        reading="last",
        causal=True,
        lora_targets=("c_attn", "c_proj", "c_fc"),
    ),
    "t5": Adapter(
        family="T5 encoder",
        architecture="T5EncoderForSequenceClassification",
        backbone="encoder",
        embeddings="shared",
        blocks="encoder.block",
        head=("classifier",),
        norm="encoder.final_layer_norm",
        lrp=LrpParts(("layer_norm", "final_layer_norm"), ("act",), gated=("wi_1", "wo")),
        reading="mean",
        position_start=None,
        lora_targets=("q", "k", "v", "o", "wi", "wo", "wi_0", "wi_1"),
    ),
}


def adapter_for(model_type: str, where: str) -> Adapter:
    """The adapter of a checkpoint's `model_type`."""
    if model_type not in ADAPTERS:
        families = ", ".join(a.family for a in ADAPTERS.values())
        raise ExegesisError(f"model {where}: its type {model_type!r} is not supported. Supported families: {families}.")
    return ADAPTERS[model_type]
