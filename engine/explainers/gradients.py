"""Methods that read the gradient of the target's logit f or probability m at the word embeddings (positions kept)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float

from engine.classifiers import AnyClassifier
from engine.late import torch
from engine.models.classifier import EMBEDDING
from engine.models.text import as_float64
from engine.params import LOGIT, QuantityParams, option
from engine.registry import Axes, register
from engine.task import Attribution, Item, Task

PerFeature = Callable[["torch.Tensor", "torch.Tensor"], "torch.Tensor"]
"""Points and gradients, both `[row seq width]`, to scores `[row seq]`."""

_AXES = Axes("none: an infinitely small change of the embedding", "logit of the class", "gradient, at the input")
_ZERO_BY_CONSTRUCTION = (
    "The gradient summed over embedding dimensions is zero by construction here: LayerNorm ignores a shift common to "
    "all dimensions. Use gradient_l2 or gradient_x_input."
)
_SIMONYAN = "Simonyan, Vedaldi and Zisserman (2014), Deep inside convolutional networks"


@register(
    "gradient",
    title="Gradient",
    family="gradients",
    params=QuantityParams,
    axes=_AXES,
    differentiable=True,
    citation=_SIMONYAN,
    caution="The sum over embedding dimensions is not a size: positive and negative parts cancel.",
)
def gradient(task: Task, params: QuantityParams) -> list[Attribution]:
    """`sum_d df/dx_id`: signed, in logits per unit of every embedding dimension at once (Gradients of the thesis).

    With `quantity` "probability", here and below, the derivative is that of m, and its unit is the probability.

    Where LayerNorm follows the embeddings the sum is zero by construction: LayerNorm takes away any constant that is
    added to all dimensions. Then the map is exactly zero, with words, instead of the rounding noise of the sum.
    """
    return zero_by_construction(task, at_input(task, lambda x, g: g.sum(-1), params.quantity))


def zero_by_construction(task: Task, sums: list[Attribution], words: str = _ZERO_BY_CONSTRUCTION) -> list[Attribution]:
    """The sums over embedding dimensions; zero maps, with words, where they are only rounding noise."""
    if not ignores_constant_shift(task.model, task.batch([0])):
        return sums
    return [Attribution(np.zeros_like(a.scores), a.evaluations, notes=(words,)) for a in sums]


def ignores_constant_shift(model: AnyClassifier, batch: Any) -> bool:
    """Whether adding 1 to every embedding dimension leaves the logits as they are (BERT and GPT-2, not T5).

    Measured against adding +1 and -1 in turn, so that it does not depend on the size of the logits.
    """
    if "ignores_constant_shift" not in model.memo:
        with torch.inference_mode():
            embeds = model.embed(batch)
            change = (model.logits(batch, embeds + 1) - model.logits(batch, embeds)).abs().max()
            other = (model.logits(batch, embeds + _alternating(embeds)) - model.logits(batch, embeds)).abs().max()
        model.memo["ignores_constant_shift"] = bool(change < 10 * torch.finfo(model.dtype).eps ** 0.5 * other)
    return bool(model.memo["ignores_constant_shift"])


def _alternating(embeds: torch.Tensor) -> torch.Tensor:
    return 1 - 2 * (torch.arange(embeds.shape[-1], device=embeds.device) % 2).to(embeds.dtype)


@register(
    "gradient_l2",
    title="Gradient L2 norm",
    family="gradients",
    params=QuantityParams,
    axes=_AXES,
    differentiable=True,
    signed=False,
    citation=f"{_SIMONYAN}; as in Fernandes et al. (2022), SMaT",
    caution="It says how sensitive the class is to a word, not whether the word speaks for or against it.",
)
def gradient_l2(task: Task, params: QuantityParams) -> list[Attribution]:
    """`||df/dx_i||_2`: unsigned, in logits per unit of embedding length."""
    return at_input(task, lambda x, g: g.norm(dim=-1), params.quantity)


@register(
    "gradient_x_input",
    title="Gradient x input",
    family="gradients",
    params=QuantityParams,
    axes=Axes("zero embedding, to first order", "logit of the class", "first-order change"),
    differentiable=True,
    citation="Shrikumar et al. (2016), Not just a black box; Denil et al. (2014)",
    caution="A first-order guess: it is exact only where the model is linear between zero and the word.",
)
def gradient_x_input(task: Task, params: QuantityParams) -> list[Attribution]:
    """`x_i . df/dx_i`: signed, in logits."""
    return at_input(task, lambda x, g: (x * g).sum(-1), params.quantity)


@dataclass(frozen=True)
class SmoothGradParams(QuantityParams):
    n_samples: int = option(32, "Noisy copies of the input", low=1, high=1000)
    noise: float = option(0.15, "Standard deviation, as a share of the range of the embedding values", low=0, high=2)
    reduction: str = option("l2", "Over embedding dimensions: length, or signed sum", choices=("l2", "sum"))


@register(
    "smoothgrad",
    title="SmoothGrad",
    family="gradients",
    params=SmoothGradParams,
    axes=Axes("none: small random changes of the embedding", "logit of the class", "gradient, mean over noisy copies"),
    differentiable=True,
    signed=lambda params: params.reduction == "sum",
    citation="Smilkov et al. (2017), SmoothGrad, eq. 2",
    caution="Noise moves embeddings to places where no word is; the map depends on how much of it is added.",
)
def smoothgrad(task: Task, params: SmoothGradParams) -> list[Attribution]:
    """Mean gradient over Gaussian-noised embeddings; special tokens get no noise. Unsigned (`l2`) or signed (`sum`).

    The default is `l2`, because the sum is zero by construction wherever `gradient` is.
    """
    mean = noisy_gradients(task, params.n_samples, params.noise, params.quantity)
    if params.reduction == "l2":
        return [Attribution(as_float64(m.norm(dim=-1)), params.n_samples) for m in mean]
    return zero_by_construction(task, [Attribution(as_float64(m.sum(-1)), params.n_samples) for m in mean])


def noisy_gradients(
    task: Task, samples: int, share: int | float, quantity: str = LOGIT, place: str = EMBEDDING
) -> list[Float[torch.Tensor, "_ width"]]:
    """Mean gradient, an item each, over copies with Gaussian noise; `share` is of the range of the point's values."""
    sigmas = [_sigma(task, i, share, place) for i in range(len(task.items))]
    index = np.repeat(np.arange(len(task.items)), samples)

    def noisy(rows: slice, batch: Any) -> torch.Tensor:
        points = task.model.points(batch, place)
        noise = np.zeros(points.shape)  # of all rows, so that a GPU is sent it at once
        for row, at in enumerate(range(rows.start, rows.stop)):
            item = task.items[index[at]]
            drawn = _noise(item, at % samples, points.shape[-1])
            noise[row, : len(drawn)] = drawn * sigmas[index[at]]
        return points + torch.from_numpy(noise).to(device=points.device, dtype=points.dtype)

    return mean_gradients(task, index, noisy, np.full(len(index), 1 / samples), quantity, place)


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
    shape = task.model.points(task.batch([0]), place).shape[-1]
    wide = torch.float64 if task.model.device.type != "mps" else torch.float32
    total = [torch.zeros(len(e), shape, dtype=wide, device=task.model.device) for e in task.examples]
    weight = torch.as_tensor(weights, dtype=wide, device=task.model.device)

    def add(rows: slice, gradient: torch.Tensor) -> None:
        owners = index[rows]
        parts = []
        for item in np.unique(owners):
            mine = slice(*np.searchsorted(owners, [item, item + 1]).tolist())
            part = gradient[mine, : len(total[item])].to(wide)
            parts.append((item, torch.tensordot(weight[rows][mine], part, dims=1)))
        # All or nothing: had memory run out after some were added, the retry would add them twice.
        for item, part in parts:
            total[item].add_(part)

    task.gradients(index, points, add, quantity, place)
    return total


def at_input(task: Task, reduce: PerFeature, quantity: str = LOGIT, place: str = EMBEDDING) -> list[Attribution]:
    """One pass forward and back at the input itself, all examples together."""
    index = np.arange(len(task.items))
    scores: list[np.ndarray] = []

    def keep(rows: slice, gradient: torch.Tensor) -> None:
        batch = task.batch(index[rows])
        values = as_float64(reduce(task.model.points(batch, place).double(), gradient.double()))
        scores.extend(values[row, :length] for row, length in enumerate(batch.lengths.tolist()))

    task.gradients(index, lambda rows, batch: task.model.points(batch, place), keep, quantity, place)
    return [Attribution(s, 1) for s in scores]


def _sigma(task: Task, i: int, share: int | float, place: str) -> float:
    x = task.model.points(task.batch([i]), place)
    return share * float(x.max() - x.min())


def _noise(item: Item, sample: int, width: int) -> Float[np.ndarray, "seq d_model"]:
    """One draw, made when it is needed: all of them together would fill the memory."""
    drawn = item.generator(sample).standard_normal((len(item.encoded), width))
    drawn[item.encoded.special] = 0
    return drawn
