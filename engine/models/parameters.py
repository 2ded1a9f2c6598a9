"""How many numbers a model holds, read from the heads of its files: nothing is loaded."""

from __future__ import annotations

import math

from safetensors import SafetensorError, safe_open

from engine.errors import ExegesisError
from engine.models import catalog


def parameter_count(model: str) -> int:
    """The numbers in all its safetensors; of an adapter, the base's too."""
    return sum(sum(stored.values()) for stored in stored_tensors(catalog.locate(model)).values())


def stored_tensors(source: catalog.Source) -> dict[str, dict[str, int]]:
    """By file (the base's first), how many numbers each tensor has."""
    files = [file for file in source.weights if file.suffix == ".safetensors"]
    try:
        return {str(file): _counts(str(file)) for file in files}
    except (OSError, SafetensorError) as error:
        raise ExegesisError(
            f"model {source.id}: its file of weights (safetensors) is damaged ({error}). Download or save it again."
        ) from error


def _counts(file: str) -> dict[str, int]:
    with safe_open(file, framework="numpy") as weights:
        return {name: math.prod(weights.get_slice(name).get_shape()) for name in weights.keys()}  # noqa: SIM118
