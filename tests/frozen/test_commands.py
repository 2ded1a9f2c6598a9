"""Jobs, their commands and their refusals are as they were frozen."""

from __future__ import annotations

import pytest

from tests.frozen import commands, golden, settings

PARTS = commands.parts()


@pytest.mark.parametrize("part", PARTS)
def test_nothing_has_changed(part: str) -> None:
    with settings.fixed():
        golden.check(golden.read(part), PARTS[part]())
