"""`exegesis explain` on pictures: the JSON contract, files and picture sets, and what is refused."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from engine.data.image_datasets import load_images
from engine.explain import explain
from engine.registry import all_explainers
from engine.request import Picture, Request
from tests.unit.cli.conftest import Run
from tests.unit.data.conftest import class_files, plain, saved, zipped
from tests.unit.data.test_picture_files import black_png, chunk, png_header
from tests.unit.vision.tiny_vit import save_vit

GRID = (3, 4)


@pytest.fixture(scope="module")
def vit(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A classifier of 3 rows x 4 columns of patches."""
    return str(save_vit(tmp_path_factory.mktemp("vit") / "tiny", image=(24, 32)))


@pytest.fixture
def file(tmp_path: Path) -> Path:
    noise = np.random.default_rng(3).integers(0, 256, (30, 40, 3), dtype=np.uint8)
    Image.fromarray(noise).save(tmp_path / "mine.png")
    return tmp_path / "mine.png"


def explained(run: Run, *args: str) -> list[dict[str, Any]]:
    done = run("explain", *args, "--json")
    assert (done.code, done.err) == (0, ""), done.err
    return done.json


def test_the_json_has_the_grid_and_its_scores_in_place_of_features(run: Run, vit: str, file: Path) -> None:
    args = ("--model", vit, "--image", str(file), "--target", "dog", "--seed", "3", "--param", "steps=fixed")
    found = explained(run, "--method", "integrated_gradients,attention_rollout", *args)
    pixels = np.array(Image.open(file))
    for one in found:
        params = {"steps": "fixed"} if one["method"] == "integrated_gradients" else {}
        answer = explain(Request(vit, one["method"], Picture(pixels), params, "dog", 3))
        assert "features" not in one
        assert (one["grid"], one["target"], one["seed"]) == (list(GRID), "dog", 3)
        assert np.array_equal(np.reshape(one["scores"], GRID), answer.on_grid)
        assert one["special"] == [{"text": "[CLS]", "score": answer.scores[0]}]
        assert one["prediction"]["label"] == answer.prediction.label
        assert one["params"] == dict(answer.provenance.params)


def test_the_table_names_the_patches_and_the_picture(run: Run, vit: str, file: Path) -> None:
    lines = run("explain", "--model", vit, "--method", "occlusion,random", "--image", str(file)).out.splitlines()
    assert lines[1] == "mine.png, 40 x 30 pixels"
    assert lines[2].startswith("predicted ")
    assert next(line for line in lines if line.startswith("patch")).split() == ["patch", "occlusion", "random"]
    rows = [line for line in lines if line.startswith("row ")]
    assert rows[0].startswith("row 1, column 1 ")
    assert rows[-1].startswith("row 3, column 4 ")
    assert len(rows) == 12


def test_a_picture_of_a_set_is_the_one_at_its_place(run: Run, vit: str) -> None:
    args = ("--model", vit, "--method", "random,occlusion", "--dataset", "scenes", "--index", "3")
    test = explained(run, *args, "--split", "test")
    usual = explained(run, *args)
    for found, split in ((usual, None), (test, "test")):
        data = load_images("scenes", split=split)
        wanted = explain(Request(vit, "occlusion", Picture(data[3].pixels)))
        assert wanted.cached
        assert found[1]["scores"] == wanted.on_grid.ravel().tolist()
    assert usual[1]["scores"] != test[1]["scores"]
    told = run("explain", *args).out.splitlines()[1]
    assert told == f"picture 3 of scenes, labeled {data.label_names[load_images('scenes')[3].label]}, 64 x 64 pixels"


def test_pictures_of_a_zip(run: Run, vit: str, tmp_path: Path) -> None:
    place = str(zipped(tmp_path / "own.zip", class_files()))
    done = run("explain", "--model", vit, "--method", "random", "--dataset", place, "--split", "train", "--index", "1")
    assert (done.code, done.err) == (0, "")
    assert "labeled red, 8 x 8 pixels" in done.out.splitlines()[1]


def test_all_methods_for_pictures_run_and_those_that_cannot_are_named(run: Run, vit: str, file: Path) -> None:
    done = run("explain", "--model", vit, "--method", "all", "--image", str(file), "--json", "--param", "n_samples=64")
    assert done.code == 0
    ran = [one["method"] for one in done.json]
    left = [line.split()[1] for line in done.err.splitlines()]
    assert sorted(ran + left) == sorted(all_explainers("image"))
    assert "grad_cam" in ran


