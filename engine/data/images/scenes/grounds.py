"""What lies behind the things: pieces of photographs of surfaces, and patterns drawn by rule."""

from __future__ import annotations

import functools
from collections.abc import Callable
from random import Random

import numpy as np
from jaxtyping import Float, UInt8
from PIL import Image, ImageDraw

from engine.data.images.scenes.colours import drawn, shaded
from engine.data.images.scenes.pen import Colour

Pixels = UInt8[np.ndarray, "height width 3"]

SURFACES = ("brick", "grass", "gravel", "moon", "immunohistochemistry", "hubble_deep_field", "page", "cell")
"""Pictures of scikit-image that show no thing of the ten."""
PHOTOGRAPHIC = 0.6
"""Share of grounds that are photographic."""


def ground(size: int, chance: Random) -> Image.Image:
    """A square RGB picture of `size` pixels."""
    maker = photographic if chance.random() < PHOTOGRAPHIC else chance.choice(PATTERNS)
    return maker(size, chance)


def photographic(size: int, chance: Random) -> Image.Image:
    """A piece of a surface, perhaps turned, in its own or in other colours, with less contrast."""
    source = surface(chance.choice(SURFACES))
    side = chance.randint(min(source.shape[:2]) // 4, min(source.shape[:2]) * 3 // 4)
    top, left = (chance.randint(0, length - side) for length in source.shape[:2])
    piece = np.rot90(source[top : top + side, left : left + side], chance.randint(0, 3))
    image = Image.fromarray(np.ascontiguousarray(piece)).resize((size, size), Image.Resampling.BILINEAR)
    if chance.random() < 0.6:
        image = _tinted(image, _calm(chance), _calm(chance))
    return _softened(image, 0.45 + 0.4 * chance.random())


def slope(size: int, chance: Random) -> Image.Image:
    """One colour running into another."""
    angle = chance.randint(0, 3)
    ramp = np.rot90(np.broadcast_to(np.linspace(0, 1, size), (size, size)), angle)
    return _between(ramp, _calm(chance), _calm(chance))


def clouds(size: int, chance: Random) -> Image.Image:
    """Smooth noise of three widths between two colours."""
    field = np.zeros((size, size))
    for cells, weight in ((3, 1.0), (6, 0.5), (12, 0.25)):
        field += weight * _noise(cells, size, chance)
    low, high = field.min(), field.max()
    return _between((field - low) / max(high - low, 1e-9), _calm(chance), _calm(chance))


def stripes(size: int, chance: Random) -> Image.Image:
    """Bands of two similar colours."""
    width, first = size // chance.randint(5, 14) + 1, _calm(chance)
    bands = (np.arange(size) // width) % 2
    ramp = np.rot90(np.broadcast_to(bands, (size, size)).astype(float), chance.randint(0, 1))
    return _between(ramp, first, shaded(first, chance.choice([0.8, 1.25])))


def checks(size: int, chance: Random) -> Image.Image:
    """Squares of two similar colours."""
    width, first = size // chance.randint(4, 10) + 1, _calm(chance)
    cells = np.arange(size) // width
    ramp = ((cells[:, None] + cells[None, :]) % 2).astype(float)
    return _between(ramp, first, shaded(first, chance.choice([0.82, 1.2])))


def dots(size: int, chance: Random) -> Image.Image:
    """Rows of dots on one colour."""
    first = _calm(chance)
    image = Image.new("RGB", (size, size), first)
    step = size // chance.randint(5, 9) + 1
    draw, radius = ImageDraw.Draw(image), step // 5 + 1
    for y in range(step // 2, size, step):
        for x in range(step // 2, size, step):
            draw.ellipse((x - radius, y - radius, x + radius, y + radius), fill=shaded(first, 0.75))
    return image


PATTERNS: tuple[Callable[[int, Random], Image.Image], ...] = (slope, clouds, stripes, checks, dots)


@functools.cache
def surface(name: str) -> Pixels:
    """A surface as RGB, from the pictures that scikit-image carries."""
    from skimage import data

    pixels = np.array(getattr(data, name)())
    return pixels if pixels.ndim == 3 else np.repeat(pixels[..., None], 3, axis=2)


def _calm(chance: Random) -> Colour:
    """A colour with little saturation, dark or light."""
    colour, grey = drawn(chance), chance.randint(50, 215)
    red, green, blue = (round(0.65 * grey + 0.35 * level) for level in colour)
    return red, green, blue


def _tinted(image: Image.Image, dark: Colour, light: Colour) -> Image.Image:
    return _between(np.asarray(image.convert("L")) / 255, dark, light)


def _softened(image: Image.Image, share: float) -> Image.Image:
    """Contrast about the mean reduced to `share`."""
    pixels = np.asarray(image).astype(float)
    mean = pixels.mean((0, 1))
    return _image(mean + share * (pixels - mean))


def _between(ramp: Float[np.ndarray, "height width"], first: Colour, second: Colour) -> Image.Image:
    start, end = np.array(first, dtype=float), np.array(second, dtype=float)
    return _image(start + ramp[..., None] * (end - start))


def _noise(cells: int, size: int, chance: Random) -> Float[np.ndarray, "size size"]:
    small = np.array([[chance.randint(0, 255) for _ in range(cells)] for _ in range(cells)], dtype=np.uint8)
    return np.asarray(Image.fromarray(small).resize((size, size), Image.Resampling.BICUBIC)).astype(float) / 255


def _image(pixels: Float[np.ndarray, "height width 3"]) -> Image.Image:
    return Image.fromarray(pixels.round().clip(0, 255).astype(np.uint8))
