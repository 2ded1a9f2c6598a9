"""Tables of numbers as HTML: the same decimals in a column, cards where there are many columns, nothing unescaped."""

from __future__ import annotations

import pandas as pd

from components.numbers import MINUS, plain
from components.tables import table_html


def test_numbers_of_a_column_have_the_same_decimals_and_what_is_not_known_a_dash() -> None:
    table = pd.DataFrame({"Name": ["a", "b", "c"], "Value": [0.25, -1.5, None], "Votes": [1000, 2, 3]})
    drawn = table_html(table)
    for text in ("0.25", f"{MINUS}1.50", "–", "1,000"):
        assert f">{text}</td>" in drawn
    assert "xg-cards" not in drawn


def test_zero_has_no_sign() -> None:
    drawn = table_html(pd.DataFrame({"Name": ["a", "b", "c"], "Skill": [-0.0, -0.125, -1e-9]}))
    assert drawn.count(">0.000</td>") == 2
    assert f">{MINUS}0.125</td>" in drawn
    assert plain(-0.0) == "0"


def test_a_table_of_many_columns_becomes_cards_that_say_what_each_value_is() -> None:
    drawn = table_html(pd.DataFrame([dict.fromkeys("ABCDEF", 1)]))
    assert 'class="xg-numbers xg-cards" role="table"' in drawn
    assert [f'data-name="{name}"' in drawn for name in "ABCDEF"] == [False] + [True] * 5


def test_texts_and_pictures_are_escaped() -> None:
    drawn = table_html(pd.DataFrame([{"<i>": "<b>", "&": "<u>"}]), ['data:"'])
    assert not [tag for tag in ("<i>", "<b>", "<u>", 'data:"') if tag in drawn]
    assert '<img src="data:&quot;" alt="">' in drawn
