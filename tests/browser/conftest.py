"""Real Chromium against a real server. A request to any other host fails the test that made it."""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from socket import SO_REUSEADDR, SOL_SOCKET, socket
from typing import Literal
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import (
    Browser,
    BrowserContext,
    ConsoleMessage,
    Error,
    Page,
    Request,
    ViewportSize,
    WebError,
    expect,
    sync_playwright,
)

from tests.browser.server import Server, running
from tests.browser.waiting import STARTED

CHROMIUM = Path(os.environ.get("EXEGESIS_CHROMIUM", "/usr/bin/chromium"))
ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
Scheme = Literal["light", "dark"]
STAYS_HERE = {"data", "blob", "about", "file"}
TIMEOUT_MS = 60_000
RUNNING = "[data-testid=stApp][data-test-script-state=running]"
"""Is there while the page's script runs."""
ENDED = f"() => !document.querySelector({RUNNING!r})"
"""The page itself looks once a frame: Playwright would look every half second."""
KEPT = "cookies,local_storage,indexeddb,service_workers"
"""What a browser keeps of an address, beside what it has read there."""
HAND = """
  window.handLog = [];
  const say = (event) => window.handLog.push([
    event.type, Math.round(event.timeStamp), Math.round(event.clientX), Math.round(event.clientY),
    document.querySelector("[data-testid=stApp]")?.dataset.testScriptState, event.defaultPrevented,
    event.target.isConnected, event.target.value ?? "", event.target.outerHTML?.slice(0, 120),
  ].join(" "));
  const kinds = ["pointerdown", "mouseup", "click", "popstate", "input", "focusin", "focusout"];
  for (const kind of kinds) addEventListener(kind, say, { capture: true });
  addEventListener("click", say);
"""
"""What the hand did in a page, for the report of a test that failed. A click that reached its end is there twice."""
OPEN_AT_ONCE = """
  const animate = Element.prototype.animate;
  Element.prototype.animate = function (...given) {
    const animation = animate.apply(this, given);
    if (this.tagName === "DETAILS") animation.finish();
    return animation;
  };
"""
"""Expanders open and close at once: while one grows, a click into it may miss."""
MOST_TOLD = 4_000
expect.set_options(timeout=TIMEOUT_MS)


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

    def on_error(self, error: WebError) -> None:
        self.errors.append(str(error.error))

    def attach(self, context: BrowserContext) -> None:
        """Listens to all pages of the context."""
        context.on("request", self.on_request)
        context.on("console", self.on_console)
        context.on("weberror", self.on_error)

    def detach(self, context: BrowserContext) -> None:
        context.remove_listener("request", self.on_request)
        context.remove_listener("console", self.on_console)
        context.remove_listener("weberror", self.on_error)


@pytest.fixture(scope="session")
def profile(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrowserContext]:
    """One browser for all tests of a worker: a blank page, and a tab in which each test opens its first page.

    Streamlit's own files stay in its cache, and compiled in the tab. A context of its own would read and compile them
    anew for each test, which takes four times the work: more than most tests have.
    """
    if not CHROMIUM.exists():
        reason = f"no Chromium at {CHROMIUM}; install it or name one in EXEGESIS_CHROMIUM"
        if os.environ.get("EXEGESIS_REQUIRE_BROWSER"):
            pytest.fail(reason)
        pytest.skip(reason=reason)
    with sync_playwright() as playwright:
        context = playwright.chromium.launch_persistent_context(
            tmp_path_factory.mktemp("profile"), executable_path=CHROMIUM, args=ARGUMENTS
        )
        context.set_default_timeout(TIMEOUT_MS)
        context.add_init_script(HAND + OPEN_AT_ONCE)
        yield context
        context.close()


@pytest.fixture(scope="session")
def browser(profile: BrowserContext) -> Browser:
    assert profile.browser is not None
    return profile.browser


