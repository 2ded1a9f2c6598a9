"""Loading of models: shared classifiers of texts and pictures by name, and bases with a new head for fine-tuning."""

from __future__ import annotations

import contextlib
import copy
import functools
import threading
import warnings
from collections import OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, Generic, TypeVar

import torch
import transformers
from safetensors import SafetensorError
from torch import Tensor, nn
from transformers import T5Config
from transformers.modeling_outputs import SequenceClassifierOutput
from transformers.models.t5.modeling_t5 import T5PreTrainedModel, T5Stack
from transformers.utils import logging as hf_logging

from engine import runtime
from engine.errors import ExegesisError, excerpt, not_allowed, panics_told
from engine.lazy import peft
from engine.models import catalog, checkpoint_files, picture_text, sandbox
from engine.models.adapters import ADAPTERS, CAUSAL_ADAPTERS, adapter_of_base, adapter_of_config, causal_adapter
from engine.models.causal import CausalModel
from engine.models.label_prompts import base_name
from engine.models.own_attention import route_attention
from engine.models.text_adapter import TextAdapter
from engine.models.text_classifier import TextClassifier
from engine.models.zero_shot import as_zero_shot
from engine.request import DTYPES
from engine.vision.adapters import ImageAdapter, image_adapter_for
from engine.vision.classifier import ImageClassifier
from engine.vision.picture import check_labels, check_sizes, config_errors, read_preprocessing
from engine.vision.windows import WindowClassifier


class T5EncoderForSequenceClassification(T5PreTrainedModel):
    """T5's encoder with a classification head: half of the weights, and no decoder. Pooling ignores padding."""

    _tied_weights_keys = {"encoder.embed_tokens.weight": "shared.weight"}  # noqa: RUF012

    def __init__(self, config: T5Config) -> None:
        super().__init__(config)
        config.use_cache = False
        config.is_encoder_decoder = False
        self.shared = nn.Embedding(config.vocab_size, config.d_model)
        self.encoder = T5Stack(config)
        self.encoder.set_input_embeddings(self.shared)
        self.dropout = nn.Dropout(config.classifier_dropout)
        self.classifier = nn.Linear(config.d_model, int(config.num_labels or 2))
        self.post_init()

    def get_input_embeddings(self) -> nn.Module:
        return self.shared

    def set_input_embeddings(self, new_embeddings: Any) -> None:
        self.shared = new_embeddings
        self.encoder.set_input_embeddings(new_embeddings)

    def forward(
        self,
        input_ids: Tensor | None = None,
        attention_mask: Tensor | None = None,
        inputs_embeds: Tensor | None = None,
        **kwargs: Any,
    ) -> SequenceClassifierOutput:
        """Logits `[batch labels]` from ids or embeddings; `attention_mask` is `[batch seq]`."""
        hidden = self.encoder(
            input_ids=input_ids, attention_mask=attention_mask, inputs_embeds=inputs_embeds, **kwargs
        ).last_hidden_state
        if attention_mask is None:
            attention_mask = torch.ones(hidden.shape[:2], device=hidden.device)
        weights = attention_mask.to(hidden.dtype)[..., None]
        pooled = (hidden * weights).sum(1) / weights.sum(1).clamp(min=1)
        return SequenceClassifierOutput(logits=self.classifier(self.dropout(pooled)))


CLASSIFIERS: dict[str, Any] = {"t5": T5EncoderForSequenceClassification}
"""Classifiers by `model_type`, for families for which transformers has none or a different one."""
MAX_LOADED = 4
"""Maximum number of models of a kind in memory."""
ModelT = TypeVar("ModelT")
CacheKey = tuple[str, str, str, str]
Load = Callable[[catalog.ModelSource, str, "torch.dtype", "torch.device"], ModelT]
"""Loads a model, given its source, revision, precision and device."""


