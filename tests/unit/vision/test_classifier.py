"""The gate of image models: what ours computes is what the plain checkpoint computes."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers

from engine.errors import ExegesisError, UsageError
from engine.input_kinds import kind_of_model
from engine.models import catalog
from engine.models.loading import load_image_model, load_model
from engine.request import Picture
from engine.vision.classifier import ImageClassifier
from engine.vision.picture import PictureBatch, patch_mask
from tests.unit.vision.tiny_vit import ARCHITECTURES, save_vit

Save = Callable[..., str]


@pytest.fixture
def saved(tmp_path: Path) -> Save:
    return lambda *args, **settings: str(save_vit(tmp_path / "vit", *args, **settings))


def pictures(count: int = 3, height: int = 30, width: int = 40) -> list[np.ndarray]:
    chance = np.random.default_rng(4)
    return [chance.integers(0, 256, (height, width, 3), dtype=np.uint8) for _ in range(count)]


def batch_of(model: ImageClassifier, count: int = 3) -> PictureBatch:
    return model.collate([model.encode(Picture(pixels)) for pixels in pictures(count)])


def plain(folder: str, architecture: str) -> Any:
    return getattr(transformers, architecture).from_pretrained(folder, dtype=torch.float32).eval()


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_logits_are_those_of_the_plain_model(architecture: str, saved: Save) -> None:
    folder = saved(architecture)
    model, batch = load_image_model(folder), None
    batch = batch_of(model)
    with torch.inference_mode():
        wanted = torch.cat([plain(folder, architecture)(pixel_values=row[None]).logits for row in batch.pictures])
        assert wanted.std() > 0.1
        for logits in (
            model.logits(batch),
            model.logits(batch, model.embed(batch)),
            model.logits_with_attention(batch)[0],
        ):
            assert torch.allclose(logits, wanted, atol=1e-5)


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_attention_is_read_for_every_layer_and_head(architecture: str, saved: Save) -> None:
    model = load_image_model(saved(architecture))
    with torch.inference_mode():
        _, recorder = model.logits_with_attention(batch_of(model, 2))
    specials = len(model.adapter.specials)
    assert [tuple(layer.shape) for layer in recorder.probabilities] == [(2, 4, 9 + specials, 9 + specials)] * 3
    assert all(torch.allclose(layer.sum(-1), torch.ones(())) for layer in recorder.probabilities)


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_a_hidden_patch_is_as_if_it_were_not_there(architecture: str, saved: Save) -> None:
    model = load_image_model(saved(architecture))
    batch = batch_of(model, 2)
    specials = len(model.adapter.specials)
    hidden = [specials + 2, specials + 7]
    visible = batch.visible.clone()
    visible[:, hidden] = False
    remaining = [i for i in range(visible.shape[1]) if i not in hidden]
    places = model.module.get_submodule(model.adapter.embeddings).position_embeddings
    with torch.inference_mode():
        masked = model.logits(PictureBatch(batch.pictures, batch.index, visible, False))
        states = (model.embed(batch) + places)[:, remaining]
        for block in model.blocks:
            states = block(states)
        states = model.module.get_submodule(model.adapter.norm)(states)
        heads = [model.module.get_submodule(name) for name in model.adapter.heads]
        shorter = sum(head(states[:, i]) for i, head in enumerate(heads)) / len(heads)
    assert torch.allclose(masked, shorter, atol=1e-5)
    assert not torch.allclose(masked, model.logits(batch), atol=1e-2)


def test_gradients_reach_the_pixels(saved: Save) -> None:
    model = load_image_model(saved(), "float64")
    batch = batch_of(model, 1)
    points = model.points(batch, "pixels").requires_grad_()
    (slope,) = torch.autograd.grad(model.logits(batch, model.embed_points(points, "pixels"))[0, 1], points)
    step = torch.zeros_like(batch.pictures)
    step[0, 2, 9, 17] = 1e-5
    with torch.no_grad():
        up, down = (model.logits(replace(batch, pictures=batch.pictures + sign * step))[0, 1] for sign in (1, -1))
    # Patches of 8 x 8, 3 a row: the pixel is in the 6th, after the class token; its channel, row and column there.
    assert ((up - down) / 2e-5).item() == pytest.approx(slope[0, 1 + 5, 2 * 64 + 1 * 8 + 1].item(), rel=1e-5)


def test_a_model_has_its_own_grid_and_labels(saved: Save) -> None:
    model = load_image_model(saved(image=(24, 40), patch=8))
    encoded = model.encode(Picture(pictures(1)[0]))
    assert (model.size, model.grid, model.patch) == ((24, 40), (3, 5), (8, 8))
    assert model.labels == ("cat", "dog", "eel")
    assert (len(encoded), encoded.features.tolist(), encoded.special.sum()) == (16, list(range(1, 16)), 1)
    assert encoded.pixels.shape == (24, 40, 3)
    assert encoded.on_grid(np.arange(16.0)).tolist()[1] == [6, 7, 8, 9, 10]


def test_the_order_of_patches_is_row_by_row(saved: Save) -> None:
    model = load_image_model(saved(image=(24, 40), patch=8))
    batch = batch_of(model, 1)
    changed = batch.pictures.clone()
    changed[0, :, 8:16, 16:24] += 1
    difference = (model.embed(replace(batch, pictures=changed)) - model.embed(batch)).abs().sum(-1)[0]
    assert difference.nonzero().flatten().tolist() == [1 + 1 * 5 + 2]


def test_pictures_are_distinguished_by_their_pixels(saved: Save) -> None:
    model = load_image_model(saved())
    first, second, again = (model.encode(Picture(p)) for p in (*pictures(2), pictures(1)[0]))
    assert np.array_equal(first.ids, again.ids)
    assert not np.array_equal(first.ids, second.ids)
    assert first.ids.shape == (10,)


def test_predictions_and_targets(saved: Save) -> None:
    model = load_image_model(saved())
    encoded = [model.encode(Picture(pixels)) for pixels in pictures(3)]
    with torch.inference_mode():
        logits = model.logits(model.collate(encoded))
    predictions = model.predictions(logits, encoded)
    assert all(sum(p.probabilities) == pytest.approx(1) for p in predictions)
    assert [p.index for p in predictions] == logits.argmax(1).tolist()
    assert {model.target_index(target, predictions[0], encoded[0]) for target in ("dog", 1)} == {1}
    with pytest.raises(
        UsageError, match=r"target: unknown name 'cow'\. .*Known: cat, dog, eel\. Or a number from 0 to 2"
    ):
        model.target_index("cow", predictions[0], encoded[0])


def test_a_base_at_224_has_196_patches_and_144_heads(tmp_path: Path) -> None:
    folder = tmp_path / "base"
    config = transformers.ViTConfig(num_labels=2)
    transformers.ViTForImageClassification(config).half().save_pretrained(str(folder))
    (folder / "preprocessor_config.json").write_text(json.dumps({"size": 224, "image_mean": [0.5] * 3}))
    model = load_image_model(str(folder))
    with torch.inference_mode():
        logits, recorder = model.logits_with_attention(batch_of(model, 1))
    assert (model.grid, len(model.encode(Picture(pictures(1)[0])).features)) == ((14, 14), 196)
    assert sum(layer.shape[1] for layer in recorder.probabilities) == 144
    assert torch.isfinite(logits).all()


def test_loaded_models_are_shared_and_frozen(saved: Save) -> None:
    folder = saved()
    model = load_image_model(folder)
    assert load_image_model(folder) is model
    assert not any(p.requires_grad for p in model.module.parameters())
    assert not model.module.training


def test_the_preprocessing_is_part_of_the_revision(saved: Save) -> None:
    folder = saved()
    before = catalog.revision(folder)
    file = Path(folder) / "preprocessor_config.json"
    file.write_text(file.read_text().replace("0.4", "0.41"))
    assert catalog.revision(folder) != before
    assert kind_of_model(folder) == "image"


def edit(folder: str, name: str, **changes: object) -> None:
    file = Path(folder) / name
    content = json.loads(file.read_text()) | changes
    file.write_text(json.dumps({key: value for key, value in content.items() if value is not None}))


def test_a_model_without_a_processor_is_reported(saved: Save) -> None:
    folder = saved()
    (Path(folder) / "preprocessor_config.json").unlink()
    with pytest.raises(ExegesisError, match=r"no preprocessor_config\.json in its folder, so its preprocessing is"):
        load_image_model(folder)


@pytest.mark.parametrize(
    ("name", "changes", "message"),
    [
        (
            "preprocessor_config.json",
            {"size": {"height": 20, "width": 24}},
            r"reads 24 x 24 .* gives 24 x 20\. Correct",
        ),
        ("preprocessor_config.json", {"size": {"shortest_edge": 24}}, r"reads 24 x 24 pixels, .* gives 36 x 24"),
        ("preprocessor_config.json", {"resample": 77}, r"is invalid \(ValueError: .*resample: must be one of"),
        ("preprocessor_config.json", {"image_mean": [0.5]}, r"is invalid .*must be three numbers"),
        ("preprocessor_config.json", {"size": "large"}, r"is invalid"),
        (
            "config.json",
            {"model_type": "bert"},
            r"its type 'bert' is not a supported image model\. Supported: ViT, DeiT",
        ),
        ("config.json", {"architectures": ["ViTModel"]}, r"no classifier\. Its architecture is ViTModel; it must be"),
        ("config.json", {"architectures": None}, r"no classifier\. Its architecture is not stated"),
        ("config.json", {"hidden_size": 32}, r"its weights do not match its config\.json"),
        ("config.json", {"num_hidden_layers": 4}, r"its weights are incomplete \(vit\.layers\.3"),
    ],
)
def test_what_makes_a_checkpoint_unusable_is_reported(
    name: str, changes: dict[str, object], message: str, saved: Save
) -> None:
    folder = saved()
    edit(folder, name, **changes)
    with pytest.raises(ExegesisError, match=message):
        load_image_model(folder)


def test_an_image_model_reads_no_texts(saved: Save) -> None:
    with pytest.raises(ExegesisError, match=r"reads pictures, not texts\. Use a text model, such as .*reviews-minilm"):
        load_model(saved())


def test_a_model_of_gray_pictures_is_reported(saved: Save) -> None:
    with pytest.raises(ExegesisError, match=r"reads pictures of 1 channels; 3 \(red, green, blue\) are needed"):
        load_image_model(saved(num_channels=1))


def test_patches_that_belong_to_a_mask() -> None:
    mask = np.zeros((24, 40), dtype=bool)
    mask[8:16, 16:20] = True  # half of one patch
    mask[0:3, 0:8] = True  # three eighths of another
    assert np.argwhere(patch_mask(mask, (8, 8))).tolist() == [[1, 2]]
    mask[8:16, 16:20] = False
    assert np.argwhere(patch_mask(mask, (8, 8))).tolist() == [[0, 0]]
    assert not patch_mask(np.zeros((24, 40), dtype=bool), (8, 8)).any()
