"""The device, its queue and its memory: all work on the device goes through this module.

Functions that cached pages need, such as `device_type`, avoid importing torch if they can.

The queue orders the threads of one process: first come, first served, interactive requests before jobs. There is no
queue between processes: the operating system and the driver share the device among them.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import gc
import importlib.util
import math
import os
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple, TypeVar

from engine.errors import ExegesisError, UsageError, not_allowed
from engine.lazy import torch
from engine.models.classifier import AnyClassifier
from engine.processor import last_level_cache
from engine.progress import check_cancelled, tell

T = TypeVar("T")

DRIVER = "nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1"
"""The driver library that the CUDA runtime loads first; without it `torch.cuda.is_available()` is False."""
INTERACTIVE_FIRST = 4
"""Interactive requests served before one background request: a job is slowed down, never stopped."""
CPU_TOKENS_AT_ONCE = 16_384
"""Maximum tokens of a pass: larger passes gain nothing, whatever the cache size (benchmark `model_work`)."""
CPU_TOKENS_AT_LEAST = 1_024
"""Lower bound of that maximum: shorter passes are slower per token, even if the cache is small."""
CPU_TOKENS_LENT = 4_096
"""The maximum while interactive requests may interrupt: they have to wait for one pass."""
CPU_BUDGET = 1 << 30
CUDA_SHARE = 0.5
OUT_OF_MEMORY = ("out of memory", "can't allocate memory", "not enough memory", "STATUS_ALLOC_FAILED")
"""Messages of CUDA, CPU allocators, cuBLAS and cuDNN that mean out of memory but have no error type of their own."""
REST_SECONDS = 1.0
"""Minimum time in seconds between two returns of memory to the operating system."""
KEPT_BYTES = 1 << 30
"""Maximum of freed memory that the C library keeps during a turn."""
TRIM_THRESHOLD, MMAP_THRESHOLD = -1, -3
"""Parameters of glibc's `mallopt`."""
MOST_IN_HEAP = 32 << 20
"""The largest `MMAP_THRESHOLD` that glibc accepts: larger blocks go back to the operating system at once."""
_NEXT_STEP = "Use a shorter text, a smaller model, or another device."
_CHECK_SECONDS = 0.1

_background: ContextVar[bool] = ContextVar("exegesis_background", default=False)


def gpu_possible() -> bool:
    """Return False only if torch cannot see a GPU: a CPU build, or CUDA without its driver."""
    build = _torch_version()
    if build is None or getattr(build, "hip", None) is not None:
        return True
    return getattr(build, "cuda", None) is not None and _loads(DRIVER)


def _torch_version() -> ModuleType | None:
    """Load torch/version.py, a file of constants, without torch; None if it cannot be found."""
    package = importlib.util.find_spec("torch")
    file = Path(package.origin).with_name("version.py") if package and package.origin else None
    if file is None or not file.is_file():
        return None
    spec = importlib.util.spec_from_file_location("torch_version", file)
    if spec is None or spec.loader is None:
        return None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _loads(library: str) -> bool:
    try:
        ctypes.CDLL(library)
    except OSError:
        return False
    return True


@contextlib.contextmanager
def in_background() -> Iterator[None]:
    """Run the block at background priority: interactive requests go first."""
    token = _background.set(True)
    try:
        yield
    finally:
        _background.reset(token)


def is_background() -> bool:
    """Whether the caller runs at background priority."""
    return _background.get()


@dataclass(eq=False)
class _Request:
    """A request for the device, interactive or in the background."""

    thread: int
    background: bool
    called: threading.Event = field(default_factory=threading.Event)


