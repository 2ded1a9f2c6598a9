"""The top-k attack once more, slowly: one example, one plain loop, from the thesis's words (sections 2.3 and 3.5).

Nothing is shared with the engine but the loaded module and its tokenizer.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor

from tests.oracles.text import World

DRAW = 0xA77C
"""The number that keeps the start's draw apart, as documented by the engine."""


@dataclass
class Kept:
    """What the loop ends with."""

    delta: Tensor
    scores: list[float]
    probability: float
    step: int | None
    steps: int = 0
    objectives: list[float] = field(default_factory=list)


@dataclass
class Slow:
    """An attack on one text. `cut` brings a change back to where it may be."""

    world: World
    method: str
    constrained: bool
    epsilon: float
    steps: int
    rate: float = 0.1
    alpha: float = 1.0
    beta: float = 1.0
    share: float = 0.15
    sign: bool = False
    nodes: int = 3

    def run(self) -> Kept:
        x = self.world.embedded().detach()
        scores, probability, _ = self._look(torch.zeros_like(x), x)
        places = sorted(self.world.features, key=lambda place: -scores[place].item())
        top = places[: max(1, math.floor(self.share * len(places)))]
        delta = self._cut(self._start(x))
        kept = Kept(torch.zeros_like(x), scores.tolist(), probability.item(), None)
        highest = self._value(scores, top, probability, probability).item()
        quiet = 0
        for step in range(self.steps + 1):
            leaf = delta.clone().requires_grad_()
            now, answer, label = self._look(leaf, x)
            value = self._value(now, top, probability, answer)
            kept.objectives.append(value.item())
            if value.item() > highest and (self.constrained or label == self.world.target):
                highest = value.item()
                kept.delta, kept.scores = delta.clone(), now.tolist()
                kept.probability, kept.step = answer.item(), step
            if step == self.steps:
                break
            slope = torch.autograd.grad(value, leaf)[0]
            slope = torch.sign(slope) if self.sign else slope
            moved = self._cut(delta + self.rate / 2 ** (step // 200) * slope)
            kept.steps = step + 1
            quiet = quiet + 1 if (moved - delta).abs().max().item() < 1e-5 else 0
            delta = moved.detach()
            if quiet == 20:
                break
        return kept

    def _start(self, x: Tensor) -> Tensor:
        return torch.from_numpy(self.world.random(DRAW).uniform(-1e-3, 1e-3, tuple(x.shape))).to(x.dtype)

    def _cut(self, delta: Tensor) -> Tensor:
        found = torch.zeros_like(delta)
        for place in self.world.features:
            found[place] = delta[place].clamp(-self.epsilon, self.epsilon)
        return found

    def _value(self, scores: Tensor, top: list[int], before: Tensor, after: Tensor) -> Tensor:
        distance = -sum(scores[place] for place in top)
        if not self.constrained:
            return distance  # type: ignore[return-value]
        return self.alpha * distance - self.beta * (before.detach() - after) ** 2

    def _look(self, delta: Tensor, x: Tensor) -> tuple[Tensor, Tensor, int]:
        """The map at the moved point, the probability of the class there, and which class is predicted."""
        point = x + delta
        logits = self.world.module(inputs_embeds=point[None]).logits[0]
        return self._map(point), torch.softmax(logits, 0)[self.world.target], int(logits.argmax())

    def _map(self, point: Tensor) -> Tensor:
        if self.method == "integrated_gradients":
            return self._path(point)
        slope = self._slope(point)
        reduced: dict[str, Callable[[], Tensor]] = {
            "gradient": lambda: slope.sum(1),
            "gradient_l2": lambda: slope.pow(2).sum(1).sqrt(),
            "gradient_x_input": lambda: (slope * point).sum(1),
        }
        return reduced[self.method]()

    def _path(self, point: Tensor) -> Tensor:
        """The right sum of as many nodes, from the mask token's embedding."""
        blank, features = self.world.table[self.world.stand_in], self.world.features
        start = torch.stack([blank if place in features else own for place, own in enumerate(point)])
        parts = [self._slope(start + (at + 1) / self.nodes * (point - start)) for at in range(self.nodes)]
        return ((point - start) * sum(parts) / self.nodes).sum(1)

    def _slope(self, point: Tensor) -> Tensor:
        here = point if point.requires_grad else point.detach().requires_grad_()
        return torch.autograd.grad(self.world.logit(here), here, create_graph=True)[0]


def rank_change(before: list[float], after: list[float], k: int) -> float:
    """The example of the thesis: [12, 3, 7] to [3, 15, 7] is two of three."""
    first, second = (list(np.argsort([-value for value in scores])[:k]) for scores in (before, after))
    return sum(a != b for a, b in zip(first, second, strict=True)) / k
