"""The page of rules: finished when it opens, an error at its field, examples to use, exceptions, files and the link."""

from __future__ import annotations

import re
import shlex
from dataclasses import replace
from html import unescape
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from components.errors import escape_label
from components.navigation import RULES_PAGE
from components.rules.charts import (
    PICTURE_PANELS,
    TEXT_PANELS,
    RuleChart,
    notes_html,
    panel_data,
    rule_sentences,
    scored_rules,
    scores_table,
    verdict_text,
)
from components.rules.page import RULES, example_rules, exceptions_of
from engine import jobs
from engine.experiments.run import finished
from engine.rules.language import FORMS
from engine.rules.plan import TEXT_RULES
from engine.rules.result import ModelRules, RuleExample, RuleResult
from tests.alerts import errors
from tests.project import ROOT

pytestmark = pytest.mark.usefixtures("own_home")

SECONDS = 240.0
FEW = {"examples": "24", "method": "gradient_x_input"}


def opened(**query: str | list[str]) -> AppTest:
    page = AppTest.from_file(str(ROOT / "app.py"), default_timeout=SECONDS).switch_page(RULES_PAGE.file)
    for name, value in {**FEW, **query}.items():
        page.query_params[name] = value
    page.run()
    assert not page.exception
    return page


def words_of(page: AppTest) -> str:
    """All that the page says in its own HTML, without tags."""
    return unescape(re.sub("<[^>]*>", " ", " ".join(element.proto.body for element in page.get("html"))))


def field(page: AppTest, letter: str) -> Any:
    return next(one for one in page.text_input if one.label == f"Rule {letter}")


def test_the_page_opens_finished_with_the_answer_of_the_engine() -> None:
    page = opened()
    assert not errors(page)
    plan = RULES.plan(("nli-minilm",), "nli", TEXT_RULES, ("gradient_x_input",), 24)
    result = finished(plan)
    assert result is not None
    rules = scored_rules(result.models[0], 0)
    text = " ".join(words_of(page).split())
    assert verdict_text(rules, 0) in text
    assert escape_label("nli-minilm on nli") in [one.value for one in page.caption], "else unseen"
    for one in rules:
        assert " ".join(rule_sentences(one, 24)) in text
    [area] = [one for one in page.get("code") if "exegesis rules" in one.value]
    typed = shlex.split(area.value)
    assert typed[typed.index("--rule") + 1] == ",".join(TEXT_RULES)


def test_a_wrong_rule_has_its_error_and_a_right_one_its_answer_and_link() -> None:
    page = opened()
    before = words_of(page)
    field(page, "A").set_value('"not" -> contradictio').run()
    assert errors(page) == [
        "the class after -> must be one of entailment, neutral, contradiction, or its number from 0, got "
        "'contradictio'. Did you mean 'contradiction'?"
    ]
    field(page, "A").set_value("not -> neutral").run()
    [error] = errors(page)
    assert error.startswith("character 5: expected")
    field(page, "A").set_value('"the" -> neutral').run()
    assert not errors(page)
    assert words_of(page) != before
    assert list(page.query_params["rule"]) == ['"the" -> neutral', TEXT_RULES[1]]
    again = opened(rule=['"the" -> neutral', TEXT_RULES[1]])
    assert [one.value for one in again.text_input if one.label.startswith("Rule ")] == [
        '"the" -> neutral', TEXT_RULES[1], "",
    ]  # fmt: skip


def test_an_example_goes_into_the_first_empty_field() -> None:
    page = opened()
    assert example_rules("text", ("reviews-minilm",)) == list(FORMS)
    example = example_rules("text", ("nli-minilm",))[2]
    assert example == 'negation before "good" -> contradiction', "of a class that the model has"
    [button] = [one for one in page.button if one.key and one.key.endswith(f"form.{example}")]
    button.click().run()
    assert not errors(page)
    assert [one.value for one in page.text_input if one.label.startswith("Rule ")] == [*TEXT_RULES, example, ""]


def test_save_adds_the_test_to_the_recent_ones() -> None:
    page = opened()
    next(one for one in page.button if one.label == "Save").click().run()
    [job] = [one for one in jobs.list_jobs() if one.kind == "rules"]
    assert job.spec["rules"] == list(TEXT_RULES)
    assert jobs.wait(job.id, SECONDS).state == "done"
    assert "Save" not in [one.label for one in page.run().button]


