"""A pretended GPU for machines without one: real numbers on the CPU, under the rules of two devices.

`FakeTensorMode` has no numbers: it stops at the first `.numpy()`, and indexing a parameter on `cuda` already asks for a
build with CUDA. A wrapper subclass on `cuda` ends the process at the first node of autograd. Here a tensor stays a
plain tensor of the CPU, and its *storage* carries the mark of the device. Two modes see every function and every
operator, those of backward passes included:

- `tensor.device` says `cuda:0`. What is made or moved there is marked, and so is what comes of it.
- Operands on two devices raise, but for what a GPU allows: scalars on the CPU, and indices on the CPU.
- `.numpy()` raises. `waits` counts, by line, where the host waits for the device: what it reads, and what it copies.
- Chance on the device has a generator of its own, with other numbers; a generator of the CPU raises.
- `free` bytes are told; a tensor of more than `largest` bytes raises `torch.OutOfMemoryError`.
- Backward passes run in a thread of their own without the caller's context variables, as autograd's device thread.
- `rounded` counts, by line, the float32 convolutions and products that a recent GPU would round to TF32.

What it cannot show: a kernel that CUDA lacks or that wants another layout, and how a GPU rounds. For that there is one.
"""

from __future__ import annotations

import collections
import contextlib
import sys
import threading
from collections.abc import Callable, Iterator
from contextvars import Context
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

import torch
from torch import Tensor
from torch._C import _functorch  # type: ignore[attr-defined]
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

CUDA, CPU = torch.device("cuda", 0), torch.device("cpu")
TOTAL = 8 << 30
ROOT = f"{Path(__file__).resolve().parents[1]}/"
OURS = (f"{ROOT}engine/", f"{ROOT}tests/unit/")
MIXED = "Expected all tensors to be on the same device, but found at least two devices, cuda:0 and cpu!"
aten = torch.ops.aten
READS = {
    aten._local_scalar_dense, aten.equal, aten.nonzero, aten.masked_select, aten.is_nonzero, aten._unique2,
    aten.unique_dim, aten.unique_consecutive, aten.repeat_interleave,
}  # fmt: skip
"""Operators whose result, or its shape, the host must know."""
INDEXED = {aten.index, aten.index_put, aten.index_put_, aten._unsafe_index}
ROUNDED = {aten.convolution, aten.mm, aten.bmm, aten.addmm, aten.baddbmm}
TOLD = {torch.Tensor.device: CUDA, torch.Tensor.is_cuda: True, torch.Tensor.is_cpu: False}  # type: ignore[attr-defined]
_run_backward = torch.autograd.graph._engine_run_backward  # type: ignore[attr-defined]


def on_cuda(tensor: Tensor) -> bool:
    """Whether the tensor is on the pretended GPU."""
    return getattr(_plain(tensor).untyped_storage(), "on_cuda", False)


def _plain(tensor: Tensor) -> Tensor:
    while _functorch.is_functorch_wrapped_tensor(tensor):
        tensor = _functorch.get_unwrapped(tensor)
    return tensor


def _tensors(values: Any) -> list[Tensor]:
    """Those in arguments or results."""
    if isinstance(values, Tensor):
        return [values]
    if isinstance(values, dict):
        values = values.values()
    elif not isinstance(values, list | tuple):
        return []
    return [tensor for value in values for tensor in _tensors(value)]


class _Move(torch.autograd.Function):
    """A copy on the other device; gradients go the way back."""

    @staticmethod
    def forward(ctx: Any, tensor: Tensor, cuda: FakeCuda, there: bool) -> Tensor:
        ctx.back = cuda, not there
        return cuda.mark(tensor.clone(), there)

    @staticmethod
    def backward(ctx: Any, *slopes: Any) -> Any:
        return _Move.apply(slopes[0], *ctx.back), None, None


