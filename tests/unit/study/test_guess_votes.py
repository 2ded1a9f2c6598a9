"""Ballots and votes of a study of guesses: the model's answer stays on the server."""

from __future__ import annotations

import dataclasses
from collections import Counter

import pytest

from engine.errors import ExegesisError, UsageError
from engine.request import Example
from engine.result import Prediction
from engine.study import items
from engine.study.access import new_token
from engine.study.annotators import Answer, Guess, Participant, admit, confirm
from engine.study.ballots import Ballot, next_ballot
from engine.study.counted_votes import WITHOUT, GuessTarget, counted_votes, guess_target, to_rankings
from engine.study.database import Item, Study, study_database
from engine.study.design import Design
from engine.study.items import SelectedItem
from engine.study.results import results
from tests.unit.study.polls import METHODS, agreed, answer, open_study

pytestmark = pytest.mark.usefixtures("store")


def guess(ballot: Ballot, label: int = 1, sure: int = 3) -> Answer:
    return Answer(ballot.token, new_token(), None, 2.0, Guess(label, sure))


def walked(person: Participant) -> list[Ballot]:
    """All ballots of a person who guesses."""
    seen = []
    while ballot := next_ballot(person.id):
        seen.append(ballot)
        confirm(person.id, guess(ballot))
    return seen


def started() -> tuple[Study, Participant, Ballot]:
    study = open_study(mode="predict", practice=0)
    person = agreed(study.token)
    ballot = next_ballot(person.id)
    assert ballot is not None
    return study, person, ballot


def test_a_ballot_tells_the_classes_and_not_the_models_answer() -> None:
    study = open_study(items=8, mode="predict", items_per_annotator=8, repeats=0)
    seen = walked(agreed(study.token))
    assert len(seen) == 9
    assert {ballot.classes for ballot in seen} == {("bad", "good")}
    for ballot in seen:
        assert ballot.prediction is None
        assert "0.73" not in repr(dataclasses.asdict(ballot))
        assert [one.place for one in ballot.maps] in ([], ["A"])
    assert Counter(len(ballot.maps) for ballot in seen[1:]) == {0: 2, 1: 6}, "three methods and nothing, equally often"
    assert seen[0].practice
    assert seen[0].maps == ()


def test_a_ranking_has_no_classes_and_tells_the_models_answer() -> None:
    ballot = next_ballot(agreed(open_study().token).id)
    assert ballot is not None
    assert ballot.classes == ()
    assert ballot.prediction is not None
    assert ballot.prediction.label == "good"


def test_a_guess_is_kept_with_the_explanation_that_was_seen() -> None:
    study = open_study(items=8, mode="predict", practice=0, items_per_annotator=8, repeats=2)
    person = agreed(study.token)
    walked(person)
    votes = counted_votes(study.id)
    assert [vote.guess for vote in votes] == [{"label": 1, "sure": 3}] * 10
    assert Counter(vote.order for vote in votes if not vote.repeat) == Counter(2 * [(), *((name,) for name in METHODS)])
    orders = {(vote.item, vote.order) for vote in votes}
    assert len(orders) == 8, "a repeated item is seen as it was"
    assert to_rankings(counted_votes(study.id)) == []


def test_people_who_take_part_after_another_fill_what_lacks_answers() -> None:
    study = open_study(items=4, mode="predict", practice=0, items_per_annotator=4, repeats=0, votes_per_item=1)
    for _ in range(4):
        walked(agreed(study.token))
    cells = Counter((vote.item, vote.order) for vote in counted_votes(study.id))
    assert set(cells.values()) == {1}
    assert len(cells) == 16
    assert next_ballot(agreed(study.token).id) is None


def test_cannot_tell_is_an_answer_and_no_guess() -> None:
    study, person, ballot = started()
    confirm(person.id, Answer(ballot.token, new_token(), None))
    (vote,) = counted_votes(study.id)
    assert (vote.ranks, vote.guess) == (None, None)
    again = next_ballot(person.id)
    assert again is not None
    assert again.token != ballot.token


