"""Sandbox: a process with memory and time limits, in which a server tries untrusted checkpoints first.

A tokenizer's normalizers can expand one letter to terabytes and its regular expressions can run forever; a config can
ask for a billion layers. The sandbox does exactly what the server is about to do, which proceeds only if the sandbox
survived. The command line does not need it, as its process serves a single user.
"""

from __future__ import annotations

import contextlib
import functools
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from multiprocessing.connection import wait
from pathlib import Path
from typing import Any

from engine import access
from engine.errors import ExegesisError, excerpt
from engine.models import catalog
from engine.models.downloads import minilm_package_folder

OPEN_SECONDS, TOKENIZE_SECONDS, START_SECONDS = 120.0, 20.0, 120.0
MEMORY = 2**30
"""Memory limit in bytes, in addition to that of the started process and to three times the weights to be opened."""
WORKER = "engine.models.sandbox_worker"
"""Module that runs in the sandbox. It imports the loaders, which import this module."""
Texts = str | tuple[str, ...] | None


class Sandbox:
    """A process for all untrusted checkpoints, started on first use and restarted after a crash."""

    def __init__(self, memory: int = MEMORY) -> None:
        self.memory = memory
        self._lock = threading.Lock()
        self.process: subprocess.Popen[bytes] | None = None

    def open(self, source: catalog.ModelSource, kind: str, seconds: float = OPEN_SECONDS) -> None:
        """Load the checkpoint in the sandbox. Errors: those of loading; too much memory or time."""
        weights = sum(file.stat().st_size for file in source.weights)
        self._request(source.id, seconds, self.memory + 3 * weights, do="open", model=source.id, kind=kind)

    def tokenize(self, tokenizer: str, text: Texts, pair: Texts, seconds: float = TOKENIZE_SECONDS) -> None:
        """Tokenize the texts in the sandbox. Errors: those of `open`."""
        self._request(tokenizer, seconds, self.memory, do="tokenize", tokenizer=tokenizer, text=text, pair=pair)

    def decode(self, tokenizer: str, ids: Sequence[int]) -> None:
        """Decode each token in the sandbox. Errors: those of `open`."""
        self._request(tokenizer, TOKENIZE_SECONDS, self.memory, do="decode", tokenizer=tokenizer, ids=list(ids))

    def render(self, tokenizer: str, text: str) -> None:
        """Apply the tokenizer's chat template in the sandbox. Errors: those of `open`."""
        self._request(tokenizer, TOKENIZE_SECONDS, self.memory, do="render", tokenizer=tokenizer, text=text)

    def close(self) -> None:
        """End the process."""
        with self._lock:
            self._stop()

    def _request(self, name: str, seconds: float, memory: int, **task: object) -> None:
        with self._lock:
            try:
                process = self._start()
                assert process.stdin is not None
                process.stdin.write(json.dumps({**task, "memory": memory}).encode() + b"\n")
                process.stdin.flush()
                answer = self._read(process, seconds)
            except TimeoutError:
                self._stop()
                raise ExegesisError(
                    f"model {excerpt(name)}: opening or tokenizing it took longer than {seconds:g} s and was stopped. "
                    "Use another checkpoint."
                ) from None
            except (EOFError, OSError):
                self._stop()
                raise ExegesisError(
                    f"model {excerpt(name)}: the process that tested it crashed, most likely because it needs more "
                    f"than the {memory / 2**30:.1f} GiB allowed for untrusted checkpoints. Use another checkpoint."
                ) from None
        if answer["error"]:
            raise ExegesisError(answer["error"])

    def _start(self) -> subprocess.Popen[bytes]:
        if self.process is None or self.process.poll() is not None:
            self.process = subprocess.Popen(
                [sys.executable, "-P", "-m", WORKER], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL, env=_environment(),
            )  # fmt: skip
            self._read(self.process, START_SECONDS)
        return self.process

    def _read(self, process: subprocess.Popen[bytes], seconds: float) -> dict[str, Any]:
        assert process.stdout is not None
        end, line = time.monotonic() + seconds, b""
        while not line.endswith(b"\n"):
            left = end - time.monotonic()
            if left <= 0 or not wait([process.stdout.fileno()], left):
                raise TimeoutError
            part = os.read(process.stdout.fileno(), 65_536)
            if not part:
                raise EOFError
            line += part
        answer: dict[str, Any] = json.loads(line)
        return answer

    def _stop(self) -> None:
        process, self.process = self.process, None
        if process is not None:
            process.kill()
            process.wait()
            for pipe in (process.stdin, process.stdout):
                with contextlib.suppress(OSError):
                    if pipe is not None:
                        pipe.close()


_sandbox: Sandbox | None = None


def enable() -> None:
    """Enable the sandbox for opening and tokenizing with untrusted checkpoints. For servers."""
    global _sandbox
    _sandbox = _sandbox or Sandbox()


def disable() -> None:
    """Disable the sandbox and end its process."""
    global _sandbox
    if _sandbox is not None:
        _sandbox.close()
    _sandbox = None


def is_enabled() -> bool:
    """Whether untrusted checkpoints are tried in the sandbox first."""
    return _sandbox is not None


def check_opening(source: catalog.ModelSource, kind: str) -> None:
    """Open an untrusted checkpoint in the sandbox, if enabled, and raise its error. `kind`: id of its `InputKind`."""
    if _sandbox is not None and source.kind not in ("embedded", "fetched"):
        _check_texts.cache_clear()
        _sandbox.open(source, kind)


def check_tokenizing(tokenizer: str, text: str | Sequence[str], pair: str | Sequence[str] | None) -> None:
    """Tokenize the texts with an untrusted tokenizer in the sandbox, if enabled, and raise its error."""
    if _sandbox is not None and _is_foreign(tokenizer):
        _check_texts(tokenizer, *(t if t is None or isinstance(t, str) else tuple(t) for t in (text, pair)))


def check_decoding(tokenizer: str, ids: Sequence[int]) -> None:
    """Decode the tokens with an untrusted tokenizer in the sandbox, if enabled, and raise its error."""
    if _sandbox is not None and _is_foreign(tokenizer):
        _sandbox.decode(tokenizer, ids)


def check_rendering(tokenizer: str, text: str) -> None:
    """Apply an untrusted chat template in the sandbox, if enabled, and raise its error."""
    if _sandbox is not None and _is_foreign(tokenizer):
        _sandbox.render(tokenizer, text)


@functools.lru_cache(maxsize=4096)
def _check_texts(tokenizer: str, text: Texts, pair: Texts) -> None:
    if _sandbox is not None:
        _sandbox.tokenize(tokenizer, text, pair)


@functools.cache
def _is_foreign(folder: str) -> bool:
    own = [catalog.EMBEDDED, minilm_package_folder()]
    return not any(place is not None and Path(folder).is_relative_to(place) for place in own)


def _environment() -> dict[str, str]:
    """Environment variables without the organizer's password."""
    own = {name: value for name, value in os.environ.items() if name != access.PASSWORD}
    return {**own, "PYTHONPATH": os.pathsep.join(sys.path)}
