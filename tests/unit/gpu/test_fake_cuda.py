"""The pretended GPU finds what is planted: a mix of devices, a wait, a wrong generator, a lost context variable."""

from __future__ import annotations

from collections.abc import Iterator
from contextvars import ContextVar
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.func import jvp, vmap

from tests.fake_cuda import FakeCuda, fake_cuda, on_cuda


@pytest.fixture
def cuda() -> Iterator[FakeCuda]:
    with fake_cuda() as made:
        yield made


def here(*shape: int) -> Tensor:
    return torch.randn(*shape, device="cuda")


@pytest.mark.parametrize(
    "mix",
    [
        lambda: here(3) + torch.ones(3),
        lambda: torch.ones(3) * here(1)[0],
        lambda: here(2, 3) @ torch.ones(3),
        lambda: torch.cat([here(3), torch.ones(3)]),
        lambda: torch.where(torch.ones(3, dtype=torch.bool), here(3), 0.0),
        lambda: here(3).add_(torch.ones(3)),
        lambda: here(2, 3).gather(1, torch.zeros(2, 1, dtype=torch.long)),
        lambda: torch.ones(3)[torch.zeros(2, dtype=torch.long, device="cuda")],
        lambda: torch.nn.functional.linear(here(2, 3), torch.ones(4, 3)),
        lambda: torch.nn.functional.scaled_dot_product_attention(here(1, 2, 3), here(1, 2, 3), torch.ones(1, 2, 3)),
        lambda: vmap(lambda row: row + torch.ones(3))(here(2, 3)),
        lambda: jvp(lambda point: point * torch.ones(3), (here(3),), (here(3),)),
    ],
)
def test_operands_on_two_devices_are_refused(mix: Any, cuda: FakeCuda) -> None:
    with pytest.raises(RuntimeError, match="device"):
        mix()


def test_a_mix_in_a_backward_pass_is_refused(cuda: FakeCuda) -> None:
    class Planted(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, given: Tensor) -> Tensor:
            return given * 2

        @staticmethod
        def backward(ctx: Any, *slopes: Tensor) -> Tensor:
            return slopes[0] * torch.ones(3)

    point = here(3).requires_grad_()
    with pytest.raises(RuntimeError, match="same device"):
        torch.autograd.grad(Planted.apply(point).sum(), point)


def test_what_a_gpu_allows_is_allowed(cuda: FakeCuda) -> None:
    point = here(4)
    for made in (
        point * torch.tensor(2.0), point[torch.tensor([1, 2])], point[[0, 3]], torch.where(point > 0, point, 0.0),
        point.new_zeros(3), torch.zeros_like(point), point.double(), point.to(torch.float16), point[None].expand(2, 4),
        torch.nn.functional.one_hot(torch.zeros(2, dtype=torch.long, device="cuda"), 3),
    ):  # fmt: skip
        assert made.device == torch.device("cuda", 0)
        assert made.is_cuda
    point[:2] = torch.ones(2)
    assert torch.zeros(2).copy_(point[:2]).tolist() == [1.0, 1.0]
    assert point.cpu().device.type == torch.zeros_like(point, device="cpu").device.type == "cpu"
    assert not on_cuda(torch.ones(2))


def test_numpy_asks_for_a_copy_on_the_cpu_first(cuda: FakeCuda) -> None:
    for convert in (Tensor.numpy, np.asarray):
        with pytest.raises(TypeError, match="can't convert cuda:0"):
            convert(here(2))
    assert here(2).cpu().numpy().shape == (2,)


@pytest.mark.parametrize(
    ("kind", "wait"),
    [
        ("read", lambda x: x.sum().item()),
        ("read", lambda x: bool(x.isfinite().all())),
        ("read", lambda x: float(x[0])),
        ("read", lambda x: x.cpu()),
        ("read", lambda x: x.tolist()),
        ("read", lambda x: x.nonzero()),
        ("index", lambda x: x[x > 0]),
        ("index", lambda x: x[torch.tensor([0])]),
        ("write", lambda x: x + torch.ones(3).to(x.device)),
        ("write", lambda x: x + torch.tensor([1.0, 2.0, 3.0], device=x.device)),
        ("copy", lambda x: x.copy_(torch.ones(3))),
    ],
)
def test_a_wait_is_counted_with_its_line(kind: str, wait: Any, cuda: FakeCuda) -> None:
    point = here(3)
    assert not cuda.waits
    wait(point)
    [(told, times)] = cuda.waits.items()
    assert (times, told.split(":")[0]) == (1, f"{kind} tests/unit/gpu/test_fake_cuda.py")


