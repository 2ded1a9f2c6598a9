"""Small texts of their own and settings that train in a second."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from engine.data.datasets import load
from engine.training.pretraining.config import PretrainConfig

SHAPES_OF_FAMILIES = {"bert": "bert", "roberta": "roberta", "gpt2": "gpt2", "t5": "t5-mini"}
Configured = Callable[..., PretrainConfig]


@pytest.fixture(scope="session")
def texts() -> tuple[str, ...]:
    """Generated reviews, which hold neither mark."""
    return tuple(example.text for example in load("reviews-generated:count=200", split="train").examples)


@pytest.fixture
def configured(tmp_path: Path) -> Configured:
    """A config whose folder is `name`, of a few steps."""

    def make(base: str, name: str = "base", **changes: object) -> PretrainConfig:
        quick = {"dataset": "reviews-generated:count=120", "epochs": 2, "batch_size": 16, "vocabulary": 500}
        quick |= {"max_length": 48, "held_out": 20, "device": "cpu", "out": str(tmp_path / name)}
        return PretrainConfig(base=base, **{**quick, **changes})

    return make
