"""The Compare page's link: what it says is what is shown, and what is not known is said."""

from __future__ import annotations

import pytest

from components.compare.state import DEFAULT_VIEW, CompareState, CompareViewOptions, default_columns, read_state, write
from components.inputs.datasets import open_texts
from components.inputs.text_choice import TextFocus
from engine.comparison.plan import ModelMethodPair

FOCUS = TextFocus("reviews-minilm", "good food", None, None, "reviews")
PAIRS = (
    ModelMethodPair("reviews-minilm", "gradient_l2"),
    ModelMethodPair("/a folder/m@1", "occlusion", (("window", "2"),)),
)
VIEW = CompareViewOptions("token", "text", "moves", "common", 0.5, "top_k", "sign", 25, 40, 100)
STATE = CompareState(
    kind="text",
    focus=FOCUS,
    columns=PAIRS,
    reference=PAIRS[1],
    target="positive",
    seed=7,
    view=VIEW,
    open_sections=("search",),
)


def read(query: dict[str, list[str]]) -> tuple[CompareState, list[str]]:
    return read_state("text", query, ["reviews-minilm"], open_texts("reviews"))


def test_a_link_holds_everything_that_is_shown() -> None:
    assert read(write(STATE)) == (STATE, [])


def test_only_what_differs_from_the_usual_is_written() -> None:
    plain = CompareState(kind="text", focus=FOCUS, columns=PAIRS)
    assert set(write(plain)) == {"input", "model", "text", "column"}
    assert read(write(plain)) == (plain, [])


def test_no_columns_are_kept_apart_from_nothing_said() -> None:
    none = CompareState(kind="text", focus=FOCUS, columns=())
    assert write(none)["column"] == ["none"]
    assert read(write(none))[0].columns == ()
    assert read({})[0].columns == default_columns("text", "reviews-minilm")


@pytest.mark.parametrize(
    ("name", "given", "message"),
    [
        ("unit", "letter", "unit: unknown name"),
        ("shown", "all", "shown: unknown name"),
        ("layout", "grid", "layout: unknown name"),
        ("gamma", "9", "gamma: must be"),
        ("percent", "3", "percent: must be one of 5, 10, 15, 25, 50"),
        ("examples", "-1", "examples: must be one of"),
        ("opacity", "101", "opacity: must be a whole number from 0 to 100"),
        ("reference", "C", "reference: unknown name 'C'"),
        ("column", "gradiant@m", "Did you mean 'gradient'"),
    ],
)
def test_what_is_not_known_is_said_and_the_usual_is_shown(name: str, given: str, message: str) -> None:
    columns = [*write(STATE)["column"], *([given] if name == "column" else [])]
    state, errors = read({"text": ["good food"], name: [given], "column": columns})
    assert message in " ".join(errors)
    assert state.view == DEFAULT_VIEW
    assert state.columns == PAIRS


def test_eight_columns_at_most_each_once() -> None:
    codes = [ModelMethodPair(f"m{number}", "random").code for number in range(10)]
    state, errors = read({"text": ["x"], "column": [codes[0], *codes]})
    assert [pair.code for pair in state.columns] == codes[:8]
    assert "must be given at most 8 times" in errors[0]
