"""Golden values: numbers may change only together with the explainer's version."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.golden import make
from tests.project import ROOT

PROCESSORS = {
    "without vector extensions": {
        "OPENBLAS_CORETYPE": "Prescott", "ATEN_CPU_CAPABILITY": "default", "MKL_CBWR": "COMPATIBLE",
        "DNNL_MAX_CPU_ISA": "SSE41", "OMP_NUM_THREADS": "1",
    },
    "AVX2, two threads": {"OPENBLAS_CORETYPE": "Haswell", "ATEN_CPU_CAPABILITY": "avx2", "OMP_NUM_THREADS": "2"},
    "Zen": {"OPENBLAS_CORETYPE": "Zen", "OMP_NUM_THREADS": "1"},
}  # fmt: skip
"""Settings under which the numerical libraries compute as they do on other processors; each exists on any x86-64."""


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


@pytest.mark.slow(reason="computes every golden value in a process of its own, about 15 s a processor")
@pytest.mark.parametrize("processor", PROCESSORS)
def test_numbers_are_the_same_on_other_processors(processor: str) -> None:
    environment = {**os.environ, **PROCESSORS[processor], "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "tests.golden.make"]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=280)
    assert (done.returncode, done.stdout) == (0, ""), done.stdout + done.stderr


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
