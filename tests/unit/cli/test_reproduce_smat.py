"""`exegesis reproduce smat`: students that are taught where they are missing, the report, and what is refused."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest

from engine.reproduction.claims import declaration
from engine.scaffold import presets
from engine.scaffold.plan import NONE, SEEDS, SMAT, ScaffoldPlan
from tests.unit.cli.conftest import Run
from tests.unit.reproduction.stand_ins import take_as_learned
from tests.unit.scaffold.plans import plan

pytestmark = pytest.mark.usefixtures("home")

CLAIM = "text-smat-baseline"


@pytest.fixture
def tiny(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ScaffoldPlan:
    """The text plan on a random teacher: two settings, one train size, three seeds."""
    made = dataclasses.replace(plan(tmp_path), settings=(NONE, SMAT), seeds=SEEDS[:3])
    monkeypatch.setattr(presets, "OPENING_PLANS", {**presets.OPENING_PLANS, "text": made})
    return made


def test_what_is_missing_is_taught_once_and_judged(
    run: Run, tiny: ScaffoldPlan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    take_as_learned(monkeypatch)
    given = ("reproduce", "smat", "--claims", CLAIM, "--out", str(tmp_path / "out"))
    done = run(*given)
    assert (done.code, CLAIM in done.out) == (0, True), done.err
    names = {file.name for file in (tmp_path / "out").iterdir()}
    assert names == {"smat-embedded.md", "smat-embedded.json", "smat-embedded.csv", "smat-embedded-tables.csv"}
    plain = json.loads((tmp_path / "out" / "smat-embedded.json").read_text(encoding="utf-8"))
    [outcome] = plain["outcomes"]
    [[number]] = outcome["entries"]
    assert (number["n"], outcome["unit"]) == (3, "seeds")
    assert plain["digest"] == declaration("smat").digest
    cells = {row["what"]: row["value"] for row in plain["rows"] if row["table"] == "simulability"}
    assert number["value"] == pytest.approx(cells[SMAT] - cells[NONE])
    report = (tmp_path / "out" / "smat-embedded.md").read_bytes()
    again = run(*given, "--json")
    assert again.json == plain
    assert (tmp_path / "out" / "smat-embedded.md").read_bytes() == report


def test_claims_on_a_teacher_at_chance_are_not_run(run: Run, tiny: ScaffoldPlan, tmp_path: Path) -> None:
    done = run("reproduce", "smat", "--claims", CLAIM, "--out", str(tmp_path / "out"), "--json")
    [outcome], [teacher] = done.json["outcomes"], done.json["models"]
    assert teacher["n"] == tiny.recipe.test, "the examples on which students are tested"
    assert outcome["verdict"] == "not run: the model has not learned the task", teacher
    assert outcome["why"].startswith(f"{tiny.teacher} is right on ")


def test_a_teacher_that_is_not_here_leaves_its_claims_not_run(
    run: Run, tiny: ScaffoldPlan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = dataclasses.replace(tiny, teacher=str(tmp_path / "gone"))
    monkeypatch.setattr(presets, "OPENING_PLANS", {**presets.OPENING_PLANS, "text": gone})
    done = run("reproduce", "smat", "--claims", CLAIM, "--out", str(tmp_path / "out"), "--json")
    assert [one["verdict"] for one in done.json["outcomes"]] == ["not run"]
    assert "gone" in done.json["outcomes"][0]["why"]


def test_what_it_cannot_do_is_said_in_one_line(run: Run, tmp_path: Path) -> None:
    for given, said in (
        (("--scale", "huge"), "scale: unknown name 'huge'."),
        (("--topic", "sanity"), "--topic: applies to the thesis only, got 'sanity'. Remove it."),
        (("--claims", "none"), "claims: unknown name 'none'."),
        (("--examples", "1"), "--examples: must be"),
        (("--places", str(tmp_path / "no")), "--places: "),
    ):
        assert run("reproduce", "smat", *given).complaint(2).startswith(said)
