"""The planner of rows: each once, in passes of like length, the same numbers as one by one."""

from __future__ import annotations

import numpy as np
import pytest

import engine.metrics.shared_rows as shared_rows
from engine import runtime
from engine.metrics.shared_rows import SharedRows, Tally
from engine.request import Example
from tests.counted import counted
from tests.explaining import classifier
from tests.oracles.curves import masked_probability

TEXTS = ("good food", "although the plot drags, the ending is warm and funny", "a quiet triumph", "it never falters")


@pytest.fixture
def small_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runtime, "rows_at_once", lambda model, length, **more: max(1, 60 // length))


def lengths_of_passes(monkeypatch: pytest.MonkeyPatch) -> list[list[int]]:
    """Of each pass, the lengths of its rows."""
    return counted(
        monkeypatch, shared_rows, "coalition_quantities", lambda *given: [len(given[1][i]) for i in given[3]]
    )


@pytest.mark.usefixtures("small_passes")
def test_rows_of_many_examples_are_those_of_one_text_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    model, rng = classifier("bert", 3, "float32"), np.random.default_rng(3)
    seen = lengths_of_passes(monkeypatch)
    rows, asked = SharedRows(), []
    for number, text in enumerate(TEXTS):
        encoded = model.encode(Example(text))
        kept = rng.random((5, len(encoded.features))) < 0.5
        asked.append((encoded, number % 3, kept, rows.ask(encoded, number % 3, kept)))
    values = rows.values(model, "mask")[:, 0]
    for encoded, target, kept, places in asked:
        for row, place in zip(kept, places, strict=True):
            gone = set(encoded.features[~row].tolist())
            expected = masked_probability(model.module, encoded.ids.tolist(), gone, model.mask_id, target)
            assert values[place] == pytest.approx(expected, abs=1e-5)
    assert [length for one in seen for length in one] == sorted(
        (length for one in seen for length in one), reverse=True
    )
    assert all(len(one) * max(one) <= 60 for one in seen)
    assert len(seen) == 3


def test_a_row_that_is_asked_for_again_is_run_once_and_other_targets_are_other_rows() -> None:
    model, tally = classifier("bert", 3, "float32"), Tally()
    rows, encoded = SharedRows(tally), model.encode(Example(TEXTS[0]))
    n = len(encoded.features)
    first = rows.ask(encoded, 0, np.array([[True] * n, [False] * n]))
    again = rows.ask(model.encode(Example(TEXTS[0])), 0, np.array([[False] * n, [True] * n]))
    other = rows.ask(encoded, 1, np.ones((1, n), dtype=bool))
    assert again.tolist() == first.tolist()[::-1]
    assert other[0] not in first
    values = rows.values(model, "mask")[:, 0]
    assert tally == Tally(asked=5, run=3)
    assert values[first[0]] + values[other[0]] < 1


def test_short_texts_are_not_padded_to_long_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    model = classifier("bert", 3, "float32")
    seen = lengths_of_passes(monkeypatch)
    rows, rng = SharedRows(), np.random.default_rng(0)
    for text in TEXTS:
        encoded = model.encode(Example(text))
        rows.ask(encoded, 0, rng.random((6, len(encoded.features))) < 0.5)
    monkeypatch.setattr(shared_rows, "FEW", 2)
    apart = rows.values(model, "mask")
    lengths = sorted({length for one in seen for length in one})
    assert all(min(one[2:], default=max(one)) >= 0.8 * max(one) for one in seen)
    assert len(seen) > 1 < len(lengths)
    monkeypatch.setattr(shared_rows, "FEW", 1000)
    seen.clear()
    np.testing.assert_allclose(rows.values(model, "mask"), apart, atol=1e-6)
    assert len(seen) == 1


def test_nothing_asked_is_nothing_run() -> None:
    assert len(SharedRows().values(classifier("bert"), "mask")) == 0
