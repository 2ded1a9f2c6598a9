"""A kind of input of the test's own goes through the engine as it is: nothing that calls it knows what it reads."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import combinations
from math import factorial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np
import pytest
import torch
from jaxtyping import Bool, Int
from safetensors.torch import load_file, save_file

from engine.data.sources import ExampleSource
from engine.errors import ExegesisError, UsageError
from engine.explain import explain, explain_many
from engine.input_kinds import INPUT_KINDS, InputKind, input_kind, kind_of_model
from engine.metrics.faithfulness import removal_curves
from engine.models import catalog
from engine.models.classifier import AnyClassifier, Classifier
from engine.predictions import predictions
from engine.registry import EXPLAINERS, all_explainers, serve
from engine.request import Input, Request
from engine.result import Prediction, Token

KIND = "numbers"
SERVED = ("gradient_x_input", "occlusion", "kernel_shap", "exact_shapley", "random")
WEIGHTS = (1.5, -2.0, 0.25, 0.0)
VALUES = (1.0, 0.5, -2.0, 3.0)


@dataclass(frozen=True)
class Numbers(Input):
    """A few numbers, each a feature."""

    kind = KIND
    values: tuple[float, ...]

    def check_length(self) -> None:
        if len(self.values) > len(WEIGHTS):
            raise UsageError(f"values: must be at most {len(WEIGHTS)} numbers, got {len(self.values)}.")

    def as_plain(self) -> dict[str, str | None]:
        return {"numbers": json.dumps(self.values)}


@dataclass(frozen=True, eq=False)
class EncodedNumbers:
    """The numbers at their places."""

    kind: ClassVar[str] = KIND
    values: tuple[float, ...]
    grid: None = None
    truncated: int = 0

    def __len__(self) -> int:
        return len(self.values)

    @cached_property
    def ids(self) -> Int[np.ndarray, "seq"]:
        return np.arange(len(self))

    @property
    def features(self) -> Int[np.ndarray, "feature"]:
        return self.ids

    @property
    def special(self) -> Bool[np.ndarray, "seq"]:
        return np.zeros(len(self), dtype=bool)

    @property
    def tokens(self) -> tuple[Token, ...]:
        return tuple(Token(f"{value:g}", 0, 0, 0, False) for value in self.values)

    @property
    def key(self) -> bytes:
        return np.array(self.values).tobytes()


@dataclass(frozen=True)
class Batch:
    """Numbers side by side, padded by zero."""

    values: torch.Tensor
    visible: torch.Tensor
    lengths: torch.Tensor
    whole: bool = False


class Nothing(torch.nn.Module):
    """No transformer: its sizes say that a row needs next to no memory."""

    config = SimpleNamespace(hidden_size=1, num_hidden_layers=1, num_attention_heads=1)


@dataclass(eq=False)
class Sum(Classifier[Numbers, EncodedNumbers, Batch]):
    """The second class wins by the weighted sum of the numbers."""

    kind = KIND
    id: str
    revision: str
    weights: torch.Tensor
    module: torch.nn.Module = field(default_factory=lambda: Nothing())
    adapter: None = None
    labels: tuple[str, ...] = ("below", "above")
    regression: bool = False
    dtype: torch.dtype = torch.float32
    device: torch.device = field(default_factory=lambda: torch.device("cpu"))
    notes: tuple[str, ...] = ()
    memo: dict[Any, Any] = field(default_factory=dict)

    @property
    def blocks(self) -> torch.nn.ModuleList:
        return torch.nn.ModuleList()

    def encode(self, example: Numbers) -> EncodedNumbers:
        return EncodedNumbers(example.values)

    def collate(self, examples: Sequence[EncodedNumbers]) -> Batch:
        width = max(map(len, examples))
        rows = [[*one.values, *(0.0 for _ in range(width - len(one)))] for one in examples]
        there = [[place < len(one) for place in range(width)] for one in examples]
        return Batch(torch.tensor(rows), torch.tensor(there), torch.tensor([len(one) for one in examples]))

    def embed(self, batch: Batch) -> torch.Tensor:
        return batch.values[..., None]

    def removal_embedding(self, batch: Batch, operator: str) -> torch.Tensor:
        return torch.zeros(1, 1, 1)

    def hidden(self, batch: Batch, embeds: torch.Tensor | None = None) -> torch.Tensor:
        return self.embed(batch) if embeds is None else embeds

    def logits(self, batch: Batch, embeds: torch.Tensor | None = None) -> torch.Tensor:
        numbers = self.hidden(batch, embeds)[..., 0]
        total = (numbers * self.weights[: numbers.shape[1]]).sum(1)
        return torch.stack([torch.zeros_like(total), total], dim=1)


class NumberKind(InputKind):
    """The adapter of the kind."""

    id = KIND
    plural = "numbers"
    feature = "number"
    units = ("number",)
    removals = ("zero",)
    baselines = ("zero",)
    incomplete = "shorter sums"

    def reads(self, config: Mapping[str, Any]) -> bool:
        return config.get("model_type") == KIND

    def embedded_models(self) -> list[str]:
        return []

    def load_model(self, model: str, dtype: str, device: torch.device | None) -> AnyClassifier:
        weights = load_file(Path(model) / "model.safetensors")["weights"]
        return Sum(model, catalog.revision(model), weights)

    def open_checkpoint(self, source: catalog.ModelSource) -> None:
        load_file(source.folder / "model.safetensors")

    def inspect_model(self, model: str) -> dict[str, Any]:
        return {"name": model, "checks": []}

    def registered_datasets(self) -> list[str]:
        return []

    def holds(self, dataset: str) -> bool:
        return False

    def is_registered(self, dataset: str) -> bool:
        return False

    def load_source(self, dataset: str, split: str | None, tolerant: bool) -> ExampleSource:
        raise ExegesisError(f"dataset: {dataset} holds no numbers.")


@pytest.fixture(autouse=True)
def numbers() -> Iterator[None]:
    """The kind is there while a test runs."""
    INPUT_KINDS[KIND] = NumberKind()
    serve(KIND, SERVED)
    yield
    del INPUT_KINDS[KIND], EXPLAINERS[KIND]


@pytest.fixture
def model(tmp_path: Path) -> str:
    """The folder of a checkpoint."""
    (tmp_path / "config.json").write_text(json.dumps({"model_type": KIND}), encoding="utf-8")
    save_file({"weights": torch.tensor(WEIGHTS)}, tmp_path / "model.safetensors")
    return str(tmp_path)


def probability(values: Sequence[float]) -> float:
    """m of the class "above"."""
    return float(1 / (1 + np.exp(-np.dot(WEIGHTS[: len(values)], values))))


def request(model: str, method: str, target: str | None = "above", **params: Any) -> Request:
    given = {"removal": "zero"} if method in ("occlusion", "kernel_shap", "exact_shapley") else {}
    return Request(model, method, Numbers(VALUES), {**given, **params}, target)


def test_the_kind_is_read_off_the_checkpoint(model: str) -> None:
    assert kind_of_model(model) == KIND
    assert kind_of_model("reviews-minilm") == "text"
    assert kind_of_model("scenes-vit") == "image"
    assert [*all_explainers(KIND)] == [*SERVED]
    with pytest.raises(ExegesisError, match="sounds"):
        input_kind("sounds")


def test_a_gradient_times_the_input_of_a_sum_is_its_terms(model: str) -> None:
    made = explain(request(model, "gradient_x_input"))
    np.testing.assert_allclose(made.scores, np.multiply(WEIGHTS, VALUES), rtol=1e-6)
    assert [token.text for token in made.tokens] == ["1", "0.5", "-2", "3"]
    assert explain(request(model, "gradient_x_input")).cached


def test_removing_a_number_is_the_difference_by_hand(model: str) -> None:
    without = [probability([v if at != place else 0 for at, v in enumerate(VALUES)]) for place in range(len(VALUES))]
    made = explain(request(model, "occlusion"))
    np.testing.assert_allclose(made.scores, probability(VALUES) - np.array(without), rtol=1e-5, atol=1e-7)


def test_kernel_shap_is_exact_shapley_by_hand(model: str) -> None:
    n, exact = len(VALUES), np.zeros(len(VALUES))
    for place in range(n):
        others = [other for other in range(n) if other != place]
        for size in range(n):
            for chosen in combinations(others, size):
                share = factorial(size) * factorial(n - size - 1) / factorial(n)
                kept = [VALUES[at] if at in chosen else 0.0 for at in range(n)]
                more = [VALUES[at] if at in (*chosen, place) else 0.0 for at in range(n)]
                exact[place] += share * (probability(more) - probability(kept))
    by_method = explain_many([request(model, method) for method in ("kernel_shap", "exact_shapley")])
    for made in by_method:
        np.testing.assert_allclose(made.scores, exact, rtol=1e-5, atol=1e-7)
        assert made.check is not None
        assert made.check.ok


def test_predictions_and_removal_curves_follow(model: str) -> None:
    several = [Numbers(VALUES), Numbers(VALUES[:2]), Numbers((-3.0,))]
    for example, made in zip(several, predictions(model, several), strict=True):
        assert isinstance(made, Prediction)
        assert made.probabilities[1] == pytest.approx(probability(example.values), rel=1e-5)
    [curve] = removal_curves([request(model, "gradient_x_input")], percents=(0, 50, 100))
    assert curve.removed == (0, 2, 4)
    kept = [0.0, 0.5, -2.0, 0.0]  # 1 x 1.5 and 3 x 0 go first
    np.testing.assert_allclose(curve.values, [probability(VALUES), probability(kept), 0.5], rtol=1e-5)


def test_what_is_not_of_the_kind_is_refused(model: str) -> None:
    with pytest.raises(UsageError, match="at most 4 numbers"):
        explain(Request(model, "random", Numbers((1.0,) * 5)))
    with pytest.raises(UsageError, match="mask"):
        explain(request(model, "occlusion", removal="mask"))
    with pytest.raises(ExegesisError, match="lime"):
        explain(request(model, "lime"))
