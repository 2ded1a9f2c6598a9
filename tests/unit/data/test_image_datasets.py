"""The registered picture sets: digits, photos, and real data where it is."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_digits

from engine.data.image_datasets import load_images
from engine.data.registry import data_root
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


ZIP, ARRAYS = data_root() / "cifar10.zip", data_root() / "tiny_imagenet10"
needs_zip = pytest.mark.skipif(not ZIP.is_file(), reason="needs the local CIFAR-10 (EXEGESIS_DATA/cifar10.zip)")
needs_arrays = pytest.mark.skipif(not ARRAYS.is_dir(), reason="needs EXEGESIS_DATA/tiny_imagenet10")


@needs_zip
def test_cifar10_by_name() -> None:
    data = load_images("cifar10", split="train")
    assert (len(data), data.label_names[0], data.label_names[9]) == (50_000, "airplane", "truck")
    assert np.bincount(np.array(data.labels)).tolist() == [5_000] * 10
    assert data[49_999].pixels.shape == (32, 32, 3)
    assert data.labels[:30] == tuple(range(10)) * 3


@needs_zip
def test_cifar10_by_its_path() -> None:
    data = load_images(ZIP, split="test", limit=30)
    assert data.labels == tuple(range(10)) * 3
    assert data[0].pixels.std() > 5


@needs_arrays
def test_tiny_imagenet_has_boxes_of_the_stated_sizes() -> None:
    for split, count, fair in (("train", 5_000, 2_131), ("val", 500, 223)):
        data = load_images(ARRAYS, split=split)
        shares = np.array([0.0 if e.mask is None else e.mask.mean() for e in data])
        assert (len(data), data.label_names[0]) == (count, "Egyptian cat")
        assert ((shares >= 0.05) & (shares <= 0.6)).sum() == fair
