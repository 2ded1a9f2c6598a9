"""Studies, their tables and their files, are as they were frozen."""

from __future__ import annotations

import pytest

from tests.frozen import golden, settings, study

PARTS = study.parts()


@pytest.mark.parametrize("part", PARTS)
def test_nothing_has_changed(part: str) -> None:
    with settings.fixed():
        golden.check(golden.read(part), PARTS[part]())
