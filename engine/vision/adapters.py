"""Adapters of vision transformers and of the text encoders of zero-shot models: architecture differences as data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from engine.errors import ExegesisError
from engine.models import catalog
from engine.models.text_adapter import LrpParts, TextAdapter

Pooling = Literal["first", "first_and_mean", "mean", "attention"]
"""Input of an image model's head. `first`: its first tokens, one for each head; `first_and_mean`: the first token and
the mean of the patches; `mean`: the mean of the patches; `attention`: attention over the patches with a learned query.
"""
_VIT_LRP = LrpParts(("layernorm_before", "layernorm_after", "layernorm"), ("activation_fn",))


@dataclass(frozen=True)
class ImageAdapter:
    """An architecture of image models. Paths are dotted names inside the module.

    `specials`: parameters of `embeddings` with the tokens before the patches, in order, one token each. `registers`:
    whether `num_register_tokens` (of the config) more tokens follow, which have no positions. `heads`: linear heads; if
    `pooling` is `first`, each one reads a special token, from the first on, and the logits are the mean over heads.
    `first_norm`: the first LayerNorm of a block. `last_norm`: the LayerNorm between the last block and the head, if
    any. `pre_norm`: the LayerNorm before the first block, if any. `unread`: modules after the last block that the head
    does not read. `interpolated`: whether pictures may have any size, as positions are interpolated. `section`: the
    section of config.json that describes the image model, if it is nested. `lrp_missing`: the part that AttnLRP's rules
    do not cover, if `lrp` is None. `prompts`: whether the classes are texts (zero-shot). `windows`: whether attention
    is limited to windows; then the blocks are stages, and `first_norm` is that of a block in a stage.
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
        """Input of the head, as in `TextAdapter`; "patches" or "first_and_patches" if the head pools the patches."""
        return {"first": "module", "first_and_mean": "first_and_patches"}.get(self.pooling, "patches")

    @property
    def tokens_read(self) -> int:
        """Number of first tokens that the heads read, one each."""
        return len(self.heads) if self.pooling == "first" else 1

    @property
    def embeddings(self) -> str:
        return f"{self.backbone}.embeddings"

    @property
    def patches(self) -> str:
        """Path of the convolution that embeds patches."""
        return f"{self.embeddings}.{self.projection}"

    @property
    def blocks(self) -> str:
        return f"{self.backbone}.{self.layers}"

    @property
    def norm(self) -> str | None:
        """Path of the LayerNorm between the last block and the head, or None."""
        return None if self.last_norm is None else f"{self.backbone}.{self.last_norm}"

    @property
    def after_blocks(self) -> tuple[str, ...]:
        """Paths of the modules with weights after the last block."""
        norms = () if self.norm is None else (self.norm,)
        return (*norms, *(f"{self.backbone}.{name}" for name in self.unread), *self.heads)

    def special_tokens(self, config: Mapping[str, Any]) -> int:
        """Return the number of tokens before the patches, given the model's config.json."""
        return len(self.specials) + (int(config.get("num_register_tokens", REGISTERS)) if self.registers else 0)


REGISTERS = 4
"""Default number of register tokens."""
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
    # LayerScale multiplies by constants, so its gradient is its rule (eq. 8).
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
"""Adapters of the text encoders of zero-shot models, by architecture."""
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
    """Return the adapter of a checkpoint for the `model_type` and `architectures` of its config.

    Errors: an unsupported type; no supported classifier.
    """
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
