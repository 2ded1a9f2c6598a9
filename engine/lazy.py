"""Heavy libraries, each imported when it is first used: pages with cached results and `exegesis --help` need none.

Write `from engine.lazy import torch` in place of `import torch`; types are written `torch.Tensor`.
"""

from __future__ import annotations

import importlib
from types import ModuleType
from typing import TYPE_CHECKING, Any


class LazyModule(ModuleType):
    """A stand-in for the module of that name, which imports it at the first attribute access.

    `submodules`: those that the module does not import by itself.
    """

    def __init__(self, name: str, *submodules: str) -> None:
        super().__init__(name)
        self._submodules = submodules

    def __getattr__(self, name: str) -> Any:
        module = importlib.import_module(self.__name__)
        if name in self._submodules:
            return importlib.import_module(f"{self.__name__}.{name}")
        return getattr(module, name)


if TYPE_CHECKING:
    import captum.attr
    import huggingface_hub.errors
    import pandas
    import peft
    import pyarrow.parquet
    import pyarrow.types
    import scipy.special
    import scipy.stats
    import skimage.data
    import skimage.io
    import skimage.segmentation
    import sklearn.datasets
    import torch
    import transformers.masking_utils
else:
    captum = LazyModule("captum", "attr")
    huggingface_hub = LazyModule("huggingface_hub", "errors")
    pandas = LazyModule("pandas")
    peft = LazyModule("peft")
    pyarrow = LazyModule("pyarrow", "parquet", "types")
    scipy = LazyModule("scipy", "special", "stats")
    skimage = LazyModule("skimage", "data", "io", "segmentation")
    sklearn = LazyModule("sklearn", "datasets")
    torch = LazyModule("torch")
    transformers = LazyModule("transformers", "masking_utils")

__all__ = [
    "LazyModule",
    "captum",
    "huggingface_hub",
    "pandas",
    "peft",
    "pyarrow",
    "scipy",
    "skimage",
    "sklearn",
    "torch",
    "transformers",
]
