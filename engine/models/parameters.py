"""How many numbers a model holds, read from the heads of its files: nothing is loaded."""

from __future__ import annotations

import math

from safetensors import SafetensorError, safe_open

from engine.errors import ExegesisError
from engine.models import catalog


def parameter_count(model: str) -> int:
    """The numbers in all its safetensors; of an adapter, the base's too."""
    source = catalog.locate(model)
    files = [file for file in source.weights if file.suffix == ".safetensors"]
    try:
        return sum(_count(str(file)) for file in files)
    except (OSError, SafetensorError) as error:
        raise ExegesisError(
            f"model {source.id}: its file of weights (safetensors) is damaged ({error}). Download or save it again."
        ) from error


def _count(file: str) -> int:
    with safe_open(file, framework="numpy") as weights:
        return sum(math.prod(weights.get_slice(name).get_shape()) for name in weights.keys())  # noqa: SIM118
