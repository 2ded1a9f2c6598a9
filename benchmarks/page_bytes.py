"""Bytes that the server sends for the Text page with nine methods: `python -m benchmarks.page_bytes [--json]`.

Every frame of the websocket, as a real Chromium receives it: our HTML, controls, data and style sheets, not Streamlit's
static bundles. For the default example and for a text of 512 tokens: a visit that computes, with its progress; the
first visit of another browser; there a change of the unit to words, and back to tokens. What the browser has seen
lately and is large, Streamlit then only names by its hash. `maps`: the part that is HTML. The long text is explained
by nine quick methods: the bytes of a map depend on its units, hardly on its method.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, Page, WebSocket, sync_playwright
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg

from benchmarks import text_page
from benchmarks.limits import Limit, judge
from benchmarks.timing import show
from benchmarks.watched_server import watched
from tests.browser.conftest import ARGUMENTS, CHROMIUM
from tests.browser.server import Server

MOST_KB = 300
WORDS = 600
"""More than the model reads, so that its 512 tokens are full."""


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


def measure(server: Server, browser: Browser, name: str, link: str) -> list[dict[str, Any]]:
    """The page in one browser context that computes, then in a fresh one, step by step."""
    rows = []
    for steps in (("computed",), ("cached", "words", "tokens again")):
        context = browser.new_context()
        page = context.new_page()
        traffic = Traffic(page)
        for step in steps:
            ACTS[step](page, link)
            rows.append({"text": name, "step": step, "units": _ranked(page), **traffic.take()})
        context.close()
    return rows


def _open(page: Page, link: str) -> None:
    page.goto(link)
    text_page.wait_for_maps(page)


ACTS: Mapping[str, Callable[[Page, str], None]] = {
    "computed": _open,
    "cached": _open,
    "words": lambda page, _: text_page.change_unit(page, "word"),
    "tokens again": lambda page, _: text_page.change_unit(page, "token"),
}


def _ranked(page: Page) -> int:
    """How many units the last map ranks."""
    return int(page.locator(text_page.MAP).last.evaluate("map => map.style.getPropertyValue('--n').slice(1, -1)"))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--words", type=int, default=WORDS, help="of the long text")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="exegesis-bench-") as folder:
        text_page.use_home(Path(folder) / "home")
        from components.inputs.link import write_text

        long = {name: found[0] for name, found in write_text("text", text_page.long_text(given.words)).items()}
        cases = {"default example": (text_page.example(0), None), "512 tokens": (long, text_page.QUICK)}
        with watched(Path(folder)) as server, sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
            rows: list[dict[str, Any]] = []
            for name, (focus, methods) in cases.items():
                rows += measure(server, browser, name, text_page.address(server, focus, methods))
            browser.close()
    show("Bytes sent, nine methods", rows, given.json)
    return judge([Limit(f"{row['text']}, {row['step']}", row["kB"], MOST_KB, "kB") for row in rows])


if __name__ == "__main__":
    sys.exit(main())
