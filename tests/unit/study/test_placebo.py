"""The placebo: its scores are those of another item, and nothing on its ballot has the same."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from engine.registry import explainer
from engine.result import Explanation, Prediction, Provenance, Token
from engine.study.design import PLACEBO, Design, MethodChoice, check_design
from engine.study.items import JITTER, Item, add_placebos, decode_map, take_snapshot
from tests.unit.study.samples import image_design, text_design

pytestmark = pytest.mark.usefixtures("store")
MAKE = {"text": text_design, "image": image_design}


def scores_of(item: Item, place: int) -> tuple[list[float], list[float]]:
    """Those of the special tokens, and the others."""
    seen = decode_map(item.explanations[place])
    special = np.array([token.special for token in seen.tokens])
    return seen.scores[special].tolist(), seen.scores[~special].tolist()


@pytest.mark.parametrize("kind", MAKE)
def test_its_scores_are_those_of_another_item_a_little_changed(kind: str, tmp_path: Path) -> None:
    design = check_design(MAKE[kind](tmp_path))
    names = [method.id for method in design.methods]
    items = take_snapshot(design)
    for place, item in enumerate(items):
        special, placebo = scores_of(item, -1)
        source = item.explanations[-1].provenance["extras"]["permuted"]
        at = names.index(source["method"])
        real = scores_of(items[source["item"]], at)[1]
        assert not any(special)
        assert source["item"] != place
        assert source["params"] == item.explanations[at].provenance["params"]
        if len(real) == len(placebo):
            closest = np.sort(np.abs(placebo)) / np.sort(np.abs(real))
            assert np.all(np.abs(np.log(closest)) < 6 * JITTER)
        for other in range(len(names)):  # of which the ballot shows none
            assert not set(placebo) & set(scores_of(item, other)[1])


def test_on_a_grid_neighbors_stay_neighbors() -> None:
    """Every pair of neighbors that does not lie across the seam of the shift is one of the source."""
    smooth = np.add.outer(np.arange(5.0), 10 * np.arange(5.0)) + 1
    tokens = tuple(Token("", 0, 0, 0, False) for _ in range(25))
    how = Provenance("m", "r", "gradient", 1, {}, 0, "good", 0, "float32", "cpu")
    items = [
        [Explanation(tokens, scores.ravel(), Prediction(("good",), (0.0,), (1.0,)), how, 5, 1.0, grid=(5, 5))]
        for scores in (np.zeros((5, 5)), smooth)
    ]
    design = Design(kind="image", methods=(MethodChoice("gradient"),))
    moved = np.log(add_placebos(items, design)[0][-1].scores.reshape(5, 5))
    real = np.log(smooth)
    mirrored = [moved, moved[::-1], moved[:, ::-1], moved[::-1, ::-1]]
    nearest = [np.roll(one, shift, (0, 1)) for one in mirrored for shift in np.ndindex(5, 5)]
    assert min(np.abs(one - real).max() for one in nearest) < 6 * JITTER


def test_its_provenance_says_how_it_was_made_and_nothing_of_another_ones_cost(tmp_path: Path) -> None:
    design = check_design(text_design(tmp_path, seed=7))
    for item in take_snapshot(design):
        made = item.explanations[-1].provenance
        source = made["extras"]["permuted"]
        assert (made["method"], made["params"], made["seed"]) == (PLACEBO, {}, 7)
        assert (made["evaluations"], made["seconds"], made["check"], made["notes"]) == (0, 0.0, None, [])
        assert made["signed"] == explainer(source["method"]).is_signed(source["params"])


def test_the_seed_draws_it(tmp_path: Path) -> None:
    first, again = (take_snapshot(check_design(text_design(tmp_path))) for _ in range(2))
    assert [item.explanations[-1].body for item in first] == [item.explanations[-1].body for item in again]
    assert len({tuple(scores_of(item, -1)[1]) for item in first}) == len(first)


def test_random_that_the_organizer_chose_is_the_same(tmp_path: Path) -> None:
    methods = (MethodChoice(PLACEBO), MethodChoice("gradient"))
    items = take_snapshot(check_design(text_design(tmp_path, placebo=False, methods=methods)))
    for item in items:
        assert [one.provenance["method"] for one in item.explanations] == [PLACEBO, "gradient"]
        assert item.explanations[0].provenance["extras"]["permuted"]["method"] == "gradient"


def made(method: str, *scores: float) -> Explanation:
    tokens = (Token("[CLS]", 0, 0, -1, True), *(Token(f"w{n}", n, n + 1, 0, False) for n in range(len(scores))))
    how = Provenance("m", "r", method, 1, {}, 0, "good", 0, "float32", "cpu")
    return Explanation(tokens, np.array([9.0, *scores]), Prediction(("good",), (0.0,), (1.0,)), how, 5, 1.0)


def chosen(explanations: list[Explanation], items: int) -> list[str]:
    """The methods whose scores are lent, item by item."""
    methods = tuple(MethodChoice(one.provenance.method) for one in explanations)
    moved = add_placebos([explanations] * items, Design(methods=methods))
    return [str(one[-1].extras["permuted"]["method"]) for one in moved]


def test_each_method_lends_its_scores_as_often_as_any_other() -> None:
    found = chosen([made("gradient", 1, 2, 3), made("lime", 4, 5, 6), made("occlusion", 7, 8, 9)], 900)
    for method in ("gradient", "lime", "occlusion"):
        assert found.count(method) == pytest.approx(300, abs=71)  # five standard deviations


def test_scores_that_are_all_equal_are_lent_only_where_there_are_no_others() -> None:
    even = made("lime", 0, 0, 0)
    assert set(chosen([made("gradient", 1, 2, 3), even], 40)) == {"gradient"}
    assert set(chosen([even], 3)) == {"lime"}


def test_a_single_item_lends_its_own() -> None:
    assert chosen([made("gradient", 1, 2, 3)], 1) == ["gradient"]


def test_a_text_of_another_length_takes_the_scores_in_their_order() -> None:
    items = [[made("gradient", *np.arange(1.0, 7.0))], [made("gradient", *np.arange(1.0, 4.0) ** 8)]]
    long, short = (one[-1].scores for one in add_placebos(items, Design(methods=(MethodChoice("gradient"),))))
    assert (long[0], short[0]) == (0, 0)
    near = [round(float(np.log(value) / np.log(2))) for value in sorted(long[1:])]
    assert near == pytest.approx([0, 0, 8, 8, 13, 13], abs=0.6)
    assert sorted(np.round(np.log(short[1:]), 0)) == pytest.approx(sorted(np.log([1, 3, 5])), abs=1)
