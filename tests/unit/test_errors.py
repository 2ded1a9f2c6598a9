from __future__ import annotations

import pytest

from engine.errors import UsageError, excerpt
from engine.models import catalog


@pytest.mark.parametrize("limit", [2, 3, 40, 79, 80])
def test_an_excerpt_keeps_both_ends_within_its_limit(limit: int) -> None:
    value = "a" * 100 + "\n" + "z" * 100
    short = excerpt(value, limit)
    assert len(short) == limit
    assert short.startswith("'"[: limit - limit // 2 - 1])
    assert short.endswith("'")
    assert short.count("…") == 1
    assert excerpt("a" * (limit - 2), limit) == repr("a" * (limit - 2))


def test_an_error_about_a_long_path_names_its_last_folder() -> None:
    with pytest.raises(UsageError, match=r"^model: no folder '/data/long/.*….*/checkpoint-1200'\."):
        catalog.locate("/data/" + "long/" * 30 + "checkpoint-1200")
