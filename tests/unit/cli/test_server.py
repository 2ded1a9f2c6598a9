"""Starting the dashboard: the command line it becomes, its environment, a port that cannot be had."""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Iterator
from typing import NoReturn

import pytest

from components.server import parse_arguments
from engine.cli import server
from engine.errors import UsageError
from tests.project import ROOT


@pytest.fixture
def busy() -> Iterator[int]:
    """A port that another process listens on while the test runs."""
    with socket.socket() as taken:
        taken.bind(("localhost", 0))
        taken.listen()
        yield taken.getsockname()[1]


def test_the_command_leaves_the_callers_folder_off_the_import_path() -> None:
    line = server.server_command(8600, "0.0.0.0", headless=True)
    assert line[:4] == [sys.executable, "-P", "-m", "components.server"]
    assert line[4:] == ["--port", "8600", "--host", "0.0.0.0", "--headless"]
    assert "--headless" not in server.server_command(8600, "localhost", headless=False)


def test_without_options_the_server_listens_here_at_streamlits_port() -> None:
    assert vars(parse_arguments([])) == {"port": 8501, "host": "localhost", "headless": False}


def test_the_checkout_comes_first_on_the_import_path_once() -> None:
    before = os.pathsep.join(["/elsewhere", str(ROOT)])
    after = server.server_environment({"PYTHONPATH": before, "LANG": "C"})
    assert after == {"PYTHONPATH": os.pathsep.join([str(ROOT), "/elsewhere"]), "LANG": "C"}


@pytest.mark.parametrize("port", [0, -1, 65_536])
def test_a_port_out_of_range_is_refused(port: int) -> None:
    with pytest.raises(UsageError, match=rf"port: must be between 1 and 65535, got {port}"):
        server.check_port(port, "localhost")


def test_a_busy_port_is_refused_and_the_next_one_is_offered(busy: int) -> None:
    with pytest.raises(UsageError, match=rf"port: must be free on localhost, got {busy}\. .* Try --port {busy + 1}"):
        server.check_port(busy, "localhost")


def test_a_host_that_is_not_ours_is_named() -> None:
    with pytest.raises(UsageError, match=r"host: must be an address of this machine, got 'no-such-host\.invalid'"):
        server.check_port(8600, "no-such-host.invalid")


class Replaced(Exception):
    """Stands for the process that no longer exists after exec."""


def test_launch_replaces_the_process_by_the_server(monkeypatch: pytest.MonkeyPatch) -> None:
    def exec_stub(file: str, line: list[str], environment: dict[str, str]) -> NoReturn:
        raise Replaced(file, line, environment["PYTHONPATH"])

    monkeypatch.setattr(os, "execve", exec_stub)
    with socket.socket() as probe:
        probe.bind(("localhost", 0))
        port = probe.getsockname()[1]
    with pytest.raises(Replaced) as caught:
        server.launch(port, headless=True)
    file, line, path = caught.value.args
    assert file == sys.executable
    assert line == server.server_command(port, "localhost", headless=True)
    assert path.split(os.pathsep)[0] == str(ROOT)


OPENED = {"EXEGESIS_OPEN": "1"}


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1"])
def test_a_host_that_lets_others_in_needs_a_password_or_a_word(host: str) -> None:
    with pytest.raises(UsageError, match=r"--host: .* no password is set\. Set EXEGESIS_ADMIN_PASSWORD first.*--open"):
        server.check_admission(host, {})
    assert "open to everybody" in server.check_admission(host, OPENED)
    for allowed in ({"EXEGESIS_ADMIN_PASSWORD": "x"}, {"EXEGESIS_ADMINS": "a@b.example"}, {"EXEGESIS_STUDY_ONLY": "1"}):
        assert server.check_admission(host, allowed) == ""


@pytest.mark.parametrize("host", server.LOOPBACK)
def test_this_machine_needs_none(host: str) -> None:
    assert server.check_admission(host, {}) == ""


def test_the_options_reach_the_server() -> None:
    assert server.server_environment({}, everybody=True)["EXEGESIS_OPEN"] == "1"
    assert server.server_environment({}, study_only=True)["EXEGESIS_STUDY_ONLY"] == "1"
    assert not {"EXEGESIS_OPEN", "EXEGESIS_STUDY_ONLY"} & server.server_environment({}).keys()
