"""exegesis study: a study from its design to its end, its tables and its file, without a browser."""

from __future__ import annotations

import csv
import io
import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from engine.study import studies
from engine.study.access import new_token
from engine.study.annotators import Answer, Guess, confirm
from engine.study.ballots import next_ballot
from engine.study.database import study_database
from engine.study.items import take_snapshot
from tests.unit.cli.conftest import Run
from tests.unit.study.polls import agreed, answer
from tests.unit.study.quick import rate_quickly
from tests.unit.study.samples import text_design


@pytest.fixture(autouse=True)
def few_resamples(home: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A home of its own, and ratings that take no time."""
    rate_quickly(monkeypatch)
    yield
    study_database().close()


@pytest.fixture
def design(tmp_path: Path) -> str:
    """The file of a small design."""
    file = tmp_path / "design.json"
    file.write_text(json.dumps(text_design(tmp_path).to_json()))
    return str(file)


@pytest.fixture
def study(run: Run, design: str) -> str:
    """The number of an open study."""
    number = str(run("study", "create", design, "--json").json["id"])
    run("study", "open", number)
    return number


def vote(study: str) -> int:
    """Somebody answers everything; how many of the answers count."""
    person, counted = agreed(studies.find(int(study)).token), 0
    while ballot := next_ballot(person.id):
        confirm(person.id, answer(ballot, seconds=5.0))
        counted += not ballot.practice
    return counted


def test_a_study_from_beginning_to_end(run: Run, design: str) -> None:
    made = run("study", "create", design, "--json").json
    number = str(made["id"])
    assert (made["state"], made["title"]) == ("draft", "Small")
    opened = run("study", "open", number).out
    assert opened == f"Study {number} is open. Join link: the address of the server, then {made['join']}\n"
    counted = vote(number)
    [listed] = run("study", "list", "--json").json
    assert (listed["state"], listed["answers"], listed["annotators"]) == ("open", counted, 1)
    assert run("study", "close", number, "--json").json["state"] == "closed"
    found = run("study", "results", number, "--json").json
    assert (found["answers"], found["annotators"], found["left_out"]) == (counted, 1, [])
    assert [rating["method"] for rating in found["summary"]["ratings"]] == ["gradient", "lime", "random"]
    assert run("study", "archive", number).out == f"Study {number} is archived.\n"
    copy = run("study", "duplicate", number, "--json").json
    assert (copy["state"], copy["title"]) == ("draft", "Copy of Small")
    assert run("study", "delete", number, "--yes").out == f"Study {number} is deleted, with {counted} answers.\n"
    assert [one["id"] for one in run("study", "list", "--json").json] == [copy["id"]]


def test_people_read_a_list_and_a_study(run: Run, study: str) -> None:
    counted = vote(study)
    listed = run("study", "list").out.splitlines()
    assert listed[0].split() == ["id", "state", "answers", "people", "opened", "title"]
    assert listed[2].split()[:4] == [study, "open", str(counted), "1"]
    shown = run("study", "show", study).out
    assert "methods   gradient, lime, random\n" in shown
    assert [line.split("  ")[1].split(":")[0] for line in shown.splitlines()[-2:]] == ["created", "opened"]


def test_what_show_prints_is_a_design_that_create_takes(run: Run, study: str, tmp_path: Path) -> None:
    file = tmp_path / "shown.json"
    file.write_text(run("study", "show", study, "--json").out)
    again = run("study", "create", str(file), "--json").json
    assert studies.find(again["id"]).design == studies.find(int(study)).design


def test_options_win_over_the_file(run: Run, design: str) -> None:
    args = ("--title", "Mine", "--method", "gradient,gradient_x_input", "--set", "items.count=4")
    more = ("--set", "exclusion.least_seconds=2", "--set", "placebo=false")
    made = studies.find(run("study", "create", design, *args, *more, "--json").json["id"]).design
    assert made.title == "Mine"
    assert [method.id for method in made.ballot_methods] == ["gradient", "gradient_x_input"]
    assert (made.items.count, made.exclusion.least_seconds) == (4, 2)


def test_a_preset_needs_a_model_and_a_data_set(run: Run) -> None:
    given = ("--preset", "smat", "--model", "reviews-minilm", "--dataset", "reviews")
    made = studies.find(run("study", "create", *given, "--json").json["id"]).design
    assert [method.id for method in made.methods][:2] == ["gradient_x_input", "integrated_gradients"]
    assert run("study", "create", "--preset", "smat").complaint(2).startswith("--model is empty. Give one.")


def test_items_by_hand_and_a_design_from_stdin(run: Run, design: str) -> None:
    args = ("--set", "items.how=hand", "--set", "items.indices=5,1,3,0")
    made = run("study", "create", "-", *args, "--json", stdin=Path(design).read_bytes()).json
    assert studies.find(made["id"]).design.items.indices == (5, 1, 3, 0)


def test_a_stopped_opening_says_that_the_study_is_a_draft(
    run: Run, design: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    number = str(run("study", "create", design, "--json").json["id"])

    def interrupted(*args: Any) -> Any:
        os.kill(os.getpid(), signal.SIGINT)
        return take_snapshot(*args)

    monkeypatch.setattr("engine.study.studies.take_snapshot", interrupted)
    told = run("study", "open", number).complaint(130)
    assert told == f"study {number}: stopped, still a draft. Continue with: exegesis study open {number}"
    assert studies.find(int(number)).state == "draft"
    monkeypatch.undo()


def test_nothing_is_deleted_without_a_yes(run: Run, study: str, monkeypatch: pytest.MonkeyPatch) -> None:
    counted = vote(study)
    told = run("study", "delete", study).complaint(2)
    assert told.startswith(
        f"study delete: would delete study {study} with {counted} answers and cannot ask for confirmation."
    )
    monkeypatch.setattr("engine.cli.study.is_interactive", lambda: True)
    assert run("study", "delete", study, stdin="n\n").code == 130
    assert studies.find(int(study)).state == "open"
    assert run("study", "delete", study, stdin="y\n").out.endswith(
        f"Study {study} is deleted, with {counted} answers.\n"
    )


def test_results_before_anybody_voted(run: Run, study: str) -> None:
    said = run("study", "results", study).out
    assert said.splitlines()[0] == "Small: open, 0 answers by 0 annotators, 0 “cannot tell”, 0 excluded."
    assert said.splitlines()[1] == "No votes to rate yet."
    assert run("study", "results", study, "--json").json["summary"] is None


def test_guesses_are_told_beside_those_without_an_explanation(run: Run, design: str) -> None:
    number = str(run("study", "create", design, "--set", "mode=predict", "--set", "repeats=0", "--json").json["id"])
    run("study", "open", number)
    person = agreed(studies.find(int(number)).token)
    while ballot := next_ballot(person.id):
        confirm(person.id, Answer(ballot.token, new_token(), None, 5.0, Guess(0, 3)))
    said = run("study", "results", number).out.splitlines()
    assert [line.split()[0] for line in said[3:7]] == ["no", "gradient", "lime", "random"]
    found = run("study", "results", number, "--json").json
    assert found["summary"] is None
    assert sum(one["share"]["guesses"] for one in found["forward"]["conditions"] if one["share"]) == 3
    assert found["forward"]["meanings"]["plausible"] in said


def test_what_was_left_out_is_told(run: Run, design: str) -> None:
    number = str(run("study", "create", design, "--set", "exclusion.least_votes=9", "--json").json["id"])
    run("study", "open", number)
    counted = vote(number)
    last = run("study", "results", number).out.splitlines()[-1]
    assert last.startswith("excluded: p-")
    assert last.endswith(f". Gave {counted} answers that count, fewer than 9.")


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (("close", "9"), "study: there is no study 9. List them with: exegesis study list."),
        (("open", "x"), "ID: must be a whole number of at least 1, got 'x'."),
        (("results", "9"), "study: there is no study 9."),
        (("create", "--set", "items.colour=1"), "--set items: unknown name 'colour'."),
        (("create",), "--title is empty. Give one."),
        (
            ("create", "absent.json"),
            "FILE: must be a readable JSON file, got 'absent.json' (No such file or directory). Check the path.",
        ),
        (("create", "-"), "FILE: - is not valid JSON"),
        (("create", "--preset", "smut"), "preset: unknown name 'smut'. Did you mean 'smat'?"),
        (("create", "x.json", "--preset", "smat"), "--preset: cannot be combined with FILE. Remove one of them."),
        (("create", "--set", "count"), "--set: must be name=value, got 'count'. Example: --set items.count=10."),
        (
            ("create", "--set", "method.id=x"),
            "--set: must be a field of the design, such as seed, items.count or exclusion.least_votes",
        ),
        (("create", "--set", "itmes=x"), "design: unknown name 'itmes'. Did you mean 'items'?"),
        (
            ("create", "--set", "items.count=0"),
            "--set items.count: must be a whole number from 1 to 10,000",
        ),
    ],
)
def test_wrong_use(run: Run, args: tuple[str, ...], said: str) -> None:
    ran = run("study", *args)
    assert ran.complaint(ran.code).startswith(said)
    assert ran.code in (1, 2)


def test_an_empty_list_says_what_to_do(run: Run) -> None:
    assert run("study", "list").out == "There are no studies. Create one with: exegesis study create\n"
    assert run("study", "list", "--json").json == []


@pytest.fixture
def answered(tmp_path: Path) -> str:
    """The number of an open study in which one person answered everything."""
    study = studies.open_study(studies.create(text_design(tmp_path)).id)
    person = agreed(study.token)
    while ballot := next_ballot(person.id):
        confirm(person.id, answer(ballot))
    return str(study.id)


def test_a_study_goes_out_and_comes_in(run: Run, answered: str, tmp_path: Path) -> None:
    file = tmp_path / "study.json"
    assert run("study", "export", answered, "--votes", "--out", str(file)).out == f"Written: {file}\n"
    made = run("study", "import", str(file), "--json").json
    assert (made["state"], made["title"]) == ("closed", "Small")
    before, after = (run("study", "results", number, "--json").json for number in (answered, str(made["id"])))
    assert after["summary"] == before["summary"]


def test_without_votes_it_is_a_draft_with_its_explanations(run: Run, answered: str) -> None:
    data = run("study", "export", answered).out
    assert json.loads(data)["content"]["votes"] is None
    said = run("study", "import", "-", stdin=data).out
    made = studies.list_studies()[0].id
    assert said == f"Study {made} is draft. Continue with: exegesis study open {made}\n"
    assert run("study", "open", str(made), "--json").json["state"] == "open"


def test_tables_of_a_study(run: Run, answered: str, tmp_path: Path) -> None:
    for what in ("items", "votes", "orders", "ratings"):
        table = list(csv.DictReader(io.StringIO(run("study", "export", answered, "--what", what).out)))
        plain = run("study", "export", answered, "--what", what, "--json").json
        assert [list(row) for row in table] == [list(row) for row in plain]
        assert plain
    file = tmp_path / "votes.csv"
    run("study", "export", answered, "--what", "votes", "--out", str(file))
    rated = run("study", "rate", str(file), "--placebo", "random", "--json").json
    assert rated == run("study", "results", answered, "--json").json["summary"]


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (("export", "{}", "--what", "voters"), "--what: unknown name 'voters'. Did you mean 'votes'?"),
        (("export", "{}", "--format", "xml"), "--format: unknown name 'xml'. Known: csv, json."),
        (("export", "{}", "--what", "items", "--votes"), "--votes: applies to the study file only."),
        (("export", "{}", "--out", "absent/x"), "--out: absent/x cannot be written (No such file or directory)."),
        (("export", "99"), "study: there is no study 99."),
        (("import", "absent"), "FILE: must be a study file, got 'absent'. Check the path."),
        (("import", "-"), "FILE: is not a study file, because it is not JSON."),
    ],
)
def test_wrong_use_of_files(run: Run, answered: str, args: tuple[str, ...], said: str) -> None:
    ran = run("study", *(arg.format(answered) for arg in args))
    assert ran.complaint(ran.code).startswith(said)
