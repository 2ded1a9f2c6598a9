"""Weights of a part as if it had never been trained: made by the model's own initialiser, from a seed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from cache import key_for
from engine.classifiers import AnyClassifier
from engine.errors import ExegesisError
from engine.late import torch
from engine.randomization.copying import copied, replaced

Weights = dict[str, "torch.Tensor"]
"""By the names of parameters."""


def fresh_weights(model: AnyClassifier, part: str, names: Sequence[str], seed: int) -> Weights:
    """Of one part, in the model's precision and on its device. The same seed gives the same ones on any device.

    The weights of an adapter were added to its base's when the model was loaded, so that both are gone here. What
    the initialiser does not write is an error, and so is a part that it leaves as it was: a LayerNorm or a bias that
    training has left where it began stays there, matrices do not.
    """
    made = _initialised(model, names, seed_of(part, seed))
    left = [name for name, values in made.items() if values.isnan().any()]
    if left:
        raise ExegesisError(f"model {model.id}: its initialiser does not set {left[0]}, so it cannot be randomized.")
    moved = {name: values.to(model.device, model.dtype) for name, values in made.items()}
    _check_changed(model, part, moved)
    return moved


def seed_of(part: str, seed: int) -> int:
    """What torch is seeded with: each part has draws of its own, whatever else is randomized with it."""
    return int(key_for({"kind": "fresh weights", "part": part, "seed": seed})[:15], 16)


def _initialised(model: AnyClassifier, names: Sequence[str], seed: int) -> Weights:
    # On the CPU in float32, in a copy where they are not numbers yet: so what is not written is seen. New parameters
    # also lack transformers' mark of what was loaded, for which its initialisers do nothing.
    own = dict(model.module.named_parameters())
    blank = {name: torch.full(own[name].shape, torch.nan) for name in names}
    module: Any = copied(model.module)
    with replaced(module, blank), torch.random.fork_rng(devices=[]), torch.no_grad():
        torch.default_generator.manual_seed(seed)  # the CPU's alone: others may be drawing on the device
        for part in _whole(module, names):
            module._init_weights(part)
        made = dict(module.named_parameters())
        return {name: made[name].detach() for name in names}


def _whole(module: Any, names: Sequence[str]) -> Iterable[Any]:
    """The modules all of whose parameters are among these, children before parents, as initialisers expect them."""
    wanted = set(names)
    known = {id(parameter): name for name, parameter in module.named_parameters()}
    for one in reversed(list(module.modules())):
        held = {known[id(parameter)] for parameter in one.parameters()}
        if held and held <= wanted:
            yield one


def _check_changed(model: AnyClassifier, part: str, made: Weights) -> None:
    own = dict(model.module.named_parameters())
    if all(torch.equal(values, own[name]) for name, values in made.items()):
        raise ExegesisError(f"model {model.id}: its initialiser leaves its part {part} as it is, so nothing is shown.")
