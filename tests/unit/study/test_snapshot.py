"""Studies from draft to archive, and what people see: fixed when the study opens, whatever changes afterwards."""

from __future__ import annotations

import dataclasses
import io
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sqlalchemy as sa
from PIL import Image

from engine.errors import Cancelled, ExegesisError, UsageError
from engine.explain import explain
from engine.predictions import predictions
from engine.progress import CancelToken
from engine.registry import EXPLAINERS, explainer
from engine.request import Example, Picture, Request
from engine.store import result_store
from engine.study import studies
from engine.study.database import Item, ItemExplanation, study_database
from engine.study.design import Design, ItemChoice, MethodChoice, check_design
from engine.study.items import decode_map, item_input, item_prediction, select_items, take_snapshot
from engine.task import Attribution
from tests.unit.study.samples import LABELS, TEXTS, image_design, text_design

pytestmark = pytest.mark.usefixtures("store")
MAKE = {"text": text_design, "image": image_design}


def items_of(study: int) -> list[Item]:
    with study_database().reading() as session:
        return list(session.scalars(sa.select(Item).where(Item.study == study).order_by(Item.place)))


def shown_of(item: Item) -> list[ItemExplanation]:
    with study_database().reading() as session:
        return list(
            session.scalars(
                sa.select(ItemExplanation).where(ItemExplanation.item == item.id).order_by(ItemExplanation.place)
            )
        )


def opened(design: Design) -> studies.StudyRecord:
    return studies.open_study(studies.create(design).id)


def everything(study: int) -> list[tuple[Any, ...]]:
    """Every byte that is shown or exported of what was frozen."""
    return [
        (item.input, item.picture, item.label, item.prediction, shown.body, shown.provenance, shown.digest)
        for item in items_of(study)
        for shown in shown_of(item)
    ]


@pytest.mark.parametrize("kind", MAKE)
def test_what_is_frozen_is_what_the_engine_says(kind: str, tmp_path: Path) -> None:
    design = check_design(MAKE[kind](tmp_path))
    items = items_of(opened(design).id)
    assert [item.practice for item in items] == [True, False, False, False]
    for item in items:
        asked = item_input(item)
        assert item_prediction(item) == predictions(design.model, [asked])[0]
        for shown, method in zip(shown_of(item), design.methods, strict=False):  # the placebo comes last
            made = explain(Request(design.model, method.id, asked, method.params))
            seen = decode_map(shown)
            np.testing.assert_array_equal(seen.scores, made.scores)
            assert (seen.tokens, seen.grid, seen.truncated) == (made.tokens, made.grid, made.truncated)
            assert shown.provenance["method"] == method.id
            assert shown.provenance["params"] == dataclasses.asdict(explainer(method.id, kind).params()) | method.params
            assert shown.provenance["revision"] == made.provenance.revision


def test_nothing_that_changes_afterwards_changes_what_was_frozen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    design = text_design(tmp_path)
    study = opened(design).id
    before = everything(study)

    def other(task: Any, params: Any) -> list[Attribution]:
        return [Attribution(np.full(len(item.encoded), 7.0), 0) for item in task.items]

    changed = dataclasses.replace(explainer("gradient"), function=other, version=99)
    monkeypatch.setitem(EXPLAINERS["text"], "gradient", changed)
    result_store().clear()
    Path(design.dataset).write_text("text,label\nanother text,bad\n")
    asked = item_input(items_of(study)[0])
    assert set(explain(Request(design.model, "gradient", asked)).scores) == {7.0}
    assert everything(study) == before
    monkeypatch.setitem(EXPLAINERS["text"], "gradient", None)
    for item in items_of(study):
        assert isinstance(item_input(item), Example)
        for shown in shown_of(item):
            assert set(decode_map(shown).scores) != {7.0}


@pytest.mark.parametrize("kind", MAKE)
def test_what_people_see_does_not_name_how_it_was_made(kind: str, tmp_path: Path) -> None:
    design = check_design(MAKE[kind](tmp_path))
    for item in items_of(opened(design).id):
        for shown, method in zip(shown_of(item), design.ballot_methods, strict=True):
            assert method.id.encode() not in shown.body
            assert design.model.encode() not in shown.body


