"""Methods that read the gradient of the target's logit f or probability m.

The gradient at the input, its mean over noisy copies (SmoothGrad) and its integral along a path (integrated gradients)
are taken where the model reads the input: for texts at the word embeddings (positions kept), for pictures at the pixels
or the patch embeddings. Grad-CAM takes it at the last block.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float

from engine.explainers.path_integrals import QUADRATURES, Paths, path_endpoints
from engine.lazy import torch
from engine.models.classifier import EMBEDDING, AnyClassifier, as_float64
from engine.params import LOGIT, QuantityParams, option
from engine.registry import Axes, register
from engine.removal_operators import BASELINES, PATCH_BASELINES
from engine.task import Attribution, Task, TaskItem

FeatureReduction = Callable[["torch.Tensor", "torch.Tensor"], "torch.Tensor"]
"""Maps points and gradients, both `[row seq width]`, to scores `[row seq]`."""

PLACES = ("pixels", EMBEDDING)
_PLACE_HELP = "Where the gradient is taken: at the pixels, and then over the patch, or at the patch embedding"
_AXES = Axes("none: an infinitely small change of the embedding", "logit of the class", "gradient, at the input")
_PATCH_AXES = Axes("none: an infinitely small change of the patch", "logit of the class", "gradient, at the input")
_SIMONYAN = "Simonyan, Vedaldi and Zisserman (2014), Deep inside convolutional networks"


@dataclass(frozen=True)
class GradientParams(QuantityParams):
    """Parameters of a gradient at the embeddings. Attributes that are not fields are fixed."""

    place = EMBEDDING
    alternative = "Use gradient_l2 or gradient_x_input."
    """Advice if the sum over embedding dimensions is uninformative."""


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
    """Return the sums over embedding dimensions, or zero maps with a note if they are only rounding noise."""
    if params.place != EMBEDDING or not ignores_constant_shift(task.model, task.batch([0])):
        return sums
    note = (
        "The gradient summed over embedding dimensions is zero by construction here: LayerNorm ignores a shift common "
        f"to all dimensions. {params.alternative}"
    )
    return [Attribution(np.zeros_like(a.scores), a.evaluations, notes=(note,)) for a in sums]


def ignores_constant_shift(model: AnyClassifier, batch: Any) -> bool:
    """Whether adding 1 to every embedding dimension leaves the logits unchanged (BERT and GPT-2, not T5). Memoized.

    Measured relative to adding +1 and -1 alternately, so that it does not depend on the size of the logits.
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
    """Return each item's mean gradient over copies with Gaussian noise; `noise` is a share of the values' range."""
    samples, place = params.n_samples, params.place
    ranges = [
        float(x.max() - x.min()) for x in (task.model.points(task.batch([i]), place) for i in range(len(task.items)))
    ]
    index = np.repeat(np.arange(len(task.items)), samples)
    # Noise depends only on the input and the seed.
    alike = [own for group in task.shared_passes(prefixes=False) for own in _by_seed(task, group)]
    passes = [[item * samples + sample for item in own] for own in alike for sample in range(samples)]

    def add_noise(rows: np.ndarray, batch: Any) -> torch.Tensor:
        points = task.model.points(batch, place)
        noise = np.zeros(points.shape)  # of all rows, to send it to a GPU in one transfer
        for row, at in enumerate(rows.tolist()):
            draw = _draw_noise(task.items[index[at]], at % samples, points.shape[-1])
            noise[row, : len(draw)] = draw * (params.noise * ranges[index[at]])
        return points + torch.from_numpy(noise).to(device=points.device, dtype=points.dtype)

    return mean_gradients(task, index, add_noise, np.full(len(index), 1 / samples), params.quantity, place, passes)


def _by_seed(task: Task, items: list[int]) -> list[list[int]]:
    seeds: dict[int, list[int]] = {}
    for item in items:
        seeds.setdefault(task.items[item].seed, []).append(item)
    return list(seeds.values())


def _draw_noise(item: TaskItem, sample: int, width: int) -> Float[np.ndarray, "seq d_model"]:
    """Draw the noise of one sample when it is needed, as all samples together would fill the memory."""
    draw = item.generator(sample).standard_normal((len(item.encoded), width))
    draw[item.encoded.special] = 0
    return draw


