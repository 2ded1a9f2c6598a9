"""Maps side by side as HTML: values, ranks, moves and agreement by hand; foreign words never become elements."""

from __future__ import annotations

import re
from dataclasses import replace
from html import unescape

import numpy as np
import pytest

from components.compare.about import label_words
from components.compare.board import board_html, move_words
from components.compare.compared import Column, Compared, columns_of, labels_of, verdict
from components.compare.look import CompareLook
from components.compare.matrix import LINE, agreement_words, apart_words, legend_lines, parts_words
from components.compare.state import CompareState
from components.inputs.datasets import ChosenPicture, open_pictures
from components.inputs.picture_choice import PictureFocus
from components.inputs.text_choice import TextFocus
from engine.comparison.pairs import Pair
from engine.comparison.parts import text_sheet
from engine.registry import all_explainers
from engine.request import Example, Picture
from engine.result import Explanation, Provenance
from tests.unit.components.making import explanation

TEXT = "warm <b>bold</b> film"
SCORES = ([3.0, 1.0, -2.0], [1.0, 2.0, 3.0])
MODELS = ("model-a", "<i>model</i>")


def of_model(made: Explanation, model: str) -> Explanation:
    origin: Provenance = replace(made.provenance, model=model)
    return replace(made, provenance=origin)


def compared(
    look: CompareLook | None = None, pinned: bool = True, scores: tuple[list[float], ...] = SCORES
) -> Compared:
    example = Example(TEXT)
    pairs = (*(Pair(model, "occlusion") for model in MODELS), Pair("gone", "gradient"))
    state = CompareState(
        kind="text", focus=TextFocus("model-a", TEXT), columns=pairs, reference=pairs[0] if pinned else None,
        look=look or CompareLook(),
    )  # fmt: skip
    made = [
        of_model(explanation(example, given, pieces=r"\S+"), model) for given, model in zip(scores, MODELS, strict=True)
    ]
    bare = columns_of(state, all_explainers())
    columns: list[Column] = [
        replace(one, made=of, row=row) for row, (one, of) in enumerate(zip(bare, made, strict=False))
    ]
    columns.append(replace(bare[2], said="No model <script>.", failed=True))
    return Compared(state, tuple(columns), text_sheet(made, example))


def cells(shown: str) -> list[list[str]]:
    rows = re.findall(r"<tr><th scope=row>(.*?)</tr>", shown)
    return [[unescape(re.sub("<.*?>", "", cell)) for cell in re.findall(r"<td.*?>.*?</td>", row)] for row in rows]


def test_each_part_has_a_row_and_each_map_a_column() -> None:
    assert cells(board_html(compared())) == [["+3", "+1", ""], ["+1", "+2", ""], ["−2", "+3", ""]]


def test_a_common_scale_shows_shares_of_the_sum_of_sizes() -> None:
    shown = cells(board_html(compared(CompareLook(scale="common"))))
    assert [row[0] for row in shown] == ["+50.0\u00a0%", "+16.7\u00a0%", "−33.3\u00a0%"]
    assert [row[1] for row in shown] == ["+16.7\u00a0%", "+33.3\u00a0%", "+50.0\u00a0%"]


def test_moves_count_ranks_from_the_reference() -> None:
    shown = cells(board_html(compared(CompareLook(shown="moves"))))
    assert [row[0] for row in shown] == ["", "", ""]
    assert [row[1] for row in shown] == ["↓2", "=", "↑2"]
    by_size = cells(board_html(compared(CompareLook(shown="moves", order="size"))))
    assert [row[1] for row in by_size] == ["↓2", "↑1", "↑1"]
    assert (move_words(0), move_words(3), move_words(-1)) == ("=", "↑3", "↓1")


def test_differences_are_of_shares_and_tell_how_much_lies_elsewhere() -> None:
    """Shares 3/6, 1/6, -2/6 against 1/6, 2/6, 3/6: half of (2 + 1 + 5)/6 lies elsewhere."""
    shown = board_html(compared(CompareLook(shown="difference")))
    assert [row[0] for row in cells(shown)] == ["", "", ""]
    assert [row[1] for row in cells(shown)] == ["−33.3\u00a0%", "+16.7\u00a0%", "+83.3\u00a0%"]
    assert "66.7\u00a0% lies elsewhere than in A" in shown
    assert "Blue: the word has a larger share of the map than in A; orange: a smaller." in shown
    assert "elsewhere" not in board_html(compared())


def test_a_long_reason_is_short_in_the_head_and_whole_behind_a_click() -> None:
    held = compared()
    long = "model: unknown name 'gone'. Known: a, b. Or give a folder."
    shown = board_html(replace(held, columns=(*held.columns[:2], replace(held.columns[2], said=long))))
    assert "<summary>model: unknown name &#x27;gone&#x27;</summary>Known: a, b. Or give a folder.</details>" in shown
    assert "<details" not in board_html(held)


