"""Pages as benchmarks open them: in Chromium, or over a plain websocket that takes the browser's part.

The Text page with nine methods: its address, its cached answers, when it has settled. The bytes that a page receives,
and the server's times as rows of a table.
"""

from __future__ import annotations

import os
import random
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlencode

import numpy as np
import psutil
from playwright.sync_api import Browser, Page, WebSocket, sync_playwright
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from websockets.sync.client import ClientConnection, connect

from benchmarks.harness import Table
from benchmarks.watched_server import Run
from components.server import QUIET_SECONDS
from components.text.state import START
from engine.data.datasets import load
from engine.explain import explain_many
from engine.request import Request
from tests.browser.conftest import ARGUMENTS, CHROMIUM
from tests.browser.server import Server

MODEL = "reviews-minilm"
DATA = "reviews"
EXAMPLES = (3, 11, 42, 77, 120)
"""Some examples of a data set."""
TIMEOUT_MS = 300_000
MAX_MESSAGE = 1 << 24
QUICK = ("gradient_x_input", "gradient_l2", "gradient", "attention_mean", "attention_rollout", "attention_last_layer",
         "attention_logits", "attention_logits_last", "random")  # fmt: skip
"""Nine methods that are quick on long texts too."""
NINTH = "lime"
FINISHED = '[data-testid="stApp"][data-test-script-state="notRunning"]'
MAP = ".st-key-text_rows .xg-map"
ALERTS = '[data-testid="stException"], [data-testid="stAlert"], .xg-error'
IDLE_PERCENT = 10.0
SMALL_BUDGETS = {"kernel_shap.n_samples": "32", "lime.n_samples": "32", "integrated_gradients.steps": "fixed",
         "integrated_gradients.n_steps": "4"}  # fmt: skip
"""Parameters in a link for where the numbers do not matter."""


@contextmanager
def chromium() -> Iterator[Browser]:
    """A fresh Chromium."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        yield browser
        browser.close()


def nine_methods() -> tuple[str, ...]:
    """The methods that the page starts with and one more."""
    return (*START, NINTH)


def link_query(
    focus: Mapping[str, str], methods: Sequence[str] | None = None, budgets: Mapping[str, str] | None = None
) -> str:
    """The query of a link, for the nine methods unless others are named.

    `focus`: as `components.inputs.text_choice.write_text_focus` writes it.
    """
    named = [("method", id) for id in methods or nine_methods()]
    return urlencode([("model", MODEL), *focus.items(), *named, *(budgets or {}).items()])


def address(server: Server, focus: Mapping[str, str], methods: Sequence[str] | None = None) -> str:
    return f"{server.url}/text?{link_query(focus, methods)}"


def example(index: int) -> dict[str, str]:
    """The fields of a link for an example of the data set."""
    return {"data": DATA, "index": str(index)}


def use_home(home: Path) -> None:
    """Let this process compute and cache in the home of the server."""
    os.environ["EXEGESIS_HOME"] = str(home)


def fill_cache(indexes: Iterable[int]) -> None:
    """Compute what the page shows of these examples, at the default parameters."""
    data = load(DATA)
    explain_many([Request(MODEL, method, data[index].example) for index in indexes for method in nine_methods()])


def long_text(words: int, seed: int = 0) -> str:
    """Words of the data set's texts, shuffled."""
    data = load(DATA)
    choices = [word for index in range(len(data)) for word in data[index].text.split()]
    return " ".join(random.Random(seed).choices(choices, k=words))


def wait_for_maps(page: Page) -> None:
    """Wait until the script has ended and all nine maps are there."""
    page.locator(MAP).nth(len(nine_methods()) - 1).wait_for(timeout=TIMEOUT_MS)
    page.locator(FINISHED).wait_for(timeout=TIMEOUT_MS)


def open_options(page: Page) -> None:
    """Open the popover with the rare controls of the Text page, unless it is open."""
    if not page.get_by_test_id("stButtonGroup").first.is_visible():
        page.get_by_role("button", name="Options").click()
        page.get_by_test_id("stButtonGroup").first.wait_for(timeout=TIMEOUT_MS)
        page.locator(FINISHED).wait_for(timeout=TIMEOUT_MS)


