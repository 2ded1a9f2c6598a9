"""From a model's name to a loaded, frozen, checked classifier."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import torch
import transformers
from safetensors import SafetensorError

from engine.errors import ExegesisError, panics_told, shown
from engine.models import catalog
from engine.models.adapters import Adapter, adapter_for
from engine.models.bases import load_base, load_tokenizer, merged, quiet, read_config
from engine.models.loaded import Loaded
from engine.models.t5 import T5EncoderForSequenceClassification
from engine.models.text import TextClassifier


def load_model(model: str, dtype: str = "float32", device: torch.device | None = None) -> TextClassifier:
    """A shared, read-only classifier; the last few stay loaded.

    Errors: an unknown name, a pickle-only or remote-code checkpoint, a family without an adapter, no classifier.
    """
    return _LOADED.get(model, dtype, device)


def load(source: catalog.Source, revision: str, dtype: torch.dtype, device: torch.device) -> TextClassifier:
    """Load a checkpoint from its folder, without keeping it. Errors: as `load_model`."""
    folder = source.base or source.folder
    config = read_config(folder)
    catalog.check_text_model(source.id, config)
    adapter = adapter_for(config.get("model_type", ""), source.id)
    with quiet(), told(source.id):
        module, labels = _adapted(source) if source.base else _plain(source, adapter, config)
        tokenizer = _tokenizer(source)
    if not tokenizer.is_fast:
        raise ExegesisError(f"model {source.id}: no fast tokenizer (tokenizer.json), so no character offsets.")
    module = module.to(device=device, dtype=dtype).eval().requires_grad_(False)
    regression = len(labels) == 1
    return TextClassifier(source.id, revision, module, tokenizer, adapter, labels, regression, dtype, device)


_LOADED = Loaded(load, "text")


@contextlib.contextmanager
def told(model: str) -> Iterator[None]:
    """What libraries raise about files that are damaged or contradict each other, as one sentence."""
    try:
        yield
    except (ExegesisError, MemoryError, torch.OutOfMemoryError):
        raise
    except SafetensorError as error:
        raise ExegesisError(
            f"model {model}: its file of weights (safetensors) is damaged ({error}). Download or save it again."
        ) from error
    except Exception as error:
        raise ExegesisError(
            f"model {model}: its weights do not fit its config.json, or that makes no sense "
            f"({type(error).__name__}: {shown(str(error), 200)}). Download or save it again."
        ) from error


def _tokenizer(source: catalog.Source) -> Any:
    try:
        with panics_told("tokenizer.json"):
            return load_tokenizer(source.tokenizer)
    except Exception as error:
        raise ExegesisError(
            f"model {source.id}: its tokenizer cannot be read ({type(error).__name__}: {shown(str(error), 200)}). "
            "Save it beside the model with its save_pretrained."
        ) from error


def _plain(source: catalog.Source, adapter: Adapter, config: dict[str, Any]) -> tuple[Any, tuple[str, ...]]:
    _check_classifier(source.id, adapter, config)
    kind = architecture(adapter)
    module, report = kind.from_pretrained(
        str(source.folder), use_safetensors=True, trust_remote_code=False, dtype=torch.float32,
        attn_implementation="sdpa", output_loading_info=True,
    )  # fmt: skip
    if report["missing_keys"]:
        missing = ", ".join(sorted(report["missing_keys"])[:3])
        raise ExegesisError(
            f"model {source.id}: its weights are incomplete ({missing} …), so its predictions would be random. "
            "Use a fine-tuned classifier, or train one with: exegesis train."
        )
    left = [name for name in report["unexpected_keys"] if name.startswith(f"{adapter.blocks}.")]
    if left:
        raise ExegesisError(
            f"model {source.id}: its weights do not fit its config.json, which has no place for {min(left)}. "
            "Download or save it again."
        )
    return module, _labels(module.config)


def _adapted(source: catalog.Source) -> tuple[Any, tuple[str, ...]]:
    assert source.base is not None
    labels = tuple(catalog.card(source.id).get("labels") or ("LABEL_0", "LABEL_1"))
    base = load_base(source.base, labels, regression=len(labels) == 1)
    return merged(base, source.folder), labels


def architecture(adapter: Adapter) -> Any:
    """The class of a family's classifier."""
    if adapter.architecture == T5EncoderForSequenceClassification.__name__:
        return T5EncoderForSequenceClassification
    return getattr(transformers, adapter.architecture)


def _check_classifier(model: str, adapter: Adapter, config: dict[str, Any]) -> None:
    named = config.get("architectures") or []
    if adapter.architecture not in named:
        raise ExegesisError(
            f"model {model}: no classifier. Its architecture is {', '.join(named) or 'not stated'}; "
            f"a {adapter.family} model must be {adapter.architecture}. Train one with: exegesis train --base {model}."
        )
    if config.get("problem_type") == "multi_label_classification":
        raise ExegesisError(
            f"model {model}: multi-label classification is not supported; single-label and regression heads are."
        )


def _labels(config: Any) -> tuple[str, ...]:
    return tuple(str(config.id2label[i]) for i in range(config.num_labels))
