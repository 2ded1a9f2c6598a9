"""LoRA adapters: which modules of a family they change, and how they are stored and merged."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import peft
import torch
from safetensors.torch import save_file

from engine.models.adapters import adapter_for
from engine.models.loading import silence_libraries
from engine.training.config import TrainConfig

WEIGHTS = "adapter_model.safetensors"
CONFIG = "adapter_config.json"


def wrap(module: torch.nn.Module, family: str, config: TrainConfig) -> torch.nn.Module:
    """The module with LoRA on all linear layers of its blocks and its head trained whole (Hu et al., 2022)."""
    adapter = adapter_for(family, config.base)
    settings = peft.LoraConfig(
        task_type="SEQ_CLS",
        r=config.rank,
        lora_alpha=config.alpha,
        lora_dropout=config.dropout,
        target_modules=list(adapter.lora_targets),
        modules_to_save=list(adapter.head),
    )
    with silence_libraries():
        return peft.get_peft_model(module, settings)


def save(module: Any, out: Path, base_name: str) -> None:
    """Writes the adapter as float16 safetensors plus its JSON config, which names the base portably."""
    tensors = peft.get_peft_model_state_dict(module)
    half = {name: t.detach().to("cpu", torch.float16).contiguous() for name, t in tensors.items()}
    save_file(half, out / WEIGHTS, metadata={"format": "pt"})
    settings = module.peft_config["default"].to_dict()
    settings |= {"base_model_name_or_path": base_name, "inference_mode": True}
    (out / CONFIG).write_text(json.dumps(settings, indent=2, sort_keys=True, default=_plain) + "\n")


def _plain(value: object) -> object:
    return sorted(value) if isinstance(value, set | frozenset) else str(value)
