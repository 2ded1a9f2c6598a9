"""Jobs, their units and their refusals are as they were frozen."""

from __future__ import annotations

import pytest

from tests.frozen import golden, settings, units

PARTS = units.parts()


@pytest.mark.parametrize("part", PARTS)
def test_nothing_has_changed(part: str, pytestconfig: pytest.Config) -> None:
    if part == "refused_jobs" and pytestconfig.getoption("--jaxtyping-packages", default=None):
        pytest.skip(reason="run-time type checks refuse values of other types first: `make test` compares these")
    with settings.fixed():
        golden.check(golden.read(part), PARTS[part]())