def test_a_stored_picture_is_its_pixels_alone(tmp_path: Path) -> None:
    item = items_of(opened(image_design(tmp_path)).id)[0]
    assert item.picture is not None
    image = Image.open(io.BytesIO(item.picture))
    picture = item_input(item)
    assert isinstance(picture, Picture)
    assert image.info == {}
    np.testing.assert_array_equal(np.asarray(image), picture.pixels)
    assert item.input == {"picture": picture.digest}
    files = [np.asarray(Image.open(file)) for file in (tmp_path / "pictures").rglob("*.png")]
    assert any(np.array_equal(picture.pixels, pixels) for pixels in files)


@pytest.mark.parametrize(
    "damage", [lambda body: body[:-1] + bytes([body[-1] ^ 1]), lambda body: body[:20], lambda body: b""]
)
def test_damaged_explanations_are_told(damage: Callable[[bytes], bytes], tmp_path: Path) -> None:
    shown = take_snapshot(check_design(text_design(tmp_path)))[0].explanations[0]
    shown.body = damage(shown.body)
    with pytest.raises(ExegesisError, match=r"is damaged .*Restore the database"):
        decode_map(shown)


def test_a_seed_draws_the_same_items_and_practice_changes_none(tmp_path: Path) -> None:
    design = check_design(text_design(tmp_path, seed=3))
    counted = [one.index for one in select_items(design) if not one.practice]
    assert counted == [int(i) for i in np.random.default_rng(3).permutation(len(TEXTS))[:3]]
    without = select_items(dataclasses.replace(design, practice=0))
    assert [one.index for one in without] == counted
    assert [one.label for one in without] == [LABELS[index % 2] for index in counted]
    assert [one.index for one in select_items(dataclasses.replace(design, seed=4)) if not one.practice] != counted


def test_equal_inputs_are_shown_once(tmp_path: Path) -> None:
    design = check_design(text_design(tmp_path, practice=0))
    Path(design.dataset).write_text("text,label\nsame,bad\nsame,good\nother,bad\nthird,good\n")
    assert sorted(one.input.as_plain()["text"] or "" for one in select_items(design)) == ["other", "same", "third"]


@pytest.mark.parametrize(("judged", "most_words"), [("right", 11), ("wrong", None), ("any", 11)])
def test_a_filter_takes_what_meets_all_of_it(judged: str, most_words: int | None, tmp_path: Path) -> None:
    plain = check_design(text_design(tmp_path, practice=0))
    said = predictions(plain.model, [Example(text) for text in TEXTS])
    bad = [i for i in range(len(TEXTS)) if i % 2 == 0 and len(TEXTS[i].split()) <= (most_words or 99)]
    wanted = {i for i in bad if judged == "any" or (said[i].index == 0) is (judged == "right")}
    items = ItemChoice("filter", len(wanted), label="bad", judged=judged, most_words=most_words)
    found = select_items(dataclasses.replace(plain, items=items))
    assert {one.index for one in found} == wanted
    with pytest.raises(ExegesisError, match=rf"only {len(wanted)} of the"):
        select_items(dataclasses.replace(plain, items=dataclasses.replace(items, count=len(wanted) + 1)))


def test_classes_that_are_not_the_models_cannot_be_judged(tmp_path: Path) -> None:
    items = ItemChoice("filter", 3, judged="wrong")
    with pytest.raises(
        UsageError, match=r"items.judged: .*\(fox, hen\) do not match .*\(cat, dog, eel\).* Choose 'any'"
    ):
        select_items(check_design(image_design(tmp_path, names=("fox", "hen"), items=items)))


def test_hand_picked_items_keep_their_order_and_the_first_are_practice(tmp_path: Path) -> None:
    design = check_design(text_design(tmp_path, items=ItemChoice("hand", indices=(7, 2, 9, 4))))
    assert [(one.index, one.practice) for one in select_items(design)] == [
        (7, True),
        (2, False),
        (9, False),
        (4, False),
    ]


@pytest.mark.parametrize(
    ("items", "said"),
    [
        (ItemChoice(count=60), r"61 are needed, including practice items, but only 10 of the 10 examples of .* match"),
        (ItemChoice("filter", 3, least_words=99), r"only 0 of the"),
        (
            ItemChoice("filter", 3, label="great"),
            r"design.items.label: must be a class of .* \(bad, good\), got 'great'",
        ),
        (ItemChoice("hand", indices=(1, 2, 3, 10)), r"design.items.indices: must be 0 to 9 in .*, got 10"),
    ],
)
def test_items_that_are_not_there_are_told(items: ItemChoice, said: str, tmp_path: Path) -> None:
    with pytest.raises(ExegesisError, match=said):
        select_items(check_design(text_design(tmp_path, items=items)))