def test_parameters_are_addressed_as_for_texts(run: Run, vit: str, file: Path) -> None:
    pair = ("--param", "occlusion.removal=blur", "--param", "removal=zero")
    found = explained(run, "--model", vit, "--method", "lime,occlusion", "--image", str(file), *pair)
    assert [one["params"]["removal"] for one in found] == ["zero", "blur"]
    args = ("--model", vit, "--method", "occlusion", "--image", str(file), "--param", "removal=mask")
    said = run("explain", *args).complaint(2)
    assert said.startswith("occlusion.removal: must be one of mean, zero, blur, drop")


def test_a_model_of_the_other_kind_is_refused(run: Run, vit: str, bert: str, file: Path) -> None:
    said = run("explain", "--model", bert, "--method", "random", "--image", str(file)).complaint(1)
    assert (
        "its type 'bert' is not a supported image model. Supported: ViT, DeiT, DINOv2, DINOv2 with registers, CLIP, "
        "SigLIP, Swin. Use an image model, such as digits-vit" in said
    )
    for text in (("--text", "a film"), ("--dataset", "reviews", "--index", "0")):
        said = run("explain", "--model", vit, "--method", "random", *text).complaint(1)
        assert "reads pictures, not texts. Use a text model, such as reviews-minilm" in said
    said = run("explain", "--model", bert, "--method", "random", "--dataset", "digits", "--index", "0").complaint(1)
    assert "is not a supported image model" in said


@pytest.mark.parametrize("method", ["grad_cam", "attn_lrp", "no_such_method"])
def test_the_wrong_model_is_blamed_before_the_method(run: Run, vit: str, bert: str, file: Path, method: str) -> None:
    said = run("explain", "--model", vit, "--text", "hello", "--method", method).complaint(1)
    assert said.startswith(f"model {vit}: reads pictures, not texts.")
    said = run("explain", "--model", bert, "--image", str(file), "--method", method).complaint(1)
    assert said.startswith(f"model {bert}: its type 'bert' is not a supported image model.")


def test_a_method_of_the_other_kind_is_refused(run: Run, vit: str, bert: str, file: Path) -> None:
    said = run("explain", "--model", bert, "--method", "grad_cam", "--text", "a film").complaint(2)
    assert said.startswith("method: unknown name 'grad_cam'.")


def test_an_unknown_set_lists_those_that_the_model_reads(run: Run, vit: str) -> None:
    args = ("--model", vit, "--method", "random", "--dataset", "scene", "--index", "0")
    assert run("explain", *args).complaint(2).startswith("dataset: unknown name 'scene'. Did you mean 'scenes'?")


@pytest.mark.parametrize(
    ("args", "said"),
    [
        ((), "explain: needs one of --text, --image, or --dataset with --index, got none."),
        (("--text", "a", "--image", "b.png"), "got --text and --image."),
        (("--text", "a", "--image", "b.png", "--dataset", "c"), "got --text and --image and --dataset."),
        (("--image", "b.png", "--index", "1"), "--index: requires --dataset, got --image."),
        (("--image", "b.png", "--text-pair", "x"), "--text-pair: requires --text, got --image."),
        (("--image", "nowhere/b.png"), "--image: no file 'nowhere/b.png'. Give a PNG, JPEG, WebP or GIF picture."),
        (("--image", "/dev/zero"), "--image: no file '/dev/zero'."),
        (("--dataset", "scenes"), "--index: is missing; --dataset requires it."),
        (("--dataset", "scenes", "--index", "1000"), "index: must be 0 to 999 in scenes, got 1000."),
        (("--dataset", "scenes", "--index", "0", "--split", "x"), "split: unknown name 'x'."),
    ],
)  # fmt: skip
def test_what_is_given_wrongly(run: Run, vit: str, args: tuple[str, ...], said: str) -> None:
    assert said in run("explain", "--model", vit, "--method", "random", *args).complaint(2)


BAD = {
    "empty": (b"", "is empty. Give a PNG, JPEG, WebP or GIF picture."),
    "text": (b"not a picture", "is not a picture that can be read."),
    "truncated": (saved(plain(size=(60, 60)))[:90], "is damaged or truncated"),
    "huge": (png_header(50_000, 50_000), "must have at most 64 million pixels, got 50,000 x 50,000."),
    "svg": (b"<svg xmlns='http://www.w3.org/2000/svg'/>", "is an SVG drawing, not a picture of pixels."),
    "pdf": (b"%PDF-1.7 etc", "is a PDF document, which is not supported."),
    "zip": (b"PK\x03\x04", "is a zip archive, which is not supported."),
    "no pixels": (png_header(0, 5), "has no pixels (0 x 5)."),
}


