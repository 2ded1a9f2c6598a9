from __future__ import annotations

import struct
import zlib

import numpy as np
import pytest
from PIL import Image

from engine.data.images.opening import LARGEST_FILE, LONGEST_SIDE, open_picture
from engine.errors import ExegesisError
from tests.unit.images.conftest import plain, saved

LEFT_DARK = np.repeat(np.array([[0, 0, 0, 255, 255, 255]], dtype=np.uint8), 4, axis=0)
"""4 rows, 6 columns: dark on the left, light on the right."""


def png_header(width: int, height: int) -> bytes:
    """A PNG that ends after its header."""
    body = b"IHDR" + struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + struct.pack(">I", 13) + body + struct.pack(">I", zlib.crc32(body))


@pytest.mark.parametrize("kind", ["PNG", "WEBP", "GIF", "JPEG"])
def test_each_kind_gives_the_colours_that_were_saved(kind: str) -> None:
    options = {"WEBP": {"lossless": True}, "JPEG": {"quality": 100, "subsampling": 0}}.get(kind, {})
    pixels = open_picture(saved(plain((200, 40, 90)), kind, **options))
    assert pixels.shape == (4, 6, 3)
    assert pixels.dtype == np.uint8
    assert np.abs(pixels.astype(int) - (200, 40, 90)).max() <= (3 if kind == "JPEG" else 0)


# Where the dark left edge of the stored picture is seen, by EXIF orientation (EXIF 2.3, tag 0x0112).
@pytest.mark.parametrize(
    ("orientation", "dark"),
    [(1, "left"), (2, "right"), (3, "right"), (4, "left"), (5, "top"), (6, "top"), (7, "bottom"), (8, "bottom")],
)
def test_exif_turns_are_applied(orientation: int, dark: str) -> None:
    exif = Image.Exif()
    exif[0x0112] = orientation
    pixels = open_picture(saved(Image.fromarray(LEFT_DARK), "PNG", exif=exif))[..., 0].astype(int)
    assert pixels.shape == ((4, 6) if orientation <= 4 else (6, 4))
    edges = {"left": pixels[:, 0], "right": pixels[:, -1], "top": pixels[0], "bottom": pixels[-1]}
    assert [side for side, edge in edges.items() if edge.max() == 0] == [dark]


def test_a_damaged_exif_block_leaves_the_picture_as_it_is() -> None:
    pixels = open_picture(saved(Image.fromarray(LEFT_DARK), "JPEG", exif=b"Exif\0\0MM\0*\0\0\0\xffgarbage"))
    assert pixels.shape == (4, 6, 3)


def test_transparent_pixels_are_white_and_half_transparent_ones_half() -> None:
    layer = np.zeros((2, 2, 4), dtype=np.uint8)
    layer[..., 3] = [[0, 255], [128, 255]]
    pixels = open_picture(saved(Image.fromarray(layer)))
    assert pixels[0, 0].tolist() == [255, 255, 255]
    assert pixels[0, 1].tolist() == [0, 0, 0]
    assert pixels[1, 0].tolist() == [127, 127, 127]


def test_transparency_of_palettes_grey_and_gif() -> None:
    palette = Image.new("P", (2, 1), 0)
    palette.putpalette([10, 20, 30, 40, 50, 60])
    palette.putpixel((1, 0), 1)
    for kind in ("PNG", "GIF"):
        assert open_picture(saved(palette, kind, transparency=0)).tolist() == [[[255] * 3, [40, 50, 60]]]
    grey = Image.fromarray(np.array([[7, 90]], dtype=np.uint8))
    assert open_picture(saved(grey, "PNG", transparency=7)).tolist() == [[[255] * 3, [90] * 3]]


def test_sixteen_bit_grey_becomes_eight() -> None:
    levels = np.array([[0, 257, 32896, 65535]], dtype=np.uint16)
    assert open_picture(saved(Image.fromarray(levels)))[0, :, 0].tolist() == [0, 1, 128, 255]


