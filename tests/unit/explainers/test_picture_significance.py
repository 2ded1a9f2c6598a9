"""Significance of patches: values one by one, p-values under the null hypothesis, planted patches, and the command."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import numpy as np
import pytest
import scipy.stats
from PIL import Image

from engine import runtime
from engine.data.sources import load_source
from engine.errors import UsageError
from engine.explain import predict_encoded
from engine.input_kinds import load_classifier
from engine.models.classifier import AnyClassifier
from engine.request import Picture
from engine.significance.false_discovery import survives
from engine.significance.pictures import PictureSignificance, PictureSignificanceQuery, picture_significance
from tests.unit.cli.conftest import Run, run
from tests.unit.vision.tiny_vit import save_vit

__all__ = ["run"]
pytestmark = pytest.mark.usefixtures("home")

SIDE, GRID = 8, 3
DATA = "scenes:count=6"


@pytest.fixture(scope="module")
def vit(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Tiny, random, and without resampling, so that patches of the file are those of the model."""
    return str(save_vit(tmp_path_factory.mktemp("vit")))


@pytest.fixture
def model(vit: str) -> AnyClassifier:
    return load_classifier("image", vit, "float32", runtime.device())


def picture(index: int, data: str = DATA) -> Picture:
    one = load_source("image", data).read(index).input
    assert isinstance(one, Picture)
    return one


def test_values_are_those_of_the_pictures_with_exchanged_pixels(model: AnyClassifier, vit: str, tmp_path: Path) -> None:
    generator = np.random.default_rng(0)
    pixels = [generator.integers(0, 256, (24, 24, 3), dtype=np.uint8) for _ in range(4)]
    for at, one in enumerate(pixels):
        Image.fromarray(one).save(tmp_path / f"{at}.png")
    found = picture_significance(PictureSignificanceQuery(vit, Picture(pixels[0]), str(tmp_path)))
    assert found.count == 3, "all other pictures, and not the picture itself"
    [whole] = predict_encoded(model, [model.encode(Picture(pixels[0]))])
    assert found.value == pytest.approx(whole.probabilities[whole.index])
    assert found.label == whole.label
    for patch in range(GRID**2):
        row, column = (SIDE * at for at in divmod(patch, GRID))
        changed = []
        for other in pixels[1:]:
            own = pixels[0].copy()
            own[row : row + SIDE, column : column + SIDE] = other[row : row + SIDE, column : column + SIDE]
            changed.append(predict_encoded(model, [model.encode(Picture(own))])[0].probabilities[whole.index])
        np.testing.assert_allclose(sorted(found.draws[patch]), sorted(changed), atol=1e-5)
    plain = found.as_json(0.2)
    assert [(one["row"], one["column"]) for one in plain["patches"][:4]] == [(1, 1), (1, 2), (1, 3), (2, 1)]
    assert plain["patches"][4]["change"] == pytest.approx(found.value - found.draws[4].mean())


def test_p_values_are_uniform_where_each_patch_is_one_of_those_of_the_other_pictures(vit: str, tmp_path: Path) -> None:
    """The null hypothesis by construction: all patches of all pictures are drawn from one distribution.

    44 donors are the fewest with which one of 9 patches alone can be significant at a rate of 20%.
    """
    generator = np.random.default_rng(1)
    pixels = generator.integers(0, 256, (45, 3, 3, 1, 1, 3), dtype=np.uint8)
    pixels = np.broadcast_to(pixels, (45, 3, 3, SIDE, SIDE, 3)).transpose(0, 1, 3, 2, 4, 5).reshape(45, 24, 24, 3)
    for at, one in enumerate(pixels):
        Image.fromarray(one).save(tmp_path / f"{at}.png")
    for alternative in ("greater", "two-sided"):
        p_values, errors = [], 0
        for one in pixels:
            query = PictureSignificanceQuery(vit, Picture(one.copy()), str(tmp_path), target=0)
            found = picture_significance(query)
            p_values.append(found.p_values(alternative))
            errors += bool(survives(found.adjusted(alternative), 0.2).any())
        shares = np.concatenate(p_values)
        assert shares.mean() == pytest.approx(0.5, abs=0.06)
        assert 0.05 < (shares <= 0.1).mean() < 0.15
        low, high = scipy.stats.binom.ppf((0.001, 0.999), len(pixels), 0.2)
        assert low <= errors <= high, "the false discovery rate"


