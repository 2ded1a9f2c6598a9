from __future__ import annotations

import dataclasses
import json
import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import pytest
import torch
import transformers
from PIL import Image
from safetensors.torch import load_file

from engine.cli.root import app
from engine.data.examples import ImageDataset
from engine.errors import Cancelled, ExegesisError, UsageError
from engine.models import checkpoint_files
from engine.progress import CancelToken, silent
from engine.training import image_data, image_training
from engine.training.config import ImageTrainConfig
from engine.training.image_data import (
    PixelSet,
    load_further_images,
    measure_normalization,
    read_image_corpus,
    resize_to_square,
)
from engine.training.image_training import load_vit, train_images
from engine.training.loop import warmup_cosine
from tests.project import ROOT
from tests.unit.data.conftest import class_files, unpacked

SMALL = {"size": 8, "patch": 4, "layers": 1, "width": 16, "heads": 2, "shift": 1}
QUICK = {"epochs": 4, "batch_size": 8, "learning_rate": 5e-3, "held_out": 8, "average": 0.5, "device": "cpu"}
Train = Callable[..., ImageTrainConfig]


@pytest.fixture
def config(tmp_path: Path) -> Train:
    """Makes the config of a tiny run on red and blue pictures."""
    data = unpacked(tmp_path / "pictures", class_files(per_class=24))

    def make(out: str = "m", **changes: Any) -> ImageTrainConfig:
        return ImageTrainConfig(dataset=str(data), out=str(tmp_path / out), **{**SMALL, **QUICK, **changes})

    return make


def batch(count: int = 64, side: int = 8) -> torch.Tensor:
    torch.manual_seed(0)
    return torch.rand(count, 3, side, side)


def test_a_tiny_vit_learns_and_the_stored_model_is_what_was_measured(config: Train) -> None:
    result = train_images(config())
    assert result.scores["held-out"].value == result.history[result.best_epoch].held_out == 1.0
    assert result.scores["test"].value == 1.0
    assert result.scores["test"].count == 48
    assert sorted(path.name for path in result.out.iterdir()) == [
        "card.json", "card.md", "config.json", "model.safetensors", "preprocessor_config.json",
    ]  # fmt: skip


def test_the_stored_folder_is_read_by_transformers_alone(config: Train) -> None:
    out = train_images(config()).out
    module = transformers.AutoModelForImageClassification.from_pretrained(str(out), dtype=torch.float32).eval()
    processor = json.loads((out / "preprocessor_config.json").read_text())
    assert module.config.id2label == {0: "blue", 1: "red"}
    assert processor["size"] == {"height": 8, "width": 8}
    pixels = torch.tensor([30.0, 30.0, 220.0]).view(1, 3, 1, 1).expand(1, 3, 8, 8) / 255
    mean, std = (torch.tensor(processor[name]).view(1, 3, 1, 1) for name in ("image_mean", "image_std"))
    with torch.inference_mode():
        assert module(pixel_values=(pixels - mean) / std).logits.argmax().item() == 0


def test_float16_changes_the_probabilities_by_less_than_a_thousandth(config: Train) -> None:
    kept = {half: train_images(config(out=str(half), half=half)).out for half in (True, False)}
    tensors = {half: load_file(out / "model.safetensors") for half, out in kept.items()}
    assert {t.dtype for t in tensors[True].values()} == {torch.float16}
    assert all(t.half().equal(tensors[True][name]) for name, t in tensors[False].items())
    answers = []
    for out in kept.values():
        module = load_vit(out, ("blue", "red")).eval()
        with torch.inference_mode():
            answers.append(torch.softmax(module(pixel_values=batch()).logits, 1))
    assert (answers[0] - answers[1]).abs().max() < 1e-3


def test_cancelled_and_taken_up_again_it_gives_the_same_weights(config: Train) -> None:
    whole = train_images(config("whole", drop_patches=0.5, turn=10.0))
    token, cut = CancelToken(), config("cut", drop_patches=0.5, turn=10.0)
    with pytest.raises(Cancelled):
        train_images(cut, lambda done, total, label: token.cancel() if done == 7 else None, token)
    again = train_images(cut)
    assert again.card["sha256"] == whole.card["sha256"]
    assert [r.loss for r in again.history] == [r.loss for r in whole.history]


KILLED = """
import json, os, signal, sys, torch
from engine.training.config import ImageTrainConfig
from engine.training.image_training import train_images
torch.set_num_threads(int(sys.argv[2]))
def report(done, total, label):
    if done == 9:
        os.kill(os.getpid(), signal.SIGKILL)
train_images(ImageTrainConfig(**json.loads(sys.argv[1])), report)
"""


