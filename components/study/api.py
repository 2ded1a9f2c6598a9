"""Taking part in a study over HTTP, beside the pages: the same ballots and the same votes, as JSON.

    POST /api/study/LINK/join                                                       -> code, title, consent, ...
    POST /api/study/LINK/consent                                                    -> agreed
    GET  /api/study/LINK/ballot                                                     -> ballot, or null when through
    POST /api/study/LINK/answer   {"ballot", "token", "ranks" | "guess", "seconds"} -> token, before
    POST /api/study/LINK/undo     {"token"}                                         -> ballot to answer again, or null

LINK is what the join link holds; all but `join` want `Authorization: Bearer CODE`. Bodies are JSON, which pages of
other sites cannot send. Errors: {"error": what to do} with 400, 403, 404, 413, 415,
429 or 503.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from anyio import CapacityLimiter, to_thread
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from engine.errors import ExegesisError, UsageError
from engine.study.limits import TooManyTries, source_of

PATH = "/api/study/{link}"
LARGEST_BODY = 16_384
AT_ONCE = 10
"""Requests that are worked on at once, fewer than the connections that the database keeps; the others wait."""
_HEADERS = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"}

Plain = Mapping[str, Any]


@dataclass(frozen=True)
class _Asked:
    """One request: the study's link, the participant's code, what limits count as its source, and its body."""

    link: str
    code: str
    source: str
    body: Plain

    @property
    def person(self) -> int:
        """The participant. Errors: the code is nobody's, or too many were wrong."""
        from engine.study.annotators import recognise

        return recognise(self.link, self.code, self.source).id


Work = Callable[[_Asked], Plain]
"""What one address does."""


class _Refused(Exception):
    """A request that is answered before anything is looked at."""

    def __init__(self, status: int, error: str) -> None:
        super().__init__(error)
        self.status = status


def study_routes(base: str = "") -> list[Route]:
    """The addresses, for the server that serves the pages. `base`: what stands before the path of every page."""
    path = f"{base}{PATH}"
    limiter = CapacityLimiter(AT_ONCE)
    addresses = {"join": _join, "consent": _consent, "answer": _answer, "undo": _undo}
    routes = [Route(f"{path}/{name}", _endpoint(work, limiter), methods=["POST"]) for name, work in addresses.items()]
    return [*routes, Route(f"{path}/ballot", _endpoint(_ballot, limiter), methods=["GET"])]


def _endpoint(work: Work, limiter: CapacityLimiter) -> Callable[[Request], Awaitable[Response]]:
    async def endpoint(request: Request) -> Response:
        try:
            asked = await _read(request)
            return await to_thread.run_sync(_answered, work, asked, limiter=limiter)
        except _Refused as error:
            return _error(error.status, str(error))
        except ClientDisconnect:
            return Response(status_code=400)

    return endpoint


def _answered(work: Work, asked: _Asked) -> Response:
    """The answer to a request. Other errors than ours pass: the server logs them and says 500."""
    try:
        return JSONResponse(work(asked), headers=_HEADERS)
    except ExegesisError as error:
        from components.study.told import told_of

        return _error(_status(error), told_of(error, "somebody over HTTP"))


def _error(status: int, text: str) -> Response:
    return JSONResponse({"error": text}, status, _HEADERS)


def _status(error: ExegesisError) -> int:
    from engine.study.annotators import NotKnown, NotOpen
    from engine.study.database import WrongAddress

    known: dict[type, int] = {NotOpen: 403, NotKnown: 404, TooManyTries: 429, WrongAddress: 503, UsageError: 400}
    return next((known[kind] for kind in type(error).__mro__ if kind in known), 503)


async def _read(request: Request) -> _Asked:
    body = await _body(request) if request.method == "POST" else {}
    source = source_of(request.client.host if request.client else None)
    return _Asked(request.path_params["link"], _code(request), source, body)


async def _body(request: Request) -> Plain:
    """The JSON object of the request; never more of it is read than `LARGEST_BODY`."""
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
        raise _Refused(415, "body: must be JSON. Send the header Content-Type: application/json.")
    read = bytearray()
    async for part in request.stream():
        read += part
        if len(read) > LARGEST_BODY:
            raise _Refused(413, f"body: must have at most {LARGEST_BODY:,} bytes.")
    return _parsed(bytes(read))


def _parsed(body: bytes) -> Plain:
    try:
        said = json.loads(body or b"{}")
    except (ValueError, RecursionError):
        raise _Refused(400, "body: is no JSON. Send an object.") from None
    if not isinstance(said, dict):
        raise _Refused(400, "body: must be a JSON object.")
    return said


def _code(request: Request) -> str:
    kind, _, code = request.headers.get("authorization", "").partition(" ")
    return code.strip() if kind.lower() == "bearer" else ""


def _join(asked: _Asked) -> Plain:
    from engine.study.annotators import join
    from engine.study.studies import find

    person, code = join(asked.link, asked.source)
    design = find(person.study).design
    told = {name: getattr(design, name) for name in ("title", "question", "consent", "instructions", "mode")}
    return {"code": code, **told}


def _consent(asked: _Asked) -> Plain:
    from engine.study.annotators import consent

    return {"agreed": consent(asked.person).consented}


def _ballot(asked: _Asked) -> Plain:
    from components.study.json import ballot_json
    from engine.study.ballots import next_ballot

    given = next_ballot(asked.person)
    return {"ballot": None if given is None else ballot_json(given)}


def _answer(asked: _Asked) -> Plain:
    from components.study.json import read_answer
    from engine.study.voting import confirm

    confirmed = confirm(asked.person, read_answer(asked.body))
    return {"token": confirmed.token, "before": confirmed.before}


def _undo(asked: _Asked) -> Plain:
    from components.study.json import read_token
    from engine.study.voting import undo

    return {"ballot": undo(asked.person, read_token(asked.body, "token"))}
