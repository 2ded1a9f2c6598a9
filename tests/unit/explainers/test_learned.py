"""The learned explainer as a method: its formula, what it says of itself, and what the cache takes it for."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from engine.errors import UsageError
from engine.explain import explain, key_of, told_of
from engine.heads.scales import HeadScales
from engine.randomization.model_copy import ModelCopy
from engine.registry import all_explainers, explainer
from engine.request import Example, Request
from engine.scaffold.artefact import save
from tests.explaining import classifier, fingerprint, run, task_for
from tests.learned import for_model, made_up
from tests.tiny import FAMILIES, save_checkpoint
from tests.unit.images.making import blobs, vit

TEXT = "although the plot drags the ending is warm"


@pytest.fixture
def model(home: Path) -> str:
    return str(save_checkpoint("bert", home / "model"))


def kept(folder: Path, **told: object) -> str:
    return str(folder / save(made_up(**told), folder).name)


@pytest.mark.parametrize("family", [*FAMILIES, "vit"])
@pytest.mark.parametrize("normalisation", ["sparsemax", "softmax", "entmax15", "none"])
def test_equal_weights_are_the_static_explainer(family: str, normalisation: str, tmp_path: Path) -> None:
    task = task_for(vit(), [blobs()]) if family == "vit" else task_for(classifier(family), [TEXT])
    shape = tuple(task.attention(task.items[0]).logits.shape[:2])
    size = shape[0] * shape[1]
    file = kept(tmp_path, shape=shape, phi=[1 / size] * size, normalisation=normalisation)
    (learned,), (static,) = run("smat", task, explainer=file), run("attention_logits", task)
    np.testing.assert_allclose(learned.scores, static.scores, atol=1e-12)


def test_one_head_alone_is_its_mean_logits(tmp_path: Path) -> None:
    task = task_for(classifier("bert"), [TEXT])
    phi = np.full(12, -5.0)
    phi[6] = 5
    (made,) = run("smat", task, explainer=kept(tmp_path, phi=phi))
    mean = task.attention(task.items[0]).logits[1, 2].mean(0)
    mean[[0, -1]] = -torch.inf
    np.testing.assert_allclose(made.scores, torch.softmax(mean, 0), atol=1e-12)
    assert made.check is not None
    assert made.check.ok


def test_a_model_of_another_shape_is_refused_naming_both(model: str, tmp_path: Path) -> None:
    file = kept(tmp_path, shape=(12, 6))
    words = r"was learned for 12 layers of 6 heads \(a-teacher\), and .* has 3 layers of 4 heads"
    with pytest.raises(UsageError, match=words):
        explain(Request(model, "smat", Example(TEXT), {"explainer": file}))
    with pytest.raises(UsageError, match=words):
        run("smat", task_for(classifier("bert"), [TEXT]), explainer=file)


def test_the_cache_tells_explainers_apart_by_what_they_hold(model: str) -> None:
    asked = Request(model, "smat", Example(TEXT))
    first = for_model(model, phi=np.linspace(-1, 1, 12))
    key, made = key_of(asked), explain(asked)
    assert made.provenance.params == {"explainer": f"made-up@{first.digest}"}
    assert key_of(Request(model, "smat", Example(TEXT), made.provenance.params)) == key
    for_model(model, phi=np.linspace(1, -1, 12))
    assert key_of(asked) != key
    again = explain(asked)
    assert not again.cached
    assert np.abs(again.scores - made.scores).max() > 1e-3
    with pytest.raises(UsageError, match="is no longer what it was"):
        explain(Request(model, "smat", Example(TEXT), made.provenance.params))


def test_keys_of_experiments_tell_them_apart_too(model: str) -> None:
    smat = explainer("smat")
    without = told_of(smat, {}, model)
    assert "there is no learned explainer" in str(without[1])
    told = []
    for scale in (1, 2):
        for_model(model, phi=np.linspace(-1, 1, 12) * scale)
        told.append(told_of(smat, {}, model))
    assert without != told[0] != told[1]
    assert told_of(explainer("gradient"), {}, model) == [explainer("gradient").version]


def test_the_note_says_which_explainer_and_what_it_is_worth(model: str) -> None:
    for_model(model)
    (note,) = explain(Request(model, "smat", Example(TEXT))).notes
    assert note.startswith("The learned explainer made-up, from 500 examples of reviews: it taught better than no expl")
    for_model(model, "of-another", revision="1" * 16, teacher="another-model")
    notes = explain(Request(model, "smat", Example(TEXT), {"explainer": "of-another"})).notes
    assert notes[1] == "It was learned for another-model, another model: what it is worth on this one is not known."
    for_model(model, "earlier", revision="1" * 16)
    assert (
        "an earlier state of this model"
        in explain(Request(model, "smat", Example(TEXT), {"explainer": "earlier"})).notes[1]
    )


def test_a_head_that_is_off_does_not_count(model: str) -> None:
    phi = np.full(12, -5.0)
    phi[[1, 6]] = 0.5, 0.4
    for_model(model, phi=phi)
    off = HeadScales.off([(0, 1)])
    both, rest = (explain(Request(model, "smat", Example(TEXT), heads=heads)) for heads in (HeadScales(), off))
    assert np.abs(both.scores - rest.scores).max() > 1e-6
    phi[1] = -5
    for_model(model, "rest", phi=phi)
    alone = explain(Request(model, "smat", Example(TEXT), {"explainer": "rest"}, heads=off))
    np.testing.assert_allclose(rest.scores, alone.scores, atol=1e-9)


def test_on_random_weights_it_is_the_one_learned_on_the_real_ones() -> None:
    model = classifier("bert")
    before = fingerprint(model)
    real = task_for(model, [TEXT])
    (made,) = run("smat", real)
    twin = ModelCopy(model)
    with twin.randomized(tuple(twin.weights), 0) as random:
        (destroyed,) = run("smat", task_for(random, [TEXT]))
    assert destroyed.notes == made.notes
    assert np.abs(destroyed.scores - made.scores).max() > 1e-4
    twin.check_untouched()
    assert fingerprint(model) == before


def test_it_serves_texts_and_pictures() -> None:
    assert all("smat" in all_explainers(kind) for kind in ("text", "image"))
