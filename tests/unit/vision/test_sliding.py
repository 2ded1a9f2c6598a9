"""A window that slides over a picture: against a slow loop, and the method occlusion at stride 1."""

from __future__ import annotations

import numpy as np
import pytest

from engine import runtime
from engine.errors import UsageError
from engine.explain import explain
from engine.input_kinds import load_classifier
from engine.removal import coalition_values
from engine.request import Picture, Request
from engine.sliding import class_index, slide_window, sliding_key, window_positions
from tests.unit.vision.tiny_vit import save_vit


@pytest.fixture(scope="module")
def vit(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A tiny random model of 3 x 4 patches."""
    return str(save_vit(tmp_path_factory.mktemp("model") / "vit", image=(24, 32)))


@pytest.fixture(scope="module")
def picture() -> Picture:
    return Picture(np.random.default_rng(0).integers(0, 256, (24, 32, 3), dtype=np.uint8))


@pytest.mark.parametrize("operator", ["mean", "zero", "blur", "drop"])
@pytest.mark.parametrize(("window", "stride"), [(1, 1), (2, 1), (2, 2), (3, 2)])
def test_each_position_is_that_of_a_slow_loop(
    vit: str, picture: Picture, operator: str, window: int, stride: int
) -> None:
    result = slide_window(vit, picture, window, stride, operator)
    model = load_classifier("image", vit, "float32", runtime.device())
    encoded = model.encode(picture)
    specials = len(encoded) - 12
    for at, (row, column) in enumerate(result.positions):
        keep = np.ones((1, len(encoded)), dtype=bool)
        for down in range(window):
            for right in range(window):
                keep[0, specials + 4 * (row + down) + column + right] = False
        for label in range(3):
            share = coalition_values(model, [encoded], [label], np.zeros(1, dtype=int), keep, operator)[0]
            assert result.probabilities[at, label] == pytest.approx(share, abs=1e-6)
        assert result.covered(at).sum() == window**2
        assert result.covered(at)[row, column]
    assert result.probabilities.sum(1) == pytest.approx(1.0)
    assert result.prediction(0).index == int(result.probabilities[0].argmax())
    assert result.prediction().probabilities == pytest.approx(result.whole)


@pytest.mark.parametrize("window", [1, 2])
def test_the_map_at_stride_1_is_that_of_occlusion(vit: str, picture: Picture, window: int) -> None:
    result = slide_window(vit, picture, window, 1)
    made = explain(Request(vit, "occlusion", picture, {"window": window}))
    assert result.predicted == made.provenance.target
    assert result.heat_map(result.predicted) == pytest.approx(made.on_grid, abs=1e-6)
    if window == 1:
        assert result.heat_map(result.predicted).ravel() == pytest.approx(result.falls(result.predicted))


def test_positions_reach_every_edge() -> None:
    assert window_positions((3, 4), 3, 1) == ((0, 0), (0, 1))
    assert window_positions((5, 5), 2, 2) == tuple((row, column) for row in (0, 2, 3) for column in (0, 2, 3))
    for window in range(1, 6):
        for stride in range(1, window + 1):
            covered = np.zeros((5, 7), dtype=bool)
            for row, column in window_positions((5, 7), window, stride):
                covered[row : row + window, column : column + window] = True
            assert covered.all()


def test_the_result_comes_back_from_the_cache(vit: str, picture: Picture, monkeypatch: pytest.MonkeyPatch) -> None:
    first = slide_window(vit, picture, 2, 2)
    monkeypatch.setattr("engine.sliding.load_classifier", None)
    again = slide_window(vit, picture, 2, 2)
    assert again.positions == first.positions
    assert (again.probabilities == first.probabilities).all()
    assert again.as_json() == first.as_json()
    keys = {sliding_key(vit, picture, *sizes, *more) for sizes in ((2, 2), (2, 1), (1, 1)) for more in ((), ("zero",))}
    assert len(keys) == 6


@pytest.mark.parametrize(
    ("window", "stride", "operator", "message"),
    [
        (0, 1, "mean", "window: must be a whole number from 1 to 3"),
        (4, 1, "mean", "window: must be a whole number from 1 to 3"),
        (2, 3, "mean", "stride: must be a whole number from 1 to the window, 2"),
        (2, 0, "mean", "stride: must be"),
        (1, 1, "mask", "unknown name 'mask'"),
    ],
)
def test_what_does_not_fit_is_refused(
    vit: str, picture: Picture, window: int, stride: int, operator: str, message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        slide_window(vit, picture, window, stride, operator)


def test_a_class_is_named_by_its_name_or_number() -> None:
    assert [class_index(("cat", "dog"), name, 1) for name in (None, "cat", "1")] == [1, 0, 1]
    with pytest.raises(UsageError, match="unknown name 'eel'"):
        class_index(("cat", "dog"), "eel", 0)
