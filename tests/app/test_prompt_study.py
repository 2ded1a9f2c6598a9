"""A study of a language model's prompts: made from a data set of prompts, answered on the page, ranked and exported."""

from __future__ import annotations

import csv
import io
import re
from html import unescape

import pytest
from streamlit.testing.v1 import AppTest

from components.annotate.seat import SEAT_KEY
from components.navigation import RESULTS
from engine.data.datasets import load
from engine.study import studies
from engine.study.access import new_token
from engine.study.annotators import Answer, confirm
from engine.study.ballots import next_ballot
from engine.study.database import ADDRESS
from engine.study.design import Design, ItemChoice, MethodChoice
from engine.study.results import export_rows, results, results_to_json
from engine.table_io import to_csv
from tests.alerts import errors
from tests.app.test_annotate import begun, title
from tests.project import ROOT
from tests.unit.study.quick import rate_quickly

QUESTION = "Which explanation tells best why the model said this?"
METHODS = ("occlusion", "gradient_x_input")
PEOPLE = 2
SECONDS = 120


@pytest.fixture(autouse=True)
def empty(own_home: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """No studies, and ratings that take no time."""
    monkeypatch.delenv(ADDRESS, raising=False)
    rate_quickly(monkeypatch)


def test_from_prompts_to_the_ranking() -> None:
    design = Design(
        title="Prompts", model="tiny-llama", dataset="agreement", kind="text", question=QUESTION,
        methods=tuple(map(MethodChoice, METHODS)), items=ItemChoice("filter", count=2), items_per_annotator=2,
        practice=1, repeats=0, placebo=True,
    )  # fmt: skip
    study = studies.open_study(studies.create(design).id)
    data = load("agreement")
    texts = {data[index].text for index in range(len(data))}
    for _ in range(PEOPLE):
        page = begun(study)
        shown = drawn(page)
        assert QUESTION in shown
        [asked] = re.findall(r'<p class="xg-text"[^>]*>([^<]*)</p>', shown)
        assert asked in texts
        assert "The model says, of these two tokens alone" in shown
        assert re.findall(r'xg-chosen">·(?:is|are|was|were|has|have)<', shown), "the token that is explained"
        assert not [name for name in (*METHODS, "Occlusion", "Gradient x input") if name in shown], "blind"
        seat = int(page.session_state[SEAT_KEY]["person"])
        while (ballot := next_ballot(seat)) is not None:
            confirm(seat, Answer(ballot.token, new_token(), tuple(range(1, len(ballot.maps) + 1))))
        page.run()
        assert title(page) == "Thank you"
    expect_results(study.id)


def expect_results(study: int) -> None:
    """Everybody ranked the maps in the order in which they were shown, which no page says but the file of orders."""
    plain = results_to_json(results(study))
    assert (plain["answers"], plain["annotators"]) == (2 * PEOPLE, PEOPLE)
    votes, items, orders = (export_rows(study, name) for name in ("votes", "items", "orders"))
    shown = {(row["annotator"], row["item"]): str(row["order"]).split(",") for row in orders if not row["practice"]}
    assert len(votes) == 2 * PEOPLE
    for vote in votes:
        order = shown[vote["annotator"], vote["item"]]
        assert [vote[method] for method in order] == list(range(1, len(METHODS) + 2)), "and the placebo"
    means = {name: sum(int(str(vote[name])) for vote in votes) for name in (*METHODS, "random")}
    ratings = {str(row["method"]): float(str(row["skill"])) for row in export_rows(study, "ratings")}
    assert ratings.keys() == means.keys()
    best, worst = min(means, key=means.__getitem__), max(means, key=means.__getitem__)
    assert (ratings[best] > ratings[worst]) == (means[best] < means[worst]), "equal if the drawn orders balance"
    assert all(str(row["target"]).strip() and row["contrast"] != row["target"] for row in items)
    [first, *_] = csv.DictReader(io.StringIO(to_csv(iter(items))))
    assert (first["text"], first["target"]) == (items[0]["text"], items[0]["target"])
    page = AppTest.from_file(str(ROOT / "app.py"), default_timeout=SECONDS).switch_page(RESULTS.file)
    page.query_params["study"] = str(study)
    page.run()
    assert not page.exception
    assert not errors(page)
    assert "Occlusion" in drawn(page)


def drawn(page: AppTest) -> str:
    return unescape("\n".join(element.proto.body for element in page.get("html")))
