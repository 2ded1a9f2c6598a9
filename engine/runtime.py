"""The device, its queue and its memory: all that runs on the device goes through here."""

from __future__ import annotations

import contextlib
import ctypes
import functools
import gc
import math
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, TypeVar

from engine.device import DeviceQueue, gpu_possible, is_background
from engine.errors import ExegesisError, UsageError, not_allowed
from engine.lazy import torch
from engine.models.classifier import AnyClassifier
from engine.progress import check_cancelled, tell

T = TypeVar("T")

CPU_TOKENS_AT_ONCE = 16_384
"""Small passes are slower a token (the benchmark `model_work` compares); beyond this nothing is gained."""
CPU_TOKENS_LENT = 4_096
"""As above, while interactive requests may interrupt: they wait for one pass, and on a few cores short passes cost no
more."""
CPU_BUDGET = 1 << 30
CUDA_SHARE = 0.5
OUT_OF_MEMORY = ("out of memory", "can't allocate memory", "not enough memory", "STATUS_ALLOC_FAILED")
"""Messages of CUDA, CPU allocators, cuBLAS and cuDNN that mean out of memory but have no error type of their own."""
REST_SECONDS = 1.0
"""Memory is returned to the operating system at most once in so many seconds."""


_NEXT_STEP = "Use a shorter text, a smaller model, or another device."


@dataclass
class _Turn:
    """This thread's use of the device. `away`: seconds for which it was lent to interactive requests."""

    lends: bool
    away: float = 0.0


_turn: ContextVar[_Turn | None] = ContextVar("exegesis_turn", default=None)
_asker: ContextVar[str | None] = ContextVar("exegesis_asker", default=None)
_notes: ContextVar[list[str] | None] = ContextVar("exegesis_runtime_notes", default=None)
_last_release = -math.inf


def device_type() -> str:
    """Return the device type in cache keys. Does not import torch where only the CPU is possible."""
    return _asker.get() or ("cpu" if _only_cpu() else device().type)


@contextlib.contextmanager
def kept_for(asker: str) -> Iterator[None]:
    """Cache the results of the block under the device type of who requested them, whatever this machine has."""
    token = _asker.set(asker)
    try:
        yield
    finally:
        _asker.reset(token)


@functools.cache
def device() -> torch.device:
    """`EXEGESIS_DEVICE`, else the GPU if there is one, else the CPU."""
    wanted = os.environ.get("EXEGESIS_DEVICE")
    if wanted is None:
        return torch.device("cpu" if _only_cpu() or not torch.cuda.is_available() else "cuda")
    try:
        chosen = torch.device(wanted)
    except RuntimeError:
        raise not_allowed("EXEGESIS_DEVICE", "a device such as cpu or cuda:0", wanted) from None
    if not _usable(chosen):
        raise UsageError(f"EXEGESIS_DEVICE: {wanted} cannot be used here. Unset it or set it to cpu.")
    return chosen


@functools.cache
def _only_cpu() -> bool:
    wanted = os.environ.get("EXEGESIS_DEVICE")
    return not gpu_possible() if wanted is None else wanted == "cpu"


def _usable(chosen: torch.device) -> bool:
    try:
        return bool(torch.ones(1, device=chosen).sum().item() == 1)
    # Each kind of device that is not there has its own error: no driver, no such index, not in this build.
    except (RuntimeError, AssertionError):
        return False


@functools.cache
def turns() -> DeviceQueue:
    """The queue of the device: first come, first served, interactive requests before jobs."""
    return DeviceQueue()


@contextlib.contextmanager
def turn(lends: bool = False) -> Iterator[None]:
    """Hold the device in the block, and then release its unused memory. A cancelled caller stops waiting.

    `lends`: a job lets interactive requests pass between two chunks of `in_chunks`. Only for work that leaves the model
    as it is: what changes a model for longer than a chunk runs inside `unlent`.
    Errors: `ExegesisError` when memory runs out in the block.
    """
    turns().take(check_cancelled)
    token = _turn.set(_Turn(lends and is_background()))
    try:
        yield
    except (MemoryError, RuntimeError) as error:
        if not out_of_memory(error):
            raise
        raise ExegesisError(f"out of memory: the work does not fit. {_NEXT_STEP}") from error
    finally:
        _turn.reset(token)
        turns().give()
        release_memory()


@contextlib.contextmanager
def unlent() -> Iterator[None]:
    """Do not lend the device in the block: for as long as a model has hooks, scaled heads or other weights."""
    mine = _turn.get() or _Turn(lends=False)
    before, mine.lends = mine.lends, False
    try:
        yield
    finally:
        mine.lends = before


def clock() -> float:
    """Like `time.perf_counter`, but stopped while this thread lends the device."""
    mine = _turn.get()
    return time.perf_counter() - (mine.away if mine else 0.0)


def lend() -> None:
    """Let interactive requests pass, if this thread holds the device and lends it."""
    mine = _turn.get()
    if mine is not None and mine.lends:
        mine.away += turns().lend(check_cancelled)


