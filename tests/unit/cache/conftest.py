from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from cache import Store


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store(tmp_path / "cache", 10**8) as opened:
        yield opened
