"""Study files that were tampered with, or made to do harm, are refused whole, in one sentence."""

from __future__ import annotations

import copy
import hashlib
import random
from base64 import b64decode, b64encode
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from cache.codec import decode, encode
from components.ballot_maps import explanation_html
from engine.errors import ExegesisError
from engine.study import studies
from engine.study.ballots import BallotMap
from engine.study.counted_votes import counted_votes
from engine.study.items import decode_map, item_input
from engine.study.study_file import import_study, read_study_file
from tests.unit.study.files import File, content_of, sealed, written

pytestmark = pytest.mark.usefixtures("store")


def studies_here() -> int:
    return len(studies.list_studies())


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "is not JSON"),
        (b"\xff\xfe", "is not JSON"),
        (b"PK\x03\x04" + b"\0" * 100, "is not JSON"),
        (b"[" * 200_000, "is not JSON"),
        (b'{"format": NaN}', "is not JSON"),
        (b"[]", "must be an object with named values"),
        (b"{}", "is not a study file"),
        (sealed({}, version=2), "has format version 2, but this version of Exegesis reads 1. Update Exegesis"),
        (sealed({}, version=True), "has format version True"),
        (sealed({}), "content: must be the fields design, opened, closed, items, votes"),
        (sealed({"design": {}, "opened": 1, "closed": 1, "items": [], "votes": None}, digest="0"), "was changed after"),
        (
            b'{"format": "exegesis study", "version": 1, "digest": "", "content": %s}' % (b"[" * 600 + b"]" * 600),
            "FILE",
        ),
    ],
)
def test_what_is_no_study_file_is_refused(data: bytes, said: str) -> None:
    with pytest.raises(ExegesisError, match=said):
        import_study(data)
    assert studies_here() == 0


def other_tokens(content: File, tokens: list[Any], scores: int) -> None:
    """An explanation that is sound by its digest."""
    one = content["items"][0]["shown"][0]
    body = encode({"tokens": tokens, "grid": None, "truncated": 0}, {"scores": np.ones(scores)})
    one["body"], one["digest"] = b64encode(body).decode(), hashlib.sha256(body).hexdigest()


def tokens_of(content: File) -> list[Any]:
    found: list[Any] = decode(b64decode(content["items"][0]["shown"][0]["body"]))[0]["tokens"]
    return found


