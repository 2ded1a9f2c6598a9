"""Export and import of studies as JSON files: the design, the items as people see them and, optionally, the answers.

A file contains no secrets: no join link, no code, and no secret from which orders are drawn. Files are untrusted, so
everything is checked before anything is stored, and nothing in a file is run, unpacked or used as a path. The checks
are our own because a schema library (pydantic) would save nothing: most checks depend on the design, and its messages
would have to be rewritten to say what is allowed, what was found, and what to do next.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
import secrets
import time
from base64 import b64decode, b64encode
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from sqlalchemy.orm import Session

from cache import key_for
from cache.codec import CorruptEntry, decode
from engine.data.picture_files import LONGEST_SIDE, open_picture
from engine.errors import ExegesisError, UsageError, excerpt
from engine.format import count_text, size_text
from engine.home import product_version
from engine.request import Example, Picture, Prompt, read_example
from engine.result import Prediction, Token
from engine.study.access import ALPHABET, new_token
from engine.study.annotators import MAX_SECONDS, Guess
from engine.study.counted_votes import current_votes
from engine.study.database import (
    Annotator,
    IssuedBallot,
    Item,
    ItemExplanation,
    JsonObject,
    Study,
    Vote,
    study_database,
)
from engine.study.design import BY_SIGN, COUNTERFACTUAL, DECIDE, Design, check_design
from engine.study.edits import ItemEdit
from engine.study.items import decode_map, encode_png, item_input, store_items, study_items, true_class
from engine.study.studies import CLOSED, DRAFT, StudyRecord, find, is_over, log_event, to_record

FORMAT, VERSION = "exegesis study", 1
MAX_BYTES = 256 * 10**6
"""Maximum size of a file. A study of 1,000 pictures and six methods has about half as many bytes."""
MAX_TIME = 1e11
"""Maximum time, in the year 5138. Clocks may be far off."""
_PSEUDONYM = re.compile(rf"p-[{ALPHABET}]{{8}}")
_MAX_LABEL = 1_000
_MAX_TOKENS = 100_000
_VOTE_FIELDS = ("repeat", "order", "ranks", "guess", "seconds", "at")


def export_study(study: int, votes: bool = False) -> bytes:
    """Export a study in its current state. `votes`: include all answers that were not undone, under pseudonyms.

    Errors: stored data is damaged, or the file would be too large to import.
    """
    record = find(study)
    with study_database().reading() as session:
        content = {
            "design": record.design.to_json(),
            "opened": record.opened,
            "closed": record.closed,
            "items": [_item_json(item) for item in study_items(session, study)],
            "votes": _votes_json(session, study) if votes else None,
        }
    head = {"format": FORMAT, "version": VERSION, "exegesis": product_version(), "digest": key_for(content)}
    data = json.dumps({**head, "content": content}, ensure_ascii=False, allow_nan=False, indent=1).encode()
    if len(data) > MAX_BYTES:
        raise ExegesisError(
            f"study {study}: its file would have {size_text(len(data))}, but files of at most {size_text(MAX_BYTES)} "
            "can be imported. Use fewer items."
        )
    return data


def _item_json(item: Item) -> JsonObject:
    item_input(item)  # raises if the picture is damaged
    explanations = []
    for row in item.explanations:
        decode_map(row)  # raises if the explanation is damaged
        body = b64encode(row.body).decode()
        explanations.append({"body": body, "digest": row.digest, "provenance": row.provenance})
    return {
        "practice": item.practice,
        "input": item.input,
        "picture": None if item.picture is None else b64encode(item.picture).decode(),
        "label": item.label,
        "prediction": item.prediction,
        "shown": explanations,
        **({} if item.edit is None else {"edit": item.edit}),
    }


def _votes_json(session: Session, study: int) -> list[JsonObject]:
    return [
        {"annotator": annotator, "item": place, **{name: getattr(vote, name) for name in _VOTE_FIELDS}}
        for vote, annotator, place in session.execute(current_votes(study))
    ]


def import_study(data: bytes) -> StudyRecord:
    """Create a study from a file, with a new number and a new join link.

    With votes, it is closed and has the same results. Without votes, it is a draft that opens with the explanations of
    the file, even if its model and data set are not available. Errors: an invalid file; nothing is stored then.
    """
    if len(data) > MAX_BYTES:
        raise ExegesisError(f"FILE: must be at most {size_text(MAX_BYTES)}, got {size_text(len(data))}.")
    content = read_study_file(data)
    with_votes, now = content.votes is not None, time.time()
    design = content.design
    if not with_votes and is_over(design.closes_at):  # a draft past its end could not open
        design = replace(design, closes_at=None)
    with study_database().writing() as session:
        study = Study(
            token=new_token(),
            design=design.to_json(),
            state=CLOSED if with_votes else DRAFT,
            created=now,
            opened=content.opened if with_votes else None,
            closed=(content.closed or now) if with_votes else None,
        )
        session.add(study)
        session.flush()
        store_items(session, study.id, content.items)
        _store_votes(session, study, content)
        log_event(session, study.id, "created", {"imported": content.digest})
        return to_record(study)


def _store_votes(session: Session, study: Study, content: StudyFile) -> None:
    """Store the votes and their participants. The participants cannot resume: no code matches the random hash."""
    people: dict[str, Annotator] = {}
    for name, _, vote in content.votes or ():
        if name not in people:
            unused = secrets.token_hex(32)
            people[name] = Annotator(study=study.id, pseudonym=name, code=unused, joined=vote.at, consented=vote.at)
    session.add_all(people.values())
    session.flush()
    for name, place, vote in content.votes or ():
        vote.study, vote.annotator, vote.item = study.id, people[name].id, content.items[place].id
        same = {column: getattr(vote, column) for column in ("study", "annotator", "item", "repeat", "order", "at")}
        session.add_all([vote, IssuedBallot(token=new_token(), **same)])


FileVote = tuple[str, int, Vote]
"""An answer in a file: pseudonym, place of the item, and the row, whose study, annotator and item are not set yet."""


@dataclass(frozen=True)
class StudyFile:
    """The checked content of a file, as rows to be stored. `votes`: None if the file was exported without votes."""

    digest: str
    design: Design
    opened: float | None
    closed: float | None
    items: tuple[Item, ...]
    votes: tuple[FileVote, ...] | None


@dataclass(frozen=True)
class FileValue:
    """A value in a file and its place. Methods check and return it as a type; errors name the place."""

    place: str
    value: Any

    def error(self, allowed: str, *got: object) -> UsageError:
        tail = f", got {excerpt(got[0])}" if got else ""
        return UsageError(f"FILE: {self.place}: must be {allowed}{tail}. Export the study again.")

    def mapping(self) -> JsonObject:
        if not isinstance(self.value, dict):
            raise self.error("an object with named values", self.value)
        return self.value

    def fields(self, *names: str) -> dict[str, FileValue]:
        """Return exactly these fields. Unknown fields are errors, so that they are never stored."""
        values = self.mapping()
        if values.keys() != set(names):
            raise self.error(f"the fields {', '.join(names)}", sorted(map(str, values)))
        return {name: FileValue(f"{self.place}.{name}", values[name]) for name in names}

    def elements(self, numbered: bool = False) -> list[FileValue]:
        """Return the elements of a list. `numbered`: add their index to their places."""
        if not isinstance(self.value, list):
            raise self.error("a list", self.value)
        return [FileValue(f"{self.place}[{n}]" if numbered else self.place, each) for n, each in enumerate(self.value)]

    def number(self, maximum: float | None = None) -> float:
        """Return a number, between 0 and `maximum` if given."""
        if type(self.value) not in (int, float) or not abs(self.value) < 1e300:
            raise self.error("a number", self.value)
        if maximum is not None and not 0 <= self.value <= maximum:
            raise self.error(f"a number from 0 to {maximum:g}", self.value)
        return float(self.value)

    def time(self) -> float | None:
        return None if self.value is None else self.number(MAX_TIME)

    def whole(self, maximum: int = 10**9) -> int:
        if type(self.value) is not int or not 0 <= self.value <= maximum:
            raise self.error(f"a whole number from 0 to {maximum}", self.value)
        return self.value

    def boolean(self) -> bool:
        if not isinstance(self.value, bool):
            raise self.error("true or false", self.value)
        return self.value

    def text(self, maximum: int = 10**7) -> str:
        if not isinstance(self.value, str) or len(self.value) > maximum or "\0" in self.value:
            raise self.error(f"a text of at most {maximum:,} characters", self.value)
        try:
            self.value.encode()
        except UnicodeEncodeError:
            raise self.error("whole characters", self.value) from None
        return self.value

    def base64(self) -> bytes:
        text = self.text(10**9)
        try:
            return b64decode(text, validate=True)
        except ValueError:
            raise self.error("base64", self.value) from None


def read_study_file(data: bytes) -> StudyFile:
    """Parse and check a file. Errors name the place in the file."""
    try:
        parsed = json.loads(data.decode("utf-8-sig"), parse_constant=_refuse_constant)
    except (ValueError, RecursionError):
        raise ExegesisError("FILE: is not a study file, because it is not JSON. Export the study again.") from None
    head = FileValue("FILE", parsed).mapping()
    if head.get("format") != FORMAT:
        raise ExegesisError("FILE: is not a study file. Create one with: exegesis study export ID --out FILE.")
    if type(head.get("version")) is not int or head["version"] != VERSION:
        raise ExegesisError(
            f"FILE: has format version {excerpt(head.get('version'))}, but this version of Exegesis reads {VERSION}. "
            "Update Exegesis, or export the study again with this version."
        )
    content = FileValue("content", head.get("content"))
    fields = content.fields("design", "opened", "closed", "items", "votes")
    try:
        digest = key_for(content.value)
    except RecursionError:  # too deeply nested to be a real file
        digest = None
    if digest is None or digest != head.get("digest"):
        raise ExegesisError("FILE: was changed after it was written, or is damaged. Export the study again.")
    fields = {name: FileValue(name, field.value) for name, field in fields.items()}
    design = check_design(Design.from_json({"colors": BY_SIGN, **fields["design"].mapping()}))
    items = tuple(_read_item(n, item, design) for n, item in enumerate(fields["items"].elements(numbered=True)))
    practice = [True] * design.practice + [False] * design.item_count
    if items and [item.practice for item in items] != practice:
        allowed = f"{count_text(design.practice, 'practice item')} and then {design.item_count} others, or empty"
        raise fields["items"].error(allowed, len(items))
    votes = None if fields["votes"].value is None else _read_votes(fields["votes"], items, design)
    return StudyFile(digest, design, fields["opened"].time(), fields["closed"].time(), items, votes)


def _refuse_constant(name: str) -> float:
    raise ValueError(name)


def _read_item(place: int, item: FileValue, design: Design) -> Item:
    own = ("edit",) if design.mode == COUNTERFACTUAL else ()
    fields = item.fields("practice", "input", "picture", "label", "prediction", "shown", *own)
    label = None if fields["label"].value is None else fields["label"].text(_MAX_LABEL)
    prediction = _read_prediction(fields["prediction"])
    if design.guessing and (prediction.regression or len(prediction.labels) < 2):
        raise fields["prediction"].error("one of at least two classes in a study of guesses", prediction.labels)
    if design.mode == DECIDE and true_class(prediction, label) is None:
        raise fields["label"].error(f"one of the classes {', '.join(prediction.labels)}", label)
    explanations = fields["shown"].elements(numbered=True)
    if len(explanations) != len(design.ballot_methods):
        raise fields["shown"].error(f"{len(design.ballot_methods)} explanations", len(explanations))
    row = Item(
        place=place,
        practice=fields["practice"].boolean(),
        label=label,
        prediction=asdict(prediction),
        **_read_input(fields["input"], fields["picture"], design.kind),
    )
    texts = read_example(row.input).texts if design.kind == "text" else ()
    row.edit = _read_edit(fields["edit"], texts, prediction) if own else None
    lengths = tuple(map(len, texts)) or (0,)  # token spans lie within the texts; patches have no spans
    row.explanations = [_read_explanation(n, value, design, lengths) for n, value in enumerate(explanations)]
    return row


def _read_input(value: FileValue, picture_value: FileValue, kind: str) -> JsonObject:
    """Return the columns of an item's input. Pictures are encoded again, so that other contents are not passed on."""
    if kind == "text":
        first, *rest = Prompt("").as_plain() if "prompt" in value.mapping() else Example("").as_plain()
        fields = value.fields(first, *rest)
        own = {name: fields[name].text() for name in fields if name == first or fields[name].value is not None}
        if own.get("chat", str(True)) not in (str(True), str(False)):
            raise fields["chat"].error("True or False", own["chat"])
        example = read_example(own)
        example.check_length()
        return {"input": example.as_plain(), "picture": None}
    digest = value.fields("picture")["picture"].value
    picture = Picture(open_picture(picture_value.base64(), f"FILE: {picture_value.place}"))
    if picture.digest != digest:
        raise picture_value.error(
            f"the picture with the digest {excerpt(digest)}, at most {LONGEST_SIDE} pixels wide and high"
        )
    return {"input": picture.as_plain(), "picture": encode_png(picture)}


