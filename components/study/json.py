"""Ballots and answers as JSON. Nothing here says which method made an explanation."""

from __future__ import annotations

import base64
import io
from collections.abc import Mapping
from typing import Any

from components.ballot_maps import END
from components.palette import step_of
from engine.errors import not_allowed, unknown
from engine.request import Example, Input
from engine.result import Prediction, Token
from engine.study.ballots import Ballot, Map
from engine.study.codes import is_token
from engine.study.voting import Answer, Guess
from engine.words import Unit, units

_FIELDS = ("ballot", "token", "ranks", "guess", "seconds")


def ballot_json(given: Ballot) -> dict[str, Any]:
    """What a participant is shown, as the page shows it; a picture is a PNG in base64.

    Of a score its step of colour is told, a whole number from -20 (against) to 20 (for): digits would say more than a
    colour, and of how it was computed.
    """
    return {
        "token": given.token,
        "input": _input(given.input),
        "prediction": None if given.prediction is None else _prediction(given.prediction),
        "classes": list(given.classes),
        "explanations": [_explanation(given.input, one) for one in given.maps],
        "practice": given.practice,
        "done": given.done,
        "of": given.of,
    }


def read_answer(said: Mapping[str, Any]) -> Answer:
    """What a client sent, each value checked for its kind; whether it fits the ballot is seen when it is confirmed."""
    for name in said:
        if name not in _FIELDS:
            raise unknown("answer", name, _FIELDS)
    return Answer(
        ballot=read_token(said, "ballot"),
        token=read_token(said, "token"),
        ranks=_ranks(said.get("ranks")),
        seconds=_seconds(said.get("seconds", 0)),
        guess=_guess(said.get("guess")),
    )


def read_token(said: Mapping[str, Any], name: str) -> str:
    """A token of the server's or of the client's own."""
    given = said.get(name)
    if not isinstance(given, str) or not is_token(given):
        raise not_allowed(name, "letters, digits, - and _", given)
    return given


def _input(given: Input) -> dict[str, Any]:
    if isinstance(given, Example):
        return {"text": given.text, "text_pair": given.text_pair}
    from PIL import Image

    file = io.BytesIO()
    Image.fromarray(given.pixels).save(file, format="PNG")
    return {"png": base64.b64encode(file.getvalue()).decode()}


def _prediction(given: Prediction) -> dict[str, Any]:
    if given.regression:
        return {"score": given.logits[0]}
    return {"label": given.label, "labels": list(given.labels), "probabilities": list(given.probabilities)}


def _explanation(given: Input, one: Map) -> dict[str, Any]:
    parts = _parts(given, one)
    return {
        "place": one.place,
        "tokens": [[part.text, part.start, part.end, part.segment] for part, _ in parts],
        "steps": [_step(score) for _, score in parts],
        "grid": one.grid,
        "truncated": one.truncated,
    }


def _parts(given: Input, one: Map) -> list[tuple[Token | Unit, float]]:
    """What has a colour of its own: patches row by row, and of a text what can be told apart in it.

    The model's special tokens are left out, which nobody is shown.
    """
    if isinstance(given, Example):
        return [(unit, unit.score) for unit in units(one.tokens, one.scores, given) if not unit.special]
    return [(token, score) for token, score in zip(one.tokens, one.scores.tolist(), strict=True) if not token.special]


def _step(score: float) -> int:
    step = step_of(score, END)
    return -step if score < 0 else step


def _ranks(given: object) -> tuple[int, ...] | None:
    if given is None:
        return None
    if not isinstance(given, list) or any(type(rank) is not int for rank in given):
        raise not_allowed("ranks", "a list of whole numbers, or null", given)
    return tuple(given)


def _seconds(given: object) -> int | float:
    if isinstance(given, bool) or not isinstance(given, int | float):
        raise not_allowed("seconds", "a number", given)
    return given


def _guess(given: object) -> Guess | None:
    if given is None:
        return None
    if not isinstance(given, Mapping) or given.keys() != {"label", "sure"}:
        raise not_allowed("guess", '{"label": ..., "sure": ...}, or null', given)
    return Guess(**given)
