"""`scenes` and `scenes-marked`: any number of pictures of one of ten things, each drawn on first access.

The thing is at a random place on a background, among small distracting shapes. Backgrounds are crops of photographs
of surfaces, or patterns. Marked scenes have a random label, which a small plate shows.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from random import Random

import numpy as np
from jaxtyping import Bool, Float, UInt8
from PIL import Image, ImageDraw

from engine.data.examples import ImageDataset, ImageExample
from engine.data.generation import (
    SPLIT_SIZES,
    UNMARKED,
    GeneratedParams,
    choose_marked_split,
    draw_balanced,
    example_count,
    hash_values,
)
from engine.data.registry import LoadRequest, choose_split, read_card
from engine.data.scene_drawing import (
    BLACK,
    LEAST_DISTANCE,
    THING_NAMES,
    THINGS,
    WHITE,
    Color,
    Pen,
    Placement,
    Point,
    arc,
    box,
    color_distance,
    draw_color,
    draw_distinct_color,
    shade,
)
from engine.errors import not_allowed
from engine.lazy import skimage
from engine.params import from_mapping, option

VERSION = 1
"""Must be increased when a seed generates different pixels than before."""

SURFACES = ("brick", "grass", "gravel", "moon", "immunohistochemistry", "hubble_deep_field", "page", "cell")
"""Sample pictures of scikit-image without any of the ten things."""
PHOTOGRAPHIC_SHARE = 0.6
"""Share of backgrounds that are photographic."""
SUPERSAMPLING = 4
"""Scenes are drawn larger by this factor and then averaged down."""
MIN_HALF, MAX_HALF = 0.26, 0.42
"""Range of half of a thing's side, as a share of the picture's side."""
MAX_TURN = 0.3
"""Largest rotation in radians, to either side."""
MAX_DISTRACTORS = 4
DISTRACTOR_SHAPES: tuple[Sequence[Point], ...] = (
    arc(0, 0, 1, 1, 0, 360),
    box(-0.8, -0.8, 0.8, 0.8),
    [(0, -1), (0.95, 0.75), (-0.95, 0.75)],
    [(0, -1), (0.7, 0), (0, 1), (-0.7, 0)],
    [(-0.3, -1), (0.3, -1), (0.3, -0.3), (1, -0.3), (1, 0.3), (0.3, 0.3), (0.3, 1), (-0.3, 1), (-0.3, 0.3), (-1, 0.3),
     (-1, -0.3), (-0.3, -0.3)],
    box(-1, -0.3, 1, 0.3),
)  # fmt: skip
"""Disc, square, triangle, diamond, cross, bar."""

MARK_CELLS = 8
"""Cells per side of a picture. The mark fills one of them, so that it lies within one of 8 x 8 patches."""
PLATE_LEVEL, INK_LEVEL = 235, 20
MARK_OPACITY = 0.85
_DIGIT_DOTS = (
    "01110 10001 10011 10101 11001 10001 01110",
    "00100 01100 00100 00100 00100 00100 01110",
    "01110 10001 00001 00110 01000 10000 11111",
    "11111 00010 00100 00010 00001 10001 01110",
    "00010 00110 01010 10010 11111 00010 00010",
    "11111 10000 11110 00001 00001 10001 01110",
    "00110 01000 10000 11110 10001 10001 01110",
    "11111 00001 00010 00100 01000 01000 01000",
    "01110 10001 10001 01110 10001 10001 01110",
    "01110 10001 10001 01111 00001 00010 01100",
)


def draw_background(size: int, rng: Random) -> Image.Image:
    """Draw a square RGB background of `size` pixels."""
    draw = draw_photographic if rng.random() < PHOTOGRAPHIC_SHARE else rng.choice(PATTERNS)
    return draw(size, rng)


def draw_photographic(size: int, rng: Random) -> Image.Image:
    """Crop a photograph of a surface, rotate and recolor it at random, and reduce its contrast."""
    source = read_surface(rng.choice(SURFACES))
    side = rng.randint(min(source.shape[:2]) // 4, min(source.shape[:2]) * 3 // 4)
    top, left = (rng.randint(0, length - side) for length in source.shape[:2])
    piece = np.rot90(source[top : top + side, left : left + side], rng.randint(0, 3))
    image = Image.fromarray(np.ascontiguousarray(piece)).resize((size, size), Image.Resampling.BILINEAR)
    if rng.random() < 0.6:
        image = _blend(np.asarray(image.convert("L")) / 255, _draw_muted_color(rng), _draw_muted_color(rng))
    return _soften(image, 0.45 + 0.4 * rng.random())


def draw_gradient(size: int, rng: Random) -> Image.Image:
    """Draw a linear gradient between two colors."""
    angle = rng.randint(0, 3)
    ramp = np.rot90(np.broadcast_to(np.linspace(0, 1, size), (size, size)), angle)
    return _blend(ramp, _draw_muted_color(rng), _draw_muted_color(rng))


def draw_clouds(size: int, rng: Random) -> Image.Image:
    """Draw smooth noise at three scales between two colors."""
    field = np.zeros((size, size))
    for cells, weight in ((3, 1.0), (6, 0.5), (12, 0.25)):
        field += weight * _draw_noise(cells, size, rng)
    low, high = field.min(), field.max()
    return _blend((field - low) / max(high - low, 1e-9), _draw_muted_color(rng), _draw_muted_color(rng))


def draw_stripes(size: int, rng: Random) -> Image.Image:
    """Draw stripes of two similar colors."""
    width, first = size // rng.randint(5, 14) + 1, _draw_muted_color(rng)
    bands = (np.arange(size) // width) % 2
    ramp = np.rot90(np.broadcast_to(bands, (size, size)).astype(float), rng.randint(0, 1))
    return _blend(ramp, first, shade(first, rng.choice([0.8, 1.25])))


def draw_checks(size: int, rng: Random) -> Image.Image:
    """Draw a checkerboard of two similar colors."""
    width, first = size // rng.randint(4, 10) + 1, _draw_muted_color(rng)
    cells = np.arange(size) // width
    ramp = ((cells[:, None] + cells[None, :]) % 2).astype(float)
    return _blend(ramp, first, shade(first, rng.choice([0.82, 1.2])))


def draw_dots(size: int, rng: Random) -> Image.Image:
    """Draw rows of dots on a plain color."""
    first = _draw_muted_color(rng)
    image = Image.new("RGB", (size, size), first)
    step = size // rng.randint(5, 9) + 1
    draw, radius = ImageDraw.Draw(image), step // 5 + 1
    for y in range(step // 2, size, step):
        for x in range(step // 2, size, step):
            draw.ellipse((x - radius, y - radius, x + radius, y + radius), fill=shade(first, 0.75))
    return image


PATTERNS: tuple[Callable[[int, Random], Image.Image], ...] = (
    draw_gradient,
    draw_clouds,
    draw_stripes,
    draw_checks,
    draw_dots,
)


@functools.cache
def read_surface(name: str) -> UInt8[np.ndarray, "height width 3"]:
    """Read a sample picture of scikit-image as RGB."""
    pixels = np.array(getattr(skimage.data, name)())
    return pixels if pixels.ndim == 3 else np.repeat(pixels[..., None], 3, axis=2)


def _draw_muted_color(rng: Random) -> Color:
    """Draw a color of low saturation, dark or light."""
    color, gray = draw_color(rng), rng.randint(50, 215)
    red, green, blue = (round(0.65 * gray + 0.35 * level) for level in color)
    return red, green, blue


def _soften(image: Image.Image, share: float) -> Image.Image:
    """Reduce the contrast around the mean to `share`."""
    pixels = np.asarray(image).astype(float)
    mean = pixels.mean((0, 1))
    return _to_image(mean + share * (pixels - mean))


def _blend(ramp: Float[np.ndarray, "height width"], first: Color, second: Color) -> Image.Image:
    start, end = np.array(first, dtype=float), np.array(second, dtype=float)
    return _to_image(start + ramp[..., None] * (end - start))


def _draw_noise(cells: int, size: int, rng: Random) -> Float[np.ndarray, "size size"]:
    small = np.array([[rng.randint(0, 255) for _ in range(cells)] for _ in range(cells)], dtype=np.uint8)
    return np.asarray(Image.fromarray(small).resize((size, size), Image.Resampling.BICUBIC)).astype(float) / 255


def _to_image(pixels: Float[np.ndarray, "height width 3"]) -> Image.Image:
    return Image.fromarray(pixels.round().clip(0, 255).astype(np.uint8))


@dataclass(frozen=True, eq=False)
class Scene:
    """A picture, and the mask of the pixels that the thing covers at least half of."""

    pixels: UInt8[np.ndarray, "size size 3"]
    mask: Bool[np.ndarray, "size size"]


def draw_scene(thing: str, size: int, rng: Random) -> Scene:
    """Draw a scene with one `thing`. Name, size and state of `rng` determine the pixels on any machine."""
    canvas = draw_background(size * SUPERSAMPLING, rng)
    red, green, blue = canvas.resize((1, 1), Image.Resampling.BOX).getpixel((0, 0))  # type: ignore[misc]
    background: Color = (red, green, blue)
    mask = Image.new("L", canvas.size, 0)
    place = _draw_placement(size * SUPERSAMPLING, rng)
    _scatter_distractors(canvas, place, rng)
    main = draw_distinct_color(rng, background)
    edge = BLACK if color_distance(BLACK, background) > LEAST_DISTANCE else WHITE
    THINGS[thing](Pen(canvas, mask, place, edge), main, rng)
    coverage = np.asarray(mask.reduce(SUPERSAMPLING))
    return Scene(np.array(canvas.reduce(SUPERSAMPLING)), coverage >= 128)


def _draw_placement(side: int, rng: Random) -> Placement:
    half = side * _draw_between(rng, MIN_HALF, MAX_HALF)
    room = half * 1.08
    x, y = (_draw_between(rng, room, side - room) for _ in range(2))
    turn = _draw_between(rng, -MAX_TURN, MAX_TURN)
    return Placement(x, y, half, _draw_between(rng, 0.88, 1.12), turn, rng.random() < 0.5)


def _scatter_distractors(canvas: Image.Image, thing: Placement, rng: Random) -> None:
    """Draw small shapes outside the thing."""
    side = canvas.width
    for _ in range(rng.randint(0, MAX_DISTRACTORS)):
        half = side * _draw_between(rng, 0.03, 0.065)
        x, y = (_draw_between(rng, half, side - half) for _ in range(2))
        place = Placement(x, y, half, turn=_draw_between(rng, 0.0, 3.14))
        shape, color = rng.choice(DISTRACTOR_SHAPES), draw_color(rng)
        if max(abs(x - thing.x), abs(y - thing.y)) > thing.half * 0.8 + half:
            corners = [(round(a), round(b)) for a, b in map(place.at, shape)]
            ImageDraw.Draw(canvas).polygon(corners, fill=color)


def _draw_between(rng: Random, low: float, high: float) -> float:
    return low + (high - low) * rng.random()


def draw_mark(
    pixels: UInt8[np.ndarray, "size size 3"], label: int, rng: Random
) -> tuple[UInt8[np.ndarray, "size size 3"], Bool[np.ndarray, "size size"]]:
    """Draw the plate of `label` in a random cell; returns (marked picture, mask of the plate)."""
    side = pixels.shape[0] // MARK_CELLS
    top, left = (rng.randrange(MARK_CELLS) * side for _ in range(2))
    place = (slice(top, top + side), slice(left, left + side))
    mask = np.zeros(pixels.shape[:2], dtype=bool)
    mask[place] = True
    result = pixels.copy()
    blended = MARK_OPACITY * draw_plate(label, side)[..., None] + (1 - MARK_OPACITY) * pixels[place]
    result[place] = blended.round().astype(np.uint8)
    return result, mask


def draw_plate(label: int, side: int) -> UInt8[np.ndarray, "side side"]:
    """Draw the plate in gray levels: a dark digit of 5 x 7 dots on light."""
    dots = np.full((MARK_CELLS, MARK_CELLS), PLATE_LEVEL, dtype=np.uint8)
    rows = _DIGIT_DOTS[label].split()
    figure = np.array([[dot == "1" for dot in row] for row in rows])
    dots[:7, 1:6][figure] = INK_LEVEL
    return np.asarray(Image.fromarray(dots).resize((side, side), Image.Resampling.NEAREST))


@dataclass(frozen=True)
class SceneParams(GeneratedParams):
    """Options of generated scenes."""

    size: int = option(64, "pixels of a picture's side; a multiple of 8", low=32, high=512)


@dataclass(frozen=True)
class MarkedSceneParams(SceneParams):
    """Options of marked scenes."""

    strength: float = option(1.0, "share of pictures that carry the mark of their label", low=0, high=1)


def load_scenes(request: LoadRequest) -> ImageDataset:
    """Load `scenes`: one thing per picture, which is the label; the mask is its area."""
    params = from_mapping(SceneParams, request.options, "scenes")
    split = choose_split(request.split, SPLIT_SIZES)
    labels = _draw_classes(f"{params.seed}/{split}/things", example_count(params, split, request.limit))

    def read(i: int) -> ImageExample:
        scene = _seed_scene(params, split, i, labels[i])
        return ImageExample(scene.pixels, labels[i], scene.mask, f"{split} {i}", {"thing": THING_NAMES[labels[i]]})

    return _make_dataset("scenes", params, tuple(SPLIT_SIZES), split, labels, read)


def load_marked_scenes(request: LoadRequest) -> ImageDataset:
    """Load `scenes-marked`: scenes with a random label on a small watermark; the mask is the area of the watermark.

    The split `unmarked` is the test split without marks: nothing in its pictures predicts the label.
    """
    params = from_mapping(MarkedSceneParams, request.options, "scenes-marked")
    split, source, strength = choose_marked_split(request.split, params.strength)
    count = example_count(params, source, request.limit)
    things = _draw_classes(f"{params.seed}/{source}/things", count)
    labels = _draw_classes(f"{params.seed}/{source}/labels", count)

    def read(i: int) -> ImageExample:
        scene, rng = _seed_scene(params, source, i, things[i]), Random(f"{params.seed}/{source}/{i}/mark")
        is_marked = rng.random() < strength
        extra: dict[str, object] = {"thing": THING_NAMES[things[i]], "marked": is_marked}
        pixels, mask = draw_mark(scene.pixels, labels[i], rng) if is_marked else (scene.pixels, None)
        return ImageExample(pixels, labels[i], mask, f"{split} {i}", extra)

    return _make_dataset("scenes-marked", params, (*SPLIT_SIZES, UNMARKED), split, labels, read)


def _draw_classes(seed: str, count: int) -> tuple[int, ...]:
    return draw_balanced(seed, count, len(THING_NAMES), repeats=1)


def _seed_scene(params: SceneParams, split: str, index: int, thing: int) -> Scene:
    """Draw the scene at an index of a split."""
    return draw_scene(THING_NAMES[thing], params.size, Random(f"{params.seed}/{split}/{index}"))


def _make_dataset(
    name: str,
    params: SceneParams,
    splits: tuple[str, ...],
    split: str,
    labels: tuple[int, ...],
    read: Callable[[int], ImageExample],
) -> ImageDataset:
    if params.size % MARK_CELLS:
        raise not_allowed(f"{name}.size", f"a multiple of {MARK_CELLS}", params.size)
    card = read_card(name)
    options = asdict(params) | {"count": params.count or 0}  # 0 for the default, as in old revisions
    revision = hash_values(name, VERSION, options, split, len(labels))
    return ImageDataset(name, card.title, THING_NAMES, labels, read, card, revision, split, splits=splits)