@pytest.mark.parametrize("kind", BAD)
def test_a_bad_picture_is_one_sentence_and_nothing_is_kept(
    run: Run, vit: str, kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home, (content, said) = tmp_path / "home", BAD[kind]
    monkeypatch.setenv("EXEGESIS_HOME", str(home))
    place = tmp_path / "bad.png"
    place.write_bytes(content)
    told = run("explain", "--model", vit, "--method", "random", "--image", str(place)).complaint(1)
    assert told.startswith(f"--image: bad.png {said}")
    assert not list(home.rglob("*"))


def test_a_moving_a_turned_and_a_two_fold_picture_are_read(run: Run, vit: str, tmp_path: Path) -> None:
    red, blue = plain((200, 0, 0), (32, 24)), plain((0, 0, 200), (32, 24))
    exif = Image.Exif()
    exif[0x0112] = 3
    still = saved(red, "PNG")
    files = {
        "still.png": still,
        "turned.png": saved(red, "PNG", exif=exif),
        "moving.webp": saved(red, "WEBP", save_all=True, append_images=[blue], lossless=True),
        "both.png": still + b"PK\x03\x04 and a zip",
        "noted.png": still[:33] + chunk(b"tEXt", b"Comment\0" + b"x" * 10**6) + still[33:],
    }
    scores = []
    for name, content in files.items():
        (tmp_path / name).write_bytes(content)
        [one] = explained(run, "--model", vit, "--method", "occlusion", "--image", str(tmp_path / name))
        scores.append(one["scores"])
    assert all(one == scores[0] for one in scores)


def test_a_zip_that_climbs_out_or_is_a_bomb_is_one_sentence(run: Run, vit: str, tmp_path: Path) -> None:
    climbs = zipped(tmp_path / "climbs.zip", {"../../red/a.png": saved(plain()), "blue/a.png": saved(plain())})
    bomb = zipped(tmp_path / "bomb.zip", {"red/a.png": bytes(65 * 10**6), "blue/a.png": b""})
    for place, said in (
        (climbs, "points outside the zip file and is refused"),
        (bomb, "must unpack to at most 64.0 MB"),
    ):
        args = ("--model", vit, "--method", "random", "--dataset", str(place), "--index", "0")
        assert said in run("explain", *args).complaint(1)
        assert said in run("datasets", str(place)).complaint(1)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bomb.zip", "climbs.zip"]


def test_a_large_picture_in_a_small_file_is_read(run: Run, vit: str, tmp_path: Path) -> None:
    (tmp_path / "black.png").write_bytes(black_png(4000))
    [one] = explained(run, "--model", vit, "--method", "random", "--image", str(tmp_path / "black.png"))
    assert len(one["scores"]) == 12


def test_a_model_without_a_processor_is_refused(run: Run, tmp_path: Path, file: Path) -> None:
    folder = save_vit(tmp_path / "vit")
    (folder / "preprocessor_config.json").unlink()
    said = run("explain", "--model", str(folder), "--method", "random", "--image", str(file)).complaint(1)
    assert "no preprocessor_config.json in its folder, so its preprocessing is unknown." in said


def test_a_picture_of_many_classes_tells_the_first_of_them(run: Run, tmp_path: Path, file: Path) -> None:
    names = {i: f"kind {i}" for i in range(15)}
    folder = save_vit(tmp_path / "vit", id2label=names, label2id={name: i for i, name in names.items()})
    out = run("explain", "--model", str(folder), "--method", "random", "--image", str(file)).out
    assert out.splitlines()[2].count("kind ") == 12
    assert " and 5 more)" in out


def test_the_header_of_a_png_that_lies_is_no_trouble(run: Run, vit: str, tmp_path: Path) -> None:
    lie = bytearray(saved(plain(size=(32, 24))))
    lie[16:24] = struct.pack(">II", 7000, 9000)
    (tmp_path / "lie.png").write_bytes(bytes(lie))
    said = run("explain", "--model", vit, "--method", "random", "--image", str(tmp_path / "lie.png")).complaint(1)
    assert "is damaged or truncated" in said
