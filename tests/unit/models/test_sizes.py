"""Sizes read from files are those of the loaded modules."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from engine.errors import ExegesisError
from engine.models.catalog import embedded_image_models, embedded_models, locate
from engine.models.loading import load_image_model, load_model
from engine.models.summary import ModelSize, model_size, stored_parameters
from tests.explaining import checkpoint
from tests.tiny import FAMILIES

FAMILY_NAMES = {
    "bert": "BERT", "roberta": "RoBERTa", "electra": "ELECTRA", "distilbert": "DistilBERT", "xlm-roberta": "XLM-R",
    "gpt2": "GPT-2", "t5": "T5 encoder", "vit": "ViT", "llama": "Llama",
}  # fmt: skip


def loaded(module: Any) -> ModelSize:
    """What the module itself says."""
    config, count = module.config, sum(parameter.numel() for parameter in module.parameters())
    return ModelSize(count, config.num_hidden_layers, config.num_attention_heads, FAMILY_NAMES[config.model_type])


@pytest.mark.parametrize("family", FAMILIES)
def test_a_checkpoint_has_the_size_of_its_module(family: str) -> None:
    folder = str(checkpoint(family))
    size = model_size(folder)
    assert size == loaded(load_model(folder).module)
    assert (size.blocks, size.heads) == (3, 4)


@pytest.mark.parametrize("name", embedded_models())
def test_an_embedded_text_model_has_the_size_of_what_runs(name: str) -> None:
    size = model_size(name)
    assert size == loaded(load_model(name).module)
    adapter = locate(name).base is not None  # its updates are stored beside the base, and run merged into it
    assert size.parameters < stored_parameters(name) if adapter else size.parameters == stored_parameters(name)


@pytest.mark.parametrize("name", embedded_image_models())
def test_an_embedded_image_model_has_the_size_of_what_runs(name: str) -> None:
    assert model_size(name) == loaded(load_image_model(name).module)


def test_what_is_stored_beside_the_parameters_does_not_count(tmp_path: Path) -> None:
    for family, beside in (("gpt2", "transformer.h.0.attn.bias"), ("t5", "encoder.embed_tokens.weight")):
        folder = shutil.copytree(checkpoint(family), tmp_path / family)
        file = folder / "model.safetensors"
        save_file({**load_file(file), beside: torch.ones(7, 7)}, file, metadata={"format": "pt"})
        assert model_size(str(folder)) == model_size(str(checkpoint(family)))


@pytest.mark.parametrize("stated", [None, 0, "three"])
def test_a_config_without_blocks_is_refused(tmp_path: Path, stated: object) -> None:
    folder = shutil.copytree(checkpoint("bert"), tmp_path / "model")
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    (folder / "config.json").write_text(json.dumps(config | {"num_hidden_layers": stated}), encoding="utf-8")
    with pytest.raises(ExegesisError, match=r"its config\.json must state num_hidden_layers, a number, got"):
        model_size(str(folder))


def test_no_weights_are_loaded() -> None:
    """Pages ask for sizes, and must not wait for the libraries that run models."""
    code = (
        "import sys; from engine.models.summary import model_size; model_size('reviews-minilm'); "
        "print('torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
