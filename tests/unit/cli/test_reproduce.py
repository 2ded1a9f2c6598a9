"""`exegesis reproduce thesis`: the report that it writes, the same each time, and what is refused in one line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from engine.reproduction.claims import declaration
from tests.tiny import save_checkpoint
from tests.unit.cli.conftest import Run
from tests.unit.reproduction.stand_ins import PHRASES, marked, shrink_published_bases, take_as_learned, written

pytestmark = pytest.mark.usefixtures("home")

CLAIM = "families-attention-gpt2-last"
MORE = ("--claims", CLAIM, "--examples", "3")


@pytest.fixture
def places(tmp_path: Path) -> str:
    """The one model that the claim is about, and short reviews."""
    reviews = [marked(text, label) for label, text in enumerate(PHRASES)]
    given = {
        "gpt2-marked": str(save_checkpoint("gpt2", tmp_path / "gpt2")),
        "reviews-marked": written(tmp_path / "marked.jsonl", reviews),
    }
    (tmp_path / "places.json").write_text(json.dumps(given), encoding="utf-8")
    return str(tmp_path / "places.json")


def test_it_writes_the_same_report_each_time(
    run: Run, places: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    take_as_learned(monkeypatch)
    done = run("reproduce", "thesis", *MORE, "--places", places, "--out", str(tmp_path / "out"))
    assert (done.code, done.err) == (0, ""), done.err
    assert CLAIM in done.out
    assert "Of 1 claim: 1 undecided." in done.out
    report = (tmp_path / "out" / "thesis-embedded.md").read_bytes()
    first = report.decode().splitlines()[0]
    command = f"exegesis reproduce thesis --scale embedded --examples 3 --seed 0 --claims {CLAIM} --places places.json"
    assert first.startswith(f"`{command}`, seed 0, ")
    assert first.endswith(f"claims {declaration().digest}")
    plain = json.loads((tmp_path / "out" / "thesis-embedded.json").read_text(encoding="utf-8"))
    assert [one["verdict"] for one in plain["outcomes"]] == ["undecided"], "three examples are too few"
    [[number], _] = plain["outcomes"][0]["entries"]
    assert number["value"] == 1.0, "GPT-2 looks back, so the last word is last"
    again = run("reproduce", "thesis", *MORE, "--places", places, "--out", str(tmp_path / "again"), "--json")
    assert again.json == plain
    assert (tmp_path / "again" / "thesis-embedded.md").read_bytes() == report


def test_claims_on_a_model_at_chance_are_not_run(run: Run, places: str, tmp_path: Path) -> None:
    done = run("reproduce", "thesis", *MORE, "--places", places, "--out", str(tmp_path / "out"))
    told = "Of 1 claim: no findings. Not counted as findings: 1 not run (the model has not learned the task)."
    assert told in done.out
    report = (tmp_path / "out" / "thesis-embedded.md").read_text(encoding="utf-8")
    assert told in report
    assert "Why: gpt2-marked is right on " in report
    plain = json.loads((tmp_path / "out" / "thesis-embedded.json").read_text(encoding="utf-8"))
    [outcome], [model] = plain["outcomes"], plain["models"]
    assert (outcome["verdict"], outcome["entries"]) == ("not run: the model has not learned the task", [])
    assert (model["n"], model["classes"]) == (3, 2), "of three examples of two classes none can be enough"


def test_a_rehearsal_prints_what_the_full_scale_costs(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shrink_published_bases(monkeypatch)
    words = ("reproduce", "thesis", "--scale", "full", "--rehearse", "--claims", CLAIM, "--out", str(tmp_path))
    done = run(*words)
    assert done.code == 0, done.err
    assert "fine-tuning gpt2-sst2-marked" in done.out
    assert "These parts take about" in done.out
    report = (tmp_path / "rehearsal" / "thesis-full.md").read_text(encoding="utf-8")
    assert f"exegesis reproduce thesis --scale full --examples 2 --seed 0 --claims {CLAIM} --rehearse" in report
    assert "1 not run" in report, "a random model is at chance"
    parts = run(*words, "--json").json
    assert [one["name"] for one in parts] == ["fine-tuning gpt2-sst2-marked", "evaluate gpt2-sst2-marked"]


def test_what_it_cannot_do_is_said_in_one_line(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "file"
    mixed = tmp_path / "mixed"
    file.write_text("[]", encoding="utf-8")
    mixed.write_text('{"reviews": "here", "bert": 1}', encoding="utf-8")
    for given, said in (
        (("paper",), "reproduce: must be thesis or smat, got 'paper'."),
        (("thesis", "--scale", "huge"), "scale: unknown name 'huge'."),
        (("thesis", "--topic", "all"), "topic: unknown name 'all'."),
        (("thesis", "--topic", "sanity", "--claims", CLAIM), f"claims: unknown name '{CLAIM}'."),
        (("thesis", "--claims", "none"), "claims: unknown name 'none'."),
        (("thesis", "--examples", "1"), "--examples: must be"),
        (("thesis", "--out", str(file)), "--out: must be a folder, got the file"),
        (("thesis", "--places", str(file)), "--places: must be a JSON object that maps names to folders"),
        (("thesis", "--places", str(mixed)), "--places: must be a JSON object that maps names to folders"),
        (("thesis", "--places", str(tmp_path / "no")), "--places: "),
        (("thesis", "--rehearse"), "--rehearse: applies to --scale full only, got embedded."),
        (("smat", "--rehearse"), "--rehearse: applies to --scale full only, got embedded."),
    ):
        assert run("reproduce", *given).complaint(2).startswith(said)
