"""A study file: what leaves is what arrives, bit for bit; what was tampered with arrives not at all."""

from __future__ import annotations

import copy
import functools
import hashlib
import json
import random
import tempfile
from base64 import b64decode, b64encode
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sqlalchemy as sa

from cache import key_for
from cache.codec import encode
from engine.errors import ExegesisError
from engine.study import studies, study_file
from engine.study.annotators import join
from engine.study.ballots import next_ballot
from engine.study.database import study_database
from engine.study.freezing import frozen_input, frozen_map, frozen_prediction
from engine.study.results import results
from engine.study.seen import seen
from engine.study.study_file import export_study, import_study
from engine.study.tables import Annotator, Item, Shown, Study
from engine.study.tally import votes_of
from engine.study.voting import confirm
from tests.unit.study.polls import agreed, answer
from tests.unit.study.samples import image_design, text_design

pytestmark = pytest.mark.usefixtures("store")
File = dict[str, Any]


def opened(kind: str) -> int:
    design = text_design if kind == "text" else image_design
    with tempfile.TemporaryDirectory() as folder:
        made = studies.create(design(Path(folder)))
        return studies.open_study(made.id).id


@functools.cache
def written(kind: str) -> bytes:
    """The file of an open study in which two people voted; made once, in the database of the test that asks first."""
    study = opened(kind)
    for ranks in ((1, 2, 3), (3, 1, 1)):
        person = agreed(studies.find(study).token)
        while ballot := next_ballot(person.id):
            confirm(person.id, answer(ballot, *ranks, seconds=4.5))
    return export_study(study, votes=True)


def content_of(data: bytes) -> File:
    content: File = json.loads(data)["content"]
    return content


def sealed(content: object, **head: object) -> bytes:
    """A file of that content whose digest fits."""
    known = {"format": "exegesis study", "version": 1, "exegesis": "0", "digest": key_for(content)}  # type: ignore[arg-type]
    return json.dumps({**known, "content": content, **head}).encode()


def without_votes(kind: str) -> bytes:
    return sealed({**content_of(written(kind)), "votes": None})


def rows_of(study: int) -> tuple[list[Item], list[Shown]]:
    with study_database().reading() as session:
        items = list(session.scalars(sa.select(Item).where(Item.study == study).order_by(Item.place)))
        found = sa.select(Shown).join(Item, Item.id == Shown.item).where(Item.study == study)
        return items, list(session.scalars(found.order_by(Item.place, Shown.place)))


def studies_here() -> int:
    return len(studies.all_studies())


@pytest.mark.parametrize("kind", ["text", "image"])
def test_a_study_made_again_elsewhere_shows_the_same_bit_for_bit(kind: str) -> None:
    content = content_of(written(kind))
    draft = import_study(without_votes(kind))
    assert draft.state == "draft"
    assert draft.design.as_plain() == content["design"]
    there = studies.open_study(draft.id)
    items, shown = rows_of(there.id)
    bodies = [b64decode(one["body"]) for item in content["items"] for one in item["shown"]]
    assert [one.body for one in shown] == bodies
    assert [one.provenance for one in shown] == [
        one["provenance"] for item in content["items"] for one in item["shown"]
    ]
    assert [(item.practice, item.input, item.label, item.prediction) for item in items] == [
        (item["practice"], item["input"], item["label"], item["prediction"]) for item in content["items"]
    ]
    assert [None if item.picture is None else b64encode(item.picture).decode() for item in items] == [
        item["picture"] for item in content["items"]
    ]
    for item in items:
        frozen_input(item)
        frozen_prediction(item)
    for one in shown:
        assert np.isfinite(frozen_map(one).scores).all()
    assert next_ballot(agreed(there.token).id) is not None


def test_a_file_that_is_written_again_is_the_same() -> None:
    first = written("text")
    again = json.loads(export_study(import_study(first).id, votes=True))
    assert again == json.loads(first) | {"content": {**content_of(first), "closed": again["content"]["closed"]}} | {
        "digest": again["digest"]
    }


