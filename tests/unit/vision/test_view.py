"""Preprocessing against transformers' own, and a model's view from its files against the loaded model."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from transformers.models.deit.image_processing_pil_deit import DeiTImageProcessorPil
from transformers.models.vit.image_processing_pil_vit import ViTImageProcessorPil

from engine.errors import ExegesisError, UsageError
from engine.models import catalog
from engine.models.loading import load_image_model
from engine.request import Picture
from engine.vision.picture import Preprocessing, patch_mask, read_preprocessing, read_view
from tests.project import ROOT
from tests.unit.vision.tiny_vit import ARCHITECTURES, save_vit

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


def noise(height: int, width: int) -> np.ndarray:
    return np.random.default_rng(7).integers(0, 256, (height, width, 3), dtype=np.uint8)


@pytest.mark.parametrize(("height", "width"), [(50, 70), (70, 50), (32, 32), (11, 19)])
@pytest.mark.parametrize(("kind", "settings"), SETTINGS)
def test_what_the_model_reads_is_what_transformers_makes(
    kind: str, settings: dict[str, Any], height: int, width: int, tmp_path: Path
) -> None:
    processor = {"ViT": ViTImageProcessorPil, "DeiT": DeiTImageProcessorPil}[kind](**settings)
    wanted = processor(noise(height, width), return_tensors="np")["pixel_values"][0]
    stated = json.loads(processor.to_json_string())
    ours = read(tmp_path, stated)
    pixels = ours.transform(noise(height, width))
    assert pixels.shape[:2] == ours.output_size(height, width) == wanted.shape[1:]
    assert np.abs(ours.normalize(pixels) - wanted).max() < 1e-5


def test_old_files_state_one_number_and_no_steps(tmp_path: Path) -> None:
    preprocessing = read(tmp_path, {"feature_extractor_type": "ViTFeatureExtractor", "size": 24, "resample": 2})
    assert (preprocessing.resize, preprocessing.crop, preprocessing.mean, preprocessing.std) == (
        (24, 24),
        None,
        (0.5,) * 3,
        (0.5,) * 3,
    )
    assert preprocessing.scale == 1 / 255


def test_colors_come_back_from_the_numbers(tmp_path: Path) -> None:
    ours = read(tmp_path, {"size": 16, **MEAN_STD})
    pixels = ours.transform(noise(30, 40))
    levels = (ours.normalize(pixels).transpose(1, 2, 0) * np.array(ours.std) + np.array(ours.mean)) / ours.scale
    assert np.array_equal(levels.round(), pixels)


def test_a_mask_is_preprocessed_like_its_picture(tmp_path: Path) -> None:
    ours = read(tmp_path, {"size": {"height": 20, "width": 20}, "do_center_crop": True, "crop_size": 10})
    mask = np.zeros((40, 40), dtype=bool)
    mask[10:20, 20:31] = True
    pixels = ours.transform_mask(mask)
    assert pixels.shape == (10, 10)
    assert np.argwhere(pixels).min(0).tolist() == [0, 5]
    assert np.argwhere(pixels).max(0).tolist() == [4, 9]


CROPPED = {"size": {"height": 32, "width": 50}, "do_center_crop": True, "crop_size": {"height": 24, "width": 40}}
CASES: list[dict[str, Any]] = [
    *({"architecture": name} for name in ARCHITECTURES),
    {"image": (24, 40), "processor": CROPPED},
    {"image": (25, 43), "patch": 4},
]


def picture(height: int = 30, width: int = 47) -> np.ndarray:
    return np.random.default_rng(2).integers(0, 256, (height, width, 3), dtype=np.uint8)


@pytest.mark.parametrize("settings", CASES)
def test_the_view_is_that_of_the_loaded_model(settings: dict[str, Any], tmp_path: Path) -> None:
    folder = str(save_vit(tmp_path / "vit", **settings))
    view, model = read_view(folder), load_image_model(folder)
    encoded = model.encode(Picture(picture()))
    assert (view.size, view.patch, view.grid) == (model.size, model.patch, model.grid)
    assert (view.specials, view.labels) == (encoded.specials, model.labels)
    assert (view.model, view.revision, view.preprocessing) == (model.id, model.revision, model.preprocessing)
    assert np.array_equal(view.transform(picture()), encoded.pixels)


@pytest.mark.parametrize("name", catalog.embedded_image_models())
def test_the_embedded_models_are_seen_without_loading(name: str) -> None:
    view, model = read_view(name), load_image_model(name)
    assert (view.size, view.patch, view.grid, view.labels) == (model.size, model.patch, model.grid, model.labels)


def test_a_mask_goes_the_way_of_its_picture(tmp_path: Path) -> None:
    view = read_view(str(save_vit(tmp_path / "vit", image=(24, 40), processor=CROPPED)))
    mask = np.zeros((64, 100), dtype=bool)
    mask[24:40, 26:42] = True  # half as large it is 12:20, 13:21; the middle starts at 4, 5
    assert np.argwhere(view.transform_mask(mask))[[0, -1]].tolist() == [[8, 8], [15, 15]]
    assert np.argwhere(view.patches(mask)).tolist() == [[1, 1]]
    assert np.array_equal(view.patches(mask), patch_mask(view.transform_mask(mask), view.patch))


def test_labels_that_nobody_named_are_numbered(tmp_path: Path) -> None:
    folder = save_vit(tmp_path / "vit")
    edit(folder, "config.json", id2label=None, label2id=None, num_labels=3)
    assert read_view(str(folder)).labels == load_image_model(str(folder)).labels == ("LABEL_0", "LABEL_1", "LABEL_2")


def test_changed_files_are_read_again(tmp_path: Path) -> None:
    folder = save_vit(tmp_path / "vit")
    before = read_view(str(folder))
    assert read_view(str(folder)) is before
    edit(folder, "config.json", id2label={"0": "ant", "1": "bee", "2": "cow"})
    assert read_view(str(folder)).labels == ("ant", "bee", "cow")


@pytest.mark.parametrize(
    ("name", "changes", "error"),
    [
        ("preprocessor_config.json", {"size": {"height": 20, "width": 24}}, ExegesisError),
        ("preprocessor_config.json", {"resample": 77}, ExegesisError),
        ("config.json", {"model_type": "bert"}, ExegesisError),
        ("config.json", {"architectures": ["ViTModel"]}, ExegesisError),
        ("config.json", {"num_channels": 1}, ExegesisError),
    ],
)
def test_errors_are_those_of_loading(
    name: str, changes: dict[str, Any], error: type[Exception], tmp_path: Path
) -> None:
    folder = save_vit(tmp_path / "vit", num_channels=changes.get("num_channels", 3))
    edit(folder, name, **changes)
    messages = []
    for look in (read_view, load_image_model):
        with pytest.raises(error) as caught:
            look(str(folder))
        messages.append(str(caught.value))
    assert messages[0] == messages[1]


def test_a_missing_processor_and_an_unknown_model_are_reported(tmp_path: Path) -> None:
    folder = save_vit(tmp_path / "vit")
    (folder / "preprocessor_config.json").unlink()
    with pytest.raises(ExegesisError, match=r"no preprocessor_config\.json in its folder, so its preprocessing is"):
        read_view(str(folder))
    with pytest.raises(UsageError, match="unknown name 'scenes'"):
        read_view("scenes")


@pytest.mark.parametrize("changes", [{"patch_size": 0}, {"image_size": "large"}, {"id2label": {"7": "cat"}}])
def test_a_config_without_sense_is_reported(changes: dict[str, Any], tmp_path: Path) -> None:
    folder = save_vit(tmp_path / "vit")
    edit(folder, "config.json", **changes)
    with pytest.raises(ExegesisError, match=r"its config\.json is invalid \(.*\)\. Download or save it again"):
        read_view(str(folder))


def test_a_gap_in_the_labels_is_reported_alike_with_the_weights(tmp_path: Path) -> None:
    folder = save_vit(tmp_path / "vit")
    edit(folder, "config.json", id2label={"0": "cat", "1": "dog", "7": "eel"})
    messages = []
    for read in (read_view, load_image_model):
        with pytest.raises(ExegesisError, match=r"its config\.json is invalid \(KeyError: '2'\)\.") as caught:
            read(str(folder))
        messages.append(str(caught.value))
    assert messages[0] == messages[1]


def test_torch_is_not_needed(tmp_path: Path) -> None:
    script = (
        "import sys; from engine.vision.picture import read_view; read_view(sys.argv[1]); print('torch' in sys.modules)"
    )
    folder = str(save_vit(tmp_path / "vit"))
    done = subprocess.run([sys.executable, "-c", script, folder], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def edit(folder: Path, name: str, **changes: object) -> None:
    file = folder / name
    content = json.loads(file.read_text()) | changes
    file.write_text(json.dumps({key: value for key, value in content.items() if value is not None}))
