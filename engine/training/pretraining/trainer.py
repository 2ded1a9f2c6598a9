"""From a config to a folder with a pre-trained model, its own tokenizer and its card."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch

from engine.data.datasets import load
from engine.data.named import names_in
from engine.models import weight_files
from engine.progress import CancelToken, Report, silent
from engine.training import cards
from engine.training.checkpoint import CheckpointFolder
from engine.training.machine import device_named, machine_name
from engine.training.metrics import Score
from engine.training.output import CHECKPOINT, output_folder
from engine.training.pretraining import modules
from engine.training.pretraining.config import PretrainConfig
from engine.training.pretraining.lines import Lines, read_lines
from engine.training.pretraining.loop import PretrainLoop
from engine.training.pretraining.objectives import OBJECTIVES
from engine.training.pretraining.own_tokenizers import own_tokenizer
from engine.training.pretraining.shapes import SHAPES
from engine.training.pretraining.texts import cards_of, plain_texts, read_texts
from engine.training.trainer import OUR_LICENCE, TrainResult

LOSS = "loss (nats a token)"


def pretrain(config: PretrainConfig, report: Report = silent, cancel: CancelToken | None = None) -> TrainResult:
    """Trains from new weights, keeps the best epoch by held-out loss, stores it and measures what was stored."""
    run = _Run(config, report, cancel or CancelToken())
    with torch.random.fork_rng(devices=[run.device] if run.device.type == "cuda" else []):
        return run.result()


class _Run:
    def __init__(self, config: PretrainConfig, report: Report, cancel: CancelToken) -> None:
        self.config, self.report, self.cancel = config, report, cancel
        self.device = torch.device(device_named(config.device))
        self.shape = SHAPES[config.base]
        self.out = output_folder(Path(config.out))
        self.texts = read_texts(config)
        self.further = {name: plain_texts(load(name)) for name in names_in(config.measure)}
        self.tokenizer = own_tokenizer(self.shape.family, self.texts.train, config.vocabulary, config.max_length)

    def result(self) -> TrainResult:
        torch.manual_seed(self.config.seed)
        module = modules.new_module(self.shape, self.tokenizer, self.config.max_length).to(self.device)
        loop = self._loop(module)
        folder = CheckpointFolder(self.out / CHECKPOINT)
        best = loop.run(folder, self.report, self.cancel)
        with torch.no_grad():
            for name, tensor in best.items():
                loop.weights[name].copy_(tensor)
        modules.store(module, self.shape.family, self.tokenizer, self.out)
        self.report(loop.at.step, loop.total, "measuring the stored model")
        scores = self._measure(loop)
        card = self._card(loop, scores)
        cards.write(self.out, card)
        folder.remove()
        return TrainResult(self.out, loop.records(), loop.at.best_epoch, loop.at.seconds, scores, card)

    def _loop(self, module: torch.nn.Module) -> PretrainLoop:
        train, held = self._lines(self.texts.train), self._lines(self.texts.held_out)
        loop = PretrainLoop(module, train, held, self.config, False, self._identity())
        loop.objective, loop.tokenizer = OBJECTIVES[self.shape.family], self.tokenizer
        return loop

    def _lines(self, texts: Sequence[str]) -> Lines:
        end = self.tokenizer.eos_token if self.shape.family == "gpt2" else None
        return read_lines(texts, self.tokenizer, self.config.max_length, end)

    def _identity(self) -> dict[str, Any]:
        return self.config.decisive() | {"data sets' content": list(self.texts.revisions)}

    def _measure(self, loop: PretrainLoop) -> dict[str, Score]:
        modules.read_back(loop.module, self.out)
        sets = {"held-out": self.texts.held_out, **self.further}
        return {name: Score(LOSS, loop.nats(self._lines(texts)), len(texts)) for name, texts in sets.items()}

    def _card(self, loop: PretrainLoop, scores: Mapping[str, Score]) -> dict[str, Any]:
        stored = list(self.out.glob("*.safetensors"))
        return {
            "title": self.out.resolve().name,
            "kind": f"Pre-training by {OBJECTIVES[self.shape.family].told}",
            **cards.describe(cards.NEW, cards.TEXT, cards_of(self.config.dataset)),
            "shape": f"{self.shape.told()}; {len(self.tokenizer):,} pieces, {self.config.max_length} tokens",
            "licence": OUR_LICENCE,
            "labels": [],
            "regression": False,
            "command": self.config.command(),
            "settings": self.config.as_plain() | {"out": self.out.name},
            "seconds": round(loop.at.seconds, 1),
            "machine": machine_name(self.device),
            "sizes": {"train": len(loop.data), "held_out": len(loop.held_out), "dropped": self.texts.dropped},
            "metric": LOSS,
            "history": [asdict(record) | {"held_out": -record.held_out} for record in loop.records()],
            "best_epoch": loop.at.best_epoch,
            "scores": {name: score.as_plain() for name, score in scores.items()},
            "sha256": weight_files.weights_sha256(self.out),
            "bytes": sum(file.stat().st_size for file in stored),
            "precision": "float16",
        }
