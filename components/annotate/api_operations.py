"""Operations of the HTTP interface, and conversion of ballots and answers from and to JSON.

No response reveals the method of an explanation.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from components.annotate.api import JsonObject, StudyRequest
from components.annotate.seat import failure_message
from components.ballot_maps import END
from components.palette import step_of
from engine.errors import ExegesisError, UsageError, not_allowed, unknown
from engine.request import Example, Input, Picture
from engine.result import Prediction, Token
from engine.study.access import TooManyAttempts, is_token
from engine.study.annotators import (
    Answer,
    Guess,
    StudyNotOpen,
    UnknownIdentifier,
    confirm,
    consent,
    identify,
    join,
    undo,
)
from engine.study.ballots import Ballot, BallotMap, next_ballot
from engine.study.database import InvalidAddress
from engine.study.items import encode_png
from engine.study.studies import find
from engine.word_units import Unit, units

STATUSES: Mapping[type, int] = {
    StudyNotOpen: 403,
    UnknownIdentifier: 404,
    TooManyAttempts: 429,
    InvalidAddress: 503,
    UsageError: 400,
}
"""HTTP status by error; 503 for any other `ExegesisError`."""
_FIELDS = ("ballot", "token", "ranks", "guess", "seconds")


def perform(name: str, request: StudyRequest) -> tuple[JsonObject, int]:
    """Perform an operation and return the body and the status of the response.

    Only an `ExegesisError` is caught. The server logs other errors and responds with 500.
    """
    try:
        return _OPERATIONS[name](request), 200
    except ExegesisError as error:
        status = next((STATUSES[kind] for kind in type(error).__mro__ if kind in STATUSES), 503)
        return {"error": failure_message(error, "somebody over HTTP")}, status


def _join(request: StudyRequest) -> JsonObject:
    person, code = join(request.link, request.source)
    design = find(person.study).design
    texts = {name: getattr(design, name) for name in ("title", "question", "consent", "instructions", "mode")}
    return {"code": code, **texts}


def _consent(request: StudyRequest) -> JsonObject:
    return {"agreed": consent(_person(request)).consented}


def _ballot(request: StudyRequest) -> JsonObject:
    ballot = next_ballot(_person(request))
    return {"ballot": None if ballot is None else ballot_json(ballot)}


def _answer(request: StudyRequest) -> JsonObject:
    confirmed = confirm(_person(request), read_answer(request.body))
    return {"token": confirmed.token, "before": confirmed.before}


def _undo(request: StudyRequest) -> JsonObject:
    return {"ballot": undo(_person(request), _read_token(request.body, "token"))}


_OPERATIONS = {"join": _join, "consent": _consent, "ballot": _ballot, "answer": _answer, "undo": _undo}


def _person(request: StudyRequest) -> int:
    """Return the id of the participant. Errors: an unknown code, or too many wrong codes."""
    return identify(request.link, request.code, request.source).id


def ballot_json(ballot: Ballot) -> dict[str, Any]:
    """Return the ballot as the page shows it; a picture is a PNG in base64.

    A score is sent as its color step, a whole number from -20 (against) to 20 (for). Exact digits would reveal more
    than the color does, including how the score was computed.
    """
    return {
        "token": ballot.token,
        "input": _input_json(ballot.input),
        "prediction": None if ballot.prediction is None else _prediction_json(ballot.prediction),
        "classes": list(ballot.classes),
        "edit": None if ballot.edit is None else asdict(ballot.edit),
        "explanations": [_explanation_json(ballot.input, one) for one in ballot.maps],
        "practice": ballot.practice,
        "done": ballot.done,
        "of": ballot.of,
    }


def _input_json(model_input: Input) -> dict[str, Any]:
    if not isinstance(model_input, Picture):
        return {**model_input.as_plain()}
    return {"png": base64.b64encode(encode_png(model_input)).decode()}


def _prediction_json(prediction: Prediction) -> dict[str, Any]:
    if prediction.regression:
        return {"score": prediction.logits[0]}
    return {
        "label": prediction.label,
        "labels": list(prediction.labels),
        "probabilities": list(prediction.probabilities),
    }


def _explanation_json(model_input: Input, one: BallotMap) -> dict[str, Any]:
    parts = _parts(model_input, one)
    return {
        "place": one.place,
        "tokens": [[part.text, part.start, part.end, part.segment] for part, _ in parts],
        "steps": [-step_of(score, END) if score < 0 else step_of(score, END) for _, score in parts],
        "grid": one.grid,
        "truncated": one.truncated,
    }


def _parts(model_input: Input, one: BallotMap) -> list[tuple[Token | Unit, float]]:
    """Return the parts that have a color, with their scores: patches row by row, or the units of a text.

    The model's special tokens are omitted, because participants never see them.
    """
    if isinstance(model_input, Example):
        return [(unit, unit.score) for unit in units(one.tokens, one.scores, model_input) if not unit.special]
    return [(token, score) for token, score in zip(one.tokens, one.scores.tolist(), strict=True) if not token.special]


def read_answer(body: JsonObject) -> Answer:
    """Parse a client's answer and check the types of its values; `confirm` checks them against the ballot."""
    for name in body:
        if name not in _FIELDS:
            raise unknown("answer", name, _FIELDS)
    return Answer(
        ballot=_read_token(body, "ballot"),
        token=_read_token(body, "token"),
        ranks=_read_ranks(body.get("ranks")),
        seconds=_read_seconds(body.get("seconds", 0)),
        guess=_read_guess(body.get("guess")),
    )


def _read_token(body: JsonObject, name: str) -> str:
    """Return a random token of the server or the client from the body. Errors: it is missing or malformed."""
    token = body.get(name)
    if not isinstance(token, str) or not is_token(token):
        raise not_allowed(name, "letters, digits, - and _", token)
    return token


def _read_ranks(ranks: object) -> tuple[int, ...] | None:
    if ranks is None:
        return None
    if not isinstance(ranks, list) or any(type(rank) is not int for rank in ranks):
        raise not_allowed("ranks", "a list of whole numbers, or null", ranks)
    return tuple(ranks)


def _read_seconds(seconds: object) -> int | float:
    if isinstance(seconds, bool) or not isinstance(seconds, int | float):
        raise not_allowed("seconds", "a number", seconds)
    return seconds


def _read_guess(guess: object) -> Guess | None:
    if guess is None:
        return None
    if not isinstance(guess, Mapping) or guess.keys() != {"label", "sure"}:
        raise not_allowed("guess", '{"label": ..., "sure": ...}, or null', guess)
    return Guess(**guess)
