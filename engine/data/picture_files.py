"""Decoding of picture files to sRGB pixels, with one-sentence errors. Nothing is written to disk."""

from __future__ import annotations

import io
import struct
import warnings
import zlib
from pathlib import Path

import numpy as np
from jaxtyping import UInt8
from PIL import ExifTags, Image, ImageOps, UnidentifiedImageError

from engine.errors import ExegesisError, UsageError, excerpt
from engine.format import size_text

PICTURE_FORMATS = ("PNG", "JPEG", "WEBP", "GIF")
ACCEPTED = "PNG, JPEG, WebP or GIF"
MAX_FILE_SIZE = 64 * 10**6
MAX_AREA = 64 * 10**6
MAX_SIDE = 32_768
LONGEST_SIDE = 2048
"""Longest side in pixels; larger pictures are reduced, as no supported model needs more."""

BAND_PIXELS = 4 * 10**6
"""Number of pixels converted to RGB at a time."""
UNPACK_BYTES = 2**20
"""Number of bytes of a PNG unpacked at a time."""
ADAM7 = ((0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2))
"""The passes of an interlaced PNG: first column and row, and the steps between them (PNG, section 8.2)."""
_PILLOW_ERRORS = (
    OSError, SyntaxError, ValueError, EOFError, LookupError, TypeError, AttributeError, ArithmeticError, RuntimeError,
    struct.error, zlib.error,
)  # fmt: skip
"""Errors of Pillow's readers on damaged files."""
_SIGNATURES = (b"\x89PNG", b"\xff\xd8\xff", b"GIF8", b"RIFF")
_OTHER_SIGNATURES = {
    b"%PDF": "a PDF document",
    b"PK\x03\x04": "a zip archive",
    b"II*\x00": "a TIFF picture",
    b"MM\x00*": "a TIFF picture",
    b"BM": "a BMP picture",
    b"\x00\x00\x01\x00": "an icon",
    b"8BPS": "a Photoshop file",
}


def open_picture(data: bytes, name: str = "picture") -> UInt8[np.ndarray, "height width 3"]:
    """Decode a picture as a viewer would show it: first frame, EXIF orientation applied, transparency on white.

    CMYK and gray are converted to RGB, 16 bits to 8. The longer side is at most `LONGEST_SIDE`. `name`: for errors.
    """
    if not data:
        raise ExegesisError(f"{name} is empty. Give a {ACCEPTED} picture.")
    if len(data) > MAX_FILE_SIZE:
        allowed, got = size_text(MAX_FILE_SIZE), size_text(len(data))
        raise ExegesisError(f"{name} must have at most {allowed}, got {got}. Make it smaller first.")
    with warnings.catch_warnings():
        # Pillow warns about large pictures and damaged EXIF; both are handled here.
        warnings.simplefilter("ignore")
        image = _identify(data, name)
        _check_size(*image.size, name)
        return _decode(image, name)


def read_picture(file: Path, argument: str) -> UInt8[np.ndarray, "height width 3"]:
    """Decode a local file; a file that is too large is not read. `argument`: the option that named it, for errors."""
    try:
        if not file.is_file():
            raise UsageError(f"{argument}: no file {excerpt(str(file))}. Give a {ACCEPTED} picture.")
        with file.open("rb") as stream:
            data = stream.read(MAX_FILE_SIZE + 1)
    except OSError as error:
        raise ExegesisError(f"{argument}: {file.name} cannot be read ({error.strerror}). Check the path.") from None
    return open_picture(data, f"{argument}: {file.name}")


def _identify(data: bytes, name: str) -> Image.Image:
    if data.startswith(b"\x89PNG") and len(data) >= 24:
        # Checked here first: Pillow calls a PNG without pixels broken, and has its own limit and message for huge ones.
        width, height = struct.unpack(">II", data[16:24])
        _check_size(width, height, name)
        if not _has_all_rows(data, width, height):
            raise _damaged(name)
    try:
        return Image.open(io.BytesIO(data), formats=PICTURE_FORMATS)
    except Image.DecompressionBombError:
        raise _too_large(name, "more") from None
    except UnidentifiedImageError:
        if data.startswith(_SIGNATURES):
            raise _damaged(name) from None
        raise ExegesisError(f"{name} {_describe_bytes(data)}. Give a {ACCEPTED} picture.") from None
    except _PILLOW_ERRORS:
        raise _damaged(name) from None


