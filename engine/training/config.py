"""What a training is told: what every loop needs, and for texts the thesis's recipe as the default."""

from __future__ import annotations

import dataclasses
import shlex
from dataclasses import dataclass
from typing import ClassVar

from engine.params import Plain, option


@dataclass(frozen=True)
class LoopConfig:
    """What the loop of every training needs to know. The defaults are those for texts."""

    program: ClassVar[str] = "train"

    base: str = option("minilm", "minilm, bases/NAME, a hub id or a local folder")
    dataset: str = option("sst2", "id of a data set, or a CSV or JSONL file")
    out: str = option("trained", "folder for weights, card and checkpoint")
    epochs: int = option(10, "passes over the training set", low=1)
    batch_size: int = option(16, "examples a step", low=1)
    learning_rate: float = option(5e-5, "highest learning rate", low=0)
    warmup: float = option(0.06, "share of the steps with rising learning rate", low=0, high=1)
    patience: int = option(5, "epochs without gain before it stops", low=1)
    weight_decay: float = option(0.01, "AdamW's decay of weight matrices", low=0)
    clip: float = option(1.0, "largest norm of the gradient", low=0)
    label_smoothing: float = option(0.0, "probability spread over all classes", low=0, high=0.5)
    average: float = option(0.0, "decay of the running average of weights; 0: none", low=0, high=0.99999)
    train_size: int = option(0, "train on so many examples, drawn by the seed; 0: all", low=0)
    held_out: int = option(800, "train examples kept for the choice of epoch (at most a fifth)", low=1)
    measure: str = option("", "further data sets to measure at the end, separated by commas")
    precision: str = option("float32", "arithmetic of the training steps", choices=("float32", "bfloat16"))
    device: str = option("auto", "auto, cpu, cuda or mps", choices=("auto", "cpu", "cuda", "mps"))
    checkpoint_steps: int = option(500, "steps between checkpoints (always one an epoch)", low=1)
    seed: int = option(0, "seed of new weights, order and dropout", low=0)

    @property
    def stored_half(self) -> bool:
        """Whether the weights are stored in float16."""
        return False

    def as_plain(self) -> dict[str, Plain]:
        return dataclasses.asdict(self)

    def decisive(self) -> dict[str, Plain]:
        """The settings that the weights depend on."""
        free = ("out", "checkpoint_steps", "device", "measure")
        return {name: value for name, value in self.as_plain().items() if name not in free}

    def command(self) -> str:
        """The command that repeats this run: base, data set, folder and whatever is not a default."""
        named = ("base", "dataset", "out")
        changed = {f.name for f in dataclasses.fields(self) if getattr(self, f.name) != f.default}
        names = [*named, *(f.name for f in dataclasses.fields(self) if f.name in changed - set(named))]
        parts = [f"--{name.replace('_', '-')} {_word(getattr(self, name))}" for name in names]
        return f"exegesis {self.program} {' '.join(parts)}"


@dataclass(frozen=True)
class TrainConfig(LoopConfig):
    """One fine-tuning. Defaults: section 3.1 of the thesis (10 epochs, batch 16, 5e-5, 6 % warm-up, patience 5)."""

    columns: str = option("", "columns of a file, such as text=review,label=stars")
    method: str = option("full", "train all weights, or a LoRA adapter", choices=("full", "lora"))
    max_length: int = option(256, "tokens an example; longer ones are cut", low=4)
    half: bool = option(False, "store all weights in float16 (an adapter's always are)")
    drop_contained: bool = option(True, "drop train texts that are part of a held-out text")
    rank: int = option(16, "LoRA: rank of the updates", low=1)
    alpha: int = option(32, "LoRA: scale of the updates, divided by the rank", low=1)
    dropout: float = option(0.05, "LoRA: dropout before the updates", low=0, high=0.9)

    @property
    def stored_half(self) -> bool:
        return self.half or self.method == "lora"


def _word(value: Plain) -> str:
    return str(value).lower() if isinstance(value, bool) else shlex.quote(f"{value}")
