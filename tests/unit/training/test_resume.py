"""A training process is killed by SIGKILL in the middle of an epoch; the next one ends with the same bytes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from engine.training.config import TrainConfig
from engine.training.trainer import train

KILLED = """
import json, os, signal, sys, torch
from engine.training.config import TrainConfig
from engine.training.trainer import train
torch.set_num_threads(int(sys.argv[2]))
def report(done, total, label):
    if done == 11:
        os.kill(os.getpid(), signal.SIGKILL)
train(TrainConfig(**json.loads(sys.argv[1])), report)
"""


@pytest.mark.slow(reason="trains twice, once in a process of its own")
def test_sigkill_in_mid_epoch_changes_no_bit(tiny, toy, tmp_path: Path) -> None:
    import torch

    data = toy({"warm": "good", "bad": "poor"}, 60)
    # 48 examples in 6 steps an epoch; the checkpoint of step 9 and the kill at step 11 lie inside the second.
    same = {"base": tiny("bert"), "dataset": data, "method": "lora", "epochs": 3, "batch_size": 8}
    same |= {"learning_rate": 1e-3, "average": 0.9, "checkpoint_steps": 9, "device": "cpu", "held_out": 12}
    cut = same | {"out": str(tmp_path / "cut")}
    root = Path(__file__).resolve().parents[3]
    command = [sys.executable, "-c", KILLED, json.dumps(cut), str(torch.get_num_threads())]
    ended = subprocess.run(command, cwd=root, env=os.environ | {"PYTHONPATH": str(root)}, check=False)
    assert ended.returncode == -signal.SIGKILL
    state = json.loads((tmp_path / "cut" / "checkpoint" / "state.json").read_text())
    assert (state["at"]["epoch"], state["at"]["batch"], state["at"]["step"]) == (1, 3, 9)
    steps: list[int] = []
    resumed = train(TrainConfig(**cut), lambda done, total, label: steps.append(done))
    whole = train(TrainConfig(**same, out=str(tmp_path / "whole")))
    assert steps[0] == 10
    assert resumed.card["sha256"] == whole.card["sha256"]
    assert [r.held_out for r in resumed.history] == [r.held_out for r in whole.history]
