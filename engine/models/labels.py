"""What a model's classes are called, from its files: nothing is loaded."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from engine.models import catalog

UNNAMED = ("LABEL_0", "LABEL_1")
"""Of an adapter whose card says nothing, and of a config.json that says nothing."""


def labels_of(model: str) -> tuple[str, ...]:
    """In the order of its outputs; one where it is a regression.

    Errors: files that are missing; TypeError, ValueError or LookupError where config.json makes no sense.
    """
    source = catalog.locate(model)
    if source.base is not None:
        return tuple(catalog.card(model).get("labels") or UNNAMED)
    return labels_in(catalog.config(source))


def labels_in(config: Mapping[str, Any]) -> tuple[str, ...]:
    """As its config.json has them."""
    named = config.get("id2label")
    if named is None:
        return tuple(f"LABEL_{i}" for i in range(int(config.get("num_labels", len(UNNAMED)))))
    by_index = {int(i): str(label) for i, label in named.items()}
    return tuple(by_index[i] for i in range(len(by_index)))
