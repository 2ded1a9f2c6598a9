"""Fine-tuning of a base on labeled texts: all weights, a LoRA adapter, or an adapter extracted from all weights."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import peft
import torch
from safetensors import safe_open
from safetensors.torch import save_file
from transformers.pytorch_utils import Conv1D

from engine.data.datasets import registered_name
from engine.data.examples import LabeledExample
from engine.errors import ExegesisError, UsageError, not_allowed
from engine.models import catalog, checkpoint_files
from engine.models.adapters import adapter_for, trained_types
from engine.models.checkpoint_files import weights_sha256
from engine.models.loading import load_base, longest_input, merge_adapter, read_tokenizer, silence_libraries
from engine.models.text_adapter import TextAdapter
from engine.progress import CancelToken, Report, silent
from engine.training.config import TrainConfig
from engine.training.loop import SplitScore, TrainingLoop, evaluate
from engine.training.recipe import TrainingRecipe, TrainResult, describe_training, prepare_output_folder
from engine.training.text_data import (
    TokenizedTexts,
    load_added_texts,
    load_further_texts,
    read_text_corpus,
    sample_rows,
    split_held_out,
    text_source,
    text_sources,
    tokenize_examples,
)

LINEAR = (torch.nn.Linear, Conv1D)
ADAPTER_WEIGHTS = "adapter_model.safetensors"
ADAPTER_CONFIG = "adapter_config.json"
KINDS = {
    "full": "Full fine-tuning",
    "lora": "LoRA adapter",
    "extracted": "Adapter extracted from a full fine-tuning",
}
"""Result of a training, by method."""


def train(config: TrainConfig, report: Report = silent, cancel: CancelToken | None = None) -> TrainResult:
    """Fine-tune, store the best epoch by the score on held-out training examples, and evaluate the stored model."""
    return FineTuning(config, report, cancel).run()


class FineTuning(TrainingRecipe[TrainConfig]):
    """Fine-tuning of a text classifier."""

    def __init__(self, config: TrainConfig, report: Report, cancel: CancelToken | None) -> None:
        if config.head == "lora" and config.method != "lora":
            raise not_allowed("head", f"full with the method {config.method}", config.head, "Or add --method lora.")
        self.config, self.as_adapter = config, config.method != "full"
        self.path = catalog.locate_base(config.base, language_models=True)
        self.family = checkpoint_files.read_base_config(self.path).get("model_type", "")
        if self.family not in (known := trained_types()):
            raise not_allowed("base", f"of a type that can be fine-tuned: {', '.join(known)}", self.family)
        self.tokenizer = read_tokenizer(self.path, f"base {config.base}")
        self.out = prepare_output_folder(Path(config.out), self.path)
        self.corpus = read_text_corpus(config.dataset, config.columns)
        self.further = load_further_texts(config.measure, self.corpus, config.add)
        self.labels, self.regression = self.corpus.labels, self.corpus.regression
        self.first_rows, self.held_rows, dropped = self._split()
        measured = [*self.held_rows, *chain(*self.corpus.others.values(), *self.further.values())]
        self.added = load_added_texts(config.add, self.corpus, measured if config.drop_contained else ())
        self.train_rows = self.first_rows + [row for one in self.added for row in one.rows * one.repeats]
        self.dropped = dropped + sum(one.dropped for one in self.added)
        self.max_length = min(config.max_length, longest_input(self.path, self.tokenizer))
        self.kind = KINDS[config.method]
        self.metric = "pearson" if self.regression else "accuracy"
        super().__init__(config, report, cancel)

    def new_loop(self) -> TrainingLoop:
        module = load_base(self.path, self.labels, self.regression)
        if self.config.method == "lora":
            module = add_lora(module, self.family, self.config, self.path)
        inputs = {"base's weights": weights_sha256(self.path), "data set's content": self.corpus.revision}
        inputs |= {f"content of {one.name}": one.revision for one in self.added}
        train, held_out = self._tokenize(self.train_rows), self._tokenize(self.held_rows)
        identity = self.config.identity() | inputs
        return TrainingLoop(module.to(self.device), train, held_out, self.config, self.regression, identity)

    def store(self, module: Any) -> None:
        if self.config.method == "extracted":
            base = load_base(self.path, self.labels, self.regression)
            module = extract_lora(module.cpu(), base, self.family, self.config)
        if self.as_adapter:
            store_adapter(module, self.out, _lasting_name(self.config.base))
        else:
            with silence_libraries():
                (module.half() if self.config.half else module).save_pretrained(str(self.out))
                self.tokenizer.save_pretrained(str(self.out))

    def measure(self, loop: TrainingLoop) -> dict[str, SplitScore]:
        stored = load_base(self.path if self.as_adapter else self.out, self.labels, self.regression)
        stored = (merge_adapter(stored, self.out) if self.as_adapter else stored).to(self.device)
        splits = {"held-out": self.held_rows, **self.corpus.others, **self.further}
        return {name: evaluate(stored, self._tokenize(rows), self.regression) for name, rows in splits.items()}

    def facts(self, module: Any) -> dict[str, Any]:
        names = [self.config.dataset, *(one.name for one in self.added)]
        use = "+".join(registered_name(name) or name for name in names) if self.added else self.config.dataset
        facts = describe_training(self.config.base, use, text_sources(names))
        facts |= {"base": facts["base"] | {"sha256": weights_sha256(self.path)}}
        return facts | {"training_sets": self._training_sets()} if self.added else facts

    def sizes(self) -> dict[str, int]:
        return {"train": len(self.train_rows), "held_out": len(self.held_rows), "dropped": self.dropped}

    def _training_sets(self) -> list[dict[str, Any]]:
        """Return title, source, license, number of examples and repeats of each training set, in order."""
        first = (self.config.dataset, self.first_rows, 1)
        sets = [first, *((one.name, one.rows, one.repeats) for one in self.added)]
        return [text_source(name) | {"examples": len(rows), "repeats": repeats} for name, rows, repeats in sets]

    def precision(self) -> dict[str, str]:
        return {}

    def _tokenize(self, rows: Sequence[LabeledExample]) -> TokenizedTexts:
        return tokenize_examples(rows, self.tokenizer, self.max_length, adapter_for(self.family, self.config.base))

    def _split(self) -> tuple[list[LabeledExample], list[LabeledExample], int]:
        """Split the examples of the first data set into (train, held out, number of dropped examples)."""
        config, name, rows = self.config, self.corpus.name, self.corpus.train
        if rows and rows[0].answer is not None:
            raise UsageError(
                f"dataset: {name} holds prompts, which have no classes. Choose a data set with classes, or train a "
                "language model: exegesis pretrain."
            )
        if not self.regression and len(self.labels) < 2:
            raise ExegesisError(f"dataset: all examples of {name} have one label; at least two are needed.")
        if len(rows) < 10:
            raise ExegesisError(f"dataset: {name} has {len(rows)} training examples; at least 10 are needed.")
        train, held_out = split_held_out(rows, config.held_out, config.seed, config.drop_contained)
        if not train:
            raise ExegesisError(f"dataset: every text of {name} is part of a held-out text. Use --no-drop-contained.")
        dropped = len(rows) - len(train) - len(held_out)
        return sample_rows(train, config.train_size, config.seed), held_out, dropped


def add_lora(module: torch.nn.Module, family: str, config: TrainConfig, base: Path) -> torch.nn.Module:
    """Add LoRA to all linear layers of the blocks (Hu et al., 2022). The head is fully trained unless `head` is `lora`.

    `base`: folder of the base. Errors: `head` is `lora`, but the base stores no layer of a head before the last one.
    """
    adapter = adapter_for(family, config.base)
    layers, saved = _split_head(module, adapter, base) if config.head == "lora" else ([], list(adapter.head))
    settings = peft.LoraConfig(
        task_type="SEQ_CLS",
        r=config.rank,
        lora_alpha=config.alpha,
        lora_dropout=config.dropout,
        target_modules=[*adapter.lora_targets, *layers],
        modules_to_save=saved,
    )
    with silence_libraries():
        return peft.get_peft_model(module, settings)


def _split_head(module: torch.nn.Module, adapter: TextAdapter, base: Path) -> tuple[list[str], list[str]]:
    """Split the head into (linear layers for LoRA, modules that are stored whole, including the last one).

    The weights of the former must come from the base, because an adapter does not store new ones. Their names must not
    end with the name of a module that is stored whole, because peft would then store both (DistilBERT).
    """
    *inner, last = adapter.head
    starts = tuple(f"{name}." for name in inner)
    parts = {name: part for name, part in module.named_modules() if f"{name}.".startswith(starts)}
    layers = [name for name, part in parts.items() if isinstance(part, LINEAR)]
    stored = {key for file in base.glob("*.safetensors") for key in _tensor_names(file)}
    weights = {f"{name}.weight" for name in layers}
    if not layers or not weights <= stored | {f"{adapter.backbone}.{key}" for key in stored}:
        raise not_allowed("head", f"full, as {base.name} stores no layer of a head before the last", "lora")
    others = [name for name, part in parts.items() if name not in layers and list(part.parameters(recurse=False))]
    saved = [*others, last]
    if unclear := [name for name in layers if name.endswith(tuple(saved))]:
        raise not_allowed("head", f"full, as {unclear[0]} and {last} of a {adapter.family} are stored together", "lora")
    return layers, saved


def _tensor_names(file: Path) -> list[str]:
    with safe_open(file, framework="pt") as weights:
        return list(weights.keys())


def extract_lora(trained: torch.nn.Module, base: torch.nn.Module, family: str, config: TrainConfig) -> torch.nn.Module:
    """Return the base with an adapter that approximates a full fine-tuning.

    The change of each matrix in the blocks is replaced by its best approximation of the adapter's rank (Eckart and
    Young, 1936); everything else, such as embeddings, norms, biases and the head, is stored as trained.
    """
    own = adapter_for(family, config.base)
    changed, ends = dict(trained.named_modules()), tuple(f".{target}" for target in own.lora_targets)
    matrices = {name for name, one in changed.items() if name.endswith(ends) and isinstance(one, LINEAR)}
    leaves = (name for name, one in changed.items() if name not in matrices and list(one.parameters(recurse=False)))
    others = [*own.head, *(name for name in leaves if not f"{name}.".startswith(tuple(f"{at}." for at in own.head)))]
    settings = peft.LoraConfig(
        task_type="SEQ_CLS",
        r=config.rank,
        lora_alpha=config.rank,
        target_modules=list(own.lora_targets),
        modules_to_save=others,
        bias="all",
    )
    with silence_libraries(), torch.no_grad():
        adapted = peft.get_peft_model(base, settings)
        for name, module in adapted.get_base_model().named_modules():
            if name in matrices:
                _set_update(module, changed[name], config.rank)
            elif name in others:
                module.modules_to_save["default"].load_state_dict(changed[name].state_dict())
    return adapted


def _set_update(layer: Any, trained: Any, rank: int) -> None:
    """Set a layer's LoRA weights to the best approximation of the trained weights."""
    change = (trained.weight - layer.base_layer.weight).double()
    left, sizes, right = torch.linalg.svd(change.T if layer.fan_in_fan_out else change, full_matrices=False)
    root = sizes[:rank].sqrt()
    layer.lora_A["default"].weight[: len(root)] = (root[:, None] * right[:rank]).float()
    layer.lora_B["default"].weight[:, : len(root)] = (left[:, :rank] * root).float()
    if trained.bias is not None:
        layer.base_layer.bias.copy_(trained.bias)


def store_adapter(module: Any, out: Path, base_name: str) -> None:
    """Write the adapter as float16 safetensors and its JSON config with a portable name of the base."""
    tensors = peft.get_peft_model_state_dict(module)
    half = {name: t.detach().to("cpu", torch.float16).contiguous() for name, t in tensors.items()}
    save_file(half, out / ADAPTER_WEIGHTS, metadata={"format": "pt"})
    settings = module.peft_config["default"].to_dict()
    settings |= {"base_model_name_or_path": base_name, "inference_mode": True}
    (out / ADAPTER_CONFIG).write_text(json.dumps(settings, indent=2, sort_keys=True, default=_json_value) + "\n")


def _json_value(value: object) -> object:
    return sorted(value) if isinstance(value, set | frozenset) else str(value)


def _lasting_name(base: str) -> str:
    """Return a portable name of a base: the absolute path of a folder, else the name itself."""
    if base in ("minilm", *catalog.embedded_bases()) or not Path(base).expanduser().is_dir():
        return base
    return str(Path(base).expanduser().resolve())