def test_with_its_votes_a_study_is_closed_and_has_the_results_it_had() -> None:
    content = content_of(written("text"))
    there = import_study(written("text"))
    assert there.state == "closed"
    found = results(there.id)
    assert found.summary is not None
    counted = [vote for vote in content["votes"] if not content["items"][vote["item"]]["practice"]]
    assert found.answers == len(counted) == len(found.kept)
    for vote, was in zip(found.kept, counted, strict=True):
        assert (vote.annotator, vote.item, vote.repeat) == (was["annotator"], str(was["item"]), was["repeat"])
        assert (vote.seconds, vote.at) == (was["seconds"], was["at"])
        assert vote.ranks is not None
        assert [vote.ranks[method] for method in vote.order] == was["ranks"]
        assert seen(there.id, vote.annotator, vote.item, vote.repeat).methods == vote.order
    with pytest.raises(ExegesisError, match="is over"):
        join(there.token)


def test_no_secret_and_nobody_is_in_the_file() -> None:
    study = opened("text")
    link = studies.find(study).token
    person, code = join(link)
    data = export_study(study, votes=True).decode()
    with study_database().reading() as session:
        row, who = session.get_one(Study, study), session.get_one(Annotator, person.id)
    for secret in (link, row.secret, code, code.replace("-", ""), who.code):
        assert secret not in data
    assert export_study(study).decode().count("p-") == 0


def test_a_draft_travels_as_its_design(tmp_path: Path) -> None:
    made = studies.create(text_design(tmp_path, closes_at=1.0))
    there = import_study(export_study(made.id))
    assert (there.state, rows_of(there.id)) == ("draft", ([], []))
    assert there.design.closes_at is None, "a time that is over would keep it from opening"
    assert there.token != made.token


def test_what_came_with_its_explanations_is_not_changed_but_copied() -> None:
    there = import_study(without_votes("text"))
    with pytest.raises(ExegesisError, match=r"came with its explanations. Duplicate it"):
        studies.change(there.id, there.design)
    assert rows_of(studies.duplicate(there.id).id) == ([], [])


def test_what_is_damaged_here_is_not_passed_on() -> None:
    study = import_study(without_votes("text")).id
    with study_database().writing() as session:
        first = session.scalars(sa.select(Shown)).first()
        assert first is not None
        first.body = first.body[:-1] + bytes([first.body[-1] ^ 1])
    with pytest.raises(ExegesisError, match="is damaged"):
        export_study(study)


def test_a_file_that_could_not_be_read_again_is_not_written(monkeypatch: pytest.MonkeyPatch) -> None:
    study = import_study(without_votes("text")).id
    monkeypatch.setattr(study_file, "LARGEST", 1000)
    with pytest.raises(ExegesisError, match=r"its file would have .* kB?, and at most"):
        export_study(study)
    with pytest.raises(ExegesisError, match=r"FILE: must have at most"):
        import_study(written("text"))


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "is not JSON"),
        (b"\xff\xfe", "is not JSON"),
        (b"PK\x03\x04" + b"\0" * 100, "is not JSON"),
        (b"[" * 200_000, "is not JSON"),
        (b'{"format": NaN}', "is not JSON"),
        (b"[]", "must be names with values"),
        (b"{}", "is not a study file"),
        (sealed({}, version=2), "is of version 2, and this Exegesis reads 1. Update Exegesis"),
        (sealed({}, version=True), "is of version True"),
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


def other_body(content: File) -> None:
    """Sound by its digest, but with one score too few."""
    one = content["items"][0]["shown"][0]
    body = encode({"tokens": [["a", 0, 1, 0, False]] * 2, "grid": None, "truncated": 0}, {"scores": np.ones(1)})
    one["body"], one["digest"] = b64encode(body).decode(), hashlib.sha256(body).hexdigest()


