"""What a study file must hold, checked before any of it is kept. Whoever wrote the file may have meant harm."""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass

import numpy as np

from cache import key_for
from cache.codec import CorruptEntry, decode
from engine.data.picture_files import LONGEST_SIDE, open_picture
from engine.errors import ExegesisError, shown
from engine.request import Example, Picture
from engine.result import Prediction, Token
from engine.study.codes import ALPHABET
from engine.study.design import BY_SIGN, PREDICT, Design, check, counted_items
from engine.study.file_values import (
    LAST_TIME,
    a_list,
    base64_bytes,
    bounded,
    fields,
    mapping,
    number,
    text,
    time,
    true_or_false,
    whole,
    wrong,
)
from engine.study.freezing import FrozenItem, png
from engine.study.tables import Item, Plain, Shown
from engine.study.voting import LONGEST_LOOK, Guess

FORMAT, VERSION = "exegesis study", 1
_PSEUDONYM = re.compile(rf"p-[{ALPHABET}]{{8}}")
_LONGEST_LABEL = 1_000
_MOST_TOKENS = 100_000


@dataclass(frozen=True)
class Answered:
    """One answer of the file. `item` is its place; the rest as in the table of votes."""

    annotator: str
    item: int
    repeat: int
    order: tuple[int, ...]
    ranks: tuple[int, ...] | None
    guess: Plain | None
    seconds: float
    at: float


@dataclass(frozen=True)
class Content:
    """A file that may be trusted as far as one can check. `votes`: None where the file has none to tell of."""

    digest: str
    design: Design
    opened: float | None
    closed: float | None
    items: tuple[FrozenItem, ...]
    votes: tuple[Answered, ...] | None


def read_content(data: bytes) -> Content:
    """The checked content. Errors: one sentence with the place in the file."""
    head = _parsed(data)
    if head.get("format") != FORMAT:
        raise ExegesisError("FILE: is not a study file. Make one with: exegesis study export ID --out FILE.")
    if type(head.get("version")) is not int or head["version"] != VERSION:
        raise ExegesisError(
            f"FILE: is of version {shown(head.get('version'))}, and this Exegesis reads {VERSION}. Update Exegesis, or "
            "export the study with this version."
        )
    content = fields("content", head.get("content"), "design", "opened", "closed", "items", "votes")
    if _digest(content) != head.get("digest"):
        raise ExegesisError("FILE: was changed after it was written, or is damaged. Export the study again.")
    return _checked(content, str(head["digest"]))


def _digest(content: Plain) -> str | None:
    try:
        return key_for(content)
    except RecursionError:  # nested so deeply that nobody wrote it
        return None


def _checked(content: Plain, digest: str) -> Content:
    design = check(Design.from_plain({"colors": BY_SIGN, **mapping("design", content["design"])}))
    items = tuple(_item(n, one, design) for n, one in enumerate(a_list("items", content["items"])))
    _check_items(items, design)
    votes = None if content["votes"] is None else _votes(content["votes"], items, design)
    opened, closed = (time(name, content[name]) for name in ("opened", "closed"))
    return Content(digest, design, opened, closed, items, votes)


def _parsed(data: bytes) -> Plain:
    try:
        found = json.loads(data.decode("utf-8-sig"), parse_constant=_no_constant)
    except (ValueError, RecursionError):
        raise ExegesisError("FILE: is not JSON, so it is no study file. Export the study again.") from None
    return mapping("FILE", found)


def _check_items(items: Sequence[FrozenItem], design: Design) -> None:
    wanted = [True] * design.practice + [False] * counted_items(design)
    if items and [one.item.practice for one in items] != wanted:
        raise wrong("items", f"{design.practice} for practice and then {counted_items(design)}, or none", len(items))


