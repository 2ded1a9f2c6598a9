"""From the bytes of a picture file to sRGB pixels, or one sentence that says why not. Nothing is written to disk."""

from __future__ import annotations

import io
import struct
import warnings
import zlib

import numpy as np
from jaxtyping import UInt8
from PIL import Image, ImageOps, UnidentifiedImageError

from engine.amounts import byte_size
from engine.errors import ExegesisError

FORMATS = ("PNG", "JPEG", "WEBP", "GIF")
LARGEST_FILE = 64 * 10**6
LARGEST_AREA = 64 * 10**6
LONGEST_SIDE = 2048
"""Pixels; longer pictures are made smaller, since no model here reads as many."""

_BROKEN = (OSError, SyntaxError, ValueError, EOFError, IndexError, KeyError, TypeError, struct.error, zlib.error)
"""What Pillow's readers raise on damaged files."""
_STARTS = (b"\x89PNG", b"\xff\xd8\xff", b"GIF8", b"RIFF")
_OTHER_KINDS = {
    b"%PDF": "a PDF document",
    b"PK\x03\x04": "a zip archive",
    b"II*\x00": "a TIFF picture",
    b"MM\x00*": "a TIFF picture",
    b"BM": "a BMP picture",
    b"\x00\x00\x01\x00": "an icon",
    b"8BPS": "a Photoshop file",
}


def open_picture(data: bytes, name: str = "picture") -> UInt8[np.ndarray, "height width 3"]:
    """The picture as it is meant to be seen: first frame, turned by its EXIF, on white where it is transparent.

    CMYK and grey become RGB, 16 bits become 8. The longer side is at most `LONGEST_SIDE`. `name` stands in errors.
    """
    if not data:
        raise ExegesisError(f"{name}: is empty. Give a {_accepted()} picture.")
    if len(data) > LARGEST_FILE:
        allowed, got = byte_size(LARGEST_FILE), byte_size(len(data))
        raise ExegesisError(f"{name}: must have at most {allowed}, got {got}. Make it smaller first.")
    with warnings.catch_warnings():
        # Pillow warns of large pictures and of damaged EXIF; both are dealt with here.
        warnings.simplefilter("ignore")
        image = _identified(data, name)
        _check_size(*image.size, name)
        return _pixels(image, name)


def _identified(data: bytes, name: str) -> Image.Image:
    if data.startswith(b"\x89PNG") and len(data) >= 24:
        # Pillow reads a PNG without pixels as broken, and refuses a huge one by its own rule and words.
        width, height = struct.unpack(">II", data[16:24])
        _check_size(width, height, name)
    try:
        return Image.open(io.BytesIO(data), formats=FORMATS)
    except Image.DecompressionBombError:
        raise _too_large(name, "more") from None
    except UnidentifiedImageError:
        if data.startswith(_STARTS):
            raise _damaged(name) from None
        raise ExegesisError(f"{name}: {_what_it_is(data)}. Give a {_accepted()} picture.") from None
    except _BROKEN:
        raise _damaged(name) from None


def _pixels(image: Image.Image, name: str) -> UInt8[np.ndarray, "height width 3"]:
    try:
        image.draft("RGB", (LONGEST_SIDE, LONGEST_SIDE))
        image.load()
    except (Image.DecompressionBombError, MemoryError):
        raise _too_large(name, "more") from None
    except _BROKEN:
        raise _damaged(name) from None
    turned = _eight_bit_rgb(_turned(image))
    if max(turned.size) > LONGEST_SIDE:
        turned.thumbnail((LONGEST_SIDE, LONGEST_SIDE), Image.Resampling.LANCZOS)
    return np.array(turned)


def _turned(image: Image.Image) -> Image.Image:
    try:
        return ImageOps.exif_transpose(image)
    except _BROKEN:
        # A damaged EXIF block says nothing about the pixels.
        return image


def _eight_bit_rgb(image: Image.Image) -> Image.Image:
    if image.mode.startswith("I") or image.mode == "F":
        image = Image.fromarray((np.asarray(image).astype(np.float64) / 257).round().clip(0, 255).astype(np.uint8))
    if image.has_transparency_data:
        layer = image.convert("RGBA")
        image = Image.alpha_composite(Image.new("RGBA", layer.size, "white"), layer)
    return image.convert("RGB")


def _check_size(width: int, height: int, name: str) -> None:
    if width < 1 or height < 1:
        raise ExegesisError(f"{name}: has no pixels ({width} x {height}). Give a picture of at least 1 x 1.")
    if width * height > LARGEST_AREA:
        raise _too_large(name, f"{width:,} x {height:,}")


def _too_large(name: str, got: str) -> ExegesisError:
    allowed = f"{LARGEST_AREA // 10**6} million pixels"
    return ExegesisError(f"{name}: must have at most {allowed}, got {got}. Make it smaller first.")


def _damaged(name: str) -> ExegesisError:
    return ExegesisError(
        f"{name}: is damaged or cut off, so that its pixels cannot be read. Save or download it again."
    )


def _what_it_is(data: bytes) -> str:
    if b"<svg" in data[:2048].lower():
        return "is an SVG drawing, not a picture of pixels"
    kind = next((told for start, told in _OTHER_KINDS.items() if data.startswith(start)), None)
    return f"is {kind}, which is not read here" if kind else "is not a picture that can be read"


def _accepted() -> str:
    return "PNG, JPEG, WebP or GIF"
