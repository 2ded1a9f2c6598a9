"""Before and after: moves of ranks, maps on one scale, sentences, files, all against numbers worked out by hand."""

from __future__ import annotations

import csv
import dataclasses
import io
import json
from html import escape

import numpy as np
import pytest

from components.adversarial.before_after import (
    answer_html,
    before_after_html,
    build_columns,
    build_maps,
    describe_pale_map,
    magnification,
    magnify,
    pictures_html,
    rank_moves,
    ranks_html,
    size_maps,
    sizes_html,
    top_after,
    top_before,
)
from components.adversarial.descriptions import (
    describe_reach,
    headline,
    measure_lines,
    result_notes,
    summarize_attacks,
    summarize_fooled,
)
from components.adversarial.example_panel import tokens_table
from components.adversarial.export import rank_csv, results_json, to_npy
from engine.attacks.experiment_result import AttackMetricKey, AttackScore
from engine.attacks.plan import PIXELS
from engine.attacks.result import AttackResult
from engine.metrics.results import share_interval
from engine.registry import explainer
from engine.request import Picture, Prompt
from tests.unit.adversarial.making import TEXT, picture_attack, prediction, text_attack

METHOD = explainer("gradient_x_input", "text")
PICTURE = Picture(np.zeros((2, 2, 3), np.uint8))


def board(results: list[AttackResult]) -> str:
    columns = build_columns(results, build_maps(results, METHOD, TEXT), None)
    return before_after_html(columns, "Gradient x input") + ranks_html(results)


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
    of_prompt = Prompt(TEXT.text, target=" good", contrast=" bad")
    assert {view.target for view in build_maps([text_attack()], METHOD, of_prompt)} == {"positive rather than ·bad"}


def test_the_board_has_a_side_before_and_one_after_each_attack() -> None:
    html = board([text_attack(), text_attack("constrained")])
    for title in ("Before", "After, unconstrained", "After, constrained"):
        assert html.count(f'aria-label="{title}"') == 1
    assert "<b>↓ 2</b> to rank 3 unconstrained; <b>↓ 2</b> to rank 3 constrained" in html
    assert html.count("<b>↑ 2</b> from rank 3") == 2


def test_tokens_and_labels_are_escaped() -> None:
    token = text_attack().tokens[1]
    bad = text_attack(tokens=(*text_attack().tokens[:1], type(token)("<b>", 0, 4, 0, False), *text_attack().tokens[2:]))
    assert "<bdi><b></bdi>" not in board([bad])
    assert "<bdi>&lt;b&gt;</bdi>" in board([bad])


def test_the_numbers_are_told_in_words() -> None:
    text = dict(measure_lines(text_attack()))
    assert text["Rank change"] == "100.0%: another token ranks first"
    assert text["Top-k sum change"].startswith("+4:")
    # 3 of 5 before, -1 of 3.5 after.
    assert text["Normalized sum change"].startswith("+0.886")
    assert text["Probability change"] == "−10.0 points: 90.0% before, 80.0% after"
    assert text["Class"] == "unchanged: positive"
    assert "at most ε = 2 for each number of an embedding; the largest is 2." in text["Change"]
    assert "Epsilon 2 allows a change of up to 7.5 times the median embedding norm" in text["Change"]
    assert text["Run"].startswith("best result at step 2 of 2, start 1 of 3")
    assert "Constraint" not in text
    assert dict(measure_lines(text_attack(positive=0.3)))["Class"] == "✗ changed to negative"
    assert dict(measure_lines(text_attack("constrained", positive=0.89)))["Constraint"] == "met"
    assert "epsilon 0.0314 is 3.1% of the color range" in dict(measure_lines(picture_attack()))["Change"].lower()
    assert dict(measure_lines(text_attack(best=None, prediction_after=prediction(0.9))))["Run"].startswith(
        "no improvement in 2 steps, start 1 of 3"
    )


def test_what_matters_stands_first() -> None:
    kept, lost = text_attack(), text_attack("constrained", positive=0.3)
    text = answer_html([kept, lost], "Gradient x input")
    assert (
        "<p><b>Gradient x input can be fooled with this large epsilon:</b> the unconstrained attack replaced the top "
        "token while the prediction stayed positive (90.0% before, 80.0% after).</p>" in text
    )
    near = dataclasses.replace(kept, relative_epsilon=0.5)
    assert "<b>Gradient x input can be fooled here:</b>" in answer_html([near, lost], "Gradient x input")
    text = board([kept, lost])
    assert '<p class="xg-small">The top token was replaced.</p>' in text
    assert "the top token was replaced, but the prediction changed from positive to negative." in text


@pytest.mark.parametrize(("after", "sentence", "summary"), [
    ([2, 3, 0, 1], "all top-2 tokens were replaced while",
     "M can be fooled with this large epsilon: the unconstrained attack replaced all top 2 tokens while the "
     "prediction stayed positive (90.0% before, 80.0% after)."),
    ([0, 3, 1, 2], "1 of the top 2 tokens was replaced while",
     "M can be fooled with this large epsilon: the unconstrained attack replaced 1 of the top 2 tokens while the "
     "prediction stayed positive (90.0% before, 80.0% after)."),
    ([1, 0, 2, 3], "the top 2 tokens are the same in a different order while",
     "M keeps its top tokens here, but in a different order."),
    ([0, 1, 3, 2], "the top 2 tokens did not change while",
     "No valid attack changed the top tokens of M here; a stronger one might."),
])  # fmt: skip
def test_the_top_is_compared_as_a_set_and_its_order_apart(after: list[int], sentence: str, summary: str) -> None:
    result = text_attack(order_before=np.arange(4), order_after=np.array(after), k=2)
    assert headline(result)[1].startswith(sentence)
    assert summarize_attacks([result], "M") == summary


