"""Differentiable maps of a perturbed input, and the set of allowed perturbations.

The map of an item is a sum over rows: one row for a gradient, one per node for integrated gradients. The objective is
such a sum too, and its gradient is accumulated over as many passes as memory requires.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, cast

import numpy as np
from jaxtyping import Bool, Float, Int

from engine.attacks.plan import PATH_STEPS, PIXELS, AttackParams
from engine.errors import UsageError
from engine.explainers.gradients import ignores_constant_shift
from engine.explainers.path_integrals import quadrature_nodes
from engine.lazy import torch
from engine.models.attention import twice_differentiable
from engine.models.classifier import EMBEDDING, NO_CLASS, AnyClassifier
from engine.params import LOGIT, PROBABILITY, Plain, as_plain, from_mapping
from engine.registry import explainer
from engine.removal import removed, target_values
from engine.runtime import in_chunks, rows_at_once
from engine.task import TaskItem
from engine.vision.classifier import ImageClassifier

START = 1e-3
"""Each number of a random start is drawn uniformly between minus and plus this value."""
ATTACK = 0xA77C
"""Separates these draws from those of methods with the same seed."""


@dataclass(frozen=True, eq=False)
class SearchSpace:
    """The allowed changes: `unit * delta` is added to `points`, with `delta` between `low` and `high`.

    Both bounds are 0 if no change is allowed. The unit is 1 for embeddings. For pixels it is the color range in the
    model's input, so `delta` is in colors from 0 to 1, and the bounds keep the picture valid.
    """

    place: str
    points: Float[torch.Tensor, "item seq width"]
    unit: Float[torch.Tensor, "#width"]
    low: Float[torch.Tensor, "item seq width"]
    high: Float[torch.Tensor, "item seq width"]

    def move(
        self, delta: Float[torch.Tensor, "row seq width"], items: torch.Tensor
    ) -> Float[torch.Tensor, "row seq width"]:
        """The perturbed points of these items."""
        return self.points[items] + self.unit * delta

    def relative_epsilon(self, row: int, item: TaskItem, params: AttackParams) -> float | None:
        """The largest change of a position that epsilon allows, `sqrt(d) epsilon`, over the median embedding norm.

        The median is over the item's embeddings that may change; None if it is 0. For pixels: epsilon, as the color
        range is 1.
        """
        if params.place == PIXELS:
            return params.bound
        points = self.points[row, : len(item.encoded)].double()
        free = torch.from_numpy(_movable([item], len(points), params.specials)[0]).to(points.device)
        median = float(np.median(points[free].norm(dim=-1).cpu().numpy()))
        return points.shape[1] ** 0.5 * params.bound / median if median > 0 else None

    def clip(
        self, delta: Float[torch.Tensor, "row seq width"], items: torch.Tensor
    ) -> Float[torch.Tensor, "row seq width"]:
        """Clip delta to its bounds."""
        return torch.minimum(torch.maximum(delta, self.low[items]), self.high[items])

    def draw_starts(self, items: Sequence[TaskItem], starts: int = 1) -> Float[torch.Tensor, "item seq width"]:
        """Random starts of each item, independent of the batch. Each item has `starts` consecutive rows."""
        draws = np.zeros(tuple(self.points.shape))
        for row, item in enumerate(items):
            shape, start = (len(item.encoded), draws.shape[-1]), row % starts
            # The first start is the one that a single start has always used.
            generator = item.generator(ATTACK, start) if start else item.generator(ATTACK)
            draws[row, : shape[0]] = generator.uniform(-START, START, shape)
        everyone = torch.arange(len(items), device=self.points.device)
        return self.clip(torch.from_numpy(draws).to(self.points), everyone)


def search_space(model: AnyClassifier, batch: Any, items: Sequence[TaskItem], params: AttackParams) -> SearchSpace:
    """The allowed changes: features may change, special tokens only on request, padding never."""
    with torch.no_grad():
        points = model.points(batch, params.place)
    unit = color_scale(cast(ImageClassifier, model)) if params.place == PIXELS else torch.ones(1)
    free = torch.from_numpy(_movable(items, points.shape[1], params.specials)).to(points.device)
    reach = (free[..., None] * params.bound).to(points.dtype).expand(points.shape)
    if params.place != PIXELS:
        return SearchSpace(params.place, points, unit.to(points), -reach, reach)
    colors = _colors(cast(ImageClassifier, model), points)
    return SearchSpace(
        params.place, points, unit.to(points), torch.maximum(-reach, -colors), torch.minimum(reach, 1 - colors)
    )


def _movable(items: Sequence[TaskItem], width: int, specials: bool) -> np.ndarray:
    free = np.zeros((len(items), width), dtype=bool)
    for row, item in enumerate(items):
        free[row, : len(item.encoded)] = True if specials else ~item.encoded.special
    return free


def color_scale(model: ImageClassifier) -> Float[torch.Tensor, "pixel"]:
    """Difference between full color and black in the model's input, for each pixel of a patch."""
    read = model.preprocessing
    return _by_pixel(model, 255 * read.scale / np.array(read.std))