class DeviceQueue:
    """A fair lock with two priorities. Use it as a context manager; it is not re-entrant."""

    def __init__(self) -> None:
        self._at: _Request | None = None
        self._interactive_requests, self._background_requests = deque[_Request](), deque[_Request]()
        self._passed = 0
        self._lock = threading.Lock()

    @property
    def waiting(self) -> int:
        """Number of requests that wait."""
        with self._lock:
            return len(self._interactive_requests) + len(self._background_requests)

    def place(self, thread: int | None = None) -> int | None:
        """Count the requests before that of `thread` (default: the caller); 0 holds the device, None is not queued."""
        wanted = threading.get_ident() if thread is None else thread
        with self._lock:
            order = [
                request for request in (self._at, *self._interactive_requests, *self._background_requests) if request
            ]
            return next((n for n, request in enumerate(order) if request.thread == wanted), None)

    def take(self, check: Callable[[], None] | None = None) -> None:
        """Wait for the device. `check` is called now and then meanwhile; if it raises, the request is withdrawn."""
        mine = _Request(threading.get_ident(), is_background())
        with self._lock:
            (self._background_requests if mine.background else self._interactive_requests).append(mine)
            self._call_next()
        self._wait(mine, check)

    def lend(self, check: Callable[[], None] | None = None) -> float:
        """Let waiting interactive requests pass, if the caller holds the device in the background; then continue.

        Returns the seconds that it waited. If `check` raises meanwhile, the device is given up.
        """
        started = time.perf_counter()
        with self._lock:
            at = self._at
            if at is None or not at.background or not self._interactive_requests:
                return 0.0
            mine = _Request(at.thread, background=True)
            self._background_requests.appendleft(mine)
            self._at = None
            self._call_next()
        self._wait(mine, check)
        return time.perf_counter() - started

    def give(self) -> None:
        """Release the device, if the caller still holds it; the next request gets it."""
        with self._lock:
            if self._at is not None and self._at.thread == threading.get_ident():
                self._at = None
                self._call_next()

    def __enter__(self) -> None:
        self.take()

    def __exit__(self, *error: object) -> None:
        self.give()

    def _wait(self, mine: _Request, check: Callable[[], None] | None) -> None:
        try:
            while not mine.called.wait(_CHECK_SECONDS if check else None):
                if check:
                    check()
        except BaseException:
            self._leave(mine)
            raise

    def _leave(self, mine: _Request) -> None:
        with self._lock:
            if self._at is mine:
                self._at = None
            else:
                (self._background_requests if mine.background else self._interactive_requests).remove(mine)
            self._call_next()

    def _call_next(self) -> None:
        if self._at is None and (self._interactive_requests or self._background_requests):
            self._at = self._next()
            self._at.called.set()

    def _next(self) -> _Request:
        if self._interactive_requests and not (self._background_requests and self._passed >= INTERACTIVE_FIRST):
            self._passed = self._passed + 1 if self._background_requests else 0
            return self._interactive_requests.popleft()
        self._passed = 0
        return self._background_requests.popleft()


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
    """Return the device type in cache keys. Does not import torch if only the CPU is possible."""
    return _asker.get() or ("cpu" if _only_cpu() else device().type)


@contextlib.contextmanager
def kept_for(asker: str) -> Iterator[None]:
    """Cache the results of the block under the device type of the requesting process, whatever this machine has."""
    token = _asker.set(asker)
    try:
        yield
    finally:
        _asker.reset(token)


@functools.cache
def device() -> torch.device:
    """Return `EXEGESIS_DEVICE`, else the GPU if there is one, else the CPU."""
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
    # Each kind of missing device raises its own error: no driver, no such index, not in this build.
    except (RuntimeError, AssertionError):
        return False


@functools.cache
def turns() -> DeviceQueue:
    """Return the queue of the device: first come, first served, interactive requests before jobs."""
    return DeviceQueue()


@contextlib.contextmanager
def turn(lends: bool = False) -> Iterator[None]:
    """Hold the device in the block, and then release its unused memory. A cancelled caller stops waiting.

    `lends`: whether a job lets interactive requests pass between two chunks of `in_chunks`. Only for work that does not
    change the model: code that changes it for longer than a chunk runs inside `unlent`.
    Errors: `ExegesisError` when memory runs out in the block.
    """
    turns().take(check_cancelled)
    keep_memory()
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
    """Do not lend the device in the block, while a model has hooks, scaled heads or changed weights."""
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