def mean_gradients(
    task: Task,
    index: np.ndarray,
    points: Callable[[np.ndarray, Any], Float[torch.Tensor, "_ seq width"]],
    weights: Float[np.ndarray, "row"],
    quantity: str = LOGIT,
    place: str = EMBEDDING,
    passes: list[list[int]] | None = None,
) -> list[Float[torch.Tensor, "_ width"]]:
    """Return each item's weighted sum of the gradients of its rows, in double precision on the device (MPS: single).

    `index`: the item of each row, ascending. `passes`: as in `Task.gradients`.
    """
    width = task.model.points(task.batch([0]), place).shape[-1]
    wide = torch.float64 if task.model.device.type != "mps" else torch.float32
    total = [torch.zeros(len(e), width, dtype=wide, device=task.model.device) for e in task.examples]
    weight = torch.as_tensor(weights, dtype=wide, device=task.model.device)

    def add(rows: np.ndarray, gradient: torch.Tensor) -> None:
        owners, own_weight = index[rows], weight[torch.from_numpy(rows).to(weight.device)]
        parts = []
        for item in np.unique(owners):
            own = slice(*np.searchsorted(owners, [item, item + 1]).tolist())
            part = gradient[own, : len(total[item])].to(wide)
            parts.append((item, torch.tensordot(own_weight[own], part, dims=1)))
        # All or nothing: if memory ran out after some were added, the retry would add them twice.
        for item, part in parts:
            total[item].add_(part)

    task.gradients(index, points, add, quantity, place, passes)
    return total


def input_gradients(
    task: Task, reduce: FeatureReduction, quantity: str = LOGIT, place: str = EMBEDDING
) -> list[Attribution]:
    """Return scores from the gradient at the input, in one forward and one backward pass of all examples together.

    Prompts that are prefixes of another one, as those before each token of a generated text, share its forward pass.
    """
    scores: dict[int, Float[np.ndarray, "seq"]] = {}
    read: list[tuple[np.ndarray, torch.Tensor]] = []

    def points(items: np.ndarray, batch: Any) -> torch.Tensor:
        read[:] = [(items, task.model.points(batch, place).detach())]
        return read[0][1]

    def store(items: np.ndarray, gradient: torch.Tensor) -> None:
        [(first, own)] = read
        if len(items) > len(first):  # several items share a pass
            own = task.model.points(task.batch(items), place)
        width = own.shape[1]
        values = as_float64(reduce(own.double(), gradient[:, :width].double()))  # one transfer from a GPU
        scores.update({item: row[: len(task.examples[item])] for item, row in zip(items.tolist(), values, strict=True)})

    task.gradients(np.arange(len(task.items)), points, store, quantity, place, task.shared_passes())
    return [Attribution(scores[item], 1) for item in range(len(task.items))]


@dataclass(frozen=True)
class BaselineParams:
    baseline: str = option("mask", "Start of the path: what replaces a removed word", choices=BASELINES)


@dataclass(frozen=True)
class PatchBaselineParams(BaselineParams):
    baseline: str = option("mean", "Start of the path: what replaces a removed patch", choices=PATCH_BASELINES)


@dataclass(frozen=True)
class IntegratedGradientsParams(BaselineParams, QuantityParams):
    quadrature: str = option("clenshaw_curtis", "Integration rule when steps are fixed", choices=QUADRATURES)
    steps: str = option(
        "auto",
        "auto: more where the path is steep, until the gap and the error of each score are under 1%; or fixed",
        choices=("auto", "fixed"),
    )
    n_steps: int = option(50, "Gradient evaluations when steps are fixed", low=1, high=1024)


@dataclass(frozen=True)
class PatchIntegratedGradientsParams(PatchBaselineParams, IntegratedGradientsParams):
    """Parameters for pictures, whose baseline is one of patches."""


