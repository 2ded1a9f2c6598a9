"""The query bar: on every page but the participants', with what was understood, the command and the way to the page."""

from __future__ import annotations

import pytest
from streamlit.testing.v1 import AppTest

from components.ask.bar import KEY, OPEN, QUESTION
from components.navigation import ANNOTATE, HOME, LAYERS, PAGES, TEXT, PageEntry
from engine.access import STUDY_ONLY
from engine.query import parse
from tests.alerts import errors
from tests.project import ROOT

SECONDS = 120

pytestmark = pytest.mark.usefixtures("own_home")


def opened(entry: PageEntry = HOME, **link: str) -> AppTest:
    page = AppTest.from_file(str(ROOT / "app.py"), default_timeout=SECONDS)
    if entry is not HOME:
        page = page.switch_page(entry.file)
    for name, value in link.items():
        page.query_params[name] = value
    return page.run()


def has_bar(page: AppTest) -> bool:
    return any(block.proto.popover.label == "Ask" for block in blocks(page))


def blocks(page: AppTest) -> list[object]:
    found, waiting = [], [page.main]
    while waiting:
        block = waiting.pop()
        found.append(block)
        waiting += [child for child in block.children.values() if hasattr(child, "children")]
    return [block for block in found if getattr(block, "proto", None) is not None and hasattr(block.proto, "popover")]


def ask(question: str, entry: PageEntry = HOME, **link: str) -> AppTest:
    page = opened(entry, **link)
    page.session_state[OPEN] = True
    page.session_state[QUESTION] = question
    page.run()
    assert not page.exception
    return page


@pytest.mark.parametrize("entry", PAGES, ids=lambda entry: entry.title)
def test_the_bar_is_on_every_page_but_the_participants(entry: PageEntry) -> None:
    page = opened(entry)
    assert has_bar(page) == (entry is not ANNOTATE)
    assert not [box for box in page.selectbox if box.key == QUESTION], "closed, it draws nothing else"


def test_a_server_of_studies_has_no_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(STUDY_ONLY, "1")
    assert not has_bar(opened())


def test_a_question_shows_what_was_understood_and_its_command_and_opens_the_page() -> None:
    page = ask("top 5 words for negative in example 7 by occlusion")
    [line] = [one.value for one in page.markdown if one.value.startswith("**Most important features:**")]
    assert "the 5 most important words for negative in example 7 of the data set reviews" in line.replace("\u2060", "")
    assert [one.value for one in page.code] == [
        "exegesis explain --model reviews-minilm --method occlusion --dataset reviews --index 7 --target negative"
    ]
    assert "All of them are shown. Read the first 5." in [one.value.replace("\\", "") for one in page.caption]
    page.button(key=f"{KEY}_go").click().run()
    assert not page.exception
    assert [title.value for title in page.title] == [TEXT.heading]
    assert page.number_input(key="focus.index").value == 7
    assert page.query_params["method"] in ("occlusion", ["occlusion"])
    assert page.query_params["target"] in ("negative", ["negative"])


def test_the_page_that_is_shown_already_takes_the_link() -> None:
    page = ask("explain example 3 by LIME", TEXT, model="reviews-minilm", method="random", data="reviews", index="1")
    page.button(key=f"{KEY}_go").click().run()
    assert not page.exception
    assert page.query_params["method"] in ("lime", ["lime"])
    assert page.number_input(key="focus.index").value == 3


def test_what_a_question_leaves_out_is_that_of_the_page() -> None:
    page = ask("the prediction", TEXT, model="nli-minilm", method="random", data="nli", index="4")
    assert "exegesis explain --model nli-minilm --method random --dataset nli --index 4" in [
        one.value for one in page.code
    ]


def test_what_is_not_understood_lists_the_nearest_questions_which_can_be_asked() -> None:
    page = ask("which method do people prefer")
    assert "Not understood. Not known here: 'people', 'prefer'." in " ".join(errors(page))
    assert not page.code
    labels = [page.button(key=f"{KEY}_near_{place}").label.replace("\u2060", "") for place in range(3)]
    assert all(parse(label) for label in labels)
    page.button(key=f"{KEY}_near_0").click().run()
    assert page.session_state[QUESTION] == labels[0]
    assert page.code


def test_a_word_that_the_text_does_not_have_is_said_and_markup_stays_text() -> None:
    page = ask("what if '<b>[x](http://x)</b>' is removed in example 0")
    assert "is not in example 0 of reviews" in " ".join(errors(page))
    assert not page.code
    page = ask("predict '**[x](http://x)**'")
    [line] = [one.value for one in page.markdown if one.value.startswith("**Prediction:**")]
    assert "[x](http" not in line.replace("\\", "|")


def test_a_question_about_the_layers_of_a_prompt_opens_their_lens() -> None:
    page = ask("which layer decides 'are' in 'The keys near the cabinet'")
    assert [one.value for one in page.code] == [
        "exegesis layers lens --model tiny-llama --text 'The keys near the cabinet' --target ' are'"
    ]
    page.button(key=f"{KEY}_go").click().run()
    assert not page.exception
    assert [title.value for title in page.title] == [LAYERS.heading]
    assert not errors(page), "the tokens that are corrupted are still to be chosen"
    assert "Choose the tokens to corrupt" in " ".join(html.proto.body for html in page.get("html"))


def test_a_question_about_a_next_token_names_both_tokens_on_the_page() -> None:
    page = ask(
        "why 'are' rather than 'is' by random", TEXT, model="tiny-llama", method="random", data="agreement", index="3"
    )
    page.button(key=f"{KEY}_go").click().run()
    assert not page.exception
    assert [page.selectbox(key=f"focus.{name}").value for name in ("target_token", "contrast")] == [" are", " is"]
