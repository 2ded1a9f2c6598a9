"""Counterfactuals on the Text page: on request, with edits and pins that start from them, files and the command."""

from __future__ import annotations

import csv
import dataclasses
import io
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

import components.text.counterfactuals as panel
from components.text.counterfactuals import CONTEXT, counterfactual_html, search_options, summary_html
from components.text.state import key
from engine.counterfactuals.search import Change, SearchOptions, SearchRound
from engine.counterfactuals.texts import Counterfactual, CounterfactualResult
from engine.errors import ExegesisError
from engine.request import Example
from engine.result import Prediction
from engine.substitution import Word
from tests.alerts import errors, html_of
from tests.project import ROOT
from tests.tiny import save_checkpoint

TEXT = "good food, bad service"
HOSTILE = '<img src=x onerror="alert(1)"> good'

pytestmark = pytest.mark.usefixtures("own_home")


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(save_checkpoint("bert", tmp_path_factory.mktemp("model") / "tiny", labels=3))


def opened(model: str, **query: str | list[str]) -> AppTest:
    page = AppTest.from_file(str(ROOT / "pages" / "text.py"), default_timeout=120)
    for name, value in {"model": model, "method": "random", "text": TEXT, **query}.items():
        page.query_params[name] = value
    page.run()
    assert not page.exception
    return page


def result(*changes: Change, text: str = TEXT, flips: bool = True, complete: bool = True) -> CounterfactualResult:
    before, after = (Prediction(("negative", "positive"), (-x, x), (0.5 - x / 10, 0.5 + x / 10)) for x in (3.0, -2.0))
    one = Counterfactual(changes, Example("changed"), after if flips else before, 2 ** len(changes) - 2, 1)
    rounds = (SearchRound(1, 20, 0, True), SearchRound(2, 8, 1, complete), SearchRound(3, 5, 1, False))
    return CounterfactualResult(
        "m", "r", Example(text), before, None, None, SearchOptions(), (one,) if flips else (), None if flips else one,
        rounds, 4, 4, 29, 4,
    )  # fmt: skip


def change(text: str, word: str, replacement: str = "", log: float | None = None) -> Change:
    start = text.index(word)
    return Change(Word(0, start, start + len(word), word), replacement, "masked", log)


def test_they_are_searched_on_request_and_by_the_link(model: str) -> None:
    page = opened(model)
    assert "Changing" not in html_of(page)
    page.toggle(key=key("open.counterfactuals")).set_value(True).run()
    assert not page.exception
    assert page.query_params["open"] in ("counterfactuals", ["counterfactuals"])
    text = html_of(page)
    assert "Changing 1 word flips the prediction: “<bdi>" in text
    assert "<del>" in text
    assert "of the model and 4 of the masked model" in text
    command = next(one.value for one in page.code if "counterfactuals" in one.value)
    assert command == f"exegesis counterfactuals --model {model} --text 'good food, bad service'"


def test_an_edit_starts_from_one_and_its_words_are_pinned(model: str) -> None:
    page = opened(model, open="counterfactuals")
    page.button(key("flip_edit.0")).click().run()
    assert not page.exception
    edit = page.text_area(key("edit")).value
    assert edit != TEXT
    assert "The predicted class changes from" in html_of(page)
    assert page.query_params["edit"] in (edit, [edit])
    page.button(key("flip_pin.0")).click().run()
    assert not page.exception
    assert page.query_params["pin"]
    assert 'class="xg-heading"' in html_of(page)


def test_the_class_is_chosen_and_goes_with_the_text(model: str) -> None:
    page = opened(model, open="counterfactuals")
    choice = page.selectbox(key("flip_to"))
    assert choice.options[0] == "Any other"
    assert len(choice.options) == 3
    wanted = choice.options[1]
    choice.set_value(wanted).run()
    assert not page.exception
    assert page.query_params["flip_to"] in (wanted, [wanted])
    assert f"flips the prediction to <bdi>{wanted}</bdi>" in html_of(page)
    assert any(f"--target {wanted}" in one.value for one in page.code)
    predicted = next(name for name in ("LABEL_0", "LABEL_1", "LABEL_2") if name not in choice.options)
    assert "target: must be another class" in " ".join(errors(opened(model, open="counterfactuals", flip_to=predicted)))


