"""Where an input may be moved to: the numbers that change, and how far each may go."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from jaxtyping import Float

from engine.attacks.params import PIXELS, AttackParams
from engine.lazy import torch
from engine.models.classifier import AnyClassifier
from engine.task import Item
from engine.vision.classifier import ImageClassifier

START = 1e-3
"""The first change of each number is drawn uniformly from plus and minus it."""
ATTACK = 0xA77C
"""Keeps the draw apart from those of methods with the same seed."""


@dataclass(frozen=True, eq=False)
class Space:
    """`delta` is added to `points` at the place, times `unit`; it stays between `low` and `high`.

    Both are 0 where nothing may move. The unit is 1 for embeddings; for pixels a colour from 0 to 1 as the model
    reads it, so that delta is in colours and the bounds keep it a picture.
    """

    place: str
    points: Float[torch.Tensor, "item seq width"]
    unit: Float[torch.Tensor, "#width"]
    low: Float[torch.Tensor, "item seq width"]
    high: Float[torch.Tensor, "item seq width"]

    def at(
        self, delta: Float[torch.Tensor, "row seq width"], items: torch.Tensor
    ) -> Float[torch.Tensor, "row seq width"]:
        """The moved points of these items."""
        return self.points[items] + self.unit * delta

    def relative(self, row: int, item: Item, params: AttackParams) -> float | None:
        """The longest change of a position that epsilon allows, `sqrt(d) epsilon`, as a multiple of what is there.

        That is the median Euclidean length of the item's own embeddings that may move; None where it is 0. Of pixels
        it is epsilon over the range of a color, which is 1.
        """
        if params.place == PIXELS:
            return params.bound
        points = self.points[row, : len(item.encoded)].double()
        free = torch.from_numpy(_free([item], len(points), params.specials)[0]).to(points.device)
        usual = float(np.median(points[free].norm(dim=-1).cpu().numpy()))
        return points.shape[1] ** 0.5 * params.bound / usual if usual > 0 else None

    def cut(
        self, delta: Float[torch.Tensor, "row seq width"], items: torch.Tensor
    ) -> Float[torch.Tensor, "row seq width"]:
        """Delta brought back to where it may be."""
        return torch.minimum(torch.maximum(delta, self.low[items]), self.high[items])

    def start(self, items: Sequence[Item], starts: int = 1) -> Float[torch.Tensor, "item seq width"]:
        """Each item's own draw, whatever it stands beside; each stands there `starts` times, for a draw each."""
        drawn = np.zeros(tuple(self.points.shape))
        for row, item in enumerate(items):
            shape, start = (len(item.encoded), drawn.shape[-1]), row % starts
            # The first start is drawn as it was before there were several.
            generator = item.generator(ATTACK, start) if start else item.generator(ATTACK)
            drawn[row, : shape[0]] = generator.uniform(-START, START, shape)
        everyone = torch.arange(len(items), device=self.points.device)
        return self.cut(torch.from_numpy(drawn).to(self.points), everyone)


def space_of(model: AnyClassifier, batch: Any, items: Sequence[Item], params: AttackParams) -> Space:
    """Features move, special tokens only where that is asked for, padding never."""
    with torch.no_grad():
        points = model.points(batch, params.place)
    unit = (
        colours_to_numbers(cast(ImageClassifier, model)).to(points)
        if params.place == PIXELS
        else torch.ones(1).to(points)
    )
    free = torch.from_numpy(_free(items, points.shape[1], params.specials)).to(points.device)
    reach = (free[..., None] * params.bound).to(points.dtype).expand(points.shape)
    if params.place != PIXELS:
        return Space(params.place, points, unit, -reach, reach)
    shown = _shown(cast(ImageClassifier, model), points)
    return Space(params.place, points, unit, torch.maximum(-reach, -shown), torch.minimum(reach, 1 - shown))


def _free(items: Sequence[Item], width: int, specials: bool) -> np.ndarray:
    free = np.zeros((len(items), width), dtype=bool)
    for row, item in enumerate(items):
        free[row, : len(item.encoded)] = True if specials else ~item.encoded.special
    return free


def colours_to_numbers(model: ImageClassifier) -> Float[torch.Tensor, "pixel"]:
    """By how much the number of a pixel grows from black to full colour, pixel by pixel of a patch."""
    read = model.preprocessing
    return _by_pixel(model, 255 * read.scale / np.array(read.std))


def _shown(model: ImageClassifier, points: torch.Tensor) -> torch.Tensor:
    """The colours of pixels from 0 to 1. Special tokens have none: their bounds are 0 whatever stands here."""
    read = model.preprocessing
    mean = _by_pixel(model, np.array(read.mean) / np.array(read.std)).to(points)
    return ((points + mean) / colours_to_numbers(model).to(points)).clamp(0, 1)


def _by_pixel(model: ImageClassifier, by_channel: np.ndarray) -> Float[torch.Tensor, "pixel"]:
    return torch.from_numpy(np.repeat(by_channel, model.patch[0] * model.patch[1]))
