from __future__ import annotations

import contextlib
import io
import struct
import subprocess
import sys
import tomllib
import zipfile
import zlib
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from engine.data import picture_files
from engine.data.picture_files import LONGEST_SIDE, MAX_FILE_SIZE, open_picture
from engine.errors import ExegesisError
from tests.project import ROOT
from tests.unit.data.conftest import plain, saved

LEFT_DARK = np.repeat(np.array([[0, 0, 0, 255, 255, 255]], dtype=np.uint8), 4, axis=0)
"""4 rows, 6 columns: dark on the left, light on the right."""


START = b"\x89PNG\r\n\x1a\n"
MEASURE = """
import resource, sys
from engine.data.picture_files import open_picture
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(open_picture(sys.stdin.buffer.read()).shape)
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024)
"""


def as_rgb(gray: np.ndarray) -> list[list[list[int]]]:
    return np.repeat(gray[..., None], 3, axis=2).tolist()


def chunk(kind: bytes, body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))


def png_header(width: int, height: int, color: int = 2) -> bytes:
    """A PNG that ends after its header; color 2 is RGB, 6 RGBA."""
    return START + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, color, 0, 0, 0))


def black_png(side: int) -> bytes:
    """A large transparent picture in a small file."""
    packer = zlib.compressobj(9)
    rows = b"".join(packer.compress(bytes(1 + 4 * side)) for _ in range(side)) + packer.flush()
    return png_header(side, side, 6) + chunk(b"IDAT", rows) + chunk(b"IEND", b"")


def with_chunk(png: bytes, kind: bytes, body: bytes) -> bytes:
    """The PNG with one more chunk behind its header."""
    return png[:33] + chunk(kind, body) + png[33:]


@pytest.mark.parametrize("kind", ["PNG", "WEBP", "GIF", "JPEG"])
def test_each_kind_gives_the_colors_that_were_saved(kind: str) -> None:
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


def test_an_exif_block_that_cannot_be_written_again_still_turns_the_picture() -> None:
    """Pillow's own turning writes the block anew, and fails on a text that holds a fraction."""
    maker = struct.pack(">HHIII", 0x010F, 5, 1, 50, 0)[:12]
    turn = struct.pack(">HHIHH", 0x0112, 3, 1, 6, 0)
    block = b"MM\0*" + struct.pack(">IH", 8, 2) + maker + turn + bytes(40)
    pixels = open_picture(with_chunk(saved(Image.fromarray(LEFT_DARK)), b"eXIf", block))
    assert pixels.shape == (6, 4, 3)
    assert pixels[0].max() == 0


@pytest.mark.parametrize("orientation", [0, 9, 65535])
def test_an_orientation_that_does_not_exist_turns_nothing(orientation: int) -> None:
    exif = Image.Exif()
    exif[0x0112] = orientation
    assert open_picture(saved(Image.fromarray(LEFT_DARK), "PNG", exif=exif)).tolist() == as_rgb(LEFT_DARK)


def test_a_huge_exif_block_and_long_texts_leave_the_picture_as_it_is() -> None:
    png = saved(Image.fromarray(LEFT_DARK))
    for kind, body in (
        (b"eXIf", b"MM\0*" + bytes(5 * 10**6)),
        (b"tEXt", b"Comment\0" + bytes(range(1, 256)) * 1000),
        (b"iCCP", b"x\0\0" + zlib.compress(bytes(10**6), 9)),
    ):
        assert open_picture(with_chunk(png, kind, body)).tolist() == as_rgb(LEFT_DARK)


def test_a_bomb_in_a_text_of_a_picture_is_refused() -> None:
    bomb = b"Comment\0\0" + zlib.compress(bytes(80 * 10**6), 9)
    with pytest.raises(ExegesisError, match="damaged or truncated"):
        open_picture(with_chunk(saved(plain()), b"zTXt", bomb))


def test_of_a_file_that_is_two_things_only_the_picture_is_read() -> None:
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as packed:
        packed.writestr("../../climbs.txt", "out")
    picture = saved(plain((9, 8, 7)))
    for tail in (archive.getvalue(), b"%PDF-1.7 /JavaScript", b"<script>alert(1)</script>", b"#!/bin/sh"):
        assert open_picture(picture + tail).tolist() == [[[9, 8, 7]] * 6] * 4
    gif = saved(plain((250, 0, 0)), "GIF")
    assert open_picture(gif + b"%PDF-1.7")[0, 0].tolist() == [250, 0, 0]


def test_transparent_pixels_are_white_and_half_transparent_ones_half() -> None:
    layer = np.zeros((2, 2, 4), dtype=np.uint8)
    layer[..., 3] = [[0, 255], [128, 255]]
    pixels = open_picture(saved(Image.fromarray(layer)))
    assert pixels[0, 0].tolist() == [255, 255, 255]
    assert pixels[0, 1].tolist() == [0, 0, 0]
    assert pixels[1, 0].tolist() == [127, 127, 127]


