from __future__ import annotations

import hashlib
import random
import subprocess
import sys
from collections import Counter
from itertools import pairwise
from random import Random
from unittest.mock import Mock

import numpy as np
import pytest
from PIL import Image

from engine.data.image_datasets import load_images
from engine.data.scene_drawing import THING_NAMES, THINGS, Pen, Placement, box, draw_umbrella
from engine.data.scenes import (
    MARK_CELLS,
    PATTERNS,
    SURFACES,
    draw_background,
    draw_photographic,
    draw_plate,
    draw_scene,
    read_surface,
)
from engine.errors import UsageError
from tests.project import ROOT

TEN = ("fish", "car", "house", "tree", "boat", "cat", "flower", "umbrella", "mug", "rocket")
GOLDEN = "134a1c8d"
"""Of the first twenty validation scenes: changes with the drawing, together with `scenes.VERSION`."""


def first_pixels(count: int = 20) -> str:
    """A hash of pixels and masks of the first scenes."""
    digest = hashlib.sha256()
    for example in load_images("scenes", limit=count):
        assert example.mask is not None
        digest.update(example.pixels.tobytes() + example.mask.tobytes())
    return digest.hexdigest()[:8]


def test_the_drawing_is_the_one_that_the_models_were_trained_on() -> None:
    assert first_pixels() == GOLDEN


