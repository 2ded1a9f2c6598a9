"""BEE and the aggregates of Bhatt et al. once more, slowly; nothing is shared with the engine but the loaded module."""

from __future__ import annotations

import itertools
import math

import numpy as np
import torch
from torch import Tensor

from tests.oracles.text import (
    World,
    divided_path,
    gradient_at,
    integrated_gradients_auto,
    lime,
    scaled_maps,
    shapley,
)


def bee(world: World, n_trials: int = 12, n_steps: int = 17) -> np.ndarray:
    """Tuned on comprehensiveness."""
    posteriors = {arm: [1, 1] for arm in ("constant", "smoothed", "uniform", "normal", "shuffled")}
    starts: list[Tensor] = []
    flat: set[int] = set()
    values: list[float] = []
    for trial in range(n_trials):
        generator = world.random(trial)
        start = world.embedded()
        arm = ""
        if trial < 4:
            pad = world.tokenizer.pad_token_id
            pad = world.tokenizer.eos_token_id if pad is None else pad
            fixed = [world.table[world.stand_in], world.table[pad], 0 * world.table[0], world.table.mean(0)]
            drawn = torch.stack([fixed[trial]] * len(world.features))
        else:
            chances = {name: generator.beta(*counts) for name, counts in posteriors.items()}
            arm = sorted(chances, key=lambda name: chances[name])[-1]
            drawn = _draw(world, arm, start[world.features], generator)
        for place, row in zip(world.features, drawn, strict=True):
            start[place] = row
        scores = _integrate(world, start, n_steps)
        value = _comprehensiveness(world, scores)
        flat |= set() if scores.any() else {trial}
        if arm:
            beaten = sum(1.0 if value > other + 1e-5 else 0.5 if value > other - 1e-5 else 0.0 for other in values)
            posteriors[arm][0 if generator.random() < beaten / len(values) else 1] += 1
        starts.append(start)
        values.append(value)
    complete: dict[int, np.ndarray] = {}
    while True:
        highest = max(value for i, value in enumerate(values) if i not in flat)
        best = next(i for i, value in enumerate(values) if i not in flat and value > highest - 1e-5)
        if best in complete:
            return complete[best]
        complete[best] = divided_path(world, starts[best])
        values[best] = _comprehensiveness(world, complete[best])


def _draw(world: World, arm: str, x: Tensor, generator: np.random.Generator) -> Tensor:
    n = len(x)
    if arm == "constant":
        return torch.stack([world.table[int(generator.integers(len(world.table)))]] * n)
    if arm == "uniform":
        return torch.from_numpy(generator.uniform(x.min().item(), x.max().item(), tuple(x.shape))).to(x)
    if arm == "normal":
        return torch.from_numpy(generator.normal(x.mean().item(), x.std(correction=0).item(), tuple(x.shape))).to(x)
    if arm == "shuffled":
        return torch.from_numpy(generator.permutation(x.numpy()))
    sigma = generator.uniform(0.5, 3.0)
    rows = []
    for i in range(n):
        near = [math.exp(-((i - j) ** 2) / (2 * sigma**2)) for j in range(n)]
        rows.append(sum((weight / sum(near) * x[j] for j, weight in enumerate(near)), torch.zeros_like(x[0])))
    return torch.stack(rows)


def clenshaw_curtis(steps: int) -> list[tuple[float, float]]:
    """Places and weights on the way from 0 to 1."""
    nodes = -np.cos(np.pi * np.arange(steps) / (steps - 1))
    moments = [0.0 if j % 2 else 2 / (1 - j * j) for j in range(steps)]
    weights = np.linalg.solve(np.polynomial.chebyshev.chebvander(nodes, steps - 1).T, moments)
    return [((a + 1) / 2, w / 2) for a, w in zip(nodes.tolist(), weights.tolist(), strict=True)]


def _integrate(world: World, start: Tensor, steps: int) -> np.ndarray:
    x, total = world.embedded(), torch.zeros_like(start)
    for alpha, weight in clenshaw_curtis(steps):
        total += weight * gradient_at(world, start + alpha * (x - start))
    return ((x - start) * total).sum(-1).numpy()


def _comprehensiveness(world: World, scores: np.ndarray) -> float:
    own = [scores[place] for place in world.features]
    chance = np.random.default_rng([0x7135, world.seed, *world.ids]).permutation(len(own)).tolist()
    order = sorted(range(len(own)), key=lambda i: (-own[i], chance[i]))
    drops = []
    for share in (0.05, 0.1, 0.2, 0.5):
        top = order[: max(1, round(share * len(own)))]
        drops.append(
            world.probability((True,) * len(own)) - world.probability(tuple(i not in top for i in range(len(own))))
        )
    return sum(drops) / len(drops)


def entropy(scores: list[float]) -> float:
    total = sum(map(abs, scores))
    return -sum(abs(s) / total * math.log(abs(s) / total) for s in scores if s) if total else 0.0


def least_complex(world: World) -> np.ndarray:
    maps = scaled_maps(world, [lime, shapley, integrated_gradients_auto])
    mean = [sum(column) / len(maps) for column in zip(*maps, strict=True)]
    ends = [*(walk(one, mean) for one in maps), *(walk(mean, one) for one in maps)]
    lowest = min(map(entropy, ends))
    return world.spread(next(end for end in ends if entropy(end) < lowest + 1e-9))


def walk(start: list[float], end: list[float]) -> list[float]:
    """In twentieths of the way of each score."""
    steps, moving = [0] * len(start), True

    def at(steps: list[int]) -> list[float]:
        return [a + step * (b - a) / 20 for a, b, step in zip(start, end, steps, strict=True)]

    while moving:
        moving = False
        for i in range(len(start)):
            further = [step + (j == i) for j, step in enumerate(steps)]
            if further[i] <= 20 and any(at(further)) and entropy(at(further)) < entropy(at(steps)) - 1e-9:
                steps, moving = further, True
    return at(steps)


def least_sensitive(world: World, neighbors: int = 8) -> np.ndarray:
    """Over all orders of the features, in the game that is the mean of the neighbors' games."""
    x, n = world.embedded(), len(world.features)
    reach = 0.1 * x[world.features].std(correction=0).item()
    moves = []
    for number in range(neighbors):
        draw = np.random.default_rng([0x5E25, 0x0A7A0A7A, number, *world.ids])
        own = torch.from_numpy(draw.uniform(-reach, reach, tuple(x.shape)).astype(np.float32)).to(x)
        moves.append(torch.stack([row if i in world.features else 0 * row for i, row in enumerate(own)]))
    weights = [1 / math.sqrt(sum(float(v) ** 2 for v in move.flatten())) for move in moves]

    def value(kept: tuple[bool, ...]) -> float:
        total = 0.0
        for move, weight in zip(moves, weights, strict=True):
            point = x + move
            for place, keep in zip(world.features, kept, strict=True):
                if not keep:
                    point[place] = world.table[world.stand_in]
            with torch.no_grad():
                logits = world.module(inputs_embeds=point[None]).logits[0]
            total += weight / sum(weights) * torch.softmax(logits, -1)[world.target].item()
        return total

    values = {kept: value(kept) for kept in itertools.product([False, True], repeat=n)}
    scores = [0.0] * n
    for order in itertools.permutations(range(n)):
        kept = [False] * n
        for feature in order:
            before = values[tuple(kept)]
            kept[feature] = True
            scores[feature] += (values[tuple(kept)] - before) / math.factorial(n)
    return world.spread(scores)
