"""A private copy of a model and its parts that can be randomized: head, blocks and embeddings.

Each weight belongs to exactly one part. A block is attention and MLP with their LayerNorms. The head is everything
after the last block, including a final LayerNorm and a pooler; the embeddings are everything before the first block,
including their LayerNorm. If a language model's head shares the matrix of the embeddings (tied weights), the matrix
belongs to the embeddings; the head is then only the final LayerNorm, and randomizing the embeddings changes both. T5's
relative position bias, which all blocks share, belongs to the first block, where it is computed and initialized:
randomizing only T5's first block changes the attention of all blocks.
"""

from __future__ import annotations

import contextlib
import copy
import dataclasses
import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from cache import key_for
from engine.errors import ExegesisError
from engine.lazy import torch
from engine.models.classifier import AnyClassifier
from engine.randomization.result import EMBEDDINGS, HEAD

Weights = dict[str, "torch.Tensor"]
"""Weights by parameter name."""


class ModelCopy:
    """A copy of a loaded model for one thread. Only new weights need memory: at most as much as the model itself.

    The loaded model may be in use by other threads and is never modified. The copy has its own memo, which is cleared
    when other parts are randomized.
    """

    def __init__(self, model: AnyClassifier) -> None:
        self.weights = weights_of(model)
        self._loaded = model
        self._before = fingerprint(model.module)
        self._own: Any = dataclasses.replace(model, module=copy_of(model.module), memo={})  # type: ignore[type-var]
        self._fresh: dict[tuple[str, int], Weights] = {}
        self._now: tuple[frozenset[str], int] = (frozenset(), 0)

    @contextlib.contextmanager
    def randomized(self, parts: Sequence[str], seed: int) -> Iterator[AnyClassifier]:
        """Yield the copy with these parts reinitialized, and restore it afterwards.

        The new weights of a part depend only on the seed and the part. The caller must hold the device.
        """
        wanted = frozenset(parts), seed
        if wanted != self._now:
            self._own.memo.clear()
            self._now = wanted
        self._fresh = {key: own for key, own in self._fresh.items() if key[0] in wanted[0] and key[1] == seed}
        weights = {name: value for part in parts for name, value in self._reinitialized(part, seed).items()}
        with replace_weights(self._own.module, weights):
            yield self._own

    def check_untouched(self) -> None:
        """Raise if a weight of the loaded model, or of the restored copy, has changed."""
        if any(fingerprint(module) != self._before for module in (self._loaded.module, self._own.module)):
            raise ExegesisError(
                f"model {self._loaded.id}: its weights changed while a copy was randomized. "
                "Restart Exegesis and report this error."
            )

    def _reinitialized(self, part: str, seed: int) -> Weights:
        if (part, seed) not in self._fresh:
            self._fresh[part, seed] = reinitialize(self._loaded, part, self.weights[part], seed)
        return self._fresh[part, seed]


def weights_of(model: AnyClassifier) -> dict[str, tuple[str, ...]]:
    """The parameter names of each part. Tied parameters have one name.

    Errors: the model has no blocks, or a part without known weights.
    """
    names = [name for name, _ in model.module.named_parameters()]
    places = range(len(model.blocks))
    prefixes: dict[str, tuple[str, ...]] = {str(at + 1): (f"{model.adapter.blocks}.{at}.",) for at in places}
    prefixes[HEAD] = tuple(f"{name}." for name in model.adapter.after_blocks)
    by_part = {part: tuple(name for name in names if name.startswith(own)) for part, own in prefixes.items()}
    taken = {name for own in by_part.values() for name in own}
    by_part[EMBEDDINGS] = tuple(name for name in names if name not in taken)
    if not len(model.blocks):
        raise ExegesisError(f"model {model.id}: it has no blocks to randomize. Choose another model.")
    empty = [part for part, own in by_part.items() if not own]
    if empty:
        raise ExegesisError(f"model {model.id}: its part {empty[0]} has no known weights, so it cannot be randomized.")
    return by_part


