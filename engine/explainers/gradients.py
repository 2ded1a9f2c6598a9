"""Methods that read the gradient of the target's logit f or probability m.

The gradient at the input, its mean over noisy copies (SmoothGrad) and its integral along a path (integrated gradients)
are taken where the model reads the input: for texts at the word embeddings (positions kept), for pictures at the pixels
or the patch embeddings. Grad-CAM takes it at the last block.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from jaxtyping import Float

from engine.errors import unknown
from engine.lazy import torch
from engine.models.classifier import EMBEDDING, AnyClassifier, as_float64
from engine.params import LOGIT, QuantityParams, option
from engine.registry import Axes, register
from engine.removal import removed
from engine.removal_operators import BASELINES, PATCH_BASELINES
from engine.result import Check
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
    # Noise is drawn for an input and a seed.
    alike = [own for group in task.shared_passes(prefixes=False) for own in _by_seed(task, group)]
    passes = [[item * samples + sample for item in own] for own in alike for sample in range(samples)]

    def add_noise(rows: np.ndarray, batch: Any) -> torch.Tensor:
        points = task.model.points(batch, place)
        noise = np.zeros(points.shape)  # of all rows, so that a GPU is sent it at once
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
    """One draw, made when it is needed: all of them together would fill the memory."""
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
    """Weighted sums, an item each, of the gradients of its rows; summed in double precision on the device.

    `index` rises: the rows of an item are neighbors. `passes`: as of `Task.gradients`.
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
        # All or nothing: had memory run out after some were added, the retry would add them twice.
        for item, part in parts:
            total[item].add_(part)

    task.gradients(index, points, add, quantity, place, passes)
    return total


def input_gradients(
    task: Task, reduce: FeatureReduction, quantity: str = LOGIT, place: str = EMBEDDING
) -> list[Attribution]:
    """The gradient at the input itself: a pass forward and back of all examples together.

    Prompts that begin another one, as those before each token of a generated text do, share its pass forward.
    """
    scores: dict[int, Float[np.ndarray, "seq"]] = {}
    read: list[tuple[np.ndarray, torch.Tensor]] = []

    def points(items: np.ndarray, batch: Any) -> torch.Tensor:
        read[:] = [(items, task.model.points(batch, place).detach())]
        return read[0][1]

    def store(items: np.ndarray, gradient: torch.Tensor) -> None:
        [(first, own)] = read
        if len(items) > len(first):  # several share a pass
            own = task.model.points(task.batch(items), place)
        width = own.shape[1]
        values = as_float64(reduce(own.double(), gradient[:, :width].double()))  # of all, so that a GPU waits once
        scores.update({item: row[: len(task.examples[item])] for item, row in zip(items.tolist(), values, strict=True)})

    task.gradients(np.arange(len(task.items)), points, store, quantity, place, task.shared_passes())
    return [Attribution(scores[item], 1) for item in range(len(task.items))]


QUADRATURES = ("clenshaw_curtis", "gauss_legendre", "trapezoid", "riemann")
GAP_LIMIT = 0.01
ERROR_LIMIT = 0.01
"""The largest estimated error of a score, relative to the largest score, at which the scores are right."""
FIRST_PARTS = 8
MAX_PARTS = 256
"""Of a path that is divided as far as needed; each part has four evaluations and shares its ends."""
BOOLE = np.array([7, 32, 12, 32, 7]) / 90
SIMPSON = np.array([1, 0, 4, 0, 1]) / 6
"""Weights of two rules on the same five nodes, the ends of a part and its quarters."""
HALVED = 0.7
"""The share of all error that the parts to be halved hold at least."""


