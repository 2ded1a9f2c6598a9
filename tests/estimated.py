"""Empirical explainers for tests: made up, for models of any size."""

from __future__ import annotations

import dataclasses
import functools
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from engine.empirical.errors import MapErrors
from engine.empirical.explainer import EmpiricalCard, EmpiricalExplainer, current_versions, save
from engine.empirical.features import token_features
from engine.explain import predict_encoded
from engine.home import home
from engine.input_kinds import kind_of_model, load_classifier
from engine.models import catalog
from engine.models.classifier import AnyClassifier
from engine.params import as_plain, from_mapping
from engine.registry import explainer
from engine.request import Example, Picture
from engine.task import Task, TaskItem

GOOD = EmpiricalCard(
    model="a-model",
    revision="0" * 16,
    method="kernel_shap",
    versions=current_versions(explainer("kernel_shap")),
    params=as_plain(from_mapping(explainer("kernel_shap").params, {}, "kernel_shap")),
    dataset="reviews",
    data_revision="0" * 16,
    train_size=300,
    seed=0,
    errors={
        "predicted class": MapErrors(0.25, 0.85, 0.7, 0.86, 75),
        "other classes": MapErrors(0.5, 0.8, 0.6, 0.8, 25),
    },
    passes=200.0,
    seconds=1.0,
    own_seconds=0.02,
    training_passes=80_000,
    penalty=100.0,
    command="exegesis empirical train --model a-model --method kernel_shap --dataset reviews --out made-up",
    date="2026-01-02",
    version="0.1.0",
    licence="Apache-2.0",
)


GOOD_OF_PICTURES = dataclasses.replace(
    GOOD,
    kind="image",
    params=as_plain(from_mapping(explainer("kernel_shap", "image").params, {}, "kernel_shap")),
    dataset="scenes",
)


def made_up(model: AnyClassifier, name: str = "made-up", **told: Any) -> EmpiricalExplainer:
    """One for a loaded model; its weights depend on the size alone."""
    of_text = model.kind == "text"
    given = Example("a") if of_text else Picture(np.zeros((8, 8, 3), dtype=np.uint8))
    encoded = model.encode(given)
    [prediction] = predict_encoded(model, [encoded])
    [rows] = token_features(Task(model, [TaskItem(encoded, prediction, 0, 0)]))
    count = rows.shape[1]
    weights = np.random.default_rng(count).normal(0, 1 / np.sqrt(count), count)
    good = GOOD if of_text else GOOD_OF_PICTURES
    card = dataclasses.replace(good, **{"model": model.id, "revision": model.revision, **told})
    return EmpiricalExplainer(name, card, weights.astype(np.float32))


def for_model(model: str, name: str = "made-up", **told: Any) -> EmpiricalExplainer:
    """One for that model, written to where every page finds it."""
    loaded = load_classifier(kind_of_model(model), model, "float32")
    return save(made_up(loaded, name, **{"revision": catalog.revision(model), **told}))


@functools.cache
def file_for(model: str) -> str:
    """As `file_of`, for a model on disk, which is loaded once."""
    return file_of(load_classifier(kind_of_model(model), model, "float32"))


@functools.cache
def file_of(model: AnyClassifier) -> str:
    """The file of one for a loaded model, kept apart from what pages find."""
    place = home() / "tiny"
    place.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix="empirical-", dir=place))
    save(made_up(model), folder)
    return str(folder / "made-up")
