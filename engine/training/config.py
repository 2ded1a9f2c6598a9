"""Options of all kinds of training: fine-tuning on texts, training on images, and pre-training."""

from __future__ import annotations

import dataclasses
import shlex
from dataclasses import dataclass
from typing import ClassVar

from engine.params import Plain, option

NEW_VIT = "vit"
"""The base of a vision transformer with new weights."""


@dataclass(frozen=True)
class LoopConfig:
    """Options of the training loop, with defaults for texts."""

    program: ClassVar[str] = "train"

    base: str = option("minilm", "minilm, bases/NAME, a language model, a hub ID or a local folder")
    dataset: str = option("sst2", "ID of a data set, or a CSV or JSONL file")
    out: str = option("trained", "folder for weights, card and checkpoint")
    epochs: int = option(10, "passes over the training set", low=1)
    batch_size: int = option(16, "examples per step", low=1)
    learning_rate: float = option(5e-5, "highest learning rate", low=0)
    warmup: float = option(0.06, "share of the steps with rising learning rate", low=0, high=1)
    patience: int = option(5, "epochs without improvement before training stops", low=1)
    weight_decay: float = option(0.01, "AdamW's decay of weight matrices", low=0)
    clip: float = option(1.0, "largest norm of the gradient", low=0)
    label_smoothing: float = option(0.0, "probability spread over all classes", low=0, high=0.5)
    average: float = option(0.0, "decay of the running average of weights; 0: none", low=0, high=0.99999)
    train_size: int = option(0, "training examples of the data set, sampled with the seed; 0: all", low=0)
    held_out: int = option(800, "training examples held out to choose the epoch (at most a fifth)", low=1)
    measure: str = option("", "further data sets to measure at the end, separated by commas")
    precision: str = option("float32", "arithmetic of the training steps", choices=("float32", "bfloat16"))
    device: str = option("auto", "auto, cpu, cuda or mps", choices=("auto", "cpu", "cuda", "mps"))
    checkpoint_steps: int = option(500, "steps between checkpoints (always one per epoch)", low=1)
    seed: int = option(0, "seed of new weights, order and dropout", low=0)

    @property
    def stored_half(self) -> bool:
        """Whether the weights are stored in float16."""
        return False

    def identity(self) -> dict[str, Plain]:
        """Return the settings that affect the weights."""
        free = ("out", "checkpoint_steps", "device", "measure")
        return {name: value for name, value in dataclasses.asdict(self).items() if name not in free}

    def command(self) -> str:
        """Return the command that repeats this run: base, data set, folder and non-default options."""
        named = ("base", "dataset", "out")
        changed = [f.name for f in dataclasses.fields(self) if getattr(self, f.name) != f.default]
        parts = [f"exegesis {self.program}"]
        for name in dict.fromkeys([*named, *changed]):
            value = getattr(self, name)
            word = str(value).lower() if isinstance(value, bool) else shlex.quote(f"{value}")
            parts.append(f"--{name.replace('_', '-')} {word}")
        return " ".join(parts)


@dataclass(frozen=True)
class TrainConfig(LoopConfig):
    """Options of a fine-tuning. Defaults: thesis, section 3.1 (10 epochs, batch 16, 5e-5, 6% warm-up, patience 5)."""

    add: str = option(
        "", "more training sets, each whole: sentences*4,reviews-written repeats the first 4 times an epoch"
    )
    columns: str = option("", "columns of a file, such as text=review,label=stars")
    method: str = option(
        "full",
        "train all weights, a LoRA adapter, or all weights and extract an adapter",
        choices=("full", "lora", "extracted"),
    )
    max_length: int = option(256, "tokens per example; longer ones are truncated", low=4)
    half: bool = option(False, "store all weights in float16 (an adapter's always are)")
    drop_contained: bool = option(True, "drop training texts that are part of a held-out text")
    rank: int = option(16, "adapters: rank of the updates", low=1)
    alpha: int = option(32, "LoRA: scale of the updates, divided by the rank", low=1)
    dropout: float = option(0.05, "LoRA: dropout before the updates", low=0, high=0.9)
    head: str = option(
        "full", "LoRA: train the whole head, or only its last layer, and the others by LoRA", choices=("full", "lora")
    )

    @property
    def stored_half(self) -> bool:
        return self.half or self.method == "lora"


