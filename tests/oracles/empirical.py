"""The map of a made-up empirical explainer once more: levels of the module itself, sums in loops."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from tests.oracles.text import World

BLOCKS = {"bert": "bert.encoder.layer", "gpt2": "transformer.h", "t5": "encoder.block"}


def empirical(world: World) -> np.ndarray:
    """Gradient x input at each level, its shares, then 1 and the state after two thirds of the blocks of the class."""
    levels: list[torch.Tensor] = []

    def keep(_: Any, args: tuple[torch.Tensor, ...], kwargs: Any) -> None:
        levels.append(args[0])

    blocks = world.module.get_submodule(BLOCKS[world.family])
    hooks = [block.register_forward_pre_hook(keep, with_kwargs=True) for block in blocks]
    embeds = world.embedded().detach().requires_grad_()
    logit = world.module(inputs_embeds=embeds[None]).logits[0, world.target]
    for hook in hooks:
        hook.remove()
    states = [embeds, *(level for level in levels)]
    slopes = torch.autograd.grad(logit, states)
    table = [[[float(n) for n in row] for row in one.detach().reshape(len(world.ids), -1)] for one in states]
    grads = [[[float(n) for n in row] for row in one.reshape(len(world.ids), -1)] for one in slopes]
    sums = [[sum(a * b for a, b in zip(table[level][i], grads[level][i], strict=True)) for level in range(len(states))]
            for i in range(len(world.ids))]  # fmt: skip
    labels = world.module(inputs_embeds=embeds[None]).logits.shape[1]
    level = min(1 + round(2 * len(blocks) / 3), len(blocks))
    width = len(table[0][0]) + 1
    count = 2 * len(states) + labels * width
    weights = np.random.default_rng(count).normal(0, 1 / np.sqrt(count), count).astype(np.float32).astype(float)
    scores = []
    for i in world.features:
        score = 0.0
        for at in range(len(states)):
            whole = sum(abs(sums[j][at]) for j in world.features)
            score += float(weights[at]) * sums[i][at] + float(weights[len(states) + at]) * sums[i][at] / whole
        own = weights[2 * len(states) + world.target * width :][:width]
        score += sum(float(w) * x for w, x in zip(own, [1.0, *table[level][i]], strict=True))
        scores.append(score)
    return world.spread(scores)
