"""The sandbox: a process with limits of memory and time, in which a server first tries foreign checkpoints.

A tokenizer's normalizers can turn one letter into terabytes and its expressions can run forever; a config can ask for a
billion layers. The sandbox does exactly what the server is about to do, and may be killed over it. The server does only
what the sandbox survived. The command line needs none: its process belongs to one user.
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
from typing import IO, Any

from engine import access
from engine.errors import ExegesisError, excerpt
from engine.models import catalog
from engine.models.weight_files import minilm_package_folder

OPEN_SECONDS, TOKENIZE_SECONDS, START_SECONDS = 120.0, 20.0, 120.0
MEMORY = 2**30
"""Bytes beyond what the process takes when it has started; opening a checkpoint adds three times its weights."""
Texts = str | tuple[str, ...] | None


class Sandbox:
    """One process for all foreign checkpoints, started when it is first needed and again after it died."""

    def __init__(self, memory: int = MEMORY) -> None:
        self.memory = memory
        self._lock = threading.Lock()
        self.process: subprocess.Popen[bytes] | None = None

    def open(self, source: catalog.ModelSource, kind: str, seconds: float = OPEN_SECONDS) -> None:
        """Load the checkpoint in the sandbox. Errors: what loading it raises; it took too much memory or time."""
        weights = sum(file.stat().st_size for file in source.weights)
        self._request(source.id, seconds, self.memory + 3 * weights, do="open", model=source.id, kind=kind)

    def tokenize(self, tokenizer: str, text: Texts, pair: Texts, seconds: float = TOKENIZE_SECONDS) -> None:
        """Tokenize the texts in the sandbox. Errors: as for `open`."""
        self._request(tokenizer, seconds, self.memory, do="tokenize", tokenizer=tokenizer, text=text, pair=pair)

    def decode(self, tokenizer: str, ids: Sequence[int], seconds: float = TOKENIZE_SECONDS) -> None:
        """Decode each token in the sandbox. Errors: as for `open`."""
        self._request(tokenizer, seconds, self.memory, do="decode", tokenizer=tokenizer, ids=list(ids))

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
                    f"model {excerpt(name)}: the process in which it was tried broke off, most likely since it takes "
                    f"more memory than a foreign checkpoint may ({memory / 2**30:.1f} GiB). Use another checkpoint."
                ) from None
        if answer["error"]:
            raise ExegesisError(answer["error"])

    def _start(self) -> subprocess.Popen[bytes]:
        if self.process is None or self.process.poll() is not None:
            self.process = subprocess.Popen(
                [sys.executable, "-P", "-m", __name__], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
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
    """Open and tokenize foreign checkpoints in the sandbox first, from now on. For servers."""
    global _sandbox
    _sandbox = _sandbox or Sandbox()


def disable() -> None:
    """End the sandbox and trust checkpoints again."""
    global _sandbox
    if _sandbox is not None:
        _sandbox.close()
    _sandbox = None


def check_opening(source: catalog.ModelSource, kind: str) -> None:
    """Open a foreign checkpoint in the sandbox and raise its error; `kind`: "text" or "image"."""
    if _sandbox is not None and source.kind != "embedded":
        _check_texts.cache_clear()
        _sandbox.open(source, kind)


def check_tokenizing(tokenizer: str, text: str | Sequence[str], pair: str | Sequence[str] | None) -> None:
    """Tokenize the texts with a foreign tokenizer in the sandbox and raise its error."""
    if _sandbox is not None and _is_foreign(tokenizer):
        _check_texts(tokenizer, *(t if t is None or isinstance(t, str) else tuple(t) for t in (text, pair)))


def check_decoding(tokenizer: str, ids: Sequence[int]) -> None:
    """Decode the tokens with a foreign tokenizer in the sandbox and raise its error."""
    if _sandbox is not None and _is_foreign(tokenizer):
        _sandbox.decode(tokenizer, ids)


@functools.lru_cache(maxsize=4096)
def _check_texts(tokenizer: str, text: Texts, pair: Texts) -> None:
    if _sandbox is not None:
        _sandbox.tokenize(tokenizer, text, pair)


@functools.cache
def _is_foreign(folder: str) -> bool:
    own = [catalog.EMBEDDED, minilm_package_folder()]
    return not any(place is not None and Path(folder).is_relative_to(place) for place in own)


def _environment() -> dict[str, str]:
    """The environment without the organizer's password."""
    own = {name: value for name, value in os.environ.items() if name != access.PASSWORD}
    return {**own, "PYTHONPATH": os.pathsep.join(sys.path)}


def main(tasks: IO[bytes], answers: IO[bytes]) -> None:
    """Run the sandbox: a line of JSON a task, and one an answer. It ends with its parent, which closes `tasks`."""
    from engine.vision.loader import load_image_model  # noqa: F401

    def answer(error: str) -> None:
        answers.write(json.dumps({"error": error}).encode() + b"\n")
        answers.flush()

    answer("")
    for line in tasks:
        task = json.loads(line)
        _limit(task["memory"])
        try:
            TASKS[task["do"]](task)
        except ExegesisError as error:
            answer(str(error))
        except (MemoryError, RuntimeError, ValueError, KeyError, TypeError, OSError) as error:
            answer(
                f"its checkpoint cannot be used ({type(error).__name__}: {excerpt(str(error), 200)}). Use another one."
            )
        else:
            answer("")


def _limit(memory: int) -> None:
    with contextlib.suppress(ImportError, OSError, ValueError):  # where the system has no such limit
        import resource

        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
        _, hard = resource.getrlimit(resource.RLIMIT_AS)
        wanted = pages * resource.getpagesize() + memory
        resource.setrlimit(resource.RLIMIT_AS, (wanted if hard == resource.RLIM_INFINITY else min(wanted, hard), hard))


def _open(task: dict[str, Any]) -> None:
    from engine.input_kinds import input_kind

    _load_tokenizer.cache_clear()
    input_kind(task["kind"]).open_checkpoint(catalog.locate(task["model"]))


def _tokenize(task: dict[str, Any]) -> None:
    from engine.models.text_classifier import tokenize

    tokenize(_load_tokenizer(task["tokenizer"]), task["text"], task["pair"])


def _decode(task: dict[str, Any]) -> None:
    tokenizer = _load_tokenizer(task["tokenizer"])
    for id in task["ids"]:
        tokenizer.decode([id])


TASKS = {"open": _open, "tokenize": _tokenize, "decode": _decode}


@functools.lru_cache(maxsize=4)
def _load_tokenizer(folder: str) -> Any:
    from engine.models.loading import load_tokenizer

    return load_tokenizer(Path(folder))


if __name__ == "__main__":
    to_parent = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what libraries print must not mix with the answers
    main(sys.stdin.buffer, to_parent)
