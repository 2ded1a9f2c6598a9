"""Before and after: moves of ranks, maps on one scale, sentences, files, all against numbers worked out by hand."""

from __future__ import annotations

import csv
import io
import json

import numpy as np
import pytest

from components.adversarial.before_after import (
    before_after_html,
    build_columns,
    build_maps,
    describe_pale_map,
    headlines_html,
    magnification,
    magnify,
    pictures_html,
    rank_moves,
    size_maps,
    sizes_html,
    top_after,
    top_before,
)
from components.adversarial.descriptions import measure_lines, result_notes
from components.adversarial.example_panel import tokens_table
from components.adversarial.export import rank_csv, results_json, to_npy
from engine.attacks.result import AttackResult
from engine.registry import explainer
from engine.request import Picture
from tests.unit.adversarial.making import TEXT, picture_attack, prediction, text_attack

METHOD = explainer("gradient_x_input", "text")
PICTURE = Picture(np.zeros((2, 2, 3), np.uint8))


def board(results: list[AttackResult]) -> str:
    return before_after_html(build_columns(results, build_maps(results, METHOD, TEXT), None))


def test_arrows_say_the_way_and_how_far() -> None:
    result = text_attack()
    own = rank_moves(result.features.tolist(), result.order_before, result.order_after)
    assert [(move.position, move.before, move.after, move.arrow) for move in own] == [
        (1, 1, 3, "↓ 2"), (3, 2, 2, "="), (2, 3, 1, "↑ 2")
    ]  # fmt: skip
    assert [move.position for move in top_before(own, 1)] == [1]
    assert [move.position for move in top_after(own, 2)] == [2, 3]


def test_all_maps_end_at_the_largest_score_of_any() -> None:
    views = build_maps([text_attack(), text_attack("constrained", positive=0.9)], METHOD, TEXT)
    assert len(views) == 3
    assert {view.scale for view in views} == {3.0}
    assert [view.largest for view in views] == [3.0, 2.0, 2.0]
    assert [view.scale for view in build_maps([text_attack()], METHOD, TEXT, shared=False)] == [3.0, 2.0]
    assert {view.scale for view in size_maps([text_attack()], TEXT)} == {3.0}


def test_the_board_has_a_side_before_and_one_after_each_attack() -> None:
    html = board([text_attack(), text_attack("constrained")])
    for title in ("Before", "After, unconstrained", "After, constrained"):
        assert html.count(f'aria-label="{title}"') == 1
    assert "<b>↓ 2</b> now 3 unconstrained; <b>↓ 2</b> now 3 constrained" in html
    assert html.count("<b>↑ 2</b> was 3") == 2


def test_tokens_and_labels_are_escaped() -> None:
    token = text_attack().tokens[1]
    bad = text_attack(tokens=(*text_attack().tokens[:1], type(token)("<b>", 0, 4, 0, False), *text_attack().tokens[2:]))
    assert "<bdi><b></bdi>" not in board([bad])
    assert "<bdi>&lt;b&gt;</bdi>" in board([bad])


def test_the_numbers_are_told_in_words() -> None:
    text = dict(measure_lines(text_attack()))
    assert text["Rank change"] == "100.0%: another token holds the first place"
    assert text["Top-k sum change"].startswith("+4:")
    # 3 of 5 before, -1 of 3.5 after.
    assert text["Normalised sum"].startswith("+0.886")
    assert text["Probability change"] == "−10.0 points: 90.0% before, 80.0% after"
    assert text["Class"] == "kept: positive"
    assert "ε = 2; the largest moved by 2" in text["Moved"]
    assert "Epsilon 2 allows a change of up to 7.5 times the median length of the embeddings" in text["Moved"]
    assert text["Run"].startswith("2 steps, step 2 is kept, from start 1 of 3")
    assert "Constraint" not in text
    assert dict(measure_lines(text_attack(positive=0.3)))["Class"] == "✗ not kept: negative now"
    assert dict(measure_lines(text_attack("constrained", positive=0.89)))["Constraint"] == "kept"
    assert "epsilon 0.0314 is 3.1% of the range of a color" in dict(measure_lines(picture_attack()))["Moved"].lower()
    assert dict(measure_lines(text_attack(best=None, prediction_after=prediction(0.9))))["Run"].startswith(
        "2 steps, the input as it was is kept"
    )


