"""Significant words on the Text page: on request, at a chosen rate, with reasons, files and the command."""

from __future__ import annotations

import csv
import io

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

import components.text.significance as panel
from components.text.significance import significance_html, survivors_map, words_csv, words_table
from components.text.state import SignificanceView, key
from components.widgets.token_map import tip
from engine.errors import ExegesisError
from engine.request import Example
from engine.significance.false_discovery import survives
from engine.significance.texts import SignificanceQuery, TextSignificance, text_significance
from engine.substitution import words_of
from tests.alerts import errors, html_of
from tests.project import ROOT

SECONDS = 120
TEXT = "A wonderful film with a weak ending."

pytestmark = pytest.mark.usefixtures("own_home")


def opened(**link: str) -> AppTest:
    page = AppTest.from_file(str(ROOT / "app.py"), default_timeout=SECONDS).switch_page("pages/text.py")
    for name, value in {"model": "reviews-minilm", "method": "random", "text": TEXT, **link}.items():
        page.query_params[name] = value
    page.run()
    assert not page.exception
    return page


def found(text: str, draws: list[list[float]], repeats: list[float] | None = None) -> TextSignificance:
    words = words_of(Example(text))
    return TextSignificance(
        "m", "r", "bases/bert-generated", 0, "positive", False, 0.9, words, tuple(("x",) for _ in words),
        np.array(repeats or [0.0] * len(words)), np.array(draws),
    )  # fmt: skip


def test_survivors_come_on_request_and_change_with_the_rate() -> None:
    page = opened()
    assert "significant at a false discovery rate" not in html_of(page)
    page.toggle(key=key("open.significance")).set_value(True).run()
    assert not page.exception
    assert page.query_params["open"] in ("significance", ["significance"])
    result = text_significance(SignificanceQuery("reviews-minilm", Example(TEXT)))
    assert result.shortage(0.05) == "", "as many draws as the smallest rate needs"
    sentences = []
    for rate in (5, 10, 20):
        page.segmented_control(key=key("significance.rate")).set_value(rate).run()
        assert not page.exception
        number = int(survives(result.adjusted(), rate / 100).sum())
        sentences.append(f"{number or 'None'} of 7 words")
        assert f"{sentences[-1]} {'are' if number > 1 else 'is'} significant at a false discovery rate of {rate}%" in (
            html_of(page)
        )
        assert page.query_params.get("rate") in ((None, []) if rate == 10 else (str(rate), [str(rate)]))
    assert len(set(sentences)) > 1, "the rate decides"
    command = f"exegesis significance --model reviews-minilm --text '{TEXT}' --rate 0.2"
    assert command in [one.value for one in page.code]


def test_a_link_opens_the_test_as_it_was_and_says_what_is_unknown() -> None:
    page = opened(open="significance", rate="5", alternative="two-sided", replacements="masked")
    assert page.segmented_control(key=key("significance.alternative")).value == "two-sided"
    assert "at a false discovery rate of 5%" in html_of(page)
    assert any("--rate 0.05 --alternative two-sided" in one.value for one in page.code)
    wrong = opened(rate="7")
    assert "rate" in " ".join(errors(wrong))


def test_what_fails_is_said_and_the_page_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*given: object) -> None:
        raise ExegesisError("masked_model: its files are gone.")

    monkeypatch.setattr(panel, "run_cached", fail)
    page = opened(open="significance")
    assert "masked_model: its files are gone." in " ".join(errors(page))
    assert "Export" in [one.value for one in page.subheader], "what follows is drawn"


def test_a_text_without_a_word_is_told() -> None:
    assert "text: must have at least one word" in " ".join(errors(opened(text="...", open="significance")))


def test_survivors_have_their_change_and_the_others_the_reason() -> None:
    one = found("good or dull", [[0.1] * 59, [0.9] * 59, [0.95] * 59], [0, 1.0, 0])
    drawn = survivors_map(one, SignificanceView(), ("good or dull", None))
    assert [unit.score for unit in drawn.units] == pytest.approx([0.8, 0, 0])
    assert tip(drawn, 0).startswith("good: +0.8")
    assert tip(drawn, 1) == "or: not significant, adjusted p = 1, as 100% of its replacements are the word itself"
    assert tip(drawn, 2) == "dull: not significant, adjusted p = 1"
    html = significance_html(one, SignificanceView(), ("good or dull", None))
    assert "1 of 3 words is significant at a false discovery rate of 10%: “<bdi>good</bdi>” +0.800." in html
    none = significance_html(found("or", [[0.9] * 19]), SignificanceView(rate=5), ("or", None))
    assert "None of 1 word is significant at a false discovery rate of 5%." in none
    against = survivors_map(one, SignificanceView(alternative="two-sided"), ("good or dull", None))
    assert [unit.score for unit in against.units] == pytest.approx([0.8, 0, -0.05])


def test_table_and_file_have_all_words_the_smallest_p_value_first() -> None:
    one = found("or good", [[0.9] * 39, [0.1] * 39])
    table = words_table(one, SignificanceView())
    assert table["Word"].tolist() == ["good", "or"]
    assert table["p"].tolist() == [0.025, 1.0]
    assert table["Adjusted p"].tolist() == [0.05, 1.0]
    assert table["Survives"].tolist() == ["yes", "no"]
    first, second = csv.DictReader(io.StringIO(words_csv(one, SignificanceView(rate=5))))
    assert (first["text"], first["p_value"], first["significant"]) == ("good", "0.025", "True")
    assert second["text"] == "or"


def test_markup_in_a_text_is_text() -> None:
    hostile = "<img src=x onerror=alert(1)>"
    words = words_of(Example(hostile))
    html = significance_html(found(hostile, [[0.1] * 199] * len(words)), SignificanceView(), (hostile, None))
    assert "<img" not in html
    assert "&lt;" in html
