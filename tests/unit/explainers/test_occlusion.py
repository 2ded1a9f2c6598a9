"""Occlusion: its windows by hand, and Captum where the definitions are the same."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from captum.attr import FeatureAblation, Occlusion
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from engine.explainers.perturbation import windows
from tests.explaining import classifier, run, task_for
from tests.tiny import FAMILIES

TEXT = "the ending is warm"


@pytest.mark.parametrize("family", FAMILIES)
def test_against_captum(family: str) -> None:
    model = classifier(family, 3)
    task = task_for(model, [TEXT], target=1)
    encoded = task.examples[0]
    x = model.embed(model.collate([encoded]))
    places = torch.arange(len(encoded))[None, :, None].expand(x.shape)
    start = model.embedding.weight[model.mask_id].expand(x.shape)

    def m(embeds: Tensor) -> Tensor:
        return torch.softmax(model.logits(model.collate([encoded] * len(embeds)), embeds), -1)[:, 1]

    with torch.no_grad():
        ablated = FeatureAblation(m).attribute(x, start, feature_mask=places)[0, :, 0]
        slid = Occlusion(m).attribute(x, (1, x.shape[-1]), (1, x.shape[-1]), baselines=start)[0, :, 0]
    (made,) = run("occlusion", task)
    np.testing.assert_allclose(made.scores[encoded.features], ablated[encoded.features], atol=1e-6)
    np.testing.assert_allclose(made.scores[encoded.features], slid[encoded.features], atol=1e-6)


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 12), st.integers(1, 15))
def test_windows_hold_neighbours_and_cover_all(n: int, width: int) -> None:
    rows = windows((n,), width)
    assert rows.shape == (max(1, n - width + 1), n)
    assert (rows.sum(1) == min(n, width)).all()
    assert rows.any(0).all()
    assert all((np.diff(np.flatnonzero(row)) == 1).all() for row in rows)


def test_occlusion_with_a_window_by_hand() -> None:
    task = task_for(classifier("bert", 3), ["the ending is warm"])
    n = len(task.examples[0].features)
    keep = np.ones((n, n), dtype=bool)
    for i in range(n - 1):
        keep[i + 1, i : i + 2] = False
    value = task.masked_values([keep], "pad")[0]
    drop = value[0] - value[1:]
    expected = [drop[0], *((drop[i - 1] + drop[i]) / 2 for i in range(1, n - 1)), drop[-1]]
    (made,) = run("occlusion", task, removal="pad", window=2)
    np.testing.assert_allclose(made.scores[task.examples[0].features], expected, atol=1e-12)
    assert made.evaluations == n
