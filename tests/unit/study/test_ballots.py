"""What is on a ballot, in which order, and what is not: nothing that tells a method."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import sqlalchemy as sa

from engine.study.annotators import UnknownIdentifier, confirm
from engine.study.ballots import ItemView, assignment_plan, next_ballot, order_methods
from engine.study.database import Item, ItemExplanation, study_database
from tests.unit.study.polls import METHODS, PARAMS, agreed, answer, ballot_of, open_study, rows_of

pytestmark = pytest.mark.usefixtures("store")


def test_nothing_of_a_ballot_tells_the_methods() -> None:
    study = open_study()
    person = agreed(study.token)
    with study_database().reading() as session:
        secret = [
            one
            for row in session.scalars(sa.select(ItemExplanation))
            for one in (row.digest, *map(str, row.provenance))
        ]
    while ballot := next_ballot(person.id):
        told = repr(dataclasses.asdict(ballot))
        for word in (*METHODS, *PARAMS, *secret, "method", "provenance", "seed"):
            assert word not in told
        assert [one.place for one in ballot.maps] == ["A", "B", "C"]
        assert {field.name for field in dataclasses.fields(ballot.maps[0])} == {
            "place",
            "tokens",
            "scores",
            "grid",
            "truncated",
            "colors",
        }
        confirm(person.id, answer(ballot))


def test_all_maps_have_the_same_scale() -> None:
    for one in ballot_of(agreed(open_study().token)).maps:
        assert np.abs(one.scores).max() == 1
        assert all(score == 0 for score, token in zip(one.scores, one.tokens, strict=True) if token.special)


def test_the_order_on_the_ballot_is_the_seeded_permutation() -> None:
    study = open_study()
    person = agreed(study.token)
    while ballot := next_ballot(person.id):
        confirm(person.id, answer(ballot))
    with study_database().reading() as session:
        plan = assignment_plan(session, study)
        looks = {item.id: (str(item.place), item.practice) for item in session.scalars(sa.select(Item))}
    for vote in rows_of(study):
        item, practice = looks[vote.item]
        wanted = order_methods(plan, person.pseudonym, ItemView(item, vote.repeat, practice), ["0", "1", "2"])
        assert [str(place) for place in vote.order] == list(wanted)


def test_a_ballot_of_somebody_else_is_unknown() -> None:
    study = open_study()
    mine, theirs = agreed(study.token), agreed(study.token)
    with pytest.raises(UnknownIdentifier, match="ballot: unknown"):
        confirm(theirs.id, answer(ballot_of(mine)))
    with pytest.raises(UnknownIdentifier, match="participant: unknown"):
        confirm(10**6, answer(ballot_of(mine)))
    assert rows_of(study) == []
