"""Size and architecture of a model, from its config and the headers of its files, without loading weights."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open

from engine.errors import ExegesisError, excerpt
from engine.models import catalog
from engine.models.adapters import TextAdapter, adapter_for
from engine.vision import adapters as image_adapters

BLOCKS = ("num_hidden_layers", "num_layers", "n_layers", "n_layer")
HEADS = ("num_attention_heads", "num_heads", "n_heads", "n_head")
"""Names of the numbers of blocks and heads in the families' configs."""
PEFT_PREFIX = "base_model.model."
"""Prefix that peft gives to the names of an adapter's tensors."""
NO_PARAMETER = re.compile(r"(^|\.)(position_ids|token_type_ids|attn\.(masked_)?bias)$|^encoder\.embed_tokens\.weight$")
"""Tensors that are not parameters: buffers in old checkpoints, and the duplicate of T5's embeddings."""


@dataclass(frozen=True)
class ModelSize:
    """Size of a model. `parameters`: of the whole classifier. `heads`: per block. `architecture`: such as BERT."""

    parameters: int
    blocks: int
    heads: int
    architecture: str


def format_parameters(size: ModelSize) -> str:
    """Format the number of parameters with three digits: "22.7 million parameters"."""
    number = float(f"{size.parameters:.3g}")
    for unit, name in ((1e9, " billion"), (1e6, " million")):
        if number >= unit:
            return f"{number / unit:.3g}{name} parameters"
    return f"{number:,.0f} parameters"


def model_size(model: str) -> ModelSize:
    """Determine the size of an embedded model, a folder or a hub id."""
    source = catalog.locate(model)
    config = catalog.config(source)
    kind = str(config.get("model_type", ""))
    counts = _merged_counts(source, kind) if source.base else _folder_counts(source, source.folder)
    blocks, heads = (_config_number(source, config, names) for names in (BLOCKS, HEADS))
    if kind in catalog.IMAGE_TYPES:
        architecture = image_adapters.find_adapter(kind, config.get("architectures") or [], source.id).family
    else:
        architecture = adapter_for(kind, source.id).family
    return ModelSize(sum(counts.values()), blocks, heads, architecture)


def block_count(model: str) -> int:
    """Number of blocks of a model."""
    source = catalog.locate(model)
    return _config_number(source, catalog.config(source), BLOCKS)


def stored_parameters(model: str) -> int:
    """Count the numbers in all safetensors of a model, including the base of an adapter."""
    return sum(sum(counts.values()) for counts in _tensor_counts(catalog.locate(model)).values())


def _merged_counts(source: catalog.ModelSource, kind: str) -> dict[str, int]:
    """Sizes of the base without its pre-training head, and of the adapter's head; merged updates add no parameters."""
    assert source.base is not None
    base = _backbone_counts(_folder_counts(source, source.base), adapter_for(kind, source.id))
    own = _folder_counts(source, source.folder)
    return base | {name.removeprefix(PEFT_PREFIX): n for name, n in own.items() if ".lora_" not in name}


def _backbone_counts(counts: Mapping[str, int], adapter: TextAdapter) -> dict[str, int]:
    """Sizes without the head. Encoders saved alone lack the prefix; a pooler belongs to the head, so to the adapter."""
    inside = f"{adapter.backbone}."
    if not any(name.startswith(inside) for name in counts):
        counts = {inside + name: count for name, count in counts.items()}
    parts = (inside, f"{adapter.embeddings}.")
    return {n: c for n, c in counts.items() if n.startswith(parts) and not n.startswith(f"{inside}pooler.")}


def _folder_counts(source: catalog.ModelSource, folder: Path) -> dict[str, int]:
    """Sizes of the parameters stored in the folder."""
    files = [counts for file, counts in _tensor_counts(source).items() if Path(file).parent == folder]
    return {name: n for counts in files for name, n in counts.items() if not NO_PARAMETER.search(name)}


def _tensor_counts(source: catalog.ModelSource) -> dict[str, dict[str, int]]:
    """Sizes of tensors by file, those of the base first."""
    files = [file for file in source.weights if file.suffix == ".safetensors"]
    try:
        return {str(file): _file_counts(str(file)) for file in files}
    except (OSError, SafetensorError) as error:
        raise ExegesisError(
            f"model {source.id}: its file of weights (safetensors) is damaged ({error}). Download or save it again."
        ) from error


def _file_counts(file: str) -> dict[str, int]:
    with safe_open(file, framework="numpy") as weights:
        return {name: math.prod(weights.get_slice(name).get_shape()) for name in weights.keys()}  # noqa: SIM118


def _config_number(source: catalog.ModelSource, config: Mapping[str, Any], names: Sequence[str]) -> int:
    number = next((config[name] for name in names if name in config), None)
    if type(number) is not int or number < 1:
        raise ExegesisError(
            f"model {source.id}: its config.json must state {names[0]}, a number, got {excerpt(number)}."
        )
    return number
