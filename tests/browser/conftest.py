"""Real Chromium against a real server. A request to any other host fails the test that made it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import (
    Browser,
    BrowserContext,
    ConsoleMessage,
    Page,
    Request,
    ViewportSize,
    expect,
    sync_playwright,
)

from tests.browser.server import Server, running

CHROMIUM = Path(os.environ.get("EXEGESIS_CHROMIUM", "/usr/bin/chromium"))
ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
Scheme = Literal["light", "dark"]
STAYS_HERE = {"data", "blob", "about", "file"}
TIMEOUT_MS = 60_000
PATIENCE_MS = 20_000
"""How long a condition is waited for where a test names no time: a busy machine may take more than the usual 5 s."""
expect.set_options(timeout=PATIENCE_MS)


def is_base_path_probe(message: ConsoleMessage) -> bool:
    """Streamlit's client finds its base path by asking below the page's own path first: a 404 by design."""
    path = urlsplit(message.location.get("url", "")).path
    return "status of 404" in message.text and not path.startswith("/_stcore/") and "/_stcore/" in path


@dataclass
class Watch:
    """What a browser context did that a test should know of."""

    outside: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)

    def on_request(self, request: Request) -> None:
        parts = urlsplit(request.url)
        if parts.scheme not in STAYS_HERE and parts.hostname not in {"localhost", "127.0.0.1"}:
            self.outside.append(request.url)

    def on_console(self, message: ConsoleMessage) -> None:
        if message.type == "error" and not is_base_path_probe(message):
            self.errors.append(f"{message.text} {message.location.get('url', '')}")

    def attach(self, context: BrowserContext) -> None:
        context.on("request", self.on_request)
        context.on("console", self.on_console)
        context.on("weberror", lambda error: self.errors.append(str(error.error)))


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    if not CHROMIUM.exists():
        reason = f"no Chromium at {CHROMIUM}; install it or name one in EXEGESIS_CHROMIUM"
        if os.environ.get("EXEGESIS_REQUIRE_BROWSER"):
            pytest.fail(reason)
        pytest.skip(reason=reason)
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        yield chromium
        chromium.close()


@pytest.fixture(scope="module")
def server(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A fresh server for the tests of one file, started as `exegesis app` does."""
    with running(tmp_path_factory.mktemp("server")) as started:
        yield started


@pytest.fixture
def start_server(tmp_path: Path) -> Iterator[Callable[[str], Server]]:
    """Starts a server of the test's own, in one of `server.WAYS`."""
    with ExitStack() as stack:
        yield lambda way: stack.enter_context(running(tmp_path, way))


@pytest.fixture
def watch() -> Iterator[Watch]:
    """Fails the test when a page asked another host for anything or wrote an error to its console."""
    seen = Watch()
    yield seen
    assert not seen.outside
    assert not seen.errors


@pytest.fixture
def open_page(browser: Browser, watch: Watch, start_server: Callable[[str], Server]) -> Iterator[Callable[..., Page]]:
    """Opens an address in a context of its own: `open_page(url, scheme="dark", width=420, touch=True)`.

    It asks for `start_server` so that its pages are closed before the server that they talk to stops.
    """
    contexts: list[BrowserContext] = []

    def opener(url: str, scheme: Scheme = "light", width: int = 1280, height: int = 900, touch: bool = False) -> Page:
        size: ViewportSize = {"width": width, "height": height}
        context = browser.new_context(color_scheme=scheme, viewport=size, has_touch=touch, is_mobile=touch)
        context.set_default_timeout(TIMEOUT_MS)
        watch.attach(context)
        contexts.append(context)
        page = context.new_page()
        page.goto(url)
        return page

    yield opener
    for context in contexts:
        context.close()


@pytest.fixture(params=["light", "dark"])
def scheme(request: pytest.FixtureRequest) -> Scheme:
    chosen: Scheme = request.param
    return chosen