def found(draws: list[list[float]], value: float = 0.9, grid: tuple[int, int] = (1, 2)) -> PictureSignificance:
    return PictureSignificance("m", "r", "scenes", 0, "boat", False, grid, value, np.array(draws))


def test_only_a_patch_that_the_others_do_not_equal_survives() -> None:
    one = found([[0.1] * 99, [0.9] * 99])
    np.testing.assert_allclose(one.p_values(), [0.01, 1.0])
    assert [patch["significant"] for patch in one.as_json(0.05)["patches"]] == [True, False]
    few = found([[0.1] * 9, [0.9] * 9])
    assert few.shortage(0.05) == (
        "With 9 other pictures a p-value is at least 0.1, so at a rate of 5% no patch can be significant."
    )
    with pytest.raises(ValueError, match="draws: a row of finite numbers for each of 2 patches"):
        found([[0.1]])


def test_a_second_call_reads_the_cache_and_the_seed_and_the_number_decide(
    vit: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    query = PictureSignificanceQuery(vit, picture(0), DATA, draws=3)
    first = picture_significance(query)
    assert first.count == 3
    other = picture_significance(PictureSignificanceQuery(vit, picture(0), DATA, draws=3, seed=1))
    assert (other.draws != first.draws).any()
    monkeypatch.setattr("engine.significance.pictures.replaced_probabilities", None)
    again = picture_significance(query)
    np.testing.assert_array_equal(again.draws, first.draws)
    assert again.grid == (3, 3)
    assert query.key != dataclasses.replace(query, split="test").key


def test_pictures_of_the_class_itself_give_no_patches(model: AnyClassifier, vit: str) -> None:
    predicted = [predict_encoded(model, [model.encode(picture(index))])[0].index for index in range(6)]
    for target in range(3):
        query = PictureSignificanceQuery(vit, picture(0), DATA, target=target, other_classes=True)
        others = [one for one in predicted[1:] if one != target]
        if others:
            found = picture_significance(query)
            assert (found.count, found.other_classes) == (len(others), True)
        else:
            with pytest.raises(UsageError, match="dataset: must have a picture that is predicted as another class"):
                picture_significance(query)


def test_what_cannot_be_tested_is_refused(vit: str) -> None:
    for fields, message in (
        ({"draws": 0}, "draws: must be a whole number from 1 to 9,999, got 0"),
        ({"seed": -1}, "seed: must be a whole number of at least 0, got -1"),
    ):
        with pytest.raises(UsageError, match=message):
            PictureSignificanceQuery(vit, picture(0), DATA, **fields)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="dataset: must have another picture"):
        picture_significance(PictureSignificanceQuery(vit, picture(0), "scenes:count=1"))


def test_the_command_prints_patches_and_json(run: Run, vit: str, tmp_path: Path) -> None:
    printed = run("significance", "--model", vit, "--dataset", DATA, "--index", "0", "--rate", "0.2")
    assert "of 9 patches are significant at a false discovery rate of 0.2 " in printed.out
    assert "Rows and columns count from 1." in printed.out
    assert "The data set has no more: choose a larger one." in printed.err
    few = run("significance", "--model", vit, "--dataset", DATA, "--index", "0", "--draws", "3")
    assert "Request more pictures." in few.err
    own = json.loads(run("significance", "--model", vit, "--dataset", DATA, "--index", "0", "--json").out)
    assert len(own["patches"]) == 9
    file = tmp_path / "own.png"
    Image.fromarray(picture(1).pixels).save(file)
    refused = run("significance", "--model", vit, "--image", str(file))
    assert refused.err.startswith("error: --patches-from: is needed beside --image.")
    given = json.loads(run("significance", "--model", vit, "--image", str(file), "--patches-from", DATA, "--json").out)
    assert given["draws"] == 5, "one of the six is the picture itself"
    selected = run("significance", "--model", vit, "--dataset", DATA, "--index", "0", "--other-classes", "--json")
    assert json.loads(selected.out)["other_classes"] if not selected.code else "another class" in selected.err
