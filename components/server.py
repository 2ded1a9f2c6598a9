"""The dashboard's server: its start, and the headers of every response.

Start it with `python -m components.server --port 8501 --host localhost`.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import gc
import importlib
import logging
import os
import re
import sys
import threading
import time
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import streamlit as st
from anyio import to_thread
from starlette.datastructures import MutableHeaders
from starlette.middleware import Middleware
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from streamlit import cli_util, net_util
from streamlit.delta_generator_singletons import context_dg_stack, get_default_dg_stack_value
from streamlit.runtime.app_session import AppSession
from streamlit.runtime.pages_manager import PagesManager
from streamlit.runtime.state import SafeSessionState
from streamlit.web import cli

from components.compute import CHARTS, MODELS, import_held
from components.monitoring import CountRequests, GuardMetrics
from components.navigation import HOME, PAGES, ROOT, SECTIONS, PageEntry
from engine.access import STUDY_ONLY
from engine.errors import not_allowed
from engine.home import product_version
from engine.lazy import paused_collection
from engine.telemetry import log_event

LOG = logging.getLogger(__name__)
SCRIPT = "pages/dashboard/app.py"
EVERYWHERE = ("", "0.0.0.0", "::")
EMBEDDERS = "EXEGESIS_EMBEDDERS"
"""Environment variable: other sites that may show the pages in a frame, separated by spaces, like
"https://lab.example"."""
UPLOAD = "/_stcore/upload_file"
ORIGIN = re.compile(r"https?://(\*\.)?[\w.-]+(:\d+)?")
EARLY = ("torch", "transformers")
"""Libraries that are imported before the first visitor."""
QUIET_SECONDS = 3
"""Time after which the remaining libraries are imported, even if nobody has opened a page."""


class Headers:
    """Middleware that adds security headers to every response."""

    def __init__(self, app: ASGIApp, embedders: str = "") -> None:
        self.app = app
        self.headers = {"X-Content-Type-Options": "nosniff", "Referrer-Policy": "same-origin"}
        self.headers["Content-Security-Policy"] = f"frame-ancestors 'self' {embedders}".rstrip()
        if not embedders:
            self.headers["X-Frame-Options"] = "SAMEORIGIN"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        started = False

        async def send_with_headers(message: Message) -> None:
            nonlocal started
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(self.headers)
                started = True
            await send(message)

        if scope["type"] != "http":
            return await self.app(scope, receive, send)
        try:
            await self.app(scope, receive, send_with_headers)
        except Exception:
            if not started:
                await PlainTextResponse("Internal Server Error", 500)(scope, receive, send_with_headers)
            raise  # the server logs it


class NoUploads:
    """Middleware that rejects uploads on a server for studies only, whose pages take no files."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and UPLOAD in scope["path"]:
            return await PlainTextResponse("This server takes no files.", 403)(scope, receive, send)
        await self.app(scope, receive, send)


def middleware() -> list[Middleware]:
    """Return the middleware of every request. Errors: `EXEGESIS_EMBEDDERS` names something that is not a site."""
    embedders = os.environ.get(EMBEDDERS, "").split()
    for site in embedders:
        if not ORIGIN.fullmatch(site):
            raise not_allowed(EMBEDDERS, "sites such as https://lab.example, separated by spaces", site)
    uploads = [Middleware(NoUploads)] if os.environ.get(STUDY_ONLY) == "1" else []
    return [
        Middleware(CountRequests),
        Middleware(GuardMetrics),
        Middleware(Headers, embedders=" ".join(embedders)),
        *uploads,
    ]


def disable_address_lookup() -> None:
    """Prevent Streamlit from asking an external server for this machine's address, at its start or for a page."""
    net_util.get_external_ip = lambda: None


def run_pages_in_frame() -> None:
    """Prevent Streamlit from running a page of the folder `pages` without the dashboard's script.

    It does so for a folder of this name until `st.navigation` is called for the first time.
    """
    PagesManager.uses_pages_directory = False


def draw_from_top() -> None:
    """Reset the position for drawing to the top of the page.

    If a choice comes just as a fragment's run ends, Streamlit runs the script in the same thread and continues inside
    the fragment. The browser then gets elements for places that it does not have, and shows an empty page.
    """
    context_dg_stack.set(get_default_dg_stack_value())