class ModelCache(Generic[ModelT]):
    """LRU cache of loaded models of one input kind, shared by all threads.

    Keys are name, revision, precision and device.
    """

    def __init__(self, load: Load[ModelT], kind: str) -> None:
        self._load, self._kind = load, kind
        self._models: OrderedDict[CacheKey, ModelT] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, model: str, dtype: str, device: torch.device | None) -> ModelT:
        """Return the model, loading it if necessary. One thread loads while the others wait."""
        if dtype not in DTYPES:
            raise not_allowed("dtype", f"one of {', '.join(DTYPES)}", dtype)
        place = device or torch.device("cpu")
        key = (model, catalog.revision(model), dtype, str(place))
        with self._lock:
            if key not in self._models:
                source = catalog.locate(model)
                sandbox.check_opening(source, self._kind)
                self._models[key] = self._fit(lambda: self._load(source, key[1], getattr(torch, dtype), place), key)
                while len(self._models) > MAX_LOADED:
                    self._models.popitem(last=False)
            self._models.move_to_end(key)
            return self._models[key]

    def _fit(self, load: Callable[[], ModelT], key: CacheKey) -> ModelT:
        """Load the model; if memory runs out, unload all others and retry. Errors: it still does not fit."""
        loaded = runtime.attempt(load)
        if loaded is None and self._models:
            self._models.clear()
            runtime.free()
            loaded = runtime.attempt(load)
        if loaded is None:
            raise ExegesisError(
                f"model {key[0]}: does not fit into the memory of {key[3]}. Use a smaller model, half precision, or "
                "another device."
            )
        return loaded[0]


def load_model(model: str, dtype: str = "float32", device: torch.device | None = None) -> TextClassifier:
    """Return a shared, read-only classifier; the last few stay loaded.

    Errors: an unknown name, a pickle-only or remote-code checkpoint, a family without an adapter, no classifier.
    """
    return _TEXT_MODELS.get(model, dtype, device)


def load(source: catalog.ModelSource, revision: str, dtype: torch.dtype, device: torch.device) -> TextClassifier:
    """Load a checkpoint without caching it. Errors: those of `load_model`."""
    config = checkpoint_files.read_base_config(source.base or source.folder)
    if source.prompts is not None and catalog.matches_pictures(config):
        pictures = load_image(source, revision, dtype, device)
        return picture_text.label_classifier(_load_towers(source, pictures.adapter, dtype, device), pictures)
    catalog.check_text_model(source.id, config)
    causal = None if source.base else causal_adapter(config)
    adapter = causal or (adapter_of_base if source.base else adapter_of_config)(config, source.id)
    with silence_libraries(), loading_errors(source.id):
        module, labels = _load_adapted(source) if source.base else _load_checkpoint(source, adapter, config)
        tokenizer = read_tokenizer(source.tokenizer, f"model {source.id}")
    if not tokenizer.is_fast:
        raise ExegesisError(f"model {source.id}: no fast tokenizer (tokenizer.json), so no character offsets.")
    module = module.to(device=device, dtype=dtype).eval().requires_grad_(False)
    route_attention(module)
    if adapter.shared_blocks:
        unroll_blocks(module, adapter.blocks)
    regression = len(labels) == 1
    kind = CausalModel if causal else TextClassifier
    model = kind(source.id, revision, module, tokenizer, adapter, labels, regression, dtype, device)
    return model if source.prompts is None else as_zero_shot(model, source.prompts)


_TEXT_MODELS = ModelCache(load, "text")


def load_image_model(model: str, dtype: str = "float32", device: torch.device | None = None) -> ImageClassifier:
    """Return a shared, read-only image classifier; the last few stay loaded.

    Errors: an unknown name, a pickle-only or remote-code checkpoint, another family, no classifier, no preprocessing.
    """
    return _IMAGE_MODELS.get(model, dtype, device)


def load_image(source: catalog.ModelSource, revision: str, dtype: torch.dtype, device: torch.device) -> ImageClassifier:
    """Load a checkpoint without caching it. Errors: those of `load_image_model`."""
    config = checkpoint_files.read_base_config(source.base or source.folder)
    adapter = image_adapter_for(config.get("model_type", ""), config.get("architectures") or [], source.id)
    check_labels(source, adapter)
    preprocessing = read_preprocessing(source.folder, source.id)
    if source.prompts is not None:
        towers, labels = _load_towers(source, adapter, dtype, device), source.prompts.labels
        with loading_errors(source.id):
            module: Any = picture_text.picture_tower(towers, source.prompts)
    else:
        with silence_libraries(), loading_errors(source.id):
            module, _ = load_complete(getattr(transformers, adapter.architecture), source)
        module = module.to(device=device, dtype=dtype).eval().requires_grad_(False)
        with config_errors(source.id):
            labels = tuple(str(module.config.id2label[i]) for i in range(module.config.num_labels))
        if adapter.section:  # the section holds the sizes
            module.config = getattr(module.config, adapter.section)
    kind = WindowClassifier if adapter.windows else ImageClassifier
    model = kind(source.id, revision, module, preprocessing, adapter, labels, dtype, device)
    check_sizes(model.id, model.preprocessing, model.size, model.channels)
    return model


