"""The gallery of examples, each with what it shows and the method whose map shows it best."""

from __future__ import annotations

import functools
from dataclasses import dataclass

from engine.data.datasets import load
from engine.data.examples import Dataset
from engine.data.image_datasets import load_images
from engine.request import Example, Picture, Request

MODEL = "reviews-minilm"
DATASET = "reviews"
METHODS = ("gradient_x_input", "gradient_l2", "attention_mean", "attention_rollout", "occlusion",
           "integrated_gradients", "kernel_shap", "random")  # fmt: skip
"""The methods that the Text page opens with."""
PICTURE_MODEL = "scenes-vit"
PICTURE_DATASET = "scenes"
PICTURE_METHODS = ("gradient_x_input", "grad_cam", "attention_rollout", "occlusion", "integrated_gradients", "random")
"""The methods that the Images page opens with."""


@dataclass(frozen=True)
class GalleryCard:
    """A review by its index, or a text of our own. `see` must be true of the method's map."""

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
        """The label of the review; None for a text of our own."""
        if self.index is None:
            return None
        data = _reviews()
        return data.label_names[int(data[self.index].label or 0)]

    def request(self, method: str) -> Request:
        return Request(MODEL, method, self.example)


GALLERY = (
    GalleryCard(
        "Not bad",
        "integrated_gradients",
        "The prediction is right, but integrated gradients count “bad” against it. Occlusion counts the same word "
        "for it: covered, it leaves “not a film”.",
        text="This is not a bad film at all.",
    ),
    GalleryCard(
        "Cheap, and that is praise",
        "kernel_shap",
        "Wrong and sure of it. The tokenizer cuts “Spotless” in two; then “less” and “cheap” read as complaints.",
        index=54,
    ),
    GalleryCard(
        "Irony",
        "integrated_gradients",
        "The model takes “Congratulations” and “thrilled” at their word. The risotto that can be “sliced” speaks "
        "against praise, too softly.",
        index=97,
    ),
    GalleryCard(
        "Praise, then the battery",
        "kernel_shap",
        "“dies” speaks against as loudly as “Superb” speaks for, but “bright” and “lovely” stand beside “Superb”.",
        index=78,
    ),
    GalleryCard(
        "One word decides",
        "occlusion",
        "Words are covered one at a time, and only “drains” matters: neither “Never” nor “laughed” changes much.",
        index=241,
    ),
    GalleryCard(
        "What follows “but”",
        "kernel_shap",
        "“superb” outweighs “predictable”, and the verdict is praise. Compare the next one.",
        text="The plot is predictable, but the acting is superb.",
    ),
    GalleryCard(
        "The same words, turned round",
        "kernel_shap",
        "Now “predictable” comes last and outweighs “superb”, “but” helps it, and the verdict is a complaint.",
        text="The acting is superb, but the plot is predictable.",
    ),
    GalleryCard(
        "Weight on a full stop",
        "attention_rollout",
        "Attention rollout gives the full stop more than any word. Where a model looks is not why it decides.",
        index=0,
    ),
)


@functools.cache
def _reviews() -> Dataset:
    return load(DATASET)


def picture_requests() -> list[Request]:
    """The explanations that the Images page opens with: of the first picture."""
    picture = Picture(load_images(PICTURE_DATASET)[0].pixels)
    return [Request(PICTURE_MODEL, method, picture) for method in PICTURE_METHODS]


def gallery_requests() -> list[Request]:
    """Every shipped explanation: each text with each of the methods, and the first picture with its own."""
    return [card.request(method) for card in GALLERY for method in METHODS] + picture_requests()
