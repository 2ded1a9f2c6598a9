"""Stand-ins for the models of each scale, written once."""

from __future__ import annotations

import pytest

from tests.unit.reproduction.stand_ins import full_stand_ins, stand_ins


@pytest.fixture(scope="session")
def small(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Folders for the embedded scale."""
    return stand_ins(tmp_path_factory.mktemp("small"))


@pytest.fixture(scope="session")
def large(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Folders for the full scale."""
    return full_stand_ins(tmp_path_factory.mktemp("large"))
