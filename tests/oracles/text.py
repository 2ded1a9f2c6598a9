"""Every text explainer once more, slowly: one row at a time, in loops, straight from its definition.

Nothing is shared with the engine but the loaded module and its tokenizer.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import torch
from sklearn.linear_model import Ridge
from torch import Tensor

from tests.learned import made_up

Grid = list[list[list[list[float]]]]
"""A number for each [layer][head][query][key]."""


@dataclass(frozen=True, eq=False)
class World:
    """A module with its tokenizer, and one text with a class."""

    family: str
    module: Any
    tokenizer: Any
    text: str
    target: int
    seed: int

    @property
    def ids(self) -> list[int]:
        return list(self.tokenizer(self.text)["input_ids"])

    @property
    def features(self) -> list[int]:
        special = self.tokenizer(self.text, return_special_tokens_mask=True)["special_tokens_mask"]
        return [i for i, mark in enumerate(special) if not mark]

    @property
    def table(self) -> Tensor:
        return self.module.get_input_embeddings().weight

    def embedded(self) -> Tensor:
        return torch.stack([self.table[i] for i in self.ids])

    def logit(self, embeds: Tensor) -> Tensor:
        return self.module(inputs_embeds=embeds[None]).logits[0, self.target]

    @functools.cache  # noqa: B019  (a few worlds in a test run)
    def probability(self, kept: tuple[bool, ...]) -> float:
        """m with the mask token (or pad, or end of text) in the place of each feature that is not kept."""
        embeds = self.embedded()
        for place, keep in zip(self.features, kept, strict=True):
            if not keep:
                embeds[place] = self.table[self.stand_in]
        with torch.no_grad():
            logits = self.module(inputs_embeds=embeds[None]).logits[0].tolist()
        shares = [math.exp(value - max(logits)) for value in logits]
        return shares[self.target] / sum(shares)

    @property
    def stand_in(self) -> int:
        named = self.tokenizer
        for candidate in (named.mask_token_id, named.pad_token_id, named.eos_token_id):
            if candidate is not None:
                return candidate
        raise ValueError("no token stands for a removed one")

    def random(self, *part: int) -> np.random.Generator:
        return np.random.default_rng([self.seed, *self.ids, *part])

    def spread(self, values: list[float]) -> np.ndarray:
        """Scores of the features as scores of all positions."""
        scores = np.zeros(len(self.ids))
        for place, value in zip(self.features, values, strict=True):
            scores[place] = value
        return scores


def gradient_at(world: World, embeds: Tensor) -> Tensor:
    point = embeds.detach().clone().requires_grad_()
    return torch.autograd.grad(world.logit(point), point)[0]


def gradient(world: World) -> np.ndarray:
    return np.array([sum(row.tolist()) for row in gradient_at(world, world.embedded())])


def gradient_l2(world: World) -> np.ndarray:
    return np.array([math.sqrt(sum(v * v for v in row.tolist())) for row in gradient_at(world, world.embedded())])


def gradient_x_input(world: World) -> np.ndarray:
    x = world.embedded()
    rows = zip(x, gradient_at(world, x), strict=True)
    return np.array([sum(a * b for a, b in zip(word.tolist(), g.tolist(), strict=True)) for word, g in rows])


def smoothgrad(world: World, n_samples: int = 32, noise: float = 0.15) -> np.ndarray:
    x = world.embedded()
    sigma = noise * (x.max().item() - x.min().item())
    total = torch.zeros_like(x)
    for sample in range(n_samples):
        drawn = torch.from_numpy(world.random(sample).standard_normal(tuple(x.shape))) * sigma
        moved = x.clone()
        for place in world.features:
            moved[place] = moved[place] + drawn[place].to(x.dtype)
        total += gradient_at(world, moved)
    return np.array([math.sqrt(sum((v / n_samples) ** 2 for v in row.tolist())) for row in total])


def _path(world: World, rule: list[tuple[float, float]]) -> np.ndarray:
    x, start = world.embedded(), baseline(world)
    total = torch.zeros_like(x)
    for alpha, weight in rule:
        total += weight * gradient_at(world, start + alpha * (x - start))
    return ((x - start) * total).sum(-1).numpy()


def integrated_gradients(world: World, intervals: int = 200) -> np.ndarray:
    """By Simpson's rule, which the engine does not have."""
    weights = [1, *([4, 2] * (intervals // 2 - 1)), 4, 1]
    return _path(world, [(i / intervals, w / (3 * intervals)) for i, w in enumerate(weights)])


def baseline(world: World) -> Tensor:
    """The text with each word's embedding replaced by that of the stand-in."""
    start = world.embedded().clone()
    for place in world.features:
        start[place] = world.table[world.stand_in]
    return start


@functools.cache
def integrated_gradients_auto(world: World) -> np.ndarray:
    """As the default of the engine."""
    return divided_path(world, baseline(world))


def divided_path(world: World, start: Tensor) -> np.ndarray:
    """By Boole's rule on intervals; those with 70% of the error are halved until all is known to 1%."""
    x = world.embedded()
    known: dict[Fraction, tuple[np.ndarray, float]] = {}

    def at(place: Fraction) -> tuple[np.ndarray, float]:
        if place not in known:
            point = start + float(place) * (x - start)
            slope = ((x - start) * gradient_at(world, point)).sum(-1).numpy()
            known[place] = slope, world.logit(point).item()
        return known[place]

    def rules(left: Fraction, right: Fraction) -> tuple[np.ndarray, np.ndarray, float]:
        width = right - left
        slopes = [at(left + width * quarter / 4)[0] for quarter in range(5)]
        boole = sum(w * one for w, one in zip([7, 32, 12, 32, 7], slopes, strict=True)) / 90 * float(width)
        simpson = (slopes[0] + 4 * slopes[2] + slopes[4]) / 6 * float(width)
        return boole, boole - simpson, at(right)[1] - at(left)[1]

    parts = [(Fraction(i, 8), Fraction(i + 1, 8)) for i in range(8)]
    while True:
        found = [rules(*part) for part in parts]
        scores = np.sum([boole for boole, _, _ in found], axis=0)
        largest, change = np.abs(scores).max(), max(abs(at(Fraction(1))[1] - at(Fraction(0))[1]), 1e-3)
        gap = abs(scores.sum() - (at(Fraction(1))[1] - at(Fraction(0))[1])) / change
        off = np.abs(np.sum([difference for _, difference, _ in found], axis=0)).max() / largest
        if (gap < 0.01 and off < 0.01) or len(parts) >= 256:
            return scores
        errors = [max(abs(b.sum() - d) / change, np.abs(e).max() / largest) for b, e, d in found]
        halved, total = set(), 0.0
        for part in sorted(range(len(parts)), key=lambda one: -errors[one]):
            if total >= 0.7 * sum(errors) or len(parts) + len(halved) == 256:
                break
            halved.add(part)
            total += errors[part]
        parts = [
            half
            for part, (left, right) in enumerate(parts)
            for half in (
                [(left, (left + right) / 2), ((left + right) / 2, right)] if part in halved else [(left, right)]
            )
        ]


def occlusion(world: World) -> np.ndarray:
    n = len(world.features)
    whole = world.probability((True,) * n)
    return world.spread([whole - world.probability(tuple(j != i for j in range(n))) for i in range(n)])


@functools.cache
def lime(world: World, n_samples: int = 512, width: float = 25.0, penalty: float = 1.0) -> np.ndarray:
    n = len(world.features)
    generator = world.random()
    counts = generator.integers(1, n + 1, size=n_samples - 1)
    order = generator.random((n_samples - 1, n))
    rows, values, weights = [], [], []
    for sample in range(n_samples):
        kept = [True] * n
        if sample:
            for lowest in sorted(range(n), key=lambda i: order[sample - 1, i])[: counts[sample - 1]]:
                kept[lowest] = False
        distance = 100 * (1 - math.sqrt(sum(kept) / n))
        rows.append([float(k) for k in kept])
        values.append(world.probability(tuple(kept)))
        weights.append(math.sqrt(math.exp(-(distance**2) / width**2)))
    return world.spread(Ridge(alpha=penalty).fit(rows, values, sample_weight=weights).coef_.tolist())


@functools.cache
def shapley(world: World) -> np.ndarray:
    """The mean marginal contribution over all orders of the features, which have to be few."""
    n = len(world.features)
    value = {kept: world.probability(kept) for kept in itertools.product([False, True], repeat=n)}
    total = [0.0] * n
    for order in itertools.permutations(range(n)):
        kept = [False] * n
        for feature in order:
            before = value[tuple(kept)]
            kept[feature] = True
            total[feature] += value[tuple(kept)] - before
    return world.spread([t / math.factorial(n) for t in total])


def random(world: World) -> np.ndarray:
    return world.spread([float(rank) + 1 for rank in world.random().permutation(len(world.features))])


def attention_mean(world: World) -> np.ndarray:
    grid = probabilities(world)
    rows = [row for layer in grid for head in layer for row in head]
    return np.array([sum(row[i] for row in rows) / len(rows) for i in range(len(world.ids))])


def attention_last_layer(world: World) -> np.ndarray:
    rows = [row for head in probabilities(world)[-1] for row in head]
    return np.array([sum(row[i] for row in rows) / len(rows) for i in range(len(world.ids))])


def attention_head(world: World) -> np.ndarray:
    rows = probabilities(world)[0][0]
    return np.array([sum(row[i] for row in rows) / len(rows) for i in range(len(world.ids))])


def attention_logits(world: World, layers: slice = slice(None)) -> np.ndarray:
    heads = [head for layer in logits(world)[layers] for head in layer]
    return _weighted(world, heads, [1 / len(heads)] * len(heads))


def smat(world: World) -> np.ndarray:
    """With the made-up explainer of the model's shape, and sparsemax as its definition has it (a threshold sought)."""
    grid = logits(world)
    phi = made_up(shape=(len(grid), len(grid[0]))).phi.tolist()
    low, high = min(phi) - 1, max(phi)
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if sum(max(one - middle, 0) for one in phi) > 1 else (low, middle)
    return _weighted(world, [head for layer in grid for head in layer], [max(one - low, 0) for one in phi])


def _weighted(world: World, heads: list[list[list[float]]], weights: list[float]) -> np.ndarray:
    causal = world.family == "gpt2"
    sums = []
    for key in world.features:
        total = 0.0
        for head, weight in zip(heads, weights, strict=True):
            seen = [head[q][key] for q in range(len(world.ids)) if not causal or q >= key]
            total += weight * sum(seen) / len(seen)
        sums.append(total)
    return world.spread(_softmax(sums))


def attention_logits_last(world: World) -> np.ndarray:
    return attention_logits(world, slice(-1, None))


def attention_rollout(world: World) -> np.ndarray:
    grid, n = probabilities(world), len(world.ids)
    flow = [[float(i == j) for j in range(n)] for i in range(n)]
    for layer in grid:
        mean = [[sum(head[i][j] for head in layer) / len(layer) for j in range(n)] for i in range(n)]
        flow = [[sum(mean[i][k] * flow[k][j] for k in range(n)) for j in range(n)] for i in range(n)]
    return np.array([sum(flow[i][j] for i in range(n)) / n for j in range(n)])


def ensemble_top3(world: World) -> np.ndarray:
    return _ensemble(world, [lime, shapley, integrated_gradients_auto])


def ensemble_all(world: World) -> np.ndarray:
    cheap: list[Callable[[World], np.ndarray]] = [gradient, gradient_x_input, attention_mean, attention_rollout]
    return _ensemble(world, [lime, shapley, integrated_gradients_auto, *cheap])


def _ensemble(world: World, members: list[Callable[[World], np.ndarray]]) -> np.ndarray:
    maps = scaled_maps(world, members)
    return world.spread([sum(m[i] for m in maps) / len(maps) for i in range(len(world.features))])


def scaled_maps(world: World, members: list[Callable[[World], np.ndarray]]) -> list[list[float]]:
    """The scores of the features by each member, divided by their sum of absolute values."""
    maps = []
    for member in members:
        everywhere = member(world)
        scores = [float(everywhere[i]) for i in world.features]
        total = sum(abs(s) for s in scores)
        if total > 1e-9:  # a sum that is zero by construction is left out
            maps.append([s / total for s in scores])
    return maps


@functools.cache
def probabilities(world: World) -> Grid:
    """Softmax of the logits over the keys that a query may attend to."""
    causal = world.family == "gpt2"
    made = []
    for layer in logits(world):
        heads = []
        for head in layer:
            rows = [_softmax(row[: q + 1] if causal else row) for q, row in enumerate(head)]
            heads.append([row + [0.0] * (len(world.ids) - len(row)) for row in rows])
        made.append(heads)
    return made


def logits(world: World) -> Grid:
    """Queries times keys, head by head, from each block's input."""
    with torch.no_grad():
        body = world.module.base_model if world.family != "t5" else world.module.encoder
        out = body(inputs_embeds=world.embedded()[None], output_hidden_states=True)
        return [_PROJECTIONS[world.family](world, layer, out.hidden_states[layer][0]) for layer in range(3)]


def _bert(world: World, layer: int, hidden: Tensor) -> list[list[list[float]]]:
    own = world.module.bert.encoder.layer[layer].attention.self
    return _products(own.query(hidden), own.key(hidden), 4, 1 / math.sqrt(24 / 4))


def _gpt2(world: World, layer: int, hidden: Tensor) -> list[list[list[float]]]:
    block = world.module.transformer.h[layer]
    query, key, _ = block.attn.c_attn(block.ln_1(hidden)).split(24, dim=-1)
    return _products(query, key, 4, 1 / math.sqrt(24 / 4))


def _t5(world: World, layer: int, hidden: Tensor) -> list[list[list[float]]]:
    block = world.module.encoder.block[layer].layer[0]
    normed = block.layer_norm(hidden)
    own = block.SelfAttention
    heads = _products(own.q(normed), own.k(normed), 4, 1.0)  # T5 does not scale
    first = world.module.encoder.block[0].layer[0].SelfAttention
    for head, query, key in itertools.product(range(4), range(len(hidden)), range(len(hidden))):
        bucket = first._relative_position_bucket(torch.tensor(key - query), num_buckets=32, max_distance=128)
        heads[head][query][key] += first.relative_attention_bias.weight[bucket, head].item()
    return heads


def _products(query: Tensor, key: Tensor, heads: int, scale: float) -> list[list[list[float]]]:
    size = query.shape[-1] // heads
    made = []
    for head in range(heads):
        part = slice(head * size, (head + 1) * size)
        made.append([[float(q[part] @ k[part]) * scale for k in key] for q in query])
    return made


def _softmax(values: list[float]) -> list[float]:
    top = max(values)
    shares = [math.exp(v - top) for v in values]
    return [s / sum(shares) for s in shares]


_PROJECTIONS = {"bert": _bert, "gpt2": _gpt2, "t5": _t5}
