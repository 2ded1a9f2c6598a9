"""The documentation of the Python interface runs: examples of the reference, the guide, and notebooks."""

from __future__ import annotations

import doctest
import importlib
import json
import pkgutil
import re
import subprocess
import sys
from pathlib import Path

import pytest

import exegesis
from tests.notebooks import Outputs, code_cells, notebooks, run_cell, run_notebook
from tests.project import ROOT
from tests.tiny import save_checkpoint

MODULES = ["exegesis", *(f"exegesis.{one.name}" for one in pkgutil.iter_modules(exegesis.__path__))]
GUIDE = ROOT / "docs" / "python.md"
LARGEST = 60_000
NUMBER = re.compile(r"[-+−]?\d+(?:\.\d+)?(?:e[-+]?\d+)?")
LIGHT = """
import sys, exegesis
result = exegesis.load(sys.argv[1])
assert "xg-row" in result._repr_html_() and repr(result) and result.rows()
heavy = {"streamlit", "torch", "transformers", "captum"} & set(sys.modules)
print(sorted(heavy))
"""


@pytest.mark.parametrize("module", MODULES)
def test_examples_of_the_reference_run(module: str) -> None:
    done = doctest.testmod(importlib.import_module(module))
    assert done.failed == 0


def test_every_function_has_an_example() -> None:
    functions = [getattr(exegesis, name) for name in exegesis.__all__ if name.islower()]
    without = [one.__name__ for one in functions if ">>>" not in str(one.__doc__)]
    assert set(without) == {"wrap", "load"}  # their examples need a loaded model and a file: the guide has them


def test_the_code_of_the_guide_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    save_checkpoint("bert", tmp_path / "my-checkpoint")
    blocks = re.findall(r"```python\n(.*?)```", GUIDE.read_text(encoding="utf-8"), re.DOTALL)
    assert len(blocks) > 5
    assert len([line for line in blocks[0].splitlines() if line.strip()]) <= 10
    names: dict[str, object] = {}
    for block in blocks:
        run_cell(block, names)


def figures(outputs: Outputs) -> list[tuple[str, list[float]]]:
    """The words of each output as text, and its numbers."""
    texts = ["".join(one.get("text") or one["data"]["text/plain"]) for one in outputs]
    return [
        (NUMBER.sub("#", text), [float(number.replace("−", "-")) for number in NUMBER.findall(text)]) for text in texts
    ]


@pytest.mark.parametrize("notebook", notebooks(), ids=lambda file: file.stem)
def test_a_notebook_runs_and_its_outputs_are_these(notebook: Path) -> None:
    assert notebook.stat().st_size < LARGEST
    stored = [cell["outputs"] for cell in code_cells(notebook)]
    assert "data:image/png" not in notebook.read_text(encoding="utf-8") or notebook.stem == "picture"
    for now, then in zip(run_notebook(notebook), stored, strict=True):
        for (words, numbers), (old_words, old_numbers) in zip(figures(now), figures(then), strict=True):
            assert re.sub(r"#?\s+", " ", words) == re.sub(r"#?\s+", " ", old_words)
            assert numbers == pytest.approx(old_numbers, rel=2e-2, abs=2e-3)
    assert any("text/html" in one.get("data", {}) for cell in stored for one in cell)
    assert json.loads(notebook.read_text(encoding="utf-8"))["nbformat"] == 4


def test_a_stored_result_is_shown_without_streamlit_and_without_a_model(tmp_path: Path) -> None:
    file = exegesis.explain("bert-marked", "A fine film. positive", "occlusion", progress=False).save(
        tmp_path / "a.npz"
    )
    done = subprocess.run(
        [sys.executable, "-c", LIGHT, str(file)], cwd=ROOT, capture_output=True, text=True, timeout=120, check=False
    )
    assert (done.returncode, done.stdout.strip()) == (0, "[]"), done.stderr