def _has_all_rows(data: bytes, width: int, height: int) -> bool:
    """Whether a PNG's data covers all of its pixels; Pillow leaves missing rows black."""
    depth, color, _, _, interlaced = data[24:29] if len(data) >= 29 else (8, 0, 0, 0, 0)
    bits = depth * {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}.get(color, 1)
    passes = ADAM7 if interlaced else ((0, 0, 1, 1),)
    sizes = [(-(-(width - left) // right), -(-(height - top) // down)) for left, top, right, down in passes]
    needed = sum(rows * (1 + (columns * bits + 7) // 8) for columns, rows in sizes if columns > 0 and rows > 0)
    return _count_unpacked(data, needed) >= needed


def _count_unpacked(data: bytes, limit: int) -> int:
    """Count the bytes that the image data of a PNG unpacks to, up to `limit`."""
    unpacker, count, at = zlib.decompressobj(), 0, 8
    while count < limit and at + 8 <= len(data):
        length, kind = struct.unpack(">I4s", data[at : at + 8])
        packed = data[at + 8 : at + 8 + length] if kind == b"IDAT" else b""
        try:
            while packed and count < limit:
                count += len(unpacker.decompress(packed, UNPACK_BYTES))
                packed = unpacker.unconsumed_tail
        except zlib.error:
            return count
        at += 12 + length
    return count


def _decode(image: Image.Image, name: str) -> UInt8[np.ndarray, "height width 3"]:
    try:
        image.draft("RGB", (LONGEST_SIDE, LONGEST_SIDE))
        image.load()
    except (Image.DecompressionBombError, MemoryError):
        raise _too_large(name, "more") from None
    except _PILLOW_ERRORS:
        raise _damaged(name) from None
    flat = _flatten(image)
    flat.thumbnail((LONGEST_SIDE, LONGEST_SIDE), Image.Resampling.LANCZOS)
    flat.getexif()[ExifTags.Base.Orientation] = _read_orientation(image)
    return np.array(ImageOps.exif_transpose(flat))


def _flatten(image: Image.Image) -> Image.Image:
    """Convert a picture to RGB, reduced to at most about twice its final size.

    The conversion copies the picture several times, so it goes band by band: 64 million pixels, which may come from a
    tiny file, take 0.3 GB instead of 1.2.
    """
    (width, height), factor = image.size, max(1, max(image.size) // LONGEST_SIDE)
    reduced = Image.new("RGB", (-(-width // factor), -(-height // factor)))
    rows = factor * max(1, BAND_PIXELS // (width * factor))
    for top in range(0, height, rows):
        band = _to_rgb(image.crop((0, top, width, min(top + rows, height))))
        reduced.paste(band.reduce(factor), (0, top // factor))
    return reduced


def _read_orientation(image: Image.Image) -> int:
    """Read the orientation from the picture's EXIF; 1 (upright) if there is none."""
    try:
        return int(image.getexif().get(ExifTags.Base.Orientation, 1))
    except Exception:
        # Pillow raises many kinds of errors on a damaged EXIF block; the pixels may still be intact.
        return 1


def _to_rgb(image: Image.Image) -> Image.Image:
    if image.mode.startswith("I") or image.mode == "F":
        image = Image.fromarray((np.asarray(image).astype(np.float64) / 257).round().clip(0, 255).astype(np.uint8))
    if image.has_transparency_data:
        layer = image.convert("RGBA")
        image = Image.alpha_composite(Image.new("RGBA", layer.size, "white"), layer)
    return image.convert("RGB")


def _check_size(width: int, height: int, name: str) -> None:
    if width < 1 or height < 1:
        raise ExegesisError(f"{name} has no pixels ({width} x {height}). Give a picture of at least 1 x 1.")
    if width * height > MAX_AREA:
        raise _too_large(name, f"{width:,} x {height:,}")
    if max(width, height) > MAX_SIDE:
        got = f"{width:,} x {height:,}"
        raise ExegesisError(f"{name} must have at most {MAX_SIDE:,} pixels on a side, got {got}. Crop it first.")


def _too_large(name: str, got: str) -> ExegesisError:
    allowed = f"{MAX_AREA // 10**6} million pixels"
    return ExegesisError(f"{name} must have at most {allowed}, got {got}. Make it smaller first.")


def _damaged(name: str) -> ExegesisError:
    return ExegesisError(f"{name} is damaged or truncated, so its pixels cannot be read. Save or download it again.")


def _describe_bytes(data: bytes) -> str:
    if b"<svg" in data[:2048].lower():
        return "is an SVG drawing, not a picture of pixels"
    if data[4:8] == b"ftyp":
        return "is a HEIC or AVIF picture or a video, which is not supported"
    kind = next((name for start, name in _OTHER_SIGNATURES.items() if data.startswith(start)), None)
    return f"is {kind}, which is not supported" if kind else "is not a picture that can be read"
