"""A private copy of a model whose parts can be made random, and the parts: its head, its blocks, its embeddings.

No weight is in two parts. A block is attention and MLP with their LayerNorms. The head is all after the last block, a
last LayerNorm and a pooler included; the embeddings are all before the first, their LayerNorm included. T5's relative
position bias, which all blocks share, belongs to the first block: there it is computed and initialized. So to randomize
T5's first block alone changes the attention of all.
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
from engine.randomization.stages import EMBEDDINGS, HEAD

Weights = dict[str, "torch.Tensor"]
"""By the names of parameters."""


class ModelCopy:
    """A copy of one loaded model, for one thread. Only fresh weights take memory: at most as much as the model itself.

    The loaded model, which other threads use meanwhile, is never written to. What the copy remembers of its passes is
    forgotten when other parts are randomized, and never mixes with what the loaded model remembers.
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
        """The copy with these parts as if never trained; afterwards, whatever happens, it is as before.

        A part's fresh weights depend on the seed and the part alone. The caller holds the turn.
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
        """Refuse to go on where a weight of the loaded model, or of the copy once it is restored, is another."""
        if any(fingerprint(module) != self._before for module in (self._loaded.module, self._own.module)):
            raise ExegesisError(
                f"model {self._loaded.id}: its weights changed while copies of it were randomized. "
                "Start again, and report this."
            )

    def _reinitialized(self, part: str, seed: int) -> Weights:
        if (part, seed) not in self._fresh:
            self._fresh[part, seed] = reinitialize(self._loaded, part, self.weights[part], seed)
        return self._fresh[part, seed]


def weights_of(model: AnyClassifier) -> dict[str, tuple[str, ...]]:
    """The names of the parameters of each part. Tied ones have one name."""
    names = [name for name, _ in model.module.named_parameters()]
    places = range(len(model.blocks))
    prefixes: dict[str, tuple[str, ...]] = {str(at + 1): (f"{model.adapter.blocks}.{at}.",) for at in places}
    prefixes[HEAD] = tuple(f"{name}." for name in model.adapter.after_blocks)
    by_part = {part: tuple(name for name in names if name.startswith(own)) for part, own in prefixes.items()}
    taken = {name for own in by_part.values() for name in own}
    by_part[EMBEDDINGS] = tuple(name for name in names if name not in taken)
    if not len(model.blocks):
        raise ExegesisError(
            f"model {model.id}: it has no blocks, so that none can be randomized. Choose another model."
        )
    empty = [part for part, own in by_part.items() if not own]
    if empty:
        raise ExegesisError(f"model {model.id}: no weights are known of its part {empty[0]}, so it is not randomized.")
    return by_part


def copy_of(module: torch.nn.Module) -> torch.nn.Module:
    """Modules, buffers and configuration of its own, the same parameters: it needs next to no memory."""
    return copy.deepcopy(module, {id(parameter): parameter for parameter in module.parameters()})


@contextlib.contextmanager
def replace_weights(module: torch.nn.Module, weights: Mapping[str, torch.Tensor]) -> Iterator[None]:
    """Replace parameters inside the block, also where they are tied, and restore the same objects afterwards."""
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
    """Weights of one part as if it had never been trained, by the model's own initializer, in the model's precision
    and on its device. The same seed gives the same ones on any device.

    The weights of an adapter were added to its base's when the model was loaded, so that both are gone here. What
    the initializer does not write is an error, and so is a part that it leaves as it was: a LayerNorm or a bias that
    training has left where it began stays there, matrices do not.
    """
    fresh = _initialize(model, names, seed_of(part, seed))
    unset = [name for name, values in fresh.items() if values.isnan().any()]
    if unset:
        raise ExegesisError(f"model {model.id}: its initializer does not set {unset[0]}, so it cannot be randomized.")
    fresh = {name: values.to(model.device, model.dtype) for name, values in fresh.items()}
    own = dict(model.module.named_parameters())
    if all(torch.equal(values, own[name]) for name, values in fresh.items()):
        raise ExegesisError(f"model {model.id}: its initializer leaves its part {part} as it is, so nothing is shown.")
    return fresh


def seed_of(part: str, seed: int) -> int:
    """The seed for torch: each part has draws of its own, whatever else is randomized with it."""
    return int(key_for({"kind": "fresh weights", "part": part, "seed": seed})[:15], 16)


def _initialize(model: AnyClassifier, names: Sequence[str], seed: int) -> Weights:
    # On the CPU in float32, in a copy where they are not numbers yet: so what is not written is seen. New parameters
    # also lack transformers' mark of what was loaded, for which its initializers do nothing.
    own = dict(model.module.named_parameters())
    blank = {name: torch.full(own[name].shape, torch.nan) for name in names}
    module: Any = copy_of(model.module)
    with replace_weights(module, blank), torch.random.fork_rng(devices=[]), torch.no_grad():
        torch.default_generator.manual_seed(seed)  # the CPU's alone: others may be drawing on the device
        for part in _whole_modules(module, names):
            module._init_weights(part)
        fresh = dict(module.named_parameters())
        return {name: fresh[name].detach() for name in names}


def _whole_modules(module: Any, names: Sequence[str]) -> Iterable[Any]:
    """The modules all of whose parameters are among these, children before parents, as initializers expect them."""
    wanted = set(names)
    known = {id(parameter): name for name, parameter in module.named_parameters()}
    for part in reversed(list(module.modules())):
        own = {known[id(parameter)] for parameter in part.parameters()}
        if own and own <= wanted:
            yield part
