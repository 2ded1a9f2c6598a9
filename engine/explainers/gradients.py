"""Methods that read the gradient of the target's logit f or probability m where the model reads the input.

For texts that is the word embeddings (positions kept); for pictures the pixels or the patch embeddings.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float

from engine.lazy import torch
from engine.models.classifier import EMBEDDING, AnyClassifier, as_float64
from engine.params import LOGIT, QuantityParams, option
from engine.registry import Axes, register
from engine.task import Attribution, Task, TaskItem

FeatureReduction = Callable[["torch.Tensor", "torch.Tensor"], "torch.Tensor"]
"""Points and gradients, both `[row seq width]`, to scores `[row seq]`."""

PLACES = ("pixels", EMBEDDING)
_PLACE_HELP = "Where the gradient is taken: at the pixels, and then over the patch, or at the patch embedding"
_AXES = Axes("none: an infinitely small change of the embedding", "logit of the class", "gradient, at the input")
_PATCH_AXES = Axes("none: an infinitely small change of the patch", "logit of the class", "gradient, at the input")
_SIMONYAN = "Simonyan, Vedaldi and Zisserman (2014), Deep inside convolutional networks"


@dataclass(frozen=True)
class GradientParams(QuantityParams):
    """Parameters of a gradient at the embeddings. What is no field is fixed."""

    place = EMBEDDING
    alternative = "Use gradient_l2 or gradient_x_input."
    """Advice where the sum over embedding dimensions says nothing."""


@dataclass(frozen=True)
class PatchGradientParams(GradientParams):
    """Parameters of a gradient at the pixels or the patch embeddings."""

    place: str = option(PLACES[0], _PLACE_HELP, choices=PLACES)
    alternative = "Take it at the pixels, or use gradient_l2 or gradient_x_input."


@register(
    "gradient",
    title="Gradient",
    family="gradients",
    params=GradientParams,
    axes=_AXES,
    differentiable=True,
    citation=_SIMONYAN,
    caution="The sum over embedding dimensions is not a magnitude: positive and negative parts cancel.",
    variants={
        "image": {
            "params": PatchGradientParams,
            "axes": _PATCH_AXES,
            "citation": f"{_SIMONYAN}, section 3",
            "caution": "It shows the effect of a brighter patch. Positive and negative parts cancel within a patch.",
        }
    },
)
def gradient(task: Task, params: GradientParams) -> list[Attribution]:
    """`sum_d df/dx_id`: signed, in logits per unit of every embedding dimension at once (Gradients of the thesis).

    At the pixels: the sum over the patch's pixels and colors, in logits per standard deviation of all of them at once.
    With `quantity` "probability", here and below, the derivative is that of m, and its unit is the probability.

    Where LayerNorm follows the embeddings the sum is zero by construction: LayerNorm takes away any constant that is
    added to all dimensions. Then the map is exactly zero, with words, instead of the rounding noise of the sum.
    """
    sums = input_gradients(task, lambda x, g: g.sum(-1), params.quantity, params.place)
    return replace_rounding_noise(task, sums, params)


def replace_rounding_noise(task: Task, sums: list[Attribution], params: GradientParams) -> list[Attribution]:
    """The sums over embedding dimensions; zero maps with a note where they are only rounding noise."""
    if params.place != EMBEDDING or not ignores_constant_shift(task.model, task.batch([0])):
        return sums
    note = (
        "The gradient summed over embedding dimensions is zero by construction here: LayerNorm ignores a shift common "
        f"to all dimensions. {params.alternative}"
    )
    return [Attribution(np.zeros_like(a.scores), a.evaluations, notes=(note,)) for a in sums]


def ignores_constant_shift(model: AnyClassifier, batch: Any) -> bool:
    """Whether adding 1 to every embedding dimension leaves the logits as they are (BERT and GPT-2, not T5).

    Measured against adding +1 and -1 in turn, so that it does not depend on the size of the logits.
    """
    if "ignores_constant_shift" not in model.memo:
        with torch.inference_mode():
            embeds = model.embed(batch)
            alternating = 1 - 2 * (torch.arange(embeds.shape[-1], device=embeds.device) % 2).to(embeds.dtype)
            change = (model.logits(batch, embeds + 1) - model.logits(batch, embeds)).abs().max()
            other = (model.logits(batch, embeds + alternating) - model.logits(batch, embeds)).abs().max()
        model.memo["ignores_constant_shift"] = bool(change < 10 * torch.finfo(model.dtype).eps ** 0.5 * other)
    return bool(model.memo["ignores_constant_shift"])


@register(
    "gradient_l2",
    title="Gradient L2 norm",
    family="gradients",
    params=GradientParams,
    axes=_AXES,
    differentiable=True,
    signed=False,
    citation=f"{_SIMONYAN}; as in Fernandes et al. (2022), SMaT",
    caution="It shows how sensitive the class is to a word, not whether the word speaks for or against it.",
    variants={
        "image": {
            "params": PatchGradientParams,
            "axes": _PATCH_AXES,
            "citation": f"{_SIMONYAN}, section 3; as in Fernandes et al. (2022), SMaT",
            "caution": "It shows how sensitive the class is to a patch, not whether it speaks for or against it.",
        }
    },
)
def gradient_l2(task: Task, params: GradientParams) -> list[Attribution]:
    """`||df/dx_i||_2` over the embedding or the patch's pixels and colors: unsigned, in logits per unit of length."""
    return input_gradients(task, lambda x, g: g.norm(dim=-1), params.quantity, params.place)