@pytest.mark.parametrize("label", [-1, 2, True])
def test_a_guess_of_no_class_is_refused(label: int) -> None:
    study, person, ballot = started()
    with pytest.raises(UsageError, match=r"guess\.label: must be a whole number from 0"):
        confirm(person.id, guess(ballot, label))
    assert counted_votes(study.id) == []


@pytest.mark.parametrize("sure", [0, 6, True])
def test_how_sure_is_one_to_five(sure: int) -> None:
    with pytest.raises(UsageError, match=r"guess\.sure: must be a whole number from 1 to 5"):
        Guess(0, sure)


def test_ranks_are_no_guess_and_a_guess_no_ranking() -> None:
    _, person, ballot = started()
    with pytest.raises(UsageError, match="ranks: must be omitted in a study of guesses"):
        confirm(person.id, answer(ballot, 1))
    ranking = agreed(open_study().token)
    shown = next_ballot(ranking.id)
    assert shown is not None
    with pytest.raises(UsageError, match="guess: must be omitted in a study of rankings"):
        confirm(ranking.id, guess(shown))


def test_the_same_token_with_another_guess_is_refused() -> None:
    study, person, ballot = started()
    given = guess(ballot)
    confirm(person.id, given)
    assert confirm(person.id, given).before
    with pytest.raises(UsageError, match="belongs to another answer"):
        confirm(person.id, dataclasses.replace(given, guess=Guess(0, 3)))
    confirm(person.id, guess(ballot, label=0))
    assert [vote.guess for vote in counted_votes(study.id)] == [{"label": 0, "sure": 3}], "a changed answer"


def test_asking_again_waits_for_nobody() -> None:
    _, person, ballot = started()
    with study_database().writing() as session:
        admit(session, person.id)  # nobody else may write meanwhile
        again = next_ballot(person.id)
    assert again is not None
    assert again.token == ballot.token


@pytest.mark.parametrize(
    ("labels", "regression", "what"), [(("score",), True, "predicts a score"), (("only",), False, "has a single class")]
)
def test_a_model_without_classes_to_guess_from_opens_no_study_of_guesses(
    labels: tuple[str, ...], regression: bool, what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    chosen = [SelectedItem(0, False, Example("A text"), None, Prediction(labels, (0.5,), (1.0,), regression))]
    monkeypatch.setattr(items, "select_items", lambda *_: chosen)
    with pytest.raises(UsageError, match=rf"design\.mode: must be rank for a model that {what}"):
        items.take_snapshot(Design(mode="predict"))


def test_what_people_guessed_is_summed_up() -> None:
    study = open_study(items=8, mode="predict", items_per_annotator=8, repeats=1)
    assert results(study.id).forward is None
    walked(agreed(study.token))
    found = results(study.id)
    assert found.summary is None
    assert found.forward is not None
    assert [one.name for one in found.forward.conditions] == [WITHOUT, *METHODS]
    assert [one.share.accuracy if one.share else None for one in found.forward.conditions] == [1.0] * 4
    assert (found.forward.guesses, found.forward.consistency, found.forward.placebo) == (8, (1.0, 1), "random")


@pytest.mark.parametrize(("label", "truth"), [("good", 1), ("Good", 1), ("bad", 0), ("positive", None), (None, None)])
def test_the_right_class_depends_on_the_mode(label: str | None, truth: int | None) -> None:
    prediction = {"labels": ["bad", "good"], "logits": [0.0, 1.0], "probabilities": [0.27, 0.73], "regression": False}
    item = Item(place=0, label=label, prediction=prediction)
    assert guess_target(item, "predict") == GuessTarget(1, truth)
    if truth is None:
        with pytest.raises(ExegesisError, match="the correct class of item 0 is not known"):
            guess_target(item, "decide")
    else:
        assert guess_target(item, "decide") == GuessTarget(truth, 1)
    with pytest.raises(ExegesisError, match="item 0 has no edit"):
        guess_target(item, "counterfactual")
    after = {**prediction, "logits": [1.0, 0.0], "probabilities": [0.73, 0.27]}
    word = {"segment": 0, "start": 0, "end": 4, "text": "Good", "replacement": "Bad", "prediction": after}
    assert guess_target(Item(place=0, label=label, prediction=prediction, edit=word), "counterfactual") == GuessTarget(
        0, 1
    )
