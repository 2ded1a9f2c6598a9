"""Learned explainers for tests: made up, for models of any shape."""

from __future__ import annotations

import dataclasses
import functools
import tempfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np

from engine.home import home
from engine.models import catalog
from engine.models.classifier import AnyClassifier
from engine.scaffold.learned_explainer import (
    ExplainerCard,
    LearnedExplainer,
    SimulabilitySummary,
    explainers_folder,
    save,
)
from engine.scaffold.plan import head_shape

GOOD = ExplainerCard(
    teacher="a-teacher",
    revision="0" * 16,
    family="bert",
    shape=(3, 4),
    normalisation="sparsemax",
    dataset="reviews",
    train_size=500,
    seed=9,
    made_by="exegesis scaffold --teacher a-teacher --dataset reviews",
    metric="accuracy",
    simulability={"smat": SimulabilitySummary(0.9, 0.91, 0.92, 5), "none": SimulabilitySummary(0.8, 0.85, 0.87, 5)},
    date="2026-01-02",
    version="0.1.0",
    licence="Apache-2.0",
)


def made_up(name: str = "made-up", phi: Any = None, **told: Any) -> LearnedExplainer:
    """A learned explainer; its coefficients depend on its shape alone."""
    card = dataclasses.replace(GOOD, **told)
    size = card.shape[0] * card.shape[1]
    drawn = np.random.default_rng(zlib.crc32(b"%d x %d" % card.shape)).normal(1 / size, 0.3, size).round(3)
    return LearnedExplainer(name, card, drawn if phi is None else np.asarray(phi))


def for_model(model: str, name: str = "made-up", folder: Path | None = None, **told: Any) -> LearnedExplainer:
    """One that was learned for that model, written to where every page finds it, or to `folder`."""
    source = catalog.locate(model)
    shape, revision = head_shape(catalog.config(source)), catalog.revision(model)
    learned = made_up(name, **{"teacher": model, "revision": revision, "shape": shape, **told})
    return save(learned, folder or explainers_folder())


def file_for(model: str) -> str:
    """The file of one that was learned for that model, kept apart from what pages find."""
    return _file(head_shape(catalog.config(catalog.locate(model))), model, catalog.revision(model))


def file_of(model: AnyClassifier) -> str:
    """The same for a loaded model."""
    config: Any = model.module.config
    return _file(head_shape(config.to_dict()), model.id, model.revision)


@functools.cache
def _file(shape: tuple[int, int], model: str, revision: str) -> str:
    place = home() / "tiny"
    place.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix="learned-", dir=place))
    return str(folder / save(made_up(shape=shape, teacher=model, revision=revision), folder).name)