def change_unit(page: Page, unit: str) -> None:
    """Change to `word` or `token` in the open Options."""
    page.get_by_test_id("stButtonGroup").get_by_text(f"{unit.title()}s", exact=True).click()
    page.wait_for_url(lambda url: ("unit=word" in url) == (unit == "word"), timeout=TIMEOUT_MS)
    wait_for_maps(page)


def change_example(page: Page, index: int) -> None:
    """Change to another example of the data set, by its number."""
    box = page.get_by_role("spinbutton", name="Example, 0 to")
    box.fill(str(index))
    box.press("Enter")
    page.wait_for_url(lambda url: f"index={index}&" in f"{url}&", timeout=TIMEOUT_MS)
    wait_for_maps(page)


def visit_page(session: ClientConnection, query: str, page: str = "text") -> str:
    """Request a link of a page, wait until its script has ended, and return the HTML that came."""
    request = BackMsg()
    request.rerun_script.query_string = query
    request.rerun_script.page_name = page
    session.send(request.SerializeToString())
    html = []
    while True:
        message = ForwardMsg.FromString(bytes(session.recv(TIMEOUT_MS / 1000, decode=False)))
        html.append(message.delta.new_element.html.body)
        if message.WhichOneof("type") == "script_finished":
            return "".join(html)


def open_session(server: Server) -> ClientConnection:
    """Open a session as a browser does."""
    address = f"{server.url.replace('http', 'ws', 1)}/_stcore/stream"
    return connect(address, max_size=MAX_MESSAGE, compression=None, ping_interval=None)


def processor_seconds(process: psutil.Process) -> float:
    """The processor time that a process has used."""
    times = process.cpu_times()
    return float(times.user + times.system)


def wait_until_idle(process: psutil.Process) -> None:
    """Wait until a server has imported what runs models, which it does when nobody comes."""
    time.sleep(QUIET_SECONDS + 1)
    while process.cpu_percent(1.0) > IDLE_PERCENT:
        pass


class Traffic:
    """The messages that the websocket of a page has received."""

    def __init__(self, page: Page) -> None:
        self.frames: list[bytes] = []
        page.on("websocket", self._listen)

    def take(self) -> dict[str, float]:
        """Sizes since the last call: kB in all, and of messages that hold HTML; how many are named by their hash."""
        frames, self.frames = self.frames, []
        sizes: dict[str, list[int]] = {}
        for frame in frames:
            sizes.setdefault(_kind(frame), []).append(len(frame))
        return {
            "kB": sum(map(len, frames)) / 1e3,
            "of it maps, kB": sum(sizes.get("html", [])) / 1e3,
            "messages": len(frames),
            "by hash": len(sizes.get("ref_hash", [])),
        }

    def _listen(self, socket: WebSocket) -> None:
        socket.on("framereceived", lambda frame: self.frames.append(frame if isinstance(frame, bytes) else b""))


def _kind(frame: bytes) -> str:
    """The kind of element that a message brings, else the kind of message."""
    message = ForwardMsg.FromString(frame)
    kind = str(message.WhichOneof("type"))
    if kind == "delta" and message.delta.WhichOneof("type") == "new_element":
        return str(message.delta.new_element.WhichOneof("type"))
    return kind


def run_rows(runs: Mapping[str, Sequence[Run]]) -> Table:
    """A row for each kind of change, with the times of the runs that it led to."""
    rows = []
    for name, own in runs.items():
        times = np.array([run.seconds for run in own]) * 1e3
        median, slow = np.percentile(times, [50, 90])
        rows.append(
            {
                "change of": name,
                "runs": len(own),
                "ms, median": float(median),
                "ms, 90%": float(slow),
                "ms, worst": float(times.max()),
                "cpu ms, median": float(np.median([run.cpu for run in own])) * 1e3,
            }
        )
    return rows
