"""The link of what is looked at in pictures: what is written is read back, and nothing wrong in it goes unsaid."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from PIL import Image

from components.inputs import picture_choice as picture_focus
from components.inputs.datasets import OpenPictures, open_pictures, read_picture
from components.inputs.picture_choice import (
    PictureFocus,
    better_model,
    is_other_picture,
    read_picture_focus,
    true_class,
    usual_model,
    write_picture_focus,
)
from engine.data.image_datasets import load_images
from engine.errors import ExegesisError
from engine.store import store_picture

MODELS = ["digits-vit", "scenes-marked-vit", "scenes-vit"]
COLORS = {"red": (220, 30, 30), "blue": (30, 30, 220)}


@pytest.fixture(autouse=True)
def own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EXEGESIS_HOME", str(tmp_path / "home"))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """`blue/0.png`, `red/0.png`, `blue/1.png`, ... in the order of their data set; no two are alike."""
    for name, color in COLORS.items():
        (tmp_path / "set" / name).mkdir(parents=True)
        for i in range(3):
            Image.new("RGB", (8 + i, 8), color).save(tmp_path / "set" / name / f"{i}.png")
    return tmp_path / "set"


def read(**last: str) -> tuple[PictureFocus, OpenPictures, list[str]]:
    said: list[str] = []
    opened = open_pictures(last.get("data", "scenes"), last.get("split", ""))
    return read_picture_focus(last, MODELS, opened, said), opened, said


def again(focus: PictureFocus) -> PictureFocus:
    """What the written link is read back as."""
    found, _, said = read(**{name: given for name, [given] in write_picture_focus(focus).items()})
    assert not said
    return found


@pytest.mark.parametrize(
    ("name", "split", "index"),
    [
        ("scenes", "", 0),
        ("scenes", "test", 17),
        ("scenes-marked:strength=0.5,seed=3", "unmarked", 1999),
        ("digits", "train", 5),
        ("photos", "", 3),
    ],
)
def test_an_example_is_found_again_by_its_link(name: str, split: str, index: int) -> None:
    opened = open_pictures(name, split)
    focus = PictureFocus("digits-vit", name, split, index, chosen=read_picture(opened, index))
    assert again(focus) == focus
    assert "digest" not in write_picture_focus(focus)
    truth = load_images(name, split or None)[index]
    assert focus.picture is not None
    assert np.array_equal(focus.picture.pixels, truth.pixels)
    assert (focus.label, focus.name) == (truth.label, truth.name)
    assert (focus.mask is None) == (truth.mask is None)


def test_the_usual_split_is_not_written_and_an_unusual_word_for_it_is_understood() -> None:
    focus, opened, said = read(data="scenes", split="val", index="2")
    assert (opened.split, opened.data.split, said) == ("", "validation", [])
    assert again(replace(focus, split=opened.split)).index == 2


def test_a_picture_of_ones_own_is_found_again_by_its_hash_and_keeps_the_place_in_the_set() -> None:
    pixels = np.random.default_rng(1).integers(0, 256, (5, 7, 3), dtype=np.uint8)
    focus, _, said = read(index="4", picture_sha=store_picture(pixels))
    assert not said
    assert focus.own
    assert focus.picture is not None
    assert np.array_equal(focus.picture.pixels, pixels)
    assert (focus.label, focus.mask) == (None, None)
    assert again(focus) == focus
    assert again(focus).index == 4


@pytest.mark.parametrize("sha", ["0" * 64, "../../etc/passwd", "<b>x</b>", "0" * 63])
def test_a_picture_that_is_not_kept_is_said_and_the_example_shown(sha: str) -> None:
    focus, opened, said = read(index="4", picture_sha=sha, pin="1")
    assert not focus.own
    assert focus == PictureFocus("scenes-vit", index=4, chosen=read_picture(opened, 4))
    [sentence] = said
    assert sentence.startswith(
        "picture_sha: the link refers to a picture by its hash, which this machine does not have."
    )
    assert sha not in sentence
    assert is_other_picture({"picture_sha": sha}, focus, opened)


@pytest.mark.parametrize("index", ["1000", "-1", "x", "1e2", "²", "9" * 40, "0x1", ""])
def test_a_place_that_there_is_not_is_said(index: str) -> None:
    focus, _, said = read(index=index)
    assert said == [f"index: must be 0 to 999 in scenes, got {index[:40]!r}. The first picture is shown."]
    assert focus.index == 0


@pytest.mark.parametrize(
    ("name", "split", "told", "instead"),
    [
        ("no-such-set", "", "dataset: unknown name 'no-such-set'", "scenes is shown."),
        ("../../../etc/passwd", "", "passwd", "scenes is shown."),
        ("/dev/null", "", "null", "scenes is shown."),
        ("<img src=x>.zip", "", "<img src=x>.zip", "scenes is shown."),
        ("a\0b", "", "", "scenes is shown."),
        ("scenes:color=red", "", "color", "scenes is shown."),
        ("digits", "evening", "split: unknown name 'evening'. Known: test, train.", "Its split test is shown."),
        ("hub:nobody", "", "hub:owner/name", "scenes is shown."),
    ],
)
def test_a_set_that_cannot_be_had_is_one_sentence_and_stays_asked_for(
    name: str, split: str, told: str, instead: str
) -> None:
    focus, opened, said = read(data=name, split=split, index="7", digest="12345678")
    assert told in opened.error
    assert opened.error.endswith(instead)
    assert "\n" not in opened.error
    assert opened.requested == (name, split)
    assert (focus.data, focus.split, focus.index, said) == (name, split, 0, [])
    assert focus.picture is not None


def test_a_picture_put_before_it_makes_it_another_and_that_is_said(folder: Path) -> None:
    link = {"data": str(folder), "index": "2"}
    focus, opened, said = read(**link)
    assert not said
    assert focus.name.endswith("blue/1.png")
    written = {name: given for name, [given] in write_picture_focus(focus).items()}
    assert focus.picture is not None
    assert written["digest"] == focus.picture.digest[:8]
    Image.new("RGB", (3, 3), (1, 2, 3)).save(folder / "blue" / "00.png")
    changed, opened, said = read(**written)
    [sentence] = said
    assert sentence.startswith(f"digest: example 2 of {folder} is not the picture in the link")
    assert is_other_picture(written, changed, opened)
    assert changed.name.endswith("blue/00.png")


def test_a_picture_that_cannot_be_read_is_said_with_its_label_and_the_others_are_shown(folder: Path) -> None:
    (folder / "red" / "<b>0.png").write_bytes(b"%PDF-1.4")
    opened = open_pictures(str(folder))
    shown = [read_picture(opened, index) for index in range(len(opened.data))]
    [bad] = [one for one in shown if one.picture is None]
    assert "<b>0.png is a PDF document" in bad.error
    assert bad.label == opened.data.label_names.index("red")
    assert sum(one.picture is not None for one in shown) == 6


def test_a_link_of_another_set_than_the_controls_show_is_not_read() -> None:
    said: list[str] = []
    focus = read_picture_focus({"data": "digits", "index": "5"}, MODELS, open_pictures("scenes"), said)
    assert (focus.data, focus.picture, said) == ("digits", None, [])


@pytest.mark.parametrize(
    ("data", "model"),
    [
        ("scenes", "scenes-vit"),
        ("scenes:seed=3", "scenes-vit"),
        ("scenes-marked:strength=0", "scenes-marked-vit"),
        ("digits", "digits-vit"),
    ],
)
def test_the_model_that_a_link_leaves_out_is_the_one_for_its_set(data: str, model: str) -> None:
    assert usual_model(MODELS, open_pictures(data)) == model
    assert usual_model([], open_pictures(data)) == ""


@pytest.fixture
def told_labels(monkeypatch: pytest.MonkeyPatch) -> dict[str, tuple[str, ...]]:
    """Models by name with the classes that they are said to have; no other can be read."""
    told: dict[str, tuple[str, ...]] = {}

    def view(model: str) -> SimpleNamespace:
        if model not in told:
            raise ExegesisError(f"model {model}: cannot be read.")
        return SimpleNamespace(labels=told[model])

    monkeypatch.setattr(picture_focus, "read_view", view)
    monkeypatch.setattr(picture_focus, "card", lambda model: {})
    return told


@pytest.mark.parametrize(
    ("models", "usual"),
    [
        ({"a": ("red", "green"), "b": ("Blue", "red", "green")}, "b"),
        ({"a": ("Red", "green"), "scenes-vit": ("house",)}, "a"),
        ({"a": ("ant",), "scenes-vit": ("house",)}, "scenes-vit"),
        ({"a": ("ant",), "photos-vit": ("car",), "scenes-vit": ("house",)}, "photos-vit"),
        ({"a": ("red",), "scenes-vit": ("red",)}, "scenes-vit"),
        ({"a": ("red", "blue"), "b": ("red", "blue")}, "a"),
        ({"a": ("ant",), "b": ("bee",)}, "a"),
        ({}, "unreadable"),
    ],
)
def test_a_set_of_ones_own_gets_the_model_with_the_most_of_its_classes(
    folder: Path, told_labels: dict[str, tuple[str, ...]], models: dict[str, tuple[str, ...]], usual: str
) -> None:
    told_labels.update(models)
    assert usual_model(["unreadable"] if not models else [*models, "unreadable"], open_pictures(str(folder))) == usual


def test_a_better_model_is_named_only_where_it_has_more_of_the_classes(
    folder: Path, told_labels: dict[str, tuple[str, ...]]
) -> None:
    told_labels.update(
        {"fits": ("red", "blue"), "half": ("red", "ant"), "none": ("ant", "bee"), "unnamed": ("0", "class_1")}
    )
    told_labels["numbered"] = ("LABEL_0", "LABEL_1")
    models, opened = ["fits", "half", "none"], open_pictures(str(folder))
    better = {model: better_model(models, model, opened) for model in [*told_labels, "unreadable"]}
    assert better == {
        "fits": "",
        "half": "fits",
        "none": "fits",
        "unnamed": "fits",
        "numbered": "",
        "unreadable": "fits",
    }
    assert better_model(["none"], "none", opened) == ""


@pytest.mark.parametrize(
    ("name", "labels", "index", "said"),
    [
        ("scenes", ("House", "CAR", *"abcdefgh", "fish", "tree", "boat", "cat", "flower", "umbrella", "mug", "rocket"),
         1, ""),
        ("scenes", tuple(f"LABEL_{i}" for i in range(10)), 1, "Classes are matched by number: fish is LABEL_0"),
        ("scenes", tuple(map(str, range(10))), None, "so accuracy cannot be computed."),
        ("digits", ("fish", "car", *"abcdefgh"), None, "so accuracy cannot be computed."),
        ("digits", tuple(map(str, range(9, -1, -1))), 9, ""),
    ],
)  # fmt: skip
def test_the_true_class_is_found_among_the_models_by_its_name(
    name: str, labels: tuple[str, ...], index: int | None, said: str
) -> None:
    opened = open_pictures(name)
    place = opened.data.labels.index(1 if name == "scenes" else 0)
    focus = PictureFocus("m", name, "", place, chosen=read_picture(opened, place))
    truth = true_class(focus, opened, labels)
    assert (truth.label, truth.index) == ("car" if name == "scenes" else "0", index)
    assert said in truth.note
    assert bool(said) == bool(truth.note)
