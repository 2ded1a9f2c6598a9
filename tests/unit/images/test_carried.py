from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_digits

from engine.data.image_datasets import load_images
from engine.errors import UsageError


def test_digits_are_those_of_scikit_learn_one_square_a_value() -> None:
    source = load_digits()
    train, test = load_images("digits", split="train"), load_images("digits")
    assert (len(train), len(test), test.split) == (1297, 500, "test")
    assert train.labels + test.labels == tuple(source.target.tolist())
    for example, levels in ((train[3], source.images[3]), (test[0], source.images[1297])):
        assert example.pixels.shape == (32, 32, 3)
        blocks = example.pixels.reshape(8, 4, 8, 4, 3)
        assert np.array_equal(blocks.min((1, 3, 4)), blocks.max((1, 3, 4)))
        assert np.abs(blocks[:, 0, :, 0, 0] - levels * 255 / 16).max() <= 0.5


def test_photos_are_rgb_told_and_without_labels() -> None:
    data = load_images("photos")
    assert len(data) == 12
    assert data.labels == (None,) * 12
    for example in data:
        assert example.pixels.shape[2] == 3
        assert min(example.pixels.shape[:2]) >= 300
        assert example.pixels.std() > 10
        assert len(str(example.extra["shows"])) > 5


def test_splits_that_are_not_there() -> None:
    with pytest.raises(UsageError, match=r"split: unknown name 'validation'\. Known: test, train"):
        load_images("digits", split="validation")
    with pytest.raises(UsageError, match=r"split: photos has no splits, got 'train'\. Leave split out"):
        load_images("photos", split="train")
