"""Stand-ins for published models and data sets in a rehearsal: random weights and generated examples."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
import transformers
from PIL import Image

from engine.data.build_reviews import to_jsonl
from engine.data.datasets import load
from engine.data.examples import ImageExample, LabeledExample
from engine.data.sources import load_source
from engine.models import catalog
from engine.models.loading import CLASSIFIERS, silence_libraries
from engine.training.image_data import Normalization
from engine.training.image_training import store_vit

SHAPES: Mapping[str, tuple[str, Mapping[str, object]]] = {
    "google/t5-efficient-tiny": ("t5", {"d_model": 256, "d_ff": 1024, "num_layers": 4, "num_heads": 4}),
    "google/t5-efficient-mini": ("t5", {"d_model": 384, "d_ff": 1536, "num_layers": 4, "num_heads": 8}),
    "google/t5-efficient-small": ("t5", {"d_model": 512, "d_ff": 2048, "num_layers": 6, "num_heads": 8}),
    "google/t5-efficient-base": ("t5", {"d_model": 768, "d_ff": 3072, "num_layers": 12, "num_heads": 12}),
    "google-bert/bert-base-uncased": ("bert", {}),
    "FacebookAI/roberta-base": (
        "roberta",
        {"vocab_size": 50265, "max_position_embeddings": 514, "type_vocab_size": 1, "layer_norm_eps": 1e-5},
    ),
    "google-t5/t5-base": ("t5", {"d_model": 768, "d_ff": 3072, "num_layers": 12, "num_heads": 12}),
    "openai-community/gpt2": ("gpt2", {}),
    "google/electra-small-discriminator": ("electra", {}),
    "google/vit-base-patch16-224-in21k": ("vit", {}),
    "FacebookAI/xlm-roberta-base": (
        "xlm-roberta",
        {"vocab_size": 250002, "max_position_embeddings": 514, "type_vocab_size": 1, "layer_norm_eps": 1e-5},
    ),
}
"""By hub ID: the model family, and the differences of the published configuration from Transformers' defaults."""
TOKENIZERS = {"electra": "bert", "xlm-roberta": "roberta"}
"""Embedded bases whose tokenizer stands in for families that have no embedded base."""
PICTURE_SIZE, HALF = 224, (0.5, 0.5, 0.5)
"""Image size in pixels, and mean and standard deviation of each channel, for the vision transformer."""
SPECIAL_IDS = ("pad_token_id", "bos_token_id", "eos_token_id")
"""Token ids of the stand-in tokenizer that the model's configuration needs."""
PARTS = {"train": 160, "dev": 24}
"""Number of examples of each split of a data set."""
GENERATED = {
    "sst2": "reviews-generated", "multinli": "nli-generated:sentences=1", "esnli": "nli-generated:sentences=1",
    "imdb": "reviews-generated", "cifar100": "scenes", "mlqe": "quality",
}  # fmt: skip
"""Generated data sets whose examples stand in for published ones."""
REVIEW_PARTS = 16
"""Number of generated reviews that are joined to reach about the length of an IMDB review."""


def write_data(folder: Path, name: str) -> None:
    """Write a small generated stand-in for the data set `name`, unless `folder` exists."""
    if folder.is_dir():
        return
    partial_folder = folder.with_name(f"{folder.name}.{os.getpid()}.partial")
    start = 0
    for split, count in PARTS.items():
        part = range(start, start + count)
        start += count
        if name == "cifar100":
            _write_pictures(partial_folder / split, part)
        else:
            partial_folder.mkdir(parents=True, exist_ok=True)
            _write_texts(partial_folder / split, name, part)
    os.replace(partial_folder, folder)


def _write_pictures(folder: Path, part: range) -> None:
    source = load_source("image", GENERATED["cifar100"], "train")
    for index in part:
        one = source.read(index)
        place = folder / str(one.label)
        place.mkdir(parents=True, exist_ok=True)
        assert isinstance(one.example, ImageExample)
        Image.fromarray(one.example.pixels).save(place / f"{index}.png")


def _write_texts(file: Path, name: str, part: range) -> None:
    data = load(GENERATED[name], "train")
    examples = [data[index] for index in part]
    if name == "sst2":
        rows = (f"{' '.join(one.text.split())}\t{one.label}\n" for one in examples)
        file.with_suffix(".tsv").write_text(f"sentence\tlabel\n{''.join(rows)}", encoding="utf-8")
        return
    records = [_record(one, data.label_names) for one in examples]
    if name == "imdb":
        for place, record in enumerate(records):
            record["text"] = " ".join(data[place * REVIEW_PARTS + at].text for at in range(REVIEW_PARTS))
            record["rationale"] = []
    file.with_suffix(".jsonl").write_text(to_jsonl(records), encoding="utf-8")


def _record(one: LabeledExample, names: Sequence[str]) -> dict[str, Any]:
    label = one.label if isinstance(one.label, float) else names[int(one.label or 0)]
    record: dict[str, Any] = {"text": one.text, "label": label, "rationale": list(map(list, one.rationale))}
    if one.text_pair is not None:
        record |= {"text_pair": one.text_pair, "rationale_pair": list(map(list, one.rationale_pair))}
    return record


def write_base(folder: Path, base: str) -> None:
    """Write a stand-in for `base` with random weights and an embedded tokenizer, unless it exists in `folder`."""
    if (folder / "config.json").is_file():
        return
    torch.manual_seed(0)
    family, _ = SHAPES[base]
    partial_folder = folder.with_name(f"{folder.name}.{os.getpid()}.partial")
    if family == "vit":
        partial_folder.mkdir(parents=True, exist_ok=True)
        store_vit(random_module(base), partial_folder, PICTURE_SIZE, Normalization(HALF, HALF), half=False)
    else:
        own = catalog.locate_base(f"bases/{TOKENIZERS.get(family, family)}")
        tokenizer = transformers.AutoTokenizer.from_pretrained(own)
        with silence_libraries():
            random_module(base, {name: getattr(tokenizer, name) for name in SPECIAL_IDS}).save_pretrained(
                partial_folder
            )
            tokenizer.save_pretrained(partial_folder)
    os.replace(partial_folder, folder)


def random_module(base: str, ids: Mapping[str, object] | None = None) -> Any:
    """Create a classifier with random weights and the published configuration of `base`. `ids`: special token ids."""
    family, differences = SHAPES[base]
    config = transformers.AutoConfig.for_model(family, **differences, **(ids or {}))
    if family in CLASSIFIERS:
        return CLASSIFIERS[family](config)
    kind = (
        transformers.AutoModelForImageClassification
        if family == "vit"
        else transformers.AutoModelForSequenceClassification
    )
    return kind.from_config(config)
