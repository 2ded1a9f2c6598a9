"""The examples of the gallery: what each shows, and the method whose map shows it best."""

from __future__ import annotations

import functools
from dataclasses import dataclass

from engine.data.datasets import Dataset, load
from engine.data.images.datasets import load_images
from engine.request import Example, Picture, Request

MODEL = "reviews-minilm"
DATA = "reviews"
METHODS = ("gradient_x_input", "gradient_l2", "attention_mean", "attention_rollout", "occlusion",
           "integrated_gradients", "kernel_shap", "random")  # fmt: skip
"""What the Text page shows that was asked for no methods."""
PICTURE_MODEL = "scenes-vit"
PICTURES = "scenes"
PICTURE_METHODS = ("gradient_x_input", "grad_cam", "attention_rollout", "occlusion", "integrated_gradients", "random")
"""What the Images page shows that was asked for no methods."""


@dataclass(frozen=True)
class Piece:
    """One card: a review by its index, or a text of our own. `see` must hold of the method's map."""

    title: str
    method: str
    see: str
    index: int | None = None
    text: str = ""

    @property
    def example(self) -> Example:
        return Example(self.text) if self.index is None else _reviews()[self.index].example

    @property
    def label(self) -> str | None:
        """What the reviewer meant; None for a text of our own."""
        if self.index is None:
            return None
        data = _reviews()
        return data.label_names[int(data[self.index].label or 0)]

    def request(self, method: str) -> Request:
        return Request(MODEL, method, self.example)


GALLERY = (
    Piece(
        "Not bad",
        "integrated_gradients",
        "The prediction is right, but integrated gradients count “bad” against it. Occlusion counts the same word "
        "for it: covered, it leaves “not a film”.",
        text="This is not a bad film at all.",
    ),
    Piece(
        "Cheap, and that is praise",
        "kernel_shap",
        "Wrong and sure of it. The tokenizer cuts “Spotless” in two; then “less” and “cheap” read as complaints.",
        index=54,
    ),
    Piece(
        "Irony",
        "integrated_gradients",
        "The model takes “Congratulations” and “thrilled” at their word. The risotto that can be “sliced” speaks "
        "against praise, too softly.",
        index=97,
    ),
    Piece(
        "Praise, then the battery",
        "kernel_shap",
        "“dies” speaks against as loudly as “Superb” speaks for, but “bright” and “lovely” stand beside “Superb”.",
        index=78,
    ),
    Piece(
        "One word decides",
        "occlusion",
        "Words are covered one at a time, and only “drains” matters: neither “Never” nor “laughed” changes much.",
        index=241,
    ),
    Piece(
        "What follows “but”",
        "kernel_shap",
        "“superb” outweighs “predictable”, and the verdict is praise. Compare the next one.",
        text="The plot is predictable, but the acting is superb.",
    ),
    Piece(
        "The same words, turned round",
        "kernel_shap",
        "Now “predictable” comes last and outweighs “superb”, “but” helps it, and the verdict is a complaint.",
        text="The acting is superb, but the plot is predictable.",
    ),
    Piece(
        "Weight on a full stop",
        "attention_rollout",
        "Attention rollout gives the full stop more than any word. Where a model looks is not why it decides.",
        index=0,
    ),
)


@functools.cache
def _reviews() -> Dataset:
    return load(DATA)


def picture_requests() -> list[Request]:
    """What the Images page shows that was asked for nothing."""
    picture = Picture(load_images(PICTURES)[0].pixels)
    return [Request(PICTURE_MODEL, method, picture) for method in PICTURE_METHODS]


def requests() -> list[Request]:
    """Everything that is shipped: each text with each of the methods, and the first picture with its own."""
    return [piece.request(method) for piece in GALLERY for method in METHODS] + picture_requests()
