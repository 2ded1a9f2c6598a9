"""What the server does as it starts. Streamlit opens a browser for a script, but not for an app with routes."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator

import streamlit as st
from anyio import to_thread
from streamlit import cli_util

EVERYWHERE = ("", "0.0.0.0", "::")


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
