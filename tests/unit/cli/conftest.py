"""Tiny checkpoints, and a way to run the command inside the test's process."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from engine.cli.root import app
from tests.tiny import save_checkpoint


@dataclass(frozen=True)
class Ran:
    """What a command printed and how it ended."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    def complaint(self, code: int) -> str:
        """The one line of an error that ended with `code`; nothing else may have been printed."""
        assert (self.code, self.out) == (code, ""), (self.code, self.out, self.err)
        [line] = self.err.splitlines()
        assert line.startswith("error: ")
        assert "Traceback" not in line
        return line.removeprefix("error: ")


Run = Callable[..., Ran]


@pytest.fixture
def own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home that holds nothing yet."""
    monkeypatch.setenv("EXEGESIS_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


@pytest.fixture
def run() -> Run:
    def invoke(*args: str, stdin: bytes | str = b"") -> Ran:
        done = CliRunner().invoke(app, list(args), input=stdin)
        return Ran(done.exit_code, done.stdout, done.stderr)

    return invoke


@pytest.fixture(scope="session")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """The folder of a family's tiny classifier, written once."""
    root = tmp_path_factory.mktemp("checkpoints")

    def of(family: str) -> Path:
        folder = root / family
        return folder if folder.is_dir() else save_checkpoint(family, folder)

    return of


@pytest.fixture(scope="session")
def bert(checkpoint: Callable[[str], Path]) -> str:
    return str(checkpoint("bert"))
