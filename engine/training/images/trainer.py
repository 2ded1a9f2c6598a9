"""From a config to a folder with a vision transformer, its preprocessing and its card."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from functools import cached_property
from pathlib import Path
from typing import Any

import torch

from engine.data.images.datasets import ImageDataset, image_card, image_names
from engine.models import weight_files
from engine.progress import CancelToken, Report, silent
from engine.training import cards
from engine.training.checkpoint import CheckpointFolder
from engine.training.images import checkpoints
from engine.training.images.augment import patches_dropped
from engine.training.images.config import NEW, ImageTrainConfig
from engine.training.images.corpus import ImageCorpus, further, read_corpus, split_held_out
from engine.training.images.loop import ImageLoop
from engine.training.images.pictures import Normalisation, Pictures, measured, read_pixels
from engine.training.images.vit import new_vit
from engine.training.loop import Loop, Tensors
from engine.training.machine import device_named, machine_name
from engine.training.metrics import Score, evaluate
from engine.training.output import CHECKPOINT, output_folder
from engine.training.trainer import OUR_LICENCE, TrainResult


def train_images(config: ImageTrainConfig, report: Report = silent, cancel: CancelToken | None = None) -> TrainResult:
    """Trains, keeps the best epoch by a held-out part of train, stores it and measures what was stored."""
    run = _Run(config, report, cancel or CancelToken())
    with torch.random.fork_rng(devices=[run.device] if run.device.type == "cuda" else []):
        return run.result()


class _Run:
    def __init__(self, config: ImageTrainConfig, report: Report, cancel: CancelToken) -> None:
        self.config, self.report, self.cancel = config, report, cancel
        self.device = torch.device(device_named(config.device))
        self.corpus: ImageCorpus = read_corpus(config.dataset)
        self.further = further(config.measure, self.corpus)
        self.base = None if config.base == NEW else checkpoints.read_base(config.base)
        self.out = output_folder(Path(config.out), None if self.base is None else self.base.folder)
        self.train_places, self.held_places = split_held_out(self.corpus, config)

    def result(self) -> TrainResult:
        torch.manual_seed(self.config.seed)
        module = self._prepared().to(self.device)
        loop = ImageLoop(module, self._train, self._held_out, self.config, False, self._identity())
        folder = CheckpointFolder(self.out / CHECKPOINT)
        with self._dropping(module):
            best = loop.run(folder, self.report, self.cancel)
        self._store(module, best)
        self.report(loop.at.step, loop.total, "measuring the stored model")
        scores = self._measure()
        card = self._card(loop, scores, module)
        cards.write(self.out, card)
        folder.remove()
        return TrainResult(self.out, loop.records(), loop.at.best_epoch, loop.at.seconds, scores, card)

    @property
    def size(self) -> int:
        return self.config.size if self.base is None else self.base.size

    @cached_property
    def normalisation(self) -> Normalisation:
        return measured(self._train_pixels) if self.base is None else self.base.normalisation

    @cached_property
    def _train_pixels(self) -> torch.Tensor:
        return self._pixels(self.corpus.train, self.train_places)

    @cached_property
    def _train(self) -> Pictures:
        return Pictures(self._train_pixels, _labels(self.corpus.train, self.train_places), self.normalisation)

    @cached_property
    def _held_out(self) -> Pictures:
        return self._pictures(self.corpus.train, self.held_places)

    def _pixels(self, data: ImageDataset, places: Sequence[int]) -> torch.Tensor:
        return read_pixels(data, places, self.size, self.report, self.cancel)

    def _pictures(self, data: ImageDataset, places: Sequence[int]) -> Pictures:
        return Pictures(self._pixels(data, places), _labels(data, places), self.normalisation)

    def _identity(self) -> dict[str, Any]:
        identity: dict[str, Any] = self.config.decisive() | {"data set's content": self.corpus.train.revision}
        return identity if self.base is None else identity | {"base's weights": self.base.sha256}

    def _prepared(self) -> torch.nn.Module:
        labels = self.corpus.labels
        return new_vit(self.config, labels) if self.base is None else checkpoints.load(self.base.folder, labels)

    def _dropping(self, module: Any) -> contextlib.AbstractContextManager[None]:
        share = self.config.drop_patches
        return patches_dropped(module.vit.embeddings, share) if share else contextlib.nullcontext()

    def _store(self, module: Any, best: Tensors) -> None:
        weights = dict(module.named_parameters())
        with torch.no_grad():
            for name, tensor in best.items():
                weights[name].copy_(tensor)
        checkpoints.store(module, self.out, self.size, self.normalisation, self.config.half)

    def _measure(self) -> dict[str, Score]:
        stored = checkpoints.load(self.out, self.corpus.labels).to(self.device)
        scores = {"held-out": evaluate(stored, self._held_out, False)}
        for name, data in (self.corpus.others | self.further).items():
            scores[name] = evaluate(stored, self._pictures(data, range(len(data))), False)
        return scores

    def _card(self, loop: Loop, scores: Mapping[str, Score], module: Any) -> dict[str, Any]:
        return {
            "title": self.out.resolve().name,
            "kind": "Vision transformer",
            **cards.describe(self.config.base, self.config.dataset, _known_card(self.config.dataset)),
            **({} if self.base is None else {"base": _base_facts(self.config.base, self.base.sha256)}),
            "shape": _shape(module.config),
            "licence": OUR_LICENCE,
            "labels": list(self.corpus.labels),
            "regression": False,
            "command": self.config.command(),
            "settings": self.config.as_plain() | {"out": self.out.name},
            "seconds": round(loop.at.seconds, 1),
            "machine": machine_name(self.device),
            "sizes": {"train": len(self.train_places), "held_out": len(self.held_places), "dropped": 0},
            "metric": "accuracy",
            "history": [asdict(record) for record in loop.records()],
            "best_epoch": loop.at.best_epoch,
            "scores": {name: score.as_plain() for name, score in scores.items()},
            "sha256": weight_files.weights_sha256(self.out),
            "bytes": sum(file.stat().st_size for file in self.out.glob("*.safetensors")),
            "precision": "float16" if self.config.half else "float32",
        }


def _labels(data: ImageDataset, places: Sequence[int]) -> list[float]:
    return [float(data.labels[place] or 0) for place in places]


def _known_card(dataset: str) -> dict[str, str]:
    name = dataset.partition(":")[0]
    if name in image_names():
        card = image_card(name)
        return {"name": card.title, "source": card.source, "licence": card.licence}
    shown = Path(dataset).name
    return {"name": shown, "source": shown, "licence": "as its source states; not known to Exegesis"}


def _base_facts(name: str, sha256: str) -> dict[str, str]:
    return {"name": name, "source": name, "licence": "see the base's own card", "sha256": sha256}


def _shape(config: Any) -> str:
    grid = config.image_size // config.patch_size
    return (
        f"{config.num_hidden_layers} blocks x {config.hidden_size}, {config.num_attention_heads} heads; "
        f"pictures of {config.image_size} x {config.image_size} pixels in {grid} x {grid} patches"
    )
