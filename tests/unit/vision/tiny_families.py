"""Tiny random checkpoints of the picture families beside ViT and DeiT, saved with their real image processors."""

from __future__ import annotations

import functools
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
import transformers
from torch import Tensor
from transformers.models.bit.image_processing_pil_bit import BitImageProcessorPil
from transformers.models.clip.image_processing_pil_clip import CLIPImageProcessorPil
from transformers.models.siglip.image_processing_pil_siglip import SiglipImageProcessorPil

from engine.home import home
from engine.models.loading import load_image_model

SIZE = {"hidden_size": 24, "num_hidden_layers": 3, "num_attention_heads": 4}
NAMES = {"id2label": {0: "cat", 1: "dog", 2: "eel"}, "label2id": {"cat": 0, "dog": 1, "eel": 2}}
SIDE = 8
configs: Any = transformers
"""The configurations: their signatures leave out what all of them take."""
# Positions of DINOv2 are stored for 40 x 40 pixels and interpolated to the 24 x 32 that the processor gives.
_DINO: dict[str, Any] = {"image_size": 40, "patch_size": SIDE, "mlp_ratio": 2, **SIZE, **NAMES}
_TOWER: dict[str, Any] = {"image_size": 24, "patch_size": SIDE, "intermediate_size": 40, **SIZE}
FAMILIES: dict[str, tuple[str, dict[str, Any]]] = {
    "dinov2": ("Dinov2", _DINO),
    "dinov2-swiglu": ("Dinov2", {**_DINO, "use_swiglu_ffn": True}),
    "dinov2-registers": ("Dinov2WithRegisters", {**_DINO, "num_register_tokens": 2}),
    "clip": ("CLIP", {"vision_config": _TOWER, "text_config": {**SIZE, "intermediate_size": 40}, **NAMES}),
    "siglip": ("Siglip", {"vision_config": _TOWER, "text_config": {**SIZE, "intermediate_size": 40}, **NAMES}),
}
"""The class's first word and the configuration of each tiny model."""


def save_family(folder: Path, family: str, **settings: Any) -> Path:
    """A random classifier of three classes. Weights are scaled up so that predictions differ."""
    kind, config = FAMILIES[family]
    torch.manual_seed(0)
    module = getattr(transformers, f"{kind}ForImageClassification")(
        getattr(configs, f"{kind}Config")(**{**config, **settings})
    )
    scramble(module)
    module.save_pretrained(str(folder))
    picture_processor(kind).save_pretrained(str(folder))
    return folder


def scramble(module: torch.nn.Module) -> None:
    """Give every weight a random value, so that norms, biases, LayerScale and positions count as well."""
    with torch.no_grad():
        for name, parameter in module.named_parameters():
            if "logit_" in name:
                continue
            if parameter.dim() > 1:
                parameter.normal_(0.0, 0.25)
            else:
                parameter.add_(torch.randn_like(parameter), alpha=0.2)


def picture_processor(kind: str) -> Any:
    """The real image processor of a family, for tiny pictures."""
    if kind.startswith("Dino"):
        return BitImageProcessorPil(size={"shortest_edge": 26}, crop_size={"height": 24, "width": 32}, resample=3)
    if kind == "CLIP":
        return CLIPImageProcessorPil(size={"shortest_edge": 24}, crop_size={"height": 24, "width": 24})
    return SiglipImageProcessorPil(size={"height": 24, "width": 24})


@functools.cache
def family_folder(family: str) -> Path:
    """A tiny random checkpoint of the family, written once a run."""
    place = home() / "tiny"
    place.mkdir(parents=True, exist_ok=True)
    return save_family(Path(tempfile.mkdtemp(prefix=f"{family}-", dir=place)), family)


@functools.cache
def family_model(family: str, dtype: str = "float64") -> Any:
    """That checkpoint, loaded by the engine."""
    return load_image_model(str(family_folder(family)), dtype)


@functools.cache
def plain_family(family: str) -> Any:
    """The same as transformers has it, in double precision."""
    kind = getattr(transformers, f"{FAMILIES[family][0]}ForImageClassification")
    with torch.inference_mode(False):  # a test may ask for it first inside inference mode
        return kind.from_pretrained(str(family_folder(family))).double().eval().requires_grad_(False)


def plain_logits(family: str, values: Tensor, replaced: Mapping[int, Tensor] | None = None) -> Tensor:
    """Logits of the plain model from normalized pixels. `replaced`: new pixels of patches by their number."""
    values = values.clone()
    columns = values.shape[3] // SIDE
    for number, patch in (replaced or {}).items():
        row, column = divmod(number, columns)
        values[:, :, row * SIDE : (row + 1) * SIDE, column * SIDE : (column + 1) * SIDE] = patch
    return plain_family(family)(pixel_values=values).logits