def _item(place: int, given: object, design: Design) -> FrozenItem:
    where = f"items[{place}]"
    one = fields(where, given, "practice", "input", "picture", "label", "prediction", "shown")
    label = None if one["label"] is None else text(f"{where}.label", one["label"], _LONGEST_LABEL)
    said = _prediction(f"{where}.prediction", one["prediction"])
    if design.mode == PREDICT and (said.regression or len(said.labels) < 2):
        raise wrong(f"{where}.prediction", "of two classes or more in a study of guesses", said.labels)
    maps = a_list(f"{where}.shown", one["shown"])
    if len(maps) != len(design.shown):
        raise wrong(f"{where}.shown", f"{len(design.shown)} explanations", len(maps))
    item = Item(
        place=place,
        practice=true_or_false(f"{where}.practice", one["practice"]),
        label=label,
        prediction=asdict(said),
        **_input(where, one, design.kind),
    )
    spans = _lengths(item.input)
    return FrozenItem(item, tuple(_shown(f"{where}.shown[{n}]", n, each, design, spans) for n, each in enumerate(maps)))


def _input(where: str, one: Plain, kind: str) -> Plain:
    """The columns of an item's input. A picture's PNG is written anew: what else was in the file is not passed on."""
    if kind == "text":
        given = fields(f"{where}.input", one["input"], "text", "text_pair")
        first, second = f"{where}.input.text", given["text_pair"]
        example = Example(text(first, given["text"]), None if second is None else text(f"{first}_pair", second))
        example.check_length()
        return {"input": example.as_plain(), "picture": None}
    given = fields(f"{where}.input", one["input"], "picture")
    picture = Picture(open_picture(base64_bytes(f"{where}.picture", one["picture"]), f"FILE: {where}.picture"))
    if picture.digest != given["picture"]:
        raise wrong(f"{where}.picture", f"the picture of {shown(given['picture'])}, of at most {LONGEST_SIDE} pixels")
    return {"input": picture.as_plain(), "picture": png(picture)}


def _lengths(given: Plain) -> tuple[int, ...]:
    """Characters of each text, for the spans of its tokens; patches have none."""
    texts = [given[name] for name in ("text", "text_pair") if given.get(name) is not None]
    return tuple(map(len, texts)) or (0,)


def _prediction(where: str, given: object) -> Prediction:
    one = fields(where, given, "labels", "logits", "probabilities", "regression")
    labels = tuple(text(f"{where}.labels", label, _LONGEST_LABEL) for label in a_list(f"{where}.labels", one["labels"]))
    logits, probabilities = (
        tuple(number(f"{where}.{name}", value) for value in a_list(f"{where}.{name}", one[name]))
        for name in ("logits", "probabilities")
    )
    regression = true_or_false(f"{where}.regression", one["regression"])
    fits = bool(logits) and (regression or len(labels) == len(logits) == len(probabilities))
    if not fits or not all(0 <= p <= 1 for p in probabilities):
        raise wrong(where, "a label, a logit and a probability for each class")
    return Prediction(labels, logits, probabilities, regression)


def _shown(where: str, place: int, given: object, design: Design, lengths: Sequence[int]) -> Shown:
    one = fields(where, given, "body", "digest", "provenance")
    body = base64_bytes(f"{where}.body", one["body"])
    if hashlib.sha256(body).hexdigest() != one["digest"]:
        raise wrong(f"{where}.digest", "that of the explanation", one["digest"])
    _check_map(f"{where}.body", body, design.kind, lengths)
    made = mapping(f"{where}.provenance", one["provenance"])
    if made.get("method") != design.shown[place].id:
        raise wrong(f"{where}.provenance.method", design.shown[place].id, made.get("method"))
    return Shown(place=place, body=body, provenance=made, digest=one["digest"])


def _check_map(where: str, body: bytes, kind: str, lengths: Sequence[int]) -> None:
    """Whether the page can draw it: tokens with a finite score each, and for a picture a grid that they fill."""
    try:
        meta, arrays = decode(body)
    except CorruptEntry as error:
        raise ExegesisError(f"FILE: {where}: is no explanation ({error}).") from None
    meta = fields(where, meta, "tokens", "grid", "truncated")
    tokens = [_token(f"{where}.tokens", one, lengths) for one in a_list(f"{where}.tokens", meta["tokens"])]
    scores = arrays.get("scores", np.zeros(0))
    if not 0 < len(tokens) <= _MOST_TOKENS or scores.shape != (len(tokens),) or arrays.keys() != {"scores"}:
        raise wrong(where, "tokens with one score each")
    if scores.dtype.kind != "f" or not np.isfinite(scores).all():
        raise wrong(where, "finite scores")
    whole(f"{where}.truncated", meta["truncated"])
    _check_grid(f"{where}.grid", meta["grid"], kind, sum(not token.special for token in tokens))