def test_pictures_have_their_own_rules_and_exceptions() -> None:
    page = opened(input="image", data="scenes:count=6", examples="6", method="gradient_x_input")
    assert not errors(page)
    assert "The probability changes by" in words_of(page)
    assert "region of rule A significantly more" in words_of(page) or "needs none of these regions" in words_of(page)
    field(page, "B").set_value("patch 99 1 -> any").run()
    assert "patch must be within 8 rows" in errors(page)[0]


def test_a_text_is_escaped_in_answers_and_lists() -> None:
    page = opened(rule=['"<b>x</b>" -> neutral', "negation -> neutral"])
    assert not [one for one in page.get("html") if "<b>x</b>" in one.proto.body]


def rule(holds: list[bool], claimed: list[bool]) -> RuleResult:
    examples = tuple(
        RuleExample(at, one, at % 2 == 0, "w", int(not hit), hit, 0.9 - at / 100, removed=0.5, removed_changed=False,
                    random=0.6, random_changed=0.0)
        for at, (one, hit) in enumerate(zip(holds, claimed, strict=True))
    )  # fmt: skip
    return RuleResult('"w" -> a', "a", False, examples)


def test_the_verdict_says_when_a_rule_is_no_better_than_chance_and_which_is_best() -> None:
    claimed = [True, False] * 20
    results = ModelRules(
        "m", "d", tuple(range(40)), ("a", "b"), (rule(claimed, claimed), rule([True] * 40, claimed)), {}
    )
    rules = scored_rules(results, 0)
    assert (
        verdict_text(rules, 0)
        == "Rule A predicts the model best: balanced accuracy 1.00 (1.00 to 1.00), 0.50 by chance."
    )
    assert verdict_text(rules[1:], 0).startswith("No rule is significantly better than chance: the best is B")
    # Of two rules, the one with the higher balanced accuracy is true too seldom to be significant.
    many = [True] * 3 + [False] * 37
    rare = rule([True] + [False] * 39, many)
    often = rule([True] * 3 + [True] * 18 + [False] * 19, many)
    both = scored_rules(ModelRules("m", "d", tuple(range(40)), ("a", "b"), (often, rare), {}), 0)
    mixed = [replace(both[0], p=0.2), replace(both[1], p=0.01)]
    assert mixed[0].scores.balanced.value > mixed[1].scores.balanced.value
    assert verdict_text(mixed, 0).startswith("Rule B predicts the model best")
    constant = ModelRules("m", "d", (0, 1), ("a", "b"), (rule([True, False], [True, True]),), {})
    assert verdict_text(scored_rules(constant, 0), 0).startswith("No rule can be scored")
    never = scored_rules(ModelRules("m", "d", (0,), ("a", "b"), (rule([False], [True]),), {}), 0)[0]
    assert list(rule_sentences(never, 1)) == ["True for none of 1 text, so there is nothing to test."]


def test_exceptions_are_the_most_confident_first_and_charts_have_a_row_for_each_value() -> None:
    results = ModelRules("m", "d", (0, 1, 2, 3), ("a", "b"), (rule([True] * 4, [True, False, False, True]),), {})
    rules = scored_rules(results, 0)
    assert [one.example for one in exceptions_of(rules[0])] == [2, 1]
    table = panel_data(rules, TEXT_PANELS[0])
    assert table["value"].tolist() == [0.5, 0.5]
    assert table["low"].tolist()[1] == 0.5
    assert panel_data(rules, TEXT_PANELS[2]).empty
    plan = RULES.plan(("m",), "d", ('"w" -> a',))
    for panel in (*TEXT_PANELS[:2], *PICTURE_PANELS[:1]):
        chart = RuleChart(plan, "m", rules, panel, "k")
        spec = chart.chart("dark").to_dict()
        assert len(spec["layer"]) == 2
        assert '"w" -> a' in " ".join(chart.caption().notes)
    numbers = scores_table(rules)
    assert numbers.set_index("")["A"]["True for"] == "4"


def test_notes_name_a_method_as_the_lists_do() -> None:
    one = replace(rule([True] * 4, [True, False, False, True]), method="attn_lrp", word="not")
    for own, words in ((one, "the word “not” by AttnLRP."), (replace(one, word=""), "half: AttnLRP."),
                       (replace(one, method="of_a_plugin"), "by of_a_plugin.")):  # fmt: skip
        rules = scored_rules(ModelRules("m", "d", (0, 1, 2, 3), ("a", "b"), (own,), {}), 0)
        assert words in notes_html(rules, 0)
