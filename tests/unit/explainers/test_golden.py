"""Golden values: numbers may change only together with the explainer's version."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.explaining import METHODS
from tests.golden import make


@pytest.fixture(scope="module")
def loaded(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return make.models(tmp_path_factory.mktemp("golden"))


def kept(method: str) -> dict[str, Any]:
    file = make.FOLDER / f"{method}.json"
    assert file.exists(), f"no golden value of {method}: run python -m tests.golden.make"
    return json.loads(file.read_text(encoding="utf-8"))


def test_files_and_methods_match() -> None:
    assert {f.stem for f in make.FOLDER.glob("*.json")} == set(METHODS)


@pytest.mark.parametrize("method", METHODS)
def test_numbers_are_those_of_this_version(method: str, loaded: dict[str, Any]) -> None:
    old, new = kept(method), make.golden(method, loaded)
    assert old["versions"] == new["versions"], "run python -m tests.golden.make and commit what it writes"
    for family, scores in old["scores"].items():
        np.testing.assert_allclose(
            new["scores"][family], scores, atol=make.TOLERANCE, rtol=0,
            err_msg=f"{method} gives other numbers than its version {old['versions'][method]} did: raise the version",
        )  # fmt: skip


@pytest.mark.parametrize("method", METHODS)
def test_golden_values_are_worth_comparing(method: str) -> None:
    assert max(np.ptp(scores) for scores in kept(method)["scores"].values()) > 100 * make.TOLERANCE


def test_the_generator_refuses_new_numbers_of_an_old_version(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    old = kept("occlusion")
    (tmp_path / "occlusion.json").write_text(json.dumps({**old, "scores": {"bert": [0.5], "t5": [0.5]}}))
    monkeypatch.setattr(make, "FOLDER", tmp_path)
    monkeypatch.setattr(make, "METHODS", ("occlusion",))
    monkeypatch.setattr(make, "golden", lambda *_: old)
    assert make.main() == 1
    assert "occlusion: its numbers changed; raise its version" in capsys.readouterr().err
    assert json.loads((tmp_path / "occlusion.json").read_text())["scores"]["bert"] == [0.5]
    monkeypatch.setattr(make, "golden", lambda *_: {**old, "versions": {"occlusion": 99}})
    assert make.main() == 0
    assert json.loads((tmp_path / "occlusion.json").read_text())["versions"] == {"occlusion": 99}