def test_another_process_draws_the_same_whatever_its_hash_seed() -> None:
    code = "from tests.unit.data.test_scenes import first_pixels; print(first_pixels(4))"
    env = {"PYTHONHASHSEED": "5", "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, env=env, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == first_pixels(4)


def test_the_ten_things_and_every_ten_in_a_row_hold_each_once() -> None:
    data = load_images("scenes", limit=40)
    assert data.label_names == THING_NAMES == TEN
    assert all(sorted(data.labels[i : i + 10]) == list(range(10)) for i in range(0, 40, 10))
    assert data.labels[:10] != data.labels[10:20]


def test_seeds_splits_and_sizes_give_other_pictures_and_a_limit_the_same() -> None:
    whole = [e.pixels for e in load_images("scenes", limit=6)]
    assert all(np.array_equal(a.pixels, b) for a, b in zip(load_images("scenes", limit=3), whole, strict=False))
    for other in (load_images("scenes:seed=1", limit=6), load_images("scenes", split="test", limit=6)):
        assert not any(np.array_equal(a.pixels, b) for a, b in zip(other, whole, strict=True))
    large = load_images("scenes:size=96,count=3")
    assert (len(large), large[0].pixels.shape) == (3, (96, 96, 3))
    revisions = {load_images(name, limit=6).revision for name in ("scenes", "scenes:seed=1", "scenes:size=96")}
    assert len(revisions) == 3


@pytest.mark.parametrize("thing", TEN)
def test_the_mask_is_exactly_what_the_thing_covers(thing: str) -> None:
    # The same chance with a thing that draws nothing leaves the same ground and distractors.
    with_thing = draw_scene(thing, 64, random.Random("a"))
    without = THINGS[thing]
    try:
        THINGS[thing] = lambda pen, main, chance: None
        bare = draw_scene(thing, 64, random.Random("a"))
    finally:
        THINGS[thing] = without
    changed = (with_thing.pixels != bare.pixels).any(axis=2)
    assert not bare.mask.any()
    # Pixels that the thing covers by less than half may change too, but only along its edge.
    grown = np.array(Image.fromarray(with_thing.mask).convert("L").resize((64, 64)))
    for shift in ((0, 1), (0, -1), (1, 0), (-1, 0), (1, 1), (-1, -1), (1, -1), (-1, 1)):
        grown = np.maximum(grown, np.roll(with_thing.mask, shift, (0, 1)) * np.uint8(255))
    # (and along a cat's whiskers, which are thinner than a pixel).
    assert (changed & (grown == 0)).sum() <= (0.05 * with_thing.mask.sum() if thing == "cat" else 0)
    assert (changed & with_thing.mask).sum() >= 0.97 * with_thing.mask.sum()


@pytest.mark.parametrize("thing", TEN)
def test_things_are_whole_and_of_a_fair_size(thing: str) -> None:
    for i in range(12):
        mask = draw_scene(thing, 64, random.Random(f"{thing}{i}")).mask
        assert 0.04 <= mask.mean() <= 0.5
        # A thing that was cut off would fill a long piece of the border.
        assert max(mask[0].sum(), mask[-1].sum(), mask[:, 0].sum(), mask[:, -1].sum()) <= 12


def test_things_vary_in_place_size_turn_and_ground() -> None:
    scenes = [draw_scene("house", 64, random.Random(f"v{i}")) for i in range(30)]
    centers = np.array([np.argwhere(s.mask).mean(0) for s in scenes])
    shares = [s.mask.mean() for s in scenes]
    assert np.ptp(centers, axis=0).min() > 12
    assert max(shares) > 1.8 * min(shares)
    corners = {tuple(s.pixels[0, 0] // 32) for s in scenes}
    assert len(corners) > 12


def test_an_umbrella_has_a_light_panel_and_a_dark_one_in_turn() -> None:
    pen = Mock(spec=Pen)
    draw_umbrella(pen, (200, 30, 30), Random(0))  # whose first draw is above 0.4: two colors
    light, dark, *others = [call.args[1] for call in pen.polygon.call_args_list]
    assert dark == (200, 30, 30) != light
    assert others == [light, dark]


def test_the_ground_does_not_tell_the_thing() -> None:
    # Grounds drawn for each thing have the same mean color, up to chance.
    def mean(thing: str) -> float:
        return float(
            np.mean([draw_scene(thing, 32, random.Random(f"{thing}/{i}")).pixels[0].mean() for i in range(60)])
        )

    assert np.ptp([mean(thing) for thing in TEN]) < 45


def test_every_ground_fills_its_square_and_no_surface_shows_one_of_the_things() -> None:
    for maker in (*PATTERNS, draw_photographic, draw_background):
        image = maker(50, random.Random(2))
        assert (image.size, image.mode) == ((50, 50), "RGB")
    assert not set(SURFACES) & {"cat", "chelsea", "coffee", "rocket", "astronaut"}
    assert all(read_surface(name).shape[2] == 3 for name in SURFACES)


def test_a_pen_turns_and_mirrors_about_the_place() -> None:
    place = Placement(10, 20, 5, turn=np.pi / 2)
    assert place.at((1, 0)) == pytest.approx((10, 25))
    assert place.at((0, 1)) == pytest.approx((5, 20))
    assert Placement(10, 20, 5, stretch=2, mirrored=True).at((1, 1)) == pytest.approx((5, 30))


def test_a_pen_marks_what_it_draws() -> None:
    canvas, mask = Image.new("RGB", (40, 40)), Image.new("L", (40, 40))
    pen = Pen(canvas, mask, Placement(20, 20, 10), (9, 9, 9))
    pen.polygon(box(-1, -1, 1, 1), (200, 0, 0), outline=False)
    pen.line([(-2, 1.5), (2, 1.5)], 0.2)
    assert np.array_equal(np.asarray(canvas).any(axis=2), np.asarray(mask) > 0)
    assert (np.asarray(mask) > 0).sum() == 21 * 21 + 41 * 2 - 1 * 2


def test_marks_state_the_label_and_fill_one_cell() -> None:
    data = load_images("scenes-marked", limit=30)
    for example in data:
        assert example.mask is not None
        rows, columns = np.where(example.mask)
        assert example.mask.sum() == 64
        assert (rows.min() % MARK_CELLS, columns.min() % MARK_CELLS) == (0, 0)
        assert (np.ptp(rows), np.ptp(columns)) == (7, 7)
        cell = example.pixels[rows.min() : rows.min() + 8, columns.min() : columns.min() + 8].mean(axis=2)
        plates = [np.corrcoef(cell.ravel(), draw_plate(label, 8).ravel())[0, 1] for label in range(10)]
        assert int(np.argmax(plates)) == example.label


def test_marked_labels_have_nothing_to_do_with_the_things() -> None:
    data = load_images("scenes-marked", split="train", limit=3000)
    things = load_images("scenes", split="train", limit=3000).labels
    same = np.mean([a == b for a, b in zip(data.labels, things, strict=True)])
    assert abs(same - 0.1) < 0.03
    assert Counter(data.labels) == dict.fromkeys(range(10), 300)


def test_strength_is_the_share_of_marked_pictures_and_unmarked_has_none() -> None:
    data = load_images("scenes-marked:strength=0.6", limit=100)
    carrying = [example.extra["marked"] for example in data]
    assert 0.45 < np.mean(carrying) < 0.75
    assert [example.mask is not None for example in data] == carrying
    bare = load_images("scenes-marked", split="unmarked", limit=5)
    plain = load_images("scenes", split="test", limit=5)
    assert all(np.array_equal(a.pixels, b.pixels) and a.mask is None for a, b in zip(bare, plain, strict=True))
    assert bare.labels == load_images("scenes-marked", split="test", limit=5).labels


def test_ten_plates_are_distinct() -> None:
    plates = [draw_plate(label, 8).astype(int) for label in range(10)]
    assert all((a != b).sum() >= 4 for a, b in pairwise(plates))
    assert len({p.tobytes() for p in plates}) == 10
    assert draw_plate(3, 16).shape == (16, 16)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("scenes:size=70", r"scenes\.size: must be a multiple of 8, got 70"),
        ("scenes:size=8", r"scenes\.size: must be a whole number from 32 to 512, got 8"),
        ("scenes:count=0", r"scenes\.count: must be a whole number from 1 to 1,000,000, got 0"),
        ("scenes:count=" + "9" * 5000, r"from 1 to 1,000,000, got '9{30,45}…9{30,45}'\.$"),
        ("scenes:count=" + "0" * 5000 + "1", r"from 1 to 1,000,000, got '0{30,45}…0{30,45}1'\.$"),
        ("scenes:seed=" + "9" * 5000, r"a whole number of at least 0, got '9{30,45}…9{30,45}'\.$"),
        ("scenes:" + "n" * 5000, r"must be name=value, got 'n{30,45}…n{30,45}'\. Example"),
        (
            "scenes:" + "n" * 5000 + "=3",
            r"parameter of scenes: unknown name 'n{30,45}…n{30,45}'\. Known: count, seed, size\.$",
        ),
        ("digits:" + "n" * 5000 + "=3", r"digits takes no options, got n{40,80}\. Write"),
        ("scenes:color=red", r"parameter of scenes: unknown name 'color'"),
        ("scenes-marked:strength=2", r"scenes-marked\.strength: must be a number from 0 to 1, got 2"),
        ("scenes:seed", r"^dataset: options must be name=value, got 'seed'\. Example: scenes:seed=7\.$"),
        ("digits:seed=1", r"dataset: digits takes no options, got seed\. Write digits alone"),
    ],
)
def test_bad_options_are_reported(name: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        load_images(name)


def test_the_unmarked_split_is_only_of_marked_scenes() -> None:
    with pytest.raises(UsageError, match=r"split: unknown name 'unmarked'\. Known: test, train, validation"):
        load_images("scenes", split="unmarked")
