"""What the server answers to anybody, and that it asks nobody anything."""

from __future__ import annotations

import contextlib
import socket
import subprocess
import sys
import urllib.request
from functools import partial
from pathlib import Path

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Route
from starlette.testclient import TestClient

from components.server import EMBEDDERS, middleware
from engine.access import STUDY_ONLY
from engine.errors import UsageError
from tests.browser.server import free_port
from tests.project import ROOT
from tests.waiting import until

WATCHER = """
import socket, sys

def watch(event, given):
    asked = event == "socket.getaddrinfo" and given[0]
    if event == "socket.connect" and given[0].type & socket.SOCK_STREAM and given[0].family != socket.AF_UNIX:
        asked = given[1][0]
    if asked and asked not in ("localhost", "127.0.0.1", "::1", "0.0.0.0"):
        open(WATCHED, "a").write(f"{event} {given[0] if event.endswith('info') else given[1]}\\n")

sys.addaudithook(watch)
"""
STARTS_SECONDS = 60.0
HEADERS = {"x-content-type-options": "nosniff", "referrer-policy": "same-origin"}


def answer_of(monkeypatch: pytest.MonkeyPatch, embedders: str) -> dict[str, str]:
    monkeypatch.setenv(EMBEDDERS, embedders)
    app = Starlette(routes=[Route("/", lambda _: PlainTextResponse("here"))], middleware=middleware())
    return dict(TestClient(app).get("/").headers)


def test_an_answer_that_failed_says_its_headers_too() -> None:
    def fail(_: Request) -> PlainTextResponse:
        raise KeyError("missing")

    app = Starlette(routes=[Route("/", fail)], middleware=middleware())
    found = TestClient(app, raise_server_exceptions=False).get("/")
    assert found.status_code == 500
    assert "missing" not in found.text
    assert HEADERS.items() <= dict(found.headers).items()


def test_a_server_of_studies_alone_takes_no_files(monkeypatch: pytest.MonkeyPatch) -> None:
    def answer(study_only: str) -> int:
        monkeypatch.setenv(STUDY_ONLY, study_only)
        route = Route("/_stcore/upload_file/{session}/{file}", lambda _: PlainTextResponse(""), methods=["PUT"])
        return TestClient(Starlette(routes=[route], middleware=middleware())).put(route.path).status_code

    assert [answer(study_only) for study_only in ("1", "")] == [403, 200]


def test_no_other_site_may_frame_a_page(monkeypatch: pytest.MonkeyPatch) -> None:
    found = answer_of(monkeypatch, "")
    assert HEADERS.items() <= found.items()
    assert found["content-security-policy"] == "frame-ancestors 'self'"
    assert found["x-frame-options"] == "SAMEORIGIN"


def test_sites_that_are_named_may_frame_the_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    found = answer_of(monkeypatch, "https://lab.example http://*.intra.example:8080")
    assert found["content-security-policy"] == "frame-ancestors 'self' https://lab.example http://*.intra.example:8080"
    assert "x-frame-options" not in found
    with pytest.raises(UsageError, match=r"EXEGESIS_EMBEDDERS: must be sites .*lab\.example;"):
        answer_of(monkeypatch, "https://lab.example; script-src *")


def get(url: str, origin: str = "") -> tuple[int, dict[str, str]]:
    asked = urllib.request.Request(url, headers={"Origin": origin} if origin else {})
    with urllib.request.urlopen(asked, timeout=10) as found:
        return found.status, {name.lower(): value for name, value in found.headers.items()}


def answers(port: int) -> bool:
    """Whether the server has started."""
    with contextlib.suppress(OSError):
        return get(f"http://localhost:{port}/_stcore/health")[0] == 200
    return False


def shake_hands(port: int, origin: str) -> bytes:
    """The first line of what a page of that origin is told when it opens the pages' socket."""
    lines = (
        "GET /_stcore/stream HTTP/1.1", f"Host: localhost:{port}", "Upgrade: websocket", "Connection: Upgrade",
        "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==", "Sec-WebSocket-Version: 13", f"Origin: {origin}", "", "",
    )  # fmt: skip
    with socket.create_connection(("localhost", port), timeout=10) as link:
        link.sendall("\r\n".join(lines).encode())
        return link.recv(1000).partition(b"\r\n")[0]


def test_a_server_that_others_reach_asks_nobody_and_says_its_headers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    port, watched = free_port(), tmp_path / "asked"
    (tmp_path / "sitecustomize.py").write_text(f"WATCHED = {str(watched)!r}\n{WATCHER}", encoding="utf-8")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setenv("EXEGESIS_HOME", str(tmp_path / "home"))
    command = [sys.executable, "-m", "components.server", "--port", str(port), "--host", "0.0.0.0", "--headless"]
    with (tmp_path / "log").open("wb") as log:
        process = subprocess.Popen(command, cwd=ROOT, stdout=log, stderr=subprocess.STDOUT)
    try:
        until(partial(answers, port), STARTS_SECONDS)
        status, headers = get(f"http://localhost:{port}/_stcore/health")
        assert status == 200
        assert HEADERS.items() <= headers.items()
        assert headers["content-security-policy"] == "frame-ancestors 'self'"
        assert get(f"http://localhost:{port}/", "https://elsewhere.example")[1]["x-frame-options"] == "SAMEORIGIN"
        assert b"403" in shake_hands(port, "https://elsewhere.example")
        assert b"101" in shake_hands(port, f"http://localhost:{port}")
    finally:
        process.terminate()
        process.wait(20)
    assert "Network URL" in (tmp_path / "log").read_text(encoding="utf-8")
    assert not watched.exists(), watched.read_text(encoding="utf-8")
