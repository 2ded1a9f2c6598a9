"""torch, imported when it is first used: a page that shows cached results does without it.

`from engine.late import torch` stands where `import torch` would; types are written `torch.Tensor`.
"""

from __future__ import annotations

import importlib
from types import ModuleType
from typing import TYPE_CHECKING, Any


class Late(ModuleType):
    """Stands for the module of that name and imports it when something in it is asked for."""

    def __getattr__(self, name: str) -> Any:
        return getattr(importlib.import_module(self.__name__), name)


if TYPE_CHECKING:
    import torch as torch
else:
    torch = Late("torch")
