"""Chunks and out-of-memory: less room changes no number, and is said."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from engine import runtime
from engine.errors import ExegesisError
from engine.models.text_classifier import TextClassifier
from tests.explaining import METHODS, classifier, forget, run_cheaply, task_for

TEXTS = ["the plot drags", "good", "the ending is warm"]
ONE_PASS = ("random", "smat", "gradient_shap")
RUNS_MANY_ROWS = [m for m in METHODS if not m.startswith(("attention", "ensemble")) and m not in ONE_PASS]
"""Ensembles run nothing themselves; attention is read one example at a time; Captum draws GradientShap in one pass."""


def count_rows(monkeypatch: pytest.MonkeyPatch, most: int | None = None) -> list[int]:
    """Rows of every pass; one of more than `most` rows runs out of memory."""
    rows: list[int] = []
    own = TextClassifier.logits

    def logits(self: TextClassifier, batch: Any, embeds: Any = None) -> Any:
        rows.append(len(batch.ids))
        if most is not None and len(batch.ids) > most:
            raise torch.OutOfMemoryError("pretended")
        return own(self, batch, embeds)

    monkeypatch.setattr(TextClassifier, "logits", logits)
    monkeypatch.setattr(runtime.gc, "collect", lambda: 0)  # slow in a process that holds all these libraries
    return rows


@pytest.mark.parametrize("room", ["one row", "a few rows"])
@pytest.mark.parametrize("method", RUNS_MANY_ROWS)
def test_chunks_change_no_number(method: str, room: str, monkeypatch: pytest.MonkeyPatch) -> None:
    model = classifier("bert", 3)
    task = task_for(model, TEXTS)
    expected = run_cheaply(method, task)
    if room == "one row":
        monkeypatch.setenv("EXEGESIS_MEMORY_BYTES", "1")
    else:
        monkeypatch.setattr(runtime, "CPU_TOKENS_AT_ONCE", 15)
    forget(model)
    rows = count_rows(monkeypatch)
    made = run_cheaply(method, task)
    assert len(rows) > 1
    least = 2 if method.startswith("deep_lift") else 1  # Captum runs the input and its baseline together
    assert max(rows) == least if room == "one row" else 2 <= max(rows) <= 3
    for a, b in zip(made, expected, strict=True):
        np.testing.assert_allclose(a.scores, b.scores, atol=1e-9)
        assert a.evaluations == b.evaluations


@pytest.mark.parametrize("method", RUNS_MANY_ROWS)
def test_out_of_memory_halves_and_says_so(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    task = task_for(classifier("bert", 3), TEXTS)
    expected = run_cheaply(method, task)
    rows = count_rows(monkeypatch, most=2)
    with runtime.noting() as notes:
        made = run_cheaply(method, task)
    assert max(rows) > 2
    assert notes
    assert all("Memory ran out" in note for note in notes)
    for a, b in zip(made, expected, strict=True):
        np.testing.assert_allclose(a.scores, b.scores, atol=1e-9)


@pytest.mark.parametrize("method", [m for m in METHODS if m != "random"])
def test_not_even_one_row_is_a_clear_error(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    model = classifier("bert", 3)
    task = task_for(model, TEXTS)
    forget(model)
    count_rows(monkeypatch, most=0)
    with pytest.raises(ExegesisError, match=r"out of memory: even one row does not fit\. Use a shorter text"):
        run_cheaply(method, task)


def test_memory_that_runs_out_while_summing_adds_nothing_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    """The second item's part of a chunk fails: the first item's must not stay in the sum."""
    task = task_for(classifier("bert", 3), TEXTS)
    expected = run_cheaply("smoothgrad", task)
    own, calls = torch.tensordot, []

    def tensordot(*args: Any, **named: Any) -> Any:
        calls.append(1)
        if len(calls) == 2:
            raise torch.OutOfMemoryError("pretended")
        return own(*args, **named)

    monkeypatch.setattr(torch, "tensordot", tensordot)
    made = run_cheaply("smoothgrad", task)
    assert len(calls) > 2
    for a, b in zip(made, expected, strict=True):
        np.testing.assert_allclose(a.scores, b.scores, atol=1e-9)


def test_chunks_are_retried_from_where_they_failed() -> None:
    seen: list[tuple[int, int]] = []

    def compute(rows: slice) -> list[int]:
        seen.append((rows.start, rows.stop))
        if rows.stop - rows.start > 3:
            raise MemoryError
        return list(range(rows.start, rows.stop))

    with runtime.noting() as notes:
        parts = runtime.in_chunks(compute, 10, 8)
    assert [i for part in parts for i in part] == list(range(10))
    assert seen == [(0, 8), (0, 4), (0, 2), (2, 4), (4, 6), (6, 8), (8, 10)]
    assert len(notes) == 2


def test_other_failures_are_not_taken_for_memory() -> None:
    def compute(rows: slice) -> None:
        raise RuntimeError("shapes do not match")

    with pytest.raises(RuntimeError, match="shapes do not match"):
        runtime.in_chunks(compute, 4, 2)
    with pytest.raises(ExegesisError, match="out of memory"):
        runtime.in_chunks(lambda rows: (_ for _ in ()).throw(RuntimeError("can't allocate memory")), 1, 1)
