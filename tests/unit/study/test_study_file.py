"""A study file: what leaves is what arrives, bit for bit, and no secret leaves."""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from pathlib import Path

import numpy as np
import pytest
import sqlalchemy as sa

from engine.errors import ExegesisError
from engine.request import Example
from engine.study import studies, study_file
from engine.study.annotators import join
from engine.study.ballots import next_ballot, replay_ballot
from engine.study.database import Annotator, Item, ItemExplanation, Study, study_database
from engine.study.design import Design, ItemChoice, MethodChoice
from engine.study.items import decode_map, item_input, item_names, item_prediction, text_start
from engine.study.results import results
from engine.study.study_file import export_study, import_study
from tests.unit.study.files import content_of, opened, sealed, without_votes, written
from tests.unit.study.polls import agreed
from tests.unit.study.samples import text_design

pytestmark = pytest.mark.usefixtures("store")


def rows_of(study: int) -> tuple[list[Item], list[ItemExplanation]]:
    with study_database().reading() as session:
        items = list(session.scalars(sa.select(Item).where(Item.study == study).order_by(Item.place)))
        found = sa.select(ItemExplanation).join(Item, Item.id == ItemExplanation.item).where(Item.study == study)
        return items, list(session.scalars(found.order_by(Item.place, ItemExplanation.place)))


@pytest.mark.parametrize("kind", ["text", "image"])
def test_a_study_made_again_elsewhere_shows_the_same_bit_for_bit(kind: str) -> None:
    content = content_of(written(kind))
    draft = import_study(without_votes(kind))
    assert draft.state == "draft"
    assert draft.design.to_json() == content["design"]
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
        item_input(item)
        item_prediction(item)
    for one in shown:
        assert np.isfinite(decode_map(one).scores).all()
    assert next_ballot(agreed(there.token).id) is not None


def prompt_study() -> int:
    design = Design(
        title="Prompts",
        model="tiny-llama",
        dataset="agreement",
        kind="text",
        methods=(MethodChoice("gradient"), MethodChoice("gradient_x_input")),
        items=ItemChoice("filter", count=2, label="answer"),
        items_per_annotator=2,
        practice=1,
        repeats=0,
    )
    return studies.open_study(studies.create(design).id).id


def test_a_study_of_prompts_is_the_same_elsewhere() -> None:
    study = prompt_study()
    data = export_study(study)
    there = studies.open_study(import_study(data).id)
    assert content_of(export_study(there.id))["items"] == content_of(data)["items"]
    prompts = [item["input"]["prompt"] for item in content_of(data)["items"]]
    assert [name.text for name in item_names(there.id).values()] == [text_start(Example(text)) for text in prompts]


@pytest.mark.parametrize(
    ("change", "wrong"),
    [
        ({"chat": "maybe"}, r"items\[0\]\.input\.chat: must be True or False, got 'maybe'"),
        ({"text": "x"}, r"items\[0\]\.input: must be the fields prompt, target, contrast, chat"),
        ({"target": " x", "contrast": " x"}, "contrast: must differ from the target"),
    ],
)
def test_a_prompt_that_is_none_is_refused(change: dict[str, str], wrong: str) -> None:
    content = content_of(export_study(prompt_study()))
    content["items"][0]["input"] |= change
    with pytest.raises(ExegesisError, match=wrong):
        import_study(sealed(content))


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
    assert found.answers == len(counted) == len(found.votes)
    for vote, was in zip(found.votes, counted, strict=True):
        assert (vote.annotator, vote.item, vote.repeat) == (was["annotator"], str(was["item"]), was["repeat"])
        assert (vote.seconds, vote.at) == (was["seconds"], was["at"])
        assert vote.ranks is not None
        assert [vote.ranks[method] for method in vote.order] == was["ranks"]
        assert replay_ballot(there.id, vote.annotator, vote.item, vote.repeat).methods == vote.order
    with pytest.raises(ExegesisError, match="is closed"):
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
    with pytest.raises(ExegesisError, match=r"was imported with its explanations, so it cannot change. Duplicate it"):
        studies.change(there.id, there.design)
    assert rows_of(studies.duplicate(there.id).id) == ([], [])


def test_what_is_damaged_here_is_not_passed_on() -> None:
    study = import_study(without_votes("text")).id
    with study_database().writing() as session:
        first = session.scalars(sa.select(ItemExplanation)).first()
        assert first is not None
        first.body = first.body[:-1] + bytes([first.body[-1] ^ 1])
    with pytest.raises(ExegesisError, match="is damaged"):
        export_study(study)


def test_a_file_that_could_not_be_read_again_is_not_written(monkeypatch: pytest.MonkeyPatch) -> None:
    study = import_study(without_votes("text")).id
    monkeypatch.setattr(study_file, "MAX_BYTES", 1000)
    with pytest.raises(ExegesisError, match=r"its file would have .* kB?, but files of at most"):
        export_study(study)
    with pytest.raises(ExegesisError, match=r"FILE: must be at most"):
        import_study(written("text"))
