"""What the server does as it starts, and what it says with every answer."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import streamlit as st
from anyio import to_thread
from starlette.datastructures import MutableHeaders
from starlette.middleware import Middleware
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from streamlit import cli_util, net_util
from streamlit.runtime.app_session import AppSession

from engine.access import STUDY_ONLY
from engine.errors import not_allowed

EVERYWHERE = ("", "0.0.0.0", "::")
EMBEDDERS = "EXEGESIS_EMBEDDERS"
"""The other sites that may show the pages in a frame, separated by spaces, such as "https://lab.example"."""
UPLOAD = "/_stcore/upload_file"
ORIGIN = re.compile(r"https?://(\*\.)?[\w.-]+(:\d+)?")


class Headers:
    """Middleware that adds to every answer what a browser must not do with it."""

    def __init__(self, app: ASGIApp, embedders: str = "") -> None:
        self.app = app
        self.headers = {"X-Content-Type-Options": "nosniff", "Referrer-Policy": "same-origin"}
        self.headers["Content-Security-Policy"] = f"frame-ancestors 'self' {embedders}".rstrip()
        if not embedders:
            self.headers["X-Frame-Options"] = "SAMEORIGIN"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        begun = False

        async def sending(message: Message) -> None:
            nonlocal begun
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(self.headers)
                begun = True
            await send(message)

        if scope["type"] != "http":
            return await self.app(scope, receive, send)
        try:
            await self.app(scope, receive, sending)
        except Exception:
            if not begun:
                await PlainTextResponse("Internal Server Error", 500)(scope, receive, sending)
            raise  # the server logs it


class NoUploads:
    """Middleware of a server that only serves studies: nothing on their pages takes a file."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and UPLOAD in scope["path"]:
            return await PlainTextResponse("This server takes no files.", 403)(scope, receive, send)
        await self.app(scope, receive, send)


def middleware() -> list[Middleware]:
    """What every request passes. Errors: `EXEGESIS_EMBEDDERS` names what is no site."""
    embedders = os.environ.get(EMBEDDERS, "").split()
    for site in embedders:
        if not ORIGIN.fullmatch(site):
            raise not_allowed(EMBEDDERS, "sites such as https://lab.example, separated by spaces", site)
    uploads = [Middleware(NoUploads)] if os.environ.get(STUDY_ONLY) == "1" else []
    return [Middleware(Headers, embedders=" ".join(embedders)), *uploads]


def ask_no_network() -> None:
    """Keep Streamlit from asking a server elsewhere for this machine's address, as it starts or is asked by a page."""
    net_util.get_external_ip = lambda: None


def send_no_path() -> None:
    """Keep Streamlit from telling every browser in which folder of this machine the dashboard lies."""
    create = AppSession._create_new_session_message
    if getattr(create, "__module__", "") == __name__:
        return

    def without_folder(session: AppSession, *args: Any, **options: Any) -> Any:
        message = create(session, *args, **options)
        message.new_session.main_script_path = Path(message.new_session.main_script_path).name
        return message

    AppSession._create_new_session_message = without_folder  # type: ignore[assignment,method-assign]


@contextlib.asynccontextmanager
async def opening_a_browser(_app: st.App) -> AsyncIterator[None]:
    """Opens the dashboard unless the server runs headless; the port listens already."""
    if not st.get_option("server.headless"):
        await to_thread.run_sync(cli_util.open_browser, address())
    yield


def address() -> str:
    """Where a browser on this machine finds the dashboard."""
    host = st.get_option("server.address") or ""
    scheme = "https" if st.get_option("server.sslCertFile") else "http"
    name = "localhost" if host in EVERYWHERE else host
    return f"{scheme}://{name}:{st.get_option('server.port')}{base_path()}/"


def base_path() -> str:
    """What stands before the path of every page: nothing, or "/name"."""
    base = (st.get_option("server.baseUrlPath") or "").strip("/")
    return f"/{base}" if base else ""