def test_transparency_of_palettes_gray_and_gif() -> None:
    palette = Image.new("P", (2, 1), 0)
    palette.putpalette([10, 20, 30, 40, 50, 60])
    palette.putpixel((1, 0), 1)
    for kind in ("PNG", "GIF"):
        assert open_picture(saved(palette, kind, transparency=0)).tolist() == [[[255] * 3, [40, 50, 60]]]
    gray = Image.fromarray(np.array([[7, 90]], dtype=np.uint8))
    assert open_picture(saved(gray, "PNG", transparency=7)).tolist() == [[[255] * 3, [90] * 3]]


def test_sixteen_bit_gray_becomes_eight() -> None:
    levels = np.array([[0, 257, 32896, 65535]], dtype=np.uint16)
    assert open_picture(saved(Image.fromarray(levels)))[0, :, 0].tolist() == [0, 1, 128, 255]


@pytest.mark.parametrize(("mode", "levels"), [("L", 90), ("1", 1), ("LA", (90, 255))])
def test_gray_and_black_and_white_become_rgb(mode: str, levels: int | tuple[int, int]) -> None:
    pixels = open_picture(saved(Image.new(mode, (3, 2), levels)))
    assert pixels.tolist() == [[[255 if mode == "1" else 90] * 3] * 3] * 2


def test_cmyk_becomes_rgb() -> None:
    pixels = open_picture(saved(Image.new("CMYK", (8, 8), (0, 255, 255, 0)), "JPEG", quality=100))
    assert np.abs(pixels.astype(int) - (255, 0, 0)).max() <= 3


def test_the_first_frame_of_a_moving_picture_is_read() -> None:
    frames = [plain((250, 0, 0)), plain((0, 0, 250))]
    for kind, options in (("GIF", {}), ("WEBP", {"lossless": True}), ("PNG", {})):
        data = saved(frames[0], kind, save_all=True, append_images=frames[1:], **options)
        assert open_picture(data)[0, 0].tolist() == [250, 0, 0]


