"""Tiny random vision transformers with their preprocessing, saved as anybody would save them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch
import transformers

SIZE = {"hidden_size": 24, "num_hidden_layers": 3, "num_attention_heads": 4, "intermediate_size": 40}
ARCHITECTURES = ("ViTForImageClassification", "DeiTForImageClassification", "DeiTForImageClassificationWithTeacher")


def save_vit(
    folder: Path,
    architecture: str = ARCHITECTURES[0],
    image: int | tuple[int, int] = 24,
    patch: int = 8,
    processor: dict[str, Any] | None = None,
    **settings: Any,
) -> Path:
    """A random classifier of three classes. Weights are scaled up so that predictions differ."""
    torch.manual_seed(0)
    kind = transformers.DeiTConfig if architecture.startswith("DeiT") else transformers.ViTConfig
    names = {"id2label": {0: "cat", 1: "dog", 2: "eel"}, "label2id": {"cat": 0, "dog": 1, "eel": 2}}
    config = kind(image_size=image, patch_size=patch, **{**SIZE, **names, **settings})
    module = getattr(transformers, architecture)(config)
    with torch.no_grad():
        for parameter in module.parameters():
            if parameter.dim() > 1:
                parameter.normal_(0.0, 0.25)
    module.save_pretrained(str(folder))
    side = image if isinstance(image, int) else image[0]
    other = image if isinstance(image, int) else image[1]
    stated = {"do_resize": True, "size": {"height": side, "width": other}, "resample": 2}
    stated |= {"image_mean": [0.4, 0.5, 0.6], "image_std": [0.2, 0.25, 0.3]} | (processor or {})
    (folder / "preprocessor_config.json").write_text(json.dumps(stated))
    return folder
