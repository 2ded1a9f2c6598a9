"""The parts of each family of text models and vision transformers: architecture differences as data, never as code."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

from engine import plugins
from engine.errors import ExegesisError, UsageError
from engine.models import catalog

Reading = Literal["module", "last", "mean", "decoder"]
UNLIMITED = 10**6
"""Tokenizers without a limit have a larger number."""


@dataclass(frozen=True)
class LrpParts:
    """Modules to which AttnLRP's rules apply, by the last part of their names. ReLU needs no rule but its gradient.

    added: modules whose output is added to the embeddings. between: pairs of modules with a functional activation
    between them. gated: if a module has the first, the input of the second is a product. norm_shift: added to the
    weights of RMSNorms, which Gemma stores as their distance to 1.
    """

    norms: tuple[str, ...]
    activations: tuple[str, ...]
    added: tuple[str, ...] = ()
    between: tuple[tuple[str, str], ...] = ()
    gated: tuple[str, str] | None = None
    norm_shift: float = 0.0


@dataclass(frozen=True)
class TextAdapter:
    """A family of text models. Paths are dotted names inside the module.

    reading: how the sentence vector is computed. `module`: by the module's own head, from its first token; `last`: the
    last original position, then `head`; `mean`: the mean over visible positions, then `head`; `decoder`: the last
    position of a decoder that reads the encoder and the same tokens, shifted by one, then `head`.
    norm: a LayerNorm after the last block, if the family has one.
    position_start: the id of the first position, or None where positions are relative.
    lrp: None for a family that AttnLRP's rules do not cover; `lrp_missing` then names the part that has no rule.
    attention: transformers' name of the attention that computes what the family means. masks_by_layer: whether layers
    with a sliding window get a mask of their own. plain_mask: whether the module takes `[batch seq]` masks alone.
    pooling: the entry of config.json that says `cls` or `mean`, if checkpoints differ. shared_blocks: whether all
    blocks have the same weights.
    """

    family: str
    architecture: str
    backbone: str
    embeddings: str
    blocks: str
    head: tuple[str, ...]
    lrp: LrpParts | None
    norm: str | None = None
    reading: Reading = "module"
    causal: bool = False
    token_types: bool = False
    position_start: int | Literal["after_pad"] | None = 0
    attention: str = "sdpa"
    masks_by_layer: bool = False
    lora_targets: tuple[str, ...] = ()
    lrp_missing: str = ""
    plain_mask: bool = False
    pooling: str = ""
    shared_blocks: bool = False
    tokens_read: ClassVar[int] = 1
    """Number of first tokens that the head reads if `reading` is `module`."""

    @property
    def after_blocks(self) -> tuple[str, ...]:
        """Paths of the modules with weights after the last block."""
        return self.head if self.norm is None else (self.norm, *self.head)

    def configured(self, config: Mapping[str, Any]) -> TextAdapter:
        """The adapter of a checkpoint whose config.json may say that the mean is read rather than the first token."""
        return replace(self, reading="mean") if self.pooling and config.get(self.pooling) == "mean" else self

    def first_position(self, config: Any) -> int:
        """Id of the first position, given a checkpoint's config."""
        return int(config.pad_token_id) + 1 if self.position_start == "after_pad" else int(self.position_start or 0)

    def longest_input(self, config: Any, tokenizer: Any) -> int:
        """Maximum number of tokens, by the tokenizer and the number of absolute positions; 512 if unlimited."""
        limits = [tokenizer.model_max_length]
        if self.position_start is not None:
            limits.append(config.max_position_embeddings - self.first_position(config))
        return int(min(limits)) if min(limits) < UNLIMITED else 512


_BERT_LRP = LrpParts(
    ("LayerNorm",), ("intermediate_act_fn", "activation"), ("position_embeddings", "token_type_embeddings")
)
_BERT = TextAdapter(
    family="BERT",
    architecture="BertForSequenceClassification",
    backbone="bert",
    embeddings="bert.embeddings.word_embeddings",
    blocks="bert.encoder.layer",
    head=("bert.pooler", "classifier"),
    lrp=_BERT_LRP,
    token_types=True,
    lora_targets=("query", "key", "value", "attention.output.dense", "intermediate.dense", "output.dense"),
)
_ROBERTA = replace(
    _BERT,
    family="RoBERTa",
    architecture="RobertaForSequenceClassification",
    backbone="roberta",
    embeddings="roberta.embeddings.word_embeddings",
    blocks="roberta.encoder.layer",
    head=("classifier",),
    lrp=replace(
        _BERT_LRP, activations=("intermediate_act_fn",), between=(("classifier.dense", "classifier.out_proj"),)
    ),
    token_types=False,
    position_start="after_pad",
)

