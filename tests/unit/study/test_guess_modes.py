"""Studies in which people guess after an edit, or decide what is correct: what is hidden, what is right, and edits."""

from __future__ import annotations

import dataclasses
import itertools
import json

import pytest

from cache import key_for
from components.annotate.api_operations import ballot_json
from components.ballot_maps import edit_html
from engine.data.datasets import load
from engine.errors import UsageError
from engine.predictions import predictions
from engine.request import Example
from engine.study.access import new_token
from engine.study.annotators import Answer, Guess, confirm
from engine.study.ballots import Ballot, next_ballot
from engine.study.design import COUNTERFACTUAL, DECIDE, DEFAULT_TEXTS, Design, ItemChoice, MethodChoice, check_design
from engine.study.edits import ItemEdit, choose_edits
from engine.study.guesses import WORDS
from engine.study.items import take_snapshot
from engine.study.results import export_rows, results, results_to_json
from engine.study.study_file import export_study, import_study
from engine.substitution import Edit, Word, edited
from tests.unit.study.polls import agreed, open_study

pytestmark = pytest.mark.usefixtures("store")

METHODS = (MethodChoice("gradient_x_input"), MethodChoice("attention_rollout"))


def answered(mode: str, label: int) -> tuple[int, list[Ballot]]:
    """A study of four items, its first for practice, in which one person always answers the same."""
    study = open_study(items=4, mode=mode, items_per_annotator=4, repeats=0)
    person, seen = agreed(study.token), []
    while ballot := next_ballot(person.id):
        seen.append(ballot)
        confirm(person.id, Answer(ballot.token, new_token(), None, 2.0, Guess(label, 3)))
    return study.id, seen


def test_a_ballot_of_an_edit_shows_the_prediction_and_the_edit_but_not_what_comes_of_it() -> None:
    _, seen = answered(COUNTERFACTUAL, 1)
    for ballot in seen:
        assert ballot.prediction is not None
        assert ballot.prediction.label == "good"
        assert ballot.edit is not None
        assert (ballot.edit.word.text, ballot.edit.replacement) == ("Text", "Word")
        assert "0.91" not in repr(dataclasses.asdict(ballot))


def test_a_ballot_of_a_decision_shows_the_prediction_but_not_the_true_class() -> None:
    _, seen = answered(DECIDE, 1)
    assert all(ballot.prediction is not None and ballot.edit is None for ballot in seen)
    assert {ballot.classes for ballot in seen} == {("bad", "good")}
    answers = [{**ballot_json(ballot), "token": "", "done": 0, "input": {}, "explanations": []} for ballot in seen[1:]]
    assert all(answer == answers[0] for answer in answers[1:]), "whatever the true class is"


@pytest.mark.parametrize("mode", [COUNTERFACTUAL, DECIDE])
def test_who_always_says_the_obvious_is_right_half_the_time_and_misled_each_time_it_is_wrong(mode: str) -> None:
    study, _ = answered(mode, 1)
    summary = results(study).forward
    assert summary is not None
    assert sum(one.share.right for one in summary.conditions if one.share) == 2
    assert (summary.guesses, summary.commonest, summary.obvious) == (4, 0.5, 0.5)
    misled = [one.misled for one in summary.conditions if one.misled]
    assert sum(one.guesses for one in misled) == 2
    assert {one.accuracy for one in misled} == {1.0}
    assert summary.meanings["misled"].startswith(WORDS[mode].misled)
    assert f"always {WORDS[mode].obvious} in 50%" in summary.meanings["baseline"]
    other, _ = answered(mode, 0)
    assert {one.misled.accuracy for one in results(other).forward.conditions if one.misled} == {0.0}  # type: ignore[union-attr]


@pytest.mark.parametrize("mode", [COUNTERFACTUAL, DECIDE])
def test_the_tables_and_the_file_say_what_is_right(mode: str) -> None:
    study, _ = answered(mode, 1)
    rows = export_rows(study, "votes")
    assert sorted((row["predicted"], row["answer"], row["right"]) for row in rows) == [
        ("good", "bad", 0), ("good", "bad", 0), ("good", "good", 1), ("good", "good", 1)
    ]  # fmt: skip
    items = export_rows(study, "items")
    assert [row.get("edited_text") for row in items[:2]] == (
        ["Word 0.", "Word 1."] if mode == COUNTERFACTUAL else [None, None]
    )
    again = import_study(export_study(study, votes=True))
    before, after = (results_to_json(results(one))["forward"] for one in (study, again.id))
    assert after == before