def _colors(model: ImageClassifier, points: torch.Tensor) -> torch.Tensor:
    """Pixel colors from 0 to 1. Values for special tokens have no meaning; their bounds are 0."""
    read = model.preprocessing
    mean = _by_pixel(model, np.array(read.mean) / np.array(read.std)).to(points)
    return ((points + mean) / color_scale(model).to(points)).clamp(0, 1)


def _by_pixel(model: ImageClassifier, by_channel: np.ndarray) -> Float[torch.Tensor, "pixel"]:
    return torch.from_numpy(np.repeat(by_channel, model.patch[0] * model.patch[1]))


TWICE = 3
"""Approximate memory of a second backward pass, relative to one forward and backward pass."""

Score = Callable[["torch.Tensor", "torch.Tensor"], "torch.Tensor"]
"""Score of a gradient: (step from the baseline or the point, gradient) `[row seq width]` to `[row seq]`."""


def _length(x: torch.Tensor, g: torch.Tensor) -> torch.Tensor:
    """The Euclidean norm of the gradient. Its derivative at 0 is 0, while that of torch's norm is NaN."""
    square = (g * g).sum(-1)
    return torch.where(square > 0, square.clamp(min=torch.finfo(square.dtype).tiny).sqrt(), square)


_SCORES: Mapping[str, Score] = {
    "gradient": lambda x, g: g.sum(-1),
    "gradient_l2": _length,
    "gradient_x_input": lambda x, g: (x * g).sum(-1),
    "integrated_gradients": lambda x, g: (x * g).sum(-1),
}


def resolve_params(
    method: str, kind: str, method_params: Mapping[str, Plain], params: AttackParams
) -> dict[str, Plain]:
    """Resolve all parameters of the method, so that its map can be attacked.

    The map explains the attack's quantity. Perturbed embeddings have no pixels, so the gradient is taken at the
    embeddings. A path has a fixed number of steps, because a varying number cannot be differentiated. Errors: a named
    value that an attack does not allow.
    """
    spec = explainer(method, kind)
    plain = as_plain(from_mapping(spec.params, method_params, method))
    if "quantity" in plain:
        plain["quantity"] = mapped = PROBABILITY if params.quantity == PROBABILITY else LOGIT
        if method_params.get("quantity", mapped) != mapped:
            raise UsageError(
                f"{method}.quantity: must be {mapped}, as the attack's quantity {params.quantity} has it, got "
                f"{method_params['quantity']}. Set the attack's quantity instead."
            )
    if "place" in plain and params.place == EMBEDDING:
        if method_params.get("place") == PIXELS:
            raise UsageError(f"{method}.place: moved embeddings have no pixels. Set the attack's place to pixels too.")
        plain["place"] = EMBEDDING
    if "steps" in plain:
        if method_params.get("steps") == "auto":
            raise UsageError(f"{method}.steps: must be fixed in an attack, got auto. Set steps=fixed and n_steps.")
        plain |= {"steps": "fixed", "n_steps": method_params.get("n_steps", PATH_STEPS)}
    if plain.get("baseline") == "blur" and params.place == PIXELS:
        raise UsageError(f"{method}.baseline: blur moves with the pixels. Use mean or zero.")
    return plain


@dataclass(frozen=True, eq=False)
class PointValues:
    """Maps and predictions of items at one point.

    `answer`: the quantity that the penalty holds, the probability or the logit of the predicted class. `gradient`:
    gradient of the summed objectives with respect to delta, if requested.
    """

    scores: Float[torch.Tensor, "item seq"]
    logits: Float[torch.Tensor, "item label"]
    probability: Float[torch.Tensor, "item"]
    answer: Float[torch.Tensor, "item"]
    gradient: Float[torch.Tensor, "item seq width"] | None