@pytest.mark.slow(reason="trains twice, once in a process of its own")
def test_sigkill_in_mid_epoch_changes_no_bit(config: Train) -> None:
    whole, cut = config("whole", checkpoint_steps=4), config("cut", checkpoint_steps=4)
    command = [sys.executable, "-c", KILLED, json.dumps(dataclasses.asdict(cut)), str(torch.get_num_threads())]
    ended = subprocess.run(command, cwd=ROOT, env=os.environ | {"PYTHONPATH": str(ROOT)}, check=False)
    assert ended.returncode == -signal.SIGKILL
    steps: list[int] = []
    resumed = train_images(cut, lambda done, total, label: steps.append(done) if done else None)
    assert steps[0] == 9
    assert resumed.card["sha256"] == train_images(whole).card["sha256"]


def test_another_setting_does_not_take_up_a_checkpoint(config: Train) -> None:
    token = CancelToken()
    with pytest.raises(Cancelled):
        train_images(config(), lambda done, total, label: token.cancel() if done == 2 else None, token)
    with pytest.raises(
        UsageError, match=r"out: holds a checkpoint of a run with another flip, seed\. Use the same settings"
    ):
        train_images(config(flip=False, seed=1))


def test_a_stored_vit_is_a_base_to_go_on_from(config: Train, tmp_path: Path) -> None:
    first = train_images(config("first"))
    second = train_images(config("second", base=str(first.out), epochs=1, learning_rate=0.0, size=32))
    assert second.scores["test"] == first.scores["test"]
    assert second.card["base"]["sha256"] == first.card["sha256"]
    assert "8 x 8 pixels in 2 x 2 patches" in second.card["shape"]
    with pytest.raises(UsageError, match="is the folder of the base, which would be overwritten"):
        train_images(config("first", base=str(first.out)))


def test_the_card_says_how(config: Train) -> None:
    result = train_images(config(epochs=1, drop_patches=0.25))
    page = (result.out / "card.md").read_text()
    assert result.card["command"] in page
    assert "--base vit --dataset " in result.card["command"]
    assert "--drop-patches 0.25" in result.card["command"]
    assert result.card["sha256"] == checkpoint_files.weights_sha256(result.out)
    assert "1 blocks x 16, 2 heads; images of 8 x 8 pixels in 2 x 2 patches" in page
    assert "bytes in float16" in page
    assert f"| test | {result.scores['test'].value:.4f} | 48 |" in page


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"patch": 3}, r"patch: must be a divisor of size, 8, got 3"),
        ({"width": 18}, r"width: must be a multiple of 4 and of the 2 heads, got 18"),
        ({"measure": "digits"}, r"measure digits: must be labeled blue, red, got '0, 1, 2"),
        ({"dataset": "photos"}, r"dataset: photos has fewer than two classes\. Put the images of each class"),
        ({"learning_rate": 1e30, "clip": 0.0}, r"learning_rate: the loss became (nan|inf) at step \d+"),
    ],
)
def test_what_cannot_be_trained_is_told(changes: dict[str, Any], said: str, config: Train) -> None:
    with pytest.raises(ExegesisError, match=said):
        train_images(dataclasses.replace(config(), **changes))


def test_other_families_and_unknown_preprocessing_are_refused_as_a_base(config: Train, tmp_path: Path) -> None:
    folder = tmp_path / "other"
    folder.mkdir()
    for settings, said in (
        ({"model_type": "bert"}, "must be a ViT, or vit for a new one, got .* of type 'bert'"),
        ({"model_type": "vit"}, "has no prepro"),
    ):
        (folder / "config.json").write_text(json.dumps(settings))
        with pytest.raises(ExegesisError, match=said):
            train_images(config(base=str(folder)))


def test_too_few_pictures_are_told(config: Train, tmp_path: Path) -> None:
    data = unpacked(tmp_path / "few", class_files(per_class=4))
    with pytest.raises(ExegesisError, match="has 8 labeled images; at least 10 are needed"):
        train_images(dataclasses.replace(config(), dataset=str(data)))