def _load_towers(
    source: catalog.ModelSource, adapter: ImageAdapter, dtype: torch.dtype, device: torch.device
) -> picture_text.Towers:
    """Load both encoders of a zero-shot image model, shared by all labels."""
    plain = replace(source, id=base_name(source.id), prompts=None)
    with silence_libraries(), loading_errors(plain.id):
        return _towers(plain, catalog.revision(plain.id), adapter.architecture, dtype, device)


@functools.lru_cache(maxsize=1)
def _towers(
    source: catalog.ModelSource, revision: str, architecture: str, dtype: torch.dtype, device: torch.device
) -> picture_text.Towers:
    """As `_load_towers`. The last model stays loaded until its files, and so its `revision`, change."""
    module, _ = load_complete(getattr(transformers, architecture), source)
    module = module.to(device=device, dtype=dtype).eval().requires_grad_(False)
    return picture_text.Towers(module, read_tokenizer(source.tokenizer, f"model {source.id}"))


_IMAGE_MODELS = ModelCache(load_image, "image")


def _load_checkpoint(
    source: catalog.ModelSource, adapter: TextAdapter, config: dict[str, Any]
) -> tuple[Any, tuple[str, ...]]:
    architectures = config.get("architectures") or []
    if adapter.architecture not in architectures:
        raise ExegesisError(
            f"model {source.id}: no classifier. Its architecture is {', '.join(architectures) or 'not stated'}; a "
            f"{adapter.family} model must be {adapter.architecture}. Train one with: exegesis train --base {source.id}."
        )
    if config.get("problem_type") == "multi_label_classification":
        raise ExegesisError(
            f"model {source.id}: multi-label classification is not supported; single-label and regression heads are."
        )
    module, unexpected = load_complete(classifier_class(adapter), source, adapter.attention)
    left = [name for name in unexpected if name.startswith(f"{adapter.blocks}.")]
    if left:
        raise ExegesisError(
            f"model {source.id}: its weights do not match its config.json, which has no place for {min(left)}. "
            "Download or save it again."
        )
    if adapter.architecture in CAUSAL_ADAPTERS:
        return module, ()
    return module, tuple(str(module.config.id2label[i]) for i in range(module.config.num_labels))


def load_complete(kind: Any, source: catalog.ModelSource, attention: str = "sdpa") -> tuple[Any, list[str]]:
    """Load a transformers class; return the module and the names of unexpected weights. Errors: missing weights."""
    module, report = kind.from_pretrained(
        str(source.folder), use_safetensors=True, trust_remote_code=False, dtype=torch.float32,
        attn_implementation=attention, output_loading_info=True,
    )  # fmt: skip
    if report["missing_keys"]:
        missing = ", ".join(sorted(report["missing_keys"])[:3])
        raise ExegesisError(
            f"model {source.id}: its weights are incomplete ({missing} …), so its predictions would be random. "
            "Use a fine-tuned classifier, or train one with: exegesis train."
        )
    return module, list(report["unexpected_keys"])


def _load_adapted(source: catalog.ModelSource) -> tuple[Any, tuple[str, ...]]:
    assert source.base is not None
    labels = catalog.model_labels(base_name(source.id))
    base = load_base(source.base, labels, regression=len(labels) == 1)
    return merge_adapter(base, source.folder), labels


def read_tokenizer(folder: Path, where: str) -> Any:
    """Load a tokenizer. `where`: name of the model, for the error. Errors: it is missing or damaged."""
    checkpoint_files.check_vocabulary(where, folder)
    try:
        with panics_told("tokenizer.json"):
            return load_tokenizer(folder)
    except Exception as error:
        raise ExegesisError(
            f"{where}: its tokenizer cannot be read ({type(error).__name__}: {excerpt(str(error), 200)}). "
            "Save it beside the model with its save_pretrained."
        ) from error


def unroll_blocks(module: Any, path: str) -> None:
    """Give each layer with shared weights (ALBERT) its own block, whose parameters share memory.

    Heads can then be scaled and read per layer. A block that is randomized gets its own weights.
    """
    groups = module.get_submodule(path)
    layers = int(module.config.num_hidden_layers)
    of_layer = [groups[int(layer / (layers / len(groups)))] for layer in range(layers)]
    del groups[:]
    for group in of_layer:
        shared = {id(p): nn.Parameter(p.detach(), requires_grad=False) for p in group.parameters()}
        groups.append(copy.deepcopy(group, shared))
    module.config.num_hidden_groups = layers


