"""jobs: run, listed, shown, cancelled and resumed from the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.unit.cli.conftest import Run


def test_a_job_runs_is_listed_and_shown(run: Run, bert: str, own_home: Path) -> None:
    assert run("jobs").out == run("jobs", "list").out == "There are no jobs.\n"
    spec = {"model": bert, "methods": ["random", "gradient_l2"], "examples": [{"text": "a warm film"}]}
    ended = run("jobs", "run", "-", "--json", stdin=json.dumps(spec)).json
    assert (ended["state"], ended["total"], ended["computed"]) == ("done", 2, 2)
    again = run("jobs", "run", "-", "--json", stdin=json.dumps(spec)).json
    assert (again["state"], again["computed"]) == ("done", 0)
    assert [job["id"] for job in run("jobs", "list", "--json").json] == [again["id"], ended["id"]]
    assert "Explain 1 examples" in run("jobs").out
    shown = run("jobs", "show", str(ended["id"]), "--json").json
    assert (shown["state"], shown["failures"]) == ("done", [])
    assert "done" in run("jobs", "show", str(ended["id"])).out
    assert "nothing to cancel" in run("jobs", "cancel", str(ended["id"])).out


def test_a_job_that_waits_is_cancelled_and_resumed(run: Run, bert: str, own_home: Path) -> None:
    from engine.jobs import create

    spec = {"model": bert, "methods": ["random"], "examples": [{"text": "a warm film"}]}
    job = create("explain", spec)
    assert "is queued in process" in run("jobs", "resume", str(job.id)).complaint(1)
    assert run("jobs", "cancel", str(job.id)).out == f"Job {job.id} is cancelled. Finished parts are kept.\n"
    assert (
        run("jobs", "resume", str(job.id)).out == f"Job {job.id} is done: 1 parts, 1 computed now, the rest cached.\n"
    )


def test_a_job_that_fails_is_one_line_and_shows_why(run: Run, bert: str, own_home: Path) -> None:
    spec = {"model": bert, "methods": ["random"], "examples": [{"text": ""}]}
    said = run("jobs", "run", "-", stdin=json.dumps(spec)).complaint(1)
    assert said.startswith("job 1: failed. All 1 units failed. The first: random, example 1: ")
    assert said.endswith("See: exegesis jobs show 1")
    assert "random, example 1: " in run("jobs", "show", "1").out


def test_a_job_of_no_model_is_refused(run: Run, own_home: Path) -> None:
    spec = {"model": "./nowhere", "methods": ["random"], "examples": [{"text": "a"}]}
    said = run("jobs", "run", "-", stdin=json.dumps(spec)).complaint(2)
    assert said.startswith("model: no folder './nowhere'.")
    assert run("jobs").out == "There are no jobs.\n"


@pytest.mark.parametrize(
    ("args", "stdin", "code", "said"),
    [
        (("show", "7"), "", 1, "job: there is no job 7."),
        (("show", "seven"), "", 2, "ID: must be a whole number of at least 1, got 'seven'."),
        (("show",), "", 2, "exegesis jobs show: ID is missing."),
        (
            ("run", "no.json"),
            "",
            2,
            "FILE: must be a readable JSON file, got 'no.json' (No such file or directory). Check the path.",
        ),
        (("run", "-"), "{", 2, "FILE: - is not valid JSON"),
        (("run", "-"), "[]", 2, "FILE: must hold a JSON object, got list."),
        (("run", "-", "--kind", "dance"), "{}", 2, "job kind: unknown name 'dance'."),
        (("start",), "", 2, "exegesis jobs: command: unknown name 'start'."),
    ],
)
def test_jobs_with_bad_input(run: Run, own_home: Path, args: tuple[str, ...], stdin: str, code: int, said: str) -> None:
    assert run("jobs", *args, stdin=stdin).complaint(code).startswith(said)