def test_attacks_that_do_not_count_conclude_nothing() -> None:
    results = [text_attack(positive=0.3), text_attack("constrained", positive=0.6), text_attack(failed=True)]
    assert [result.outcome for result in results] == ["class changed", "constraint broken", "failed"]
    assert summarize_attacks(results, "M").startswith("Nothing can be concluded about M here: every attack failed,")
    robust = text_attack(order_after=text_attack().order_before)
    assert summarize_attacks([*results, robust], "M").startswith("No valid attack changed the top tokens of M")


def test_many_examples_are_counted_with_an_exact_interval() -> None:
    def score(method: str, value: float, n: int, attacked: str = "") -> AttackScore:
        key = AttackMetricKey("m", "d", method, "fooled", "constrained", attacked or method)
        bounds = share_interval(round(value * n), n) if n > 1 else None
        return AttackScore(key, value, bounds, n)

    scores = [score("lime", 0.75, 4), score("gradient", 1.0, 1), score("gradient", 0.5, 4, attacked="lime")]
    assert summarize_fooled(scores, {"lime": "LIME"}, "right") == [
        "Constrained attacks on m fooled LIME on 3 of 4 examples that the model gets right "
        "(95% interval 19.4% to 99.4%) and gradient on 1 of 1 example that the model gets right (no interval)."
    ]


@pytest.mark.parametrize(("result", "title", "words"), [
    (text_attack("constrained", 0.3), "✗ Class changed, not fooled:",
     "but the prediction changed from positive to negative"),
    (text_attack("constrained", 0.6), "✗ Constraint broken, not fooled:",
     "the prediction stayed positive, but its probability changed more than allowed (−30.0 points: 90.0% before, 60.0% "
     "after; allowed: at most 5 points in the same class)"),
    (text_attack(failed=True), "✗ Attack failed:", "says nothing about the map"),
])  # fmt: skip
def test_what_does_not_count_as_fooled_is_said_in_words_with_a_sign(
    result: AttackResult, title: str, words: str
) -> None:
    text = board([result])
    assert f'<p class="xg-small xg-error" role="alert"><b>{title}</b>' in text
    assert words in text
    assert "xg-error" not in board([text_attack(), text_attack("constrained", 0.88)])
    if result.outcome == "constraint broken":
        assert '<dd class="xg-broken">✗ broken (allowed: at most 5 points in the same class)</dd>' in board([result])


def test_a_map_that_is_pale_on_one_scale_is_said_to_be() -> None:
    large = text_attack(after=np.array([0.0, -40.0, 2.0, 0.5, 0.0]))
    assert "its largest score is 3, the scale ends at 40" in describe_pale_map(build_maps([large], METHOD, TEXT))
    assert describe_pale_map(build_maps([large], METHOD, TEXT, shared=False)) == ""
    assert describe_pale_map(build_maps([text_attack()], METHOD, TEXT)) == ""


def test_a_map_that_is_zero_has_no_normalised_change() -> None:
    text = dict(measure_lines(text_attack(before=np.zeros(5))))
    assert text["Normalized sum change"].startswith("undefined: a map is zero everywhere")


def test_notes_are_said_once_and_name_the_attack_where_they_are_of_one() -> None:
    first, second = text_attack(notes=("both", "one")), text_attack("constrained", notes=("both",))
    assert result_notes([first, second]) == ["both", "After, unconstrained: one"]


def test_a_token_stands_with_its_places_its_change_and_its_words() -> None:
    rows = tokens_table(text_attack()).to_dict("records")
    assert [row["Token"] for row in rows] == ["good", "old", "film"]
    assert rows[0] == {
        "Token": "good", "Rank before": 1, "Rank after": 3, "Largest change": 2.0, "Euclidean norm": 3.0,
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
    assert "Magnified 15 times." in html
    views = build_maps([result], explainer("gradient_x_input", "image"), PICTURE)
    assert 'aria-label="After, constrained. 2 rows, 2 columns.' in before_after_html(
        build_columns([result], views, result.picture.before), "Gradient x input"
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


@pytest.mark.parametrize(("reach", "place", "sentence"), [
    (9.05, "embeddings", "Epsilon is large for this model: it lets an embedding move by up to 9.05 times the median "
     "norm of the embeddings, so the attacked input need not resemble this one."),
    (0.25, "embeddings", "Epsilon lets an embedding move by up to 25.0% of the median norm of the embeddings."),
    (9.05, PIXELS, ""),
    (None, "embeddings", ""),
])  # fmt: skip
def test_the_verdict_relates_epsilon_to_the_embeddings(reach: float | None, place: str, sentence: str) -> None:
    result = text_attack()
    result = dataclasses.replace(result, relative_epsilon=reach, attack={**result.attack, "place": place})
    assert describe_reach([result]).startswith(sentence)
    assert bool(describe_reach([result])) == bool(sentence)
    assert escape(sentence) in answer_html([result], "M")
