"""Maps side by side as HTML: values, ranks, moves and agreement by hand; foreign words never become elements."""

from __future__ import annotations

import re
from dataclasses import replace
from html import unescape

import numpy as np
import pytest

from components.adversarial import example_panel
from components.adversarial.state import AdversarialState
from components.compare.comparison import (
    OWN_CLASSES,
    ColumnMap,
    Comparison,
    class_labels,
    class_verdict,
    empty_columns,
    own_classes_note,
)
from components.compare.maps_html import move_words, number_format, text_maps_html, token_map_of
from components.compare.results import (
    agreement_summary,
    agreement_words,
    disagreement_words,
    label_words,
    missing_words,
    parts_words,
    row_label,
)
from components.compare.state import CompareState, CompareViewOptions
from components.inputs.datasets import ChosenPicture, open_pictures, open_texts
from components.inputs.picture_choice import PictureFocus
from components.inputs.text_choice import TextFocus
from components.numbers import fixed
from engine.comparison.alignment import align_text_maps
from engine.comparison.plan import ModelMethodPair
from engine.registry import all_explainers
from engine.request import Example, Picture, Prompt
from engine.result import Explanation, Provenance
from tests.unit.components.making import explanation

TEXT = "warm <b>bold</b> film"
SCORES = ([3.0, 1.0, -2.0], [1.0, 2.0, 3.0])
MODELS = ("model-a", "<i>model</i>")


def of_model(explanation: Explanation, model: str) -> Explanation:
    origin: Provenance = replace(explanation.provenance, model=model)
    return replace(explanation, provenance=origin)


def comparison(
    view: CompareViewOptions | None = None, pinned: bool = True, scores: tuple[list[float], ...] = SCORES
) -> Comparison:
    example = Example(TEXT)
    pairs = (*(ModelMethodPair(model, "occlusion") for model in MODELS), ModelMethodPair("gone", "gradient"))
    state = CompareState(
        kind="text", focus=TextFocus("model-a", TEXT), columns=pairs, reference=pairs[0] if pinned else None,
        view=view or CompareViewOptions(),
    )  # fmt: skip
    explanations = [
        of_model(explanation(example, given, pieces=r"\S+"), model) for given, model in zip(scores, MODELS, strict=True)
    ]
    empty = empty_columns(state, all_explainers())
    columns: list[ColumnMap] = [
        replace(one, explanation=of, row=row) for row, (one, of) in enumerate(zip(empty, explanations, strict=False))
    ]
    columns.append(replace(empty[2], message="No model <script>.", failed=True))
    return Comparison(state, tuple(columns), align_text_maps(explanations, example))


def test_a_prompt_is_one_text_and_its_label_the_right_token() -> None:
    opened = open_texts("agreement")
    compared = comparison()
    first = opened.data[0]
    focus = TextFocus("tiny-llama", TEXT, index=0, data="agreement", target=first.answer, contrast=first.foil)
    compared = replace(compared, state=replace(compared.state, focus=focus))
    assert isinstance(compared.state.input, Prompt)
    assert token_map_of(compared, compared.columns[0]).texts == (TEXT,)
    assert "First text" not in text_maps_html(compared)
    assert label_words(compared.state, opened) == f"Label: ·{(first.answer or '').strip()}."
    attack = AdversarialState(kind="text", focus=focus)
    tokens = (first.answer or "", first.foil or "")
    assert example_panel._truth(attack, opened, tokens) == (f"·{(first.answer or '').strip()}", 0)


def cells(shown: str) -> list[list[str]]:
    rows = re.findall(r"<tr><th scope=row>(.*?)</tr>", shown)
    return [[unescape(re.sub("<.*?>", "", cell)) for cell in re.findall(r"<td.*?>.*?</td>", row)] for row in rows]


def test_each_part_has_a_row_and_each_map_a_column() -> None:
    assert cells(text_maps_html(comparison())) == [["+3", "+1", ""], ["+1", "+2", ""], ["−2", "+3", ""]]


