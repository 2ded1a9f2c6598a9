"""Summary of a model: its task, main score and size, from its card and files. Loads no model."""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open

from engine.data.labels import PROMPT_LABELS, UNNAMED_CLASS, match_classes
from engine.data.slices import whole_name
from engine.data.tasks import (
    FACTS,
    NEXT_TOKEN,
    TASK_LABELS,
    label_name,
    registered_dataset,
    shipped_dataset,
    source_name,
    task_of_dataset,
)
from engine.errors import ExegesisError, excerpt
from engine.lazy import transformers
from engine.models import catalog
from engine.models.adapters import adapter_for, adapter_of_base, adapter_of_config, causal_adapter
from engine.models.chance import ModelAccuracy
from engine.models.label_prompts import base_name
from engine.models.text_adapter import TextAdapter
from engine.vision.adapters import image_adapter_for

BLOCKS = ("num_hidden_layers", "num_layers", "n_layers", "n_layer", "encoder_layers")
HEADS = ("num_attention_heads", "num_heads", "n_heads", "n_head", "encoder_attention_heads")
"""Keys of the number of blocks and of heads in the families' configs."""
PEFT_PREFIX = "base_model.model."
"""Prefix that peft gives to the names of an adapter's tensors."""
PEFT_EXTRA = re.compile(r"\.(lora_[AB]|modules_to_save|original_module)\.")
"""Tensors of an adapter that are not parameters of the merged model: updates, and duplicates of biases."""
TEST = "test"
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
    causal = None if source.base else causal_adapter(config)
    if causal is not None:
        architecture = causal.family
    elif kind in catalog.IMAGE_TYPES:
        architecture = image_adapter_for(kind, config.get("architectures") or [], source.id).family
    else:
        architecture = (adapter_of_base if source.base else adapter_of_config)(config, source.id).family
    return ModelSize(sum(counts.values()), blocks, heads, architecture)


def block_count(model: str) -> int:
    """Return the number of blocks of a model."""
    source = catalog.locate(model)
    return _config_number(source, catalog.config(source), BLOCKS)


def is_head_tied(model: str) -> bool:
    """Whether a causal language model's output layer shares the weights of its embeddings, by its config.json."""
    if not catalog.is_causal(model):
        return False
    config = catalog.config(catalog.locate(model))
    tied = config.get("tie_word_embeddings")
    return bool(transformers.AutoConfig.for_model(config["model_type"]).tie_word_embeddings if tied is None else tied)


def stored_parameters(model: str) -> int:
    """Count the values in all safetensors of a model, including the base of an adapter."""
    return sum(sum(counts.values()) for counts in _tensor_counts(catalog.locate(model)).values())


def _merged_counts(source: catalog.ModelSource, kind: str) -> dict[str, int]:
    """Return sizes of the base without its pre-training head, and of the adapter's head; updates add no parameters."""
    assert source.base is not None
    own = _folder_counts(source, source.folder)
    updated = any(".pooler." in name and ".lora_A." in name for name in own)
    base = _backbone_counts(_folder_counts(source, source.base), adapter_for(kind, source.id), pooler=updated)
    return base | {
        name.removeprefix(PEFT_PREFIX).replace(".base_layer.", "."): n
        for name, n in own.items()
        if not PEFT_EXTRA.search(name)
    }


def _backbone_counts(counts: Mapping[str, int], adapter: TextAdapter, pooler: bool) -> dict[str, int]:
    """Return sizes without the head. Encoders saved alone lack the prefix.

    A pooler is part of the head, and so of the adapter, unless the adapter only updates the base's (`pooler`).
    """
    inside = f"{adapter.backbone}."
    if not any(name.startswith(inside) for name in counts):
        counts = {inside + name: count for name, count in counts.items()}
    parts = (inside, f"{adapter.embeddings}.")
    return {n: c for n, c in counts.items() if n.startswith(parts) and (pooler or not n.startswith(f"{inside}pooler."))}


def _folder_counts(source: catalog.ModelSource, folder: Path) -> dict[str, int]:
    """Return the sizes of the parameters stored in the folder."""
    files = [counts for file, counts in _tensor_counts(source).items() if Path(file).parent == folder]
    return {name: n for counts in files for name, n in counts.items() if not NO_PARAMETER.search(name)}


def _tensor_counts(source: catalog.ModelSource) -> dict[str, dict[str, int]]:
    """Return the sizes of tensors by file, those of the base first."""
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


@dataclass(frozen=True)
class ModelFacts:
    """Summary of a model. `task`: empty if unknown. `score`: empty if the model was not measured.

    `dataset`: the registered data set that the model was trained on, or an empty string. `data_scores`: scores by
    `source_name` of the data set. `chance_notes`: by measured data set, a sentence if the model has not learned the
    answers, else an empty string.
    """

    task: str = ""
    score: str = ""
    parameters: int | None = None
    labels: tuple[str, ...] = ()
    regression: bool = False
    dataset: str = ""
    data_scores: Mapping[str, str] = field(default_factory=dict)
    chance_notes: Mapping[str, str] = field(default_factory=dict)


def summarize_model(model: str) -> ModelFacts:
    """Return the summary of an embedded model or a folder; empty for a base, a hub id, or unreadable files."""
    try:
        if model.startswith(catalog.BASE_PREFIX):
            return ModelFacts()
        if catalog.is_embedded(base_name(model)):
            return _summary(model, ())
        folder = Path(base_name(model)).expanduser()
        if not folder.is_dir():
            return ModelFacts()
        files = (folder / name for name in ("card.json", "config.json", "adapter_config.json"))
        return _summary(model, tuple(file.stat().st_mtime_ns for file in files if file.exists()))
    except (ExegesisError, OSError, TypeError, ValueError, LookupError, AttributeError):
        return ModelFacts()


