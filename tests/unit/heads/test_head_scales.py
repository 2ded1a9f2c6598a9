"""Heads scaled through the attention mechanism: as if the output projection were another, and nothing is changed."""

from __future__ import annotations

import threading
from typing import Any

import pytest
import torch

from engine.classifiers import AnyClassifier
from engine.errors import UsageError
from engine.heads.running import size, under
from engine.heads.scales import HeadScales
from engine.models.attention import capture_attention, scale_heads, use_attention
from engine.request import Example
from tests.explaining import classifier, fingerprint
from tests.oracles.heads import rescaled
from tests.tiny import FAMILIES
from tests.unit.images.checkpoints import ARCHITECTURES
from tests.unit.images.making import blobs, vit

EXAMPLES = [Example("the film is a quiet triumph"), Example("good"), Example("the price", "bad service after days")]
SCALES = HeadScales(((0, 1, 0.0), (1, 3, 0.5), (2, 0, 2.0), (2, 2, 0.0)))
KINDS = (*FAMILIES, *ARCHITECTURES)


def model_of(kind: str) -> AnyClassifier:
    return vit(kind) if kind in ARCHITECTURES else classifier(kind, 3)


def batch_of(model: AnyClassifier) -> Any:
    """Three inputs; texts of different lengths, so that there is padding."""
    given = EXAMPLES if model.kind == "text" else [blobs(seed) for seed in range(3)]
    return model.collate([model.encode(one) for one in given])


def logits(model: AnyClassifier, batch: Any) -> torch.Tensor:
    with torch.no_grad():
        return model.logits(batch)


@pytest.mark.parametrize("kind", KINDS)
def test_a_scaled_head_is_one_whose_slice_of_the_output_projection_is_scaled(kind: str) -> None:
    model = model_of(kind)
    batch, before, state = batch_of(model), logits(model, batch_of(model)), fingerprint(model)
    with under(model, SCALES) as scaled:
        found = logits(scaled, batch)
    oracle = rescaled(model, "vit" if kind in ARCHITECTURES else kind, SCALES.scales)
    torch.testing.assert_close(found, logits(oracle, batch), atol=1e-10, rtol=1e-10)
    assert (found - before).abs().max() > 1e-3
    assert torch.equal(logits(model, batch), before)
    assert fingerprint(model) == state


@pytest.mark.parametrize("kind", KINDS)
def test_a_scale_of_one_everywhere_is_the_plain_result_bit_for_bit(kind: str) -> None:
    model = model_of(kind)
    batch = batch_of(model)
    plain = logits(model, batch)
    with under(model, HeadScales.of({(0, 0): 1, (2, 3): 1.0})) as same:
        assert torch.equal(logits(same, batch), plain)
    with torch.no_grad():
        captured, recorder = model.captured(batch)
        with scale_heads(model.module, model.blocks, torch.ones(1, *size(model), dtype=model.dtype)):
            ones, again = model.captured(batch)
    assert torch.equal(ones, captured)
    assert all(map(torch.equal, again.probabilities, recorder.probabilities))


@pytest.mark.parametrize("kind", ["bert", "gpt2", "t5", ARCHITECTURES[0]])
def test_rows_of_a_batch_may_have_scales_of_their_own(kind: str) -> None:
    model = model_of(kind)
    batch = batch_of(model)
    scales = torch.ones(3, *size(model), dtype=model.dtype)
    scales[1, 0, 2] = 0
    scales[2, 2, 1] = 1.5
    with scale_heads(model.module, model.blocks, scales):
        found = logits(model, batch)
    for row, changed in enumerate([(), ((0, 2, 0.0),), ((2, 1, 1.5),)]):
        expected = logits(rescaled(model, "vit" if kind in ARCHITECTURES else kind, changed), batch)[row]
        torch.testing.assert_close(found[row], expected, atol=1e-10, rtol=1e-10)


