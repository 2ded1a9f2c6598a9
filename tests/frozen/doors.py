"""All that the frozen tests import of the project: its public doors. Where one moves, this file alone follows.

The command line, the kinds of jobs, cache keys, each page's link. Nothing that is behind them is named here.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

import cache.keys
from engine.attacks.attack import AttackRequest
from engine.attacks.attack import key_of as attack_key
from engine.attacks.transfer import key_of as transfer_key
from engine.errors import ExegesisError
from engine.explain import key_of as explanation_key
from engine.heads.scales import HeadScales
from engine.heads.switching import key_of as switching_key
from engine.jobs import kind_of
from engine.metrics.disagreement import disagreement_keys
from engine.models import catalog
from engine.predictions import keys_by_digest, prediction_keys
from engine.registry import explainer
from engine.request import Example, Input, Picture, Request

__all__ = [
    "AttackRequest",
    "Example",
    "ExegesisError",
    "HeadScales",
    "Input",
    "Picture",
    "Request",
    "attack_key",
    "catalog",
    "disagreement_keys",
    "explanation_key",
    "keys_by_digest",
    "prediction_keys",
    "switching_key",
    "transfer_key",
]


def told(error: Exception) -> str:
    """What an error says, without the list of all methods, which may grow."""
    return re.sub(r"(?<=Known: )attention_head, [^.]*", "(methods)", str(error))


def picture(height: int = 12, width: int = 16, step: int = 7) -> Picture:
    """A made-up picture, the same on every machine."""
    numbers = np.arange(height * width * 3, dtype=np.int64) * step % 256
    return Picture(numbers.astype(np.uint8).reshape(height, width, 3))


def options(kind: str, method: str) -> dict[str, dict[str, Any]]:
    """The parameters of a method: default, limits, choices."""
    return {
        one.name: {"default": one.default, **{name: one.metadata.get(name) for name in ("low", "high", "choices")}}
        for one in dataclasses.fields(explainer(method, kind).params)
    }


@contextlib.contextmanager
def key_parts() -> Iterator[dict[str, Any]]:
    """What each key that is formed meanwhile stands for, by the key."""
    formed: dict[str, Any] = {}
    canonical = cache.keys.canonical

    def noted(value: object) -> bytes:
        text = canonical(value)
        formed[cache.keys.hashlib.sha256(text).hexdigest()] = json.loads(text)
        return text

    cache.keys.canonical = noted
    try:
        yield formed
    finally:
        cache.keys.canonical = canonical


def units(kind: str, spec: Mapping[str, Any]) -> list[list[Any]]:
    """The units of a job: key, label, whether it stores its result itself, number of its batch, its step."""
    batches: dict[int, int] = {}
    made = list(kind_of(kind).plan(spec))
    return [
        [
            unit.key,
            unit.label,
            unit.stores_itself,
            None if unit.batch is None else batches.setdefault(id(unit.batch), len(batches)),
            None if unit.step is None else list(dataclasses.astuple(unit.step)),
        ]
        for unit in made
    ]


def title(kind: str, spec: Mapping[str, Any]) -> str:
    """What a job is called."""
    return kind_of(kind).title(spec)


def refusal(kind: str, spec: Mapping[str, Any]) -> str:
    """Why such a job is not entered; empty where it is."""
    try:
        kind_of(kind).check(spec)
    except ExegesisError as error:
        return told(error)
    return ""
