"""The table of heads: each column by its own function, ranks, progress, and bad queries."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest
import scipy.stats

from engine.errors import UsageError
from engine.explain import explain
from engine.heads.readings import HeadTable, HeadTableQuery, head_table, read_heads, switch_off_each
from engine.heads.scores import AGREES
from engine.request import Example, HeadScales, Request
from tests.explaining import checkpoint
from tests.tiny import save_checkpoint

pytestmark = pytest.mark.usefixtures("home")

TEXT = Example("the ending is warm and funny")
METHOD = "gradient_x_input"


def table_request(**more: object) -> Request:
    return Request(str(checkpoint("bert", 3)), "random", TEXT, **more)  # type: ignore[arg-type]


def rho(found: HeadTable, layer: int, head: int, query: int | None) -> float:
    """Spearman's rho of one head's map, from the raw attention."""
    assert found.against is not None
    attention = found.reading.attention[layer, head].astype(float)
    features = found.against.features
    own = (attention.mean(0) if query is None else attention[query])[features]
    return float(scipy.stats.spearmanr(own, np.abs(found.against.scores[features])).statistic)


def test_each_column_is_that_of_its_own_function() -> None:
    asked = table_request(target=1, heads=HeadScales.off([(2, 3)]))
    found = head_table(asked, HeadTableQuery(("off", "agreement", "entropy"), METHOD))
    assert list(found.columns) == ["off", "agreement", "entropy"]
    off, reading = switch_off_each(asked), read_heads(asked)
    np.testing.assert_array_equal(found.columns["off"], off.fall)
    np.testing.assert_array_equal(found.flipped, off.flipped)
    np.testing.assert_array_equal(found.columns["entropy"], reading.scores["entropy"])
    answer = explain(dataclasses.replace(asked, method=METHOD))
    assert found.against is not None
    np.testing.assert_array_equal(found.against.scores, answer.scores)
    expected = [rho(found, layer, head, None) for layer, head in found.heads]
    np.testing.assert_allclose(found.columns["agreement"].ravel(), expected, atol=1e-9)


def test_maps_may_be_those_of_one_query() -> None:
    found = head_table(table_request(), HeadTableQuery(("agreement",), METHOD, query=2))
    expected = [rho(found, layer, head, 2) for layer, head in found.heads]
    np.testing.assert_allclose(found.columns["agreement"].ravel(), expected, atol=1e-9)
    assert (found.query, found.flipped) == (2, None)


def test_rows_are_ranked_by_size_and_what_has_no_value_comes_last() -> None:
    made = head_table(table_request(), HeadTableQuery(("distance",)))
    column = np.zeros((3, 4))
    column[1, 2], column[2, 0], column[0, 0] = -5, 3, np.nan
    ranked = dataclasses.replace(made, columns={"off": column}).ranked
    assert (ranked[:3], ranked[-1]) == ([(1, 2), (2, 0), (0, 1)], (0, 0))
    assert made.heads[:5] == [(0, 0), (0, 1), (0, 2), (0, 3), (1, 0)]


def test_of_a_regression_head_the_score_changes(tmp_path: Path) -> None:
    folder = save_checkpoint("bert", tmp_path / "score", labels=1)
    found = head_table(Request(str(folder), "random", TEXT), HeadTableQuery(("off", "agreement"), METHOD))
    assert found.score("off").unit == "score"
    assert found.score("agreement") is AGREES
    assert not found.flipped.any()  # type: ignore[union-attr]


@pytest.mark.parametrize(("score", "passes"), [("importance", 1), ("off", 13)])
def test_progress_is_that_of_the_passes_that_a_score_takes(score: str, passes: int) -> None:
    told: list[tuple[int, int]] = []
    asked = table_request(heads=HeadScales.off([(0, passes % 4)]))
    head_table(asked, HeadTableQuery((score,)), lambda done, total, label: told.append((done, total)))
    assert told[-1][1] == passes


def test_what_is_wrong_is_told() -> None:
    with pytest.raises(UsageError, match=r"score: unknown name 'entropi'\. Did you mean 'entropy'"):
        HeadTableQuery(("entropi",))
    with pytest.raises(UsageError, match="against: is missing; the score 'agreement' needs a method"):
        HeadTableQuery(("agreement",))
    with pytest.raises(UsageError, match="query: must be a position from 0 to 7 of this input, got 8"):
        head_table(table_request(), HeadTableQuery(("agreement",), METHOD, 8))