@pytest.mark.parametrize(("mode", "levels"), [("L", 90), ("1", 1), ("LA", (90, 255))])
def test_grey_and_black_and_white_become_rgb(mode: str, levels: int | tuple[int, int]) -> None:
    pixels = open_picture(saved(Image.new(mode, (3, 2), levels)))
    assert pixels.tolist() == [[[255 if mode == "1" else 90] * 3] * 3] * 2


def test_cmyk_becomes_rgb() -> None:
    pixels = open_picture(saved(Image.new("CMYK", (8, 8), (0, 255, 255, 0)), "JPEG", quality=100))
    assert np.abs(pixels.astype(int) - (255, 0, 0)).max() <= 3


def test_the_first_frame_of_a_moving_picture_is_read() -> None:
    frames = [plain((250, 0, 0)), plain((0, 0, 250))]
    for kind, options in (("GIF", {}), ("WEBP", {"lossless": True})):
        data = saved(frames[0], kind, save_all=True, append_images=frames[1:], **options)
        assert open_picture(data)[0, 0].tolist() == [250, 0, 0]


def test_a_large_picture_is_made_smaller_in_its_own_proportions() -> None:
    pixels = open_picture(saved(plain(size=(LONGEST_SIDE * 2, LONGEST_SIDE // 2))))
    assert pixels.shape == (LONGEST_SIDE // 4, LONGEST_SIDE, 3)


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", r"mine\.png: is empty\. Give a PNG, JPEG, WebP or GIF picture\."),
        (b"just text, nothing else", r"is not a picture that can be read\. Give a PNG"),
        (b"<?xml version='1.0'?><SVG xmlns='x'></SVG>", r"is an SVG drawing, not a picture of pixels\. Give"),
        (b"%PDF-1.7 etc", r"is a PDF document, which is not read here\. Give"),
        (b"PK\x03\x04 etc", r"is a zip archive, which is not read here"),
        (saved(plain(), "TIFF"), r"is a TIFF picture, which is not read here"),
        (saved(plain(), "BMP"), r"is a BMP picture, which is not read here"),
        (png_header(0, 5), r"has no pixels \(0 x 5\)\. Give a picture of at least 1 x 1"),
        (png_header(50_000, 50_000), r"must have at most 64 million pixels, got 50,000 x 50,000\. Make it smaller"),
        (png_header(4, 4), r"is damaged or cut off, so that its pixels cannot be read\. Save or download"),
        (b"\x89PNG\r\n\x1a\n", r"is damaged or cut off"),
    ],
)  # fmt: skip
def test_bad_input_is_told_in_one_sentence(data: bytes, said: str) -> None:
    with pytest.raises(ExegesisError, match=said) as told:
        open_picture(data, "mine.png")
    assert "\n" not in str(told.value)
    assert str(told.value).startswith("mine.png: ")


@pytest.mark.parametrize("kind", ["PNG", "WEBP", "GIF", "JPEG"])
def test_a_truncated_file_is_refused_wherever_it_ends(kind: str) -> None:
    noise = np.random.default_rng(1).integers(0, 256, (40, 40, 3), dtype=np.uint8)
    data = saved(Image.fromarray(noise), kind)
    for share in (0.02, 0.3, 0.6, 0.9):
        with pytest.raises(ExegesisError, match=r"damaged or cut off|is not a picture"):
            open_picture(data[: int(len(data) * share)])


def test_a_huge_picture_of_another_kind_is_refused_before_it_is_decoded() -> None:
    gif = bytearray(saved(plain(), "GIF"))
    gif[6:10] = struct.pack("<HH", 60_000, 60_000)
    with pytest.raises(ExegesisError, match="must have at most 64 million pixels, got"):
        open_picture(bytes(gif))


def test_a_huge_file_is_refused_unread() -> None:
    with pytest.raises(ExegesisError, match=r"must have at most 64\.0 MB, got 64\.0 MB\. Make it smaller"):
        open_picture(bytes(LARGEST_FILE + 1))