def _check_grid(where: str, given: object, kind: str, patches: int) -> None:
    if kind == "text":
        if given is not None:
            raise wrong(where, "none for a text", given)
        return
    sides = [whole(where, side) for side in a_list(where, given)]
    if len(sides) != 2 or math.prod(sides) != patches:
        raise wrong(where, f"rows and columns of {patches} patches", given)


def _token(where: str, given: object, lengths: Sequence[int]) -> Token:
    parts = a_list(where, given)
    kinds = (str, int, int, int, bool)
    if len(parts) != len(kinds) or any(type(part) is not kind for part, kind in zip(parts, kinds, strict=True)):
        raise wrong(where, "a text, start, end, segment, and whether it is special", given)
    token = Token(text(where, parts[0]), *parts[1:])
    if token.special:
        fits = (token.start, token.end, token.segment) == (0, 0, -1)
    else:
        fits = 0 <= token.segment < len(lengths) and 0 <= token.start <= token.end <= lengths[token.segment]
    if not fits:
        raise wrong(where, "a piece of one of the texts, or a special token, which is of none", given)
    return token


def _votes(given: object, items: Sequence[FrozenItem], design: Design) -> tuple[Answered, ...]:
    found = tuple(_vote(f"votes[{n}]", one, items, design) for n, one in enumerate(a_list("votes", given)))
    if len({(vote.annotator, vote.item, vote.repeat) for vote in found}) < len(found):
        raise wrong("votes", "one answer of a person to each look")
    return found


def _vote(where: str, given: object, items: Sequence[FrozenItem], design: Design) -> Answered:
    one = fields(where, given, "annotator", "item", "repeat", "order", "ranks", "guess", "seconds", "at")
    annotator = text(f"{where}.annotator", one["annotator"], 100)
    if not _PSEUDONYM.fullmatch(annotator):
        raise wrong(f"{where}.annotator", "a pseudonym such as p-23456789", annotator)
    item = whole(f"{where}.item", one["item"], len(items) - 1)
    order = tuple(whole(f"{where}.order", place, len(design.shown) - 1) for place in a_list(where, one["order"]))
    wanted = {0, 1} if design.mode == PREDICT else {len(design.shown)}
    if len(order) not in wanted or len(set(order)) < len(order):
        raise wrong(f"{where}.order", "the places of the methods that were shown, each once", one["order"])
    return Answered(
        annotator=annotator,
        item=item,
        repeat=whole(f"{where}.repeat", one["repeat"], 1),
        order=order,
        ranks=_ranks(f"{where}.ranks", one["ranks"], len(order), design),
        guess=_guess(f"{where}.guess", one["guess"], items[item], design),
        seconds=bounded(f"{where}.seconds", one["seconds"], LONGEST_LOOK),
        at=bounded(f"{where}.at", one["at"], LAST_TIME),
    )


def _ranks(where: str, given: object, places: int, design: Design) -> tuple[int, ...] | None:
    if given is None:
        return None
    ranks = tuple(whole(where, rank, places) for rank in a_list(where, given))
    if design.mode == PREDICT or len(ranks) != places or 0 in ranks:
        raise wrong(where, f"{places} numbers from 1 in a study of rankings, none in one of guesses", given)
    return ranks


def _guess(where: str, given: object, item: FrozenItem, design: Design) -> Plain | None:
    if given is None:
        return None
    one = fields(where, given, "label", "sure")
    if design.mode != PREDICT:
        raise wrong(where, "none in a study of rankings", given)
    whole(f"{where}.label", one["label"], len(item.item.prediction["labels"]) - 1)
    return Guess(one["label"], whole(f"{where}.sure", one["sure"])).as_plain()


def _no_constant(name: str) -> float:
    raise ValueError(name)
