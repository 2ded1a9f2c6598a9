"""exegesis study export and import."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from engine.study import studies
from engine.study.ballots import next_ballot
from engine.study.database import study_database
from engine.study.votes import confirm
from tests.unit.cli.conftest import Run
from tests.unit.study.polls import agreed, answer
from tests.unit.study.quick import rate_quickly
from tests.unit.study.samples import text_design


@pytest.fixture
def study(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The number of an open study in which one person answered everything."""
    rate_quickly(monkeypatch)
    made = studies.open_study(studies.create(text_design(tmp_path)).id)
    person = agreed(made.token)
    while ballot := next_ballot(person.id):
        confirm(person.id, answer(ballot))
    yield str(made.id)
    study_database().close()


def test_a_study_goes_out_and_comes_in(run: Run, study: str, tmp_path: Path) -> None:
    file = tmp_path / "study.json"
    assert run("study", "export", study, "--votes", "--out", str(file)).out == f"Written: {file}\n"
    made = run("study", "import", str(file), "--json").json
    assert (made["state"], made["title"]) == ("closed", "Small")
    before, after = (run("study", "results", number, "--json").json for number in (study, str(made["id"])))
    assert after["summary"] == before["summary"]


def test_without_votes_it_is_a_draft_with_its_explanations(run: Run, study: str) -> None:
    data = run("study", "export", study).out
    assert json.loads(data)["content"]["votes"] is None
    said = run("study", "import", "-", stdin=data).out
    made = studies.list_studies()[0].id
    assert said == f"Study {made} is draft. Go on with: exegesis study open {made}\n"
    assert run("study", "open", str(made), "--json").json["state"] == "open"


def test_tables(run: Run, study: str, tmp_path: Path) -> None:
    for what in ("items", "votes", "orders", "ratings"):
        table = list(csv.DictReader(io.StringIO(run("study", "export", study, "--what", what).out)))
        plain = run("study", "export", study, "--what", what, "--json").json
        assert [list(row) for row in table] == [list(row) for row in plain]
        assert plain
    file = tmp_path / "votes.csv"
    run("study", "export", study, "--what", "votes", "--out", str(file))
    rated = run("study", "rate", str(file), "--placebo", "random", "--json").json
    assert rated == run("study", "results", study, "--json").json["summary"]


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (("export", "{}", "--what", "voters"), "--what: unknown name 'voters'. Did you mean 'votes'?"),
        (("export", "{}", "--format", "xml"), "--format: unknown name 'xml'. Known: csv, json."),
        (("export", "{}", "--what", "items", "--votes"), "--votes: belongs to the study file."),
        (("export", "{}", "--out", "absent/x"), "--out: absent/x cannot be written (No such file or directory)."),
        (("export", "99"), "study: there is no study 99."),
        (("import", "absent"), "FILE: must be a study file, got 'absent'. Check the path."),
        (("import", "-"), "FILE: is not JSON, so it is no study file."),
    ],
)
def test_wrong_use(run: Run, study: str, args: tuple[str, ...], said: str) -> None:
    ran = run("study", *(arg.format(study) for arg in args))
    assert ran.complaint(ran.code).startswith(said)
