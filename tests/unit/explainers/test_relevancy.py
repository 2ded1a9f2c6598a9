"""Gradient-weighted relevancy: the rule by hand, which row is read, every family against the loops."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers

from engine.explainers.attention import gradient_weighted, pooled_rows, propagate
from engine.models.loading import classifier_class
from engine.request import Example
from tests.explaining import checkpoint, classifier, run, task_for
from tests.oracles.relevance import relevancy
from tests.tiny import FAMILIES
from tests.unit.images.checkpoints import ARCHITECTURES
from tests.unit.images.making import blobs, values_of, vit, vit_folder

TEXT = "the ending is warm"
LONGER = "the ending is warm and the plot never drags"
FIRST = torch.tensor([[[0.5, 0.5], [0.0, 1.0]]], dtype=torch.float64)
SECOND = torch.tensor([[[0.0, 2.0], [1.0, 0.0]]], dtype=torch.float64)


def test_only_what_speaks_for_the_class_counts_before_heads_are_averaged() -> None:
    attention = torch.tensor([[[[0.5, 0.5]], [[0.25, 0.75]]]])
    slope = torch.tensor([[[[2.0, -8.0]], [[4.0, 0.0]]]])
    assert gradient_weighted(attention, slope).tolist() == [[[1.0, 0.0]]]


def test_the_later_layer_multiplies_from_the_left() -> None:
    """(I + SECOND) (I + FIRST) = [[1, 2], [1, 1]] [[1.5, 0.5], [0, 2]] = [[1.5, 4.5], [1.5, 2.5]]."""
    rows = torch.eye(2, dtype=torch.float64)
    made = [propagate([FIRST, SECOND], row[None])[0].tolist() for row in rows]
    assert made == [[0.5, 4.5], [1.5, 1.5]]


@pytest.mark.parametrize("family", FAMILIES)
def test_the_row_is_the_one_where_the_model_pools(family: str) -> None:
    model = classifier(family, 3)
    batch = model.collate([model.encode(Example(text)) for text in (TEXT, LONGER)])
    rows = pooled_rows(model.adapter, batch)
    for row, length in zip(rows.tolist(), batch.lengths.tolist(), strict=True):
        last = [float(place == length - 1) for place in range(len(row))]
        mean = [(place < length) / length for place in range(len(row))]
        first = [float(place == 0) for place in range(len(row))]
        assert row == pytest.approx({"gpt2": last, "t5": mean}.get(family, first))


@pytest.mark.parametrize("family", FAMILIES)
def test_every_family_for_every_class(family: str) -> None:
    module, model = _plain(family), classifier(family, 3)
    maps = []
    for target in range(3):
        task = task_for(model, [TEXT, LONGER], target=target)
        for item, made in zip(task.items, run("attention_x_gradient", task), strict=True):
            expected = _expected(module, family, item.encoded.ids.tolist(), target)
            np.testing.assert_allclose(made.scores, expected, rtol=2e-5, atol=1e-6 * np.abs(expected).max())
            assert (made.scores >= 0).all()
            maps.append(made.scores)
    assert not np.allclose(maps[0], maps[2]), "it must depend on the class"


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_pictures(name: str) -> None:
    model = vit(name)
    module = _frozen(getattr(transformers, name), vit_folder(name))
    task = task_for(model, [blobs(0), blobs(1)], target=1)
    rows = list(range(len(model.adapter.heads)))
    for seed, made in enumerate(run("attention_x_gradient", task)):
        values = values_of(model, blobs(seed)).requires_grad_()
        expected = relevancy(module, lambda values=values: module(pixel_values=values).logits[0, 1], rows)
        assert max(expected) > 1e-3
        np.testing.assert_allclose(made.scores, expected, rtol=1e-5, atol=1e-9)


def _expected(module: Any, family: str, ids: list[int], target: int) -> np.ndarray:
    point = module.get_input_embeddings()(torch.tensor(ids)[None]).requires_grad_()
    rows = {"gpt2": [len(ids) - 1], "t5": list(range(len(ids)))}.get(family, [0])
    return np.array(relevancy(module, lambda: module(inputs_embeds=point).logits[0, target], rows))


def _plain(family: str) -> Any:
    return _frozen(classifier_class(classifier(family, 3).adapter), checkpoint(family, 3))


def _frozen(kind: Any, folder: Path) -> Any:
    """As transformers has it, in double precision, with the attention that gives its probabilities back."""
    return kind.from_pretrained(str(folder), attn_implementation="eager").double().eval().requires_grad_(False)
