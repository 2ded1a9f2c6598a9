"""A dashboard server of its own: started as people start it, on a free port, with a home of its own."""

from __future__ import annotations

import dataclasses
import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil

from tests.project import ROOT

START_SECONDS = 60
STOP_SECONDS = 10


@dataclass(frozen=True)
class Server:
    """A running server; `log` is what it has printed."""

    url: str
    home: Path
    log_file: Path
    pid: int

    def page(self, name: str) -> Server:
        """The same server, opened at one of its pages."""
        return dataclasses.replace(self, url=f"{self.url}/{name}")

    @property
    def process(self) -> psutil.Process:
        return psutil.Process(self.pid)

    @property
    def log(self) -> str:
        return self.log_file.read_text(encoding="utf-8", errors="replace")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("localhost", 0))
        return int(probe.getsockname()[1])


def command(way: str, port: int, script: str = "app.py") -> list[str]:
    """`launcher` is what `exegesis app` runs; `streamlit` is a plain `streamlit run app.py`, or of another script.

    Any other way is a module that is started as the launcher is.
    """
    if way != "streamlit":
        module = "components.server" if way == "launcher" else way
        return [sys.executable, "-m", module, "--port", str(port), "--headless"]
    flags = [f"--server.port={port}", "--server.headless=true"]
    return [sys.executable, "-m", "streamlit", "run", script, *flags]


def healthy(url: str) -> bool:
    try:
        with urllib.request.urlopen(f"{url}/_stcore/health", timeout=2) as answer:
            return bool(answer.status == 200)
    except (urllib.error.URLError, TimeoutError, ConnectionError):
        return False


def wait_until_healthy(process: subprocess.Popen[bytes], server: Server) -> None:
    end = time.monotonic() + START_SECONDS
    while not healthy(server.url):
        if process.poll() is not None or time.monotonic() > end:
            raise RuntimeError(f"the server did not start:\n{server.log}")
        time.sleep(0.1)


@contextmanager
def running(
    folder: Path,
    way: str = "launcher",
    script: str = "app.py",
    environment: Mapping[str, str] | None = None,
    port: int | None = None,
    root: Path = ROOT,
) -> Iterator[Server]:
    """Starts a fresh server with its home and its log in `folder`, and stops it. `environment`: more of it.

    `root`: the checkout that it runs.
    """
    port = port or free_port()
    home, log_file = folder / "home", folder / "server.log"
    known = {**os.environ, "EXEGESIS_HOME": str(home), "PYTHONUNBUFFERED": "1"}
    with log_file.open("wb") as log:
        process = subprocess.Popen(
            command(way, port, script),
            cwd=root,
            env={**known, **(environment or {})},
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
        )
        server = Server(f"http://localhost:{port}", home, log_file, process.pid)
        try:
            wait_until_healthy(process, server)
            yield server
        finally:
            process.terminate()
            try:
                process.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
