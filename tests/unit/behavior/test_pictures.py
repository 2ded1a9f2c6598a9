"""Questions about pictures: patches exchanged pixel by pixel, and plain loops over removals."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pytest
import torch

from engine import runtime
from engine.behavior.experiment import behavior
from engine.behavior.plan import DELETE, FEATURE, LOCAL, PICTURE_CHANGES, RECOURSE, REPLACE, BehaviorPlan
from engine.behavior.queries import TRUTH_DRAWS, feature_use, local_behavior, recourse
from engine.behavior.result import ModelBehavior, answers_of
from engine.behavior.subjects import NoQuestion, PictureSubject, picture_subject
from engine.data.sources import load_source
from engine.errors import UsageError
from engine.input_kinds import load_classifier
from engine.models.classifier import AnyClassifier
from engine.patch_replacement import load_donors, replaced_probabilities
from engine.request import Picture
from engine.vision.picture import read_view
from engine.vision.regions import touched_patches
from tests.unit.vision.tiny_vit import save_vit

DATA = "scenes:count=6"


@pytest.fixture(scope="module")
def vit(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(save_vit(tmp_path_factory.mktemp("vit")))


@pytest.fixture
def model(vit: str) -> AnyClassifier:
    return load_classifier("image", vit, "float64", runtime.device())


def picture(index: int) -> Picture:
    one = load_source("image", DATA).read(index).input
    assert isinstance(one, Picture)
    return one


def probabilities(model: AnyClassifier, values: np.ndarray) -> np.ndarray:
    """By the module of transformers itself, on pixels."""
    with torch.inference_mode():
        logits = model.module(pixel_values=torch.from_numpy(values).to(model.dtype)).logits
    return torch.softmax(logits.double(), dim=-1).numpy()


def subject(model: AnyClassifier, index: int = 0, **fields: object) -> PictureSubject:
    return picture_subject(model, picture(index), **fields)  # type: ignore[arg-type]


def test_exchanged_patches_are_exchanged_pixels(model: AnyClassifier) -> None:
    source = load_source("image", DATA)
    donors = load_donors(model, source)
    assert set(donors.digests) == {picture(index).digest for index in range(6)}
    own = picture(0)
    assert len(donors.other_than(own)) == 5
    generator = np.random.default_rng(0)
    replaced = generator.random((4, 9)) < 0.4
    chosen = generator.choice(donors.other_than(own), 4)
    by_digest = {one.digest: one for one in map(picture, range(6))}
    values = []
    for mask, donor in zip(replaced, chosen, strict=True):
        pixels, other = (model.encode(one).values.copy() for one in (own, by_digest[donors.digests[donor]]))
        for patch in np.flatnonzero(mask):
            row, column = 8 * (patch // 3), 8 * (patch % 3)
            pixels[:, row : row + 8, column : column + 8] = other[:, row : row + 8, column : column + 8]
        values.append(pixels)
    found = replaced_probabilities(model, model.encode(own), donors, replaced, chosen)
    np.testing.assert_allclose(found, probabilities(model, np.stack(values)), atol=1e-6)


def test_a_single_picture_has_nothing_to_take_patches_from(model: AnyClassifier) -> None:
    donors = load_donors(model, load_source("image", "scenes:count=1"))
    with pytest.raises(UsageError, match="dataset: must have another picture to take patches from"):
        donors.other_than(picture(0))


def mean_color(model: AnyClassifier, own: Picture, removed: tuple[int, ...]) -> np.ndarray:
    values = model.encode(own).values.copy()
    for patch in removed:
        row, column = 8 * (patch // 3), 8 * (patch % 3)
        values[:, row : row + 8, column : column + 8] = 0.0
    return values


def test_a_deleted_patch_has_the_mean_color(model: AnyClassifier, vit: str) -> None:
    own = subject(model)
    plan = BehaviorPlan((vit,), DATA, ("a",), edit=DELETE, margin=0)
    found = local_behavior(own, {"a": np.arange(9.0)}, {"a": True}, [3], plan, 0)
    values = probabilities(
        model, np.stack([mean_color(model, picture(0), one) for one in [(), *((at,) for at in range(9))]])
    )
    np.testing.assert_allclose(found.truth, values[0, own.target] - values[1:, own.target], atol=1e-6)
    assert found.words[:4] == ("row 1, column 1", "row 1, column 2", "row 1, column 3", "row 2, column 1")
    assert found.evaluations.tolist() == [3, 10]


def test_the_mean_over_the_other_pictures_lies_in_the_interval_of_the_truth(model: AnyClassifier, vit: str) -> None:
    donors = load_donors(model, load_source("image", DATA))
    own = subject(model, donors=donors)
    plan = BehaviorPlan((vit,), DATA, (), edit=REPLACE, draws=4)
    found = local_behavior(own, {}, {}, [], plan, 0)
    others = donors.other_than(picture(0))
    exact = np.array([
        own.base - replaced_probabilities(
            model, own.encoded, donors, np.tile(np.arange(9) == patch, (len(others), 1)), others
        )[:, own.target].mean()
        for patch in range(9)
    ])  # fmt: skip
    assert (np.abs(found.truth - exact) < 2 * found.truth_error + 1e-9).all()
    assert (found.truth_error > 0).all()
    assert found.evaluations.tolist() == [1 + 9, 1 + 18, 1 + 36]
    assert plan.draws < TRUTH_DRAWS


@pytest.mark.parametrize("size", [1, 2])
def test_a_recourse_is_the_smallest_of_all_removals(model: AnyClassifier, vit: str, size: int) -> None:
    flips = 0
    for index in range(6):
        own = subject(model, index)
        removals = [one for number in range(1, size + 1) for one in itertools.combinations(range(9), number)]
        values = probabilities(model, np.stack([mean_color(model, picture(index), one) for one in removals]))
        smallest = min(
            (len(one) for one, row in zip(removals, values, strict=True) if row.argmax() != own.target), default=0
        )
        found = recourse(own, {}, [], BehaviorPlan((vit,), DATA, (), task=RECOURSE, size=size))
        assert found.truth[0] == smallest
        flips += smallest > 0
    assert flips, "else nothing was tested"


def test_a_marked_object_is_removed_and_exchanged(model: AnyClassifier, vit: str) -> None:
    source, view = load_source("image", DATA), read_view(vit)
    donors = load_donors(model, source)
    plan = BehaviorPlan((vit,), DATA, ("a",), task=FEATURE)
    assert plan.budgets == (1, 2, PICTURE_CHANGES)
    region = touched_patches(view.transform_mask(source.read(0).example.mask), view.patch)  # type: ignore[union-attr, arg-type]
    own = subject(model, donors=donors, region=region)
    scores = region.ravel().astype(float) * np.arange(9)
    found = feature_use(own, {"a": scores}, [3], plan, 0)
    assert found.words[0] == f"marked object, {region.sum()} patches"
    removed = probabilities(model, mean_color(model, picture(0), tuple(np.flatnonzero(region)))[None])
    assert found.values[0, 1] == (removed[0].argmax() != own.target), "the first change is the removal"
    assert found.yes[0, 0], "the highest score is in the region"
    assert found.truth[0] == (found.falls[0] > 0)
    with pytest.raises(NoQuestion, match="feature: the data set marks no object"):
        feature_use(subject(model, donors=donors), {}, [], plan, 0)


@pytest.mark.usefixtures("home")
@pytest.mark.parametrize("task", [LOCAL, FEATURE, RECOURSE])
def test_a_whole_experiment_on_pictures(task: str, vit: str, tmp_path: Path) -> None:
    result = behavior((vit,), DATA, ("gradient_x_input", "occlusion"), task=task, examples=4, draws=2, margin=0, size=1)
    [found] = result.models
    assert isinstance(found, ModelBehavior)
    assert found.complete
    assert len(found.examples) == 4
    assert not found.failed
    if task != RECOURSE:
        assert all(answer.cases for answer in answers_of(found, result.plan))