def test_a_score_needs_a_threshold(tmp_path: Path) -> None:
    score = str(save_checkpoint("bert", tmp_path / "score", labels=1))
    page = opened(score, open="counterfactuals")
    assert any("Enter a threshold that it has to cross" in one.value for one in page.info)
    page.number_input(key("threshold")).set_value(1000.0).run()
    assert not page.exception
    assert "Nothing that was tried crosses the threshold. The closest:" in html_of(page)
    assert page.query_params["threshold"] in ("1000.0", ["1000.0"])
    assert any("--threshold 1000.0" in one.value for one in page.code)


def test_what_fails_is_said_and_the_page_stays(model: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*given: object) -> None:
        raise ExegesisError("masked_model: cannot be read.")

    monkeypatch.setattr(panel, "run_cached", fail)
    page = opened(model, open="counterfactuals")
    assert "masked_model: cannot be read." in " ".join(errors(page))
    assert "Export" in [one.value for one in page.subheader], "what follows is drawn"


def test_the_sentence_claims_only_what_was_tried() -> None:
    good, bad = change(TEXT, "good", "warm", -1.5), change(TEXT, "bad")
    assert summary_html(result(good)) == (
        '<div class="xg"><p class="xg-summary">Changing 1 word flips the prediction: “<bdi>good</bdi>” → '
        "“<bdi>warm</bdi>” (<bdi>positive</bdi> 80.0% → <bdi>negative</bdi> 70.0%).</p></div>"
    )
    two = summary_html(result(good, bad))
    assert "Changing 2 words flips" in two
    assert "“<bdi>bad</bdi>” → (deleted)" in two
    assert "No smaller set of the candidates does." in two
    three = (good, bad, change(TEXT, "food"))
    assert "No smaller set" in summary_html(result(*three))
    assert "No smaller set" not in summary_html(result(*three, complete=False))
    none = summary_html(result(good, flips=False))
    assert "Nothing that was tried flips the prediction. The closest: “<bdi>good</bdi>”" in none
    assert "--most-changes" in none
    wanted = summary_html(dataclasses.replace(result(good, flips=False), target=0))
    assert "flips the prediction to <bdi>negative</bdi>. The closest" in wanted
    assert "(<bdi>negative</bdi> 20.0% → <bdi>negative</bdi> 20.0%)" in wanted
    assert "There was nothing to try." in summary_html(dataclasses.replace(result(good), results=()))


def test_markup_is_text_and_a_long_text_is_shown_around_its_changes() -> None:
    one = result(change(HOSTILE, "good", "<b>"), text=HOSTILE)
    drawn = counterfactual_html(one, one.results[0])
    assert HOSTILE not in drawn
    assert "<del>good</del> <ins>&lt;b&gt;</ins>" in drawn
    text = f"{'a ' * 2000}good{' b' * 2000} bad{' c' * 2000}"
    long = result(change(text, "good"), change(text, "bad"), text=text)
    shown = counterfactual_html(long, long.results[0])
    assert shown.count("…") == 4 - 1
    assert "<del>good</del> b b" in shown
    assert "b b <del>bad</del> c c" in shown
    assert len(shown) < 6 * CONTEXT + 600


def test_rows_are_safe_cells_and_tell_all() -> None:
    [row] = csv.DictReader(io.StringIO(result(change("=good food", "good", "warm", -1.5), text="=good food").as_csv()))
    assert (row["word"], row["replacement"], row["log_probability"], row["value"]) == ("good", "warm", "-1.5", "0.7")
    formula = dataclasses.replace(result(change(TEXT, "good")).results[0], example=Example("=1+1"))
    [row] = csv.DictReader(io.StringIO(dataclasses.replace(result(), results=(formula,)).as_csv()))
    assert row["text"] == "'=1+1"


def test_a_long_text_has_a_smaller_search() -> None:
    assert search_options(64) == SearchOptions()
    smaller = search_options(65)
    assert (smaller.words, smaller.candidates) == (10, 3)
    assert smaller.sources == SearchOptions().sources
