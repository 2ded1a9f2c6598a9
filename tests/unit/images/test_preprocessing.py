"""Our preprocessing against transformers' own, which needs a library more but is what checkpoints mean."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from transformers.models.deit.image_processing_pil_deit import DeiTImageProcessorPil
from transformers.models.vit.image_processing_pil_vit import ViTImageProcessorPil

from engine.vision.view import Preprocessing, read_preprocessing

MEAN_STD = {"image_mean": [0.485, 0.456, 0.406], "image_std": [0.229, 0.224, 0.225]}
SETTINGS: list[tuple[str, dict[str, Any]]] = [
    ("ViT", {"size": {"height": 32, "width": 32}, **MEAN_STD}),
    ("ViT", {"size": {"height": 20, "width": 36}, "resample": 3}),
    ("ViT", {"size": {"height": 32, "width": 32}, "do_normalize": False}),
    ("ViT", {"size": {"height": 32, "width": 32}, "do_rescale": False, "do_normalize": False}),
    ("ViT", {"size": {"height": 32, "width": 32}, "rescale_factor": 1 / 127.5, "resample": 0}),
    ("DeiT", {"size": {"height": 40, "width": 40}, "crop_size": {"height": 32, "width": 32}, **MEAN_STD}),
    ("DeiT", {"size": {"shortest_edge": 40}, "crop_size": {"height": 32, "width": 32}}),
    ("DeiT", {"size": {"height": 20, "width": 20}, "crop_size": {"height": 32, "width": 32}}),
]


def read(folder: Path, stated: dict[str, Any]) -> Preprocessing:
    (folder / "preprocessor_config.json").write_text(json.dumps(stated))
    return read_preprocessing(folder, "mine")


def picture(height: int, width: int) -> np.ndarray:
    return np.random.default_rng(7).integers(0, 256, (height, width, 3), dtype=np.uint8)


@pytest.mark.parametrize(("height", "width"), [(50, 70), (70, 50), (32, 32), (11, 19)])
@pytest.mark.parametrize(("kind", "settings"), SETTINGS)
def test_what_the_model_reads_is_what_transformers_makes(
    kind: str, settings: dict[str, Any], height: int, width: int, tmp_path: Path
) -> None:
    made = {"ViT": ViTImageProcessorPil, "DeiT": DeiTImageProcessorPil}[kind](**settings)
    wanted = made(picture(height, width), return_tensors="np")["pixel_values"][0]
    stated = json.loads(made.to_json_string())
    ours = read(tmp_path, stated)
    seen = ours.transform(picture(height, width))
    assert seen.shape[:2] == ours.output_size(height, width) == wanted.shape[1:]
    assert np.abs(ours.normalize(seen) - wanted).max() < 1e-5


def test_old_files_state_one_number_and_no_steps(tmp_path: Path) -> None:
    found = read(tmp_path, {"feature_extractor_type": "ViTFeatureExtractor", "size": 24, "resample": 2})
    assert (found.resize, found.crop, found.mean, found.std) == ((24, 24), None, (0.5,) * 3, (0.5,) * 3)
    assert found.scale == 1 / 255


def test_colours_come_back_from_the_numbers(tmp_path: Path) -> None:
    ours = read(tmp_path, {"size": 16, **MEAN_STD})
    seen = ours.transform(picture(30, 40))
    assert np.array_equal(ours.denormalize(ours.normalize(seen)), seen)


def test_a_mask_goes_the_way_of_its_picture(tmp_path: Path) -> None:
    ours = read(tmp_path, {"size": {"height": 20, "width": 20}, "do_center_crop": True, "crop_size": 10})
    mask = np.zeros((40, 40), dtype=bool)
    mask[10:20, 20:31] = True
    seen = ours.transform_mask(mask)
    assert seen.shape == (10, 10)
    assert np.argwhere(seen).min(0).tolist() == [0, 5]
    assert np.argwhere(seen).max(0).tolist() == [4, 9]
