"""Small copies of pictures as data URLs."""

from __future__ import annotations

import base64
import io

import numpy as np
from PIL import Image

from components.browse.thumbnails import SIDE, Thumbnail, first_thumbnails, thumbnail_url, thumbnails_html
from engine.data.image_datasets import load_images


def decoded(url: str) -> np.ndarray:
    kind, _, content = url.partition(",")
    assert kind == "data:image/webp;base64"
    return np.array(Image.open(io.BytesIO(base64.b64decode(content))).convert("RGB"))


def test_a_small_picture_keeps_its_size_and_a_large_one_its_shape() -> None:
    for size, wanted in (((32, 20), (32, 20)), ((600, 1200), (SIDE // 2, SIDE)), ((3, 900), (1, SIDE))):
        seen = decoded(thumbnail_url(np.full((*size, 3), (200, 60, 40), dtype=np.uint8)))
        assert seen.shape[:2] == wanted
        assert np.abs(seen.mean((0, 1)) - (200, 60, 40)).max() < 6


def test_pictures_are_called_by_their_label_else_by_their_name() -> None:
    digits, photos = load_images("digits", limit=2), load_images("photos", limit=1)
    assert [picture.name for picture in first_thumbnails(digits)] == [digits.label_names[i] for i in digits.labels]
    [photo] = first_thumbnails(photos)
    assert photo.name == "cat"
    assert decoded(photo.url).shape == (85, SIDE, 3)


def test_names_are_drawn_as_text() -> None:
    html = thumbnails_html([Thumbnail("data:,", "<b>*x*</b>")])
    assert "<figcaption>&lt;b&gt;*x*&lt;/b&gt;</figcaption>" in html