def test_what_matters_stands_first() -> None:
    kept, lost = text_attack(), text_attack("constrained", positive=0.3)
    text = headlines_html([kept, lost])
    assert "<b>Unconstrained:</b> another token holds the first place; the model still says positive" in text
    assert "another token holds the first place; the model now says negative" in text


@pytest.mark.parametrize(("result", "title", "words"), [
    (text_attack("constrained", 0.3), "Constrained: ✗ Class changed, not fooled:", "the model now says negative"),
    (text_attack("constrained", 0.6), "Constrained: ✗ Constraint broken, not fooled:",
     "still says positive, but its probability changed more than allowed (−30.0 points: 90.0% before, 60.0% "
     "after; at most 5 points and the same class are allowed)"),
    (text_attack(failed=True), "Unconstrained: ✗ Attack failed:", "says nothing about the map"),
])  # fmt: skip
def test_what_does_not_count_as_fooled_is_said_in_words_with_a_sign(
    result: AttackResult, title: str, words: str
) -> None:
    text = headlines_html([result])
    assert f'<p class="xg-error" role="alert"><b>{title}</b>' in text
    assert words in text
    assert "xg-error" not in headlines_html([text_attack(), text_attack("constrained", 0.88)])
    if result.outcome == "constraint broken":
        assert '<dd class="xg-broken">✗ broken: at most 5 points and the same class are allowed</dd>' in board([result])


def test_a_map_that_is_pale_on_one_scale_is_said_to_be() -> None:
    large = text_attack(after=np.array([0.0, -40.0, 2.0, 0.5, 0.0]))
    assert "its own would end at 3, this one at 40" in describe_pale_map(build_maps([large], METHOD, TEXT))
    assert describe_pale_map(build_maps([large], METHOD, TEXT, shared=False)) == ""
    assert describe_pale_map(build_maps([text_attack()], METHOD, TEXT)) == ""


def test_a_map_that_is_zero_has_no_normalised_change() -> None:
    text = dict(measure_lines(text_attack(before=np.zeros(5))))
    assert text["Normalised sum"].startswith("none: a map is zero everywhere")


def test_notes_are_said_once_and_name_the_attack_where_they_are_of_one() -> None:
    first, second = text_attack(notes=("both", "one")), text_attack("constrained", notes=("both",))
    assert result_notes([first, second]) == ["both", "After, unconstrained: one"]


def test_a_token_stands_with_its_places_its_change_and_its_words() -> None:
    rows = tokens_table(text_attack()).to_dict("records")
    assert [row["Token"] for row in rows] == ["good", "old", "film"]
    assert rows[0] == {
        "Token": "good", "Place before": 1, "Place after": 3, "Largest change": 2.0, "Length of the change": 3.0,
        "Nearest words": "good (1.50), fine (2.00)",
    }  # fmt: skip


def test_a_picture_shows_what_was_added_so_large_that_it_is_seen() -> None:
    result = picture_attack()
    assert result.picture is not None
    difference = result.picture.difference
    assert magnification(difference) == 15
    shown = magnify(difference, 15)
    assert shown[0, 0].tolist() == [248, 128, 128]
    assert magnification(np.zeros((1, 1, 3))) == 1
    html = pictures_html([result])
    assert "What was added, 15 times as large." in html
    views = build_maps([result], explainer("gradient_x_input", "image"), PICTURE)
    assert 'aria-label="After, constrained. 2 rows, 2 columns.' in before_after_html(
        build_columns([result], views, result.picture.before)
    )
    assert "Size of the change" in sizes_html([result], size_maps([result], PICTURE), result.picture.before)


def test_files_hold_the_numbers() -> None:
    rows = list(csv.DictReader(io.StringIO(rank_csv([text_attack()]))))
    assert [(row["token"], row["place_before"], row["place_after"]) for row in rows] == [
        ("good", "1", "3"), ("film", "2", "2"), ("old", "3", "1")
    ]  # fmt: skip
    [text] = json.loads(results_json([text_attack()]))
    assert text["rank_change"] == 1.0
    assert (text["outcome"], text["constraint_kept"], rows[0]["outcome"]) == ("fooled", True, "fooled")
    assert text["probability_change"] == pytest.approx(0.1)
    assert "delta" not in text
    assert np.load(io.BytesIO(to_npy(text_attack().delta))).shape == (5, 2)