def memory_budget() -> int:
    """Return the bytes that one pass may use: `EXEGESIS_MEMORY_BYTES`, else 1 GiB on a CPU, half of the free memory of
    a GPU.

    Memory that torch has reserved but does not use counts as free.
    """
    wanted = os.environ.get("EXEGESIS_MEMORY_BYTES")
    if wanted is not None:
        if not wanted.isdigit() or int(wanted) == 0:
            raise not_allowed("EXEGESIS_MEMORY_BYTES", "a whole number of bytes above 0", wanted)
        return int(wanted)
    if device().type == "cuda":
        unused = torch.cuda.memory_reserved(device()) - torch.cuda.memory_allocated(device())
        return int((torch.cuda.mem_get_info(device())[0] + unused) * CUDA_SHARE)
    return CPU_BUDGET


def rows_at_once(model: AnyClassifier, length: int, gradients: bool = False, attention: bool = False) -> int:
    """Return how many rows of `length` tokens one pass takes: within the budget, on a CPU no more than gains speed."""
    rows = max(1, memory_budget() // _row_bytes(model, length, gradients, attention))
    if model.device.type == "cpu":
        mine = _turn.get()
        tokens = CPU_TOKENS_LENT if mine is not None and mine.lends else CPU_TOKENS_AT_ONCE
        rows = min(rows, max(1, tokens // length))
    return rows


def _row_bytes(model: AnyClassifier, length: int, gradients: bool, attention: bool) -> int:
    config: Any = model.module.config
    hidden, layers, heads = config.hidden_size, config.num_hidden_layers, config.num_attention_heads
    wide = getattr(config, "intermediate_size", None) or getattr(config, "d_ff", None) or 4 * hidden
    matrices = heads * length * length * 3
    in_flight = length * (10 * hidden + 3 * wide) + matrices
    kept = layers * (length * (12 * hidden + 3 * wide) + matrices) if gradients else 0
    kept += layers * matrices if attention else 0
    return int((in_flight + kept) * model.dtype.itemsize)


def in_chunks(compute: Callable[[slice], T], rows: int, size: int) -> list[T]:
    """Run `compute` on slices of at most `size` rows; when memory runs out the size is halved, with a note.

    Before each slice the work can be cancelled, and a turn that lends is lent to those who wait in front.
    """
    results: list[T] = []
    start = 0
    while start < rows:
        check_cancelled()
        lend()
        tell(start, rows, "model evaluations")
        result = attempt(functools.partial(compute, slice(start, min(rows, start + size))))
        if result is not None:
            results.append(result[0])
            start += size
            continue
        if size == 1:
            raise ExegesisError(f"out of memory: even one row does not fit. {_NEXT_STEP}")
        size = max(1, min(size, rows - start) // 2)
        note(f"Memory ran out, so the work continued with {size} rows at a time. The numbers are the same.")
        free()
    tell(rows, rows, "model evaluations")
    return results


def attempt(compute: Callable[[], T]) -> tuple[T] | None:
    """Run `compute`; None where memory ran out.

    The exception is dropped, since its traceback would keep the tensors alive during the next attempt.
    """
    try:
        return (compute(),)
    except (MemoryError, RuntimeError) as error:
        if out_of_memory(error):
            return None
        raise


def out_of_memory(error: BaseException) -> bool:
    """Whether an error says that memory ran out, on any device."""
    told = any(words in str(error) for words in OUT_OF_MEMORY)
    return told or isinstance(error, (MemoryError, torch.OutOfMemoryError))


def free() -> None:
    """Release unused memory of all devices."""
    gc.collect()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()


def release_memory() -> None:
    """Return free memory to the operating system, at most once in `REST_SECONDS`, where the C library can.

    The C library keeps freed memory, for each thread apart: a server that computed for many sessions seemed to grow by
    hundreds of MB and held nothing (the benchmark `page_memory`). Torch keeps that of a GPU, which other programs use
    too.
    """
    global _last_release
    now = time.monotonic()
    if now - _last_release >= REST_SECONDS:
        _last_release = now
        _trim()(0)
        if "torch" in sys.modules and torch.cuda.is_initialized():
            torch.cuda.empty_cache()


@functools.cache
def _trim() -> Callable[[int], int]:
    try:
        trim: Callable[[int], int] = ctypes.CDLL(None).malloc_trim
    except (AttributeError, OSError, TypeError):  # not glibc: macOS, musl, Windows
        return lambda _: 0
    return trim


@contextlib.contextmanager
def noting() -> Iterator[list[str]]:
    """Collect the notes of all work in the block."""
    notes: list[str] = []
    token = _notes.set(notes)
    try:
        yield notes
    finally:
        _notes.reset(token)


def note(text: str) -> None:
    """Add a note, which is shown beside the result."""
    notes = _notes.get()
    if notes is not None and text not in notes:
        notes.append(text)
