"""A participant's browser never learns which method made what: all that it receives and sends is searched."""

from __future__ import annotations

import dataclasses
import re
from base64 import b64encode
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any
from zlib import compress

import pytest
import sqlalchemy as sa
from playwright.sync_api import Page, expect

from components.annotate.seat import SCRIPT
from components.ballot_maps import explanation_html
from components.styles import asset_sheet, stylesheet
from components.widgets import ranking
from components.widgets.base import component_files
from components.widgets.patch_map import picture_sheet
from engine.registry import all_explainers
from engine.study.ballots import ItemView, assignment_plan, order_methods, replay_ballot
from engine.study.counted_votes import method_names
from engine.study.database import Annotator, IssuedBallot, Item, ItemExplanation, Study, study_database
from engine.study.design import MethodChoice
from engine.study.studies import StudyRecord, create, find, open_study
from tests.browser.annotating import begin, cannot_tell, cards, link, store_of
from tests.browser.recording import PIXELS_ONLY, Recording, chunks
from tests.browser.server import Server
from tests.project import ROOT
from tests.unit.study.samples import image_design, text_design

Open = Callable[..., Page]
SEED = 71_835_029
WIDTH = 23.625
ITEMS = ("Practice", "Item 1 of 4", "Item 2 of 4", "Item 3 of 4", "Item 4 of 4", "Thank you")
AS_THE_BROWSER_SPELLS = """html => {
  const made = document.createElement("div");
  made.innerHTML = html;
  return made.innerHTML;
}"""
METHODS = {
    "text": (MethodChoice("integrated_gradients"), MethodChoice("lime", {"n_samples": 40, "kernel_width": WIDTH})),
    "image": (MethodChoice("attention_rollout"), MethodChoice("lime", {"n_samples": 40, "kernel_width": WIDTH})),
}


@pytest.fixture(scope="module", params=["text", "image"])
def study(request: pytest.FixtureRequest, server: Server, tmp_path_factory: pytest.TempPathFactory) -> StudyRecord:
    """Two methods and the placebo."""
    make = text_design if request.param == "text" else image_design
    with store_of(server):
        design = make(tmp_path_factory.mktemp("study"), methods=METHODS[request.param], seed=SEED)
        return open_study(create(design).id)


@cache
def ours() -> tuple[bytes, ...]:
    """Style sheets and scripts, which are the same in every study: they speak of gradients of colors."""
    sheets = [stylesheet(), picture_sheet(), f"<style>{asset_sheet('ballot')}</style>"]
    files = component_files("ranking", folder=Path(ranking.__file__).parent)
    return tuple(one.encode() for one in [*sheets, *files, SCRIPT.read_text(encoding="utf-8")])


def without_ours(received: bytes) -> bytes:
    for one in ours():
        received = received.replace(one, b"")
    return received


def secrets(study: StudyRecord) -> set[str]:
    """What would tell a method, or the way to it: names, parameters, where it comes from."""
    told = {str(SEED), str(WIDTH), study.design.model, study.design.dataset, "kernel_width", "n_samples", "n_steps"}
    for id, method in all_explainers(study.design.kind).items():
        told |= {id, method.title}
    with study_database().reading() as session:
        rows = session.execute(
            sa.select(ItemExplanation).join(Item, Item.id == ItemExplanation.item).where(Item.study == study.id)
        )
        for shown in rows.scalars():
            told |= {shown.digest, shown.provenance["revision"], shown.provenance["dtype"], "provenance", "revision"}
        secret = session.scalar(sa.select(Study.secret).where(Study.id == study.id))
    return told | {str(secret)}


def found(words: set[str], received: bytes) -> list[str]:
    """The words that stand in it by themselves, in any case."""
    told = received.decode("utf-8", "replace").lower()
    return sorted(word for word in words if re.search(rf"(?<![\w-]){re.escape(word.lower())}(?![\w-])", told))


def expected_cards(study: StudyRecord, pseudonym: str, item: str, repeat: int) -> list[str]:
    """The markup of A, B, ..., from the drawn order and from what was frozen."""
    with study_database().reading() as session:
        row = session.get_one(Study, study.id)
        found_item = sa.select(Item.practice).where(Item.study == study.id, Item.place == int(item))
        practice = session.scalars(found_item).one()
        names = [str(place) for place in range(len(study.design.ballot_methods))]
        order = order_methods(assignment_plan(session, row), pseudonym, ItemView(item, repeat, practice), names)
    was = replay_ballot(study.id, pseudonym, item, repeat)
    assert was.methods == tuple(method_names(study.design)[int(place)] for place in order)
    return [explanation_html(was.ballot.input, drawn) for drawn in was.ballot.maps]


