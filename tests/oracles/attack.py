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
    """What the loop ends with. `logits`: at the kept step; `label`: predicted at the last one."""

    delta: Tensor
    scores: list[float]
    probability: float
    step: int | None
    logits: Tensor
    highest: float
    steps: int = 0
    start: int = 0
    label: int = -1
    objectives: list[float] = field(default_factory=list)


@dataclass
class Slow:
    """An attack on one text, from one start after the other. `cut` brings a change back to where it may be."""

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
    quantity: str = "mixed"
    starts: int = 1

    def run(self) -> Kept:
        """Of starts that found something or stayed in the class those that keep the constraint, then the highest."""
        every = [self._from(start) for start in range(self.starts)]
        sound = [one for one in every if not self._failed(one)] or every
        valid = [one for one in sound if self._valid(one)] or sound
        return max(valid, key=lambda one: (one.highest, -one.start))

    def _failed(self, one: Kept) -> bool:
        return one.step in (None, 0) and not self.constrained and one.label != self.world.target

    def _valid(self, one: Kept) -> bool:
        before = torch.softmax(self.world.module(inputs_embeds=self.world.embedded()[None]).logits[0], 0)
        near = abs(before[self.world.target].item() - one.probability) <= 0.05
        return int(one.logits.argmax()) == self.world.target and (near or not self.constrained)

    def _from(self, start: int) -> Kept:
        x = self.world.embedded().detach()
        scores, logits = self._look(torch.zeros_like(x), x)
        kept_answer = self._answer(logits)
        places = sorted(self.world.features, key=lambda place: -scores[place].item())
        top = places[: max(1, math.floor(self.share * len(places)))]
        delta = self._cut(self._start(x, start))
        value = self._value(scores, top, kept_answer, kept_answer).item()
        kept = Kept(torch.zeros_like(x), scores.tolist(), self._probability(logits).item(), None, logits, value)
        kept.start = start
        quiet = 0
        for step in range(self.steps + 1):
            leaf = delta.clone().requires_grad_()
            now, logits = self._look(leaf, x)
            value = self._value(now, top, kept_answer, self._answer(logits))
            kept.objectives.append(value.item())
            kept.label = int(logits.argmax())
            if value.item() > kept.highest and (self.constrained or kept.label == self.world.target):
                kept.highest, kept.logits = value.item(), logits.detach()
                kept.delta, kept.scores = delta.clone(), now.tolist()
                kept.probability, kept.step = self._probability(logits).item(), step
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

    def _start(self, x: Tensor, start: int) -> Tensor:
        part = (DRAW, start) if start > 0 else (DRAW,)
        return torch.from_numpy(self.world.random(*part).uniform(-1e-3, 1e-3, tuple(x.shape))).to(x.dtype)

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

    def _look(self, delta: Tensor, x: Tensor) -> tuple[Tensor, Tensor]:
        """The map at the moved point, and the logits there."""
        point = x + delta
        return self._map(point), self.world.module(inputs_embeds=point[None]).logits[0]

    def _probability(self, logits: Tensor) -> Tensor:
        return torch.softmax(logits, 0)[self.world.target]

    def _answer(self, logits: Tensor) -> Tensor:
        """What the penalty keeps."""
        return logits[self.world.target] if self.quantity == "logit" else self._probability(logits)

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
        logits = self.world.module(inputs_embeds=here[None]).logits[0]
        explained = self._probability(logits) if self.quantity == "probability" else logits[self.world.target]
        return torch.autograd.grad(explained, here, create_graph=True)[0]


def rank_change(before: list[float], after: list[float], k: int) -> float:
    """The example of the thesis: [12, 3, 7] to [3, 15, 7] is two of three."""
    first, second = (list(np.argsort([-value for value in scores])[:k]) for scores in (before, after))
    return sum(a != b for a, b in zip(first, second, strict=True)) / k
