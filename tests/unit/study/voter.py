"""A participant who takes part over HTTP, as a client of the study's addresses would."""

from __future__ import annotations

import http.client
import json
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from engine.study.access import new_token

TIMEOUT_SECONDS = 120


class Unreached(Exception):
    """The server did not answer: whether it did what was asked is not known."""


@dataclass
class Voter:
    """`acknowledged`: tokens of the votes that the server confirmed. `unsure`: an answer that it did not answer."""

    link: str
    code: str = ""
    acknowledged: list[str] = field(default_factory=list)
    unsure: dict[str, Any] | None = None
    through: bool = False

    def vote(self, server: str) -> None:
        """Answers what is left. Errors: `Unreached`; called again, it goes on where it was."""
        if not self.code:
            self.code = self.ask(server, "POST", "join")["code"]
        self.ask(server, "POST", "consent")
        while not self.through:
            self._confirm(server, self.unsure or self._answer(server))

    def ask(self, server: str, method: str, what: str, said: object = None) -> dict[str, Any]:
        """The server's answer, which must not be an error."""
        status, told = self.request(server, method, what, said)
        assert status == 200, told
        return told

    def request(self, server: str, method: str, what: str, said: object = None) -> tuple[int, dict[str, Any]]:
        """The status and the JSON of one request over a connection of its own."""
        headers = {"Content-Type": "application/json", "Authorization": f"Bearer {self.code}"}
        link = http.client.HTTPConnection(urlsplit(server).netloc, timeout=TIMEOUT_SECONDS)
        try:
            link.request(method, f"/api/study/{self.link}/{what}", json.dumps(said or {}), headers)
            answer = link.getresponse()
            return answer.status, json.loads(answer.read())
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise Unreached from error
        finally:
            link.close()

    def _answer(self, server: str) -> dict[str, Any] | None:
        ballot = self.ask(server, "GET", "ballot")["ballot"]
        if ballot is None:
            return None
        ranks = list(range(1, 1 + len(ballot["explanations"])))
        return {"ballot": ballot["token"], "token": new_token(), "ranks": ranks, "seconds": 1.5}

    def _confirm(self, server: str, answer: dict[str, Any] | None) -> None:
        self.through = answer is None
        if answer is not None:
            self.unsure = answer
            self.acknowledged.append(self.ask(server, "POST", "answer", answer)["token"])
            self.unsure = None
