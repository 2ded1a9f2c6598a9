"""The descriptions for newcomers name files that are there, and ways of at most twelve steps."""

from __future__ import annotations

import re

from tests.project import PACKAGES, ROOT

GUIDE = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
TEXT = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
MOST_STEPS = 12


def test_every_file_that_is_named_is_there() -> None:
    files = re.findall(r"`([\w./]+\.py)`", TEXT + GUIDE)
    assert len(files) > 50
    assert not [file for file in files if not (ROOT / file).is_file()]


def test_every_room_of_the_picture_is_there() -> None:
    floors = re.search(r"```\n(.*?)```", TEXT, re.DOTALL)
    assert floors is not None
    rooms = set(re.findall(r"(\w+)/", floors[1]))
    here = {path.name for floor in PACKAGES for path in (ROOT / floor).rglob("*/")}
    assert rooms - {*PACKAGES} <= here


def test_a_way_has_at_most_twelve_steps() -> None:
    steps = [int(number) for number in re.findall(r"^(\d+)\. ", TEXT, re.MULTILINE)]
    assert steps.count(1) == 3
    assert max(steps) <= MOST_STEPS
