"""What these tests share: the same work on the CPU and on a GPU, a real one if there is one, else a pretended one."""

from __future__ import annotations

import collections
import contextlib
import dataclasses
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np
import pytest
import torch

from engine import runtime
from engine.input_kinds import load_classifier
from engine.models.classifier import AnyClassifier
from engine.request import Example, Input
from tests.explaining import checkpoint
from tests.fake_cuda import FakeCuda, fake_cuda
from tests.tiny import FAMILIES
from tests.unit.vision.tiny_vit import ARCHITECTURES, blobs, vit_folder

T = TypeVar("T")
REAL = torch.cuda.is_available()
SAME = 1e-4 if REAL else 1e-6
"""Largest difference of float32 numbers, relative to the largest of them: a GPU sums in another order."""
LEAST = 1e-3
"""The least size that numbers are compared to."""
LEAST_ALONE = 1.0 if REAL else LEAST
"""That of a single number: a GPU rounds what a probability or a check is computed from, however small the outcome."""
VISION = dict(zip(("vit", "deit", "deit-distilled"), ARCHITECTURES, strict=True))
KINDS = (*FAMILIES, *VISION)
TEXTS = ("the film", "good bad food", "although the plot drags the ending is warm")
UNLIKE = ("seconds", "provenance", "cached", "device", "date", "machine")
"""Fields that say where or when, and no number of the model's."""


def folder(kind: str, labels: int = 3) -> str:
    """A tiny random checkpoint of a family of texts or pictures."""
    return str(vit_folder(VISION[kind]) if kind in VISION else checkpoint(kind, labels))


def inputs(kind: str, count: int = 3) -> list[Input]:
    """Texts of different lengths, or pictures."""
    return [blobs(at) if kind in VISION else Example(TEXTS[at % len(TEXTS)]) for at in range(count)]


def loaded(kind: str, dtype: str = "float32", labels: int = 3) -> AnyClassifier:
    """That checkpoint on the engine's device."""
    return load_classifier("image" if kind in VISION else "text", folder(kind, labels), dtype, runtime.device())


@dataclass
class RealCuda:
    """What is seen of a real GPU; complete once it is left."""

    kernels: int = 0
    waits: collections.Counter[str] = field(default_factory=collections.Counter)
    rounded: collections.Counter[str] = field(default_factory=collections.Counter)


@contextlib.contextmanager
def on(device: str) -> Iterator[None]:
    """The engine chooses that device inside."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("EXEGESIS_DEVICE", device)
        _forget()
        try:
            yield
        finally:
            _forget()


@contextlib.contextmanager
def gpu(free: int | None = None) -> Iterator[FakeCuda | RealCuda]:
    """The engine runs on a GPU inside; `free`: bytes of a pretended one."""
    if not REAL:
        with fake_cuda(*([] if free is None else [free])) as fake, on("cuda"):
            runtime.device()  # which tries the GPU
            fake.kernels = 0
            fake.waits.clear()
            yield fake
        return
    with on("cuda"), warnings.catch_warnings(record=True) as told:
        runtime.device()
        seen, before = RealCuda(), _allocations()
        warnings.simplefilter("always")  # setting the mode warns, too
        try:
            torch.cuda.set_sync_debug_mode("warn")
            yield seen
        finally:
            torch.cuda.set_sync_debug_mode("default")
    seen.kernels = _allocations() - before
    seen.waits.update(f"{one.filename}:{one.lineno}" for one in told if "synchronizing" in str(one.message))


def both(compute: Callable[[], T]) -> tuple[T, T]:
    """What comes of it on the CPU and on the GPU."""
    with on("cpu"):
        expected = compute()
    with gpu() as seen:
        got = compute()
    assert seen.kernels, "it ran on the GPU, and took nothing that the CPU had left in the cache"
    return expected, got


def waits(compute: Callable[[], object]) -> collections.Counter[str]:
    """How often the host waits for the GPU, by line."""
    with gpu() as seen:
        compute()
    return seen.waits


def assert_same(expected: object, got: object, bound: float = SAME) -> None:
    """All numbers in two results agree, and all that is no number is equal."""
    known, found = list(_leaves(expected)), list(_leaves(got))
    assert [path for path, _ in known] == [path for path, _ in found]
    assert any(isinstance(one, np.ndarray) and one.size for _, one in known), "there are numbers"
    for (path, one), (_, other) in zip(known, found, strict=True):
        if isinstance(one, np.ndarray) and one.dtype.kind == "f":
            largest = max(np.abs(one[np.isfinite(one)]).max(initial=0), LEAST if one.ndim else LEAST_ALONE)
            np.testing.assert_allclose(other, one, rtol=0, atol=bound * largest, err_msg=path)
        elif isinstance(one, np.ndarray):
            np.testing.assert_array_equal(other, one, path)
        else:
            assert one == other, path


def _leaves(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    if isinstance(value, torch.Tensor):
        yield path, value.detach().cpu().numpy()
    elif isinstance(value, np.ndarray | float):
        yield path, np.asarray(value)
    elif dataclasses.is_dataclass(value):
        for part in dataclasses.fields(value):
            if part.name not in UNLIKE:
                yield from _leaves(getattr(value, part.name), f"{path}.{part.name}")
    elif isinstance(value, dict):
        for name, one in value.items():
            if name not in UNLIKE:
                yield from _leaves(one, f"{path}[{name}]")
    elif isinstance(value, Sequence) and value and all(isinstance(one, float) for one in value):
        yield path, np.asarray(value)  # as the logits of a prediction: the largest says what rounding is of each
    elif isinstance(value, Sequence) and not isinstance(value, str):
        for place, one in enumerate(value):
            yield from _leaves(one, f"{path}[{place}]")
    else:
        yield path, value


def _allocations() -> int:
    return int(torch.cuda.memory_stats().get("allocation.all.allocated", 0))


def _forget() -> None:
    runtime.device.cache_clear()
    runtime._only_cpu.cache_clear()
