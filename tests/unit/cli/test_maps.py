"""`exegesis maps`: a file is imported, used as a method, listed and removed; what is wrong is one line."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from engine.cli.maps import command_for
from engine.maps.files import MapEntry, MapFile
from engine.maps.imported import ImportedMaps
from tests.unit.cli.conftest import Run

pytestmark = pytest.mark.usefixtures("own_home")

MAP = {"text": "good food", "offsets": [[0, 4], [5, 9]], "scores": [1.5, -0.5]}


def write(folder: Path, **change: object) -> str:
    file = folder / "mine.json"
    file.write_text(json.dumps({"tool": "other 1.0", "method": "Saliency", "maps": [MAP], **change}), encoding="utf-8")
    return str(file)


def test_a_file_becomes_a_method(run: Run, checkpoint: Callable[[str], Path], tmp_path: Path) -> None:
    model = str(checkpoint("bert"))
    assert run("maps", "list").out.startswith("There are no imported maps.")
    facts = run("maps", "import", write(tmp_path, model=model), "--json").json
    assert (facts["method"], facts["maps"], facts["tool"]) == ("maps:mine", 1, "other 1.0")
    assert run("maps", "list", "--json").json == [facts]
    assert "maps:mine" in run("maps", "list").out
    [explained] = run("explain", "--model", model, "--method", "maps:mine", "--text", "good food", "--json").json
    scores = dict.fromkeys(("good", "food"), 0.0)
    for one in explained["features"]:
        if not one["special"]:
            scores["good" if one["end"] <= 4 else "food"] += one["score"]
    assert scores == {"good": 1.5, "food": -0.5}
    assert run("maps", "remove", "mine").out == "mine is removed.\n"
    assert run("maps", "list", "--json").json == []


def test_a_set_that_cannot_be_read_is_listed_with_the_reason(run: Run, own_home: Path) -> None:
    folder = own_home / "maps"
    folder.mkdir(parents=True)
    (folder / "old.json").write_text('{"format": 0}', encoding="utf-8")
    reason = "maps old: the file old.json cannot be read (it has another format). Import the maps again."
    assert run("maps", "list").out == f"{reason} Or remove them: exegesis maps remove old\n"
    assert run("maps", "list", "--json").json == [{"name": "old", "problem": reason}]
    run("maps", "remove", "old")
    assert run("maps", "list").out.startswith("There are no imported maps.")
    (folder / "- a.json").write_text("3", encoding="utf-8")
    assert run("maps", "list").out.endswith("Or remove them: exegesis maps remove -- '- a'\n")
    run("maps", "remove", "--", "- a")
    assert run("maps", "list").out.startswith("There are no imported maps.")


def test_the_next_command_fits_what_the_file_explains(
    run: Run, checkpoint: Callable[[str], Path], tmp_path: Path
) -> None:
    model = str(checkpoint("bert"))
    printed = run("maps", "import", write(tmp_path, model=model)).out
    assert f"Use it: exegesis explain --model {model} --method maps:mine --text '...'" in printed
    entry = MapEntry(1, (1.0,), dataset="reviews", example=3)
    of_data = MapFile("other 1.0", "Saliency", model, True, (entry,))
    stored = ImportedMaps("mine", "text", model, "r", "other 1.0", "Saliency", True, "2026-01-01")
    assert command_for(of_data, stored) == f"exegesis evaluate --models {model} --methods maps:mine --dataset reviews"


def test_errors_are_one_line(run: Run, checkpoint: Callable[[str], Path], tmp_path: Path) -> None:
    model = str(checkpoint("bert"))
    assert "nowhere.json cannot be read" in run("maps", "import", "nowhere.json").complaint(2)
    assert "does not name the model" in run("maps", "import", write(tmp_path)).complaint(2)
    wrong = write(tmp_path, maps=[{**MAP, "scores": [1.5]}])
    assert "offsets must be as many as the 1 score" in run("maps", "import", wrong, "--model", model).complaint(2)
    name = run("maps", "import", write(tmp_path), "--model", model, "--name", "a/b").complaint(2)
    assert name.startswith("name: must be letters")
    assert "maps: unknown name 'none'" in run("maps", "remove", "none").complaint(2)