HOSTILE: dict[str, tuple[Callable[[File], Any], str]] = {
    "another body": (lambda c: c["items"][1]["shown"][0].update(body="AAAA"), r"items\[1\].shown\[0\].digest: must be"),
    "no base64": (lambda c: c["items"][0]["shown"][0].update(body="é"), r"body: must be base64"),
    "scores that do not fit": (
        lambda c: other_tokens(c, [["a", 0, 1, 0, False]] * 2, 1),
        "must be tokens with one score each",
    ),
    "another method": (lambda c: c["items"][0]["shown"][0]["provenance"].update(method="lime"), "must be gradient"),
    "one explanation less": (lambda c: c["items"][0]["shown"].pop(), "must be 3 explanations, got 2"),
    "one item less": (lambda c: c["items"].pop(), "items: must be 1 practice item and then 3 others, or empty, got 3"),
    "practice last": (lambda c: c["items"].reverse(), "items: must be 1 practice item"),
    "a path": (lambda c: c["items"][0].update(input={"text": "x", "text_pair": None, "path": "/etc/passwd"}), "fields"),
    "half a character": (lambda c: c["items"][0]["input"].update(text="\ud800"), "whole characters"),
    "NUL": (lambda c: c["items"][0].update(label="a\0"), "label: must be a text"),
    "an infinite logit": (lambda c: c["items"][0]["prediction"].update(logits=[1e300, 1]), "must be a number"),
    "a class too many": (lambda c: c["items"][0]["prediction"]["labels"].append("x"), "a label, a logit and"),
    "a probability above 1": (
        lambda c: c["items"][0]["prediction"].update(probabilities=[0.5, 1.5]),
        "a label, a logit and a probability",
    ),
    "an unknown method": (lambda c: c["design"]["methods"][0].update(id="gradeint"), "Did you mean 'gradient'"),
    "an unknown field": (lambda c: c["design"].update(run="rm -rf"), "design: unknown name 'run'"),
    "a person's name": (lambda c: c["votes"][0].update(annotator="Anna"), "annotator: must be a pseudonym"),
    "an item that is not there": (lambda c: c["votes"][0].update(item=4), r"item: must be a whole number from 0 to 3"),
    "a place twice": (lambda c: c["votes"][0].update(order=[0, 0, 1]), "each once"),
    "no such rank": (lambda c: c["votes"][0].update(ranks=[0, 1, 2]), "3 ranks from 1"),
    "a guess": (lambda c: c["votes"][0].update(guess={"label": 0, "sure": 1}), "null in a study of rankings"),
    "a vote twice": (lambda c: c["votes"].append(c["votes"][0]), "at most one answer per person, item and repeat"),
    "a true number": (lambda c: c["votes"][0].update(repeat=True), "repeat: must be a whole number"),
    "another time": (lambda c: c.update(opened="now"), "opened: must be a number"),
    "too long a look": (lambda c: c["votes"][0].update(seconds=1e9), "seconds: must be a number from 0 to 86400"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_content_is_refused_whole(name: str) -> None:
    change, said = HOSTILE[name]
    content = copy.deepcopy(content_of(written("text")))
    change(content)
    before = studies_here()
    with pytest.raises(ExegesisError, match=said):
        import_study(sealed(content))
    assert studies_here() == before


def test_a_picture_is_what_its_digest_says() -> None:
    content = copy.deepcopy(content_of(written("image")))
    items = content["items"]
    items[0]["picture"], items[1]["picture"] = items[1]["picture"], items[0]["picture"]
    with pytest.raises(ExegesisError, match=r"items\[0\].picture: must be the picture with the digest"):
        import_study(sealed(content))
    items[0]["picture"] = b64encode(b"\x89PNG\r\n\x1a\n" + b"\0\0\0\rIHDR" + b"\x00\x01\x00\x00" * 2).decode()
    with pytest.raises(ExegesisError, match=r"items\[0\].picture"):
        import_study(sealed(content))


def test_whatever_is_in_a_file_the_answer_is_a_sentence_or_a_study() -> None:
    """A value somewhere in the file is replaced by another kind of value; the seal fits."""
    for seed in range(60):
        chance = random.Random(seed)
        content = copy.deepcopy(content_of(written("text")))
        for _ in range(chance.randint(1, 2)):
            holder, place = chance.choice(list(places(content)))
            holder[place] = chance.choice([None, True, -1, 2**70, 1.5, "", "x" * 50, "\ud83d", [], {}, [[]], {"": 0}])
        before = studies_here()
        try:
            import_study(sealed(content))
        except ExegesisError:
            assert studies_here() == before, f"seed {seed}"


@pytest.mark.parametrize(
    ("start", "end", "segment", "special"),
    [
        (0, 1, 1, False),
        (0, 1, -1, False),
        (0, 1, 10**30, False),
        (-1, 1, 0, False),
        (2, 1, 0, False),
        (0, 10**6, 0, False),
        (0, 1, -1, True),
        (0, 0, 0, True),
    ],
)
def test_a_token_is_a_piece_of_its_text(start: int, end: int, segment: int, special: bool) -> None:
    content = copy.deepcopy(content_of(written("text")))
    tokens = tokens_of(content)
    other_tokens(content, [["a", start, end, segment, special], *tokens[1:]], len(tokens))
    with pytest.raises(ExegesisError, match=r"items\[0\].shown\[0\].body.tokens: must be a span of one of the texts"):
        import_study(sealed(content))


def test_whatever_tokens_a_file_holds_what_is_taken_can_be_drawn() -> None:
    taken = 0
    for seed in range(20):
        chance, content = random.Random(seed), copy.deepcopy(content_of(written("text")))
        tokens = tokens_of(content)
        for _ in range(chance.randint(0, 2)):
            chance.choice(tokens)[chance.randint(1, 4)] = chance.choice([-1, 0, 1, 2, 3, 40, 10**30, True, "a", None])
        chance.shuffle(tokens)
        other_tokens(content, tokens, len(tokens))
        try:
            item = read_study_file(sealed(content)).items[0]
        except ExegesisError:
            continue
        seen = decode_map(item.explanations[0])
        assert explanation_html(item_input(item), BallotMap("A", seen.tokens, seen.scores, None, 0, "sign")), (
            f"seed {seed}"
        )
        taken += 1
    assert taken


def test_flipped_bits_are_noticed() -> None:
    whole = written("text")
    for seed in range(60):
        chance, data = random.Random(seed), bytearray(whole)
        data[chance.randrange(whole.index(b'"content"'), len(data))] ^= 1 << chance.randrange(8)
        try:
            there = import_study(bytes(data))
        except ExegesisError:
            continue
        assert content_of(bytes(data)) == content_of(whole), f"seed {seed}: white space alone may differ"
        assert counted_votes(there.id)


def places(value: object) -> Any:
    """Every place in a tree of JSON, as its holder and the name or number in it."""
    pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for place, below in list(pairs):
        yield value, place
        yield from places(below)
