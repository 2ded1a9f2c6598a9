"""An OpenID provider of our own, on a free port: it logs in whom the test names, at once, and checks who asks it.

Its keys are made when it starts and are nowhere on the disk.
"""

from __future__ import annotations

import base64
import hashlib
import secrets
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode

import uvicorn
from joserfc import jwt
from joserfc.jwk import RSAKey
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import Route

from tests.browser.server import START_SECONDS, STOP_SECONDS, free_port

CLIENT = "exegesis"


def _key() -> RSAKey:
    return RSAKey.generate_key(2048, parameters={"kid": secrets.token_hex(8)})


@dataclass
class Provider:
    """`claims`: what it says of whoever logs in next. `signs`: the key of its tokens; browsers are told of `shown`."""

    url: str
    secret: str = field(default_factory=lambda: secrets.token_urlsafe(32))
    shown: RSAKey = field(default_factory=_key)
    claims: dict[str, Any] = field(default_factory=dict)
    signs: RSAKey | None = None
    ended: list[str] = field(default_factory=list)
    _asked: dict[str, Mapping[str, str]] = field(default_factory=dict)

    @property
    def metadata_url(self) -> str:
        return f"{self.url}/.well-known/openid-configuration"

    def metadata(self, _: Request) -> Response:
        places = {name: f"{self.url}/{name.partition('_')[0]}" for name in ("authorization_endpoint", "token_endpoint")}
        return JSONResponse(
            {
                "issuer": self.url,
                **places,
                "end_session_endpoint": f"{self.url}/end",
                "jwks_uri": f"{self.url}/keys",
                "response_types_supported": ["code"],
                "subject_types_supported": ["public"],
                "id_token_signing_alg_values_supported": ["RS256"],
                "code_challenge_methods_supported": ["S256"],
            }
        )

    def keys(self, _: Request) -> Response:
        return JSONResponse({"keys": [self.shown.as_dict(private=False)]})

    def authorize(self, request: Request) -> Response:
        """Sends the browser back at once with a code that is good for one token."""
        asked = request.query_params
        wanted = {"client_id": CLIENT, "response_type": "code", "code_challenge_method": "S256"}
        if any(asked.get(name) != value for name, value in wanted.items()) or "openid" not in asked["scope"].split():
            return Response("not what this provider gives", 400)
        code = secrets.token_urlsafe(16)
        self._asked[code] = dict(asked)
        return RedirectResponse(f"{asked['redirect_uri']}?{urlencode({'code': code, 'state': asked['state']})}", 302)

    async def token(self, request: Request) -> Response:
        form = await request.form()
        asked = self._asked.pop(str(form.get("code")), None)
        given = request.headers.get("authorization", "")
        known = "Basic " + base64.b64encode(f"{CLIENT}:{self.secret}".encode()).decode()
        if asked is None or given != known or not _follows(asked, str(form.get("code_verifier"))):
            return JSONResponse({"error": "invalid_grant"}, 400)
        id_token = jwt.encode({"alg": "RS256", "kid": self.shown.kid}, self._said(asked), self.signs or self.shown)
        return JSONResponse({"access_token": secrets.token_urlsafe(16), "token_type": "Bearer", "id_token": id_token})

    def end(self, request: Request) -> Response:
        """Logs out here too, and sends the browser back."""
        self.ended.append(request.query_params["client_id"])
        return RedirectResponse(request.query_params["post_logout_redirect_uri"], 302)

    def _said(self, asked: Mapping[str, str]) -> dict[str, Any]:
        now = int(time.time())
        about = {"iss": self.url, "aud": CLIENT, "sub": "1", "iat": now, "exp": now + 300, "nonce": asked["nonce"]}
        return {**about, **self.claims}


def _follows(asked: Mapping[str, str], verifier: str) -> bool:
    """Whether who fetches the token is who asked for the code (RFC 7636, S256)."""
    digest = base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).rstrip(b"=").decode()
    return asked["code_challenge"] == digest


@contextmanager
def providing() -> Iterator[Provider]:
    """It answers on a name that is not the dashboard's, as a provider elsewhere does."""
    port = free_port()
    provider = Provider(f"http://127.0.0.1:{port}")
    routes = [
        Route("/.well-known/openid-configuration", provider.metadata),
        Route("/keys", provider.keys),
        Route("/authorization", provider.authorize),
        Route("/token", provider.token, methods=["POST"]),
        Route("/end", provider.end),
    ]
    server = uvicorn.Server(uvicorn.Config(Starlette(routes=routes), host="127.0.0.1", port=port, log_level="warning"))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    try:
        _wait_until_started(server, thread)
        yield provider
    finally:
        server.should_exit = True
        thread.join(STOP_SECONDS)


def _wait_until_started(server: uvicorn.Server, thread: threading.Thread) -> None:
    end = time.monotonic() + START_SECONDS
    while not server.started:
        if not thread.is_alive() or time.monotonic() > end:
            raise RuntimeError("the provider did not start")
        time.sleep(0.05)