HOSTILE: dict[str, tuple[Callable[[File], Any], str]] = {
    "another body": (lambda c: c["items"][1]["shown"][0].update(body="AAAA"), r"items\[1\].shown\[0\].digest: must be"),
    "no base64": (lambda c: c["items"][0]["shown"][0].update(body="é"), r"body: must be base64"),
    "scores that do not fit": (other_body, "must be tokens with one score each"),
    "another method": (lambda c: c["items"][0]["shown"][0]["provenance"].update(method="lime"), "must be gradient"),
    "one explanation less": (lambda c: c["items"][0]["shown"].pop(), "must be 3 explanations, got 2"),
    "one item less": (lambda c: c["items"].pop(), "items: must be 1 for practice and then 3, or none, got 3"),
    "practice last": (lambda c: c["items"].reverse(), "items: must be 1 for practice"),
    "a path": (lambda c: c["items"][0].update(input={"text": "x", "text_pair": None, "path": "/etc/passwd"}), "fields"),
    "half a character": (lambda c: c["items"][0]["input"].update(text="\ud800"), "whole characters"),
    "NUL": (lambda c: c["items"][0].update(label="a\0"), "label: must be a text"),
    "an infinite logit": (lambda c: c["items"][0]["prediction"].update(logits=[1e300, 1]), "must be a number"),
    "a class too many": (lambda c: c["items"][0]["prediction"]["labels"].append("x"), "a label, a logit and"),
    "an unknown method": (lambda c: c["design"]["methods"][0].update(id="gradeint"), "Did you mean 'gradient'"),
    "an unknown field": (lambda c: c["design"].update(run="rm -rf"), "design: unknown name 'run'"),
    "a person's name": (lambda c: c["votes"][0].update(annotator="Anna"), "annotator: must be a pseudonym"),
    "an item that is not there": (lambda c: c["votes"][0].update(item=4), r"item: must be a whole number from 0 to 3"),
    "a place twice": (lambda c: c["votes"][0].update(order=[0, 0, 1]), "each once"),
    "no such rank": (lambda c: c["votes"][0].update(ranks=[0, 1, 2]), "3 numbers from 1"),
    "a guess": (lambda c: c["votes"][0].update(guess={"label": 0, "sure": 1}), "none in a study of rankings"),
    "a vote twice": (lambda c: c["votes"].append(c["votes"][0]), "one answer of a person to each look"),
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
    with pytest.raises(ExegesisError, match=r"items\[0\].picture: must be the picture of"):
        import_study(sealed(content))
    items[0]["picture"] = b64encode(b"\x89PNG\r\n\x1a\n" + b"\0\0\0\rIHDR" + b"\x00\x01\x00\x00" * 2).decode()
    with pytest.raises(ExegesisError, match=r"items\[0\].picture"):
        import_study(sealed(content))


@pytest.mark.parametrize("seed", range(40))
def test_whatever_is_in_a_file_the_answer_is_a_sentence_or_a_study(seed: int) -> None:
    """A value somewhere in the file is replaced by another kind of value; the seal fits."""
    chance = random.Random(seed)
    content = copy.deepcopy(content_of(written("text")))
    for _ in range(chance.randint(1, 2)):
        holder, place = chance.choice(list(places(content)))
        holder[place] = chance.choice([None, True, -1, 2**70, 1.5, "", "x" * 50, "\ud83d", [], {}, [[]], {"": 0}])
    before = studies_here()
    try:
        import_study(sealed(content))
    except ExegesisError:
        assert studies_here() == before


@pytest.mark.parametrize("seed", range(20))
def test_flipped_bytes_are_noticed(seed: int) -> None:
    chance, data = random.Random(seed), bytearray(written("text"))
    where = chance.randrange(data.index(b'"content"'), len(data))
    data[where] ^= 1 << chance.randrange(8)
    written("text")
    try:
        there = import_study(bytes(data))
    except ExegesisError:
        return
    assert content_of(bytes(data)) == content_of(written("text")), "white space alone may differ"
    assert votes_of(there.id)


def places(value: object) -> Any:
    """Every place in a tree of JSON, as its holder and the name or number in it."""
    pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for place, below in list(pairs):
        yield value, place
        yield from places(below)
