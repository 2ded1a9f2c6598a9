"""The health check and the metrics of the server.

    GET /healthz   200 {"status": "ready"} or 503 {"status": "unavailable"}, with the checks for those who may monitor
    GET /metrics   the metrics in the text format of Prometheus, for those who may monitor; 403 for others

Programs on this machine (without a proxy in between) and in the networks of `EXEGESIS_MONITORS` may monitor.
"""

from __future__ import annotations

import ipaddress
import threading
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING

from anyio import CapacityLimiter, to_thread
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from components.organizer import Visit, is_forwarded, is_local
from engine.access import MONITORS, monitor_networks
from engine.lazy import LazyModule
from engine.telemetry import HTTP_REQUESTS, OPEN_PAGES, counts

if TYPE_CHECKING:
    from engine import monitoring
else:  # the server of the pages starts without importing it
    monitoring = LazyModule("engine.monitoring")

REMEMBERED_SECONDS = 2.0
"""Lifetime of a health check's result; the check runs at most once in this time."""
AT_ONCE = 2
"""Maximum number of concurrent checks, so that a database that does not answer blocks no page."""
STREAMLIT_METRICS = "/_stcore/metrics"
REFUSAL = f"Only this machine and the networks in {MONITORS} may read the metrics."
HEADERS = {"Cache-Control": "no-store"}


def may_monitor(visit: Visit) -> bool:
    """Whether the request comes from this machine or an allowed network, and not through a proxy."""
    if is_local(visit):
        return True
    if visit.address is None or is_forwarded(visit):
        return False
    try:
        address = ipaddress.ip_address(visit.address.partition("%")[0])
    except ValueError:  # a Unix socket has no IP address
        return False
    address = getattr(address, "ipv4_mapped", None) or address
    return any(address in network for network in monitor_networks())


def monitoring_routes(base: str = "") -> list[Route]:
    """Return the routes to add to the server of the pages. `base`: prefix of every page's path."""
    monitor_networks()  # an invalid network stops the start
    limiter = CapacityLimiter(AT_ONCE)

    async def health(request: Request) -> Response:
        ready, checks = await to_thread.run_sync(_readiness.get, limiter=limiter)
        body: dict[str, object] = {"status": "ready" if ready else "unavailable"}
        if may_monitor(_visit(request)):
            body["checks"] = checks
        return JSONResponse(body, 200 if ready else 503, HEADERS)

    async def metrics(request: Request) -> Response:
        if not may_monitor(_visit(request)):
            return PlainTextResponse(REFUSAL, 403)
        text = await to_thread.run_sync(_metrics_text, limiter=limiter)
        return Response(text, headers=HEADERS, media_type=monitoring.CONTENT_TYPE)

    return [Route(f"{base}/healthz", health), Route(f"{base}/metrics", metrics)]


def _metrics_text() -> str:
    return monitoring.metrics_text()


def _visit(request: Request) -> Visit:
    headers = {name.lower(): request.headers[name] for name in request.headers}
    return Visit(request.client.host if request.client else None, headers)


class _Readiness:
    """The cached result of the latest health check."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._checked = float("-inf")
        self._result: tuple[bool, list[Mapping[str, str]]] = (False, [])

    def get(self) -> tuple[bool, list[Mapping[str, str]]]:
        with self._lock:
            if time.monotonic() - self._checked > REMEMBERED_SECONDS:
                ready, findings = monitoring.readiness()
                self._result = ready, [one.as_plain() for one in findings]
                self._checked = time.monotonic()
            return self._result


_readiness = _Readiness()


class GuardMetrics:
    """Middleware that restricts Streamlit's own metrics to those who may monitor."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        own = scope["type"] == "http" and scope["path"].rstrip("/").endswith(STREAMLIT_METRICS)
        if own and not may_monitor(_visit(Request(scope))):
            return await PlainTextResponse(REFUSAL, 403)(scope, receive, send)
        await self.app(scope, receive, send)


class CountRequests:
    """Middleware that counts requests by class of status code, and open pages."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def send_counted(message: Message) -> None:
            if message["type"] == "http.response.start":
                counts.add(HTTP_REQUESTS, status=f"{message['status'] // 100}xx")
            await send(message)

        if scope["type"] != "websocket":
            return await self.app(scope, receive, send_counted if scope["type"] == "http" else send)
        counts.add(OPEN_PAGES)
        try:
            await self.app(scope, receive, send)
        finally:
            counts.add(OPEN_PAGES, -1)
