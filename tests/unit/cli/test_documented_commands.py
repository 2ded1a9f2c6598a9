"""Every `exegesis` line in the documents is one that the command would take: names, options, methods, parameters."""

from __future__ import annotations

import re
import shlex
from typing import Any

import pytest
import typer

from engine.cli.options import read_names, read_pairs
from engine.cli.root import app
from engine.params import from_mapping
from engine.registry import explainer
from tests.project import ROOT
from tests.unit.cli.conftest import Run

DOCUMENTS = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    *(file for file in sorted((ROOT / "docs").rglob("*.md")) if not file.stem.startswith("reproduction-")),
]

EXAMPLE_METHOD = "word_length"
"""Comes with the example of a plugin, which tests/app/test_plugin.py installs."""


def documented() -> list[list[str]]:
    """The arguments of each `exegesis ...` line in a block of shell commands."""
    texts = [file.read_text(encoding="utf-8") for file in DOCUMENTS]
    blocks = "\n".join(re.findall(r"```sh\n(.*?)```", "\n".join(texts), flags=re.DOTALL))
    lines = [shlex.split(line, comments=True) for line in blocks.splitlines()]
    return [line[1:] for line in lines if line[:1] == ["exegesis"]]


def command_of(arguments: list[str]) -> tuple[Any, list[str]]:
    """The command and its own arguments; an unknown command raises."""
    command: Any = typer.main.get_command(app)
    while children := getattr(command, "commands", {}):
        assert arguments, "a group of commands needs one of them"
        assert arguments[0] in children, f"unknown command {arguments[0]}"
        command, arguments = children[arguments[0]], arguments[1:]
    return command, list(arguments)


def parsed(arguments: list[str]) -> dict[str, Any]:
    """The options as the command reads them; an unknown command or option raises."""
    command, rest = command_of(arguments)
    return dict(command.make_context("exegesis", rest).params)


@pytest.mark.parametrize("arguments", documented(), ids=" ".join)
def test_a_documented_command_is_accepted_and_has_all_that_it_needs(arguments: list[str]) -> None:
    command, rest = command_of(arguments)
    options = command.make_context("exegesis", rest).params
    for one in command.params:
        if "[required]" in (getattr(one, "help", None) or ""):
            assert options[str(one.name)], f"needs --{one.name}"


QUESTIONS = re.findall(r'exegesis ask`?:? "([^"]+)"', "\n".join(file.read_text(encoding="utf-8") for file in DOCUMENTS))


@pytest.mark.parametrize("question", QUESTIONS)
def test_a_documented_question_has_an_answer(question: str, run: Run) -> None:
    done = run("ask", question)
    assert (done.code, done.err) == (0, "")
    assert "exegesis " in done.out


EXPLAIN = [line for line in documented() if line[0] == "explain" and EXAMPLE_METHOD not in line]


@pytest.mark.parametrize("arguments", EXPLAIN, ids=" ".join)
def test_documented_methods_and_parameters_exist(arguments: list[str]) -> None:
    options = parsed(arguments)
    method, given = options["method"], options["param"]
    assert isinstance(method, str)
    assert isinstance(given, list | tuple | None)
    values, kind = read_pairs("--param", list(given or ()), "x=1"), "image" if options["image"] else "text"
    for name in read_names("--method", method):
        from_mapping(explainer(name, kind).params, values, name)


def test_the_check_itself_refuses_what_does_not_exist() -> None:
    with pytest.raises(Exception, match="--modle"):
        parsed(["explain", "--modle", "m"])
    with pytest.raises(AssertionError, match="unknown command"):
        parsed(["explian"])