def looks(study: StudyRecord) -> list[tuple[str, str, int]]:
    """Pseudonym, item and repeat of each ballot, in the order in which they were given."""
    with study_database().reading() as session:
        given = sa.select(Annotator.pseudonym, Item.place, IssuedBallot.repeat).select_from(IssuedBallot)
        given = given.join(Item, Item.id == IssuedBallot.item).join(Annotator, Annotator.id == IssuedBallot.annotator)
        rows = session.execute(given.where(IssuedBallot.study == study.id).order_by(IssuedBallot.id))
        return [(pseudonym, str(place), repeat) for pseudonym, place, repeat in rows]


def test_nothing_that_the_browser_receives_tells_a_method_and_the_order_is_the_drawn_one(
    server: Server, study: StudyRecord, open_page: Open
) -> None:
    page, recording = open_page("about:blank", apart=True), Recording()
    recording.listen(page)
    page.goto(link(server, study.token))
    begin(page)
    shown = []
    for then in ITEMS[1:]:
        shown.append(cards(page))
        recording.finish(page)
        cannot_tell(page, then)
    recording.finish(page)
    received = recording.everything()
    with store_of(server):
        words = secrets(study)
        mine = looks(study)[-len(shown) :]
        drawn = [expected_cards(study, *look) for look in mine]
    assert found(words, without_ours(received)) == []
    for folder in (ROOT, server.home):
        assert str(folder).encode() not in received
    assert [[page.evaluate(AS_THE_BROWSER_SPELLS, one) for one in ballot] for ballot in drawn] == shown
    for png in recording.pictures():
        assert {name for name, _ in chunks(png)} <= PIXELS_ONLY
    assert bool(recording.pictures()) == (study.design.kind == "image")


def test_the_search_itself_finds_what_is_hidden() -> None:
    for hidden in (b"lime", b64encode(b"made by lime ok"), b64encode(compress(b"all by lime, see"))):
        recording = Recording(parts=[b"x " + hidden + b" y"])
        assert found({"lime", "occlusion"}, recording.everything()) == ["lime"]
    assert found({"lime"}, b"sublime lime-tree") == []


def numbers_of(predictions: list[dict[str, Any]]) -> set[str]:
    """The probabilities as they could be written."""
    shares = [share for one in predictions for share in one["probabilities"]]
    return {f"{share:.{digits}f}" for share in shares for digits in (4, 6)} | {
        f"{100 * share:.1f}%" for share in shares
    }


def unanswered(server: Server, open_page: Open, study: StudyRecord) -> Recording:
    """All that is sent to a person who cannot tell any of three items, after one for practice."""
    page, recording = open_page("about:blank", apart=True), Recording()
    recording.listen(page)
    page.goto(link(server, study.token))
    for label in ("I agree and take part", "I have it", "Begin"):
        page.get_by_role("button", name=label, exact=True).click()
    for then in ("Item 1 of 3", "Item 2 of 3", "Item 3 of 3", "Thank you"):
        page.get_by_role("button", name="Cannot tell", exact=True).click()
        expect(page.get_by_role("heading", level=1, name=then, exact=True)).to_be_visible()
        expect(page.locator("[data-stale=true]")).to_have_count(0)
        recording.finish(page)
    return recording


def test_a_study_of_edits_shows_the_edit_and_sends_no_prediction_after_it(
    server: Server, open_page: Open, tmp_path_factory: pytest.TempPathFactory
) -> None:
    with store_of(server):
        design = text_design(
            tmp_path_factory.mktemp("edits"), methods=METHODS["text"], seed=SEED, mode="counterfactual"
        )
        study = open_study(create(dataclasses.replace(design, repeats=0)).id)
        with study_database().reading() as session:
            items = session.scalars(sa.select(Item).where(Item.study == study.id)).all()
    sent = without_ours(unanswered(server, open_page, study).everything())
    assert b"<del>" in sent
    after, before = ([item.edit["prediction"] for item in items if item.edit], [item.prediction for item in items])
    with store_of(server):
        words = secrets(find(study.id)) | (numbers_of(after) - numbers_of(before))
    assert found(words, sent) == []


def test_a_study_of_guesses_sends_no_answer_of_the_model(
    server: Server, open_page: Open, tmp_path_factory: pytest.TempPathFactory
) -> None:
    with store_of(server):
        made = text_design(tmp_path_factory.mktemp("guesses"), methods=METHODS["text"], seed=SEED, mode="predict")
        study = open_study(create(dataclasses.replace(made, repeats=0)).id)
        with study_database().reading() as session:
            said = list(session.scalars(sa.select(Item.prediction).where(Item.study == study.id)))
    recording = unanswered(server, open_page, study)
    with store_of(server):
        words = secrets(find(study.id)) | numbers_of(said) | {"prediction", "logits"}
    assert found(words, without_ours(recording.everything())) == []
