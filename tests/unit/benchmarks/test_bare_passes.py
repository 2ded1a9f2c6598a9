"""The bare side of the benchmarks of attacks and randomization: as many passes as ours, in turn with them, judged."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from unittest import mock

import pytest
import torch

from benchmarks import experiments, harness
from benchmarks.counting import Rows, counting
from benchmarks.explainers import count_passes
from benchmarks.harness import Limit, PairedClocks
from engine.attacks.attack import encode_items
from engine.attacks.plan import PATH_STEPS
from engine.experiments.run import sample_of
from engine.models.attention import twice_differentiable
from engine.models.text_classifier import TextClassifier
from engine.randomization.chunks import ModelWork
from engine.randomization.plan import THESIS_METHODS, RandomizationPlan
from engine.request import Example
from tests.explaining import checkpoint, classifier
from tests.unit.randomization.making import TEXTS, reviews, serve

FEW = {"integrated_gradients": {"n_steps": 5}}


@pytest.fixture
def ticking(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[float]]:
    """Times that the clock says one after the other; 100 bytes are held, and 30 more at most."""
    says = list[float]()
    monkeypatch.setattr(PairedClocks, "_now", lambda self: says.pop(0))
    monkeypatch.setattr(harness, "reset_peak_memory", lambda model: 100)
    monkeypatch.setattr(harness, "peak_memory", lambda model: 130)
    yield says
    assert not says


def test_either_clock_stands_still_while_the_other_side_works(ticking: list[float]) -> None:
    # Ours prepares from 0 to 2 and steps from 12 to 15 and from 40 to 46; the bare work takes 10-11 and 30-34.
    ticking += [0, 2, 10, 11, 12, 15, 30, 34, 40, 46]
    clocks = PairedClocks(classifier("bert"))
    for _ in range(2):
        with clocks.paused():
            clocks.time(lambda: None)
    clocks.stop()
    bare, ours = clocks.rows()
    assert (bare["seconds"], ours["seconds"], ours["ratio"]) == (5, 11, 2.2)
    assert (ours["low"], ours["high"]) == pytest.approx((1.875, 2.625)), "of 3 / 1 and 6 / 4"
    assert clocks.most == 30


def counted(model: TextClassifier, work: Iterable[Callable[[], object]]) -> tuple[Rows, int]:
    """Rows that went through, and how often torch went back, while all this was done."""
    with counting(model.module) as rows, mock.patch.object(torch.autograd, "grad", wraps=torch.autograd.grad) as back:
        for one in work:
            one()
    return rows, back.call_count


@pytest.mark.parametrize("method", experiments.METHODS)
def test_an_attack_needs_the_passes_of_its_bare_side(method: str) -> None:
    model, steps = classifier("bert", dtype="float32"), 3
    items = encode_items(model, [(Example(text), 0) for text in TEXTS[2:5]])
    ours, back = counted(model, [lambda: experiments.run_attack(model, items, method, steps)])
    with twice_differentiable(model.module):
        bare, needed = counted(model, list(experiments.bare_steps(model, items, method, steps)))
    assert [sorted(way) for way in ours.by_way] == [sorted(way) for way in bare.by_way]
    assert back == needed
    assert bare.count == (steps + 2) * len(items) * (PATH_STEPS if method == "integrated_gradients" else 1)


@pytest.mark.usefixtures("home")
def test_a_stage_needs_the_passes_of_its_bare_side_and_a_few(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = classifier("bert", dtype="float32")
    serve(monkeypatch, model)
    monkeypatch.setattr(experiments, "STEPS", FEW["integrated_gradients"]["n_steps"])
    plan = RandomizationPlan(
        (str(checkpoint("bert")),), reviews(tmp_path), THESIS_METHODS, modes=("cascading",), seeds=1, params=FEW
    )
    work = ModelWork(plan, plan.models[0], sample_of(plan))
    [batch], bare = work.batches, experiments.CascadePasses(model, work)
    clocks, settings = PairedClocks(model), work.settings()[:2]
    ours, _ = counted(model, [partial(work.do, work.chunks(setting, batch)) for setting in settings])
    needed, _ = counted(bare.model, [partial(bare.time, step, clocks) for step in range(2)])
    once = sorted(len(model.encode(Example(text))) for text in TEXTS)
    assert sorted(needed.forward) == sorted([*once, *once] * 2), "the answers, and the attention"
    assert sorted(needed.back) == sorted(once * (1 + 5) * 2), "the gradient, and the path"
    # Both gradients are passes of their own here, and four rows a stage tell whether one is zero by construction.
    assert sorted(ours.forward) == sorted([*needed.forward, *[once[0]] * 4 * 2])
    assert sorted(ours.back) == sorted([*needed.back, *once * 2])


def test_the_counted_passes_are_counted_and_the_hook_is_gone_after_an_error_too() -> None:
    model = classifier("bert", dtype="float32")
    batch = model.collate([model.encode(Example(text)) for text in TEXTS[:3]])
    with count_passes(model) as passes:
        points = model.embed(batch).detach().requires_grad_()
        torch.autograd.grad(model.logits(batch, points).sum(), points)
    assert passes == {"rows forward": 3, "passes back": 1}
    with pytest.raises(ZeroDivisionError), count_passes(model):
        raise ZeroDivisionError
    assert not model.blocks[0]._forward_pre_hooks


def test_what_is_judged() -> None:
    row = {"what": "gradient_x_input", "by": "exegesis", "ratio": 1.31, "more MB": 7}
    slow, large = experiments.attack_limits(row)
    assert (slow.kept, large.kept, large.figure) == (False, True, 7)
    assert experiments.attack_limits(row | {"by": "bare"}) == []
    [together] = experiments.attack_limits(row | {"by": "one at a time", "ratio": 2.0})
    assert together == Limit("together, to one at a time", 0.5, 1, "times")
    assert [limit.kept for limit in experiments.randomization_limits(row)] == [False, True]
    larger = experiments.randomization_limits(row | {"ratio": 1.3, "more MB": 1e6})
    assert [limit.kept for limit in larger] == [True, False]
    assert [experiments.steps_of(method, 500) for method in experiments.METHODS] == [500, 55]
