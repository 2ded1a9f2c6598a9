"""The command as a process: quick where it can be, silent where it must be, stopped and resumed."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.project import ROOT
from tests.tiny import CORPUS
from tests.unit.cli.conftest import Run

COMMAND = [sys.executable, "-m", "engine.cli"]
LIGHT = """
import io, contextlib, json, sys
from engine.cli import main
loaded = {}
for line in (["--help"], ["explain", "--help"], ["cache", "stats"], ["jobs"], ["models"], ["datasets"], ["explane"]):
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        with contextlib.suppress(SystemExit):
            main(line)
    loaded[" ".join(line)] = sorted({"torch", "transformers", "peft", "pandas"} & set(sys.modules))
print(json.dumps(loaded))
"""


def environment(tmp_path: Path, **more: str) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(ROOT), "EXEGESIS_HOME": str(tmp_path / "home"), **more}


def test_what_needs_no_model_loads_no_model_library(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", LIGHT],
        env=environment(tmp_path),
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    loaded = json.loads(done.stdout)
    assert loaded == {line: [] for line in loaded}


def test_json_is_alone_on_stdout_and_no_library_talks(bert: str, tmp_path: Path) -> None:
    args = ["explain", "--model", bert, "--method", "integrated_gradients", "--text", "-", "--json"]
    done = subprocess.run(
        [*COMMAND, *args], env=environment(tmp_path), cwd=tmp_path, input="ein wärmer Film 👍🏽\n".encode(),
        capture_output=True, timeout=240, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, b"")
    [one] = json.loads(done.stdout)
    assert one["features"][0]["text"] == "[CLS]"


def test_an_error_of_the_process_is_one_line(tmp_path: Path) -> None:
    args = [*COMMAND, "models", "nobody/nothing"]
    done = subprocess.run(args, env=environment(tmp_path), cwd=tmp_path, capture_output=True, timeout=240, check=False)
    assert (done.returncode, done.stdout) == (1, b"")
    [line] = done.stderr.decode().splitlines()
    assert line.startswith("error: model: 'nobody/nothing' is neither embedded")


@pytest.mark.parametrize("command", ["--help", "datasets", "jobs"])
def test_a_closed_pipe_is_quiet(tmp_path: Path, command: str) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(
        [*COMMAND, command], env=environment(tmp_path), stdout=writing, stderr=subprocess.PIPE, timeout=120, check=False
    )
    os.close(writing)
    assert done.stderr == b""
    assert done.returncode in (0, 1)


@pytest.mark.slow(reason="a training in a process of its own")
def test_a_stopped_training_says_how_to_go_on_and_does(
    bert: str, run: Run, own_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [json.dumps({"text": f"{CORPUS[i % 5]} number {i}", "label": i % 2}) for i in range(400)]
    (tmp_path / "own.jsonl").write_text("\n".join(rows))
    command = ["train", "--base", bert, "--dataset", "own.jsonl", "--out", "out", "--epochs", "2", "--held-out", "20"]
    place = {"env": environment(tmp_path, OMP_NUM_THREADS="1"), "cwd": tmp_path, "text": True}
    slow = ["--epochs", "4000", "--patience", "4000"]
    process = subprocess.Popen([*COMMAND, *command, *slow], stdout=subprocess.PIPE, stderr=subprocess.PIPE, **place)  # type: ignore[call-overload]
    end = time.monotonic() + 240
    while not (tmp_path / "out" / "checkpoint" / "state.json").is_file() and time.monotonic() < end:
        assert process.poll() is None, process.communicate()
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=120)
    assert (process.returncode, out) == (130, "")
    last = err.splitlines()[-1]
    assert last.startswith("error: train: stopped; its state is stored in out. Resume with: exegesis train --base ")
    assert "Traceback" not in err
    steps = json.loads((tmp_path / "out" / "checkpoint" / "state.json").read_text())["at"]["step"]
    assert steps > 0
    monkeypatch.chdir(tmp_path)
    refused = run(*command).complaint(2)
    assert re.fullmatch(r"out: holds a checkpoint of a run with another epochs, patience\. .*", refused)