def test_arithmetic_and_its_gradient_wait_for_nothing(cuda: FakeCuda) -> None:
    point = here(2, 3).requires_grad_()
    (slope,) = torch.autograd.grad((point @ point.T).softmax(-1).sum(), point)
    assert on_cuda(slope)
    assert cuda.kernels > 3
    assert not cuda.waits


def test_a_module_moves_with_its_buffers_and_gradients_come_back(cuda: FakeCuda) -> None:
    module = torch.nn.BatchNorm1d(3).to(device="cuda", dtype=torch.float64)
    assert all(on_cuda(tensor) for tensor in [*module.parameters(), *module.buffers()])
    start = torch.randn(2, 3, dtype=torch.float64, requires_grad=True)
    module(start.to("cuda")).square().sum().backward()
    assert start.grad is not None
    assert not on_cuda(start.grad)
    assert all(on_cuda(parameter.grad) for parameter in module.parameters())


def test_chance_on_the_device_is_not_that_of_the_cpu(cuda: FakeCuda) -> None:
    with pytest.raises(RuntimeError, match="generator"):
        torch.rand(3, device="cuda", generator=torch.Generator())
    with pytest.raises(RuntimeError, match="generator"):
        here(3).normal_(generator=torch.Generator())
    torch.manual_seed(0)
    own = torch.rand(3, device="cuda").cpu()
    other = torch.rand(3)
    assert not torch.equal(own, other)
    torch.manual_seed(0)
    torch.rand(7, device="cuda")
    assert torch.equal(torch.rand(3), other), "the CPU's generator did not move"
    torch.cuda.manual_seed_all(0)
    assert torch.equal(torch.rand(3, device="cuda").cpu(), own)
    with torch.random.fork_rng(devices=["cuda"]):
        state = torch.cuda.get_rng_state()
        torch.nn.functional.dropout(here(9))
    assert torch.equal(torch.cuda.get_rng_state(), state)


def test_backward_passes_see_no_context_variable(cuda: FakeCuda) -> None:
    mark, seen = ContextVar("mark", default="none"), []
    mark.set("the caller's")
    point = here(3).requires_grad_()
    point.register_hook(lambda slope: seen.append(mark.get()))
    point.sum().backward()
    assert seen == ["none"]


def test_memory_runs_out(cuda: FakeCuda) -> None:
    cuda.largest = 1000
    assert here(200).shape == (200,)
    with pytest.raises(torch.OutOfMemoryError):
        here(300)
    assert torch.ones(300).shape == (300,)


def test_float32_that_would_be_rounded_is_counted(cuda: FakeCuda) -> None:
    convolve = torch.nn.functional.conv1d
    convolve(here(1, 2, 5), here(3, 2, 2))
    assert sum(cuda.rounded.values()) == 1, "torch's default"
    with torch.backends.cudnn.flags(enabled=True, allow_tf32=False):
        convolve(here(1, 2, 5), here(3, 2, 2))
    convolve(here(1, 2, 5).double(), here(3, 2, 2).double())
    here(2, 2) @ here(2, 2)
    assert sum(cuda.rounded.values()) == 1
    torch.set_float32_matmul_precision("high")
    try:
        here(2, 2) @ here(2, 2)
    finally:
        torch.set_float32_matmul_precision("highest")
    assert sum(cuda.rounded.values()) == 2


def test_afterwards_there_is_what_there_was() -> None:
    before = torch.cuda.is_available(), torch.cuda.mem_get_info, torch.autocast, torch.autograd._engine_run_backward
    with fake_cuda():
        assert torch.cuda.is_available()
    assert before == (
        torch.cuda.is_available(), torch.cuda.mem_get_info, torch.autocast, torch.autograd._engine_run_backward
    )  # fmt: skip
    assert torch.ones(2).to("cpu").device.type == "cpu"
