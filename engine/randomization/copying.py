"""A model's structure copied and its weights shared: in the copy they can be replaced, and the model is not touched."""

from __future__ import annotations

import contextlib
import copy
import hashlib
from collections.abc import Iterator, Mapping

from engine.late import torch


def copied(module: torch.nn.Module) -> torch.nn.Module:
    """Modules, buffers and configuration of its own, the same parameters: it needs next to no memory."""
    return copy.deepcopy(module, {id(parameter): parameter for parameter in module.parameters()})


@contextlib.contextmanager
def replaced(module: torch.nn.Module, weights: Mapping[str, torch.Tensor]) -> Iterator[None]:
    """Parameters are others inside, also where they are tied, and the very same as before afterwards."""
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
