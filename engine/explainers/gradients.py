"""Methods that read the gradient of the target logit f at the word embeddings (positions kept)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from engine.models.encoding import Batch
from engine.models.text import TextClassifier
from engine.params import option
from engine.registry import Axes, register
from engine.task import Attribution, Task

PerFeature = Callable[
    [Float[Tensor, "row seq d_model"], Float[Tensor, "row seq d_model"]], Float[Tensor, "row seq"]
]

_AXES = Axes(
    "none: an infinitely small change of the embedding", "logit of the class", "gradient at the input"
)
_ZERO_BY_CONSTRUCTION = (
    "The gradient summed over embedding dimensions is zero by construction here: LayerNorm ignores a shift common to "
    "all dimensions. Use gradient_l2 or gradient_x_input."
)
_SIMONYAN = "Simonyan, Vedaldi and Zisserman (2014), Deep inside convolutional networks"


@register(
    "gradient",
    title="Gradient",
    family="gradients",
    axes=_AXES,
    differentiable=True,
    citation=_SIMONYAN,
    caution="The sum over embedding dimensions is not a size: positive and negative parts cancel.",
)
def gradient(task: Task, params: object) -> list[Attribution]:
    """`sum_d df/dx_id`: signed, in logits per unit of every embedding dimension at once (Gradients of the thesis).

    Where LayerNorm follows the embeddings the sum is zero by construction: LayerNorm takes away any constant that is
    added to all dimensions. Then the map is exactly zero, with words, instead of the rounding noise of the sum.
    """
    made = _at_input(task, lambda x, g: g.sum(-1))
    if not ignores_constant_shift(task.model, task.batch([0])):
        return made
    return [Attribution(np.zeros_like(a.scores), a.evaluations, notes=(_ZERO_BY_CONSTRUCTION,)) for a in made]


def ignores_constant_shift(model: TextClassifier, batch: Batch) -> bool:
    """Whether adding 1 to every embedding dimension leaves the logits as they are (BERT and GPT-2, not T5)."""
    if "ignores_constant_shift" not in model.memo:
        with torch.inference_mode():
            embeds = model.embed(batch.ids)
            change = (model.logits(batch, embeds + 1) - model.logits(batch, embeds)).abs().max()
        loose = 100 * torch.finfo(model.dtype).eps ** 0.5
        model.memo["ignores_constant_shift"] = bool(change < min(loose, 0.1))
    return bool(model.memo["ignores_constant_shift"])


@register(
    "gradient_l2",
    title="Gradient L2 norm",
    family="gradients",
    axes=_AXES,
    differentiable=True,
    signed=False,
    citation=f"{_SIMONYAN}; as in Fernandes et al. (2022), SMaT",
    caution="It says how sensitive the class is to a word, not whether the word speaks for or against it.",
)
def gradient_l2(task: Task, params: object) -> list[Attribution]:
    """`||df/dx_i||_2`: unsigned, in logits per unit of embedding length."""
    return _at_input(task, lambda x, g: g.norm(dim=-1))


@register(
    "gradient_x_input",
    title="Gradient x input",
    family="gradients",
    axes=Axes("zero embedding, to first order", "logit of the class", "first-order change"),
    differentiable=True,
    citation="Shrikumar et al. (2016), Not just a black box; Denil et al. (2014)",
    caution="A first-order guess: it is exact only where the model is linear between zero and the word.",
)
def gradient_x_input(task: Task, params: object) -> list[Attribution]:
    """`x_i . df/dx_i`: signed, in logits."""
    return _at_input(task, lambda x, g: (x * g).sum(-1))


@dataclass(frozen=True)
class SmoothGradParams:
    n_samples: int = option(32, "Noisy copies of the input", low=1, high=1000)
    noise: float = option(
        0.15, "Standard deviation, as a share of the range of the embedding values", low=0, high=2
    )
    reduction: str = option("sum", "Over embedding dimensions", choices=("sum", "l2"))


@register(
    "smoothgrad",
    title="SmoothGrad",
    family="gradients",
    params=SmoothGradParams,
    axes=Axes("none: small random changes of the embedding", "logit of the class", "mean gradient"),
    differentiable=True,
    citation="Smilkov et al. (2017), SmoothGrad, eq. 2",
    caution="Noise moves embeddings to places where no word is; the map depends on how much of it is added.",
)
def smoothgrad(task: Task, params: SmoothGradParams) -> list[Attribution]:
    """Mean gradient over Gaussian-noised embeddings; special tokens get no noise. Signed (`sum`) or not (`l2`)."""
    noise = [_noise(task, i, params) for i in range(len(task.items))]
    index = np.repeat(np.arange(len(task.items)), params.n_samples)

    def noisy(rows: slice, batch: Batch) -> Tensor:
        embeds = task.model.embed(batch.ids).clone()
        for row, (item, sample) in enumerate(
            (index[r], r % params.n_samples) for r in range(rows.start, rows.stop)
        ):
            embeds[row, : noise[item].shape[1]] += noise[item][sample]
        return embeds

    mean = mean_gradients(task, index, noisy, np.full(len(index), 1 / params.n_samples))
    reduced = [m.norm(dim=-1) if params.reduction == "l2" else m.sum(-1) for m in mean]
    return [Attribution(_numpy(scores), params.n_samples) for scores in reduced]


def mean_gradients(
    task: Task,
    index: np.ndarray,
    embeds: Callable[[slice, Batch], Float[Tensor, "row seq d_model"]],
    weights: Float[np.ndarray, "row"],
) -> list[Float[Tensor, "seq d_model"]]:
    """Weighted sums, an item each, of the gradients of its rows; summed in double precision on the device."""
    shape = task.model.embedding.weight.shape[1]
    wide = torch.float64 if task.model.device.type != "mps" else torch.float32
    total = [torch.zeros(len(e), shape, dtype=wide, device=task.model.device) for e in task.examples]
    weight = torch.as_tensor(weights, dtype=wide, device=task.model.device)

    def add(rows: slice, gradient: Tensor) -> None:
        owners = index[rows]
        for item in np.unique(owners):
            mine = torch.from_numpy(np.flatnonzero(owners == item)).to(gradient.device)
            part = gradient[mine, : len(total[item])].to(wide)
            total[item] += torch.tensordot(weight[rows][mine], part, dims=1)

    task.gradients(index, embeds, add)
    return total


def _at_input(task: Task, reduce: PerFeature) -> list[Attribution]:
    """One pass forward and back at the input itself, all examples together."""
    index = np.arange(len(task.items))
    scores: list[np.ndarray] = []

    def keep(rows: slice, gradient: Tensor) -> None:
        batch = task.batch(index[rows])
        values = _numpy(reduce(task.model.embed(batch.ids).double(), gradient.double()))
        scores.extend(values[row, :length] for row, length in enumerate(batch.lengths.tolist()))

    task.gradients(index, lambda rows, batch: task.model.embed(batch.ids), keep)
    return [Attribution(s, 1) for s in scores]


def _noise(task: Task, i: int, params: SmoothGradParams) -> Float[Tensor, "sample seq d_model"]:
    item, model = task.items[i], task.model
    x = model.embed(torch.from_numpy(item.encoded.ids).to(model.device))
    sigma = params.noise * float(x.max() - x.min())
    drawn = item.generator().standard_normal((params.n_samples, *x.shape)).astype(np.float32) * sigma
    drawn[:, item.encoded.special] = 0
    return torch.from_numpy(drawn).to(device=model.device, dtype=x.dtype)


def _numpy(values: Tensor) -> np.ndarray:
    return values.detach().double().cpu().numpy()
