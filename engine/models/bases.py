"""Pre-trained bases with a fresh classification or regression head, ready to be fine-tuned."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from transformers import AutoConfig, AutoModelForSequenceClassification, AutoTokenizer
from transformers.utils import logging as hf_logging

from engine.errors import ExegesisError
from engine.models.adapters import adapter_for
from engine.models.base_files import locate, read_config, weights_sha256
from engine.models.t5 import T5EncoderForSequenceClassification

__all__ = [
    "CLASSIFIERS",
    "load_base",
    "load_tokenizer",
    "locate",
    "longest_input",
    "merged",
    "quiet",
    "read_config",
    "weights_sha256",
]

CLASSIFIERS: dict[str, Any] = {"t5": T5EncoderForSequenceClassification}
"""Families whose classifier is not the one that transformers chooses, by config `model_type`."""


def load_base(path: Path, labels: tuple[str, ...], regression: bool = False) -> torch.nn.Module:
    """A float32 module `(input_ids, attention_mask, ...) -> .logits`, one logit a label (regression: one)."""
    family = read_config(path).get("model_type", "")
    _require_safetensors(path)
    with quiet():
        module = _from_pretrained(CLASSIFIERS.get(family, AutoModelForSequenceClassification), path, labels, regression)
    return module.float()


def merged(base: torch.nn.Module, adapter: Path) -> torch.nn.Module:
    """The base with the stored LoRA adapter added to its weights, in float32."""
    from peft import PeftModel

    with quiet():
        # Where it goes is for the caller to say: peft would read it onto the first GPU there is.
        return PeftModel.from_pretrained(base, str(adapter), torch_device="cpu").merge_and_unload().float()


def load_tokenizer(path: Path) -> Any:
    """The base's tokenizer; one without a pad token (GPT-2) pads with its end token."""
    with quiet():
        tokenizer = AutoTokenizer.from_pretrained(str(path), trust_remote_code=False)
    if tokenizer.pad_token_id is None:
        tokenizer.pad_token = tokenizer.eos_token
    return tokenizer


def longest_input(path: Path, tokenizer: Any) -> int:
    """Tokens that fit into the model once it is loaded; its weights are not read."""
    adapter = adapter_for(read_config(path).get("model_type", ""), str(path))
    return adapter.longest_input(AutoConfig.from_pretrained(str(path), trust_remote_code=False), tokenizer)


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Silences the loading reports and progress bars of transformers and peft, and restores them."""
    level, bars = hf_logging.get_verbosity(), hf_logging.is_progress_bar_enabled()
    hf_logging.set_verbosity_error()
    hf_logging.disable_progress_bar()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        hf_logging.set_verbosity(level)
        if bars:
            hf_logging.enable_progress_bar()


def _from_pretrained(kind: Any, path: Path, labels: tuple[str, ...], regression: bool) -> torch.nn.Module:
    labels = ("score",) if regression else labels
    names = {"label2id": {label: i for i, label in enumerate(labels)}, "id2label": dict(enumerate(labels))}
    module = kind.from_pretrained(
        str(path),
        num_labels=1 if regression else len(labels),
        problem_type="regression" if regression else "single_label_classification",
        use_safetensors=True,
        trust_remote_code=False,
        ignore_mismatched_sizes=True,
        attn_implementation="sdpa",
        dtype=torch.float32,
        **names,
    )
    if module.config.pad_token_id is None:
        module.config.pad_token_id = module.config.eos_token_id
    return module


def _require_safetensors(path: Path) -> None:
    if not any(path.glob("*.safetensors")):
        raise ExegesisError(
            f"base: {path} holds no safetensors (pickle checkpoints are refused). "
            "Convert it with transformers' save_pretrained."
        )
