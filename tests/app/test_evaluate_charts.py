"""Around the charts of the Evaluate page: the way to examples without a mouse, methods drawn, models filled in."""

from __future__ import annotations

import json

import pytest
from streamlit.testing.v1 import AppTest

from components.evaluate.view import SESSION
from components.navigation import EVALUATE
from engine import jobs
from tests.project import ROOT

pytestmark = pytest.mark.usefixtures("own_home")


def opened(**query: str) -> AppTest:
    """The page with the evaluation that comes with the project."""
    page = AppTest.from_file(str(ROOT / "app.py"), default_timeout=240.0).switch_page(EVALUATE.file)
    for name, value in query.items():
        page.query_params[name] = value
    page.run()
    assert not page.exception
    return page


def legend(page: AppTest) -> list[str]:
    """The methods in the legend of the chart, in its order."""
    [chart] = page.get("vega_lite_chart") or page.get("arrow_vega_lite_chart")
    layers = json.loads(chart.proto.spec)["layer"]
    named: list[str] = next(one for one in layers if "color" in one["encoding"])["encoding"]["color"]["legend"][
        "values"
    ]
    return named


def test_a_number_of_a_chart_is_chosen_from_a_list_and_leads_to_its_examples() -> None:
    page = opened(view="curves")
    assert page.segmented_control(SESSION.key("text", "look.view")).proto.required, "a view that is clicked again stays"
    listed = page.selectbox(SESSION.key("text", "lead.curves."))
    place = next(at for at, words in enumerate(listed.options) if words.startswith("LIME, 20% of the tokens: "))
    listed.set_value(place).run()
    assert page.query_params["point"] == ["reviews-minilm", "lime", "without_top", "", "20", ""]
    assert len([link for link in page.get("page_link") if link.proto.label == "Open on Text"]) == 10
    page.selectbox(SESSION.key("text", "lead.curves.")).set_value(None).run()
    assert "point" not in page.query_params


def test_the_methods_drawn_are_chosen_and_stand_in_the_link() -> None:
    page = opened(view="cost")
    everyone = legend(page)
    pills = page.pills(SESSION.key("text", "view.only"))
    pills.set_value(["random", "lime"]).run()
    assert legend(page) == ["LIME", "Random"]
    assert sorted(page.query_params["only"]) == ["lime", "random"]
    page.pills(SESSION.key("text", "view.only")).set_value([]).run()
    assert legend(page) == everyone
    assert "only" not in page.query_params


def test_a_view_without_models_fills_them_in_and_starts_nothing() -> None:
    page = opened(view="scaling")
    page.button(SESSION.key("text", "fill.scaling")).click().run()
    assert not page.exception
    assert page.multiselect(SESSION.key("text", "models")).value == [
        "t5-mini-marked", "t5-small-marked", "t5-marked", "t5-deep-marked",
    ]  # fmt: skip
    assert page.selectbox(SESSION.key("text", "dataset")).value == "reviews-marked"
    assert "Evaluate" in [button.label for button in page.button]
    assert jobs.list_jobs() == []
