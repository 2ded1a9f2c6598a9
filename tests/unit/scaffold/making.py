"""What the tests of scaffolds share: tiny bases of every family, batches of random teachers, and short courses."""

from __future__ import annotations

import copy
import dataclasses
import functools
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from engine.models.classifier import AnyClassifier, EncodedInput
from engine.request import Example
from engine.scaffold.plan import SMAT, UNEXPLAINED, Recipe, StudentRun
from engine.scaffold.student import Student, StudentBatch, TeachingExamples, head_count
from engine.scaffold.training import StudentTraining
from engine.scaffold.training_sets import TrainingSets
from tests.explaining import classifier
from tests.tiny import FAMILIES
from tests.unit.vision.tiny_vit import ARCHITECTURES, blobs, vit

TEXTS = (
    "a quiet triumph",
    "although the plot drags, the ending is warm and funny",
    "not worth the price",
    "good food, bad service, lovely view over the harbour",
    "the acting never falters and the film is good",
    "the battery died after two days",
)
DEIT = "deit"
KINDS = (*FAMILIES, "vit", DEIT)


class ExactNorm(torch.nn.Module):
    """T5's norm without its detour through single precision."""

    def __init__(self, norm: Any) -> None:
        super().__init__()
        self.weight, self.epsilon = norm.weight, norm.variance_epsilon

    def forward(self, hidden: Tensor) -> Tensor:
        return self.weight * hidden * torch.rsqrt((hidden * hidden).mean(-1, keepdim=True) + self.epsilon)


@functools.cache
def base(kind: str, dtype: str = "float64") -> AnyClassifier:
    """A tiny random body of a family of texts or pictures, exact in double precision."""
    if kind not in FAMILIES:
        return vit(ARCHITECTURES[kind == DEIT], dtype=dtype)
    model = classifier(kind, dtype=dtype)
    module = copy.deepcopy(model.module)
    if kind == "t5" and dtype == "float64":
        for part in list(module.modules()):
            for name, child in part.named_children():
                if type(child).__name__ == "T5LayerNorm":
                    setattr(part, name, ExactNorm(child))
    return dataclasses.replace(model, module=module, memo={})


def examples_for(model: AnyClassifier, count: int = len(TEXTS), seed: int = 0) -> list[EncodedInput]:
    """Inputs of different lengths, or pictures."""
    if model.kind == "image":
        return [model.encode(blobs(seed + i)) for i in range(count)]
    return [model.encode(Example(TEXTS[i % len(TEXTS)])) for i in range(count)]


def taught(model: AnyClassifier, count: int = 4, outputs: int = 2, seed: int = 0) -> TeachingExamples:
    """Examples with answers, heads and maps of no teacher but chance."""
    examples, draw = examples_for(model, count, seed), np.random.default_rng(seed)
    heads = [draw.normal(0, 2, (head_count(model), len(example))) for example in examples]
    scores = [np.where(e.special, -np.inf, draw.normal(size=len(e))) for e in examples]
    maps = [np.exp(row) / np.exp(row).sum() for row in scores]
    return TeachingExamples(examples, draw.normal(size=(count, outputs)), heads, maps)


def batch(model: AnyClassifier, count: int = 4, outputs: int = 2, seed: int = 0) -> StudentBatch:
    return taught(model, count, outputs, seed).batch(range(count), model)


def student(model: AnyClassifier, outputs: int = 2, seed: int = 0, last_only: bool = False) -> Student:
    """With a mix and a head that are no longer at their start."""
    made = Student(model, outputs, seed, last_only)
    draw = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        made.mix.add_(torch.randn(made.mix.shape, generator=draw, dtype=torch.float64).to(made.mix.dtype))
        made.head.weight.mul_(10)
    return made


def course(
    model: AnyClassifier, outputs: int = 2, regression: bool = False, sizes: Sequence[int] = (8, 5, 9, 7)
) -> TrainingSets:
    """Four splits of examples about which chance says something."""
    parts = [taught(model, size, outputs, seed) for seed, size in enumerate(sizes)]
    return TrainingSets(model, *parts, outputs, regression)


def teaching(setting: str, seed: int = 0, given: TrainingSets | None = None, **recipe: Any) -> StudentTraining:
    """A student of a short course on a tiny BERT, in single precision."""
    settings = Recipe(**{"batch_size": 4, "epochs": 3, "inner_rate": 0.05, "outer_rate": 0.05, **recipe})
    there = given or course(base("bert", "float32"))
    return StudentTraining(_for(there, setting), StudentRun(setting, len(there.train), seed), settings)


def _for(given: TrainingSets, setting: str) -> TrainingSets:
    """As the courses of a plan give it: heads for the learned explainer, maps for a static one."""
    train = given.train
    heads, maps = (
        (train.heads if setting == SMAT else None),
        (train.maps if setting not in (SMAT, *UNEXPLAINED) else None),
    )
    return dataclasses.replace(given, train=dataclasses.replace(train, heads=heads, maps=maps))


def fingerprint(module: torch.nn.Module) -> Iterator[tuple[str, bytes]]:
    """Every weight, bit by bit."""
    for name, tensor in module.state_dict().items():
        yield name, tensor.detach().contiguous().view(torch.uint8).numpy().tobytes()
