"""Heavy libraries that are imported on first use: pages with cached results and `exegesis --help` need none of them.

Write `from engine.lazy import torch` in place of `import torch`; types are written `torch.Tensor`.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import sys
from collections.abc import Iterator
from types import ModuleType
from typing import TYPE_CHECKING, Any


@contextlib.contextmanager
def paused_collection() -> Iterator[None]:
    """Pause garbage collection in the block, and then exclude all live objects from it; for imports.

    Nearly everything that an import creates stays alive. Garbage collection takes a fifth of the time of an import, and
    one collection over all objects of torch and transformers takes 0.4 s; Streamlit runs one after each run of a page.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.freeze()
            gc.enable()


class LazyModule(ModuleType):
    """A proxy for the module of that name, which imports it at the first attribute access.

    `submodules`: submodules that the module does not import by itself.
    """

    def __init__(self, name: str, *submodules: str) -> None:
        super().__init__(name)
        self._submodules = submodules
        self._imported: ModuleType | None = None

    def __getattr__(self, name: str) -> Any:
        module = sys.modules.get(self.__name__)
        if module is None or module is not self._imported:  # not used yet, or replaced since
            with paused_collection() if self.__name__ not in sys.modules else contextlib.nullcontext():
                module = self._imported = importlib.import_module(self.__name__)
        if name in self._submodules and (full_name := f"{self.__name__}.{name}") not in sys.modules:
            return importlib.import_module(full_name)
        return getattr(module, name)


if TYPE_CHECKING:
    import captum.attr
    import huggingface_hub.errors
    import pandas
    import peft
    import pyarrow.parquet
    import pyarrow.types
    import scipy.linalg.lapack
    import scipy.optimize
    import scipy.sparse
    import scipy.special
    import scipy.stats
    import skimage.data
    import skimage.io
    import skimage.segmentation
    import sklearn.datasets
    import sqlalchemy
    import torch
    import transformers.masking_utils
else:
    captum = LazyModule("captum", "attr")
    huggingface_hub = LazyModule("huggingface_hub", "errors")
    pandas = LazyModule("pandas")
    peft = LazyModule("peft")
    pyarrow = LazyModule("pyarrow", "parquet", "types")
    scipy = LazyModule("scipy", "linalg", "optimize", "sparse", "special", "stats")
    skimage = LazyModule("skimage", "data", "io", "segmentation")
    sklearn = LazyModule("sklearn", "datasets")
    sqlalchemy = LazyModule("sqlalchemy")
    torch = LazyModule("torch")
    transformers = LazyModule("transformers", "masking_utils")
gguf: Any = LazyModule("gguf")
umap: Any = LazyModule("umap")
"""These libraries have no type annotations."""

__all__ = [
    "LazyModule",
    "captum",
    "gguf",
    "huggingface_hub",
    "pandas",
    "paused_collection",
    "peft",
    "pyarrow",
    "scipy",
    "skimage",
    "sklearn",
    "sqlalchemy",
    "torch",
    "transformers",
    "umap",
]