def test_a_common_scale_shows_shares_of_the_sum_of_sizes() -> None:
    shown = cells(text_maps_html(comparison(CompareViewOptions(scale="common"))))
    assert [row[0] for row in shown] == ["+50.0%", "+16.7%", "−33.3%"]
    assert [row[1] for row in shown] == ["+16.7%", "+33.3%", "+50.0%"]


def test_moves_count_ranks_from_the_reference() -> None:
    shown = cells(text_maps_html(comparison(CompareViewOptions(shown="moves"))))
    assert [row[0] for row in shown] == ["", "", ""]
    assert [row[1] for row in shown] == ["↓2", "=", "↑2"]
    by_size = cells(text_maps_html(comparison(CompareViewOptions(shown="moves", order="size"))))
    assert [row[1] for row in by_size] == ["↓2", "↑1", "↑1"]
    assert (move_words(0), move_words(3), move_words(-1)) == ("=", "↑3", "↓1")


def test_differences_are_of_shares_and_tell_how_much_lies_elsewhere() -> None:
    """Shares 3/6, 1/6, -2/6 against 1/6, 2/6, 3/6: half of (2 + 1 + 5)/6 lies elsewhere."""
    shown = text_maps_html(comparison(CompareViewOptions(shown="difference")))
    assert [row[0] for row in cells(shown)] == ["", "", ""]
    assert [row[1] for row in cells(shown)] == ["−33.3%", "+16.7%", "+83.3%"]
    assert "66.7% of the total is on other words than in A" in shown
    assert "Blue: the word has a larger share of the map than in A; orange: a smaller one." in shown
    assert "elsewhere" not in text_maps_html(comparison())


def test_a_long_reason_is_short_in_the_head_and_whole_behind_a_click() -> None:
    compared = comparison()
    long = "model: unknown name 'gone'. Known: a, b. Or give a folder."
    shown = text_maps_html(
        replace(compared, columns=(*compared.columns[:2], replace(compared.columns[2], message=long)))
    )
    assert "<summary>model: unknown name &#x27;gone&#x27;</summary>Known: a, b. Or give a folder.</details>" in shown
    assert "<details" not in text_maps_html(compared)


def test_moves_without_a_reference_are_scores() -> None:
    assert cells(text_maps_html(comparison(CompareViewOptions(shown="moves"), pinned=False)))[0][0] == "+3"


def test_agreement_with_the_reference_is_told_above_the_map() -> None:
    """By size 3 1 2 against 1 2 3: rho is -0.5, and the first parts differ. With their signs it is -1."""
    by_size = comparison(CompareViewOptions(order="size"))
    assert "with A: ρ −0.50, 0 of the top 1" in text_maps_html(by_size)
    assert by_size.disagreement == 1.5
    assert "with A: ρ −1.00, 0 of the top 1" in text_maps_html(comparison())
    assert disagreement_words(1.5, comparison()).startswith("Disagreement on this example: 1.50 (1 minus the mean ρ")


def test_a_score_that_is_not_0_never_reads_0_and_its_smallness_is_said() -> None:
    shown = text_maps_html(comparison(scores=([3.0, 0.0, 1e-4], [0.0002, -0.0004, 3.0])))
    assert cells(shown) == [["+3.00", "<0.01", ""], ["0.00", ">−0.01", ""], ["<0.01", "+3.00", ""]]
    message = "B: most scores are under 0.5% of the map's largest. Their order still counts."
    assert message in unescape(shown)


def test_the_matrix_says_what_its_letters_are_and_which_column_is_not_in_it() -> None:
    told = [row_label(column.name) for column in comparison().explained]
    assert told == ["A Occlusion ·<br>model-a", "B Occlusion ·<br>&lt;i&gt;model&lt;/i&gt;"]
    assert missing_words(comparison()) == "Not in the matrix, because there is no map: C Gradient · gone."


def test_disagreement_leaves_chance_out_and_says_so() -> None:
    compared = comparison(pinned=False)
    assert compared.disagreement_scope == "all pairs of maps"
    chance = of_model(explanation(Example(TEXT), [2.0, 1.0, 3.0], pieces=r"\S+", method="random"), "model-a")
    random = replace(compared.columns[2], method=all_explainers()["random"], explanation=chance, row=2, failed=False)
    maps = align_text_maps(
        [column.explanation for column in (*compared.columns[:2], random) if column.explanation], Example(TEXT)
    )
    joined = replace(compared, columns=(*compared.columns[:2], random), maps=maps)
    assert joined.disagreement == compared.disagreement == 2.0
    assert joined.disagreement_scope == "all pairs of maps without C (random)"