@register(
    "gradient_x_input",
    title="Gradient x input",
    family="gradients",
    params=GradientParams,
    axes=Axes("zero embedding, to first order", "logit of the class", "first-order change"),
    differentiable=True,
    citation="Shrikumar et al. (2016), Not just a black box; Denil et al. (2014)",
    caution="A first-order approximation: exact only where the model is linear between zero and the word.",
    variants={
        "image": {
            "params": PatchGradientParams,
            "axes": Axes("mean color or zero embedding, to first order", "logit of the class", "first-order change"),
            "caution": "A first-order approximation: exact only where the model is linear between the mean color and "
            "the patch.",
        }
    },
)
def gradient_x_input(task: Task, params: GradientParams) -> list[Attribution]:
    """`x_i . df/dx_i`: signed, in logits; x are embeddings or a patch's normalized pixels (0 is the mean color)."""
    return input_gradients(task, lambda x, g: (x * g).sum(-1), params.quantity, params.place)


@dataclass(frozen=True)
class SmoothGradParams(GradientParams):
    n_samples: int = option(32, "Noisy copies of the input", low=1, high=1000)
    noise: float = option(0.15, "Standard deviation, as a share of the range of the embedding values", low=0, high=2)
    reduction: str = option("l2", "Over embedding dimensions: length, or signed sum", choices=("l2", "sum"))


@dataclass(frozen=True)
class PatchSmoothGradParams(PatchGradientParams, SmoothGradParams):
    n_samples: int = option(32, "Noisy copies of the picture", low=1, high=1000)
    noise: float = option(0.15, "Standard deviation, as a share of the range of the values", low=0, high=2)
    reduction: str = option("l2", "Over the values of a patch: length, or signed sum", choices=("l2", "sum"))


@register(
    "smoothgrad",
    title="SmoothGrad",
    family="gradients",
    params=SmoothGradParams,
    axes=Axes("none: small random changes of the embedding", "logit of the class", "gradient, mean over noisy copies"),
    differentiable=True,
    signed=lambda params: params.reduction == "sum",
    citation="Smilkov et al. (2017), SmoothGrad, eq. 2",
    caution="Noise moves embeddings away from real words, and the map depends on the amount of noise.",
    variants={
        "image": {
            "params": PatchSmoothGradParams,
            "axes": Axes(
                "none: small random changes of the picture", "logit of the class", "gradient, mean over noisy copies"
            ),
            "caution": "Noisy pictures are unlike the training data, and the map depends on the amount of noise.",
        }
    },
)
def smoothgrad(task: Task, params: SmoothGradParams) -> list[Attribution]:
    """Mean gradient over Gaussian-noised inputs; special tokens get no noise. Unsigned (`l2`) or signed (`sum`).

    The default is `l2`, because the sum is zero by construction wherever `gradient` is.
    """
    mean = noisy_gradients(task, params)
    if params.reduction == "l2":
        return [Attribution(as_float64(m.norm(dim=-1)), params.n_samples) for m in mean]
    sums = [Attribution(as_float64(m.sum(-1)), params.n_samples) for m in mean]
    return replace_rounding_noise(task, sums, params)