@pytest.fixture(scope="session")
def server(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """One server for all tests of a worker, started as `exegesis app` does. Its home fills from test to test."""
    with running(tmp_path_factory.mktemp("server")) as started:
        yield started


@pytest.fixture(scope="session")
def parts(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """One server of pages that show a part of a page alone (`parts.py`)."""
    script = str(Path(__file__).with_name("parts.py"))
    with running(tmp_path_factory.mktemp("parts"), "streamlit", script) as started:
        yield started


@pytest.fixture(scope="session")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The folder of a tiny random classifier of texts."""
    from tests.tiny import save_checkpoint  # here: torch takes seconds to import, and half of the tests need none

    return str(save_checkpoint("bert", tmp_path_factory.mktemp("bert") / "tiny"))


@pytest.fixture(scope="session")
def vit(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The folder of a tiny random classifier of pictures: 3 x 3 patches, and the classes cat, dog, eel."""
    from tests.unit.vision.tiny_vit import save_vit

    return str(save_vit(tmp_path_factory.mktemp("vit") / "tiny"))


@pytest.fixture(scope="module")
def own_server(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server for the tests of one file, whose home is empty when they begin."""
    with running(tmp_path_factory.mktemp("server")) as started:
        yield started


@pytest.fixture(scope="session")
def port() -> int:
    """A port for the servers that tests start one after another: from one address the browser reads the files of
    Streamlit once. No connection gets such a low number by itself, and each worker looks from another one on."""
    for number in range(20_000 + os.getpid() % 10_000, 32_000):
        with socket() as probe, suppress(OSError):
            probe.setsockopt(SOL_SOCKET, SO_REUSEADDR, 1)
            probe.bind(("localhost", number))
            return number
    raise RuntimeError("no port is free")


@pytest.fixture
def start_server(port: int, tmp_path: Path) -> Iterator[Callable[[str], Server]]:
    """Starts a server of the test's own, in a way that `server.command` knows; the one before it has stopped."""
    with ExitStack() as stack:
        yield lambda way: stack.enter_context(running(tmp_path, way, port=port))


@pytest.fixture
def watch() -> Iterator[Watch]:
    """Fails the test when a page asked another host for anything or wrote an error to its console."""
    seen = Watch()
    yield seen
    assert not seen.outside
    assert not seen.errors


@pytest.fixture
def open_page(
    profile: BrowserContext, browser: Browser, watch: Watch, start_server: Callable[[str], Server]
) -> Iterator[Callable[..., Page]]:
    """Opens an address: `open_page(url, scheme="dark", width=420)`. What the browser keeps of it goes with the test.

    `touch=True` is a telephone, `apart=True` somebody else's browser: they share nothing with the others. A test that
    gives a page listeners or scripts of its own opens it apart, since the tab stays. A click waits until the script
    has ended, except of a page opened with `hasty=True`.
    It asks for `start_server` so that its pages are closed before the server that they talk to stops.
    """
    addresses: list[str] = []
    with ExitStack() as stack:
        watch.attach(profile)
        stack.callback(watch.detach, profile)

        def opener(
            url: str,
            scheme: Scheme = "light",
            width: int = 1280,
            height: int = 900,
            touch: bool = False,
            apart: bool = False,
            hasty: bool = False,
        ) -> Page:
            size: ViewportSize = {"width": width, "height": height}
            if touch or apart:
                context = browser.new_context(color_scheme=scheme, viewport=size, has_touch=touch, is_mobile=touch)
                context.set_default_timeout(TIMEOUT_MS)
                context.add_init_script(HAND + OPEN_AT_ONCE)
                watch.attach(context)
                stack.callback(context.close)
                page = context.new_page()
            else:
                page = profile.new_page() if addresses else tab_of(profile)
                page.set_viewport_size(size)
                page.emulate_media(color_scheme=scheme, reduced_motion="null")
                page.mouse.move(0, 0)
                addresses.append(url)
            page.remove_locator_handler(page.locator(RUNNING))
            if not hasty:
                page.add_locator_handler(page.locator(RUNNING), lambda: page.wait_for_function(ENDED, timeout=0))
            page.goto(url)
            if url.startswith("http") and not hasty:
                page.wait_for_function(STARTED, timeout=2 * TIMEOUT_MS)
            return page

        stack.callback(forget, profile, addresses)
        yield opener


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """With a failed test stand what its pages showed, what the hand did there and what its servers have said."""
    report = yield
    if report.when == "call" and report.failed:
        found = getattr(item, "funcargs", {})
        if "browser" in found:
            for page in (page for context in found["browser"].contexts for page in context.pages):
                report.sections.append((f"Page {page.url}", told(page)))
        for server in (one for one in found.values() if isinstance(one, Server)):
            report.sections.append((f"Server {server.url}", server.log[-MOST_TOLD:]))
    return report


def told(page: Page) -> str:
    """The end of what the hand did, whether the script runs, and the beginning of what is read."""
    try:
        hand, state, text = page.evaluate(
            "[window.handLog ?? [], document.querySelector('[data-testid=stApp]')?.dataset.testScriptState ?? '',"
            "document.body?.innerText ?? '']"
        )
    except Error as error:
        return str(error)
    return "\n".join([*hand[-20:], f"script: {state}", text[:MOST_TOLD]])


def tab_of(profile: BrowserContext) -> Page:
    """The tab that stays, or a new one where a test has closed it."""
    _, *tabs = profile.pages or [profile.new_page()]
    return tabs[0] if tabs else profile.new_page()


def forget(profile: BrowserContext, addresses: Iterable[str]) -> None:
    """Leaves the tab blank, closes the pages beside it, and drops all that the browser keeps of these addresses."""
    blank, *tabs = profile.pages
    shown = {*addresses, *(tab.url for tab in tabs)}
    for tab in tabs[:1]:
        if tab.url.startswith("http"):
            tab.evaluate("sessionStorage.clear()")
        tab.goto("about:blank")
    for tab in tabs[1:]:
        tab.close()
    profile.clear_permissions()
    session = profile.new_cdp_session(blank)
    for origin in {f"{address.scheme}://{address.netloc}" for address in map(urlsplit, shown) if address.netloc}:
        session.send("Storage.clearDataForOrigin", {"origin": origin, "storageTypes": KEPT})
    session.detach()


@pytest.fixture(params=["light", "dark"])
def scheme(request: pytest.FixtureRequest) -> Scheme:
    chosen: Scheme = request.param
    return chosen
