"""What is said of a picture: what becomes of it before the model sees it, in words that the pixels confirm."""

from __future__ import annotations

import numpy as np
import pytest

from components.images.results import describe_name, describe_picture, describe_preprocessing
from components.inputs.datasets import ChosenPicture, open_pictures, read_picture
from components.inputs.picture_choice import PictureFocus
from engine.request import Picture
from engine.vision.view import ModelView, Preprocessing


def view(resize: tuple[int, ...], crop: tuple[int, int] | None, size: tuple[int, int]) -> ModelView:
    plain = Preprocessing(resize, crop, 2, 1 / 255, (0.5,) * 3, (0.5,) * 3)
    return ModelView("m", "r", plain, size, (8, 8), (8, 8), 1, ("a", "b"))


@pytest.mark.parametrize(
    ("seeing", "size", "words"),
    [
        (view((64, 64), None, (64, 64)), (64, 64), ""),
        (view((64, 64), None, (64, 64)), (128, 128), "128 × 128 pixels, shrunk to 64 × 64."),
        (view((64, 64), None, (64, 64)), (32, 32), "32 × 32 pixels, enlarged to 64 × 64."),
        (view((64, 64), None, (64, 64)), (480, 640), "640 × 480 pixels, shrunk to 64 × 64 out of its proportions."),
        (view((64,), (64, 64), (64, 64)), (480, 1280),
         "1,280 × 480 pixels, shrunk to 170 × 64 and cut to the 64 × 64 in its middle."),
        (view((), (64, 64), (64, 64)), (100, 64), "64 × 100 pixels, cut to the 64 × 64 in its middle."),
        (view((), (64, 64), (64, 64)), (10, 20),
         "20 × 10 pixels, set in the middle of 64 × 64 with black around it."),
    ],
)  # fmt: skip
def test_it_is_said_what_the_model_sees(seeing: ModelView, size: tuple[int, int], words: str) -> None:
    assert describe_preprocessing(seeing, size) == words
    white = np.full((*size, 3), 255, dtype=np.uint8)
    seen = seeing.transform(white)
    assert seen.shape == (64, 64, 3)
    assert ("black" in words) == bool((seen == 0).any())


def test_name_label_and_what_the_model_makes_of_them_are_lines_of_their_own() -> None:
    opened = open_pictures("scenes")
    assert describe_picture(PictureFocus("scenes-vit", chosen=read_picture(opened, 0)), opened) == (
        "Validation 0: car.",
    )
    of_digits = describe_picture(PictureFocus("digits-vit", chosen=read_picture(opened, 0)), opened)
    assert of_digits[0] == "Validation 0: car."
    assert "so what is right cannot be told" in of_digits[1]
    assert of_digits[2] == "64 × 64 pixels, shrunk to 32 × 32."
    assert describe_picture(PictureFocus("scenes-vit"), opened) == ()


def test_the_name_of_a_file_stays_as_it_is_written() -> None:
    assert (
        describe_name(PictureFocus("m", chosen=ChosenPicture(None, name="set/cat/0.png")), "cat")
        == "set/cat/0.png: cat."
    )
    assert describe_name(PictureFocus("m", index=3), "") == "Example 3."


def test_an_own_picture_has_a_name_and_no_label() -> None:
    own = ChosenPicture(Picture(np.zeros((64, 64, 3), dtype=np.uint8)), name="your picture")
    focus = PictureFocus("scenes-vit", picture_sha="a" * 64, chosen=own)
    assert describe_picture(focus, open_pictures("scenes")) == ("Your picture.",)
