"""The choice of the device. Freed memory goes back to the system, and not after every small computation."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from engine import runtime
from engine.errors import UsageError

BLOCK, BLOCKS = 64 << 10, 4096
PAGE = 4096


def forgotten() -> None:
    runtime.device.cache_clear()
    runtime._only_cpu.cache_clear()


@pytest.fixture(autouse=True)
def forget_the_device() -> Iterator[None]:
    forgotten()
    yield
    forgotten()


def test_the_named_device_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EXEGESIS_DEVICE", "cpu")
    assert runtime.device().type == "cpu"


@pytest.mark.parametrize(
    ("name", "said"),
    [("toaster", "must be a device such as cpu or cuda:0, got 'toaster'"), ("meta", "meta cannot be used here"),
     ("cuda:99", "cuda:99 cannot be used here")],
)  # fmt: skip
def test_a_device_that_cannot_be_used_is_refused(name: str, said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EXEGESIS_DEVICE", name)
    with pytest.raises(UsageError, match=said):
        runtime.device()


def build(**constants: str | None) -> Any:
    return lambda: SimpleNamespace(**constants)


@pytest.mark.parametrize(
    ("version", "driver", "expected"),
    [
        (build(cuda=None, hip=None), True, False),
        (build(cuda="13.0", hip=None), False, False),
        (build(cuda="13.0", hip=None), True, True),
        (build(cuda=None, hip="6.4"), False, True),
        (lambda: None, False, True),
    ],
    ids=["cpu build", "no driver", "driver", "rocm", "unknown build"],
)
def test_a_gpu_is_ruled_out_only_where_torch_could_not_use_one(
    version: Any, driver: bool, expected: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runtime, "_torch_version", version)
    monkeypatch.setattr(runtime, "_loads", lambda library: driver)
    assert runtime.gpu_possible() is expected


def test_the_quick_look_agrees_with_torch() -> None:
    assert runtime._torch_version().__version__ == torch.__version__
    assert runtime.gpu_possible() or not torch.cuda.is_available()
    assert runtime.device_type() == runtime.device().type


@pytest.mark.parametrize("name", ["cpu", None])
def test_the_kind_of_the_device_is_that_of_the_device(name: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    if name is not None:
        monkeypatch.setenv("EXEGESIS_DEVICE", name)
    kind = runtime.device_type()
    assert kind == runtime.device().type


def test_a_device_that_cannot_be_used_has_no_kind(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EXEGESIS_DEVICE", "toaster")
    with pytest.raises(UsageError, match="EXEGESIS_DEVICE: must be a device"):
        runtime.device_type()


def resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * PAGE


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_what_was_freed_between_kept_blocks_goes_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runtime, "_last_release", -np.inf)
    blocks = [np.ones(BLOCK, dtype=np.uint8) for _ in range(BLOCKS)]
    kept = blocks[::16]
    del blocks
    before = resident()
    runtime.release_memory()
    assert before - resident() > BLOCK * BLOCKS // 2
    assert all(block.all() for block in kept)


FAULTS = """
import resource
import numpy as np
from engine import runtime

def faults():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(8):
        layer = [np.ones(16 << 20, np.uint8) for _ in range(4)]
        del layer
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

faults()
usual = faults()
with runtime.turn():
    faults()
    print(faults(), usual)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="counts page faults as Linux does")
def test_in_a_turn_what_a_layer_frees_stays_for_the_next() -> None:
    done = subprocess.run([sys.executable, "-c", FAULTS], capture_output=True, text=True, check=True)
    in_turn, usual = map(int, done.stdout.split())
    assert in_turn < usual / 10


@pytest.fixture
def trims(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    found: list[int] = []
    monkeypatch.setattr(runtime, "_allocator", {"mallopt": lambda *_: 1, "malloc_trim": found.append}.__getitem__)
    monkeypatch.setattr(runtime, "_last_release", -np.inf)
    return found


def test_many_short_turns_give_back_once(trims: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    now = 100.0
    monkeypatch.setattr(runtime.time, "monotonic", lambda: now)
    for _ in range(3):
        with runtime.turn():
            assert len(trims) <= 1
    assert trims == [0]
    now += runtime.REST_SECONDS
    with runtime.turn():
        pass
    assert trims == [0, 0]


def test_a_c_library_without_the_call_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runtime.ctypes, "CDLL", lambda _: object())
    runtime._allocator.cache_clear()
    try:
        assert runtime._allocator("malloc_trim")(0) == 0
    finally:
        runtime._allocator.cache_clear()
