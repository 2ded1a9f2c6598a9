"""Pages, as links open them, are as they were frozen."""

from __future__ import annotations

import pytest

from tests.frozen import golden, pages, settings

PARTS = pages.parts()


@pytest.mark.parametrize("part", PARTS)
def test_nothing_has_changed(part: str) -> None:
    with settings.fixed():
        golden.check(golden.read(part), PARTS[part]())