def rows_at_once(
    model: AnyClassifier, length: int, gradients: bool = False, attention: bool = False, past: int = 0, held: int = 0
) -> int:
    """Return the number of rows of `length` tokens per pass: within the budget, on a CPU no more than gains speed.

    past: number of earlier tokens whose keys and values each row copies. held: bytes of the budget that are in use.
    On a CPU the inner activations of a block stay in the last-level cache together with its weights: passes of
    `reviews-minilm` that exceed it are a tenth slower. Weights that fill more than half of it leave no room, and large
    passes read them least often.
    """
    rows = max(1, (memory_budget() - held) // _row_bytes(model, length, gradients, attention, past))
    if model.device.type == "cpu":
        mine = _turn.get()
        tokens = CPU_TOKENS_LENT if mine is not None and mine.lends else CPU_TOKENS_AT_ONCE
        rows = min(rows, max(1, int(min(tokens, _tokens_in_cache(model))) // length))
    return rows


def _tokens_in_cache(model: AnyClassifier) -> int | float:
    shape, cache, size = _shape(model), last_level_cache(), model.dtype.itemsize
    weights = (4 * shape.hidden + 2 * shape.wide) * shape.hidden * size
    if 2 * weights > cache:
        return math.inf
    return max(CPU_TOKENS_AT_LEAST, (cache - weights) // ((shape.hidden + 2 * shape.wide) * size))


class _Shape(NamedTuple):
    """The dimensions of a model that determine its memory use; for Swin, those of the first stage.

    hidden, wide: width of the hidden states, and of the inner activations of a block. reach: maximum number of
    positions that one position attends to.
    """

    layers: int
    heads: int
    hidden: int
    wide: int
    reach: float = math.inf


def _shape(model: AnyClassifier) -> _Shape:
    if "shape" not in model.memo:
        model.memo["shape"] = _read_shape(model.module.config)
    return model.memo["shape"]


def _read_shape(config: Any) -> _Shape:
    if hasattr(config, "window_size") and hasattr(config, "depths"):
        wide = int(config.mlp_ratio * config.embed_dim)
        return _Shape(sum(config.depths), config.num_heads[0], config.embed_dim, wide, config.window_size**2)
    wide = getattr(config, "intermediate_size", None) or getattr(config, "d_ff", None) or 4 * config.hidden_size
    return _Shape(config.num_hidden_layers, config.num_attention_heads, config.hidden_size, wide)


def past_bytes(model: AnyClassifier, length: int) -> int:
    """Return the bytes of the keys and values of `length` tokens in all layers."""
    config: Any = model.module.config
    heads = config.num_attention_heads
    width = getattr(config, "head_dim", None) or config.hidden_size // heads
    groups = getattr(config, "num_key_value_heads", None) or heads
    return 2 * int(config.num_hidden_layers) * length * groups * width * model.dtype.itemsize


def _row_bytes(model: AnyClassifier, length: int, gradients: bool, attention: bool, past: int = 0) -> int:
    layers, heads, hidden, wide, reach = _shape(model)
    matrices = heads * length * (min(length, reach) + past) * 3
    in_flight = length * (10 * hidden + 3 * wide) + matrices
    in_flight += 6 * past * hidden  # keys and values of a layer as they are copied: for the row, and for its heads
    kept = layers * (length * (12 * hidden + 3 * wide) + matrices) if gradients else 0
    kept += layers * matrices if attention else 0
    return int((in_flight + kept) * model.dtype.itemsize)


def in_chunks(compute: Callable[[slice], T], rows: int, size: int | Callable[[int], int]) -> list[T]:
    """Run `compute` on slices of at most `size` rows; when memory runs out the size is halved, with a note.

    Before each slice the work can be cancelled, and a turn that lends lets interactive requests pass. `size` may depend
    on the first row of a slice.
    """
    results: list[T] = []
    start, most = 0, rows
    while start < rows:
        check_cancelled()
        lend()
        tell(start, rows, "model evaluations")
        step = min(most, rows - start, size(start) if callable(size) else size)
        result = attempt(functools.partial(compute, slice(start, start + step)))
        if result is not None:
            results.append(result[0])
            start += step
            continue
        if step == 1:
            raise ExegesisError(f"out of memory: even one row does not fit. {_NEXT_STEP}")
        most = step // 2
        note(f"Memory ran out, so the work continued with {most} rows at a time. The numbers are the same.")
        free()
    tell(rows, rows, "model evaluations")
    return results


def attempt(compute: Callable[[], T]) -> tuple[T] | None:
    """Run `compute` and return its result in a tuple; None if memory ran out.

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


@functools.cache
def keep_memory() -> None:
    """Make the C library keep freed memory until `release_memory`, if it can.

    By default it returns the large arrays of each layer at once, and the next layer requests them again page by page.
    On a CPU this takes a tenth of the time of MiniLM's passes, and a fifth to a third of that of the small embedded
    models (benchmark `kept_memory`).
    """
    _allocator("mallopt")(TRIM_THRESHOLD, KEPT_BYTES)
    _allocator("mallopt")(MMAP_THRESHOLD, MOST_IN_HEAP)


def release_memory() -> None:
    """Return free memory to the operating system, at most once in `REST_SECONDS`, if the C library can.

    The C library keeps freed memory separately for each thread: a server that computed for many sessions seemed to grow
    by hundreds of MB although it held nothing (benchmark `page_memory`). Torch keeps freed memory of a GPU, which other
    programs use too.
    """
    global _last_release
    now = time.monotonic()
    if now - _last_release >= REST_SECONDS:
        _last_release = now
        _allocator("malloc_trim")(0)
        if "torch" in sys.modules and torch.cuda.is_initialized():
            torch.cuda.empty_cache()


@functools.cache
def _allocator(name: str) -> Callable[..., int]:
    """Return a function of glibc's allocator; elsewhere (macOS, musl, Windows) one that does nothing."""
    try:
        function: Callable[..., int] = getattr(ctypes.CDLL(None), name)
    except (AttributeError, OSError, TypeError):
        return lambda *_: 0
    return function


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
    """Add a note, which is shown with the result."""
    notes = _notes.get()
    if notes is not None and text not in notes:
        notes.append(text)
