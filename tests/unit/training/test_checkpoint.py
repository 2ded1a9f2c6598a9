from __future__ import annotations

from pathlib import Path

import torch

from engine.training.loop import CheckpointFolder

A, B = {"w": torch.tensor([1.0, 2.0])}, {"w": torch.tensor([3.0, 4.0])}


def test_the_newest_state_comes_back_and_old_files_go(tmp_path: Path) -> None:
    folder = CheckpointFolder(tmp_path / "c")
    folder.save({"step": 1}, {"model": A})
    folder.save({"step": 2}, {"model": B})
    loaded = folder.load()
    assert loaded is not None
    assert loaded[0]["step"] == 2
    assert loaded[1]["model"]["w"].equal(B["w"])
    assert len(list(folder.path.glob("*.safetensors"))) == 1


def test_a_kill_before_the_state_is_named_leaves_the_old_one(tmp_path: Path) -> None:
    folder = CheckpointFolder(tmp_path)
    folder.save({"step": 1}, {"model": A})
    old_state = (tmp_path / "state.json").read_bytes()
    old = (tmp_path / "model-1.safetensors").read_bytes()
    folder.save({"step": 2}, {"model": B})
    (tmp_path / "state.json").write_bytes(old_state)
    (tmp_path / "model-1.safetensors").write_bytes(old)
    loaded = folder.load()
    assert loaded is not None
    assert loaded[0]["step"] == 1
    assert loaded[1]["model"]["w"].equal(A["w"])


def test_damage_means_starting_again(tmp_path: Path) -> None:
    folder = CheckpointFolder(tmp_path)
    assert folder.load() is None
    folder.save({"step": 1}, {"model": A})
    (tmp_path / "model-1.safetensors").write_bytes(b"half a fi")
    assert folder.load() is None
    (tmp_path / "state.json").write_text("{")
    assert folder.load() is None


def test_nothing_is_pickled(tmp_path: Path) -> None:
    CheckpointFolder(tmp_path).save({"step": 1}, {"model": A})
    assert {f.suffix for f in tmp_path.iterdir()} == {".json", ".safetensors"}