def classifier_class(adapter: TextAdapter) -> Any:
    """Return the class of a family's classifier."""
    own = {kind.__name__: kind for kind in CLASSIFIERS.values()}
    return own.get(adapter.architecture) or getattr(transformers, adapter.architecture)


def load_base(path: Path, labels: tuple[str, ...], regression: bool = False) -> torch.nn.Module:
    """Load a base in float32 with a head of one logit per label, or a single one for regression.

    Errors: pickles, damaged files, and blocks whose weights are missing or have another size, as they would be random.
    """
    family = checkpoint_files.read_base_config(path).get("model_type", "")
    if not any(path.glob("*.safetensors")):
        raise ExegesisError(
            f"base: {path} holds no safetensors (pickle checkpoints are refused). "
            "Convert it with transformers' save_pretrained."
        )
    labels = ("score",) if regression else labels
    kind = CLASSIFIERS.get(family, transformers.AutoModelForSequenceClassification)
    with silence_libraries(), loading_errors(path.name, "base"):
        module, report = kind.from_pretrained(
            str(path),
            output_loading_info=True,
            num_labels=len(labels),
            problem_type="regression" if regression else "single_label_classification",
            use_safetensors=True,
            trust_remote_code=False,
            ignore_mismatched_sizes=True,
            attn_implementation=ADAPTERS[family].attention if family in ADAPTERS else "sdpa",
            dtype=torch.float32,
            **label_names(labels),
        )
    strange = [*report["missing_keys"], *(key for key, *_ in report["mismatched_keys"])]
    blocks = f"{ADAPTERS[family].blocks}." if family in ADAPTERS else ""
    if blocks and (random := sorted(key for key in strange if key.startswith(blocks))):
        raise ExegesisError(
            f"base {path.name}: its weights do not match its config.json, so {random[0]} would be random. Download or "
            "save it again."
        )
    if module.config.pad_token_id is None:
        module.config.pad_token_id = module.config.eos_token_id
    return module.float()


def label_names(labels: tuple[str, ...]) -> dict[str, Any]:
    """Return the labels in the format of transformers' configs."""
    return {"label2id": {label: i for i, label in enumerate(labels)}, "id2label": dict(enumerate(labels))}


def merge_adapter(base: torch.nn.Module, adapter: Path) -> torch.nn.Module:
    """Merge a stored LoRA adapter into the base, in float32."""
    with silence_libraries():
        # On the CPU, as the caller chooses the device: by default peft loads onto the first GPU.
        merged = peft.PeftModel.from_pretrained(base, str(adapter), torch_device="cpu").merge_and_unload().float()
        merged.tie_weights()  # an adapter may hold embeddings that the base has under two names
        return merged


def load_tokenizer(path: Path) -> Any:
    """Load a tokenizer; one without a pad token (GPT-2) pads with its end token."""
    with silence_libraries():
        tokenizer = transformers.AutoTokenizer.from_pretrained(str(path), trust_remote_code=False)
    if tokenizer.pad_token_id is None:
        tokenizer.pad_token = tokenizer.eos_token
    return tokenizer


def longest_input(path: Path, tokenizer: Any) -> int:
    """Return the maximum number of input tokens of a model, without reading its weights."""
    adapter = adapter_of_config(checkpoint_files.read_base_config(path), str(path))
    with loading_errors(path.name, "base"):
        config = transformers.AutoConfig.from_pretrained(str(path), trust_remote_code=False)
    return adapter.longest_input(config, tokenizer)


@contextlib.contextmanager
def silence_libraries() -> Iterator[None]:
    """Temporarily silence the loading reports and progress bars of transformers and peft."""
    level, bars = hf_logging.get_verbosity(), hf_logging.is_progress_bar_enabled()
    hf_logging.set_verbosity_error()
    hf_logging.disable_progress_bar()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        hf_logging.set_verbosity(level)
        if bars:
            hf_logging.enable_progress_bar()


@contextlib.contextmanager
def loading_errors(name: str, role: str = "model") -> Iterator[None]:
    """Convert library errors about damaged or inconsistent files to one sentence. `role`: model or base."""
    try:
        yield
    except (ExegesisError, MemoryError, torch.OutOfMemoryError):
        raise
    except SafetensorError as error:
        raise ExegesisError(
            f"{role} {name}: its file of weights (safetensors) is damaged ({error}). Download or save it again."
        ) from error
    except Exception as error:
        raise ExegesisError(
            f"{role} {name}: its weights do not match its config.json, or it is invalid "
            f"({type(error).__name__}: {excerpt(str(error), 200)}). Download or save it again."
        ) from error
