"""The places of the parts in each family of vision transformers: differences as data, never as code."""

from __future__ import annotations

from dataclasses import dataclass

from engine.errors import ExegesisError
from engine.models import catalog
from engine.models.adapters import LrpParts

_LRP = LrpParts(("layernorm_before", "layernorm_after", "layernorm"), ("activation_fn",), ("position_embeddings",))


@dataclass(frozen=True)
class ImageAdapter:
    """One architecture. Paths are dotted names inside the module.

    specials: the tokens before the patches, as parameters of `embeddings` in their order. heads: linear heads, one a
    special token from the first on; the logits are their mean. first_norm: a block's first LayerNorm.
    """

    family: str
    architecture: str
    backbone: str
    specials: tuple[str, ...]
    heads: tuple[str, ...]
    first_norm: str = "layernorm_before"
    causal: bool = False
    reading: str = "module"
    lrp: LrpParts = _LRP

    @property
    def tokens_read(self) -> int:
        """The number of first tokens that the heads read, one each."""
        return len(self.heads)

    @property
    def embeddings(self) -> str:
        return f"{self.backbone}.embeddings"

    @property
    def patches(self) -> str:
        """The convolution that turns patches into vectors."""
        return f"{self.backbone}.embeddings.patch_embeddings.projection"

    @property
    def blocks(self) -> str:
        return f"{self.backbone}.layers"

    @property
    def norm(self) -> str:
        return f"{self.backbone}.layernorm"

    @property
    def after_blocks(self) -> tuple[str, ...]:
        """The parts with weights after the last block."""
        return (self.norm, *self.heads)


ADAPTERS: tuple[ImageAdapter, ...] = (
    ImageAdapter("ViT", "ViTForImageClassification", "vit", ("cls_token",), ("classifier",)),
    ImageAdapter("DeiT", "DeiTForImageClassification", "deit", ("cls_token", "distillation_token"), ("classifier",)),
    ImageAdapter(
        "DeiT",
        "DeiTForImageClassificationWithTeacher",
        "deit",
        ("cls_token", "distillation_token"),
        ("cls_classifier", "distillation_classifier"),
    ),
)
MODEL_TYPES = ("vit", "deit")


def find_adapter(model_type: str, architectures: list[str], model: str) -> ImageAdapter:
    """The adapter of a checkpoint by its config's `model_type` and `architectures`."""
    if model_type not in MODEL_TYPES:
        families = ", ".join(dict.fromkeys(a.family for a in ADAPTERS))
        models = ", ".join(catalog.embedded_image_models()) or "none here"
        raise ExegesisError(
            f"model {model}: its type {model_type!r} is not a supported image model. Supported: {families}. "
            f"Use an image model, such as {models}."
        )
    adapter = next((a for a in ADAPTERS if a.architecture in architectures), None)
    if adapter is None:
        classifiers = ", ".join(a.architecture for a in ADAPTERS)
        raise ExegesisError(
            f"model {model}: no classifier. Its architecture is {', '.join(architectures) or 'not stated'}; it must be "
            f"one of {classifiers}. Train one with: exegesis train --base {model} --dataset ..."
        )
    return adapter
