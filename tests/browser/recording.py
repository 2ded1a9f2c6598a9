"""All that a browser receives and sends, and what is hidden in it: base64, compressed data, parts of pictures."""

from __future__ import annotations

import binascii
import json
import re
import struct
import zlib
from base64 import b64decode
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import unquote, urlsplit

import streamlit
from playwright.sync_api import Page, Response, WebSocket

SHIPPED = Path(streamlit.__file__).parent / "static"
"""The files that Streamlit brings along: the same for every page."""
BASE64 = re.compile(rb"[A-Za-z0-9+/_-]{16,}={0,2}")
STANDARD = bytes.maketrans(b"-_", b"+/")
PNG = b"\x89PNG\r\n\x1a\n"
PIXELS_ONLY = {b"IHDR", b"PLTE", b"tRNS", b"IDAT", b"IEND"}
"""The chunks of a PNG that hold no words."""
STORED = "() => JSON.stringify([{...localStorage}, {...sessionStorage}, document.cookie, document.title])"
DEPTH = 3


@dataclass
class Recording:
    """What one page received and sent: `places` are its addresses, `parts` everything else."""

    places: list[str] = field(default_factory=list)
    parts: list[bytes] = field(default_factory=list)
    responses: list[Response] = field(default_factory=list)

    def listen(self, page: Page) -> None:
        page.on("websocket", self._socket)
        page.on("response", lambda response: self.responses.append(response))
        page.on("request", lambda request: self.places.append(request.url))

    def finish(self, page: Page) -> None:
        """Reads what came meanwhile, and what the browser keeps and shows."""
        for response in self.responses:
            self.parts.append(json.dumps(response.headers).encode())
            if not _is_shipped(response):
                self.parts.append(_body(response))
        self.responses.clear()
        self.parts += [page.evaluate(STORED).encode(), page.content().encode()]
        self.places.append(page.url)

    def everything(self) -> bytes:
        """All of it, decoded as deep as it goes."""
        whole = [unquote(place).encode() for place in self.places]
        return b"\n".join([*whole, *(layer for part in self.parts for layer in _layers(part))])

    def pictures(self) -> set[bytes]:
        """Each PNG that stands in what was received."""
        layers = (layer for part in self.parts for layer in _layers(part))
        return {layer for layer in layers if layer.startswith(PNG)}

    def _socket(self, socket: WebSocket) -> None:
        self.places.append(socket.url)
        for event in ("framesent", "framereceived"):
            socket.on(event, lambda frame: self.parts.append(frame if isinstance(frame, bytes) else frame.encode()))


def chunks(png: bytes) -> Iterator[tuple[bytes, bytes]]:
    """The chunks of a PNG by name."""
    at = len(PNG)
    while at < len(png):
        (size,) = struct.unpack(">I", png[at : at + 4])
        yield png[at + 4 : at + 8], png[at + 8 : at + 8 + size]
        at += size + 12


def _is_shipped(response: Response) -> bool:
    """Whether it is a file of Streamlit itself, byte for byte."""
    path = urlsplit(response.url).path
    inner = path.partition("/static/")[2]
    file = SHIPPED / "static" / inner if inner else SHIPPED / path.rpartition("/")[2]
    return file.is_file() and _body(response) == file.read_bytes()


def _body(response: Response) -> bytes:
    return b"" if response.status in (101, 204, 304) else response.body()


def _layers(part: bytes, depth: int = DEPTH) -> Iterator[bytes]:
    """The part itself and what is encoded in it."""
    yield part
    if not depth:
        return
    for inner in _inside(part):
        yield from _layers(inner, depth - 1)


def _inside(part: bytes) -> Iterator[bytes]:
    if part.startswith(PNG):
        for name, data in chunks(part):
            yield name + b" " + (zlib.decompress(data) if name == b"IDAT" else data)
        return
    for found in BASE64.findall(part):
        try:
            yield b64decode(found.translate(STANDARD) + b"=" * (-len(found) % 4))
        except (binascii.Error, ValueError):
            continue
    if inflated := _inflated(part):
        yield inflated


def _inflated(part: bytes) -> bytes:
    for kind in (zlib.MAX_WBITS | 32, -zlib.MAX_WBITS):
        try:
            return zlib.decompress(part, kind)
        except zlib.error:
            continue
    return b""