def _read_prediction(value: FileValue) -> Prediction:
    fields = value.fields("labels", "logits", "probabilities", "regression")
    labels = tuple(label.text(_MAX_LABEL) for label in fields["labels"].elements())
    logits = tuple(each.number() for each in fields["logits"].elements())
    probabilities = tuple(each.number() for each in fields["probabilities"].elements())
    regression = fields["regression"].boolean()
    fits = bool(logits) and (regression or len(labels) == len(logits) == len(probabilities))
    if not fits or not all(0 <= p <= 1 for p in probabilities):
        raise value.error("a label, a logit and a probability for each class")
    return Prediction(labels, logits, probabilities, regression)


def _read_edit(value: FileValue, texts: Sequence[str], original: Prediction) -> JsonObject:
    fields = value.fields("segment", "start", "end", "text", "replacement", "prediction")
    text = texts[fields["segment"].whole(len(texts) - 1)]
    start, end = fields["start"].whole(len(text)), fields["end"].whole(len(text))
    if not start < end or text[start:end] != fields["text"].text():
        raise fields["text"].error("the word at its place in the text", fields["text"].value)
    fields["replacement"].text(_MAX_LABEL)
    prediction = _read_prediction(fields["prediction"])
    if prediction.labels != original.labels:
        raise fields["prediction"].error("one of the same classes as the original's", prediction.labels)
    return ItemEdit.from_json(value.mapping()).to_json()


