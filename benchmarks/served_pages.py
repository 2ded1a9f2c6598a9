"""Pages as benchmarks open them: in Chromium, or over a plain websocket that takes the browser's part.

The Text page with nine methods: its address, its cached answers, when it has settled. The bytes that a page receives,
and the server's times as rows of a table.
"""

from __future__ import annotations

import os
import random
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import numpy as np
from playwright.sync_api import Page, WebSocket
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from websockets.sync.client import ClientConnection, connect

from benchmarks.watched_server import Run
from tests.browser.server import Server

MODEL = "reviews-minilm"
DATA = "reviews"
TIMEOUT_MS = 300_000
MAX_MESSAGE = 1 << 24
QUICK = ("gradient_x_input", "gradient_l2", "gradient", "attention_mean", "attention_rollout", "attention_last_layer",
         "attention_logits", "attention_logits_last", "random")  # fmt: skip
"""Nine methods that are quick on long texts too."""
NINTH = "lime"
FINISHED = '[data-testid="stApp"][data-test-script-state="notRunning"]'
MAP = ".st-key-text_rows .xg-map"
ALERTS = '[data-testid="stException"], [data-testid="stAlert"], .xg-error'
SMALL_BUDGETS = {"kernel_shap.n_samples": "32", "lime.n_samples": "32", "integrated_gradients.steps": "fixed",
         "integrated_gradients.n_steps": "4"}  # fmt: skip
"""Budgets for where the numbers do not matter, as a link says them."""


def nine_methods() -> tuple[str, ...]:
    """The methods that the page starts with and one more."""
    from components.text.state import START

    return (*START, NINTH)


def query(
    focus: Mapping[str, str], methods: Sequence[str] | None = None, budgets: Mapping[str, str] | None = None
) -> str:
    """A link's query, for the nine methods unless others are named.

    `focus`: as `components.inputs.text_choice.write_text_focus` has it.
    """
    named = [("method", id) for id in methods or nine_methods()]
    return urlencode([("model", MODEL), *focus.items(), *named, *(budgets or {}).items()])


def address(server: Server, focus: Mapping[str, str], methods: Sequence[str] | None = None) -> str:
    return f"{server.url}/text?{query(focus, methods)}"


def example(index: int) -> dict[str, str]:
    """A link's words for an example of the data set."""
    return {"data": DATA, "index": str(index)}


def use_home(home: Path) -> None:
    """This process computes and keeps in the server's home."""
    os.environ["EXEGESIS_HOME"] = str(home)


def fill_cache(indexes: Iterable[int]) -> None:
    """Computes what the page shows of these examples, at the default parameters."""
    from engine.data.datasets import load
    from engine.explain import explain_many
    from engine.request import Request

    data = load(DATA)
    explain_many([Request(MODEL, method, data[index].example) for index in indexes for method in nine_methods()])


def long_text(words: int, seed: int = 0) -> str:
    """Words of the data set's texts, shuffled."""
    from engine.data.datasets import load

    data = load(DATA)
    found = [word for index in range(len(data)) for word in data[index].text.split()]
    return " ".join(random.Random(seed).choices(found, k=words))


def wait_for_maps(page: Page) -> None:
    """Until the script has ended and all nine maps are there."""
    page.locator(MAP).nth(len(nine_methods()) - 1).wait_for(timeout=TIMEOUT_MS)
    page.locator(FINISHED).wait_for(timeout=TIMEOUT_MS)


def change_unit(page: Page, unit: str) -> None:
    """`word` or `token`, by the control above the maps."""
    page.get_by_test_id("stButtonGroup").get_by_text(f"{unit.title()}s", exact=True).click()
    page.wait_for_url(lambda url: ("unit=word" in url) == (unit == "word"), timeout=TIMEOUT_MS)
    wait_for_maps(page)


def change_example(page: Page, index: int) -> None:
    """Another example of the data set, by its number."""
    box = page.get_by_role("spinbutton", name="Example, 0 to")
    box.fill(str(index))
    box.press("Enter")
    page.wait_for_url(lambda url: f"index={index}&" in f"{url}&", timeout=TIMEOUT_MS)
    wait_for_maps(page)


def visit_page(session: ClientConnection, query: str, page: str = "text") -> str:
    """Asks for a page's link and waits until its script has ended; the HTML that came."""
    asked = BackMsg()
    asked.rerun_script.query_string = query
    asked.rerun_script.page_name = page
    session.send(asked.SerializeToString())
    html = []
    while True:
        message = ForwardMsg.FromString(bytes(session.recv(TIMEOUT_MS / 1000, decode=False)))
        html.append(message.delta.new_element.html.body)
        if message.WhichOneof("type") == "script_finished":
            return "".join(html)


def open_session(server: Server) -> ClientConnection:
    """A session of its own, as a browser opens one."""
    address = f"{server.url.replace('http', 'ws', 1)}/_stcore/stream"
    return connect(address, max_size=MAX_MESSAGE, compression=None, ping_interval=None)


class Traffic:
    """What a page's websocket has received."""

    def __init__(self, page: Page) -> None:
        self.frames: list[bytes] = []
        page.on("websocket", self._listen)

    def take(self) -> dict[str, float]:
        """Of the frames since the last call: kB in all, and of messages that hold HTML; messages named by hash."""
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


def run_rows(taken: dict[str, list[Run]]) -> list[dict[str, Any]]:
    return [_run_row(name, found) for name, found in taken.items()]


def _run_row(name: str, found: Sequence[Run]) -> dict[str, Any]:
    times = np.array([run.seconds for run in found]) * 1e3
    cpu = np.array([run.cpu for run in found]) * 1e3
    median, slow = np.percentile(times, [50, 90])
    return {
        "change of": name,
        "runs": len(found),
        "ms, median": float(median),
        "ms, 90 %": float(slow),
        "ms, worst": float(times.max()),
        "cpu ms, median": float(np.median(cpu)),
    }
