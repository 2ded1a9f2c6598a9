"""ask: the operation and the commands of a question, which it can run, and how it refuses one."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.project import ROOT
from tests.unit.cli.conftest import Run

QUESTION = "3 most important words for positive in example 3 by occlusion"
COMMAND = "exegesis explain --model reviews-minilm --method occlusion --dataset reviews --index 3 --target positive"


def test_a_question_is_printed_as_it_was_understood_and_as_a_command(run: Run) -> None:
    done = run("ask", QUESTION)
    assert (done.code, done.err) == (0, "")
    assert done.out.splitlines() == [
        "Most important features: the 3 most important words for positive in example 3 of the data set reviews with "
        "the model reviews-minilm by Occlusion",
        COMMAND,
        "All of them are shown. Read the first 3.",
    ]


def test_json_has_the_operation_its_slots_and_its_commands(run: Run) -> None:
    plain = run("ask", QUESTION, "--json").json
    assert plain["operation"] == "top"
    assert (plain["count"], plain["example"], plain["methods"]) == (3, 3, ["occlusion"])
    assert plain["commands"] == [COMMAND]
    assert plain["notes"] == ["All of them are shown. Read the first 3."]


def test_options_say_what_the_question_leaves_out(run: Run) -> None:
    out = run("ask", "the prediction", "--model", "bert-nli", "--dataset", "nli", "--index", "5").out
    assert out.endswith("exegesis explain --model bert-nli --method random --dataset nli --index 5\n")
    assert "whole number" in run("ask", "the prediction", "--index", "x").complaint(2)


@pytest.mark.parametrize("options", [[], ["--run"], ["--json"]])
def test_what_is_not_understood_lists_the_nearest_questions(run: Run, options: list[str]) -> None:
    said = run("ask", "which method do people prefer", *options).complaint(2)
    assert said.startswith("query: not understood. Not known here: 'people', 'prefer'. Nearest: “which method is ")
    assert said.count("“") == 3


def test_run_runs_the_command_and_ends_as_it_does(tmp_path: Path) -> None:
    """In processes of their own, as `--run` starts one: it has to find the same home."""

    def ask(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "engine.cli", "ask", *arguments, "--run"], cwd=ROOT, capture_output=True, text=True,
            timeout=240, env={**os.environ, "EXEGESIS_HOME": str(tmp_path), "EXEGESIS_DEVICE": "cpu"}, check=False,
        )  # fmt: skip

    done = ask("predict 'Not bad at all.'")
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert shlex.split(lines[1])[-1] == "Not bad at all."
    assert any(line.startswith("predicted positive (positive 0.") for line in lines[2:])
    failed = ask("predict example 999999")
    assert failed.returncode == 2
    assert "999999" in failed.stderr
