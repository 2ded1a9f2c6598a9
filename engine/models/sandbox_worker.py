"""Process inside the sandbox (see `engine.models.sandbox`): `python -m engine.models.sandbox_worker`."""

from __future__ import annotations

import contextlib
import functools
import json
import os
import sys
from pathlib import Path
from typing import IO, Any

from engine.errors import ExegesisError, excerpt
from engine.input_kinds import input_kind
from engine.models import catalog
from engine.models.loading import load_tokenizer  # imports torch, before the memory of tasks is limited
from engine.models.text_classifier import render_chat, tokenize


def main(tasks: IO[bytes], answers: IO[bytes]) -> None:
    """Run the sandbox: each task and each answer is a line of JSON. Ends when the parent process closes `tasks`."""

    def answer(error: str) -> None:
        answers.write(json.dumps({"error": error}).encode() + b"\n")
        answers.flush()

    answer("")
    for line in tasks:
        task = json.loads(line)
        limit_memory(task["memory"])
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


def limit_memory(memory: int) -> None:
    """Limit the memory of this process to its current size plus `memory` bytes, if the system supports limits."""
    with contextlib.suppress(ImportError, OSError, ValueError):
        import resource  # not on every system

        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
        _, hard = resource.getrlimit(resource.RLIMIT_AS)
        wanted = pages * resource.getpagesize() + memory
        resource.setrlimit(resource.RLIMIT_AS, (wanted if hard == resource.RLIM_INFINITY else min(wanted, hard), hard))


def _open(task: dict[str, Any]) -> None:
    _load_tokenizer.cache_clear()
    input_kind(task["kind"]).open_checkpoint(catalog.locate(task["model"]))


def _tokenize(task: dict[str, Any]) -> None:
    tokenize(_load_tokenizer(task["tokenizer"]), task["text"], task["pair"])


def _decode(task: dict[str, Any]) -> None:
    tokenizer = _load_tokenizer(task["tokenizer"])
    for id in task["ids"]:
        tokenizer.decode([id])


def _render(task: dict[str, Any]) -> None:
    render_chat(_load_tokenizer(task["tokenizer"]), task["text"])


TASKS = {"open": _open, "tokenize": _tokenize, "decode": _decode, "render": _render}


@functools.lru_cache(maxsize=4)
def _load_tokenizer(folder: str) -> Any:
    return load_tokenizer(Path(folder))


if __name__ == "__main__":
    to_parent = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what libraries print must not mix with the answers
    main(sys.stdin.buffer, to_parent)