def test_everything_is_as_before_after_an_error_in_the_middle_of_a_pass() -> None:
    model = model_of("bert")
    batch, state = batch_of(model), fingerprint(model)
    plain = logits(model, batch)
    with under(model, SCALES) as scaled:
        right = logits(scaled, batch)
        hook = model.blocks[1].register_forward_hook(lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            scaled.logits(batch)
        hook.remove()
        assert torch.equal(logits(scaled, batch), right)
    with pytest.raises(ZeroDivisionError), under(model, SCALES):
        raise ZeroDivisionError
    assert torch.equal(logits(model, batch), plain)
    assert fingerprint(model) == state


def test_threads_have_scales_of_their_own_and_leave_in_any_order() -> None:
    model = model_of("bert")
    batch, state, plain = batch_of(model), fingerprint(model), logits(model_of("bert"), batch_of(model))
    both, first_left = threading.Barrier(2, timeout=30), threading.Event()
    found: dict[str, torch.Tensor] = {}

    def first() -> None:
        with under(model, SCALES) as scaled:
            both.wait()
            found["scaled"] = logits(scaled, batch)
        first_left.set()

    def second() -> None:
        with capture_attention(model.module) as recorder:
            both.wait()
            assert first_left.wait(30)
            found["plain"] = logits(model, batch)
            found["layers"] = torch.tensor(len(recorder.probabilities))

    threads = [threading.Thread(target=work) for work in (first, second)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    with under(model, SCALES) as scaled:
        assert torch.equal(found["scaled"], logits(scaled, batch))
    torch.testing.assert_close(found["plain"], plain, atol=1e-12, rtol=1e-12)
    assert (int(found["layers"]), fingerprint(model)) == (3, state)


def test_the_own_attention_is_back_when_the_last_has_left() -> None:
    model = model_of("bert")
    config: Any = model.module.config
    outer, inner = use_attention(model.module, "eager"), use_attention(model.module, "sdpa")
    with outer:
        assert config._attn_implementation == "eager"
        with inner:
            assert config._attn_implementation == "sdpa"
        assert config._attn_implementation == "eager"
    assert config._attn_implementation == "sdpa"


def test_scales_further_in_replace_those_further_out() -> None:
    model = model_of("bert")
    batch = batch_of(model)
    with under(model, SCALES) as scaled:
        alone = logits(scaled, batch)
    with under(model, HeadScales.off([(0, 0)])) as outer, under(outer, SCALES) as inner:
        assert torch.equal(logits(inner, batch), alone)


def test_scales_that_mean_the_same_are_equal() -> None:
    one = HeadScales(((2, 1, 0.5), (0, 3, 1.0), (0, 1, 0)))
    other = HeadScales.of({(0, 1): -0.0, (2, 1): 0.5})
    assert one == other
    assert hash(one) == hash(other)
    assert one.as_plain() == [[0, 1, 0.0], [2, 1, 0.5]]
    assert str(other.scales[0][2]) == "0.0"
    assert not HeadScales.of({(0, 0): 1})
    assert HeadScales.off([(1, 1), (1, 1)]).grid(2, 2).tolist() == [[1, 1], [1, 0]]


@pytest.mark.parametrize(
    ("scales", "said"),
    [
        (((0, 0, 2.1),), r"heads: scale: must be a number from 0 \(off\) to 2, got 2\.1"),
        (((0, 0, -0.1),), r"from 0 \(off\) to 2, got -0\.1"),
        (((0, 0, float("nan")),), "got nan"),
        (((-1, 0, 0.5),), r"heads: layer: must be a whole number from 0, got -1"),
        (((0, -2, 0.5),), r"heads: head: must be a whole number from 0, got -2"),
        (((0, 0, 0.5), (0, 0, 0.7)), "a head is named twice"),
    ],
)
def test_what_is_no_scale_is_refused(scales: Any, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        HeadScales(scales)


@pytest.mark.parametrize(("head", "said"), [((3, 0), "layers from 0 to 2"), ((0, 4), "heads from 0 to 3")])
def test_a_head_that_the_model_has_not_is_refused(head: tuple[int, int], said: str) -> None:
    with pytest.raises(UsageError, match=said), under(model_of("bert"), HeadScales.off([head])):
        pass
