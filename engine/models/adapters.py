"""Lookup of a text model's adapter by its config.json, for built-in families and those of plugins."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

from engine import plugins
from engine.errors import ExegesisError, UsageError
from engine.models import catalog, decoders, encoders
from engine.models.text_adapter import TextAdapter
from engine.vision.adapters import IMAGE_ADAPTERS

ADAPTERS: dict[str, TextAdapter] = {**encoders.CLASSIFIERS, **decoders.CLASSIFIERS}
"""Classifiers by the `model_type` of config.json: one architecture each, which `exegesis train` trains."""
CAUSAL_ADAPTERS: dict[str, TextAdapter] = dict(decoders.LANGUAGE_MODELS)
"""Causal language models by the name of their architecture in config.json."""
OTHER_ADAPTERS: dict[str, TextAdapter] = {adapter.architecture: adapter for adapter in encoders.OTHER_CLASSIFIERS}
"""Additional classifiers of families that have more than one, by architecture."""


def register_family(model_type: str, adapter: TextAdapter) -> None:
    """Register a new family of text models.

    Classifiers are keyed by the `model_type` of their config.json, causal language models by their architecture.
    Errors: the adapter is not a `TextAdapter`; the family is registered already.
    """
    if not isinstance(adapter, TextAdapter):
        raise UsageError(f"adapter of {model_type}: must be a TextAdapter, got {type(adapter).__name__}")
    is_language_model = adapter.architecture.endswith(catalog.CAUSAL_ENDINGS)
    families, key = (CAUSAL_ADAPTERS, adapter.architecture) if is_language_model else (ADAPTERS, model_type)
    if key in families:
        raise UsageError(f"model family {key!r} is registered twice")
    plugins.registering("models", key, functools.partial(families.pop, key, None))
    families[key] = adapter


def causal_adapter(config: Mapping[str, Any]) -> TextAdapter | None:
    """Return the adapter of a causal language model by its config.json, or None for any other model."""
    plugins.load("models")
    names = config.get("architectures")
    known = [name for name in map(str, names) if name in CAUSAL_ADAPTERS] if isinstance(names, list) else []
    return CAUSAL_ADAPTERS[known[0]] if known else None


def adapter_of_config(config: Mapping[str, Any], where: str) -> TextAdapter:
    """Return the adapter of a classifier by its config.json. `where`: the model's name, for the error."""
    names = config.get("architectures")
    other = (
        [OTHER_ADAPTERS[str(name)] for name in names if str(name) in OTHER_ADAPTERS] if isinstance(names, list) else []
    )
    return other[0] if other else adapter_of_base(config, where)


def adapter_of_base(config: Mapping[str, Any], where: str) -> TextAdapter:
    """Return the adapter of a classifier trained from a base, by the base's config.json, ignoring its architecture."""
    return adapter_for(str(config.get("model_type", "")), where).configured(config)


def trained_types() -> list[str]:
    """List the `model_type`s of bases that `exegesis train` trains."""
    plugins.load("models")
    return sorted(ADAPTERS)


def adapter_for(model_type: str, where: str) -> TextAdapter:
    """Look up the adapter of a checkpoint's `model_type`. `where`: the model's name, for the error."""
    plugins.load("models")
    if model_type not in ADAPTERS:
        families = ", ".join(dict.fromkeys(a.family for a in (*ADAPTERS.values(), *OTHER_ADAPTERS.values())))
        causal = ", ".join(CAUSAL_ADAPTERS)
        images = ", ".join(dict.fromkeys(a.family for a in IMAGE_ADAPTERS))
        raise ExegesisError(
            f"model {where}: its type {model_type!r} is not supported. Supported families of classifiers: {families}; "
            f"architectures of language models: {causal}; families of image classifiers: {images}."
        )
    return ADAPTERS[model_type]
