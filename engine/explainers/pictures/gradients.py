"""Methods that read the gradient of the target's logit f or probability m at a picture's pixels or patch embeddings."""

from __future__ import annotations

from dataclasses import dataclass

from engine.explainers.gradients import at_input, noisy_gradients, zero_by_construction
from engine.late import torch
from engine.models.classifier import EMBEDDING
from engine.models.text import as_float64
from engine.params import QuantityParams, option
from engine.registry import Axes, register
from engine.task import Attribution, Task

PLACES = ("pixels", EMBEDDING)
_AXES = Axes("none: an infinitely small change of the patch", "logit of the class", "gradient, at the input")
_SIMONYAN = "Simonyan, Vedaldi and Zisserman (2014), Deep inside convolutional networks, section 3"
_WHERE = "Where the gradient is taken: at the pixels, and then over the patch, or at the patch embedding"
_ZERO = (
    "The gradient summed over embedding dimensions is zero by construction here: LayerNorm ignores a shift common to "
    "all dimensions. Take it at the pixels, or use gradient_l2 or gradient_x_input."
)


@dataclass(frozen=True)
class PlaceParams(QuantityParams):
    place: str = option(PLACES[0], _WHERE, choices=PLACES)


@register(
    "gradient",
    title="Gradient",
    family="gradients",
    params=PlaceParams,
    inputs=("image",),
    axes=_AXES,
    differentiable=True,
    citation=_SIMONYAN,
    caution="It says what a brighter patch would do; positive and negative parts cancel within a patch.",
)
def gradient(task: Task, params: PlaceParams) -> list[Attribution]:
    """Sum of df/dx over the patch's pixels and colours, in logits per standard deviation of all of them at once.

    With `quantity` "probability", here and below, the derivative is that of m, and its unit is the probability.

    At the embeddings it is the sum over dimensions, which is zero by construction where LayerNorm reads the patches:
    then the map is exactly zero, with words, instead of the rounding noise of the sum.
    """
    sums = at_input(task, lambda x, g: g.sum(-1), params.quantity, params.place)
    return zero_by_construction(task, sums, _ZERO) if params.place == EMBEDDING else sums


@register(
    "gradient_l2",
    title="Gradient L2 norm",
    family="gradients",
    params=PlaceParams,
    inputs=("image",),
    axes=_AXES,
    differentiable=True,
    signed=False,
    citation=f"{_SIMONYAN}; as in Fernandes et al. (2022), SMaT",
    caution="It says how sensitive the class is to a patch, not whether the patch speaks for or against it.",
)
def gradient_l2(task: Task, params: PlaceParams) -> list[Attribution]:
    """Length of df/dx over the patch's pixels and colours, or over the dimensions of its embedding: unsigned."""
    return at_input(task, lambda x, g: g.norm(dim=-1), params.quantity, params.place)


@register(
    "gradient_x_input",
    title="Gradient x input",
    family="gradients",
    params=PlaceParams,
    inputs=("image",),
    axes=Axes("mean colour or zero embedding, to first order", "logit of the class", "first-order change"),
    differentiable=True,
    citation="Shrikumar et al. (2016), Not just a black box; Denil et al. (2014)",
    caution="A first-order guess: it is exact only where the model is linear between the mean colour and the patch.",
)
def gradient_x_input(task: Task, params: PlaceParams) -> list[Attribution]:
    """`x . df/dx` over the patch, signed, in logits; x are normalised pixels (0 is the mean colour) or embeddings."""
    return at_input(task, lambda x, g: (x * g).sum(-1), params.quantity, params.place)


@dataclass(frozen=True)
class PictureSmoothGradParams(QuantityParams):
    n_samples: int = option(32, "Noisy copies of the picture", low=1, high=1000)
    noise: float = option(0.15, "Standard deviation, as a share of the range of the values", low=0, high=2)
    reduction: str = option("l2", "Over the values of a patch: length, or signed sum", choices=("l2", "sum"))
    place: str = option(PLACES[0], _WHERE, choices=PLACES)


@register(
    "smoothgrad",
    title="SmoothGrad",
    family="gradients",
    params=PictureSmoothGradParams,
    inputs=("image",),
    axes=Axes("none: small random changes of the picture", "logit of the class", "gradient, mean over noisy copies"),
    differentiable=True,
    signed=lambda params: params.reduction == "sum",
    citation="Smilkov et al. (2017), SmoothGrad, eq. 2",
    caution="Noisy pictures are unlike what the model was trained on; the map depends on how much noise is added.",
)
def smoothgrad(task: Task, params: PictureSmoothGradParams) -> list[Attribution]:
    """Mean gradient over Gaussian-noised pixels or embeddings, then over the patch: unsigned (`l2`), signed (`sum`)."""
    mean = noisy_gradients(task, params.n_samples, params.noise, params.quantity, params.place)
    if params.reduction == "l2":
        return [_attribution(each.norm(dim=-1), params) for each in mean]
    sums = [_attribution(each.sum(-1), params) for each in mean]
    return zero_by_construction(task, sums, _ZERO) if params.place == EMBEDDING else sums


def _attribution(scores: torch.Tensor, params: PictureSmoothGradParams) -> Attribution:
    return Attribution(as_float64(scores), params.n_samples)
