"""HTTP interface for participants of a study: the same ballots and votes as on the pages, as JSON.

    POST /api/study/LINK/join                                                       -> code, title, consent, ...
    POST /api/study/LINK/consent                                                    -> agreed
    GET  /api/study/LINK/ballot                                                     -> ballot, or null at the end
    POST /api/study/LINK/answer   {"ballot", "token", "ranks" | "guess", "seconds"} -> token, before
    POST /api/study/LINK/undo     {"token"}                                         -> ballot to answer again, or null

LINK is the token of the join link. All operations except `join` need `Authorization: Bearer CODE`. Bodies are JSON,
which pages of other sites cannot send. Errors: {"error": message} with 400, 403, 404, 413, 415, 429 or 503.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from anyio import CapacityLimiter, to_thread
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from engine.lazy import LazyModule
from engine.study.access import attempt_source

if TYPE_CHECKING:
    from components.annotate import api_operations
else:  # the server of the pages starts without importing the studies
    api_operations = LazyModule("components.annotate.api_operations")

PATH = "/api/study/{link}"
LARGEST_BODY = 16_384
AT_ONCE = 10
"""Maximum number of concurrent requests, below the size of the database's connection pool; the others wait."""
_HEADERS = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"}

JsonObject = Mapping[str, Any]


@dataclass(frozen=True)
class StudyRequest:
    """A request: the study's link, the participant's code, the source for rate limits, and the body."""

    link: str
    code: str
    source: str
    body: JsonObject


class _RefusedRequest(Exception):
    """A request that is refused before it is processed."""

    def __init__(self, status: int, error: str) -> None:
        super().__init__(error)
        self.status = status


def study_routes(base: str = "") -> list[Route]:
    """Return the routes to add to the server of the pages. `base`: prefix of every page's path."""
    methods = {"join": "POST", "consent": "POST", "answer": "POST", "undo": "POST", "ballot": "GET"}
    limiter = CapacityLimiter(AT_ONCE)
    return [
        Route(f"{base}{PATH}/{name}", _endpoint(name, limiter), methods=[method]) for name, method in methods.items()
    ]


def _endpoint(name: str, limiter: CapacityLimiter) -> Callable[[Request], Awaitable[Response]]:
    async def endpoint(request: Request) -> Response:
        try:
            read = await _read(request)
            return JSONResponse(*await to_thread.run_sync(_perform, name, read, limiter=limiter), _HEADERS)
        except _RefusedRequest as error:
            return JSONResponse({"error": str(error)}, error.status, _HEADERS)
        except ClientDisconnect:
            return Response(status_code=400)

    return endpoint


def _perform(name: str, request: StudyRequest) -> tuple[JsonObject, int]:
    return api_operations.perform(name, request)


async def _read(request: Request) -> StudyRequest:
    body = await _body(request) if request.method == "POST" else {}
    kind, _, code = request.headers.get("authorization", "").partition(" ")
    source = attempt_source(request.client.host if request.client else None)
    return StudyRequest(request.path_params["link"], code.strip() if kind.lower() == "bearer" else "", source, body)


async def _body(request: Request) -> JsonObject:
    """Return the JSON object of the request. Errors: not a JSON object, or more than `LARGEST_BODY` bytes."""
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
        raise _RefusedRequest(415, "body: must be JSON. Send the header Content-Type: application/json.")
    read = bytearray()
    async for part in request.stream():
        read += part
        if len(read) > LARGEST_BODY:
            raise _RefusedRequest(413, f"body: must have at most {LARGEST_BODY:,} bytes.")
    try:
        body = json.loads(bytes(read) or b"{}")
    except (ValueError, RecursionError):
        raise _RefusedRequest(400, "body: is no JSON. Send an object.") from None
    if not isinstance(body, dict):
        raise _RefusedRequest(400, "body: must be a JSON object.")
    return body