def _read_explanation(place: int, value: FileValue, design: Design, lengths: Sequence[int]) -> ItemExplanation:
    fields = value.fields("body", "digest", "provenance")
    body, digest = fields["body"].base64(), fields["digest"]
    if hashlib.sha256(body).hexdigest() != digest.value:
        raise digest.error("the SHA-256 of the explanation", digest.value)
    _check_map(fields["body"].place, body, design.kind, lengths)
    provenance, method = fields["provenance"].mapping(), design.ballot_methods[place].id
    if provenance.get("method") != method:
        raise FileValue(f"{fields['provenance'].place}.method", None).error(method, provenance.get("method"))
    return ItemExplanation(place=place, body=body, provenance=provenance, digest=digest.value)


def _check_map(place: str, body: bytes, kind: str, lengths: Sequence[int]) -> None:
    """Check that a page can draw an explanation: one finite score per token, and patches that fill the grid."""
    try:
        meta, arrays = decode(body)
    except CorruptEntry as error:
        raise ExegesisError(f"FILE: {place}: is not an explanation ({error}). Export the study again.") from None
    value = FileValue(place, meta)
    fields = value.fields("tokens", "grid", "truncated")
    tokens = [_read_token(token, lengths) for token in fields["tokens"].elements()]
    scores = arrays.get("scores", np.zeros(0))
    if not 0 < len(tokens) <= _MAX_TOKENS or scores.shape != (len(tokens),) or arrays.keys() != {"scores"}:
        raise value.error("tokens with one score each")
    if scores.dtype.kind != "f" or not np.isfinite(scores).all():
        raise value.error("finite scores")
    fields["truncated"].whole()
    grid, patches = fields["grid"], sum(not token.special for token in tokens)
    if kind == "text":
        if grid.value is not None:
            raise grid.error("null for a text", grid.value)
        return
    sides = [side.whole() for side in grid.elements()]
    if len(sides) != 2 or math.prod(sides) != patches:
        raise grid.error(f"rows and columns of {patches} patches", grid.value)


