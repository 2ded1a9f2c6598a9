"""Tiny random checkpoints of the picture families beside ViT and DeiT, saved with their real image processors."""

from __future__ import annotations

import functools
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
import transformers
from tokenizers import processors
from torch import Tensor
from transformers.models.bit.image_processing_pil_bit import BitImageProcessorPil
from transformers.models.clip.image_processing_pil_clip import CLIPImageProcessorPil
from transformers.models.siglip.image_processing_pil_siglip import SiglipImageProcessorPil
from transformers.models.vit.image_processing_pil_vit import ViTImageProcessorPil

from engine.home import home
from engine.models.label_prompts import with_prompts
from engine.models.loading import load_image_model
from tests.tiny import _byte_bpe, _unigram

SIZE = {"hidden_size": 24, "num_hidden_layers": 3, "num_attention_heads": 4}
NAMES = {"id2label": {0: "cat", 1: "dog", 2: "eel"}, "label2id": {"cat": 0, "dog": 1, "eel": 2}}
SIDE = 8
configs: Any = transformers
"""The configurations: their signatures leave out what all of them take."""
# Positions of DINOv2 are stored for 40 x 40 pixels and interpolated to the 24 x 32 that the processor gives.
_DINO: dict[str, Any] = {"image_size": 40, "patch_size": SIDE, "mlp_ratio": 2, **SIZE, **NAMES}
_TOWER: dict[str, Any] = {"image_size": 24, "patch_size": SIDE, "intermediate_size": 40, **SIZE}
# Three stages of 8 x 8, 4 x 4 and 2 x 2 positions; windows of 2 x 2, shifted by 1 in the first stage's second block.
_SWIN: dict[str, Any] = {
    "image_size": 32, "patch_size": 4, "embed_dim": 12, "num_heads": [2, 2, 4],
    "depths": [2, 1, 1], "window_size": 2, "mlp_ratio": 2.0, **NAMES,
}  # fmt: skip
FAMILIES: dict[str, tuple[str, dict[str, Any]]] = {
    "dinov2": ("Dinov2", _DINO),
    "dinov2-swiglu": ("Dinov2", {**_DINO, "use_swiglu_ffn": True}),
    "dinov2-registers": ("Dinov2WithRegisters", {**_DINO, "num_register_tokens": 2}),
    "clip": ("CLIP", {"vision_config": _TOWER, "text_config": {**SIZE, "intermediate_size": 40}, **NAMES}),
    "siglip": ("Siglip", {"vision_config": _TOWER, "text_config": {**SIZE, "intermediate_size": 40}, **NAMES}),
    "swin": ("Swin", _SWIN),
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
    side = 32 if kind == "Swin" else 24
    return (ViTImageProcessorPil if kind == "Swin" else SiglipImageProcessorPil)(size={"height": side, "width": side})


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
    side = family_model(family).patch[0]
    for number, patch in (replaced or {}).items():
        row, column = (side * place for place in divmod(number, values.shape[3] // side))
        values[:, :, row : row + side, column : column + side] = patch
    return plain_family(family)(pixel_values=values).logits


ZERO_SHOT = ("clip", "siglip")


def save_zero_shot(folder: Path, family: str) -> Path:
    """A random model of pictures and texts, with its processor and a tokenizer that ends and pads as the real one."""
    torch.manual_seed(0)
    tokenizer = prompt_tokenizer(family)
    kind, settings = FAMILIES[family]
    text = {
        **SIZE, "intermediate_size": 40, "vocab_size": len(tokenizer), "max_position_embeddings": 32,
        "eos_token_id": tokenizer.eos_token_id, "pad_token_id": tokenizer.pad_token_id,
        "bos_token_id": tokenizer.bos_token_id, "projection_size": 24,
    }  # fmt: skip
    sizes = {"projection_dim": 20} if family == "clip" else {}
    config = getattr(configs, f"{kind}Config")(vision_config=settings["vision_config"], text_config=text, **sizes)
    module = getattr(transformers, f"{kind}Model")(config)
    scramble(module)
    with torch.no_grad():
        module.logit_scale.fill_(1.5)
        if family == "siglip":
            module.logit_bias.fill_(-2.0)
    module.save_pretrained(str(folder))
    picture_processor(kind).save_pretrained(str(folder))
    tokenizer.save_pretrained(str(folder))
    return folder


def prompt_tokenizer(family: str) -> Any:
    """CLIP: byte BPE with a start and an end, which pads too. SigLIP: pieces with an end, padded to one length."""
    if family == "siglip":
        tokenizer = _unigram(start=False)
        tokenizer.model_max_length = 32
        tokenizer.model_input_names = ["input_ids"]
        return tokenizer
    tokenizer = _byte_bpe(bos=False)
    tokenizer.add_special_tokens({"bos_token": "<|startoftext|>", "pad_token": "<|endoftext|>"})
    ids = [(name, tokenizer.convert_tokens_to_ids(name)) for name in ("<|startoftext|>", "<|endoftext|>")]
    tokenizer.backend_tokenizer.post_processor = processors.TemplateProcessing(
        single="<|startoftext|> $A <|endoftext|>", special_tokens=ids
    )
    tokenizer.model_max_length = 32
    return tokenizer


@functools.cache
def zero_shot_folder(family: str) -> Path:
    """A tiny random model of pictures and texts, written once a run."""
    place = home() / "tiny"
    place.mkdir(parents=True, exist_ok=True)
    return save_zero_shot(Path(tempfile.mkdtemp(prefix=f"{family}-both-", dir=place)), family)


@functools.cache
def zero_shot_name(family: str) -> str:
    """The tiny model's name with three labels."""
    return with_prompts(str(zero_shot_folder(family)), "film, food, price", "a view of the {}")


@functools.cache
def plain_zero_shot(family: str) -> Any:
    """The same as transformers has it, in double precision."""
    kind = getattr(transformers, f"{FAMILIES[family][0]}Model")
    with torch.inference_mode(False):
        return kind.from_pretrained(str(zero_shot_folder(family))).double().eval().requires_grad_(False)


def plain_similarities(family: str, values: Tensor, texts: Sequence[str]) -> Tensor:
    """`logits_per_image` of the plain model, given texts as its documentation tokenizes them."""
    tokenizer = transformers.AutoTokenizer.from_pretrained(str(zero_shot_folder(family)))
    options = {"padding": "max_length", "max_length": 32} if family == "siglip" else {"padding": True}
    inputs = tokenizer(list(texts), return_tensors="pt", **options)
    inputs.pop("token_type_ids", None)
    return plain_zero_shot(family)(pixel_values=values, **inputs).logits_per_image