class FakeCuda(TorchFunctionMode):
    """The pretended GPU; `fake_cuda()` makes one."""

    def __init__(self, free: int) -> None:
        super().__init__()
        self.free, self.largest, self.reserved, self.allocated = free, TOTAL, 0, 0
        self.emptied = self.kernels = 0
        self.waits: collections.Counter[str] = collections.Counter()
        self.rounded: collections.Counter[str] = collections.Counter()
        self.generator = torch.Generator().manual_seed(0x6E75)
        self.ops = _Operators(self)
        self.there: bool | None = None
        """Where the call under way puts what it makes, if it says so."""
        self.around = False
        """Where its operands are: what a kernel makes of no operand is there too."""

    @contextlib.contextmanager
    def placing(self, there: bool | None, around: bool = False) -> Iterator[None]:
        before = self.there, self.around
        self.there, self.around = there, around
        try:
            yield
        finally:
            self.there, self.around = before

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs, name, first = dict(kwargs or {}), getattr(func, "__name__", ""), args[0] if args else None
        here = isinstance(first, Tensor) and on_cuda(first)
        if name == "__get__":
            return TOLD[func.__self__] if here and func.__self__ in TOLD else func(*args)
        if here and name in ("numpy", "__array__"):
            raise TypeError("can't convert cuda:0 device type tensor to numpy. Use Tensor.cpu() to copy it first.")
        if isinstance(first, Tensor) and name in ("to", "cpu", "cuda"):
            return self._to(name, first, list(args[1:]), kwargs)
        around = here or any(map(on_cuda, _tensors([args, kwargs])))
        there = None
        if kwargs.get("device") is not None and name != "_parse_to":
            there = torch.device(kwargs["device"]).type == "cuda"
            kwargs["device"] = CPU if there else torch.device(kwargs["device"])
        if name in ("tensor", "as_tensor"):
            there = here if there is None else there
            self.wait("write", there and not here)
        self.wait("read", here and name == "tolist")
        with self.placing(there, around):
            made = func(*args, **kwargs)
        if there is not None or name in ("__deepcopy__", "new_tensor"):
            self.mark(made, around if there is None else there)
        return made

    def _to(self, name: str, tensor: Tensor, args: list[Any], kwargs: dict[str, Any]) -> Tensor:
        here = there = on_cuda(tensor)
        waits = not kwargs.pop("non_blocking", False)
        if name in ("cpu", "cuda"):
            there, args = name == "cuda", [CPU]
        elif kwargs.get("device") is not None:
            there, kwargs["device"] = torch.device(kwargs["device"]).type == "cuda", CPU
        elif args and isinstance(args[0], str | torch.device):
            there, args[0] = torch.device(args[0]).type == "cuda", CPU
        elif args and isinstance(args[0], Tensor):
            there = on_cuda(args[0])
        made = tensor.to(*args, **kwargs)
        if here == there:
            return made
        self.wait("write" if there else "read", waits)
        return _Move.apply(made, self, there)

    def wait(self, kind: str, waits: bool) -> None:
        """Counts that the host waits here, by the innermost line of ours."""
        if waits:
            self.waits[f"{kind} {_line()}"] += 1

    def seed(self, seed: int) -> None:
        """Another sequence than the CPU's of that seed, as on a GPU."""
        self.generator.manual_seed(seed ^ 0x6E75)

    def mark(self, made: Any, there: bool) -> Any:
        """The same, on that device from now on."""
        for tensor in map(_plain, _tensors(made)):
            if there and not on_cuda(tensor) and tensor.nbytes > self.largest:
                raise torch.OutOfMemoryError("CUDA out of memory. (pretended)")
            tensor.untyped_storage().on_cuda = there
        return made

    @contextlib.contextmanager
    def drawing(self, func: Any, there: bool, given: torch.Generator | None) -> Iterator[None]:
        """What the operator draws on the device comes of the device's own generator."""
        if not there or torch.Tag.nondeterministic_seeded not in func.tags:
            yield
            return
        if given is not None:
            raise RuntimeError("Expected a 'cuda' device type for generator but found 'cpu'")
        before = torch.default_generator.get_state()
        torch.default_generator.set_state(self.generator.get_state())
        try:
            yield
        finally:
            self.generator.set_state(torch.default_generator.get_state())
            torch.default_generator.set_state(before)

    def backward(self, *args: Any, **kwargs: Any) -> Any:
        """Autograd's engine in another thread; inside functorch's levels, which a thread has alone, in this one."""
        made, failed = list[Any](), list[BaseException]()
        graded, around = torch.is_grad_enabled(), any(map(on_cuda, _tensors(args[0])))

        def run() -> None:
            with torch.set_grad_enabled(graded), self, self.ops, self.placing(None, around):
                try:
                    made.append(_run_backward(*args, **kwargs))
                except BaseException as error:
                    failed.append(error)

        if _functorch.maybe_current_level() is not None:
            run()
        else:
            thread = threading.Thread(target=Context().run, args=(run,))
            thread.start()
            thread.join()
        if failed:
            raise failed[0]
        return made[0]


