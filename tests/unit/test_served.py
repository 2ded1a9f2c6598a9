"""What the server answers to anybody, and that it asks nobody anything."""

from __future__ import annotations

import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pytest
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse
from starlette.routing import Route
from starlette.testclient import TestClient

from components.serving import EMBEDDERS, middleware
from engine.errors import UsageError
from tests.browser.server import free_port
from tests.project import ROOT

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
HEADERS = {"x-content-type-options": "nosniff", "referrer-policy": "same-origin"}


def answer_of(monkeypatch: pytest.MonkeyPatch, embedders: str) -> dict[str, str]:
    monkeypatch.setenv(EMBEDDERS, embedders)
    app = Starlette(routes=[Route("/", lambda _: PlainTextResponse("here"))], middleware=middleware())
    return dict(TestClient(app).get("/").headers)


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
    command = [sys.executable, "-m", "components.launcher", "--port", str(port), "--host", "0.0.0.0", "--headless"]
    with (tmp_path / "log").open("wb") as log:
        process = subprocess.Popen(command, cwd=ROOT, stdout=log, stderr=subprocess.STDOUT)
    try:
        for _ in range(600):
            try:
                status, headers = get(f"http://localhost:{port}/_stcore/health")
                break
            except OSError:
                time.sleep(0.1)
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
