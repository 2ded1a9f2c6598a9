"""The placebo: by its colours it is one of the methods, by where they stand it knows nothing."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from engine.registry import explainer
from engine.result import Explanation, Prediction, Provenance, Token
from engine.study.design import PLACEBO, Design, MethodChoice, check
from engine.study.freezing import FrozenItem, freeze, frozen_map
from engine.study.placebo import with_placebo
from tests.unit.study.samples import image_design, text_design

pytestmark = pytest.mark.usefixtures("store")
MAKE = {"text": text_design, "image": image_design}


def scores_of(item: FrozenItem, place: int) -> tuple[list[float], list[float]]:
    """Those of the special tokens, and the others."""
    seen = frozen_map(item.shown[place])
    special = np.array([token.special for token in seen.tokens])
    return seen.scores[special].tolist(), seen.scores[~special].tolist()


@pytest.mark.parametrize("kind", MAKE)
def test_its_scores_are_those_of_the_method_that_it_names_in_another_order(kind: str, tmp_path: Path) -> None:
    design = check(MAKE[kind](tmp_path))
    names = [method.id for method in design.methods]
    moved = 0
    for item in freeze(design):
        special, placebo = scores_of(item, -1)
        source = item.shown[-1].provenance["extras"]["permuted"]
        place = names.index(source["method"])
        real = scores_of(item, place)[1]
        assert not any(special)
        assert sorted(placebo) == sorted(real)
        assert source["params"] == item.shown[place].provenance["params"]
        moved += placebo != real
    assert moved >= 3, "of four items"


def test_its_provenance_says_how_it_was_made_and_nothing_of_another_ones_cost(tmp_path: Path) -> None:
    design = check(text_design(tmp_path, seed=7))
    for item in freeze(design):
        made = item.shown[-1].provenance
        source = made["extras"]["permuted"]
        assert (made["method"], made["params"], made["seed"]) == (PLACEBO, {}, 7)
        assert (made["evaluations"], made["seconds"], made["check"], made["notes"]) == (0, 0.0, None, [])
        assert made["signed"] == explainer(source["method"]).is_signed(source["params"])


def test_the_seed_draws_it(tmp_path: Path) -> None:
    first, again = (freeze(check(text_design(tmp_path))) for _ in range(2))
    assert [item.shown[-1].body for item in first] == [item.shown[-1].body for item in again]
    assert len({tuple(scores_of(item, -1)[1]) for item in first}) == len(first)


def test_random_that_the_organiser_chose_is_the_same(tmp_path: Path) -> None:
    methods = (MethodChoice(PLACEBO), MethodChoice("gradient"))
    for item in freeze(check(text_design(tmp_path, placebo=False, methods=methods))):
        assert [one.provenance["method"] for one in item.shown] == [PLACEBO, "gradient"]
        assert sorted(scores_of(item, 0)[1]) == sorted(scores_of(item, 1)[1])


def made(method: str, *scores: float) -> Explanation:
    tokens = (Token("[CLS]", 0, 0, -1, True), *(Token(f"w{n}", n, n + 1, 0, False) for n in range(len(scores))))
    how = Provenance("m", "r", method, 1, {}, 0, "good", 0, "float32", "cpu")
    return Explanation(tokens, np.array([9.0, *scores]), Prediction(("good",), (0.0,), (1.0,)), how, 5, 1.0)


def chosen(explanations: list[Explanation], places: int) -> list[str]:
    """The methods whose scores are mixed, item by item."""
    methods = tuple(MethodChoice(one.provenance.method) for one in explanations)
    mixed = [with_placebo(explanations, Design(methods=methods), place)[-1] for place in range(places)]
    return [str(one.extras["permuted"]["method"]) for one in mixed]


def test_each_method_lends_its_scores_as_often_as_any_other() -> None:
    found = chosen([made("gradient", 1, 2, 3), made("lime", 4, 5, 6), made("occlusion", 7, 8, 9)], 3_000)
    for method in ("gradient", "lime", "occlusion"):
        assert found.count(method) == pytest.approx(1_000, abs=130)  # five standard deviations


def test_scores_that_are_all_equal_are_mixed_only_where_there_are_no_others() -> None:
    even = made("lime", 0, 0, 0)
    assert set(chosen([made("gradient", 1, 2, 3), even], 40)) == {"gradient"}
    assert set(chosen([even], 3)) == {"lime"}
