"""The Words page: it opens finished, answers by scores, slice and rate, and says what is missing."""

from __future__ import annotations

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from components.corpus.page import SESSION, answer_html, patches_chart, significant, words_chart, words_table
from components.experiment.state import VIEW
from engine import shipped
from engine.corpus.experiment import ALL, CorpusWords
from engine.corpus.plan import CORPUS
from engine.corpus.scores import REMOVAL
from engine.experiments.run import finished
from engine.significance.false_discovery import survives
from tests.alerts import html_of
from tests.project import ROOT

SECONDS = 120
LARGEST_FILE = 300_000

pytestmark = pytest.mark.usefixtures("own_home")


def opened(**link: str) -> AppTest:
    page = AppTest.from_file(str(ROOT / "app.py"), default_timeout=SECONDS).switch_page("pages/corpus.py")
    for name, value in link.items():
        page.query_params[name] = value
    page.run()
    assert not page.exception
    return page


def words(p_values: list[float], means: list[float], names: list[str]) -> CorpusWords:
    """One slice; removal and a random order with p-values of 1."""
    shape = (1, 2, len(names))
    own, p_values = np.array([[means, means]]), [*p_values, *[1.0] * len(names)]
    return CorpusWords(
        "m", "d", (0, 1), (ALL,), (2,), (REMOVAL, "random"), tuple(names), 99, np.full((1, len(names)), 2),
        np.full((1, len(names)), 3), own, own - 0.1, own + 0.1, np.reshape(p_values, shape), {}, True,
    )  # fmt: skip


@pytest.mark.parametrize("kind", CORPUS.opens_with)
def test_it_opens_finished_with_the_shipped_numbers(kind: str) -> None:
    result = finished(CORPUS.opens_with[kind])
    assert result is not None, "run python -m engine.shipped.make"
    [one] = result.models
    assert one.complete
    assert shipped.CORPORA.stat().st_size < LARGEST_FILE
    number = int(survives(one.adjusted(ALL, REMOVAL)[one.tested(ALL)], 0.1).sum())
    assert number > 0
    page = opened(input=kind)
    assert f"{number} of {len(one.words)} {'words' if kind == 'text' else 'patches'} matter" in html_of(page)
    assert not [button for button in page.button if button.label == "Corpus"], "nothing is left to start"
    labels = [control.label for control in (*page.selectbox, *page.multiselect, *page.number_input)]
    assert len(labels) == len(set(labels))


def test_the_rate_the_scores_and_the_slice_change_the_answer_and_the_link() -> None:
    page = opened()
    [one] = finished(CORPUS.opens_with["text"]).models
    page.segmented_control(key=SESSION.key("text", f"{VIEW}rate")).set_value(20).run()
    number = int(survives(one.adjusted(ALL, REMOVAL)[one.tested(ALL)], 0.2).sum())
    assert f"{number} of {len(one.words)} words matter" in html_of(page)
    assert page.query_params["rate"] in ("20", ["20"])
    page.selectbox(key=SESSION.key("text", "view.by")).set_value("attn_lrp").run()
    page.selectbox(key=SESSION.key("text", "view.among")).set_value("predicted negative").run()
    assert not page.exception
    tested = one.tested("predicted negative")
    number = int(survives(one.adjusted("predicted negative", "attn_lrp")[tested], 0.2).sum())
    assert f"{number} of {int(tested.sum())} words matter" in html_of(page)
    assert "Mean score by AttnLRP, over the examples" in html_of(page)
    again = opened(rate="20", by="attn_lrp", among="predicted negative")
    assert f"{number} of {int(tested.sum())} words matter" in html_of(again)


def test_another_plan_can_be_started() -> None:
    page = opened(input="text", examples="7")
    assert [button for button in page.button if button.label == "Corpus"]


def test_the_largest_mean_comes_first_and_only_survivors_are_drawn() -> None:
    table = words_table(words([0.01, 0.5, 0.02], [0.1, 0.4, -0.3], ["a", "b", "c"]), REMOVAL, ALL)
    assert table["Word"].tolist() == ["b", "c", "a"]
    assert table["Adjusted p"].tolist() == [0.5, 0.03, 0.03]
    assert significant(table, 0.05).tolist() == [False, True, True]
    drawn = words_chart(table[significant(table, 0.05)], "light").to_dict()
    named = [row["Word"] for rows in drawn["datasets"].values() for row in rows if "Word" in row]
    assert set(named) == {"a", "c"}


def test_words_that_are_markup_are_text_and_nothing_to_test_is_told() -> None:
    one = words([0.01], [0.1], ["<img src=x>"])
    html = answer_html(one, words_table(one, REMOVAL, ALL), REMOVAL, ALL, 0.1, "text", {})
    assert "<img" not in html
    assert "1 of 1 words matters" in html
    assert "With random scores no word would matter." in html
    none = words([], [], [])
    html = answer_html(none, words_table(none, REMOVAL, ALL), REMOVAL, ALL, 0.1, "text", {})
    assert "No word is in enough of these examples to be tested." in html


def test_places_of_a_grid_are_drawn_where_they_are() -> None:
    names = [f"row {row}, column {column}" for row in (1, 2) for column in (1, 2, 3)]
    one = words([0.001, *[1.0] * 5], [0.2, *[0.01] * 5], names)
    drawn = patches_chart(words_table(one, REMOVAL, ALL), 0.1, "dark").to_dict()
    [scale] = [
        layer["encoding"]["color"]["scale"] for layer in drawn["layer"] if "scale" in layer["encoding"].get("color", {})
    ]
    assert scale["interpolate"] == "lab", "by hue, orange would be reached through red"
    [rows] = drawn["datasets"].values()
    assert {(row["Row"], row["Column"]) for row in rows} == {(row, column) for row in (1, 2) for column in (1, 2, 3)}
    assert [row["Word"] for row in rows if row["Significant"]] == ["row 1, column 1"]