@functools.lru_cache(maxsize=256)
def _summary(model: str, stamp: tuple[int, ...]) -> ModelFacts:
    card, labels = catalog.card(model), catalog.model_labels(model)
    trained = str((card.get("settings") or {}).get("dataset") or "")
    own = {source_name(trained): format_score(card)} if registered_dataset(trained) else {}
    measured = {name: one for name, one in catalog.fair_scores(card).items() if registered_dataset(name)}
    return ModelFacts(
        task=describe_model_task(model, card or {"labels": labels, "regression": len(labels) == 1}),
        score=format_score(card),
        parameters=model_size(model).parameters,
        labels=labels,
        regression=bool(card.get("regression")) if card else len(labels) == 1,
        dataset=registered_dataset(trained),
        data_scores=own | {source_name(name): _format(card, one) for name, one in measured.items()},
        chance_notes=dict(_chance_notes(model, card)),
    )


def chance_note(model: str, dataset: str) -> str:
    """Return a sentence if, by its card, a model hardly does better than guessing on a data set, else an empty string.

    For a slice, it is about the whole data set; for an unmeasured data set, about one whose labels mean the same.
    """
    notes = summarize_model(model).chance_notes
    return notes.get(whole_name(dataset), notes.get(label_name(dataset), ""))


def _chance_notes(model: str, card: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    if trained := str((card.get("settings") or {}).get("dataset") or ""):
        yield trained, ""  # keeps `chance_note` from falling back to a data set with the same labels
    for name, score in catalog.fair_scores(card).items():
        n, metric = int(score.get("count") or 0), score.get("metric") or card.get("metric")
        if metric != "accuracy" or not registered_dataset(name) or not n:
            continue
        classes = len(PROMPT_LABELS) if task_of_dataset(name) == NEXT_TOKEN else len(card.get("labels") or [])
        yield name, ModelAccuracy(round(float(score["value"]) * n), n, classes).note(model, name)


def describe_model_task(model: str, card: Mapping[str, Any]) -> str:
    """Describe the task of a model in a few words; for a causal language model, the size of its vocabulary."""
    size = catalog.vocabulary_size(model)
    if catalog.needs_labels(model) and not card.get("labels"):
        return "Labels of your choice"
    return describe_task(card) if size is None else f"Language model, {size:,} tokens"


def describe_task(card: Mapping[str, Any]) -> str:
    """Describe the task of a model in a few words, by its training data or else by its labels."""
    labels = card.get("labels") or []
    dataset = str((card.get("settings") or {}).get("dataset") or "")
    return task_of_dataset(dataset) or ("Regression" if card.get("regression") else f"{len(labels)} classes")


def main_score(card: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """Return the split and score that represent a model: the test split, else the first; empty if there are none."""
    scores = catalog.fair_scores(card)
    split = TEST if TEST in scores else next(iter(scores), "")
    return split, scores.get(split, {})


def format_score(card: Mapping[str, Any]) -> str:
    """Format the main score: an accuracy as "89.2%", a correlation as "r = 0.755"; empty if there is none."""
    _, score = main_score(card)
    return _format(card, score) if score else ""


def _format(card: Mapping[str, Any], score: Mapping[str, Any]) -> str:
    metric, value = str(score.get("metric") or card.get("metric") or "score"), float(score["value"])
    return f"{value:.1%}" if metric == "accuracy" else f"{'r =' if metric == 'pearson' else metric} {value:.3f}"


def short_count(number: int) -> str:
    """Format a large number with at most three digits: 22.7M, 644K."""
    for unit, name in ((1e9, "B"), (1e6, "M"), (1e3, "K")):
        if float(f"{number:.3g}") >= unit:
            return f"{float(f'{number:.3g}') / unit:.3g}{name}"
    return str(number)


def fits_task(
    summary: ModelFacts, dataset: str, task: str, labels: tuple[str, ...], unnamed: re.Pattern[str] = UNNAMED_CLASS
) -> bool:
    """Whether a model fits the labels of a data set; True if the labels of either are unknown.

    `dataset`: its name. `task`: classification or regression. `labels`: the names of its classes.
    """
    ours, theirs = task_of_dataset(dataset), task_of_dataset(summary.dataset)
    if not summary.labels or (not labels and task == "classification"):
        return True
    if ours and theirs and ours != theirs:
        return False
    if summary.regression or task == "regression":
        return summary.regression and task == "regression"
    return match_classes(labels, summary.labels, unnamed).indices is not None


def fitting_dataset(summary: ModelFacts) -> str:
    """Return a shipped data set of the model's task, preferably its training data; empty if there is none."""
    facts = FACTS.get(summary.dataset)
    if facts is not None and facts.examples is not None:
        return summary.dataset
    if facts is not None:
        task = facts.task
        return "" if task == "Objects" else shipped_dataset(task)
    if summary.regression:
        return ""
    matching = (task for task, labels in TASK_LABELS.items() if match_classes(labels, summary.labels).indices)
    return shipped_dataset(next(matching, ""))


def fitting_model(models: Iterable[str], name: str) -> str:
    """Return the best of `models` for a data set: named after it, else trained on it, else the largest; or empty."""
    own = registered_dataset(name)

    def rank(model: str) -> tuple[bool, bool, int]:
        summary = summarize_model(model)
        return bool(own) and model.startswith(f"{own}-"), bool(own) and summary.dataset == own, summary.parameters or 0

    return max(models, key=rank, default="")