@dataclass(frozen=True, eq=False)
class Objective:
    """The objective to maximize, one value per item. `top`: mask of attacked features. `answer`: quantity to hold."""

    top: Bool[torch.Tensor, "item seq"]
    answer: Float[torch.Tensor, "item"]
    alpha: int | float
    beta: int | float

    def value(self, point: PointValues, items: torch.Tensor) -> Float[torch.Tensor, "item"]:
        """Return `alpha D - beta (m(x) - m(x + delta))^2` for each item, in the unit of the map."""
        fall = (point.scores * self.top[items]).sum(1)
        return -self.alpha * fall - self.beta * (self.answer[items] - point.answer) ** 2


class SaliencyMapper:
    """The map of one method on perturbed items of similar length. The caller must hold the device.

    Each item has one row per start of the attack; the rows of an item are consecutive.
    """

    def __init__(
        self,
        model: AnyClassifier,
        items: Sequence[TaskItem],
        method: str,
        method_params: Mapping[str, Plain],
        params: AttackParams,
    ) -> None:
        self.model, self.method, self.quantity = model, method, params.quantity
        self.items = [item for item in items for _ in range(params.starts)]
        self.score = _SCORES[method]
        self.batch: Any = model.collate([item.encoded for item in self.items])
        self.space: SearchSpace = search_space(model, self.batch, self.items, params)
        self.targets = torch.tensor([item.target for item in self.items], device=model.device)
        self.place = str(method_params.get("place", EMBEDDING))
        self.baseline = str(method_params["baseline"]) if "baseline" in method_params else None
        self.alphas, self.weights = _nodes(method_params)
        self._refuse_zero()

    @cached_property
    def features(self) -> Bool[torch.Tensor, "item seq"]:
        """Positions that may be ranked."""
        ranked = np.zeros(tuple(self.batch.visible.shape), dtype=bool)
        for row, item in enumerate(self.items):
            ranked[row, item.encoded.features] = True
        return torch.from_numpy(ranked).to(self.model.device)

    def evaluate(
        self, delta: Float[torch.Tensor, "item seq width"], items: Int[np.ndarray, "item"],
        objective: Objective | None = None,
    ) -> PointValues:  # fmt: skip
        """Compute maps and predictions of these items perturbed by `delta`; with an objective, its gradient too."""
        there = torch.from_numpy(items).to(self.model.device)
        scores = torch.zeros(delta.shape[:2], dtype=delta.dtype, device=delta.device)
        # The classes of a language model depend on the prompt; prompts with fewer of them are padded as in its batches.
        labels = max(len(self.model.labels_of(item.encoded)) for item in self.items)
        logits = torch.full((len(items), labels), NO_CLASS, dtype=delta.dtype, device=delta.device)
        gradient = None if objective is None else torch.zeros_like(delta)
        owner = np.repeat(np.arange(len(items)), len(self.alphas))
        node = np.tile(np.arange(len(self.alphas)), len(items))

        @twice_differentiable(self.model.module)  # for one chunk only: between chunks, the device may be lent
        def compute(rows: slice) -> None:
            leaf = delta.detach().requires_grad_(objective is not None)
            mine = torch.from_numpy(owner[rows]).to(delta.device)
            part, answers = self._rows(leaf, there, owner[rows], node[rows], second=objective is not None)
            slope = None if objective is None else self._slope(objective, leaf, there[mine], node[rows], part, answers)
            # Add only when all is computed: if memory ran out after a partial addition, the retry would add it twice.
            scores.index_add_(0, mine, part.detach())
            at_end = torch.from_numpy(self.alphas[node[rows]] == 1).to(delta.device)
            logits[mine[at_end], : answers.shape[1]] = answers.detach()[at_end].to(logits.dtype)
            if gradient is not None and slope is not None:
                gradient.add_(slope)

        in_chunks(compute, len(owner), self._rows_at_once())
        targets = self.targets[there]
        probability = target_values(self.model, logits, targets)
        return PointValues(scores, logits, probability, self._answers(logits, targets), gradient)

    def _answers(self, logits: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        """The quantity that the penalty holds, in double precision."""
        if self.quantity == LOGIT:
            return logits.double().gather(1, targets[:, None])[:, 0]
        return target_values(self.model, logits, targets)

    def _mapped(self, logits: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        """The quantity that the map explains."""
        if self.quantity == PROBABILITY:
            return target_values(self.model, logits, targets)
        return logits.gather(1, targets[:, None])

    def _rows(self, leaf: torch.Tensor, there: torch.Tensor, owner: np.ndarray, node: np.ndarray, second: bool
              ) -> tuple[torch.Tensor, torch.Tensor]:  # fmt: skip
        """The contribution of each row to the map of its item, and the logits of each row."""
        mine = torch.from_numpy(owner).to(leaf.device)
        batch = self.model.collate([self.items[int(i)].encoded for i in there[mine].tolist()])
        end = self._end(leaf, there)[mine][:, : batch.visible.shape[1]]
        start = self._start(batch, end, there[mine])
        along = torch.from_numpy(self.alphas[node]).to(end)[:, None, None]
        point = end if start is None else start + along * (end - start)
        if not point.requires_grad:
            point = point.detach().requires_grad_()
        answers = self.model.logits(batch, self.model.embed_points(point, self.place))
        mapped = self._mapped(answers, self.targets[there[mine]])
        (slope,) = torch.autograd.grad(mapped.sum(), point, create_graph=second)
        weight = torch.from_numpy(self.weights[node]).to(end)[:, None]
        step = end if start is None else end - start
        part = weight * self.score(step, slope)
        # Rows of shorter items are narrower if they run in a separate chunk.
        return torch.nn.functional.pad(part, (0, leaf.shape[1] - part.shape[1])), answers

    def _end(self, leaf: torch.Tensor, there: torch.Tensor) -> torch.Tensor:
        """The perturbed points of each item, at the place where the gradient is taken."""
        moved = self.space.move(leaf, there)
        return moved if self.place == self.space.place else self.model.embed_points(moved, self.space.place)

    def _start(self, batch: Any, end: torch.Tensor, items: torch.Tensor) -> torch.Tensor | None:
        """The baseline of the path, or None. It equals the perturbed point at positions that may not be removed."""
        if self.baseline is None:
            return None
        with torch.no_grad():
            ranked = self.features[items][:, : end.shape[1]]
            _, blank = removed(self.model, batch, ~ranked, self.baseline)
        return torch.where(ranked[..., None], blank, end)

    def _slope(
        self, objective: Objective, leaf: torch.Tensor, items: torch.Tensor, node: np.ndarray, part: torch.Tensor,
        answers: torch.Tensor,
    ) -> torch.Tensor:  # fmt: skip
        """The gradient of the objective's share that these rows contribute."""
        value = -objective.alpha * (part * objective.top[items]).sum()
        if objective.beta:
            at_end = torch.from_numpy(self.alphas[node] == 1).to(items.device)
            now = self._answers(answers, self.targets[items])
            value = value - objective.beta * ((objective.answer[items] - now)[at_end] ** 2).sum()
        (slope,) = torch.autograd.grad(value, leaf)
        return slope

    def _rows_at_once(self) -> int:
        longest = self.batch.visible.shape[1]
        return max(1, rows_at_once(self.model, longest, gradients=True) // TWICE)

    def _refuse_zero(self) -> None:
        summed = self.method == "gradient" and self.place == EMBEDDING
        if summed and ignores_constant_shift(self.model, self.model.collate([self.items[0].encoded])):
            instead = ", or take it at the pixels (place=pixels)" if self.model.kind == "image" else ""
            raise UsageError(
                f"methods: gradient is zero by construction on {self.model.id} (LayerNorm ignores a shift common to "
                f"all dimensions), so there is nothing to attack. Attack gradient_l2 instead{instead}."
            )


def _nodes(method_params: Mapping[str, Plain]) -> tuple[np.ndarray, np.ndarray]:
    """Positions on the path and their weights. The input itself is always included: its prediction is needed."""
    if "n_steps" not in method_params:
        return np.ones(1), np.ones(1)
    alphas, weights = quadrature_nodes(str(method_params["quadrature"]), int(method_params["n_steps"] or PATH_STEPS))
    if not (alphas == 1).any():
        return np.append(alphas, 1.0), np.append(weights, 0.0)
    return alphas, weights