ADAPTERS: dict[str, TextAdapter] = {
    "bert": _BERT,
    "roberta": _ROBERTA,
    "xlm-roberta": replace(_ROBERTA, family="XLM-R", architecture="XLMRobertaForSequenceClassification"),
    "electra": replace(
        _BERT,
        family="ELECTRA",
        architecture="ElectraForSequenceClassification",
        backbone="electra",
        embeddings="electra.embeddings.word_embeddings",
        blocks="electra.encoder.layer",
        head=("classifier",),
    ),
    "distilbert": TextAdapter(
        family="DistilBERT",
        architecture="DistilBertForSequenceClassification",
        backbone="distilbert",
        embeddings="distilbert.embeddings.word_embeddings",
        blocks="distilbert.transformer.layer",
        head=("pre_classifier", "classifier"),
        lrp=LrpParts(("LayerNorm", "sa_layer_norm", "output_layer_norm"), ("activation",), ("position_embeddings",)),
        lora_targets=("q_lin", "k_lin", "v_lin", "out_lin", "lin1", "lin2"),
    ),
    "gpt2": TextAdapter(
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
    "t5": TextAdapter(
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
    "camembert": replace(_ROBERTA, family="CamemBERT", architecture="CamembertForSequenceClassification"),
    "modernbert": TextAdapter(
        family="ModernBERT",
        architecture="ModernBertForSequenceClassification",
        backbone="model",
        embeddings="model.embeddings.tok_embeddings",
        blocks="model.layers",
        head=("head", "classifier"),
        norm="model.final_norm",
        lrp=LrpParts(("norm", "attn_norm", "mlp_norm", "final_norm"), ("act",), gated=("Wi", "Wo")),
        masks_by_layer=True,
        lora_targets=("Wqkv", "Wo", "Wi"),
        pooling="classifier_pooling",
    ),
    "albert": TextAdapter(
        family="ALBERT",
        architecture="AlbertForSequenceClassification",
        backbone="albert",
        embeddings="albert.embeddings.word_embeddings",
        blocks="albert.encoder.albert_layer_groups",
        head=("albert.pooler", "classifier"),
        lrp=LrpParts(
            ("LayerNorm", "full_layer_layer_norm"),
            ("activation", "pooler_activation"),
            ("position_embeddings", "token_type_embeddings"),
        ),
        token_types=True,
        lora_targets=("query", "key", "value", "dense", "ffn", "ffn_output"),
        shared_blocks=True,
    ),
    "mpnet": replace(
        _ROBERTA,
        family="MPNet",
        architecture="MPNetForSequenceClassification",
        backbone="mpnet",
        embeddings="mpnet.embeddings.word_embeddings",
        blocks="mpnet.encoder.layer",
        attention="eager",
        lora_targets=("q", "k", "v", "o", "intermediate.dense", "output.dense"),
    ),
    "deberta-v2": TextAdapter(
        family="DeBERTa-v3",
        architecture="DebertaV2ForSequenceClassification",
        backbone="deberta",
        embeddings="deberta.embeddings.word_embeddings",
        blocks="deberta.encoder.layer",
        head=("pooler", "classifier"),
        lrp=None,
        lrp_missing="the products of queries and keys with relative positions (disentangled attention)",
        token_types=True,
        attention="eager",
        plain_mask=True,
        lora_targets=(
            "query_proj",
            "key_proj",
            "value_proj",
            "attention.output.dense",
            "intermediate.dense",
            "output.dense",
        ),
    ),
    "bart": TextAdapter(
        family="BART",
        architecture="BartForSequenceClassification",
        backbone="model",
        embeddings="model.shared",
        blocks="model.encoder.layers",
        head=("classification_head",),
        lrp=None,
        lrp_missing="relevance of the decoder's start token and positions",
        reading="decoder",
        position_start=0,
        lora_targets=("q_proj", "k_proj", "v_proj", "out_proj", "fc1", "fc2"),
    ),
}
"""Classifiers by the `model_type` of config.json: one architecture each, which `exegesis train` trains."""

_LLAMA = TextAdapter(
    family="Llama",
    architecture="LlamaForCausalLM",
    backbone="model",
    embeddings="model.embed_tokens",
    blocks="model.layers",
    head=("lm_head",),
    norm="model.norm",
    lrp=LrpParts(
        ("input_layernorm", "post_attention_layernorm", "norm", "q_norm", "k_norm"),
        ("act_fn",),
        gated=("up_proj", "down_proj"),
    ),
    reading="last",
    causal=True,
    lora_targets=("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"),
)
_GEMMA_NORMS = (
    "input_layernorm", "post_attention_layernorm", "pre_feedforward_layernorm", "post_feedforward_layernorm", "norm",
    "q_norm", "k_norm",
)  # fmt: skip

CAUSAL_ADAPTERS: dict[str, TextAdapter] = {
    adapter.architecture: adapter
    for adapter in (
        _LLAMA,
        replace(_LLAMA, family="Mistral", architecture="MistralForCausalLM"),
        replace(_LLAMA, family="Qwen2", architecture="Qwen2ForCausalLM", masks_by_layer=True),
        replace(_LLAMA, family="Qwen3", architecture="Qwen3ForCausalLM", masks_by_layer=True),
        # Its logits are soft-capped at the end, which AttnLRP has no rule for; only eager attention soft-caps.
        replace(
            _LLAMA,
            family="Gemma 2",
            architecture="Gemma2ForCausalLM",
            masks_by_layer=True,
            lrp=None,
            attention="eager",
            lrp_missing="the logits that are soft-capped at the end",
        ),
        replace(
            _LLAMA,
            family="Gemma 3",
            architecture="Gemma3ForCausalLM",
            masks_by_layer=True,
            lrp=LrpParts(_GEMMA_NORMS, ("act_fn",), gated=("up_proj", "down_proj"), norm_shift=1.0),
        ),
        replace(ADAPTERS["gpt2"], architecture="GPT2LMHeadModel", head=("lm_head",)),
        TextAdapter(
            family="GPT-NeoX",
            architecture="GPTNeoXForCausalLM",
            backbone="gpt_neox",
            embeddings="gpt_neox.embed_in",
            blocks="gpt_neox.layers",
            head=("lm_head",),
            norm="gpt_neox.final_layer_norm",
            lrp=LrpParts(("input_layernorm", "post_attention_layernorm", "final_layer_norm"), ("act",)),
            reading="last",
            causal=True,
            lora_targets=("query_key_value", "dense", "dense_h_to_4h", "dense_4h_to_h"),
        ),
    )
}
"""Causal language models by the name of their architecture in config.json."""
OTHER_ADAPTERS: dict[str, TextAdapter] = {
    adapter.architecture: adapter
    for adapter in (
        replace(
            ADAPTERS["t5"],
            family="T5",
            architecture="T5ForSequenceClassification",
            backbone="transformer",
            embeddings="transformer.shared",
            blocks="transformer.encoder.block",
            head=("classification_head",),
            norm=None,
            lrp=None,
            lrp_missing="relevance of the decoder's start token",
            reading="decoder",
        ),
        *(
            replace(
                CAUSAL_ADAPTERS[f"{name}ForCausalLM"], architecture=f"{name}ForSequenceClassification", head=("score",)
            )
            for name in ("Llama", "Mistral", "Qwen2", "Qwen3")
        ),
    )
}
"""Classifiers of a family that has another one, or whose other models are language models, by architecture."""


def register_family(model_type: str, adapter: TextAdapter) -> None:
    """Register a family of text models, which must be new.

    Classifiers are known by the `model_type` of their config.json, causal language models by their architecture.
    """
    if not isinstance(adapter, TextAdapter):
        raise UsageError(f"adapter of {model_type}: must be a TextAdapter, got {type(adapter).__name__}")
    is_language_model = adapter.architecture.endswith(catalog.CAUSAL_ENDINGS)
    families, key = (CAUSAL_ADAPTERS, adapter.architecture) if is_language_model else (ADAPTERS, model_type)
    if key in families:
        raise UsageError(f"model family {key!r} is registered twice")
    plugins.registering("models", key, functools.partial(families.pop, key, None))
    families[key] = adapter


def causal_adapter(config: Mapping[str, Any]) -> TextAdapter | None:
    """The adapter of a causal language model by its config.json; None where it is no such model."""
    plugins.load("models")
    names = config.get("architectures")
    known = [name for name in map(str, names) if name in CAUSAL_ADAPTERS] if isinstance(names, list) else []
    return CAUSAL_ADAPTERS[known[0]] if known else None


def adapter_of_config(config: Mapping[str, Any], where: str) -> TextAdapter:
    """The adapter of a classifier by its config.json. `where`: the model's name, for the error."""
    names = config.get("architectures")
    other = (
        [OTHER_ADAPTERS[str(name)] for name in names if str(name) in OTHER_ADAPTERS] if isinstance(names, list) else []
    )
    return other[0] if other else adapter_for(str(config.get("model_type", "")), where).configured(config)


def adapter_for(model_type: str, where: str) -> TextAdapter:
    """Look up the adapter of a checkpoint's `model_type`. `where`: the model's name, for the error."""
    plugins.load("models")
    if model_type not in ADAPTERS:
        families = ", ".join(dict.fromkeys(a.family for a in (*ADAPTERS.values(), *OTHER_ADAPTERS.values())))
        causal = ", ".join(CAUSAL_ADAPTERS)
        images = ", ".join(dict.fromkeys(a.family for a in IMAGE_ADAPTERS))
        raise ExegesisError(
            f"model {where}: its type {model_type!r} is not supported. Supported families of classifiers: {families}; "
            f"architectures of language models: {causal}; families of image classifiers: {images}."
        )
    return ADAPTERS[model_type]


Pooling = Literal["first", "first_and_mean", "mean", "attention"]
"""What the head of an image model reads: its first tokens, one a head; the first token beside the mean of the patches;
the mean of the patches; or an attention over the patches whose query is a parameter."""
_VIT_LRP = LrpParts(("layernorm_before", "layernorm_after", "layernorm"), ("activation_fn",))


@dataclass(frozen=True)
class ImageAdapter:
    """An architecture of image models. Paths are dotted names inside the module.

    specials: the tokens before the patches, as parameters of `embeddings` in their order, one token each. registers:
    whether as many more as the config's `num_register_tokens` follow them, which have no positions. heads: linear
    heads; where the head reads first tokens, one a special token from the first on, and the logits are their mean.
    first_norm: a block's first LayerNorm. last_norm: a LayerNorm that the head reads the last block through, if any.
    pre_norm: a LayerNorm before the first block. unread: parts after the last block that the head does not read.
    interpolated: whether pictures may have any size, as positions are interpolated. section: the part of config.json
    that describes the model of pictures, where it is nested. lrp_missing: the part that AttnLRP's rules do not cover,
    where `lrp` is None. prompts: whether the classes are texts (zero-shot). windows: whether attention stays within
    windows; then the blocks are stages, and `first_norm` is that of a block of a stage.
    """

    family: str
    architecture: str
    backbone: str
    specials: tuple[str, ...]
    heads: tuple[str, ...]
    first_norm: str = "layernorm_before"
    causal: bool = False
    lrp: LrpParts | None = _VIT_LRP
    lrp_missing: str = ""
    layers: str = "layers"
    projection: str = "patch_embeddings.projection"
    last_norm: str | None = "layernorm"
    pre_norm: str | None = None
    unread: tuple[str, ...] = ()
    pooling: Pooling = "first"
    registers: bool = False
    interpolated: bool = False
    section: str = ""
    prompts: bool = False
    windows: bool = False

    @property
    def reading(self) -> str:
        """As a `TextAdapter`'s; "patches" and "first_and_patches" where the head reads a mean over the patches."""
        return {"first": "module", "first_and_mean": "first_and_patches"}.get(self.pooling, "patches")

    @property
    def tokens_read(self) -> int:
        """The number of first tokens that the heads read, one each."""
        return len(self.heads) if self.pooling == "first" else 1

    @property
    def embeddings(self) -> str:
        return f"{self.backbone}.embeddings"

    @property
    def patches(self) -> str:
        """The convolution that turns patches into vectors."""
        return f"{self.embeddings}.{self.projection}"

    @property
    def blocks(self) -> str:
        return f"{self.backbone}.{self.layers}"

    @property
    def norm(self) -> str | None:
        """The LayerNorm that the head reads the last block through, if any."""
        return None if self.last_norm is None else f"{self.backbone}.{self.last_norm}"

    @property
    def after_blocks(self) -> tuple[str, ...]:
        """The parts with weights after the last block."""
        norms = () if self.norm is None else (self.norm,)
        return (*norms, *(f"{self.backbone}.{name}" for name in self.unread), *self.heads)

    def special_tokens(self, config: Mapping[str, Any]) -> int:
        """The number of tokens before the patches, given its config.json."""
        return len(self.specials) + (int(config.get("num_register_tokens", REGISTERS)) if self.registers else 0)


REGISTERS = 4
"""The default number of register tokens."""
_VIT = ImageAdapter("ViT", "ViTForImageClassification", "vit", ("cls_token",), ("classifier",))
_DINO = ImageAdapter(
    family="DINOv2",
    architecture="Dinov2ForImageClassification",
    backbone="dinov2",
    specials=("cls_token",),
    heads=("classifier",),
    first_norm="norm1",
    layers="encoder.layer",
    pooling="first_and_mean",
    interpolated=True,
    # LayerScale multiplies by constants: its gradient is its rule (eq. 8).
    lrp=LrpParts(("norm1", "norm2", "layernorm"), ("activation_fn", "act_fn"), gated=("up_proj", "down_proj")),
)
_TOWER_LRP = LrpParts(("pre_layrnorm", "layer_norm1", "layer_norm2", "post_layernorm"), ("activation_fn",))
_SIGLIP = ImageAdapter(
    family="SigLIP",
    architecture="SiglipForImageClassification",
    backbone="vision_model",
    specials=(),
    heads=("classifier",),
    first_norm="layer_norm1",
    layers="encoder.layers",
    projection="patch_embedding",
    last_norm="post_layernorm",
    unread=("head",),
    pooling="mean",
    section=catalog.PICTURE_SECTION,
    lrp=_TOWER_LRP,
)
_PROMPT_TOWER = TextAdapter(
    family="CLIP's model of texts",
    architecture="CLIPModel",
    backbone="text_model",
    embeddings="text_model.embeddings.token_embedding",
    blocks="text_model.encoder.layers",
    head=("similarity",),
    norm="text_model.final_layer_norm",
    lrp=LrpParts(
        ("layer_norm1", "layer_norm2", "final_layer_norm", "unit"), ("activation_fn",), ("position_embedding",)
    ),
    reading="last",
    causal=True,
)
PROMPT_ADAPTERS = {
    "CLIPModel": _PROMPT_TOWER,
    "SiglipModel": replace(_PROMPT_TOWER, family="SigLIP's model of texts", architecture="SiglipModel", causal=False),
}
"""The models of texts of those that match pictures with texts, by architecture."""
_CLIP = replace(
    _SIGLIP,
    family="CLIP",
    architecture="CLIPForImageClassification",
    specials=("class_embedding",),
    pre_norm="pre_layrnorm",
    last_norm=None,
    unread=("post_layernorm",),
)

IMAGE_ADAPTERS: tuple[ImageAdapter, ...] = (
    _VIT,
    replace(
        _VIT, family="DeiT", architecture="DeiTForImageClassification", backbone="deit",
        specials=("cls_token", "distillation_token"),
    ),
    replace(
        _VIT, family="DeiT", architecture="DeiTForImageClassificationWithTeacher", backbone="deit",
        specials=("cls_token", "distillation_token"), heads=("cls_classifier", "distillation_classifier"),
    ),
    _DINO,
    replace(
        _DINO, family="DINOv2 with registers", architecture="Dinov2WithRegistersForImageClassification",
        backbone="dinov2_with_registers", registers=True,
    ),
    _CLIP,
    _SIGLIP,
    replace(
        _CLIP, architecture="CLIPModel", heads=("similarity",), last_norm="post_layernorm", unread=(), pooling="first",
        lrp=replace(_TOWER_LRP, norms=(*_TOWER_LRP.norms, "unit")), prompts=True,
    ),
    replace(
        _SIGLIP, architecture="SiglipModel", heads=("similarity",), unread=(), pooling="attention", lrp=None,
        lrp_missing="the attention pooling head", prompts=True,
    ),
    ImageAdapter(
        family="Swin", architecture="SwinForImageClassification", backbone="swin", specials=(), heads=("classifier",),
        layers="encoder.layers", pooling="mean", windows=True,
        lrp=replace(_VIT_LRP, norms=(*_VIT_LRP.norms, "norm")),
    ),
)  # fmt: skip


def image_adapter_for(model_type: str, architectures: list[str], model: str) -> ImageAdapter:
    """The adapter of a checkpoint by its config's `model_type` and `architectures`."""
    if model_type not in catalog.IMAGE_TYPES:
        families = ", ".join(dict.fromkeys(a.family for a in IMAGE_ADAPTERS))
        models = ", ".join(catalog.embedded_image_models()) or "none here"
        raise ExegesisError(
            f"model {model}: its type {model_type!r} is not a supported image model. Supported: {families}. "
            f"Use an image model, such as {models}."
        )
    adapter = next((a for a in IMAGE_ADAPTERS if a.architecture in architectures), None)
    if adapter is None:
        classifiers = ", ".join(a.architecture for a in IMAGE_ADAPTERS)
        raise ExegesisError(
            f"model {model}: no classifier. Its architecture is {', '.join(architectures) or 'not stated'}; it must be "
            f"one of {classifiers}. Train one with: exegesis train --base {model} --dataset ..."
        )
    return adapter