def quadrature_nodes(rule: str, n: int) -> tuple[Float[np.ndarray, "n"], Float[np.ndarray, "n"]]:
    """Positions in [0, 1] and weights (sum 1) of `n` evaluations.

    `riemann` is the right sum. Source of `clenshaw_curtis`: Trefethen (2008), section 2; Waldvogel (2006).
    """
    if rule not in QUADRATURES:
        raise unknown("quadrature", rule, QUADRATURES)
    if rule == "gauss_legendre":
        x, weights = np.polynomial.legendre.leggauss(n)
        return (x + 1) / 2, weights / 2
    if n == 1:
        return np.ones(1), np.ones(1)
    if rule == "riemann":
        return np.arange(1, n + 1) / n, np.full(n, 1 / n)
    last = n - 1
    if rule == "trapezoid":
        positions, weights = np.linspace(0, 1, n), np.full(n, 1 / last)
    else:
        angle = np.pi * np.arange(n) / last
        j = np.arange(1, last // 2 + 1)
        share = np.where(2 * j == last, 1.0, 2.0) / (4 * j**2 - 1)
        positions, weights = (1 - np.cos(angle)) / 2, (1 - np.cos(2 * np.outer(angle, j)) @ share) / last
    weights[[0, -1]] /= 2
    return positions, weights


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
    """Parameters of a path on patches."""


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


class Paths:
    """The straight path of each item with all evaluations along it: nothing is evaluated twice."""

    def __init__(
        self,
        task: Task,
        start: Float[torch.Tensor, "item seq d_model"],
        end: Float[torch.Tensor, "item seq d_model"],
        quantity: str,
    ) -> None:
        self.task, self.quantity = task, quantity
        self.start, self.end = start, end
        self._shares: list[dict[float, np.ndarray]] = [{} for _ in task.items]
        self._values: list[dict[float, float]] = [{} for _ in task.items]
        self._scores: list[np.ndarray | None] = [None] * len(task.items)
        self._paths = self._shared_paths()
        """The number of each item's path; items of one number share passes."""
        self._checks: list[Check | None] = [None] * len(task.items)

    def _shared_paths(self) -> dict[int, int]:
        """Items that read the same input, or begin it, and whose baselines are the same there."""
        numbers: dict[int, int] = {}
        for group in self.task.shared_passes():
            first = self.start[group[0]]
            for item in group:
                count = len(self.task.examples[item])
                same = item == group[0] or torch.equal(self.start[item, :count], first[:count])
                numbers[item] = group[0] if same else item
        return numbers

    def integrate(self, items: np.ndarray, rule: str, steps: int) -> None:
        """Scores and gaps of `items` by that number of nodes."""
        alphas, weights = quadrature_nodes(rule, steps)
        self._evaluate({i: [0.0, *alphas.tolist()] for i in items.tolist()})
        for i in items.tolist():
            self._scores[i] = weights @ self._shares_at(i, alphas)
            self._checks[i] = self._gap(i)

    def divide(self, items: np.ndarray) -> None:
        """Scores of `items` by Boole's rule on parts of the path, halved where they err most, until they are right.

        The error of a part: the largest difference of a score from Simpson's rule on the same nodes, or that of the sum
        of scores from the change of f along the part, which is known. Halves keep the evaluations of the whole.
        Source: adaptive quadrature, Gander and Gautschi (2000).
        """
        edges = {i: np.linspace(0, 1, FIRST_PARTS + 1) for i in items.tolist()}
        while edges:
            self._evaluate({i: part_nodes(own).ravel().tolist() for i, own in edges.items()})
            edges = {i: more for i, own in edges.items() if (more := self._halve(i, own)) is not None}

    def _halve(self, i: int, edges: Float[np.ndarray, "edge"]) -> np.ndarray | None:
        """Update item i; its edges with the worst parts halved, or None where it is right or at its limit."""
        widths, parts = np.diff(edges), len(edges) - 1
        shares = self._shares_at(i, part_nodes(edges).ravel()).reshape(parts, len(BOOLE), -1)
        scores, rough = (np.einsum("n,pns,p->ps", rule, shares, widths) for rule in (BOOLE, SIMPSON))
        self._scores[i] = scores.sum(0)
        largest = max(np.abs(self.scores(i)).max(), np.finfo(scores.dtype).tiny)
        error = float(np.abs((scores - rough).sum(0)).max() / largest)
        check = self._checks[i] = replace(self._gap(i), also=Check("estimated error of a score", error, ERROR_LIMIT))
        if parts >= MAX_PARTS or not any(part.value >= part.limit for part in check.parts):
            return None
        changes = np.diff([self._values[i][alpha] for alpha in edges.tolist()])
        gaps = np.abs(scores.sum(1) - changes) / _at_least(self._change(i))
        errors = np.maximum(gaps, np.abs(scores - rough).max(1) / largest)
        worst = np.argsort(-errors)
        held = np.cumsum(errors[worst])
        worst = worst[: min(1 + int(np.sum(held < HALVED * held[-1])), MAX_PARTS - parts)]
        return np.sort(np.append(edges, edges[worst] + widths[worst] / 2))

    def _gap(self, i: int) -> Check:
        change = self._change(i)
        return Check("completeness gap", float(abs(self.scores(i).sum() - change) / _at_least(change)), GAP_LIMIT)

    def _change(self, i: int) -> float:
        """The change of f along the path."""
        item = self.task.items[i]
        ends = item.prediction.logits if self.quantity == LOGIT else item.prediction.probabilities
        return float(ends[item.target]) - self._values[i][0.0]

    def _shares_at(self, i: int, alphas: np.ndarray) -> Float[np.ndarray, "alpha seq"]:
        return np.stack([self._shares[i][alpha] for alpha in alphas.tolist()])

    def scores(self, i: int) -> Float[np.ndarray, "seq"]:
        """The scores of item i by its last nodes."""
        scores = self._scores[i]
        assert scores is not None, "integrate first"
        return scores

    def evaluations(self, i: int) -> int:
        """The number of model evaluations along the path of item i."""
        return len(self._shares[i])

    def _evaluate(self, places: Mapping[int, Sequence[float]]) -> None:
        """Gradients and values of items at places on their paths that have none yet."""
        new = [(i, at) for i, own in places.items() for at in sorted(set(own) - self._shares[i].keys())]
        index = np.array([i for i, _ in new])
        # Half precision holds three digits: the place on the path keeps more.
        precise = torch.promote_types(self.task.model.dtype, torch.float32)
        place = torch.tensor([alpha for _, alpha in new], dtype=precise, device=self.start.device)
        shared: dict[tuple[int, float], list[int]] = {}
        for row, (i, alpha) in enumerate(new):
            shared.setdefault((self._paths[i], alpha), []).append(row)
        passes = [sorted(rows, key=lambda row: -len(self.task.examples[new[row][0]])) for rows in shared.values()]

        def interpolate(rows: np.ndarray, batch: Any) -> torch.Tensor:
            start, end = (side[index[rows], : batch.visible.shape[1]] for side in (self.start, self.end))
            return torch.lerp(start.to(precise), end.to(precise), place[rows, None, None]).to(start.dtype)

        def store(rows: np.ndarray, gradient: torch.Tensor) -> None:
            step = (self.end - self.start)[index[rows], : gradient.shape[1]]
            shares = as_float64((step.to(precise) * gradient).sum(-1))
            for (i, alpha), share in zip((new[row] for row in rows), shares, strict=True):
                self._shares[i][alpha] = share[: len(self.task.examples[i])]

        values = self.task.gradients(index, interpolate, store, self.quantity, passes=passes)
        for (i, alpha), value in zip(new, values.tolist(), strict=True):
            self._values[i][alpha] = value

    def attribution(self, i: int) -> Attribution:
        """Scores, check and cost of item i."""
        check = self._checks[i]
        assert check is not None, "integrate first"
        return Attribution(self.scores(i), self.evaluations(i), check, tuple(self._notes(check)))

    def _notes(self, check: Check) -> Iterator[str]:
        whole = "score" if self.task.model.regression else self.quantity
        few = f"{4 * MAX_PARTS + 1:,} evaluations were too few."
        if check.value >= GAP_LIMIT:
            yield (
                f"The completeness gap is {check.value:.1%}: the scores do not add up to the change of the {whole}. "
                f"{'Use more steps.' if check.also is None else few}"
            )
        if check.also is not None and check.also.value >= ERROR_LIMIT:
            yield f"A score may be off by {check.also.value:.1%} of the largest score: {few}"


def _at_least(change: float) -> float:
    """What a gap is relative to."""
    return max(abs(change), 1e-3)


def part_nodes(edges: Float[np.ndarray, "edge"]) -> Float[np.ndarray, "part node"]:
    """The ends and quarters of each part. Edges are halves of halves, so that neighbors agree bit for bit."""
    return edges[:-1, None] + np.diff(edges)[:, None] * np.arange(len(BOOLE)) / (len(BOOLE) - 1)


def path_endpoints(
    task: Task, baseline: str
) -> tuple[Float[torch.Tensor, "item seq d_model"], Float[torch.Tensor, "item seq d_model"]]:
    """Embeddings of each item's baseline and input; they agree at special tokens and padding."""
    batch = task.batch()
    keep = torch.ones(batch.visible.shape, dtype=torch.bool)
    for row, example in enumerate(task.examples):
        keep[row, example.features] = False
    with torch.no_grad():
        _, start = removed(task.model, batch, keep.to(batch.visible.device), baseline)
        return start, task.model.embed(batch)


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
    """The positive scores; a note where there are none, but negative ones."""
    nothing = scores.any() and not (scores > 0).any()
    return Attribution(np.maximum(scores, 0), 1, notes=(ONLY_NEGATIVE,) if nothing else ())


def _weighted_activations(task: Task) -> list[Float[np.ndarray, "seq"]]:
    model: Any = task.model  # of pictures: the only kind that this method serves
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
