"""ferret-xai 0.4.2, which needs older libraries than ours and so runs in an environment of its own.

The environment is made at the first run, in the cache folder; it takes some minutes and 3 GB.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

from engine.home import home, project_root

WANTED = ("ferret-xai==0.4.2", "transformers<4.58", "pyarrow<20")
"""pyarrow: the newest that its numpy, below 2, can be used with."""
MINUTES = 20

Job = dict[str, Any]


class NotThereError(Exception):
    """ferret-xai cannot be installed or run, and why."""


class Peer:
    """The worker's process: jobs go in, answers come out, one at a time."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process

    def ask(self, do: str, **given: object) -> Job:
        """The answer to one job. Errors: the worker has ended."""
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps({"do": do, **given}) + "\n")
        self.process.stdin.flush()
        return self.answer()

    def answer(self) -> Job:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            raise NotThereError(f"its process ended with exit status {self.process.wait()}")
        answer: Job = json.loads(line)
        return answer


@contextlib.contextmanager
def peer(model: Path) -> Iterator[Peer]:
    """ferret-xai with the model of that folder, on one thread. Errors: `NotThereError`."""
    command = [str(find_python()), "-m", "benchmarks.ferret_worker", str(model)]
    alone = {**os.environ, "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": "", "TRANSFORMERS_OFFLINE": "1"}
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    with subprocess.Popen(command, cwd=project_root(), env=alone, text=True, **pipes) as process:  # type: ignore[call-overload]
        try:
            started = Peer(process)
            started.answer()
            yield started
        finally:
            process.kill()


def find_python() -> Path:
    """Return the Python of its environment, which is made at first."""
    folder = Path(os.environ.get("EXEGESIS_FERRET") or home() / "benchmarks" / "ferret")
    interpreter = folder / "bin" / "python"
    if not (folder / "ready").exists():
        print(f"Making an environment for {WANTED[0]} in {folder}; it takes some minutes.", file=sys.stderr)
        _run([sys.executable, "-m", "venv", str(folder)])
        torch = f"torch=={version('torch').partition('+')[0]}"
        _run([str(interpreter), "-m", "pip", "install", "--quiet", "--no-input", torch, *WANTED])
        (folder / "ready").touch()
    return interpreter


def _run(command: list[str]) -> None:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=60 * MINUTES)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise NotThereError(f"its environment cannot be made ({type(error).__name__})") from None
    if done.returncode:
        reason = " ".join(done.stderr.split())[-200:]
        raise NotThereError(f"its environment cannot be made ({reason})")
