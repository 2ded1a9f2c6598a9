"""The prediction's bars, and numbers as people read them."""

from __future__ import annotations

import re

import pytest

from components.numbers import count, even, percent, plain, points, seconds, signed, small
from components.prediction import MOST_BARS, prediction_html
from engine.result import Prediction


def test_a_bar_a_class_the_likeliest_first_the_explained_one_marked() -> None:
    html = prediction_html(Prediction(("no", "yes"), (0.0, 1.0), (0.25, 0.75)), target=0)
    assert re.findall(r"<bdi[^>]*>(\w+)</bdi>", html) == ["yes", "no"]
    assert re.findall(r"width:([\d.]+)%", html) == ["75.00", "25.00"]
    assert re.search(r'xg-label xg-chosen">no<', html)
    assert "75.0%" in html


def test_of_many_classes_the_likeliest_and_the_explained_one_are_shown() -> None:
    labels = tuple(f"class {i}" for i in range(100))
    shares = tuple((100 - i) / 5050 for i in range(100))
    html = prediction_html(Prediction(labels, shares, shares), target=99)
    assert html.count("xg-track") == MOST_BARS + 1
    assert "class 99<" in html
    assert f"and {100 - MOST_BARS - 1} less likely classes" in html


def test_classes_stand_in_the_order_of_the_prediction_beside() -> None:
    beside = Prediction(("a", "b", "c"), (0.0, 2.0, 1.0), (0.1, 0.6, 0.3))
    html = prediction_html(Prediction(beside.labels, (2.0, 1.0, 0.0), (0.6, 0.3, 0.1)), 0, like=beside)
    shown = re.findall(r"xg-label[^>]*>(\w)<.*?xg-number[^>]*>([\d.]+)", html)
    assert shown == [("b", "30.0"), ("c", "10.0"), ("a", "60.0")]


def test_a_regression_head_has_its_score_and_no_bar() -> None:
    html = prediction_html(Prediction(("quality",), (0.625,), (0.625,), regression=True), target=0)
    assert "<b>+0.625</b>" in html
    assert "%" not in html


def test_shares_of_a_token_and_its_contrast_say_that_they_are_of_these_two() -> None:
    two = prediction_html(Prediction((" are", " is"), (8.0, 0.0), (0.9997, 0.0003)), target=0)
    assert '<p class="xg-small">of these two tokens alone</p>' in two
    assert "tokens" not in prediction_html(Prediction(("no", "yes"), (0.0, 1.0), (0.25, 0.75)), target=0)


def test_labels_are_escaped() -> None:
    html = prediction_html(Prediction(("<b>", "&"), (0.0, 1.0), (0.5, 0.5)), target=0)
    assert "&lt;b&gt;" in html
    assert "&amp;" in html


@pytest.mark.parametrize(
    ("shown", "expected"),
    [
        (signed(0.12345), "+0.123"), (signed(-0.5), "\u22120.5"), (signed(0.0), "0"),
        (signed(-1e-7), "\u22121e\u221207"),
        (plain(1234.0), "1.23e+03"), (small(0.0), "0"), (small(3e-9), "<\u00a01e\u22126"), (small(0.25), "0.25"),
        (percent(0.9731), "97.3%"), (percent(1.0), "100.0%"), (percent(0.99999), ">\u00a099.9%"),
        (percent(0.0), "0.0%"), (percent(1e-9), "<\u00a00.1%"),
        (points(0.1234), "+12.3"), (points(-0.85), "\u221285.0"), (points(-4e-4), "0.0"), (points(0.0), "0.0"),
        (seconds(0.0002), "< 1 ms"), (seconds(0.25), "250 ms"), (seconds(4.06), "4.1 s"),
        (even(0.00678, 0.489), "0.007"), (even(0.6, 0.615), "0.600"), (even(-1e-5, 0.5), "0.000"),
        (even(24.3, 27.6), "24.3"), (even(987.6, 1234.0), "988"), (even(0.0, 0.0), "0"),
        (even(-0.25, 0.5), "\u22120.250"),
        (count(0, "evaluation"), "no evaluations"), (count(1, "token"), "1 token"),
        (count(1024, "step"), "1,024 steps"),
    ],
)  # fmt: skip
def test_numbers_are_short(shown: str, expected: str) -> None:
    assert shown == expected
