"""Whether torch could see a GPU here, without importing torch: a cached page needs only the answer."""

from __future__ import annotations

import ctypes
import importlib.util
import sys
from pathlib import Path
from types import ModuleType

DRIVER = "nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1"
"""The driver library that the CUDA runtime loads first; without it `torch.cuda.is_available()` is False."""


def gpu_possible() -> bool:
    """Return False only where torch cannot see a GPU: a build for CPUs, or CUDA without its driver."""
    build = _torch_version()
    if build is None or getattr(build, "hip", None) is not None:
        return True
    return getattr(build, "cuda", None) is not None and _loads(DRIVER)


def _torch_version() -> ModuleType | None:
    """torch/version.py, a file of constants, run on its own; None where it cannot be found."""
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