def copy_of(module: torch.nn.Module) -> torch.nn.Module:
    """Copy modules, buffers and configuration but share the parameters, which needs almost no memory."""
    return copy.deepcopy(module, {id(parameter): parameter for parameter in module.parameters()})


@contextlib.contextmanager
def replace_weights(module: torch.nn.Module, weights: Mapping[str, torch.Tensor]) -> Iterator[None]:
    """Replace parameters inside the block, including tied ones, and restore the same objects afterwards."""
    own = dict(module.named_parameters())
    others = {id(own[name]): torch.nn.Parameter(value, requires_grad=False) for name, value in weights.items()}
    places = [
        (part, name, parameter)
        for part in module.modules()
        for name, parameter in part._parameters.items()
        if parameter is not None and id(parameter) in others
    ]
    try:
        for part, name, parameter in places:
            part._parameters[name] = others[id(parameter)]
        yield
    finally:
        for part, name, parameter in places:
            part._parameters[name] = parameter


def fingerprint(module: torch.nn.Module) -> str:
    """SHA-256 of all parameters and buffers, bit by bit, with their names."""
    digest = hashlib.sha256()
    for name, value in (*module.named_parameters(), *module.named_buffers()):
        digest.update(name.encode())
        digest.update(value.detach().contiguous().cpu().reshape(-1).view(torch.uint8).numpy().data)
    return digest.hexdigest()


def reinitialize(model: AnyClassifier, part: str, names: Sequence[str], seed: int) -> Weights:
    """Reinitialize the weights of one part with the model's own initializer, precision and device.

    The same seed gives the same weights on any device. The weights of an adapter were merged into the base when the
    model was loaded, so both are replaced. Raises if the initializer does not set a weight or leaves the whole part
    unchanged; individual LayerNorms or biases may keep their initial values.
    """
    fresh = _initialize(model, names, seed_of(part, seed))
    unset = [name for name, values in fresh.items() if values.isnan().any()]
    if unset:
        raise ExegesisError(f"model {model.id}: its initializer does not set {unset[0]}, so it cannot be randomized.")
    fresh = {name: values.to(model.device, model.dtype) for name, values in fresh.items()}
    own = dict(model.module.named_parameters())
    if all(torch.equal(values, own[name]) for name, values in fresh.items()):
        raise ExegesisError(
            f"model {model.id}: its initializer does not change its part {part}, so it cannot be randomized."
        )
    return fresh


def seed_of(part: str, seed: int) -> int:
    """The seed for torch, which depends on the part but not on what else is randomized."""
    return int(key_for({"kind": "fresh weights", "part": part, "seed": seed})[:15], 16)


def _initialize(model: AnyClassifier, names: Sequence[str], seed: int) -> Weights:
    # On the CPU in float32, in a copy filled with NaN, so that unset weights are detected. New parameters also lack
    # the flag of loaded weights, which makes transformers' initializers skip them.
    own = dict(model.module.named_parameters())
    blank = {name: torch.full(own[name].shape, torch.nan) for name in names}
    module: Any = copy_of(model.module)
    with replace_weights(module, blank), torch.random.fork_rng(devices=[]), torch.no_grad():
        torch.default_generator.manual_seed(seed)  # only the CPU's: other threads may be drawing on the device
        for part in _whole_modules(module, names):
            module._init_weights(part)
        fresh = dict(module.named_parameters())
        return {name: fresh[name].detach() for name in names}


def _whole_modules(module: Any, names: Sequence[str]) -> Iterable[Any]:
    """The modules whose parameters are all among these names, children before parents, as initializers expect."""
    wanted = set(names)
    known = {id(parameter): name for name, parameter in module.named_parameters()}
    for part in reversed(list(module.modules())):
        own = {known[id(parameter)] for parameter in part.parameters()}
        if own and own <= wanted:
            yield part
