"""The few models that stay in memory: loaded once, shared by all threads, the longest unused dropped first."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import Generic, TypeVar

from engine import runtime
from engine.errors import ExegesisError, not_allowed
from engine.late import torch
from engine.models import catalog, sandbox
from engine.request import DTYPES

LOADED_AT_ONCE = 4
Model = TypeVar("Model")
Key = tuple[str, str, str, str]
Load = Callable[[catalog.Source, str, "torch.dtype", "torch.device"], Model]
"""From a source, its revision, a precision and a device to a model."""


class Loaded(Generic[Model]):
    """Models of one kind, "text" or "image", by name, revision, precision and device."""

    def __init__(self, load: Load[Model], kind: str) -> None:
        self._load, self._kind = load, kind
        self._kept: OrderedDict[Key, Model] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, model: str, dtype: str, device: torch.device | None) -> Model:
        """The model, loaded if it is not in memory. One thread loads while the others wait."""
        if dtype not in DTYPES:
            raise not_allowed("dtype", f"one of {', '.join(DTYPES)}", dtype)
        place = device or torch.device("cpu")
        key = (model, catalog.revision(model), dtype, str(place))
        with self._lock:
            if key not in self._kept:
                source = catalog.locate(model)
                sandbox.check_opening(source, self._kind)
                self._kept[key] = self._fitted(lambda: self._load(source, key[1], getattr(torch, dtype), place), key)
                while len(self._kept) > LOADED_AT_ONCE:
                    self._kept.popitem(last=False)
            self._kept.move_to_end(key)
            return self._kept[key]

    def _fitted(self, load: Callable[[], Model], key: Key) -> Model:
        """The model; where memory runs out, those that are in memory make room for it. Error: it still does not fit."""
        loaded = runtime.attempt(load)
        if loaded is None and self._kept:
            self._kept.clear()
            runtime.free()
            loaded = runtime.attempt(load)
        if loaded is None:
            raise ExegesisError(
                f"model {key[0]}: does not fit into the memory of {key[3]}. Use a smaller model, half precision, or "
                "another device."
            )
        return loaded[0]