def noisy_gradients(task: Task, params: SmoothGradParams) -> list[Float[torch.Tensor, "_ width"]]:
    """Mean gradient, an item each, over copies with Gaussian noise; `noise` is a share of the range of the values."""
    samples, place = params.n_samples, params.place
    ranges = [
        float(x.max() - x.min()) for x in (task.model.points(task.batch([i]), place) for i in range(len(task.items)))
    ]
    index = np.repeat(np.arange(len(task.items)), samples)

    def add_noise(rows: slice, batch: Any) -> torch.Tensor:
        points = task.model.points(batch, place)
        noise = np.zeros(points.shape)  # of all rows, so that a GPU is sent it at once
        for row, at in enumerate(range(rows.start, rows.stop)):
            draw = _draw_noise(task.items[index[at]], at % samples, points.shape[-1])
            noise[row, : len(draw)] = draw * (params.noise * ranges[index[at]])
        return points + torch.from_numpy(noise).to(device=points.device, dtype=points.dtype)

    return mean_gradients(task, index, add_noise, np.full(len(index), 1 / samples), params.quantity, place)


def _draw_noise(item: TaskItem, sample: int, width: int) -> Float[np.ndarray, "seq d_model"]:
    """One draw, made when it is needed: all of them together would fill the memory."""
    draw = item.generator(sample).standard_normal((len(item.encoded), width))
    draw[item.encoded.special] = 0
    return draw


def mean_gradients(
    task: Task,
    index: np.ndarray,
    points: Callable[[slice, Any], Float[torch.Tensor, "row seq width"]],
    weights: Float[np.ndarray, "row"],
    quantity: str = LOGIT,
    place: str = EMBEDDING,
) -> list[Float[torch.Tensor, "_ width"]]:
    """Weighted sums, an item each, of the gradients of its rows; summed in double precision on the device.

    `index` rises: the rows of an item are neighbors.
    """
    width = task.model.points(task.batch([0]), place).shape[-1]
    wide = torch.float64 if task.model.device.type != "mps" else torch.float32
    total = [torch.zeros(len(e), width, dtype=wide, device=task.model.device) for e in task.examples]
    weight = torch.as_tensor(weights, dtype=wide, device=task.model.device)

    def add(rows: slice, gradient: torch.Tensor) -> None:
        owners = index[rows]
        parts = []
        for item in np.unique(owners):
            own = slice(*np.searchsorted(owners, [item, item + 1]).tolist())
            part = gradient[own, : len(total[item])].to(wide)
            parts.append((item, torch.tensordot(weight[rows][own], part, dims=1)))
        # All or nothing: had memory run out after some were added, the retry would add them twice.
        for item, part in parts:
            total[item].add_(part)

    task.gradients(index, points, add, quantity, place)
    return total


def input_gradients(
    task: Task, reduce: FeatureReduction, quantity: str = LOGIT, place: str = EMBEDDING
) -> list[Attribution]:
    """One pass forward and back at the input itself, all examples together."""
    index = np.arange(len(task.items))
    scores: list[np.ndarray] = []

    def append(rows: slice, gradient: torch.Tensor) -> None:
        batch = task.batch(index[rows])
        values = as_float64(reduce(task.model.points(batch, place).double(), gradient.double()))
        scores.extend(values[row, :length] for row, length in enumerate(batch.lengths.tolist()))

    task.gradients(index, lambda rows, batch: task.model.points(batch, place), append, quantity, place)
    return [Attribution(s, 1) for s in scores]
