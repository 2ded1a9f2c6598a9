"""Embedding maps: representations as plain transformers computes them, PCA as scikit-learn, and what is refused."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
import transformers
from sklearn.decomposition import PCA as ReferencePCA

import engine.data.embedding_map as module
from engine.data.datasets import load
from engine.data.embedding_map import (
    LEAST_EXAMPLES,
    MOST_EXAMPLES,
    NEIGHBORS,
    PCA,
    UMAP,
    embedding_map,
    head_inputs,
    map_key,
    principal_components,
    projections,
    representations,
    sampled_places,
)
from engine.errors import ExegesisError, UsageError
from engine.models.loading import load_image_model
from engine.store import result_store
from tests.explaining import checkpoint, classifier, fingerprint
from tests.tiny import CORPUS, save_checkpoint
from tests.unit.vision.tiny_families import ZERO_SHOT, family_model, plain_family, zero_shot_name
from tests.unit.vision.tiny_vit import ARCHITECTURES, blobs, vit

pytestmark = pytest.mark.usefixtures("home")

TEXT_HEADS: dict[str, Callable[[Any, Any], torch.Tensor]] = {
    "bert": lambda model, inputs: model.bert(**inputs).pooler_output,
    "roberta": lambda model, inputs: model.roberta(**inputs).last_hidden_state[:, 0],
    "distilbert": lambda model, inputs: model.pre_classifier(model.distilbert(**inputs)[0][:, 0]).relu(),
    "gpt2": lambda model, inputs: model.transformer(**inputs).last_hidden_state[:, -1],
}
"""What the last module of a head reads, by the plain model alone."""


def written(folder: Path, texts: list[str]) -> str:
    file = folder / "own.jsonl"
    file.write_text("".join(json.dumps({"text": text, "label": at % 2}) + "\n" for at, text in enumerate(texts)))
    return str(file)


@pytest.mark.parametrize("family", TEXT_HEADS)
def test_texts_are_pooled_as_plain_transformers_does_and_the_head_gives_the_logits(family: str, tmp_path: Path) -> None:
    folder = str(checkpoint(family))
    plain = transformers.AutoModelForSequenceClassification.from_pretrained(folder).eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    own = representations(folder, load(written(tmp_path, CORPUS)))
    assert own.places.tolist() == list(range(len(CORPUS)))
    head = plain.get_submodule(classifier(family).adapter.head[-1])
    with torch.inference_mode():
        for text, vector in zip(CORPUS, own.vectors, strict=True):
            inputs = tokenizer(text, return_tensors="pt", return_token_type_ids=family == "bert")
            np.testing.assert_allclose(vector, TEXT_HEADS[family](plain, inputs)[0], atol=2e-5)
            pooled = torch.from_numpy(vector)[None]
            logits = head(pooled[:, None] if family == "roberta" else pooled)
            np.testing.assert_allclose(logits, plain(**inputs).logits, atol=1e-4)


@pytest.mark.parametrize("family", ["dinov2", "clip", "swin"])
def test_pictures_times_the_plain_head_are_the_plain_logits(family: str) -> None:
    model, plain = family_model(family), plain_family(family)
    before = fingerprint(model)
    encoded = [model.encode(blobs(seed, 30, 41)) for seed in range(3)]
    vectors = torch.from_numpy(head_inputs(model, encoded)).double()
    with torch.inference_mode():
        wanted = plain(pixel_values=model.collate(encoded).pictures).logits
        np.testing.assert_allclose(plain.classifier(vectors), wanted, atol=1e-5)
    assert fingerprint(model) == before


def test_two_heads_read_a_half_of_the_vector_each() -> None:
    model = vit(ARCHITECTURES[2])
    encoded = [model.encode(blobs(seed)) for seed in range(3)]
    halves = torch.from_numpy(head_inputs(model, encoded)).double().chunk(2, dim=1)
    heads = [model.module.get_submodule(name) for name in ("cls_classifier", "distillation_classifier")]
    with torch.inference_mode():
        mean = (heads[0](halves[0]) + heads[1](halves[1])) / 2
        np.testing.assert_allclose(mean, model.logits(model.collate(encoded)), atol=1e-5)


@pytest.mark.parametrize("family", ZERO_SHOT)
def test_a_zero_shot_model_has_unit_vectors_that_its_labels_are_compared_with(family: str) -> None:
    model = load_image_model(zero_shot_name(family), "float64")
    encoded = [model.encode(blobs(seed, 30, 41)) for seed in range(3)]
    vectors = torch.from_numpy(head_inputs(model, encoded)).double()
    np.testing.assert_allclose(vectors.norm(dim=1), np.ones(3), atol=1e-6)
    similarity = model.module.similarity
    logits = vectors @ similarity.scaled.T + (0 if similarity.bias is None else similarity.bias)
    with torch.inference_mode():
        np.testing.assert_allclose(logits, model.logits(model.collate(encoded)), atol=1e-4)


@pytest.mark.parametrize("shape", [(40, 7), (6, 24), (3, 2)])
def test_components_are_scikit_learns_with_a_fixed_sign(shape: tuple[int, int]) -> None:
    random = np.random.default_rng(7)
    vectors = (random.normal(size=shape) * random.uniform(0.2, 3, shape[1]) + 5).astype(np.float32)
    coordinates, explained = principal_components(vectors)
    reference = ReferencePCA(2, svd_solver="full")
    wanted = reference.fit_transform(vectors.astype(np.float64))
    signs = np.sign((wanted * coordinates).sum(0))
    np.testing.assert_allclose(coordinates, wanted * signs, atol=1e-5)
    np.testing.assert_allclose(explained, reference.explained_variance_ratio_, atol=1e-6)
    weights = reference.components_ * signs[:, None]
    assert (weights[[0, 1], np.abs(weights).argmax(1)] > 0).all()
    again, _ = principal_components(vectors[::-1])
    np.testing.assert_allclose(again[::-1], coordinates, atol=1e-6)


def test_a_map_is_cached_by_model_data_and_projection(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model, data = str(checkpoint("bert")), load(written(tmp_path, CORPUS))
    first = embedding_map(model, data)
    vectors = representations(model, data).vectors
    wanted = ReferencePCA(2).fit_transform(vectors.astype(np.float64))
    np.testing.assert_allclose(np.abs(first.coordinates), np.abs(wanted), atol=1e-5)
    assert (first.dimensions, first.unread, first.projection) == (24, 0, PCA)
    monkeypatch.setattr(module, "load_classifier", lambda *_: pytest.fail("runs the model again"))
    np.testing.assert_array_equal(embedding_map(model, data).coordinates, first.coordinates)
    keys = {map_key(model, data, PCA), map_key(model, data, UMAP)}
    keys.add(map_key(str(save_checkpoint("bert", tmp_path / "other", seed=1)), data, PCA))
    keys.add(map_key(model, load(written(tmp_path, CORPUS[:4])), PCA))
    assert len(keys) == 4
    assert result_store().contains(map_key(model, data, PCA))


def test_too_few_or_equal_examples_are_refused_and_unreadable_ones_left_out(tmp_path: Path) -> None:
    model = str(checkpoint("bert"))
    with pytest.raises(UsageError, match=f"at least {LEAST_EXAMPLES} readable examples, got 2"):
        embedding_map(model, load(written(tmp_path, CORPUS[:2])))
    with pytest.raises(ExegesisError, match="are equal, so there is nothing to map"):
        embedding_map(model, load(written(tmp_path, [CORPUS[0]] * 4)))
    found = embedding_map(model, load(written(tmp_path, [CORPUS[0], "\u200b", *CORPUS[1:]])))
    assert (found.places.tolist(), found.unread) == ([0, 2, 3, 4, 5], 1)
    with pytest.raises(ExegesisError, match="projection"):
        embedding_map(model, load(written(tmp_path, CORPUS)), "tsne")


def test_umap_is_offered_and_imported_only_where_it_is_installed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:  # fmt: skip
    real = module.importlib.util.find_spec
    monkeypatch.setattr(module.importlib.util, "find_spec", lambda name: None if name == "umap" else real(name))
    assert projections(1000) == [PCA]
    monkeypatch.setattr(module.importlib.util, "find_spec", lambda name: object())
    assert projections(NEIGHBORS + 1) == [PCA, UMAP]
    assert projections(NEIGHBORS) == [PCA]
    assert "umap" not in sys.modules
    model = str(checkpoint("bert"))
    data = load(written(tmp_path, [f"{text} {word}" for text in CORPUS for word in CORPUS[0].split()[:4]]))
    settings: list[dict[str, object]] = []

    class Reducer:
        def __init__(self, **given: object) -> None:
            settings.append(given)

        def fit_transform(self, vectors: np.ndarray) -> np.ndarray:
            return vectors[:, :2]

    monkeypatch.setattr(module, "umap", SimpleNamespace(UMAP=Reducer))
    drawn = embedding_map(model, data, UMAP)
    np.testing.assert_allclose(drawn.coordinates, representations(model, data).vectors[:, :2])
    assert drawn.explained == ()
    assert settings == [{"n_components": 2, "n_neighbors": NEIGHBORS, "random_state": 0, "n_jobs": 1}]
    monkeypatch.setattr(module, "umap", SimpleNamespace())
    result_store().clear()
    with pytest.raises(ExegesisError, match="Install umap-learn"):
        embedding_map(model, data, UMAP)


def test_a_large_data_set_is_sampled_at_equal_distances() -> None:
    assert sampled_places(5) == [0, 1, 2, 3, 4]
    places = sampled_places(3 * MOST_EXAMPLES)
    assert places[:3] == [0, 3, 6]
    assert len(set(places)) == MOST_EXAMPLES
    assert places[-1] < 3 * MOST_EXAMPLES
