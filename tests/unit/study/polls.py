"""A study that is open, as rows of the database; people who take part in it."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
import sqlalchemy as sa

from cache import encode
from engine.study.access import new_token
from engine.study.annotators import Answer, Participant, consent, join
from engine.study.ballots import Ballot, next_ballot
from engine.study.database import Item, ItemExplanation, Study, Vote, study_database
from engine.study.design import Design, ItemChoice, MethodChoice

METHODS = ("integrated_gradients", "lime", "random")
PARAMS = ("n_steps", "n_samples")
TOKENS = ("[CLS]", "A", "fine", "film", ".")


def open_study(items: int = 6, practice: int = 1, closes_at: float | None = None, **more: Any) -> Study:
    """A study of three methods, the placebo last, whose explanations are made up.

    The model says "good". Edits change that of items at odd places, and the true class of these is "bad".
    """
    chosen = (MethodChoice("integrated_gradients", {"n_steps": 50}), MethodChoice("lime", {"n_samples": 100}))
    known = {
        "items": ItemChoice(count=items),
        "items_per_annotator": min(5, items),
        "repeats": 1,
        "practice": practice,
        "closes_at": closes_at,
    }
    design = Design(title="Which one?", model="m", dataset="d", methods=chosen, **(known | more))
    with study_database().writing() as session:
        study = Study(token=new_token(), design=design.to_json(), state="open", created=0.0, opened=1.0)
        session.add(study)
        session.flush()
        for place in range(practice + items):
            _add_item(session, study, place, place < practice, design.mode)
    return study


def _add_item(session: Any, study: Study, place: int, practice: bool, mode: str) -> None:
    said = {"labels": ["bad", "good"], "logits": [0.0, 1.0], "probabilities": [0.27, 0.73], "regression": False}
    given = {"text": f"Text {place}.", "text_pair": None}
    item = Item(study=study.id, place=place, practice=practice, input=given, prediction=said)
    if mode == "counterfactual":
        after = {**said, "logits": [1.0, 0.0], "probabilities": [0.91, 0.09]} if place % 2 else said
        item.edit = {"segment": 0, "start": 0, "end": 4, "text": "Text", "replacement": "Word", "prediction": after}
    if mode == "decide":
        item.label = "bad" if place % 2 else "good"
    session.add(item)
    session.flush()
    for method, name in enumerate(METHODS):
        scores = np.array([5.0, *np.linspace(-1, 1 + method, len(TOKENS) - 1)]) * 10.0**method
        tokens = [[word, 0, 0, -1 if word == "[CLS]" else 0, word == "[CLS]"] for word in TOKENS]
        body = encode({"tokens": tokens, "grid": None, "truncated": 0}, {"scores": scores})
        made = {"method": name, "model": "m", "revision": "0" * 40}
        digest = hashlib.sha256(body).hexdigest()
        session.add(ItemExplanation(item=item.id, place=method, body=body, provenance=made, digest=digest))


def set_state(study: Study, state: str) -> None:
    with study_database().writing() as session:
        session.execute(sa.update(Study).where(Study.id == study.id).values(state=state))


def agreed(token: str) -> Participant:
    """A new participant who has agreed."""
    return consent(join(token)[0].id)


def rows_of(study: Study) -> list[Vote]:
    """All votes of the study as they came, history too."""
    with study_database().reading() as session:
        return list(session.scalars(sa.select(Vote).where(Vote.study == study.id).order_by(Vote.id)))


def ballot_of(person: Participant) -> Ballot:
    """What this participant sees now; there is something left to see."""
    ballot = next_ballot(person.id)
    assert ballot is not None
    return ballot


def answer(ballot: Ballot, *ranks: int, seconds: float = 1.0) -> Answer:
    """A new answer to the ballot, by default A before B before C."""
    return Answer(ballot.token, new_token(), ranks or (1, 2, 3), seconds)