def _read_token(value: FileValue, lengths: Sequence[int]) -> Token:
    parts = value.elements()
    kinds = [str, int, int, int, bool]
    if [type(part.value) for part in parts] != kinds:
        raise value.error("a text, start, end, segment, and whether it is special", value.value)
    token = Token(parts[0].text(), *(part.value for part in parts[1:]))
    if token.special:
        fits = (token.start, token.end, token.segment) == (0, 0, -1)
    else:
        fits = 0 <= token.segment < len(lengths) and 0 <= token.start <= token.end <= lengths[token.segment]
    if not fits:
        raise value.error("a span of one of the texts, or a special token without a span", value.value)
    return token


def _read_votes(value: FileValue, items: Sequence[Item], design: Design) -> tuple[FileVote, ...]:
    votes = tuple(_read_vote(vote, items, design) for vote in value.elements(numbered=True))
    if len({(annotator, item, vote.repeat) for annotator, item, vote in votes}) < len(votes):
        raise value.error("at most one answer per person, item and repeat")
    return votes


def _read_vote(value: FileValue, items: Sequence[Item], design: Design) -> FileVote:
    fields = value.fields("annotator", "item", *_VOTE_FIELDS)
    annotator = fields["annotator"].text(100)
    if not _PSEUDONYM.fullmatch(annotator):
        raise fields["annotator"].error("a pseudonym such as p-23456789", annotator)
    item = fields["item"].whole(len(items) - 1)
    order = [method.whole(len(design.ballot_methods) - 1) for method in fields["order"].elements()]
    lengths = {0, 1} if design.guessing else {len(design.ballot_methods)}
    if len(order) not in lengths or len(set(order)) < len(order):
        allowed = "the places of the shown methods, each once"
        raise fields["order"].error(allowed, fields["order"].value)
    vote = Vote(
        repeat=fields["repeat"].whole(1),
        order=order,
        ranks=_read_ranks(fields["ranks"], len(order), design),
        guess=_read_guess(fields["guess"], items[item], design),
        seconds=fields["seconds"].number(MAX_SECONDS),
        token=new_token(),
        at=fields["at"].number(MAX_TIME),
    )
    return annotator, item, vote


def _read_ranks(value: FileValue, places: int, design: Design) -> list[int] | None:
    if value.value is None:
        return None
    ranks = [rank.whole(places) for rank in value.elements()]
    if design.guessing or len(ranks) != places or 0 in ranks:
        raise value.error(f"{places} ranks from 1 in a study of rankings, or null in a study of guesses", value.value)
    return ranks


def _read_guess(value: FileValue, item: Item, design: Design) -> JsonObject | None:
    if value.value is None:
        return None
    fields = value.fields("label", "sure")
    if not design.guessing:
        raise value.error("null in a study of rankings", value.value)
    return asdict(Guess(fields["label"].whole(len(item.prediction["labels"]) - 1), fields["sure"].whole()))
