"""torch, imported when it is first used: a page that shows cached results does without it.

Write `from engine.lazy import torch` in place of `import torch`; types are written `torch.Tensor`.
"""

from __future__ import annotations

import importlib
from types import ModuleType
from typing import TYPE_CHECKING, Any


class LazyModule(ModuleType):
    """A stand-in for the module of that name, which imports it at the first attribute access."""

    def __getattr__(self, name: str) -> Any:
        return getattr(importlib.import_module(self.__name__), name)


if TYPE_CHECKING:
    import torch as torch
else:
    torch = LazyModule("torch")
