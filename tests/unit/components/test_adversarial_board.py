"""Before and after: moves of ranks, maps on one scale, sentences, files, all against numbers worked out by hand."""

from __future__ import annotations

import csv
import io
import json

import numpy as np
import pytest

from components.adversarial.area import tokens_table
from components.adversarial.board import board_html, lead_html, pictures_html, sides_of, sizes_html
from components.adversarial.keep import csv_of, json_of, npy_of
from components.adversarial.moves import moves, top_after, top_before
from components.adversarial.told import notes_of, numbers_of
from components.adversarial.views import factor_of, magnified, maps_of, pale_words, sizes_of
from engine.attacks.result import Attacked
from engine.registry import explainer
from engine.request import Picture
from tests.unit.components.attacked import TEXT, picture_attack, prediction, text_attack

METHOD = explainer("gradient_x_input", "text")
PICTURE = Picture(np.zeros((2, 2, 3), np.uint8))


def board(founds: list[Attacked]) -> str:
    return board_html(sides_of(founds, maps_of(founds, METHOD, TEXT), None))


def test_arrows_say_the_way_and_how_far() -> None:
    found = text_attack()
    own = moves(found.features.tolist(), found.order_before, found.order_after)
    assert [(move.position, move.before, move.after, move.arrow) for move in own] == [
        (1, 1, 3, "↓ 2"), (3, 2, 2, "="), (2, 3, 1, "↑ 2")
    ]  # fmt: skip
    assert [move.position for move in top_before(own, 1)] == [1]
    assert [move.position for move in top_after(own, 2)] == [2, 3]


def test_all_maps_end_at_the_largest_score_of_any() -> None:
    views = maps_of([text_attack(), text_attack("constrained", positive=0.9)], METHOD, TEXT)
    assert len(views) == 3
    assert {view.scale for view in views} == {3.0}
    assert [view.largest for view in views] == [3.0, 2.0, 2.0]
    assert [view.scale for view in maps_of([text_attack()], METHOD, TEXT, shared=False)] == [3.0, 2.0]
    assert {view.scale for view in sizes_of([text_attack()], TEXT)} == {3.0}


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
    told = dict(numbers_of(text_attack()))
    assert told["Rank change"] == "100.0\u00a0%: another token holds the first place"
    assert told["Top-k sum change"].startswith("+4:")
    # 3 of 5 before, -1 of 3.5 after.
    assert told["Normalised sum"].startswith("+0.886")
    assert told["Probability change"] == "−10.0 points: 90.0\u00a0% before, 80.0\u00a0% after"
    assert told["Class"] == "kept: positive"
    assert "ε = 2; the largest moved by 2" in told["Moved"]
    assert "Epsilon 2 allows a change of up to 7.5 times the median length of the embeddings" in told["Moved"]
    assert told["Run"].startswith("2 steps, step 2 is kept, from start 1 of 3")
    assert "Constraint" not in told
    assert dict(numbers_of(text_attack(positive=0.3)))["Class"] == "✗ not kept: negative now"
    assert dict(numbers_of(text_attack("constrained", positive=0.89)))["Constraint"] == "kept"
    assert "epsilon 0.0314 is 3.1% of the range of a color" in dict(numbers_of(picture_attack()))["Moved"].lower()
    assert dict(numbers_of(text_attack(best=None, prediction_after=prediction(0.9))))["Run"].startswith(
        "2 steps, the input as it was is kept"
    )


def test_what_matters_stands_first() -> None:
    kept, lost = text_attack(), text_attack("constrained", positive=0.3)
    told = lead_html([kept, lost])
    assert "<b>Unconstrained:</b> another token holds the first place; the model still says positive" in told
    assert "another token holds the first place; the model now says negative" in told


@pytest.mark.parametrize(("found", "title", "words"), [
    (text_attack("constrained", 0.3), "Constrained: ✗ Class changed, not fooled:", "the model now says negative"),
    (text_attack("constrained", 0.6), "Constrained: ✗ Constraint broken, not fooled:",
     "still says positive, but its probability changed more than allowed (−30.0 points: 90.0 % before, 60.0 % "
     "after; at most 5 points and the same class are allowed)"),
    (text_attack(failed=True), "Unconstrained: ✗ Attack failed:", "says nothing about the map"),
])  # fmt: skip
def test_what_does_not_count_as_fooled_is_said_in_words_with_a_sign(found: Attacked, title: str, words: str) -> None:
    told = lead_html([found])
    assert f'<p class="xg-error" role="alert"><b>{title}</b>' in told
    assert words in told
    assert "xg-error" not in lead_html([text_attack(), text_attack("constrained", 0.88)])
    if found.outcome == "constraint broken":
        assert '<dd class="xg-broken">✗ broken: at most 5 points and the same class are allowed</dd>' in board([found])


def test_a_map_that_is_pale_on_one_scale_is_said_to_be() -> None:
    large = text_attack(after=np.array([0.0, -40.0, 2.0, 0.5, 0.0]))
    assert "its own would end at 3, this one at 40" in pale_words(maps_of([large], METHOD, TEXT))
    assert pale_words(maps_of([large], METHOD, TEXT, shared=False)) == ""
    assert pale_words(maps_of([text_attack()], METHOD, TEXT)) == ""


def test_a_map_that_is_zero_has_no_normalised_change() -> None:
    told = dict(numbers_of(text_attack(before=np.zeros(5))))
    assert told["Normalised sum"].startswith("none: a map is zero everywhere")


def test_notes_are_said_once_and_name_the_attack_where_they_are_of_one() -> None:
    first, second = text_attack(notes=("both", "one")), text_attack("constrained", notes=("both",))
    assert notes_of([first, second]) == ["both", "After, unconstrained: one"]


def test_a_token_stands_with_its_places_its_change_and_its_words() -> None:
    rows = tokens_table(text_attack()).to_dict("records")
    assert [row["Token"] for row in rows] == ["good", "old", "film"]
    assert rows[0] == {
        "Token": "good", "Place before": 1, "Place after": 3, "Largest change": 2.0, "Length of the change": 3.0,
        "Nearest words": "good (1.50), fine (2.00)",
    }  # fmt: skip


def test_a_picture_shows_what_was_added_so_large_that_it_is_seen() -> None:
    found = picture_attack()
    assert found.picture is not None
    difference = found.picture.difference
    assert factor_of(difference) == 15
    shown = magnified(difference, 15)
    assert shown[0, 0].tolist() == [248, 128, 128]
    assert factor_of(np.zeros((1, 1, 3))) == 1
    html = pictures_html([found])
    assert "What was added, 15 times as large." in html
    views = maps_of([found], explainer("gradient_x_input", "image"), PICTURE)
    assert 'aria-label="After, constrained. 2 rows, 2 columns.' in board_html(
        sides_of([found], views, found.picture.before)
    )
    assert "Size of the change" in sizes_html([found], sizes_of([found], PICTURE), found.picture.before)


def test_files_hold_the_numbers() -> None:
    rows = list(csv.DictReader(io.StringIO(csv_of([text_attack()]))))
    assert [(row["token"], row["place_before"], row["place_after"]) for row in rows] == [
        ("good", "1", "3"), ("film", "2", "2"), ("old", "3", "1")
    ]  # fmt: skip
    [told] = json.loads(json_of([text_attack()]))
    assert told["rank_change"] == 1.0
    assert (told["outcome"], told["constraint_kept"], rows[0]["outcome"]) == ("fooled", True, "fooled")
    assert told["probability_change"] == pytest.approx(0.1)
    assert "delta" not in told
    assert np.load(io.BytesIO(npy_of(text_attack().delta))).shape == (5, 2)
