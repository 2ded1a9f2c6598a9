"""The memory of a GPU: what a pass may use of it, what happens when it runs out, and that it goes back."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch

from engine import health, runtime
from engine.errors import ExegesisError
from engine.models import loading
from engine.models.loading import ModelCache
from tests.explaining import checkpoint, forget, run_cheaply, task_for
from tests.fake_cuda import FakeCuda
from tests.unit.gpu.machine import REAL, assert_same, gpu, inputs, loaded, on

pytestmark = pytest.mark.skipif(REAL, reason="the memory of a real GPU is not ours to fill")
METHOD = "lime"


@pytest.fixture
def cuda() -> Iterator[FakeCuda]:
    with gpu(free=1 << 20) as made:
        assert isinstance(made, FakeCuda)
        yield made


def rows_of_passes(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    seen: list[int] = []
    own = runtime.in_chunks

    def in_chunks(compute, rows, size):  # type: ignore[no-untyped-def]
        seen.append(size)
        return own(compute, rows, size)

    for module in ("engine.passes", "engine.task"):
        monkeypatch.setattr(f"{module}.in_chunks", in_chunks)
    return seen


def test_a_pass_takes_half_of_what_is_free(cuda: FakeCuda, monkeypatch: pytest.MonkeyPatch) -> None:
    assert runtime.memory_budget() == 1 << 19
    model = loaded("gpt2")
    task = task_for(model, inputs("gpt2"), seed=3)
    expected = run_cheaply(METHOD, task)
    sizes = rows_of_passes(monkeypatch)
    run_cheaply(METHOD, task)
    cuda.free //= 8
    assert_same(expected, run_cheaply(METHOD, task))
    assert sizes[0] // 9 <= sizes[1] <= sizes[0] // 7
    assert sizes[1] > 1


def test_what_torch_has_set_aside_is_free_as_well(cuda: FakeCuda) -> None:
    cuda.free, cuda.reserved, cuda.allocated = 1000, 6000, 2000
    assert runtime.memory_budget() == 2500


@pytest.mark.parametrize(
    "error",
    [
        torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20.00 MiB."),
        RuntimeError("CUDA error: out of memory"),
        RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`"),
        RuntimeError("cuDNN error: CUDNN_STATUS_ALLOC_FAILED"),
        MemoryError(),
    ],
    ids=lambda error: str(error)[:24],
)
def test_all_that_says_that_memory_ran_out_halves_a_pass(error: Exception, cuda: FakeCuda) -> None:
    def compute(rows: slice) -> int:
        if rows.stop - rows.start > 2:
            raise error
        return rows.stop - rows.start

    with runtime.noting() as notes:
        assert runtime.in_chunks(compute, 8, 8) == [2, 2, 2, 2]
    assert len(notes) == cuda.emptied == 2
    with runtime.turn(), pytest.raises(ValueError, match="no matter of memory"):
        raise ValueError("no matter of memory")


def test_a_tensor_that_does_not_fit_halves_the_pass_and_changes_no_number(cuda: FakeCuda) -> None:
    cuda.free = 1 << 30
    task = task_for(loaded("gpt2"), inputs("gpt2"), seed=3)
    expected = run_cheaply(METHOD, task)
    forget(task.model)
    cuda.largest = 20_000
    with runtime.noting() as notes:
        assert_same(expected, run_cheaply(METHOD, task))
    assert notes
    assert all("Memory ran out" in note for note in notes)
    assert cuda.emptied == len(notes)


def test_not_even_one_row_is_a_clear_error(cuda: FakeCuda) -> None:
    task = task_for(loaded("gpt2"), inputs("gpt2"), seed=3)
    cuda.largest = 100
    with pytest.raises(ExegesisError, match=r"out of memory: .* does not fit\. Use a shorter text"), runtime.turn():
        run_cheaply(METHOD, task)


def test_memory_that_runs_out_elsewhere_is_no_fault_of_ours(cuda: FakeCuda) -> None:
    cuda.largest = 1000
    with pytest.raises(ExegesisError, match=r"out of memory.*Use a shorter text, a smaller model"), runtime.turn():
        torch.zeros(1 + cuda.largest // 4, device="cuda")


def test_models_in_memory_make_room_for_another(cuda: FakeCuda) -> None:
    folders, seen = [str(checkpoint(kind, 3)) for kind in ("bert", "gpt2", "roberta")], []

    def placed(*given):  # type: ignore[no-untyped-def]
        if len(models._models) == 2:
            raise torch.OutOfMemoryError("CUDA out of memory. (pretended)")
        seen.append(given[0].id)
        return loading.load(*given)

    models = ModelCache(placed, "text")
    for folder in folders:
        models.get(folder, "float32", runtime.device())
    assert seen == folders
    assert len(models._models) == 1
    assert cuda.emptied == 1
    cuda.largest = 100
    with pytest.raises(ExegesisError, match=r"gpt2.*does not fit into the memory of cuda.*Use a smaller model"):
        models.get(folders[1], "float32", runtime.device())


def test_free_memory_goes_back_after_a_turn(cuda: FakeCuda, monkeypatch: pytest.MonkeyPatch) -> None:
    """Other programs use the same GPU."""
    now = 100.0
    monkeypatch.setattr(runtime, "_last_release", 0.0)
    monkeypatch.setattr(runtime.time, "monotonic", lambda: now)
    for expected in (1, 1, 2):
        with runtime.turn():
            pass
        assert cuda.emptied == expected
        now += runtime.REST_SECONDS * 0.6


def test_an_examined_installation_names_the_gpu(cuda: FakeCuda) -> None:
    cuda.free = 3 << 30
    found = health._device()
    assert (found.status, found.detail) == ("ok", "Pretended GPU, 3.2 GB of 8.6 GB free")


def test_an_engine_on_the_cpu_leaves_the_gpu_alone(cuda: FakeCuda) -> None:
    with on("cpu"):
        task = task_for(loaded("bert"), inputs("bert"))
        run_cheaply(METHOD, task)
        assert runtime.memory_budget() == runtime.CPU_BUDGET
    assert not cuda.kernels