def test_a_study_goes_from_draft_to_archive(tmp_path: Path) -> None:
    made = studies.create(text_design(tmp_path))
    assert (made.state, made.takes_votes, made.opened) == ("draft", False, None)
    assert len(made.token) >= 22  # 128 bits in base 64
    seen: list[tuple[int, int]] = []
    found = studies.open_study(made.id, lambda done, total, _: seen.append((done, total)))
    assert seen[-1] == (8, 8)  # 4 items by 2 methods; the placebo is one of them, mixed
    assert (found.state, found.takes_votes) == ("open", True)
    assert found.opened == pytest.approx(time.time(), abs=60)
    assert studies.close(made.id).closed == pytest.approx(time.time(), abs=60)
    assert studies.archive(made.id).state == "archived"
    assert [kind for kind, _, _ in studies.study_log(made.id)] == ["created", "opened", "closed", "archived"]
    logged = studies.study_log(made.id)[1][2]["design"]
    assert logged["exclusion"] == dataclasses.asdict(made.design.exclusion)


def test_steps_out_of_order_are_refused(tmp_path: Path) -> None:
    made = studies.create(text_design(tmp_path))
    for step, said in ((studies.close, "open to be closed"), (studies.archive, "closed to be archived")):
        with pytest.raises(ExegesisError, match=rf"study {made.id}: must be {said}, but it is draft"):
            step(made.id)
    studies.open_study(made.id)
    with pytest.raises(ExegesisError, match=r"must be a draft to be opened, but it is open"):
        studies.open_study(made.id)
    with pytest.raises(ExegesisError, match=r"must be a draft to be changed, but it is open"):
        studies.change(made.id, made.design)


def test_a_stopped_opening_leaves_a_draft(tmp_path: Path) -> None:
    made, token = studies.create(text_design(tmp_path)), CancelToken()
    with pytest.raises(Cancelled):
        studies.open_study(made.id, lambda *_: token.cancel(), token)
    assert studies.find(made.id).state == "draft"
    assert items_of(made.id) == []
    assert studies.open_study(made.id).state == "open"


def test_a_change_during_the_opening_is_not_lost(tmp_path: Path) -> None:
    made = studies.create(text_design(tmp_path))
    other = dataclasses.replace(made.design, title="Other")

    def meanwhile(done: int, total: int, label: str) -> None:
        if studies.find(made.id).design != other:
            studies.change(made.id, other)

    with pytest.raises(ExegesisError, match=r"was changed while it was being opened. Open it again"):
        studies.open_study(made.id, meanwhile)
    assert (studies.find(made.id).state, items_of(made.id)) == ("draft", [])


def test_a_study_whose_time_is_over(tmp_path: Path) -> None:
    made = studies.create(text_design(tmp_path, closes_at=time.time() - 1))
    with pytest.raises(UsageError, match=r"design.closes_at: must be in the future"):
        studies.open_study(made.id)
    copy = studies.duplicate(made.id)
    assert copy.design == dataclasses.replace(made.design, title="Copy of Small", closes_at=None)
    assert studies.duplicate(copy.id).design.title == "Copy of Small"
    over = dataclasses.replace(made, state="open")
    assert not over.takes_votes


def test_studies_are_found_listed_and_deleted(tmp_path: Path) -> None:
    first, second = (studies.create(text_design(tmp_path, title=title)) for title in ("First", "Second"))
    assert [study.id for study in studies.list_studies()] == [second.id, first.id]
    assert studies.find_by_token(second.token) == second
    assert studies.find_by_token("x") is None
    assert first.token != second.token
    studies.delete(first.id)
    assert studies.list_studies() == [second]
    with pytest.raises(ExegesisError, match=rf"study: there is no study {first.id}. List them"):
        studies.find(first.id)
    with pytest.raises(ExegesisError, match=r"there is no study"):
        studies.delete(first.id)
    assert studies.create(first.design).id not in (first.id, second.id)


def test_a_method_that_fails_opens_nothing(tmp_path: Path) -> None:
    head = MethodChoice("attention_head", {"layer": 99, "head": 0})
    made = studies.create(text_design(tmp_path, methods=(MethodChoice("gradient"), head)))
    with pytest.raises(ExegesisError, match=r"attention_head.layer"):
        studies.open_study(made.id)
    assert studies.find(made.id).state == "draft"
