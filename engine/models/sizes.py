"""How large a model is and of which architecture, from its config and the heads of its files: nothing is loaded."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from engine.errors import ExegesisError, shown
from engine.models import catalog
from engine.models.adapters import Adapter, adapter_for
from engine.models.parameters import stored_tensors
from engine.vision import adapters as image_adapters

BLOCKS = ("num_hidden_layers", "num_layers", "n_layers", "n_layer")
HEADS = ("num_attention_heads", "num_heads", "n_heads", "n_head")
"""What the families call them in their configs."""
WRAPPED = "base_model.model."
"""What peft puts before the names of an adapter's tensors."""
NO_PARAMETER = re.compile(r"(^|\.)(position_ids|token_type_ids|attn\.(masked_)?bias)$|^encoder\.embed_tokens\.weight$")
"""Stored beside the parameters: fixed numbers of old checkpoints, and T5's embeddings under their second name."""


@dataclass(frozen=True)
class Size:
    """`parameters`: of the classifier as it runs. `heads`: of attention, a block. `architecture`: such as BERT."""

    parameters: int
    blocks: int
    heads: int
    architecture: str


def parameters_words(size: Size) -> str:
    """How many parameters, in three digits: "22.7 million parameters"."""
    number = float(f"{size.parameters:.3g}")
    for unit, name in ((1e9, " billion"), (1e6, " million")):
        if number >= unit:
            return f"{number / unit:.3g}{name} parameters"
    return f"{number:,.0f} parameters"


def size_of(model: str) -> Size:
    """The size of an embedded model, a folder or a hub id, of texts or of pictures."""
    source = catalog.locate(model)
    config = catalog.config(source)
    counts = _own(source) if source.base is None else _merged(source, config)
    return Size(
        sum(counts.values()),
        _stated(source, config, BLOCKS),
        _stated(source, config, HEADS),
        _architecture(source, config),
    )


def blocks_of(model: str) -> int:
    """How many blocks a model has."""
    source = catalog.locate(model)
    return _stated(source, catalog.config(source), BLOCKS)


def _own(source: catalog.Source) -> dict[str, int]:
    return _parameters(_stored(source, source.folder))


def _merged(source: catalog.Source, config: Mapping[str, Any]) -> dict[str, int]:
    """The base without the head of its pre-training, and the adapter's head; updates add no numbers once merged."""
    assert source.base is not None
    adapter = adapter_for(config.get("model_type", ""), source.id)
    base = _backbone(_parameters(_stored(source, source.base)), adapter)
    own = {name.removeprefix(WRAPPED): n for name, n in _stored(source, source.folder).items() if ".lora_" not in name}
    return base | own


def _stored(source: catalog.Source, folder: Path) -> dict[str, int]:
    files = stored_tensors(source).items()
    return {name: count for file, counts in files if Path(file).parent == folder for name, count in counts.items()}


def _parameters(counts: Mapping[str, int]) -> dict[str, int]:
    return {name: count for name, count in counts.items() if not NO_PARAMETER.search(name)}


def _backbone(counts: Mapping[str, int], adapter: Adapter) -> dict[str, int]:
    """Encoders saved alone do not name themselves. A pooler is the head's: the adapter has it where it is used."""
    inside = f"{adapter.backbone}."
    if not any(name.startswith(inside) for name in counts):
        counts = {inside + name: count for name, count in counts.items()}
    parts = (inside, f"{adapter.embeddings}.")
    return {n: c for n, c in counts.items() if n.startswith(parts) and not n.startswith(f"{inside}pooler.")}


def _stated(source: catalog.Source, config: Mapping[str, Any], names: Sequence[str]) -> int:
    found = next((config[name] for name in names if name in config), None)
    if type(found) is not int or found < 1:
        raise ExegesisError(f"model {source.id}: its config.json must state {names[0]}, a number, got {shown(found)}.")
    return found


def _architecture(source: catalog.Source, config: Mapping[str, Any]) -> str:
    kind = str(config.get("model_type", ""))
    if kind in catalog.IMAGE_TYPES:
        return image_adapters.adapter_for(kind, config.get("architectures") or [], source.id).family
    return adapter_for(kind, source.id).family
