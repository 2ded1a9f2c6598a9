"""The shapes of the known-truth families: four architectures of about equal size, T5 in four sizes."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Shape:
    """A model from new weights. `width`: of its hidden states; `inner`: of its feed-forward layers."""

    family: str
    blocks: int
    width: int
    heads: int
    inner: int

    def told(self) -> str:
        """The shape in words, as cards state it."""
        return f"{self.blocks} blocks x {self.width}, {self.heads} heads, feed-forward {self.inner}"


SHAPES: dict[str, Shape] = {
    "bert": Shape("bert", 6, 80, 4, 320),
    "roberta": Shape("roberta", 6, 80, 4, 320),
    "gpt2": Shape("gpt2", 6, 80, 4, 320),
    "t5": Shape("t5", 6, 80, 4, 320),
    "t5-mini": Shape("t5", 2, 40, 4, 160),
    "t5-small": Shape("t5", 4, 56, 4, 224),
    "t5-deep": Shape("t5", 12, 96, 4, 288),
}
"""By name, which is the `--base` of a pre-training."""
