"""A method's row: check, cost, notes, caution and provenance in words, all escaped."""

from __future__ import annotations

import re

import pytest

from components.method_row import (
    Placeholder,
    check_html,
    method_row,
    method_row_html,
    placeholder_html,
    waiting_placeholder,
)
from engine.registry import Axes, Explainer, explainer
from engine.request import Example
from engine.result import Check
from tests.unit.components.making import explanation

EXAMPLE = Example("the cat sat")


def method(**words: str) -> Explainer:
    told = {"title": "Occlusion", "citation": "Zeiler and Fergus (2014)", "caution": "Be careful.", **words}
    return Explainer(
        "occlusion", family="perturbation", function=lambda task, params: [], params=type(None), version=3,
        kind="text", differentiable=False, signed=True, cheap=True,
        axes=Axes("mask token", "probability", "difference"), **told,
    )  # fmt: skip


def drawn(**made: object) -> str:
    return method_row_html(method_row(method(), explanation(EXAMPLE, **made), EXAMPLE, "token"))  # type: ignore[arg-type]


def test_a_good_check_gives_name_and_value() -> None:
    html = check_html(Check("completeness gap", 0.00432, 0.01))
    assert "✓ completeness gap: 0.00432" in html
    assert "good: at most 0.01" in html


def test_a_bad_check_says_so_in_words() -> None:
    html = check_html(Check("completeness gap", 0.2, 0.01))
    assert "✗ completeness gap: 0.2, not good (above 0.01)" in html


def test_each_number_of_a_check_has_its_line_and_its_verdict() -> None:
    html = check_html(Check("completeness gap", 0.003, 0.01, Check("estimated error of a score", 0.02, 0.01)))
    assert "✓ completeness gap: 0.003" in html
    assert "✗ estimated error of a score: 0.02, not good (above 0.01)" in html


def test_rounding_noise_is_not_spelled_out() -> None:
    assert "additivity gap: &lt;\u00a01e\u22126</p>" in check_html(Check("additivity gap", 3.8e-17, 1e-6))


def test_no_check_takes_no_room() -> None:
    assert check_html(None) == ""


def test_cost_says_evaluations_and_seconds_or_the_cache() -> None:
    assert "12 evaluations · 250 ms" in drawn()
    assert "12 evaluations · cached" in drawn(cached=True)


def test_caution_stands_below_the_map_and_its_citation_in_the_details() -> None:
    html = drawn()
    assert '<p class="xg-caution">Be careful.</p>' in html
    assert "<dt>source</dt><dd>Zeiler and Fergus (2014)</dd>" in html


def test_notes_are_shown_unless_they_were_said_before() -> None:
    made = explanation(EXAMPLE, notes=("Said before.", "Only here."))
    html = method_row_html(method_row(method(), made, EXAMPLE, "token", said=["Said before."]))
    assert "Only here." in html
    assert "Said before." not in html


def test_everything_that_the_numbers_depend_on_is_in_the_details() -> None:
    html = drawn(params={"window": 2, "removal": "mask"})
    facts = dict(re.findall(r"<dt>(.*?)</dt><dd>(.*?)</dd>", html))
    assert facts["method"] == "occlusion, version 3"
    assert facts["parameters"] == "window = 2, removal = mask"
    assert facts["model"] == "model-a, revision 0123abcd"
    assert facts["explained"] == "class 1: positive"
    assert facts["run"] == "float32 on cpu, seed 7"
    assert facts["removed by"] == "mask token"


def test_where_the_logit_went_is_in_the_details() -> None:
    parts = {"logit": 2.0, "tokens": 2.5, "biases": -0.75, "positions": 0.0, "softmax": 0.25}
    html = drawn(extras={"relevance": parts})
    assert "<dt>logit</dt><dd>2 = 2.5 (tokens) + −0.75 (biases) + 0 (positions) + 0.25 (softmax of attention)" in html
    assert "<dt>logit</dt>" not in drawn()


def test_words_join_tokens_in_the_map() -> None:
    made = explanation(EXAMPLE, pieces=r"the|c|at|sat")
    tokens, words = (method_row(method(), made, EXAMPLE, unit).view.units for unit in ("token", "word"))
    assert [u.text for u in words] == ["[CLS]", "the", "cat", "sat", "[SEP]"]
    assert sum(u.score for u in tokens) == sum(u.score for u in words)


@pytest.mark.parametrize(
    ("id", "params", "expected"),
    [
        ("occlusion", {}, True),
        ("gradient_l2", {}, False),
        ("smoothgrad", {}, False),
        ("smoothgrad", {"reduction": "l2"}, False),
        ("smoothgrad", {"reduction": "sum"}, True),
    ],
)
def test_a_length_has_no_sign(id: str, params: dict[str, object], expected: bool) -> None:
    made = explanation(EXAMPLE, params=params, method=id)
    assert method_row(explainer(id), made, EXAMPLE, "token").view.signed is expected


def test_nothing_foreign_becomes_markup() -> None:
    bad = "<img src=x>"
    made = explanation(EXAMPLE, notes=(bad,), labels=("a", bad), params={"p": bad}, check=Check(bad, 1.0, 0.0))
    row = method_row(method(title=bad, citation=bad, caution=bad), made, EXAMPLE, "token")
    for html in (
        method_row_html(row),
        placeholder_html(waiting_placeholder(bad, now=True)),
        placeholder_html(Placeholder(bad, bad, failed=True)),
    ):
        assert "<img" not in html
        assert "&lt;img" in html


def test_a_failed_method_says_its_sentence_in_its_place() -> None:
    html = placeholder_html(Placeholder("LIME", "lime.n_samples: must be …", failed=True))
    assert "LIME" in html
    assert "lime.n_samples: must be …" in html
    assert "xg-error" in html
