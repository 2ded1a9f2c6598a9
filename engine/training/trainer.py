"""Fine-tuning from a config to a folder with weights, tokenizer and card."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch

from engine.data.examples import LabelledExample
from engine.errors import ExegesisError
from engine.models import catalog, loading, weight_files
from engine.models.adapters import adapter_for
from engine.progress import CancelToken, Report, silent
from engine.training import cards, lora
from engine.training.batches import Encoded, encode
from engine.training.checkpoint import CheckpointFolder
from engine.training.config import TrainConfig
from engine.training.corpus import Corpus, further, known_card, read_corpus
from engine.training.loop import EpochRecord, Loop, Tensors
from engine.training.machine import device_named, machine_name
from engine.training.metrics import Score, evaluate
from engine.training.output import CHECKPOINT, output_folder
from engine.training.splits import drawn, held_out_split

OUR_LICENCE = "Apache-2.0"


@dataclass(frozen=True)
class TrainResult:
    """What a fine-tuning gave: where it is, how each epoch did, and the stored model's scores."""

    out: Path
    history: tuple[EpochRecord, ...]
    best_epoch: int
    seconds: float
    scores: Mapping[str, Score]
    card: Mapping[str, Any]


def train(config: TrainConfig, report: Report = silent, cancel: CancelToken | None = None) -> TrainResult:
    """Fine-tunes, keeps the best epoch by a held-out part of train, stores it and measures what was stored."""
    run = _Run(config, report, cancel or CancelToken())
    with torch.random.fork_rng(devices=[run.device] if run.device.type == "cuda" else []):
        return run.result()


class _Run:
    def __init__(self, config: TrainConfig, report: Report, cancel: CancelToken) -> None:
        self.config, self.report, self.cancel = config, report, cancel
        self.path = catalog.locate_base(config.base)
        self.out = output_folder(Path(config.out), self.path)
        self.corpus = read_corpus(config.dataset, config.columns)
        self.further = further(config.measure, self.corpus)
        self.train_rows, self.held_rows, self.dropped = _parts(self.corpus, config)
        self.family = catalog.read_base_config(self.path).get("model_type", "")
        self.tokenizer = loading.load_tokenizer(self.path)
        self.max_length = min(config.max_length, loading.longest_input(self.path, self.tokenizer))
        self.device = torch.device(device_named(config.device))

    def result(self) -> TrainResult:
        torch.manual_seed(self.config.seed)
        module = self._prepared().to(self.device)
        train, held = self._encoded(self.train_rows), self._encoded(self.held_rows)
        loop = Loop(module, train, held, self.config, self._regression, self._identity())
        folder = CheckpointFolder(self.out / CHECKPOINT)
        best = loop.run(folder, self.report, self.cancel)
        self._store(module, best)
        self.report(loop.at.step, loop.total, "measuring the stored model")
        scores = self._measure()
        card = self._card(loop, scores)
        cards.write(self.out, card)
        folder.remove()
        return TrainResult(self.out, loop.records(), loop.at.best_epoch, loop.at.seconds, scores, card)

    @property
    def _regression(self) -> bool:
        return self.corpus.regression

    def _identity(self) -> dict[str, Any]:
        inputs = {"base's weights": weight_files.weights_sha256(self.path), "data set's content": self.corpus.revision}
        return self.config.decisive() | inputs

    def _base(self) -> torch.nn.Module:
        return loading.load_base(self.path, self.corpus.labels, self._regression)

    def _prepared(self) -> torch.nn.Module:
        module = self._base()
        return lora.wrap(module, self.family, self.config) if self.config.method == "lora" else module

    def _encoded(self, rows: Sequence[LabelledExample]) -> Encoded:
        return encode(rows, self.tokenizer, self.max_length, adapter_for(self.family, self.config.base))

    def _store(self, module: Any, best: Tensors) -> None:
        weights = dict(module.named_parameters())
        with torch.no_grad():
            for name, tensor in best.items():
                weights[name].copy_(tensor)
        if self.config.method == "lora":
            lora.save(module, self.out, _lasting_name(self.config.base))
        else:
            with loading.silence_libraries():
                (module.half() if self.config.half else module).save_pretrained(str(self.out))
                self.tokenizer.save_pretrained(str(self.out))

    def _measure(self) -> dict[str, Score]:
        stored = self._stored().to(self.device)
        splits = {"held-out": self.held_rows, **self.corpus.others, **self.further}
        return {name: evaluate(stored, self._encoded(rows), self._regression) for name, rows in splits.items()}

    def _stored(self) -> torch.nn.Module:
        if self.config.method == "lora":
            return loading.merge_adapter(self._base(), self.out)
        return loading.load_base(self.out, self.corpus.labels, self._regression)

    def _card(self, loop: Loop, scores: Mapping[str, Score]) -> dict[str, Any]:
        facts = cards.describe(self.config.base, self.config.dataset, known_card(self.config.dataset))
        facts["base"] = facts["base"] | {"sha256": weight_files.weights_sha256(self.path)}
        return {
            "title": self.out.resolve().name,
            "kind": "LoRA adapter" if self.config.method == "lora" else "Full fine-tuning",
            **facts,
            "licence": OUR_LICENCE,
            "labels": list(self.corpus.labels),
            "regression": self._regression,
            "command": self.config.command(),
            "settings": self.config.as_plain() | {"out": self.out.name},
            "seconds": round(loop.at.seconds, 1),
            "machine": machine_name(self.device),
            "sizes": {
                "train": len(self.train_rows),
                "held_out": len(self.held_rows),
                "dropped": self.dropped,
            },
            "metric": "pearson" if self._regression else "accuracy",
            "history": [asdict(record) for record in loop.records()],
            "best_epoch": loop.at.best_epoch,
            "scores": {name: score.as_plain() for name, score in scores.items()},
            "sha256": weight_files.weights_sha256(self.out),
            "bytes": sum(file.stat().st_size for file in self.out.glob("*.safetensors")),
        }


def _parts(corpus: Corpus, config: TrainConfig) -> tuple[list[LabelledExample], list[LabelledExample], int]:
    rows = corpus.train
    if not corpus.regression and len(corpus.labels) < 2:
        raise ExegesisError(f"dataset: all examples of {corpus.name} have one label; at least two are needed.")
    if len(rows) < 10:
        raise ExegesisError(f"dataset: {corpus.name} has {len(rows)} training examples; at least 10 are needed.")
    kept, held = held_out_split(rows, config.held_out, config.seed, config.drop_contained)
    dropped = len(rows) - len(kept) - len(held)
    if not kept:
        raise ExegesisError(f"dataset: in {corpus.name} every text is part of a held-out one. Use --no-drop-contained.")
    return drawn(kept, config.train_size, config.seed), held, dropped


def _lasting_name(base: str) -> str:
    """The base as an adapter names it: embedded ones by name, folders in full, so that it loads from anywhere."""
    if base in ("minilm", *catalog.embedded_bases()) or not Path(base).expanduser().is_dir():
        return base
    return str(Path(base).expanduser().resolve())
