"""The gallery of examples, each with what it shows and the two methods whose maps show it best.

The reviews and texts are for a classifier, the prompts for a language model. Each prompt is the first one of its data
set that shows what the card says.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass

from engine.data.datasets import load
from engine.data.examples import Dataset
from engine.data.image_datasets import load_images
from engine.request import Example, Picture, Request

MODEL = "reviews-minilm"
DATASET = "reviews"
PROMPT_MODEL = "tiny-llama"
METHODS = ("gradient_x_input", "gradient_l2", "attention_mean", "attention_rollout", "occlusion",
           "integrated_gradients", "kernel_shap", "random")  # fmt: skip
"""Methods that are selected when the Text page opens."""
PICTURE_MODEL = "scenes-vit"
PICTURE_DATASET = "scenes"
PICTURE_METHODS = ("gradient_x_input", "grad_cam", "attention_rollout", "occlusion", "integrated_gradients", "random")
"""Methods that are selected when the Images page opens."""


@dataclass(frozen=True)
class GalleryCard:
    """An example of the gallery: an example of a data set by its index, or a text written for the gallery.

    `method`: method of the map on the card. `second`: method of the second map on the Text page. `see`: what the maps
    show; it must be true of both.
    """

    title: str
    method: str
    second: str
    see: str
    index: int | None = None
    text: str = ""
    model: str = MODEL
    dataset: str = DATASET

    @property
    def example(self) -> Example:
        return Example(self.text) if self.index is None else _dataset(self.dataset)[self.index].example

    @property
    def methods(self) -> tuple[str, ...]:
        """Methods that are selected when the card opens on the Text page, the card's own first."""
        return tuple(dict.fromkeys((self.method, self.second, *METHODS)))

    @property
    def label(self) -> str | None:
        """Label of the example (for a prompt, its correct next token); None for a text written for the gallery."""
        if self.index is None:
            return None
        data = _dataset(self.dataset)
        return data[self.index].answer or data.label_names[int(data[self.index].label or 0)]

    def request(self, method: str) -> Request:
        return Request(self.model, method, self.example)


GALLERY = (
    GalleryCard(
        "Not bad",
        "integrated_gradients",
        "occlusion",
        "The prediction is correct. Integrated gradients count “bad” slightly against it, but occlusion counts “bad” "
        "for it: without that word, the text says “not a film”.",
        text="This is not a bad film at all.",
    ),
    GalleryCard(
        "Cheap is praise here",
        "kernel_shap",
        "integrated_gradients",
        "The model is wrong and confident. The tokenizer splits “Spotless”, and Kernel SHAP and integrated gradients "
        "both score “less” and “cheap” highest, as if they were complaints.",
        index=54,
    ),
    GalleryCard(
        "Irony",
        "kernel_shap",
        "occlusion",
        "The model takes the praise literally: Kernel SHAP and occlusion both score “masterpiece” highest.",
        index=25,
    ),
    GalleryCard(
        "Praise, then the battery",
        "kernel_shap",
        "integrated_gradients",
        "“Superb” counts most. “dies” and “before” count against praise, but too little: the model misses the "
        "complaint.",
        index=78,
    ),
    GalleryCard(
        "One word decides",
        "occlusion",
        "integrated_gradients",
        "Occlusion removes one word at a time, and only “drains” matters. Integrated gradients score “Never” as high.",
        index=241,
    ),
    GalleryCard(
        "What follows “but”",
        "kernel_shap",
        "integrated_gradients",
        "“superb” outweighs “predictable”, so the prediction is positive. Compare the next example.",
        text="The plot is predictable, but the acting is superb.",
    ),
    GalleryCard(
        "The same words, reversed",
        "kernel_shap",
        "occlusion",
        "Now “predictable” comes last. It outweighs “superb”, “but” adds to it, and the prediction is negative.",
        text="The acting is superb, but the plot is predictable.",
    ),
    GalleryCard(
        "Attention to a period",
        "attention_rollout",
        "occlusion",
        "Attention rollout gives the period more weight than any word; occlusion scores “most” and “inventive” "
        "highest. Attention shows where a model looks, not why it decides.",
        index=0,
    ),
    GalleryCard(
        "The subject, not the nearest noun",
        "occlusion",
        "kernel_shap",
        "Three nouns, one subject: occlusion and Kernel SHAP both score the plural “songs” highest, although the "
        "singular “doctor” and “picture” are nearer to the verb.",
        index=0,
        model=PROMPT_MODEL,
        dataset="agreement",
    ),
    GalleryCard(
        "To whom?",
        "occlusion",
        "integrated_gradients",
        "The model names the person who did not act. Occlusion and integrated gradients both score “Sarah” highest, "
        "then “to”, which asks for a person.",
        index=0,
        model=PROMPT_MODEL,
        dataset="indirect-object",
    ),
    GalleryCard(
        "The wrong animal",
        "integrated_gradients",
        "occlusion",
        "Helen owns a cow, but the model writes Adam’s goat. Integrated gradients and occlusion both score “goat” "
        "against the answer more than “cow” for it: it does not matter whose animal it is.",
        index=2,
        model=PROMPT_MODEL,
        dataset="facts",
    ),
)


@functools.cache
def _dataset(name: str) -> Dataset:
    return load(name)


def find_card(model: str, example: Example) -> GalleryCard | None:
    """Return the card of a model and a text, or None."""
    return next((card for card in GALLERY if card.model == model and card.example == example), None)


def picture_requests() -> list[Request]:
    """Return the requests of the explanations that the Images page opens with, all of the first picture."""
    picture = Picture(load_images(PICTURE_DATASET)[0].pixels)
    return [Request(PICTURE_MODEL, method, picture) for method in PICTURE_METHODS]


def gallery_requests() -> list[Request]:
    """Return the requests of all shipped explanations: each text by each method, and those of the first picture."""
    return [card.request(method) for card in GALLERY for method in METHODS] + picture_requests()