def test_a_large_picture_is_made_smaller_in_its_own_proportions() -> None:
    pixels = open_picture(saved(plain(size=(LONGEST_SIDE * 2, LONGEST_SIDE // 2))))
    assert pixels.shape == (LONGEST_SIDE // 4, LONGEST_SIDE, 3)


def test_bands_and_reduction_keep_the_picture() -> None:
    """Long and wide enough for several bands: a ramp stays a ramp, whatever its mode."""
    ramp = np.repeat(np.linspace(0, 255, 5000).astype(np.uint8)[:, None], 2500, axis=1)
    wanted = np.linspace(0, 255, LONGEST_SIDE)
    for mode in ("L", "P", "RGBA"):
        pixels = open_picture(saved(Image.fromarray(ramp).convert(mode), compress_level=1))
        assert pixels.shape == (LONGEST_SIDE, LONGEST_SIDE // 2, 3)
        assert np.abs(pixels[:, 100].astype(float) - wanted[:, None]).max() < 2
        assert np.ptp(pixels, axis=1).max() == 0


def test_a_small_file_of_many_pixels_takes_little_memory() -> None:
    """Its 64 million pixels take 256 MB; with three copies, as Pillow's own steps make them, it was 1.2 GB."""
    done = subprocess.run(
        [sys.executable, "-c", MEASURE], input=black_png(8000), cwd=ROOT, capture_output=True, timeout=120, check=True
    )
    shape, growth = done.stdout.decode().splitlines()
    assert shape == f"({LONGEST_SIDE}, {LONGEST_SIDE}, 3)"
    assert int(growth) < 450


def test_nothing_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    for data in (
        saved(plain(), "WEBP"),
        saved(plain(), "GIF"),
        png_header(4, 4),
        b"%PDF-1.7",
        png_header(50_000, 50_000),
    ):
        with contextlib.suppress(ExegesisError):
            open_picture(data)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", r"mine\.png is empty\. Give a PNG, JPEG, WebP or GIF picture\."),
        (b"just text, nothing else", r"is not a picture that can be read\. Give a PNG"),
        (b"<?xml version='1.0'?><SVG xmlns='x'></SVG>", r"is an SVG drawing, not a picture of pixels\. Give"),
        (b"%PDF-1.7 etc", r"is a PDF document, which is not supported\. Give"),
        (b"PK\x03\x04 etc", r"is a zip archive, which is not supported"),
        (saved(plain(), "TIFF"), r"is a TIFF picture, which is not supported"),
        (b"\0\0\0\x18ftypheic", r"is a HEIC or AVIF picture or a video, which is not supported\. Give a PNG"),
        (saved(plain(), "BMP"), r"is a BMP picture, which is not supported"),
        (png_header(0, 5), r"has no pixels \(0 x 5\)\. Give a picture of at least 1 x 1"),
        (png_header(50_000, 50_000), r"must have at most 64 million pixels, got 50,000 x 50,000\. Make it smaller"),
        (png_header(4, 4), r"is damaged or truncated, so its pixels cannot be read\. Save or download"),
        (b"\x89PNG\r\n\x1a\n", r"is damaged or truncated"),
    ],
)  # fmt: skip
def test_bad_input_is_reported_in_one_sentence(data: bytes, message: str) -> None:
    with pytest.raises(ExegesisError, match=message) as error:
        open_picture(data, "mine.png")
    assert "\n" not in str(error.value)
    assert str(error.value).startswith("mine.png ")


@pytest.mark.parametrize("kind", ["PNG", "WEBP", "GIF", "JPEG"])
def test_a_truncated_file_is_refused_wherever_it_ends(kind: str) -> None:
    noise = np.random.default_rng(1).integers(0, 256, (40, 40, 3), dtype=np.uint8)
    data = saved(Image.fromarray(noise), kind)
    for share in (0.02, 0.3, 0.6, 0.9):
        with pytest.raises(ExegesisError, match=r"damaged or truncated|is not a picture"):
            open_picture(data[: int(len(data) * share)])


def test_a_huge_picture_of_another_kind_is_refused_before_it_is_decoded() -> None:
    gif = bytearray(saved(plain(), "GIF"))
    gif[6:10] = struct.pack("<HH", 60_000, 60_000)
    with pytest.raises(ExegesisError, match="must have at most 64 million pixels, got"):
        open_picture(bytes(gif))


def test_what_the_browser_may_send_is_about_what_is_read() -> None:
    config = tomllib.loads((ROOT / ".streamlit" / "config.toml").read_text(encoding="utf-8"))
    assert MAX_FILE_SIZE <= config["server"]["maxUploadSize"] * 2**20 < 1.1 * MAX_FILE_SIZE


def test_a_huge_file_is_refused_unread() -> None:
    with pytest.raises(ExegesisError, match=r"must have at most 64\.0 MB, got 64\.0 MB\. Make it smaller"):
        open_picture(bytes(MAX_FILE_SIZE + 1))


def png_of(width: int, height: int, rows: int, bits: int = 8, color: int = 2, interlaced: bool = False) -> bytes:
    """A white PNG whose data ends after so many rows."""
    channels = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}[color]
    data = (b"\0" + b"\xff" * ((width * channels * bits + 7) // 8)) * rows
    head = struct.pack(">IIBBBBB", width, height, bits, color, 0, 0, int(interlaced))
    parts = [(b"IHDR", head), (b"IDAT", zlib.compress(data)), (b"IEND", b"")]
    chunks = (
        struct.pack(">I", len(part)) + kind + part + struct.pack(">I", zlib.crc32(kind + part)) for kind, part in parts
    )
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunks)


@pytest.mark.parametrize(("bits", "color"), [(8, 0), (1, 0), (16, 0), (8, 2), (16, 2), (8, 4), (8, 6), (16, 6)])
def test_a_png_whose_rows_are_missing_is_refused(bits: int, color: int) -> None:
    assert (open_picture(png_of(9, 7, 7, bits, color)) == 255).all()
    for rows in (1, 6):
        with pytest.raises(ExegesisError, match="is damaged or truncated"):
            open_picture(png_of(9, 7, rows, bits, color))


@pytest.mark.parametrize("mode", ["RGB", "RGBA", "L", "LA", "1", "P", "I;16"])
@pytest.mark.parametrize("size", [(1, 1), (3, 9), (40, 7)])
def test_whole_pngs_of_every_mode_are_read(mode: str, size: tuple[int, int]) -> None:
    assert open_picture(saved(Image.new(mode, size), "PNG")).shape == (size[1], size[0], 3)


@pytest.mark.parametrize(("width", "height"), [(1, 1), (5, 5), (8, 8), (9, 3), (1, 6), (33, 17)])
def test_the_passes_of_an_interlaced_png_are_counted(width: int, height: int) -> None:
    """By the standard's own definition: every pixel lies in one pass, and a row of a pass begins with a byte."""
    lines = {(n, y) for n, (x0, y0, dx, dy) in enumerate(picture_files.ADAM7) for y in range(y0, height, dy)
             if x0 < width}  # fmt: skip
    pixels = sum(len(range(x0, width, dx)) * len(range(y0, height, dy)) for x0, y0, dx, dy in picture_files.ADAM7)
    assert pixels == width * height
    wanted = len(lines) + 3 * pixels
    for count, whole in ((wanted, True), (wanted - 1, False)):
        data = png_of(width, height, 0, interlaced=True)
        body = zlib.compress(b"\0" * count)
        start = data.index(b"IDAT") - 4
        png = (
            data[:start] + struct.pack(">I", len(body)) + b"IDAT" + body + data[start + 12 + len(zlib.compress(b"")) :]
        )
        assert picture_files._has_all_rows(png, width, height) is whole


def test_a_side_is_bounded_too() -> None:
    with pytest.raises(ExegesisError, match=r"must have at most 32,768 pixels on a side, got 1 x 64,000,000\. Crop it"):
        open_picture(png_header(1, 64_000_000))
