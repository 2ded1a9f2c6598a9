"""How far numbers of each precision on a GPU are from double precision on the CPU."""

from __future__ import annotations

import functools

import numpy as np
import pytest

from engine.task import Attribution
from tests.explaining import forget, run, run_cheaply, task_for
from tests.unit.gpu.machine import KINDS, REAL, VISION, gpu, inputs, loaded, on

BOUNDS = {"float32": 1e-5, "float16": 2e-2, "bfloat16": 0.1}
"""Of the root mean square of a map's error, relative to that of the map.

That is 84, 20 and 13 units of the last place. Measured on a CPU, whose rounding is as large but in another order: at
most 2.2e-6, 9.3e-3 and 7.0e-2. float32 rounded to TF32 would be off by as much as float16.
"""
METHODS = (
    "gradient_x_input", "integrated_gradients", "occlusion", "attention_logits", "attention_x_gradient", "attn_lrp",
    "gradient_shap",
)  # fmt: skip


def maps(kind: str, method: str, dtype: str) -> list[Attribution]:
    model = loaded(kind, dtype)
    forget(model)
    return run_cheaply(method, task_for(model, inputs(kind, 2), target=0, seed=3))


@functools.cache
def exact(kind: str, method: str) -> list[Attribution]:
    with on("cpu"):
        return maps(kind, method, "float64")


@pytest.mark.parametrize("dtype", BOUNDS)
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("kind", ["gpt2", "vit"])
def test_maps_are_as_near_to_exact_ones_as_their_precision_allows(kind: str, method: str, dtype: str) -> None:
    """T5 is left to single precision: its ReLU is on or off, so that a gradient jumps where rounding decides."""
    with gpu():
        found = maps(kind, method, dtype)
    for one, known in zip(found, exact(kind, method), strict=True):
        error = np.sqrt(np.mean((one.scores - known.scores) ** 2) / np.mean(known.scores**2))
        assert error <= BOUNDS[dtype]


@pytest.mark.skipif(REAL, reason="a real GPU does not tell what it rounds: the bounds of float32 do")
@pytest.mark.parametrize("kind", KINDS)
def test_single_precision_is_not_rounded_to_tf32(kind: str) -> None:
    with gpu() as seen:
        task = task_for(loaded(kind), inputs(kind))
        run("integrated_gradients", task, steps="fixed", n_steps=2, baseline="blur" if kind in VISION else "mask")
    assert seen.kernels
    assert not seen.rounded