@pytest.mark.parametrize(
    ("name", "value", "wrong"),
    [
        ("text", "Else", "must be the word at its place in the text"),
        ("end", 99, "must be a whole number from 0 to 7"),
        ("replacement", 3, "must be a text of at most"),
        ("prediction", None, "must be an object with named values"),
    ],
)
def test_a_file_with_another_edit_is_refused(name: str, value: object, wrong: str) -> None:
    study, _ = answered(COUNTERFACTUAL, 1)
    file = json.loads(export_study(study))
    file["content"]["items"][0]["edit"][name] = value
    file["digest"] = key_for(file["content"])
    with pytest.raises(UsageError, match=rf"items\[0\].edit.{name}: {wrong}"):
        import_study(json.dumps(file).encode())


def test_each_mode_has_its_own_texts() -> None:
    design = Design("T", model="m", dataset="d", methods=METHODS, mode=DECIDE, items=ItemChoice(count=20))
    assert check_design(design).question == DEFAULT_TEXTS["question"][DECIDE]
    assert {len(texts) for texts in DEFAULT_TEXTS.values()} == {4}


def test_pictures_are_not_edited() -> None:
    design = Design("T", model="m", dataset="d", kind="image", methods=METHODS, mode=COUNTERFACTUAL)
    with pytest.raises(UsageError, match=r"design.mode: must be rank, predict or decide for pictures"):
        check_design(design)


def test_a_decision_needs_a_true_class() -> None:
    design = Design(
        "T", model="reviews-minilm", dataset="nli", mode=DECIDE, methods=METHODS, practice=0,
        items=ItemChoice(count=2), items_per_annotator=2, repeats=0,
    )  # fmt: skip
    with pytest.raises(UsageError, match="decide needs a true class for every item"):
        take_snapshot(check_design(design))


def test_edits_change_the_prediction_in_half_of_the_texts_where_one_can() -> None:
    model, texts = "reviews-minilm", [one.example for one in itertools.islice(load("reviews").examples, 8)]
    originals = predictions(model, texts)
    edits = choose_edits(model, texts, originals, practice=2, seed=3)
    after = predictions(model, [edited(text, [one.edit]) for text, one in zip(texts, edits, strict=True)])
    assert [one.prediction for one in edits] == after, "the predictions are those of the edited texts"
    changed = [one.index != old.index for one, old in zip(after, originals, strict=True)]
    assert 2 <= sum(changed) <= 4
    assert choose_edits(model, texts, originals, practice=2, seed=3) == edits
    assert choose_edits(model, texts, originals, practice=2, seed=4) != edits
    assert ItemEdit.from_json(json.loads(json.dumps(edits[0].to_json()))) == edits[0]


def test_a_text_of_one_word_cannot_be_edited() -> None:
    model, texts = "reviews-minilm", [Example("Good!")]
    with pytest.raises(UsageError, match="every text needs at least two words to edit one, got 'Good!'"):
        choose_edits(model, texts, predictions(model, texts), practice=0, seed=0)


def test_the_snapshot_of_a_study_of_edits_holds_one_for_each_item() -> None:
    design = Design(
        "T", model="reviews-minilm", dataset="reviews", mode=COUNTERFACTUAL, methods=METHODS, practice=1,
        items=ItemChoice(count=3), items_per_annotator=3, repeats=0,
    )  # fmt: skip
    rows = take_snapshot(check_design(design))
    assert len(rows) == 4
    for row in rows:
        assert row.edit is not None
        word = ItemEdit.from_json(row.edit).edit.word
        assert row.input["text"][word.start : word.end] == word.text
        assert len(row.explanations) == 3


def test_the_edit_of_a_pair_is_shown_with_both_texts_escaped() -> None:
    html = edit_html(Example("A <b> sleeps.", "Somebody rests."), Edit(Word(1, 9, 14, "rests"), "<i>"))
    assert 'dir="ltr">A &lt;b&gt; sleeps.</p>' in html
    assert "Somebody <del>rests</del> <ins>&lt;i&gt;</ins>.</p>" in html
    assert "<ins>" not in edit_html(Example("It rests."), Edit(Word(0, 3, 8, "rests")))
