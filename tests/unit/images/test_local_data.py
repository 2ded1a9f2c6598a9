"""The loaders on real data, where it is."""

from __future__ import annotations

import numpy as np
import pytest

from engine.data.image_datasets import load_images
from engine.data.registry import data_root

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