def test_foreign_words_are_escaped_in_all_layouts() -> None:
    for layout in ("both", "table", "text"):
        shown = text_maps_html(comparison(CompareViewOptions(layout=layout)))
        assert "<script>" not in shown
        assert "<i>model" not in shown
        assert "<b>bold" not in shown
        assert "No model &lt;script&gt;." in shown


def test_a_map_without_order_says_so() -> None:
    shown = text_maps_html(comparison(scores=([1.0, 1.0, 1.0], SCORES[1])))
    assert "no order to compare with A" in shown


def test_the_verdict_names_who_says_what() -> None:
    compared = comparison()
    assert class_verdict(compared.columns) == "Both models predict positive."
    assert class_labels(compared.columns) == ["negative", "positive"]
    other = replace(
        compared.columns[1], explanation=of_model(explanation(Example(TEXT), pieces=r"\S+", labels=("a", "b")), "c")
    )
    disagree = "The models disagree on the class. A: positive; B: b."
    assert class_verdict((compared.columns[0], other)) == disagree
    assert own_classes_note((compared.columns[0], other)) == OWN_CLASSES
    assert own_classes_note(compared.columns) == ""
    assert other.explanation is not None
    alike = replace(other.explanation, provenance=replace(other.explanation.provenance, target_label="positive"))
    one_class = (compared.columns[0], replace(other, explanation=alike))
    assert (class_verdict(one_class), own_classes_note(one_class)) == (disagree, ""), "all explain one class"
    assert class_verdict(compared.columns[:1]) == ""


def test_what_is_compared_and_measured_is_said() -> None:
    compared = comparison()
    assert parts_words(compared) == "3 words, without special tokens. A word's score is the sum of its tokens'."
    assert compared.agreement is not None
    assert "with their sign, as on Evaluate" in agreement_words(compared.agreement, compared.view, "word")
    assert "by absolute value" in agreement_words(compared.agreement, replace(compared.view, order="size"), "word")
    top = replace(compared.view, measure="top_k", order="sign", percent=50)
    assert "here 1 of 3, that is in both maps; 33.3% by chance. Equal scores" in agreement_words(
        compared.agreement_of("top_k"), top, "word"
    )


@pytest.mark.parametrize(
    ("label", "own", "message"), [(1, "", True), (None, "", False), (1, "0" * 64, False), (None, "0" * 64, False)]
)
def test_only_a_labelled_picture_of_a_set_is_said_to_have_a_label(label: int | None, own: str, message: bool) -> None:
    opened = open_pictures("scenes:count=3")
    shown = ChosenPicture(Picture(np.zeros((2, 2, 3), np.uint8)), label)
    focus = PictureFocus("m", picture_sha=own, chosen=shown)
    state = CompareState(kind="image", focus=focus, columns=())
    assert label_words(state, opened) == (f"Label: {opened.data.label_names[1]}." if message else "")


def column(scores: list[float], sign: bool = True, share: bool = False) -> list[str]:
    given = np.array(scores)
    digits = number_format(given, float(np.nanmax(np.abs(given))), sign, share)
    return [digits.cell(score) for score in scores]


@pytest.mark.parametrize(
    ("value", "decimals", "sign", "said"),
    [
        (0.0, 2, True, "0.00"),
        (-0.0, 2, True, "0.00"),
        (0.5, 2, True, "+0.50"),
        (-0.5, 2, True, "−0.50"),
        (0.004, 2, True, "<0.01"),
        (-0.004, 2, True, ">−0.01"),
        (0.006, 2, False, "0.01"),
        (0.4, 0, True, "<1"),
    ],
)
def test_only_0_reads_0(value: float, decimals: int, sign: bool, said: str) -> None:
    assert fixed(value, decimals, sign) == said