@register(
    "integrated_gradients",
    title="Integrated gradients",
    family="gradients",
    params=IntegratedGradientsParams,
    version=4,
    axes=Axes("baseline embedding, reached along a straight path", "logit of the class", "path integral"),
    differentiable=True,
    cheap=False,
    citation="Sundararajan, Taly and Yan (2017), Axiomatic attribution for deep networks, eq. 1",
    caution="The scores depend on the baseline: they explain the difference between it and your text.",
    variants={
        "image": {
            "params": PatchIntegratedGradientsParams,
            "version": 3,
            "axes": Axes("baseline picture, reached along a straight path", "logit of the class", "path integral"),
            "caution": "The scores depend on the baseline: parts of the picture in its color get low scores.",
        }
    },
)
def integrated_gradients(task: Task, params: IntegratedGradientsParams) -> list[Attribution]:
    """`(x_i - x'_i) . ∫ df(x' + α(x - x'))/dx_i dα`, in logits, signed; sums to f(x) - f(x') but for the gap.

    Gap = |sum a - (f(x) - f(x'))| / max(|f(x) - f(x')|, 1e-3). With `quantity` "probability" f is the probability m,
    in the gap too. The thesis prints a plus inside m, which would leave the path; the published definition is meant.
    `auto` halves the parts of the path that err most until gap and estimated error of each score are under 1% (the gap
    bounds their sum alone, for errors of two features may cancel). The check says both. See `Paths.divide`.

    A patch embedding is linear in its pixels, so with the baselines `mean` and `blur` this is the path integral at
    the pixels, summed in the patch. `zero`, the zero embedding, is no picture.
    """
    paths = Paths(task, *path_endpoints(task, params.baseline), params.quantity)
    everything = np.arange(len(task.items))
    if params.steps == "auto":
        paths.divide(everything)
    else:
        paths.integrate(everything, params.quadrature, params.n_steps)
    return [paths.attribution(i) for i in range(len(task.items))]


ONLY_NEGATIVE = (
    "No weighted activation is positive, so Grad-CAM shows nothing here. That does not mean that no patch matters: "
    "choose both signs to see the negative ones."
)


@dataclass(frozen=True)
class GradCamParams:
    sign: str = option(
        "positive", "Only evidence for the class, as published, or both signs", choices=("positive", "both")
    )


@register(
    "grad_cam",
    title="Grad-CAM",
    family="gradients",
    params=GradCamParams,
    inputs=("image",),
    axes=Axes("none", "logit of the class", "activation times mean gradient, at the last block"),
    differentiable=True,
    signed=lambda params: params.sign == "both",
    citation="Selvaraju et al. (2017), Grad-CAM, eq. 1 and 2",
    caution="It uses the last block, where a token may hold information from other patches.",
)
def grad_cam(task: Task, params: GradCamParams) -> list[Attribution]:
    """`ReLU(sum_k w_k A_ik)` with `w_k` the mean of df/dA_ik over patches i; unsigned, or without ReLU signed.

    A are the patch tokens that the last block reads, after its first LayerNorm: what that block puts out at the
    patches is not read by the class any more, so its gradient is zero. Special tokens get 0.
    """
    maps = task.by_parts(_weighted_activations)
    return [positive_part(scores) if params.sign == "positive" else Attribution(scores, 1) for scores in maps]


def positive_part(scores: Float[np.ndarray, "seq"]) -> Attribution:
    """Return the positive scores, with a note if there are only negative ones."""
    nothing = scores.any() and not (scores > 0).any()
    return Attribution(np.maximum(scores, 0), 1, notes=(ONLY_NEGATIVE,) if nothing else ())


def _weighted_activations(task: Task) -> list[Float[np.ndarray, "seq"]]:
    model: Any = task.model  # an image model: the method serves no other kind
    read: list[torch.Tensor] = []
    batch = task.batch()
    points = model.embed(batch).detach().requires_grad_()
    with model.cam_layer.register_forward_hook(lambda _module, _inputs, output: read.append(output)):
        logits = model.logits(batch, points)
    chosen = logits[torch.arange(len(task.items)), task.targets]
    (gradient,) = torch.autograd.grad(chosen.sum(), read[0])
    first = model.specials
    weights = gradient[:, first:].double().mean(1, keepdim=True)
    activations = torch.zeros(gradient.shape[:2], dtype=torch.float64, device=model.device)
    activations[:, first:] = (weights * read[0][:, first:].double()).sum(-1)
    return list(as_float64(torch.nn.functional.pad(model.spread(activations), (first, 0))))