@dataclass(frozen=True)
class ImageTrainConfig(LoopConfig):
    """Options of a training on images. Defaults: small models with new weights on tens of thousands of images."""

    base: str = option(NEW_VIT, "vit for new weights of the shape below, or a folder or hub ID of a ViT checkpoint")
    dataset: str = option("scenes", "ID of an image data set, or a zip, folder or .npz file of images")
    epochs: int = option(30, "passes over the training set", low=1)
    batch_size: int = option(128, "examples per step", low=1)
    learning_rate: float = option(1e-3, "highest learning rate", low=0)
    warmup: float = option(0.05, "share of the steps with rising learning rate", low=0, high=1)
    patience: int = option(1000, "epochs without improvement before training stops", low=1)
    weight_decay: float = option(0.05, "AdamW's decay of weight matrices", low=0)
    label_smoothing: float = option(0.1, "probability spread over all classes", low=0, high=0.5)
    average: float = option(0.998, "decay of the running average of weights; 0: none", low=0, high=0.99999)
    held_out: int = option(2000, "training examples held out to choose the epoch (at most a fifth)", low=1)
    size: int = option(32, "width and height of images in pixels", low=4, high=1024)
    patch: int = option(4, "width and height of a patch in pixels; divides size", low=1, high=512)
    layers: int = option(6, "blocks of a new model", low=1, high=48)
    width: int = option(128, "hidden size of a new model; a multiple of 4 and of the heads", low=4, high=4096)
    heads: int = option(4, "attention heads per block of a new model", low=1, high=64)
    mimetic: bool = option(True, "initialize new attention like trained attention (Trockman and Kolter, 2023)")
    flip: bool = option(True, "mirror half of the training images")
    shift: int = option(4, "shift training images by up to this many pixels", low=0)
    turn: float = option(0.0, "rotate training images by up to this many degrees", low=0, high=180)
    jitter: float = option(0.2, "change brightness, contrast and saturation by up to this share", low=0, high=0.9)
    drop_patches: float = option(0.0, "drop this share of patches of each training image", low=0, high=0.9)
    half: bool = option(True, "store the weights in float16")

    @property
    def stored_half(self) -> bool:
        return self.half


@dataclass(frozen=True)
class ModelShape:
    """Shape of a new text model. `width`: size of hidden states; `inner`: size of feed-forward layers.

    `key_value_heads`: heads of keys and values, each shared by several query heads; 0: as many as `heads`.
    """

    family: str
    blocks: int
    width: int
    heads: int
    inner: int
    key_value_heads: int = 0

    def __str__(self) -> str:
        shared = f" ({self.key_value_heads} of keys and values)" if self.key_value_heads else ""
        return f"{self.blocks} blocks x {self.width}, {self.heads} heads{shared}, feed-forward {self.inner}"


SHAPES: dict[str, ModelShape] = {
    "bert": ModelShape("bert", 6, 80, 4, 320),
    "roberta": ModelShape("roberta", 6, 80, 4, 320),
    "gpt2": ModelShape("gpt2", 6, 80, 4, 320),
    "t5": ModelShape("t5", 6, 80, 4, 320),
    "t5-mini": ModelShape("t5", 2, 40, 4, 160),
    "t5-small": ModelShape("t5", 4, 56, 4, 224),
    "t5-deep": ModelShape("t5", 12, 96, 4, 288),
    "llama": ModelShape("llama", 3, 128, 4, 352, key_value_heads=2),
}
"""Shapes by name, as in `--base` of a pre-training: four architectures of about equal size, T5 in four sizes, and Llama
as a causal language model.
"""


@dataclass(frozen=True)
class PretrainConfig(LoopConfig):
    """Options of a pre-training with the family's objective. Defaults: models below 2 million weights."""

    program: ClassVar[str] = "pretrain"

    base: str = option("bert", "shape of the new model", choices=tuple(SHAPES))
    dataset: str = option("reviews-generated+sst2", "data sets with the training texts, joined by +")
    out: str = option("pretrained", "folder for weights, tokenizer, card and checkpoint")
    batch_size: int = option(64, "texts per step", low=1)
    learning_rate: float = option(2e-3, "highest learning rate", low=0)
    patience: int = option(1000, "epochs without improvement before training stops", low=1)
    held_out: int = option(2000, "texts held out to choose the epoch (at most a fifth)", low=1)
    measure: str = option("", "further data sets to measure the loss on at the end, separated by commas")
    vocabulary: int = option(2000, "size of the tokenizer's vocabulary", low=300, high=60_000)
    max_length: int = option(
        128, "tokens per text and positions of the model; longer texts are truncated", low=8, high=2048
    )
    answer_weight: float = option(
        1.0, "weight of the answers of prompts in the loss of next-token prediction", low=0, high=1000
    )

    @property
    def stored_half(self) -> bool:
        return True
