"""The benchmark of language models asks Captum what it asks us, and both give the same numbers."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.causal import (
    STEPS,
    bare_gradients,
    captum_context,
    check_same,
    fill_context,
    limits_of,
    load_causal,
    occlusion_rows,
    read_subject,
)
from benchmarks.counting import counting
from benchmarks.harness import TEXT
from engine import passes
from engine.generation import log_probabilities

pytestmark = pytest.mark.filterwarnings("ignore:.*Skipping this token")  # Captum, as it names target tokens


@pytest.mark.parametrize("cost", [0, 10_000])
def test_occlusion_is_captums_ablation(monkeypatch: pytest.MonkeyPatch, cost: int) -> None:
    """With prefixes read once, and without."""
    monkeypatch.setattr(passes, "CPU_PASS_TOKENS", cost)
    subject = read_subject(load_causal("tiny-llama"), TEXT, STEPS)
    check_same(subject)
    assert len(occlusion_rows(subject)) == len(subject.task.examples[0].features) + 1


def test_context_use_is_captums_ablation_of_sentences(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(passes, "CPU_PASS_TOKENS", 0)
    model = load_causal("tiny-llama")
    context = fill_context(model, 80, 2)
    rows = [context.ids, *(np.delete(context.ids, part) for part in context.parts)]
    whole, *without = log_probabilities(model, rows, context.generated).sum(1)
    np.testing.assert_allclose(whole - np.array(without), captum_context(model, context)(), atol=1e-3)
    with pytest.raises(SystemExit, match="reads at most 96 tokens"):
        fill_context(model, 2_048, 2)


def test_each_target_has_a_bare_pass_of_its_own() -> None:
    subject = read_subject(load_causal("tiny-llama"), TEXT, 3)
    with counting(subject.model.module) as rows:
        bare_gradients(subject, len(subject.generated))()
    size = len(subject.task.examples[0])
    assert rows.back == [size + step for step in range(len(subject.generated))]


def test_ours_is_set_against_the_bare_work_and_each_peer() -> None:
    table = [
        {"what": "x", "by": by, "ms": ms, "ratio": ms} for by, ms in (("bare", 1.0), ("exegesis", 2.0), ("p", 4.0))
    ]
    assert [(limit.what, limit.figure) for limit in limits_of(table)] == [("x, to bare", 2.0), ("x, to p", 0.5)]
