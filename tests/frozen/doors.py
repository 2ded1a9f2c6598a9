"""All that the frozen tests import of the project: its public doors. Where one moves, this file alone follows.

The command line, the kinds of jobs, cache keys, each page's link. Nothing that is behind them is named here.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import typer
from typer.testing import CliRunner

import cache.codec
from components.adversarial import state as adversarial
from components.attention import state as attention
from components.behavior.view import SESSION as BEHAVIOR
from components.compare import state as compare
from components.evaluate.view import SESSION as EVALUATION
from components.experiment import state as experiment
from components.images import state as picture_page
from components.inputs.datasets import OpenPictures, OpenTexts, open_pictures, open_texts
from components.randomization.view import SESSION as RANDOMIZATION
from components.reproduction import state as reproduction
from components.scaffold import state as scaffold
from components.text import state as text
from engine import shipped
from engine.attacks.attack import attack_key, transfer_key
from engine.attacks.plan import AttackRequest
from engine.cli.root import app
from engine.errors import ExegesisError
from engine.explain import key_of as explanation_key
from engine.heads.readings import switching_key
from engine.jobs import kind_of
from engine.metrics.agreement import disagreement_keys
from engine.models import catalog
from engine.predictions import keys_by_digest, prediction_keys
from engine.registry import all_explainers, explainer
from engine.request import Example, HeadScales, Input, Picture, Request
from engine.store import result_store

__all__ = [
    "AttackRequest",
    "Example",
    "ExegesisError",
    "HeadScales",
    "Input",
    "Picture",
    "Request",
    "attack_key",
    "catalog",
    "disagreement_keys",
    "explanation_key",
    "keys_by_digest",
    "prediction_keys",
    "switching_key",
    "transfer_key",
]


def told(error: Exception) -> str:
    """What an error says, without the list of all methods, which may grow."""
    return scrubbed(str(error))


def scrubbed(sentence: str) -> str:
    """A sentence without the list of all methods."""
    return re.sub(
        r"(?<=Known: )(attention_head|gradient, gradient_l2, gradient_x_input, smoothgrad), [^.]*",
        "(methods)",
        sentence,
    )


def picture(height: int = 12, width: int = 16, step: int = 7) -> Picture:
    """A made-up picture, the same on every machine."""
    numbers = np.arange(height * width * 3, dtype=np.int64) * step % 256
    return Picture(numbers.astype(np.uint8).reshape(height, width, 3))


def options(kind: str, method: str) -> dict[str, dict[str, Any]]:
    """The parameters of a method: default, limits, choices."""
    return {
        one.name: {"default": one.default, **{name: one.metadata.get(name) for name in ("low", "high", "choices")}}
        for one in dataclasses.fields(explainer(method, kind).params)
    }


@contextlib.contextmanager
def key_parts() -> Iterator[dict[str, Any]]:
    """What each key that is formed meanwhile stands for, by the key."""
    formed: dict[str, Any] = {}
    canonical = cache.codec.canonical

    def noted(value: object) -> bytes:
        text = canonical(value)
        formed[cache.codec.hashlib.sha256(text).hexdigest()] = json.loads(text)
        return text

    cache.codec.canonical = noted
    try:
        yield formed
    finally:
        cache.codec.canonical = canonical


def units(kind: str, spec: Mapping[str, Any]) -> list[list[Any]]:
    """The units of a job: key, label, whether it stores its result itself, number of its batch, its step."""
    batches: dict[int, int] = {}
    made = list(kind_of(kind).plan(spec))
    return [
        [
            unit.key,
            unit.label,
            unit.stores_itself,
            None if unit.batch is None else batches.setdefault(id(unit.batch), len(batches)),
            None if unit.step is None else list(dataclasses.astuple(unit.step)),
        ]
        for unit in made
    ]


def title(kind: str, spec: Mapping[str, Any]) -> str:
    """What a job is called."""
    return kind_of(kind).title(spec)


def refusal(kind: str, spec: Mapping[str, Any]) -> str:
    """Why such a job is not entered; empty where it is."""
    try:
        kind_of(kind).check(spec)
    except ExegesisError as error:
        return told(error)
    return ""


Link = Mapping[str, Sequence[str]]


@dataclasses.dataclass(frozen=True)
class Page:
    """A page's link. `read`: the state that it opens, with sentences; `write`: the link that reopens a state.

    `asks`: plain values of what a state asks of the engine.
    """

    read: Callable[[dict[str, list[str]]], tuple[Any, list[str]]]
    write: Callable[[Any], dict[str, list[str]]]
    asks: Callable[[Any], Any] = lambda state: None


def pages() -> dict[str, Page]:
    """By name and kind of input, the pages whose state stands in their link."""
    texts, pictures = catalog.embedded_models(), catalog.embedded_image_models()
    found = {
        "text": Page(
            lambda query: text.read_state(query, texts, _methods("text"), _data(query)), text.write_state, _seen
        ),
        "images": Page(
            lambda query: picture_page.read_state(query, pictures, _methods("image"), _pictures(query)),
            picture_page.write_state,
            _seen,
        ),
        "compare, text": Page(
            lambda query: compare.read_state("text", query, texts, _data(query)), compare.write, _seen
        ),
        "compare, picture": Page(
            lambda query: compare.read_state("image", query, pictures, _pictures(query)), compare.write, _seen
        ),
        "reproduction": Page(
            reproduction.read, reproduction.write, lambda state: [_plain(one) for one in state.thesis_queries]
        ),
    }
    for kind, word, models, opens in (("text", "text", texts, _data), ("image", "picture", pictures, _pictures)):
        found[f"attention, {word}"] = Page(
            lambda query, kind=kind, models=models, opens=opens: attention.read_state(
                kind, query, models, _methods(kind), opens(query)
            ),
            attention.write,
            _explained,
        )
        found[f"adversarial, {word}"] = Page(
            lambda query, kind=kind, models=models, opens=opens: adversarial.read_state(
                kind, query, models, _methods(kind), opens(query)
            ),
            adversarial.write,
            _attacked,
        )
    for kind, word in (("text", "text"), ("image", "picture")):
        for name, page in (("evaluate", EVALUATION), ("randomization", RANDOMIZATION)):
            found[f"{name}, {word}"] = Page(
                lambda query, page=page, kind=kind: experiment.read_state(
                    page.experiment, page.view, kind, query, _methods(kind)
                ),
                experiment.write_state,
                lambda state: _plain(experiment.plan_of(state)),
            )
        found[f"scaffold, {word}"] = Page(
            lambda query, kind=kind: scaffold.read_state(kind, query),
            scaffold.write_state,
            lambda state: _plain(scaffold.plan_of(state)),
        )
    found["behavior, text"] = Page(
        lambda query: experiment.read_state(BEHAVIOR.experiment, BEHAVIOR.view, "text", query, _methods("text")),
        experiment.write_state,
        lambda state: _plain(experiment.plan_of(state)),
    )
    return found


def _methods(kind: str) -> Any:
    return all_explainers(kind)


def _data(query: Link) -> OpenTexts:
    return open_texts((query.get("data") or [""])[-1] or "reviews")


def _pictures(query: Link) -> OpenPictures:
    return open_pictures((query.get("data") or [""])[-1] or "scenes", (query.get("split") or [""])[-1])


def _plain(asked: Any) -> Any:
    return asked.as_plain()


def _seen(state: Any) -> Any:
    """What is looked at, by the beginning of a hash."""
    looked_at = getattr(state, "input", None) or getattr(state, "example", None) or getattr(state, "picture", None)
    return {"sees": None if looked_at is None else cache.key_for(looked_at.as_plain())[:12]}


def _explained(state: Any) -> Any:
    return {**_seen(state), "key": explanation_key(state.request(state.method))}


def _attacked(state: Any) -> Any:
    return {
        **_seen(state),
        "keys": [attack_key(state.request(one)) for one in state.objectives],
        **_plain(state.plan()),
    }


@dataclasses.dataclass(frozen=True)
class Ran:
    """How a command ended and what it printed."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


def run(arguments: Sequence[str]) -> Ran:
    """A command, in this process."""
    done = CliRunner().invoke(app, list(arguments))
    return Ran(done.exit_code, done.stdout, done.stderr)


def commands() -> list[list[str]]:
    """Every command and group of commands by its words."""

    def below(command: Any, path: list[str]) -> Iterator[list[str]]:
        yield path
        for name, one in getattr(command, "commands", {}).items():
            yield from below(one, [*path, name])

    return list(below(typer.main.get_command(app), []))


def is_kept(key: str) -> bool:
    """Whether the cache of this home holds it; what is shipped is not meant."""
    return not shipped.find(key) and result_store().contains(key)


def kept(key: str) -> tuple[Any, Any]:
    """A record's plain values and its arrays."""
    entry = result_store().get(key)
    assert entry is not None
    return entry
