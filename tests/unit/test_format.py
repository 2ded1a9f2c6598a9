"""Numbers and texts as the pages write them."""

from __future__ import annotations

import pytest

from engine.format import shorten


@pytest.mark.parametrize(
    ("text", "shown"),
    [("", ""), ("two  words\n", "two words"), ("twelve chars", "twelve chars"), ("thirteen char", "thirteen ch…")],
)
def test_a_text_is_one_line_of_at_most_so_many_characters(text: str, shown: str) -> None:
    assert shorten(text, 12) == shown
