"""Golden values: numbers may change only together with the explainer's version."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.golden import make


@pytest.fixture(scope="module")
def loaded(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return make.models(tmp_path_factory.mktemp("golden"))


def kept(case: make.Case) -> dict[str, Any]:
    file = make.file_of(case)
    assert file.exists(), f"no golden value of {case}: run python -m tests.golden.make"
    return json.loads(file.read_text(encoding="utf-8"))


def test_files_and_methods_match() -> None:
    assert set(make.FOLDER.rglob("*.json")) == set(map(make.file_of, make.CASES))


@pytest.mark.parametrize("case", make.CASES)
def test_numbers_are_those_of_this_version(case: make.Case, loaded: dict[str, Any]) -> None:
    old, new = kept(case), make.golden(case, loaded)
    assert old["versions"] == new["versions"], "run python -m tests.golden.make and commit what it writes"
    assert old["scores"].keys() == new["scores"].keys()
    for family, scores in old["scores"].items():
        np.testing.assert_allclose(
            new["scores"][family], scores, atol=make.TOLERANCE, rtol=0,
            err_msg=f"{case} gives other numbers than its version {old['versions'][case[1]]} did: raise the version",
        )  # fmt: skip


@pytest.mark.parametrize("case", make.CASES)
def test_golden_values_are_worth_comparing(case: make.Case) -> None:
    assert max(np.ptp(scores) for scores in kept(case)["scores"].values()) > 100 * make.TOLERANCE


def test_the_generator_refuses_new_numbers_of_an_old_version(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    old = kept(("text", "occlusion"))
    (tmp_path / "occlusion.json").write_text(json.dumps({**old, "scores": {"bert": [0.5], "t5": [0.5]}}))
    monkeypatch.setattr(make, "FOLDER", tmp_path)
    monkeypatch.setattr(make, "CASES", (("text", "occlusion"),))
    monkeypatch.setattr(make, "golden", lambda *_: old)
    assert make.main() == 1
    assert "occlusion (text): its numbers changed; raise its version" in capsys.readouterr().err
    assert json.loads((tmp_path / "occlusion.json").read_text())["scores"]["bert"] == [0.5]
    monkeypatch.setattr(make, "golden", lambda *_: {**old, "versions": {"occlusion": 99}})
    assert make.main() == 0
    assert json.loads((tmp_path / "occlusion.json").read_text())["versions"] == {"occlusion": 99}