def finish_callbacks() -> None:
    """Let the callbacks of a choice finish before the next choice is handled.

    Streamlit checks for the next choice whenever `st.session_state` is used. In a callback, that would end the callback
    early and lose its choice.
    """
    start = SafeSessionState.on_script_will_rerun
    if start.__module__ == __name__:
        return

    def without_interruption(state: SafeSessionState, *args: Any, **options: Any) -> None:
        runner: Any = state._yield_callback.__self__  # type: ignore[attr-defined]
        runner._execing = False
        try:
            start(state, *args, **options)
        finally:
            runner._execing = True

    SafeSessionState.on_script_will_rerun = without_interruption  # type: ignore[assignment,method-assign]


def hide_script_path() -> None:
    """Prevent Streamlit from telling every browser the folder of the dashboard on this machine."""
    create = AppSession._create_new_session_message
    if getattr(create, "__module__", "") == __name__:
        return

    def without_folder(session: AppSession, *args: Any, **options: Any) -> Any:
        message = create(session, *args, **options)
        message.new_session.main_script_path = Path(message.new_session.main_script_path).name
        return message

    AppSession._create_new_session_message = without_folder  # type: ignore[assignment,method-assign]


def import_pages() -> None:
    """Import the modules of Home and the first menu's pages, then the libraries that run models, then the rest.

    A script that runs meanwhile waits for the imports of the pages. The browser takes a second to load, which is enough
    for `EARLY`; the rest waits for `QUIET_SECONDS`, or until it is needed.
    """
    with _importing_pages:
        _import_modules(HOME, *SECTIONS["Explain"])
        gc.freeze()
        gc.enable()
    import_held(*EARLY)
    time.sleep(QUIET_SECONDS)
    import_held(*MODELS, *CHARTS)
    with _importing_pages, paused_collection():
        _import_modules(*PAGES)


def _import_modules(*pages: PageEntry) -> None:
    """Import the modules that pages import."""
    for entry in pages:
        for statement in ast.parse(entry.path.read_text(encoding="utf-8")).body:
            if isinstance(statement, ast.ImportFrom) and statement.module:
                importlib.import_module(statement.module)


def wait_for_imports() -> None:
    """Wait while `import_pages` imports pages, because two threads that import at once see half-imported modules."""
    with _importing_pages:
        pass


_importing_pages = threading.Lock()


@contextlib.asynccontextmanager
async def start_up(_app: st.App) -> AsyncIterator[None]:
    """Import the pages while the first browser loads, and open that browser unless the server runs headless.

    The port is already open at this point.
    """
    log_event(LOG, "server started", version=product_version(), port=int(st.get_option("server.port")))
    threading.Thread(target=import_pages, daemon=True).start()
    if not st.get_option("server.headless"):
        await to_thread.run_sync(cli_util.open_browser, dashboard_url())
    yield


def dashboard_url() -> str:
    """Return the address of the dashboard for a browser on this machine."""
    host = st.get_option("server.address") or ""
    scheme = "https" if st.get_option("server.sslCertFile") else "http"
    name = "localhost" if host in EVERYWHERE else host
    return f"{scheme}://{name}:{st.get_option('server.port')}{base_path()}/"


def base_path() -> str:
    """Return the path prefix of every page, such as "/name", or an empty string."""
    base = (st.get_option("server.baseUrlPath") or "").strip("/")
    return f"/{base}" if base else ""


def parse_arguments(argv: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m components.server", description="Starts the dashboard's server.")
    parser.add_argument("--port", type=int, default=8501)
    parser.add_argument("--host", default="localhost", help="0.0.0.0 lets other machines in")
    parser.add_argument("--headless", action="store_true", help="do not open a browser window")
    return parser.parse_args(argv)


def serve(port: int, host: str, headless: bool) -> None:
    """Run the server until it is stopped."""
    disable_address_lookup()
    gc.disable()  # nearly all objects created until the pages are imported stay alive
    flags = [f"--server.port={port}", f"--server.address={host}"]
    if headless:
        flags.append("--server.headless=true")
    cli.main(["run", str(ROOT / SCRIPT), *flags], prog_name="streamlit")


def main(argv: Sequence[str] | None = None) -> None:
    options = parse_arguments(sys.argv[1:] if argv is None else argv)
    serve(options.port, options.host, options.headless)


if __name__ == "__main__":
    main()
