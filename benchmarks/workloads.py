"""Models, inputs and bare passes that benchmarks share: a text, a picture on ViT-Base/16, our methods on them.

Bare: the plain transformers module on the same rows, batched, without anything of this project around it.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import transformers

from benchmarks.harness import TEXT
from engine import runtime
from engine.data.image_datasets import load_images
from engine.explain import predict_encoded
from engine.models.loading import load_image_model
from engine.models.text_classifier import TextClassifier
from engine.params import from_mapping
from engine.registry import explainer
from engine.request import Example, Picture
from engine.task import Task, TaskItem
from engine.vision.classifier import ImageClassifier

LONG_TEXT = " ".join([TEXT] * 10)
SIDE, CLASSES = 224, 1000
PREPROCESSING = {
    "do_resize": True, "size": {"height": SIDE, "width": SIDE}, "resample": 2,
    "image_mean": [0.5] * 3, "image_std": [0.5] * 3,
}  # fmt: skip


def text_task(model: TextClassifier, text: str = TEXT) -> Task:
    """An explanation of the predicted class of a text."""
    encoded = model.encode(Example(text))
    prediction = predict_encoded(model, [encoded])[0]
    return Task(model, [TaskItem(encoded, prediction, prediction.index, 0)])


def random_vit_base(folder: Path) -> ImageClassifier:
    """A vision transformer of a usual size, ViT-Base/16 at 224, with random weights.

    12 layers x 768, 12 heads, 196 patches: saved in the folder as anybody would, and loaded from there.
    """
    torch.manual_seed(0)
    shape: dict[str, Any] = {"image_size": SIDE, "patch_size": 16, "num_labels": CLASSES}
    transformers.ViTForImageClassification(transformers.ViTConfig(**shape)).save_pretrained(str(folder))
    (folder / "preprocessor_config.json").write_text(json.dumps(PREPROCESSING))
    return load_image_model(str(folder), "float32", runtime.device())


def picture_task(model: ImageClassifier) -> Task:
    """An explanation of the predicted class of a photograph that scikit-image carries."""
    encoded = model.encode(Picture(load_images("photos")[0].pixels))
    prediction = predict_encoded(model, [encoded])[0]
    return Task(model, [TaskItem(encoded, prediction, prediction.index, 0)])


def run_method(task: Task, method: str, **params: Any) -> Callable[[], Any]:
    """Our method on the task, without the cache."""
    spec = explainer(method, task.model.kind)
    values = from_mapping(spec.params, params, method)
    return lambda: spec.function(task, values)


def bare_text_forward(task: Task, rows: int, chunk: int) -> Callable[[], None]:
    """Plain batched passes on ids."""
    ids, mask = _text_rows(task, rows)

    def run() -> None:
        with torch.inference_mode():
            for start in range(0, rows, chunk):
                task.model.module(input_ids=ids[start : start + chunk], attention_mask=mask[start : start + chunk])
            wait_for_device(task)

    return run


def bare_text_gradient(task: Task, rows: int, chunk: int) -> Callable[[], None]:
    """Plain batched passes forward and back to the embeddings."""
    _, mask = _text_rows(task, rows)
    embeds = task.model.embed(task.batch([0] * rows)).detach()

    def run() -> None:
        for start in range(0, rows, chunk):
            point = embeds[start : start + chunk].clone().requires_grad_()
            logits = task.model.module(inputs_embeds=point, attention_mask=mask[start : start + chunk]).logits
            torch.autograd.grad(logits[:, task.targets[0]].sum(), point)
        wait_for_device(task)

    return run


def _text_rows(task: Task, rows: int) -> tuple[torch.Tensor, torch.Tensor]:
    ids = torch.from_numpy(task.examples[0].ids).to(task.model.device).repeat(rows, 1)
    return ids, torch.ones_like(ids)


def bare_picture_forward(task: Task, rows: int) -> Callable[[], None]:
    """Plain batched passes on pictures."""
    pictures, chunk = _picture_rows(task, rows), runtime.rows_at_once(task.model, len(task.examples[0]))

    def run() -> None:
        with torch.inference_mode():
            for part in pictures.split(chunk):
                task.model.module(pixel_values=part)
            wait_for_device(task)

    return run


def bare_picture_gradient(task: Task, rows: int) -> Callable[[], None]:
    """Plain batched passes forward and back to the pixels."""
    pictures = _picture_rows(task, rows)
    chunk = runtime.rows_at_once(task.model, len(task.examples[0]), gradients=True)

    def run() -> None:
        for part in pictures.split(chunk):
            point = part.clone().requires_grad_()
            logits = task.model.module(pixel_values=point).logits
            torch.autograd.grad(logits[:, task.targets[0]].sum(), point)
        wait_for_device(task)

    return run


def _picture_rows(task: Task, rows: int) -> torch.Tensor:
    return task.batch().pictures.repeat(rows, 1, 1, 1)


def wait_for_device(task: Task) -> None:
    """Wait until a GPU has done what it was given."""
    if task.model.device.type == "cuda":
        torch.cuda.synchronize()
