from __future__ import annotations

from pathlib import Path

import pytest

import tests.sample_job


@pytest.fixture(autouse=True)
def own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("EXEGESIS_HOME", str(tmp_path / "home"))
    assert tests.sample_job.plan is not None
    return tmp_path / "home"