def test_pictures_that_are_trained_on_are_not_measured(tmp_path: Path) -> None:
    files = class_files(splits=("train",))
    whole, copy = (unpacked(tmp_path / name, files) for name in ("whole", "copy"))
    for measured in (whole, copy, f"{whole}:rows=0-3"):
        with pytest.raises(UsageError, match=r"measure: must be data sets that are not trained on, got '/"):
            load_further_images(str(measured), read_image_corpus(str(whole)))
    [data] = load_further_images(f"{whole}:rows=0-1", read_image_corpus(f"{whole}:rows=2-5")).values()
    assert len(data) == 2
    split = unpacked(tmp_path / "split", class_files(splits=("train", "test")))
    [data] = load_further_images(str(split), read_image_corpus(str(split))).values()
    assert data.split == "test"
    other = unpacked(tmp_path / "test", class_files(splits=("test",)))
    assert [*load_further_images(str(other), read_image_corpus(str(split)))] == [str(other)]


@pytest.mark.parametrize("labeled", [0, 3])
def test_pictures_without_a_label_are_not_measured(
    labeled: int, config: Train, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in a test split whose labels are not published."""
    load = image_data.load_images

    def load_some(name: str, split: str | None = None) -> ImageDataset:
        data = load(name, split=split)
        if split == "train":
            return data
        return dataclasses.replace(data, labels=data.labels[:labeled] + (None,) * (len(data) - labeled))

    monkeypatch.setattr(image_data, "load_images", load_some)
    scores = train_images(config(epochs=1)).scores
    assert [score.count for name, score in scores.items() if name == "test"] == ([labeled] if labeled else [])
    if not labeled:
        with pytest.raises(UsageError, match="measure: must be data sets with labels"):
            load_further_images(config().dataset, read_image_corpus(config().dataset))


def test_the_held_out_part_is_never_trained_on_and_sizes_are_kept(config: Train) -> None:
    result = train_images(config(train_size=20, epochs=1))
    assert result.card["sizes"] == {"train": 20, "held_out": 8, "dropped": 0}


def test_normalisation_is_that_of_the_pixels() -> None:
    pixels = (batch(50) * 255).to(torch.uint8)
    found = measure_normalization(pixels)
    unit = pixels.double() / 255
    assert found.mean == pytest.approx(unit.mean((0, 2, 3)).tolist(), abs=1e-4)
    assert found.std == pytest.approx(unit.std((0, 2, 3), correction=0).tolist(), abs=1e-4)
    data = PixelSet(pixels, [0.0] * 50, found)
    values = data.batch(range(50), torch.device("cpu"))["pixel_values"]
    assert values.mean((0, 2, 3)).abs().max() < 1e-3
    assert (values.std((0, 2, 3)) - 1).abs().max() < 1e-3


def test_a_constant_channel_does_not_divide_by_zero() -> None:
    assert measure_normalization(torch.full((3, 3, 4, 4), 9, dtype=torch.uint8)).std == (0.01, 0.01, 0.01)


def test_resizing_to_its_own_size_changes_nothing() -> None:
    pixels = np.arange(4 * 4 * 3, dtype=np.uint8).reshape(4, 4, 3)
    assert np.array_equal(resize_to_square(pixels, 4), pixels)
    assert np.array_equal(resize_to_square(pixels, 8), np.asarray(Image.fromarray(pixels).resize((8, 8), 2)))


def test_flipping_mirrors_about_half() -> None:
    pixels = batch()
    changed = image_data.flip_images(pixels)
    mirrored = [torch.equal(new, old.flip(2)) for new, old in zip(changed, pixels, strict=True)]
    kept = [torch.equal(new, old) for new, old in zip(changed, pixels, strict=True)]
    assert all(a != b for a, b in zip(mirrored, kept, strict=True))
    assert 20 <= sum(mirrored) <= 44


def test_shifting_moves_by_every_offset_up_to_the_most() -> None:
    ramp = torch.arange(8.0).expand(200, 3, 8, 8) / 8
    torch.manual_seed(1)
    changed = image_data.shift_images(ramp, 2)
    offsets = ((changed[:, 0, 4, 4] - ramp[:, 0, 4, 4]) * 8).round().int()
    assert set(offsets.tolist()) == {-2, -1, 0, 1, 2}
    assert changed.min() >= 0
    assert changed.max() <= ramp.max()


def test_turning_by_the_most_of_ninety_degrees_is_a_quarter_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    pixels = batch(4)
    for chance, quarters in ((1.0, 1), (0.0, -1), (0.5, 0)):
        monkeypatch.setattr(image_data.torch, "rand", lambda *shape, drawn=chance: torch.full(shape, drawn))
        assert torch.allclose(image_data.turn_images(pixels, 90), pixels.rot90(quarters, (2, 3)), atol=1e-5)


def test_jitter_keeps_pixels_in_range_and_is_nothing_at_strength_zero() -> None:
    pixels = batch()
    assert torch.allclose(image_data.jitter_images(pixels, 0.0), pixels, atol=1e-6)
    changed = image_data.jitter_images(pixels, 0.5)
    assert changed.min() >= 0
    assert changed.max() <= 1
    assert (changed - pixels).abs().mean() > 0.05


def test_dropped_patches_are_gone_in_training_only_and_the_class_token_stays(config: Train) -> None:
    module: Any = image_training.new_vit(config(size=16), ("a", "b"))
    tokens = torch.arange(17.0)[None, :, None].expand(3, 17, 2)
    seen: list[torch.Size] = []
    module.vit.layers[0].register_forward_hook(lambda _, inputs, out: seen.append(inputs[0].shape))
    with image_data.drop_patches(module.vit.embeddings, 0.25):
        module.train()(pixel_values=batch(3, 16))
        module.eval()(pixel_values=batch(3, 16))
    module.train()(pixel_values=batch(3, 16))
    assert [shape[1] for shape in seen] == [13, 17, 17]
    kept = image_data.drop_tokens(tokens, 0.25)[..., 0]
    assert kept.shape == (3, 13)
    assert (kept[:, 0] == 0).all()
    assert (kept.diff(dim=1) > 0).all()
    assert not kept[0].equal(kept[1]) or not kept[1].equal(kept[2])


def test_new_weights_start_as_the_paper_says() -> None:
    torch.manual_seed(0)
    config = ImageTrainConfig(size=16, patch=4, layers=1, width=64, heads=1)
    attention = image_training.new_vit(config, ("a", "b")).vit.layers[0].attention  # type: ignore[union-attr]
    queries_keys = attention.q_proj.weight.T @ attention.k_proj.weight
    values_out = attention.v_proj.weight.T @ attention.o_proj.weight.T
    eye = torch.eye(64, dtype=torch.bool)
    assert queries_keys[eye].mean().item() == pytest.approx(0.7, abs=0.05)
    assert values_out[eye].mean().item() == pytest.approx(-0.4, abs=0.03)
    assert queries_keys[~eye].std().item() == pytest.approx(0.7 / 8, rel=0.1)
    assert values_out[~eye].std().item() == pytest.approx(0.4 / 8, rel=0.1)


def test_positions_are_near_where_patches_are_near() -> None:
    places = image_training.sincos_positions(8, 32)
    assert places.shape == (64, 32)
    near = (places @ places.T)[27]
    assert near.argmax() == 27
    assert set(near.topk(5).indices.tolist()) == {27, 26, 28, 19, 35}


def test_the_learning_rate_rises_then_falls_along_a_cosine() -> None:
    rates = [warmup_cosine(step, 100, 0.1) for step in range(101)]
    assert rates[:10] == pytest.approx([(i + 1) / 10 for i in range(10)])
    assert rates[55] == pytest.approx(0.5)
    assert rates[100] == pytest.approx(0, abs=1e-12)
    assert warmup_cosine(0, 10, 0.0) == 1


def test_the_command_on_a_card_can_be_given(monkeypatch: pytest.MonkeyPatch) -> None:
    from typer.testing import CliRunner

    from engine.training import image_training

    asked: list[ImageTrainConfig] = []

    def stop(config: ImageTrainConfig, *rest: object) -> NoReturn:
        asked.append(config)
        raise SystemExit(0)

    monkeypatch.setattr(image_training, "train_images", stop)
    config = ImageTrainConfig(dataset="digits", epochs=3, flip=False, drop_patches=0.25, size=64)
    CliRunner().invoke(app, shlex.split(config.command())[1:])
    CliRunner().invoke(app, ["train", "--dataset", "scenes-marked:strength=0.5", "--no-flip"])
    CliRunner().invoke(app, ["train", "--base", "digits-vit", "--dataset", "sst2"])
    marked = ImageTrainConfig(dataset="scenes-marked:strength=0.5", flip=False)
    assert asked == [config, marked, ImageTrainConfig(base="digits-vit", dataset="sst2")]


def test_a_run_leaves_the_callers_random_numbers_alone(config: Train) -> None:
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    train_images(config(epochs=1), silent)
    assert torch.rand(3).equal(expected)


def test_marked_scenes_are_measured_with_and_without_their_mark(tmp_path: Path) -> None:
    settings = {**SMALL, **QUICK, "size": 32, "patch": 8, "epochs": 1}
    result = train_images(ImageTrainConfig(dataset="scenes-marked:count=40", out=str(tmp_path / "m"), **settings))
    assert set(result.scores) == {"held-out", "validation", "test", "unmarked"}
    assert result.scores["unmarked"].count == result.scores["test"].count == 40
