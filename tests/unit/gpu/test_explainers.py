"""Every explainer on a GPU: all of them on a family of texts and one of pictures, every family by each mechanism."""

from __future__ import annotations

import numpy as np
import pytest

from engine.registry import all_explainers
from engine.task import Attribution
from tests.explaining import forget, run_cheaply, task_for
from tests.unit.gpu.machine import KINDS, VISION, assert_same, both, inputs, loaded

WHOLE = ("gpt2", "vit")
MECHANISMS = ("integrated_gradients", "occlusion", "attention_rollout", "attention_x_gradient", "attn_lrp")
"""Gradients on a path, removal, attention read, its gradient, and other rules of the backward pass."""
EACH = [
    *((kind, method) for kind in WHOLE for method in all_explainers("image" if kind in VISION else "text")),
    *((kind, method) for kind in KINDS if kind not in WHOLE for method in MECHANISMS),
]


def maps(kind: str, method: str) -> list[Attribution]:
    """Of inputs of different lengths, which are padded; nothing that an earlier pass left is taken."""
    model = loaded(kind)
    forget(model)
    return run_cheaply(method, task_for(model, inputs(kind), seed=3))


@pytest.mark.parametrize(("kind", "method"), EACH)
def test_maps_on_a_gpu_are_those_of_the_cpu(kind: str, method: str) -> None:
    expected, got = both(lambda: maps(kind, method))
    assert_same(expected, got)
    assert any(np.any(one.scores) for one in got) or got[0].notes


@pytest.mark.parametrize("kind", KINDS)
def test_all_weights_are_on_the_gpu_and_predictions_those_of_the_cpu(kind: str) -> None:
    def predicted() -> list[tuple[float, ...]]:
        model = loaded(kind)
        tensors = [*model.module.parameters(), *model.module.buffers()]
        assert {tensor.device.type for tensor in tensors} == {model.device.type}
        return [item.prediction.logits for item in task_for(model, inputs(kind)).items]

    assert_same(*both(predicted))
