"""A choice that the browser makes before it has heard of the last one: both count. Going back is no late choice."""

from __future__ import annotations

from unittest.mock import patch

import pytest
from streamlit.testing.v1 import AppTest

from components import controls
from components.inputs import text_choice
from components.text.state import key
from tests.app.options import open_options
from tests.project import ROOT

SECONDS = 120
LINK = {"data": "reviews", "index": "0", "method": "random", "model": "reviews-minilm"}


@pytest.fixture
def page() -> AppTest:
    page = AppTest.from_file(str(ROOT / "pages" / "text.py"), default_timeout=SECONDS)
    return open_options(say(page, LINK).run(), key("options"))


def say(page: AppTest, link: dict[str, str]) -> AppTest:
    """The browser's address from now on."""
    page.query_params.clear()
    for name, value in link.items():
        page.query_params[name] = value
    return page


def shown(page: AppTest) -> tuple[object, str]:
    """The example and the text."""
    return page.number_input(text_choice.key("index")).value, page.text_area(text_choice.key("text")).value


def choose_words_late(page: AppTest, first: tuple[object, str]) -> AppTest:
    """As a browser does that still shows the first link and the first example."""
    page.number_input(text_choice.key("index")).set_value(first[0])
    page.text_area(text_choice.key("text")).set_value(first[1])
    page.get_by_key(key("unit")).set_value("word")
    return say(page, LINK).run()


def after_another_example(page: AppTest) -> tuple[object, str]:
    with patch("random.randrange", return_value=18):
        page.button(text_choice.key("random")).click().run()
    return shown(page)


def test_a_choice_that_is_stale_keeps_what_the_one_before_it_brought(page: AppTest) -> None:
    first = shown(page)
    second = after_another_example(page)
    assert second[0] == 18
    assert second != first
    choose_words_late(page, first)
    assert shown(page) == second
    assert page.query_params["index"] == "18"
    assert page.query_params["unit"] == "word"
    choose_words_late(page, first)
    assert shown(page) == second, "nor does one that is later still"


def test_an_address_to_which_a_person_goes_back_is_opened(page: AppTest) -> None:
    first = shown(page)
    after_another_example(page)
    with patch("components.state.is_history_navigation", return_value=True):
        say(page, LINK).run()
    assert shown(page) == first


def test_a_link_that_is_opened_from_another_page_is_no_late_choice(page: AppTest) -> None:
    first = shown(page)
    after_another_example(page)
    page.session_state["frame_visit"] = (2, "text")
    say(page, LINK).run()
    assert shown(page) == first


def test_who_sees_the_new_example_may_go_back_to_the_one_before(page: AppTest, monkeypatch: pytest.MonkeyPatch) -> None:
    first = shown(page)
    after_another_example(page)
    monkeypatch.setattr(controls, "DRAWN_SECONDS", 0.0)
    page.number_input(text_choice.key("index")).set_value(0).run()
    assert shown(page) == first


def test_the_clock_runs_from_the_end_of_the_run_that_set_the_controls(
    page: AppTest, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run that a choice interrupts has not ended, however long it took."""
    first = shown(page)
    second = after_another_example(page)
    link = {name: page.query_params[name] for name in page.query_params}
    page.session_state[controls.ENDED_BEFORE] = 0.0
    now = controls.time.monotonic()
    monkeypatch.setattr(controls.time, "monotonic", lambda: now + 60)
    page.number_input(text_choice.key("index")).set_value(first[0])
    page.text_area(text_choice.key("text")).set_value(first[1])
    assert shown(say(page, link).run()) == second
    page.session_state[controls.ENDED] = now
    page.number_input(text_choice.key("index")).set_value(first[0])
    assert shown(say(page, link).run()) == first