def test_moves_without_a_reference_are_scores() -> None:
    assert cells(board_html(compared(CompareLook(shown="moves"), pinned=False)))[0][0] == "+3"


def test_agreement_with_the_reference_is_told_above_the_map() -> None:
    """By size 3 1 2 against 1 2 3: rho is -0.5, and the first parts differ. With their signs it is -1."""
    by_size = compared(CompareLook(order="size"))
    assert "with A: ρ −0.50, 0 of the top 1" in board_html(by_size)
    assert by_size.apart == 1.5
    assert "with A: ρ −1.00, 0 of the top 1" in board_html(compared())
    assert apart_words(1.5, compared()).startswith("Disagreement on this example: 1.50, 1 minus the mean ρ")


def test_a_score_that_is_not_0_never_reads_0_and_its_smallness_is_said() -> None:
    shown = board_html(compared(scores=([3.0, 0.0, 1e-4], [0.0002, -0.0004, 3.0])))
    assert cells(shown) == [["+3.00", "<0.01", ""], ["0.00", ">−0.01", ""], ["<0.01", "+3.00", ""]]
    said = "B: most scores are under 0.5\u00a0% of the map's largest. Their order counts all the same."
    assert said in unescape(shown)


def test_the_matrix_says_what_its_letters_are_and_which_column_is_not_in_it() -> None:
    told = legend_lines(compared())
    assert told[:2] == ["A Occlusion · model-a", "B Occlusion · <i>model</i>"]
    assert " ".join(" ".join(told[2:]).split()) == "Without a map, so not in the matrix: C Gradient · gone."
    assert max(map(len, told)) <= LINE


def test_disagreement_leaves_chance_out_and_says_so() -> None:
    held = compared(pinned=False)
    assert held.apart_over == "every two maps"
    made = of_model(explanation(Example(TEXT), [2.0, 1.0, 3.0], pieces=r"\S+", method="random"), "model-a")
    random = replace(held.columns[2], method=all_explainers()["random"], made=made, row=2, failed=False)
    sheet = text_sheet([column.made for column in (*held.columns[:2], random) if column.made], Example(TEXT))
    joined = replace(held, columns=(*held.columns[:2], random), sheet=sheet)
    assert joined.apart == held.apart == 2.0
    assert joined.apart_over == "every two maps but C, by chance"


def test_foreign_words_are_escaped_in_both_layouts() -> None:
    for layout in ("table", "text"):
        shown = board_html(compared(CompareLook(layout=layout)))
        assert "<script>" not in shown
        assert "<i>model" not in shown
        assert "<b>bold" not in shown
        assert "No model &lt;script&gt;." in shown


def test_a_map_without_order_says_so() -> None:
    shown = board_html(compared(scores=([1.0, 1.0, 1.0], SCORES[1])))
    assert "no order to compare with A" in shown


def test_the_verdict_names_who_says_what() -> None:
    held = compared()
    assert verdict(held.columns) == "All 2 models predict positive."
    assert labels_of(held.columns) == ["negative", "positive"]
    other = replace(held.columns[1], made=of_model(explanation(Example(TEXT), pieces=r"\S+", labels=("a", "b")), "c"))
    assert verdict((held.columns[0], other)) == "The models disagree on the class. A: positive; B: b."
    assert verdict(held.columns[:1]) == ""


def test_what_is_compared_and_measured_is_said() -> None:
    held = compared()
    assert parts_words(held) == "3 words, without special tokens. A word's score is the sum of its tokens'."
    assert held.found is not None
    assert "with their sign, as on Evaluate" in agreement_words(held.found, held.look, "word")
    assert "by their size" in agreement_words(held.found, replace(held.look, order="size"), "word")
    top = replace(held.look, measure="top_k", order="sign", percent=50)
    assert "here 1 of 3, that both maps name; about 33 % by chance. Equal scores" in agreement_words(
        held.by("top_k"), top, "word"
    )


@pytest.mark.parametrize(
    ("label", "own", "said"), [(1, "", True), (None, "", False), (1, "0" * 64, False), (None, "0" * 64, False)]
)
def test_only_a_labelled_picture_of_a_set_is_said_to_have_a_label(label: int | None, own: str, said: bool) -> None:
    opened = open_pictures("scenes:count=3")
    shown = ChosenPicture(Picture(np.zeros((2, 2, 3), np.uint8)), label)
    focus = PictureFocus("m", picture_sha=own, chosen=shown)
    state = CompareState(kind="image", focus=focus, columns=())
    assert label_words(state, opened) == (f"Labelled {opened.data.label_names[1]}." if said else "")