def test_a_column_has_the_decimals_of_its_largest_score() -> None:
    assert column([0.1806, -0.0123, 0.005, 0.0]) == ["+0.181", "−0.012", "+0.005", "0.000"]
    assert column([0.1806, 0.0001], sign=False) == ["0.181", "<0.001"]


def test_ranks_are_whole_and_shares_in_percent() -> None:
    assert column([16.0, 1.0], sign=False) == ["16", "1"]
    assert column([0.5, -0.1234], share=True) == ["+50.0%", "−12.3%"]


def test_a_map_of_tiny_scores_has_one_power_of_ten_beside_its_scale() -> None:
    assert column([3.21e-8, -1e-9]) == ["+3.21", "−0.10"]
    digits = number_format(np.array([3.21e-8]), 3.21e-8, True, False)
    assert f"{digits.end(3.21e-8)}{digits.power}" == "3.21 × 10⁻⁸"


def test_the_text_stands_above_its_table_unless_one_of_them_is_chosen() -> None:
    shown = {
        layout: text_maps_html(comparison(CompareViewOptions(layout=layout))) for layout in ("both", "table", "text")
    }
    assert CompareViewOptions().layout == "both"
    assert shown["both"].index("xg-text-card") < shown["both"].index("<table")
    assert shown["both"].count("xg-text-card") == 2, "the column without a map has its reason in the table"
    assert "xg-text-card" not in shown["table"]
    assert "<table" not in shown["text"]


def three(*scores: list[float], measure: str = "spearman") -> Comparison:
    """Columns A, B, ... of four words each."""
    example = Example("a quiet warm film")
    names = ("m-a", "m-b", "m-c")[: len(scores)]
    pairs = tuple(ModelMethodPair(model, "occlusion") for model in names)
    view = CompareViewOptions(measure=measure, percent=50)
    state = CompareState(kind="text", focus=TextFocus("m-a", example.text), columns=pairs, view=view)
    explanations = [
        of_model(explanation(example, given, pieces=r"\S+"), model) for given, model in zip(scores, names, strict=True)
    ]
    columns = [
        replace(one, explanation=of, row=row)
        for row, (one, of) in enumerate(zip(empty_columns(state, all_explainers()), explanations, strict=True))
    ]
    return Comparison(state, tuple(columns), align_text_maps(explanations, example))


def test_the_answer_names_the_pairs_that_agree_most_and_least_beside_chance() -> None:
    """Ranks 1 2 3 4 against 1 2 4 3: rho is 1 - 6 * 2 / 60 = 0.8; against the reverse order it is -1.

    Of 4 words, unrelated maps have a rho with standard deviation 1 / sqrt(3) = 0.58.
    """
    up, near, down = [1.0, 2.0, 3.0, 4.0], [1.0, 2.0, 4.0, 3.0], [4.0, 3.0, 2.0, 1.0]
    chance = "Unrelated maps: ρ 0.00 ± 0.58 (standard deviation over 4 words)."
    a, b, c = (f"{letter} Occlusion · m-{letter.lower()}" for letter in "ABC")
    assert agreement_summary(three(up, near, down)) == (
        f"{a} and {b} agree most (ρ +0.80), {a} and {c} least (ρ −1.00). {chance}"
    )
    assert agreement_summary(three(up, near)) == f"Agreement of {a} and {b}: ρ +0.80. {chance}"
    assert agreement_summary(three(up, up, up)) == f"All 3 pairs agree equally: ρ +1.00. {chance}"
    assert agreement_summary(three(up)) == ""
    assert agreement_summary(three(up, [1.0] * 4)) == "", "a map without an order is compared with none"


def test_the_answer_by_the_shared_top_names_its_share_by_chance() -> None:
    """The top 2 of 4: words 3 and 4 in both first maps, words 1 and 2 in the last."""
    found = agreement_summary(three([1.0, 2.0, 3.0, 4.0], [1.0, 2.0, 4.0, 3.0], [4.0, 3.0, 2.0, 1.0], measure="top_k"))
    assert "agree most (100.0% of the top 2 shared)" in found
    assert "least (0.0% of the top 2 shared). Unrelated maps: 50.0%." in found
