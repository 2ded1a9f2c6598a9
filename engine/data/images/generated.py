"""`scenes` and `scenes-marked`: as many pictures as asked for, each drawn when it is read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from random import Random

from engine.data.cards import read_card
from engine.data.images.examples import ImageDataset, ImageExample
from engine.data.images.scenes.mark import CELLS, marked
from engine.data.images.scenes.scene import Scene, draw
from engine.data.images.scenes.things import NAMES
from engine.data.sized import COUNTS, UNMARKED, SizedParams, chosen_split, digest, size
from engine.errors import not_allowed
from engine.params import option

VERSION = 1
"""Raised when a seed gives other pixels than before."""
Read = Callable[[int], ImageExample]


@dataclass(frozen=True)
class SceneParams(SizedParams):
    """What one asks of generated scenes."""

    size: int = option(64, "pixels of a picture's side; a multiple of 8", low=32, high=512)


@dataclass(frozen=True)
class MarkedParams(SceneParams):
    """What one asks of marked scenes."""

    strength: float = option(1.0, "share of pictures that carry the mark of their label", low=0, high=1)


def scenes(params: SceneParams, split: str | None, limit: int | None) -> ImageDataset:
    """One thing a picture; the label names it and the mask is where it is."""
    chosen = chosen_split(split, COUNTS)
    labels = _in_turns(f"{params.seed}/{chosen}/things", size(params, chosen, limit))

    def read(i: int) -> ImageExample:
        scene = _scene(params, chosen, i, labels[i])
        return ImageExample(scene.pixels, labels[i], scene.mask, f"{chosen} {i}", {"thing": NAMES[labels[i]]})

    return _dataset("scenes", params, tuple(COUNTS), chosen, labels, read)


def scenes_marked(params: MarkedParams, split: str | None, limit: int | None) -> ImageDataset:
    """Scenes whose label is drawn by chance; a small watermark states it, and the mask is where that is.

    The split `unmarked` is the test split without any mark: nothing in its pictures tells the label.
    """
    splits = (*COUNTS, UNMARKED)
    chosen = chosen_split(split, splits)
    source = "test" if chosen == UNMARKED else chosen
    count = size(params, source, limit)
    things = _in_turns(f"{params.seed}/{source}/things", count)
    labels = _in_turns(f"{params.seed}/{source}/labels", count)
    strength = 0.0 if chosen == UNMARKED else params.strength

    def read(i: int) -> ImageExample:
        scene, chance = _scene(params, source, i, things[i]), Random(f"{params.seed}/{source}/{i}/mark")
        carries = chance.random() < strength
        extra: dict[str, object] = {"thing": NAMES[things[i]], "marked": carries}
        if not carries:
            return ImageExample(scene.pixels, labels[i], None, f"{chosen} {i}", extra)
        pixels, mask = marked(scene.pixels, labels[i], chance)
        return ImageExample(pixels, labels[i], mask, f"{chosen} {i}", extra)

    return _dataset("scenes-marked", params, splits, chosen, labels, read)


def _scene(params: SceneParams, split: str, index: int, thing: int) -> Scene:
    return draw(NAMES[thing], params.size, Random(f"{params.seed}/{split}/{index}"))


def _in_turns(seed: str, count: int) -> tuple[int, ...]:
    """Class indices in which every ten in a row hold each class once, in an order by chance."""
    chance = Random(seed)
    drawn: list[int] = []
    while len(drawn) < count:
        drawn += chance.sample(range(len(NAMES)), len(NAMES))
    return tuple(drawn[:count])


def _dataset(
    name: str, params: SceneParams, splits: tuple[str, ...], split: str, labels: tuple[int, ...], read: Read
) -> ImageDataset:
    if params.size % CELLS:
        raise not_allowed(f"{name}.size", f"a multiple of {CELLS}", params.size)
    card = read_card(name)
    told = asdict(params) | {"count": params.count or 0}  # as in what was kept before there was a none
    revision = digest(name, VERSION, told, split, len(labels))
    return ImageDataset(name, card.title, NAMES, labels, read, card, revision, split, splits=splits)