class _Operators(TorchDispatchMode):
    """Every operator below autograd."""

    def __init__(self, cuda: FakeCuda) -> None:
        super().__init__()
        self.cuda = cuda

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        cuda, packet, kwargs = self.cuda, func.overloadpacket, dict(kwargs or {})
        kwargs |= {"pin_memory": False} if kwargs.get("pin_memory") else {}
        indices = _tensors(args[1]) if packet in INDEXED else []
        tensors = _tensors([args[:1], args[2:], kwargs] if packet in INDEXED else [args, kwargs])
        there = any(map(on_cuda, tensors)) if tensors else cuda.around
        if packet is aten.copy_:
            there = on_cuda(args[0])
            cuda.wait("copy", not args[2:] and there != on_cuda(args[1]))
        elif cuda.there is not None:
            there = cuda.there
        elif there and any(tensor.dim() and not on_cuda(tensor) and not tensor._is_zerotensor() for tensor in tensors):
            raise RuntimeError(f"{MIXED} ({func})")
        for index in indices:
            if on_cuda(index) and not there:
                raise RuntimeError("indices should be either on cpu or on the same device as the indexed tensor (cpu)")
            cuda.wait("index", there and (index.dtype == torch.bool or not on_cuda(index)))
        cuda.wait("read", there and packet in READS)
        with cuda.drawing(func, there, kwargs.get("generator")):
            made = func(*args, **kwargs)
        if there:
            cuda.kernels += 1
            cuda.mark(made, True)
            if packet in ROUNDED and all(tensor.dtype == torch.float32 for tensor in tensors):
                cudnn, matmul = torch.backends.cudnn.allow_tf32, torch.backends.cuda.matmul.allow_tf32
                if cudnn if packet is aten.convolution else matmul:
                    cuda.rounded[_line()] += 1
        return made


def _line() -> str:
    frame: Any = sys._getframe(2)
    while frame.f_back and not frame.f_code.co_filename.startswith(OURS):
        frame = frame.f_back
    return f"{frame.f_code.co_filename.removeprefix(ROOT)}:{frame.f_lineno}"


class _Autocast(torch.autocast):
    def __init__(self, device_type: str, *args: Any, **kwargs: Any) -> None:
        super().__init__("cpu" if device_type == "cuda" else device_type, *args, **kwargs)


@contextlib.contextmanager
def fake_cuda(free: int = TOTAL) -> Iterator[FakeCuda]:
    """Inside there is one GPU with so many bytes free, whatever the machine has."""
    cuda = FakeCuda(free)

    def empty_cache() -> None:
        cuda.emptied += 1
        cuda.free, cuda.reserved = cuda.free + cuda.reserved - cuda.allocated, cuda.allocated

    def limit(fraction: float, device: Any = None) -> None:
        cuda.largest = int(fraction * TOTAL)

    told: dict[str, Callable[..., Any]] = {
        "is_available": lambda: True,
        "is_initialized": lambda: True,
        "device_count": lambda: 1,
        "current_device": lambda: 0,
        "is_bf16_supported": lambda including_emulation=True: True,
        "get_device_name": lambda device=None: "Pretended GPU",
        "mem_get_info": lambda device=None: (cuda.free, TOTAL),
        "memory_reserved": lambda device=None: cuda.reserved,
        "memory_allocated": lambda device=None: cuda.allocated,
        "max_memory_allocated": lambda device=None: cuda.allocated,
        "reset_peak_memory_stats": lambda device=None: None,
        "set_per_process_memory_fraction": lambda fraction, device=None: setattr(
            cuda, "largest", int(fraction * TOTAL)
        ),
        "get_device_capability": lambda device=None: (8, 0),
        "get_device_properties": lambda device=None: SimpleNamespace(total_memory=TOTAL),
        "synchronize": lambda device=None: None,
        "empty_cache": empty_cache,
        "manual_seed": cuda.seed,
        "manual_seed_all": cuda.seed,
        "get_rng_state": lambda device=None: cuda.generator.get_state(),
        "set_rng_state": lambda state, device=None: cuda.generator.set_state(state),
    }
    engine = mock.patch.object(torch.autograd, "_engine_run_backward", cuda.backward)
    autocast = mock.patch.object(torch, "autocast", _Autocast)
    with mock.patch.multiple(torch.cuda, **told), autocast, engine, cuda, cuda.ops:
        yield cuda
